#!/bin/sh
# Whether PostgreSQL answers over TCP. While the cluster is being made, only the socket listens.
. "$AUTHSTACK_CONFIG/path.sh"
exec pg_isready --quiet --host=127.0.0.1 --port=5432 --timeout=4
