#!/usr/bin/env bash
# The main job in one go: a real Kubernetes starts, the operator goes in by its Helm chart, two
# AuthStacks are applied, become Ready and are measured by k6 in the cluster; the tables are printed
# and out/demo/report.{json,html} written. Exit 0 only if all of that happened.
#
# DEMO_CLUSTER=current uses the cluster of the current kubectl context instead of the test cluster. It
# needs Zalando's postgres-operator there, and OPERATOR_IMAGE and K6_IMAGE where the cluster can pull
# them (make docker-build docker-push IMG=… K6_IMG=…). The real products run instead of the doubles,
# unless AUTHENTIK_IMAGE and AUTHELIA_IMAGE name other repositories.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
out="$root/out/demo"
. hack/lib.sh

if [ "${DEMO_CLUSTER:-}" = current ]; then
  for needed in kubectl make go; do
    command -v "$needed" >/dev/null || fail "$needed is needed and not in PATH"
  done
  [ -n "${OPERATOR_IMAGE:-}" ] && [ -n "${K6_IMAGE:-}" ] || fail "The images of the operator and of k6 are published nowhere. Build and push them, and say which:
  make docker-build docker-push IMG=registry.example.com/authstack-operator:v1 K6_IMG=registry.example.com/authstack-k6:v1
  DEMO_CLUSTER=current OPERATOR_IMAGE=registry.example.com/authstack-operator:v1 K6_IMAGE=registry.example.com/authstack-k6:v1 make demo"
  kubectl get --raw /readyz >/dev/null || fail "the cluster of the current kubectl context does not answer; see kubectl config get-contexts"
  kubectl get crd postgresqls.acid.zalan.do >/dev/null 2>&1 ||
    fail "The demo's authentik has its database from Zalando's postgres-operator, which this cluster lacks: install it first, see https://opensource.zalando.com/postgres-operator"
fi
operator_image=${OPERATOR_IMAGE:-authstack.dev/operator:dev}
k6_image=${K6_IMAGE:-authstack.dev/k6:dev}
[[ "${operator_image##*/}" = *:* ]] || fail "OPERATOR_IMAGE is $operator_image: write it with its tag, for example $operator_image:v1"
values=(--set "image.repository=${operator_image%:*}" --set "image.tag=${operator_image##*:}" --set "images.k6=$k6_image")
[ -z "${AUTHENTIK_IMAGE:-}" ] || values+=(--set "images.authentik=$AUTHENTIK_IMAGE")
[ -z "${AUTHELIA_IMAGE:-}" ] || values+=(--set "images.authelia=$AUTHELIA_IMAGE")

say "building the command line and helm"
build_tools

if [ "${DEMO_CLUSTER:-}" = current ]; then
  say "using the cluster of the current context: $(kubectl config current-context)"
else
  say "starting Kubernetes (the first time it is built: about ten minutes)"
  start_cluster
  say "building and loading images (the first time: some minutes)"
  devcluster addon postgres-operator
  devcluster load "$operator_image" "$k6_image" authstack.dev/probe:dev docker.io/library/postgres:17 docker.io/library/redis:8 \
    authstack.dev/double/authentik:2026.8.3 authstack.dev/double/authelia:4.39.20
  values+=(--set images.probe=authstack.dev/probe:dev --set images.authentik=authstack.dev/double/authentik --set images.authelia=authstack.dev/double/authelia)
fi

say "installing the operator by its Helm chart"
install_operator "${values[@]}"
[ "${DEMO_CLUSTER:-}" = current ] || renew_operator

say "applying two AuthStacks: authentik on Zalando's PostgreSQL, Authelia on a standalone one"
kubectl apply -f hack/demo/namespaces.yaml
kubectl apply -f hack/demo/authentik.yaml -f hack/demo/authelia.yaml

# Stacks of an earlier run are measured again: what is shown at the end was measured now. One after the
# other, since a small node has no room for two generators and each would disturb the other.
declare -A measured_before
last_test() { kubectl -n "$1" get authstack "$2" -o 'jsonpath={.status.latency.testName}' 2>/dev/null || true; } # NAMESPACE STACK
for at in demo/sso demo-authelia/gate; do measured_before[$at]=$(last_test "${at%/*}" "${at#*/}"); done
measure_again() { # NAMESPACE STACK
  measured_before[$1/$2]=$(last_test "$1" "$2")
  [ -z "${measured_before[$1/$2]}" ] || kubectl -n "$1" annotate authstack "$2" --overwrite "authstack.dev/requestedAt=$(date +%s%N)" >/dev/null
}

# follow NAMESPACE STACK JSONPATH WANT LIMIT WHAT: waits until the field has the value and shows how it goes.
follow() {
  local namespace=$1 stack=$2 path=$3 want=$4 limit=$5 what=$6 last="" now value since=$SECONDS
  while :; do
    value=$(kubectl -n "$namespace" get authstack "$stack" -o "jsonpath=$path" 2>/dev/null || true)
    [[ "$value" =~ $want ]] && return 0
    now=$(kubectl -n "$namespace" get authstack "$stack" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].message}' 2>/dev/null || true)
    [ "$now" = "$last" ] || { printf '[%4ds] %s/%s: %s\n' $((SECONDS - started)) "$namespace" "$stack" "${now:-no status yet}"; last=$now; }
    if ((SECONDS - since > limit)); then
      kubectl -n "$namespace" describe authstack "$stack" | tail -n 60
      kubectl -n "$namespace" get pods,latencytests
      fail "$namespace/$stack: $what: not within ${limit}s"
    fi
    sleep 2
  done
}
ready='{.status.conditions[?(@.type=="Ready")].status}'
for at in demo/sso demo-authelia/gate; do
  follow "${at%/*}" "${at#*/}" "$ready" '^True$' 480 "Ready"
  printf '[%4ds] %s is Ready\n' $((SECONDS - started)) "$at"
done
kubectl get authstacks -A

# measured NAMESPACE STACK FILE: waits for a verdict and writes the reports.
measured() {
  local namespace=$1 stack=$2 file=$3 test verdict attempt before since
  [ "$(last_test "$namespace" "$stack")" != "${measured_before[$namespace/$stack]}" ] || measure_again "$namespace" "$stack"
  for attempt in 1 2; do
    before=${measured_before[$namespace/$stack]}
    since=$SECONDS
    while :; do
      test=$(last_test "$namespace" "$stack")
      [ -z "$test" ] || [ "$test" = "$before" ] || break
      ((SECONDS - since < 900)) || fail "$namespace/$stack: no verdict within 900s; see kubectl -n $namespace describe latencytests"
      sleep 2
    done
    verdict=$(kubectl -n "$namespace" get latencytest "$test" -o 'jsonpath={.status.verdict}')
    printf '\n[%4ds] ' $((SECONDS - started))
    kubectl authstack report "$test" -n "$namespace" -o table
    kubectl authstack report "$test" -n "$namespace" -o json >"$out/$file.json"
    kubectl authstack report "$test" -n "$namespace" -o html >"$out/$file.html"
    case $verdict in
      Passed | Failed) return 0 ;;
      Inconclusive)
        [ "$attempt" = 1 ] || break
        say "the run proves nothing, see the guards; once more"
        measure_again "$namespace" "$stack"
        ;;
      *) break ;;
    esac
  done
  fail "$namespace/$stack was not measured: the verdict is ${verdict:-none}"
}
say "measuring"
measured demo sso report
measured demo-authelia gate report-authelia

say "done: out/demo/report.html, out/demo/report.json, out/demo/report-authelia.html"
kubectl get authstacks -A
