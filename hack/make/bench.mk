##@ The story's table

.PHONY: bench
bench: toolchain ## {Ceph, slowed Ceph, local} × durability × {Login, Dashboard}, compared on a real Ceph; report in out/bench. BENCH_SHORT=1 for a look.
	hack/bench/run.sh

##@ Scale

.PHONY: bench-scale
bench-scale: $(BIN)/devcluster ## One operator with a thousand stacks on a real API server; STACKS=50 for fewer.
	export KUBEBUILDER_ASSETS=$$(devcluster envtest-assets); AUTHSTACK_BENCH_STACKS=$(or $(STACKS),1000) go test ./controllers -run '^$$' -bench ThousandStacks -benchtime 1x -timeout 45m

##@ Measurement

.PHONY: bench-calibration
bench-calibration: ## What our k6 tells against what a server of known response times did, beside hey and wrk.
	hack/install-packages.sh hey wrk
	cd loadtests/k6 && go test -tags calibration -run 'TestCalibration|TestOverhead|TestMemory' -count=1 -timeout 20m -v . | grep --line-buffered -vE '^(=== |--- PASS|PASS)'
	go test -tags calibration -count=1 -timeout 10m -v ./test/soak | grep --line-buffered -vE '^( *=== | *--- PASS|PASS)'

.PHONY: bench-power
bench-power: toolchain ## Gates on the test cluster: a stack as it is, and one whose login is 10 % slower; GATES=2 of each.
	hack/bench/power.sh

.PHONY: bench-extension
bench-extension: ## Ten million requests through the k6 extension: memory that is kept, size of the result.
	cd loadtests/k6 && go test -run '^$$' -bench TenMillion -benchtime 1x .

.PHONY: bench-durability
bench-durability: ## Commits of a login that wait, request by request, and what the decision costs; in out/bench/commits.json.
	hack/install-packages.sh postgresql
	mkdir -p out/bench
	AUTHSTACK_BENCH_COMMITS=$(OUT)/bench/commits.json go test ./test/durability -run '^$$' -bench . -benchtime 1000x -timeout 20m
