# Puts PostgreSQL's binaries on the PATH: where Debian and the official images keep them, or where
# the image already says.
for directory in "/usr/lib/postgresql/$AUTHSTACK_PG_MAJOR/bin" "/usr/pgsql-$AUTHSTACK_PG_MAJOR/bin" /usr/local/bin; do
  if [ -x "$directory/postgres" ]; then
    PATH="$directory:$PATH"
    break
  fi
done
export PATH
