#!/usr/bin/env bash
# The gate in the shape of a pipeline: applies a change to a stack, waits until it runs with it, measures,
# and fails when the login is too slow. A change that did not pass is taken back.
#
#   hack/ci/pipeline.sh NAMESPACE STACK GOOD.yaml CHANGE.yaml [GATE FLAGS...]
#
# GOOD.yaml is the manifest that runs, CHANGE.yaml the one that is to replace it. The exit code is the
# gate's: 0 Passed, 1 Failed, 2 Inconclusive, 3 Error (docs/cli.md). Reports go to $REPORTS.
set -euo pipefail
[ $# -ge 4 ] || { echo "usage: $0 NAMESPACE STACK GOOD.yaml CHANGE.yaml [GATE FLAGS...]" >&2; exit 3; }
namespace=$1 stack=$2 good=$3 change=$4
shift 4
reports=${REPORTS:-out/gate}
mkdir -p "$reports" || exit 3

# kubectl's own 1, "unknown command", must not be taken for a verdict: nothing is applied where nothing could be measured.
kubectl authstack --help >/dev/null 2>&1 || {
  echo "kubectl authstack is not there: put kubectl-authstack into the PATH (docs/cli.md)" >&2
  exit 3
}

echo "applying $change"
kubectl -n "$namespace" apply -f "$change" || exit 3

code=0
kubectl authstack gate "$stack" -n "$namespace" --junit "$reports/junit.xml" --html "$reports/report.html" --json "$reports/report.json" "$@" || code=$?
if [ "$code" != 0 ]; then
  echo "the gate says $code: taking the change back"
  kubectl -n "$namespace" apply -f "$good" || exit 3
fi
exit "$code"
