# AuthStack. `make help` lists what there is; the README starts with the two commands that matter:
# `make demo` and `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := $(CURDIR)/bin
OUT := $(CURDIR)/out
export PATH := $(BIN):$(PATH)
export CGO_ENABLED ?= 0

include hack/make/*.mk

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*##"} /^[a-zA-Z0-9_-]+:.*##/ {printf "  \033[1m%-22s\033[0m %s\n", $$1, $$2} /^##@/ {printf "\n%s\n", substr($$0, 5)}' $(MAKEFILE_LIST)

##@ The two commands

.PHONY: demo
demo: toolchain ## A real Kubernetes, the operator, a sign-on stack, measured; report in out/demo.
	hack/demo/run.sh

.PHONY: test
test: toolchain ## Every test on real parts, from unit to end to end.
	hack/test.sh

##@ Parts of them

.PHONY: demo-down
demo-down: ## Take the demo's cluster away; leaves the machine as it was.
	@$(MAKE) --no-print-directory cluster-down

.PHONY: test-unit
test-unit: ## The quick part: pure rooms, formats, renderers; no cluster.
	hack/test.sh unit

.PHONY: test-api
test-api: ## Kinds and controllers against a real API server and a real PostgreSQL.
	hack/test.sh api

.PHONY: test-durability
test-durability: ## Which commits wait for the WAL, and kill -9 under load, on a real PostgreSQL.
	hack/test.sh durability

.PHONY: test-doubles
test-doubles: ## The doubles against the conformance suite, on a real PostgreSQL and Redis.
	hack/test.sh doubles

.PHONY: test-contract
test-contract: ## authentik's API by the client that each release publishes, and the commits of what it is built on (from PyPI).
	hack/test.sh contract

.PHONY: test-loadtests
test-loadtests: ## The k6 extension and the scenarios, with the real k6.
	hack/test.sh loadtests

.PHONY: test-devcluster
test-devcluster: ## The test cluster: up twice, kill -9 of each part, down leaves nothing.
	hack/test.sh devcluster

.PHONY: test-e2e
test-e2e: ## Demo and end-to-end tests on the test cluster.
	hack/test.sh e2e

.PHONY: test-ceph
test-ceph: ## Crashes of database and OSDs, stopped OSDs and a comparison on a real Ceph; ROUNDS=20 for more crashes.
	CEPH_TESTS=. CEPH_ROUNDS=$(ROUNDS) hack/test.sh ceph

.PHONY: build
build: ## Build the operator and the CLI into bin.
	go build -o $(BIN)/ ./cmd/...
	ln -sf kubectl-authstack $(BIN)/authstack
	install -m 755 hack/kubectl_complete-authstack $(BIN)/

.PHONY: k6
k6: ## Build k6 with this project's output into bin/authstack-k6, for authstack test --url.
	cd loadtests/k6 && go build -o $(BIN)/authstack-k6 .

.PHONY: toolchain
toolchain:
	@command -v go >/dev/null || { echo "Go 1.26 or later is needed, and there is no go in PATH: see https://go.dev/doc/install" >&2; exit 1; }
	@go version | grep -qE 'go1\.(2[6-9]|[3-9][0-9])' || { echo "Go 1.26 or later is needed; this is $$(go version)" >&2; exit 1; }

##@ The test cluster

.PHONY: cluster-up
cluster-up: $(BIN)/devcluster ## Start the test cluster and leave it running.
	devcluster up

.PHONY: cluster-down
cluster-down: $(BIN)/devcluster ## Stop the test cluster; nothing of it stays.
	devcluster down

.PHONY: bin/devcluster $(BIN)/devcluster
bin/devcluster: $(BIN)/devcluster
$(BIN)/devcluster:
	@mkdir -p $(BIN)
	@cd hack/devcluster && go build -o $@ ./cmd/devcluster

.PHONY: clean
clean: ## Remove what was built and written here (caches of the test cluster stay).
	rm -rf $(BIN) $(OUT)
