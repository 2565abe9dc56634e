##@ Scale

.PHONY: bench-scale
bench-scale: $(BIN)/devcluster ## One operator with a thousand stacks on a real API server; STACKS=50 for fewer.
	export KUBEBUILDER_ASSETS=$$(devcluster envtest-assets); AUTHSTACK_BENCH_STACKS=$(or $(STACKS),1000) go test ./controllers -run '^$$' -bench ThousandStacks -benchtime 1x -timeout 45m
