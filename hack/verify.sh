#!/usr/bin/env bash
# Fails where something generated is not what its source gives, or is not committed, and names the file.
set -euo pipefail
cd "$(dirname "$0")/.."
generated=(api/v1alpha1/zz_generated.deepcopy.go config/crd/bases config/rbac/role.yaml
  charts/authstack/templates/crd-*.yaml charts/authstack/files/manager-role.yaml docs/reference/api.md)

before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
cp --parents -r "${generated[@]}" "$before"
hack/generate.sh

stale=0
for path in "${generated[@]}"; do
  diff -ruN "$before/$path" "$path" >"$before/diff" && continue
  stale=1
  echo "$path was not what its source gives:" >&2
  head -n 40 "$before/diff" >&2
done
if [ $stale = 1 ]; then
  echo "It is regenerated now; look at it and commit it. By hand: make generate" >&2
  exit 1
fi
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  dirty=$(git status --porcelain -- "${generated[@]}")
  if [ -n "$dirty" ]; then
    printf 'Generated and right, but not committed:\n%s\nCommit these files.\n' "$dirty" >&2
    exit 1
  fi
fi
echo "Everything generated is up to date."
