# What the demo and the benchmark share; to be sourced in the repository's root, after $out is set.
export PATH="$PWD/bin:$PATH" CGO_ENABLED=0
mkdir -p "$out" bin
started=$SECONDS

# say TEXT: a step that begins, with the seconds since the start.
say() { printf '\n\033[1m[%4ds] %s\033[0m\n' $((SECONDS - started)) "$*"; }

# fail TEXT: the end.
fail() {
  printf '\n\033[31m%s\033[0m\n' "$*" >&2
  exit 1
}

build_tools() {
  go build -o bin/ ./cmd/kubectl-authstack && ln -sf kubectl-authstack bin/authstack
  make --no-print-directory bin/helm
}

# start_cluster [ARGUMENTS OF devcluster up]: the test cluster, with the kubectl of its Kubernetes.
start_cluster() {
  make --no-print-directory bin/devcluster
  devcluster up "$@"
  KUBECONFIG=$(devcluster kubeconfig)
  PATH="$(devcluster envtest-assets):$PATH"
  export KUBECONFIG PATH
}

# install_operator [ARGUMENTS OF helm]
install_operator() {
  helm upgrade --install authstack charts/authstack --namespace authstack-system --create-namespace \
    "$@" --wait --timeout 5m >"$out/helm.log" || { cat "$out/helm.log"; fail "the chart could not be installed"; }
}

# renew_operator: the image behind a tag such as :dev may be a new one, and a Pod takes it only when it is made anew.
renew_operator() {
  kubectl -n authstack-system rollout restart deployment >/dev/null
  kubectl -n authstack-system rollout status deployment --timeout=3m
}
