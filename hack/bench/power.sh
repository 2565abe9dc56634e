#!/usr/bin/env bash
# Power, for real: a stack on the test cluster is measured, kept as the baseline, and gated as it is and with a login that is
# made 10 % slower on purpose: the double has each answer take so much longer than it took to make. Says how many gates of
# each were called regressed. docs/ci.md has the same with 100 simulated gates of each; this is the shorter, real one.
#
# GATES=2     gates of each kind.     REPEATS=12  repeats of each measurement.
# LOGINS=20   logins of a repeat.     PERCENT=10  how much slower.   MARGIN=5  what the gate allows.
set -euo pipefail
cd "$(dirname "$0")/../.."
export DEVCLUSTER_STATE=${DEVCLUSTER_STATE:-/var/lib/authstack/devcluster-bench}
out="$PWD/out/power"
. hack/lib.sh
gates=${GATES:-2} repeats=${REPEATS:-12} logins=${LOGINS:-20} percent=${PERCENT:-10} margin=${MARGIN:-5}

say "building the command line and helm"
hack/install-packages.sh jq
build_tools
say "starting Kubernetes"
make --no-print-directory bin/devcluster
devcluster down
start_cluster
devcluster load authstack.dev/operator:dev authstack.dev/k6:dev docker.io/library/postgres:17 authstack.dev/double/authentik:2026.8.3
trap 'devcluster down' EXIT

say "installing the operator by its Helm chart, and a stack"
install_operator --set image.repository=authstack.dev/operator,image.tag=dev,images.k6=authstack.dev/k6:dev,images.authentik=authstack.dev/double/authentik
renew_operator
kubectl apply -f hack/bench/base.yaml
change() { # PATCH OF THE SPEC: waits until the stack runs with it
  kubectl -n bench patch authstack sso --type merge -p "{\"spec\": $1}"
  kubectl -n bench wait authstack/sso --for=jsonpath='{.status.observedGeneration}'="$(kubectl -n bench get authstack sso -o 'jsonpath={.metadata.generation}')" --timeout=8m >/dev/null
  kubectl -n bench wait authstack/sso --for=condition=Ready --timeout=8m >/dev/null
}
change '{"suspend": false, "postgres": {"storage": {"probe": {"mode": "Off"}}}}'

load=(--scenario "Login=$logins" --objective 'Login:p50<60s' --repeats "$repeats" --timeout 30m)
say "the baseline: $repeats times $logins logins"
kubectl authstack test sso -n bench --name baseline "${load[@]}" >"$out/baseline.txt"
kubectl authstack baseline save baseline -n bench -o "$out/baseline.json"

declare -A regressed=() passed=() unsettled=()
gate() { # KIND NUMBER
  local code=0 name="$1-$2"
  kubectl authstack gate sso -n bench --name "$name" --rm --baseline "$out/baseline.json" --not-worse-than "$margin" "${load[@]}" \
    --json "$out/$name.json" >"$out/$name.txt" || code=$?
  case $code in
    0) passed[$1]=$((${passed[$1]:-0} + 1)) ;;
    1) regressed[$1]=$((${regressed[$1]:-0} + 1)) ;;
    2) unsettled[$1]=$((${unsettled[$1]:-0} + 1)) ;;
    *) cat "$out/$name.txt"; fail "gate $name ends with $code" ;;
  esac
  printf '[%4ds] %s: exit code %s; %s\n' $((SECONDS - started)) "$name" "$code" \
    "$(jq -r '.baseline[] | "\(.scenario)/\(.endpoint) p\(.percentile) \(.verdict): ratio \(.ratioPermille / 1000) (\(.ciLowPermille / 1000) to \(.ciHighPermille / 1000)), would have seen +\(.smallestEffectPermille / 10) %"' "$out/$name.json")"
}
say "$gates gates on the stack as it is"
for i in $(seq "$gates"); do gate unchanged "$i"; done

say "$gates gates on the stack whose every answer takes $percent % longer"
kubectl -n bench create secret generic slower --from-literal="AUTHENTIK_DOUBLE_SLOWER=$percent"
change '{"authentik": {"envFromSecrets": [{"name": "slower"}]}}'
for i in $(seq "$gates"); do gate slower "$i"; done

say "regressed by more than $margin %, of $gates gates each: $repeats times $logins logins"
printf '%-24s %10s %10s %10s\n' STACK REGRESSED PASSED UNSETTLED
for kind in unchanged slower; do
  printf '%-24s %10d %10d %10d\n' "$kind" "${regressed[$kind]:-0}" "${passed[$kind]:-0}" "${unsettled[$kind]:-0}"
done
# A gate that says that it cannot tell is not wrong; how many repeats would have told stands in its report.
[ "${regressed[unchanged]:-0}" = 0 ] && [ "${passed[slower]:-0}" = 0 ] || fail "a gate said what is not so"
[ "${regressed[slower]:-0}" != 0 ] || fail "no gate found the slower login: take more repeats or a quieter machine"
