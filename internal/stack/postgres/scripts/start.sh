#!/bin/sh
# Starts PostgreSQL. On the first start it makes the cluster, the product's role and its database in
# a directory beside the final one and renames it only when all is done, so that a Pod killed in
# between begins anew instead of going on with half a cluster.
set -eu
umask 077
. "$AUTHSTACK_CONFIG/path.sh"

data="$AUTHSTACK_DATA/pgdata"
fresh="$AUTHSTACK_DATA/pgdata.unfinished"

fail() {
  echo "authstack: $*" >&2
  exit 1
}

command -v postgres >/dev/null || fail "no postgres in this image: looked in /usr/lib/postgresql/$AUTHSTACK_PG_MAJOR/bin and on the PATH"
# Until PostgreSQL takes over as process 1, the shell has to obey by itself.
trap 'exit 143' TERM INT

initialise() {
  echo "authstack: first start, making the cluster"
  rm -rf "$fresh"
  # Collation C.UTF-8 does not change with the C library's version; from 17 PostgreSQL has it built in.
  locale="--locale=C.UTF-8"
  if [ "$AUTHSTACK_PG_MAJOR" -ge 17 ]; then
    locale="--locale=C.UTF-8 --locale-provider=builtin --builtin-locale=C.UTF-8"
  fi
  # shellcheck disable=SC2086 # the options are words
  initdb --pgdata="$fresh" --username=postgres --encoding=UTF8 $locale --data-checksums \
    --auth-local=peer --auth-host=scram-sha-256 >/dev/null

  # Only the socket listens: nobody sees a database that is not finished.
  pg_ctl --pgdata="$fresh" --wait --timeout=120 --silent --log=/tmp/initialise.log \
    --options="-c listen_addresses='' -c unix_socket_directories='$AUTHSTACK_SOCKETS' -c password_encryption=scram-sha-256" \
    start || { cat /tmp/initialise.log >&2; fail "the new cluster does not start"; }
  # The password comes from a file and is in no argument; statements are kept out of the log.
  psql --host="$AUTHSTACK_SOCKETS" --username=postgres --dbname=postgres --no-psqlrc --quiet --set=ON_ERROR_STOP=1 \
    --set=role="$AUTHSTACK_ROLE" --set=database="$AUTHSTACK_DATABASE" --file="$AUTHSTACK_CONFIG/initialise.sql"
  pg_ctl --pgdata="$fresh" --wait --timeout=120 --silent --mode=fast stop

  # All is on the disk by now: initdb and the shutdown checkpoint have seen to it.
  mv "$fresh" "$data"
  sync
  echo "authstack: made database $AUTHSTACK_DATABASE and role $AUTHSTACK_ROLE"
}

if [ ! -s "$data/PG_VERSION" ]; then
  [ ! -e "$data" ] || fail "$data exists but is no PostgreSQL cluster; empty the volume or restore a backup"
  initialise
fi
found="$(cat "$data/PG_VERSION")"
[ "$found" = "$AUTHSTACK_PG_MAJOR" ] || fail "the volume holds a cluster of PostgreSQL $found, this is $AUTHSTACK_PG_MAJOR; restore a dump into a new AuthStack"

# fsGroup may have opened the directory to the group; PostgreSQL insists on 0700 or 0750.
chmod 0700 "$data"
exec postgres -D "$data" -c "config_file=$AUTHSTACK_CONFIG/postgresql.conf"
