#!/usr/bin/env bash
# The tests on the test cluster's real Ceph: crashes of the database and all OSDs under load, stopped OSDs, a comparison whose
# operator is killed. Starts the cluster, or adds a Ceph to the one that runs.
#
# CEPH_ROUNDS=20  crashes; the default is 2. Arguments go to go test, for example -run TestStacks.
set -euo pipefail
cd "$(dirname "$0")/../.."
out="$PWD/out/ceph"
. hack/lib.sh

say "building the command line and helm"
build_tools
say "starting Kubernetes with a Ceph of three OSDs"
start_cluster --ceph
devcluster load authstack.dev/operator:dev authstack.dev/k6:dev authstack.dev/probe:dev docker.io/library/postgres:17 authstack.dev/double/authentik:2026.8.3
say "installing the operator by its Helm chart"
# The demo's stacks may be there, so that the double of Authelia is named too.
install_operator --set image.repository=authstack.dev/operator,image.tag=dev,images.k6=authstack.dev/k6:dev,images.probe=authstack.dev/probe:dev,images.authentik=authstack.dev/double/authentik,images.authelia=authstack.dev/double/authelia
renew_operator
say "testing"
go test -tags ceph -timeout 90m -count=1 -v "$@" ./test/ceph/...
