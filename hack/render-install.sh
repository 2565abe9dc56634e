#!/usr/bin/env bash
# Prints config/default with the two images that are named: render-install.sh OPERATOR_IMAGE K6_IMAGE.
# A kustomization of your own that lies over config/default can do the same with `images:` and a patch
# of the argument --k6-image.
set -euo pipefail
[ $# = 2 ] || { echo "usage: $0 OPERATOR_IMAGE K6_IMAGE" >&2; exit 2; }
cd "$(dirname "$0")/.."
kubectl kustomize config/default |
  awk -v operator="$1" -v k6="$2" '
    /^ +image: authstack.dev\/operator/ { sub(/authstack.dev\/operator.*/, operator); found++ }
    /--k6-image=/ { sub(/--k6-image=.*/, "--k6-image=" k6); found++ }
    { print }
    END { if (found != 2) { print "config/default has no longer one image and one --k6-image" > "/dev/stderr"; exit 1 } }'
