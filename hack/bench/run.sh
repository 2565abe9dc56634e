#!/usr/bin/env bash
# The story's table, measured: {Ceph RBD, Ceph RBD slowed to about 17 ms a sync, the node's own disk} × {the durabilities}
# × {Login, Dashboard ×8 in sequence, Dashboard ×8 parallel}, on the test cluster with its real Ceph. Two LatencyComparisons:
# the slowed Ceph is a fault of the whole Ceph, so it cannot be measured by turns with the sound one. Prints the table and
# writes out/bench/report.{json,html,md}. Exit 0 only if every variant was measured and nothing of it is left.
#
# BENCH_SHORT=1   two rounds and fewer logins: a look at whether it works, not a measurement.
# BENCH_ROUNDS=6  more rounds (even, 2 to 12; the default is 4), narrower intervals.
# BENCH_KEEP=1    leaves the cluster standing.
# BENCH_MEDIA=ceph or BENCH_MEDIA=slowed for one of the two comparisons, and BENCH_MEDIA=worker for a third, which is
#                 not among them by default: what authentik's background tasks cost the logins beside them.
set -euo pipefail
cd "$(dirname "$0")/../.."
# A cluster of its own, made anew: what an earlier run or the demo left would be measured with it.
export DEVCLUSTER_STATE=${DEVCLUSTER_STATE:-/var/lib/authstack/devcluster-bench}
out="$PWD/out/bench"
. hack/lib.sh
rounds=${BENCH_ROUNDS:-4} logins=20 dashboards=10
[ -z "${BENCH_SHORT:-}" ] || rounds=2 logins=10 dashboards=10
media=${BENCH_MEDIA:-ceph slowed}

for medium in $media; do
  [[ "$medium" =~ ^(ceph|slowed|worker)$ ]] || fail "BENCH_MEDIA is $media: write ceph, slowed, worker, or several of them"
done

say "building the command line and helm"
build_tools
say "counting which commits of a login wait, request by request, on a PostgreSQL of its own"
hack/install-packages.sh postgresql
AUTHSTACK_BENCH_COMMITS="$out/commits.json" go test ./test/durability -run '^$' -bench 'Login' -benchtime 1x -timeout 15m >"$out/commits.log" ||
  { cat "$out/commits.log"; fail "the commits could not be counted"; }
grep waits/login "$out/commits.log"
say "starting Kubernetes with a Ceph of three OSDs"
make --no-print-directory bin/devcluster
devcluster down
start_cluster --ceph
devcluster load authstack.dev/operator:dev authstack.dev/k6:dev authstack.dev/probe:dev docker.io/library/postgres:17 authstack.dev/double/authentik:2026.8.3

# However this ends, the cluster goes, and with it whatever is left.
after() { [ -n "${BENCH_KEEP:-}" ] || devcluster down; }
trap after EXIT

say "installing the operator by its Helm chart"
install_operator --set image.repository=authstack.dev/operator,image.tag=dev,images.k6=authstack.dev/k6:dev,images.probe=authstack.dev/probe:dev,images.authentik=authstack.dev/double/authentik
renew_operator
kubectl apply -f hack/bench/base.yaml

# The durabilities that this version of the API has.
durabilities=$(kubectl get crd authstacks.authstack.dev -o \
  'jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.postgres.properties.durability.enum[*]}')
[[ " $durabilities " = *" Strict "* ]] || fail "the CRD of AuthStack knows no durability Strict: $durabilities"
# Strict first: the tables compare with the first variant.
durabilities="Strict ${durabilities/Strict/}"
short() { local name=${1,,}; printf '%s' "${name/identitydurable/identity}"; }

variant() { # NAME DURABILITY STORAGE [AUTHENTIK]
  printf '    - name: %s\n      patch: {postgres: {durability: %s, storage: %s}%s}\n' "$1" "$2" "$3" "${4:+, authentik: $4}"
}
# The disk under Strict against Ceph under IdentityDurable, each as it is and with a worker that gets next to no
# processor time, so that next to none of the tasks of a login is done while people log in; and Ceph under Relaxed so,
# where nothing waits and only the processor is shared with the OSDs.
idle='{worker: {replicas: 1, resources: {requests: {cpu: 5m, memory: 128Mi}, limits: {cpu: 20m, memory: 1Gi}}}}'
worker_variants() {
  local name durability storage
  while read -r name durability storage; do
    [ "$durability" = Relaxed ] || variant "$name" "$durability" "$storage"
    variant "$name-idle" "$durability" "$storage" "$idle"
  done <<<$'local-strict Strict {localNVMe: {}}\nceph-identity IdentityDurable {cephRBD: {}}\nceph-relaxed Relaxed {cephRBD: {}}'
}
manifest() { # MEDIUM
  local durability
  cat <<EOT
apiVersion: authstack.dev/v1alpha1
kind: LatencyComparison
metadata: {name: $1, namespace: bench}
spec:
  stackRef: {name: sso}
  rounds: $rounds
  warmUpRounds: 0 # each measurement has its own warm-up, and one more round would not fit into the time
  settleSeconds: 5
  scenarios:
    - {name: Login, iterations: $logins, warmUpIterations: 5}
EOT
  [ "$1" = worker ] || printf '    - {name: Dashboard, iterations: %s, warmUpIterations: 2}\n' "$dashboards"
  printf '  variants:\n'
  [ "$1" != worker ] || { worker_variants; return; }
  # The story's remedy has to come close to the node's own disk under Strict.
  for durability in $durabilities; do
    [ "$1" != ceph ] || variant "local-$(short "$durability")" "$durability" '{localNVMe: {}}'
  done
  for durability in $durabilities; do
    variant "$1-$(short "$durability")" "$durability" '{cephRBD: {}}'
  done
}

# p50 of the login of a variant in microseconds; nothing where there is none.
login() { # COMPARISON VARIANT
  kubectl -n bench get lc "$1" -o "jsonpath={.status.variants[?(@.name==\"$2\")].scenarios[?(@.name==\"Login\")].endpoints[0].p50Micros}"
}

compare() { # MEDIUM
  local progress last="" verdict ready since=$SECONDS
  kubectl -n bench delete latencycomparison "$1" --ignore-not-found --timeout=10m
  manifest "$1" | tee "$out/$1.yaml" | kubectl apply -f -
  while :; do
    progress=$(kubectl -n bench get lc "$1" -o 'jsonpath={.status.progress}')
    ready=$(kubectl -n bench get lc "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')
    [ "$progress" = "$last" ] || { printf '[%4ds] %s: %s\n' $((SECONDS - started)) "$1" "${progress:-not begun}"; last=$progress; }
    verdict=$(kubectl -n bench get lc "$1" -o 'jsonpath={.status.verdict}')
    [ "$ready" != True ] || return 0
    # Stalled with a verdict: over, and everything is taken away.
    if [ -n "$(kubectl -n bench get lc "$1" -o 'jsonpath={.status.conditions[?(@.type=="Stalled")].status}')" ]; then
      kubectl -n bench describe lc "$1" | tail -n 40
      fail "comparison $1: ${verdict:-refused}"
    fi
    ((SECONDS - since < 3600)) || fail "comparison $1 is not over after an hour; see kubectl -n bench describe lc $1"
    sleep 5
  done
}

for medium in $media; do
  case $medium in
    ceph)
      say "comparing the node's own disk and Ceph, $rounds rounds"
      devcluster ceph slow off
      ;;
    worker)
      say "comparing disk and Ceph, with a worker that does its tasks and with one that hardly can, $rounds rounds"
      devcluster ceph slow off
      ;;
    slowed)
      say "slowing Ceph down: a sync takes 17 to 20 ms instead of 3; comparing the durabilities on it, $rounds rounds"
      devcluster ceph slow 10
      ;;
  esac
  compare "$medium"
done
devcluster ceph slow off

reports=()
for medium in $media; do reports+=(--comparison "$medium"); done
for format in json html markdown; do
  kubectl authstack report -n bench "${reports[@]}" --waiting-commits "$out/commits.json" -o "$format" >"$out/report.${format/markdown/md}"
done
printf '\n'
kubectl authstack report -n bench "${reports[@]}" --waiting-commits "$out/commits.json" -o table

# What the commits cost a login on slow storage, and how much of that each durability takes away: Relaxed waits for none.
if [[ " $media " = *" slowed "* ]]; then
  strict=$(login slowed slowed-strict) relaxed=$(login slowed slowed-relaxed)
  for durability in $durabilities; do
    name=slowed-$(short "$durability")
    [ -n "$strict" ] && [ -n "$relaxed" ] && [ "$name" != slowed-strict ] && [ "$name" != slowed-relaxed ] && ((strict > relaxed)) || continue
    printf '%s takes %d %% of the commit wait of Strict away (login p50, slowed Ceph)\n' "$durability" \
      $((100 * (strict - $(login slowed "$name")) / (strict - relaxed)))
  done
fi
left=$(kubectl get namespaces -l authstack.dev/comparison -o name)
[ -z "$left" ] || fail "namespaces are left: $left"
say "done: out/bench/report.html, out/bench/report.json, out/bench/report.md"
