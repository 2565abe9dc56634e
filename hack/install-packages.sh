#!/usr/bin/env bash
# Installs the named Debian packages where they are missing, without starting the services that some
# of them bring: tests and the demo start their own, on ports and in folders of their own.
set -euo pipefail

missing=()
for package in "$@"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
  echo "These Debian packages are needed: ${missing[*]}" >&2
  echo "Run as root, or install them first: apt-get install --no-install-recommends ${missing[*]}" >&2
  exit 1
fi

echo "installing Debian packages: ${missing[*]}"
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy" # 101: "action forbidden by policy", see invoke-rc.d(8)
  chmod +x "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
install() { apt-get -o DPkg::Lock::Timeout=600 install -qq -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 </dev/null; }
install || { apt-get update -qq >>"$log" 2>&1 && install; } || {
  cat "$log" >&2
  exit 1
}
rm -f "$log"
