#!/bin/sh
# Starts Redis with its configuration and the password from a mounted file: in an argument or an
# environment variable everybody on the node could read it.
set -eu
umask 077
{
  cat /etc/authstack/redis.conf
  printf 'requirepass "%s"\n' "$(cat /run/secrets/authstack/password)"
} >/run/redis/redis.conf
exec redis-server /run/redis/redis.conf
