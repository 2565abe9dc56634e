#!/bin/sh
# Whether Redis answers with its password, and is not still loading its file.
REDISCLI_AUTH="$(cat /run/secrets/authstack/password)"
export REDISCLI_AUTH
[ "$(redis-cli -h 127.0.0.1 -p 6379 ping 2>/dev/null)" = PONG ]
