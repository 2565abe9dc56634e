#!/usr/bin/env bash
# Runs the tests, stage by stage, each on real parts. Without arguments all stages; with arguments
# those that are named: unit verify lint api doubles devcluster durability loadtests e2e ceph, and contract, which
# takes ten minutes for a dozen releases of authentik and is for whoever changes what we ask of it.
# Each stage's whole output is in out/test/STAGE.log; what fails is shown here.
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD
export PATH="$root/bin:$PATH" CGO_ENABLED=0
mkdir -p "$root/bin" "$root/out/test"
# The lint stage vets every package of this module, with the tags as well; the other modules are vetted where they are tested. So
# go test does not do it once more.
export GOFLAGS="${GOFLAGS:-} -vet=off"
all=(unit verify lint api doubles devcluster durability loadtests e2e ceph)
# These go beside api and devcluster.
beside="lint doubles"
stages=("$@")
[ ${#stages[@]} -gt 0 ] || stages=("${all[@]}")

# What tests run for real: PostgreSQL, Redis, Prometheus, fio, a browser.
packages() { "$root/hack/install-packages.sh" postgresql redis-server prometheus fio chromium; }

devcluster() { [ -x "$root/bin/devcluster" ] && [ -n "${devcluster_fresh:-}" ] || { make --no-print-directory bin/devcluster && devcluster_fresh=1; }; }

# The API server and etcd of the test cluster serve the tests that need only those two.
envtest() {
  devcluster || return 1
  KUBEBUILDER_ASSETS=$("$root/bin/devcluster" envtest-assets) && export KUBEBUILDER_ASSETS
  # Several start at once, beside a compiler. 20 s is what they have otherwise.
  export KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=3m KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=2m
  # The API servers take most of the processor; there is memory to collect garbage less often.
  export GOGC=300
}

# Packages whose tests need an API server.
api_packages='authstack.dev/authstack/(api|controllers|test/api|test/chart|test/install|test/cli)'

durability_package=authstack.dev/authstack/test/durability

stage_unit() { packages && go test $(go list ./... | grep -vE "^($api_packages|$durability_package\$)"); }
# Which commits wait, and 20 crashes under load for each level; by itself, since it wants a calm machine.
stage_durability() { packages && go test -count=1 -timeout 15m "$durability_package"; }
stage_verify() { make --no-print-directory verify; }
stage_lint() { make --no-print-directory lint; }
# The controllers' tests go by steps and use one core; in two processes, each with an API server of its own, they use both.
# These are about half of the time; a new test whose name does not begin so runs in the other process.
controllers_half='^Test(A|Deletion|Faults|Operator|Probe|Schedule|Secrets|StatefulSets|Storage|Zalando)'
stage_api() {
  packages && make --no-print-directory bin/helm && envtest && go test -c -o "$root/out/test/controllers.test" ./controllers || return 1
  controllers() { (cd controllers && "$root/out/test/controllers.test" -test.timeout 20m "$@" && echo "ok  	controllers $*"); }
  controllers -test.run "$controllers_half" &
  local half=$! passed=0
  controllers -test.skip "$controllers_half" &&
    go test -timeout 20m $(go list ./... | grep -E "^($api_packages)" | grep -vx authstack.dev/authstack/controllers) &&
    (cd test/flux && go vet ./... && go test ./...) || passed=1
  wait $half && [ $passed = 0 ]
}
stage_loadtests() { (cd loadtests/k6 && go vet ./... && go vet -tags calibration ./... && go test -timeout 15m ./...); }
stage_doubles() { packages && (cd hack/doubles && go vet ./... && go test -timeout 15m ./...); }
# What can be had of authentik without its images: the client that each release publishes, and what it is built on, from PyPI.
stage_contract() {
  packages && { python3 -m pip --version || "$root/hack/install-packages.sh" python3-pip; } &&
    go vet -tags contract "$durability_package" && go test -tags contract -count=1 -timeout 10m -run Django -v "$durability_package" &&
    (cd hack/doubles && go vet -tags contract ./conformance && go test -tags contract -count=1 -timeout 25m -run TestContract -v ./conformance)
}
stage_devcluster() { devcluster && (cd hack/devcluster && go vet -tags devcluster ./... && go test ./... && go test -tags devcluster -timeout 15m -count=1 ./test/...); }
# On a cluster made anew: one that an earlier run left has a Ceph, and a test says what happens without.
stage_e2e() {
  "$root/hack/install-packages.sh" prometheus && devcluster && "$root/bin/devcluster" down && hack/demo/run.sh &&
    "$root/bin/devcluster" load authstack.dev/double/authentik:2025.8.4 &&
    KUBECONFIG=$("$root/bin/devcluster" kubeconfig) go test -tags e2e -timeout 25m -count=1 -v ./test/e2e/...
}
# On the cluster of e2e, to which it adds a Ceph. CEPH_TESTS=. runs the comparison too, which takes ten minutes, and
# CEPH_ROUNDS=20 as many crashes as docs/durability.md reports.
stage_ceph() { packages && "$root/hack/install-packages.sh" jq && hack/ceph/run.sh -run "${CEPH_TESTS:-TestStacks}"; }

# What is downloaded, while the first stage compiles.
download() {
  local module
  for module in $(git ls-files '*go.mod'); do (cd "$(dirname "$module")" && go mod download); done
}

# end PROCESS: it and all that it started.
end() {
  local child children
  children=$(pgrep -P "$1")
  # First itself, or it would go on with what comes next.
  kill "$1" 2>/dev/null
  for child in $children; do end "$child"; done
}

# run_stage STAGE: shows how it goes, and writes passed or failed into out/test/STAGE.result.
run_stage() {
  local stage=$1 log="$root/out/test/$1.log" result="$root/out/test/$1.result" started=$SECONDS pid
  printf '%-12s …\n' "$stage"
  ("stage_$stage") >"$log" 2>&1 </dev/null &
  pid=$!
  while kill -0 $pid 2>/dev/null; do
    sleep 1
    if (((SECONDS - started) % 30 == 0)); then printf '%-12s %4ds  %s\n' "$stage" $((SECONDS - started)) "$(tail -n1 "$log" | cut -c1-100)"; fi
  done
  if wait $pid; then
    echo passed >"$result"
    printf '%-12s passed in %ds\n%s\n' "$stage" $((SECONDS - started)) "$(grep -E '^(ok|--- PASS)' "$log" | sed 's/^/    /' | cut -c1-140)"
  else
    echo failed >"$result"
    printf '%-12s FAILED after %ds; the end of %s:\n%s\n' "$stage" $((SECONDS - started)) "out/test/$stage.log" \
      "$({ grep -nE -- '--- FAIL|^FAIL|panic:' "$log" | head -40; tail -n 80 "$log"; } | sed 's/^/    /')"
  fi
}

main() {
  local stage side=() sides= fetching=
  for stage in "${stages[@]}"; do
    declare -F "stage_$stage" >/dev/null || { echo "no such stage: $stage (there are: ${all[*]})" >&2; exit 2; }
    rm -f "$root/out/test/$stage.result"
  done
  # What runs behind this script does not hear of Ctrl-C.
  trap 'for job in $(jobs -p); do end "$job"; done; exit 130' INT TERM
  # The cluster of an earlier demo, which e2e makes anew in any case, would disturb the other stages.
  [[ " ${stages[*]} " != *" e2e "* ]] || (devcluster && "$root/bin/devcluster" down) >"$root/out/test/before.log" 2>&1 || { cat "$root/out/test/before.log"; exit 1; }
  if [ ${#stages[@]} -gt 3 ]; then download >"$root/out/test/download.log" 2>&1 & fetching=$!; fi
  # Lint and doubles go beside api and devcluster, which leave a part of the processors idle. The stages after those want the
  # machine for themselves: they measure, or crash what is under load.
  for stage in "${stages[@]}"; do
    if [[ " ${stages[*]} " == *" api "* && " $beside " == *" $stage "* ]]; then side+=("$stage"); fi
  done
  for stage in "${stages[@]}"; do
    [[ " ${side[*]} " != *" $stage "* ]] || continue
    if [[ $stage == api && ${#side[@]} -gt 0 ]]; then
      (for one in "${side[@]}"; do run_stage "$one"; done) &
      sides=$!
    elif [[ -n $sides && " api devcluster " != *" $stage "* ]]; then
      wait "$sides"
      sides=
    fi
    run_stage "$stage"
  done
  [ -z "$sides" ] || wait "$sides"
  [ -z "$fetching" ] || end "$fetching"
  local failed=()
  for stage in "${stages[@]}"; do
    [ "$(cat "$root/out/test/$stage.result" 2>/dev/null)" = passed ] || failed+=("$stage")
  done
  [ ${#failed[@]} = 0 ] || echo "failed: ${failed[*]}"
  echo "$((${#stages[@]} - ${#failed[@]})) passed, ${#failed[@]} failed in $((SECONDS / 60)) min"
  [ ${#failed[@]} = 0 ]
}

# In a function, so that the whole script is read before it runs and an edit cannot change a run.
main "$@"
exit
