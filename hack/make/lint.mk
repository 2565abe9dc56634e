##@ Style

.PHONY: lint
lint: $(BIN)/golangci-lint ## Lint the operator's module (the first time the linter is built: some minutes).
	golangci-lint run ./...

.PHONY: fmt
fmt: $(BIN)/golangci-lint ## Format the operator's module: gofmt, and imports in groups.
	golangci-lint fmt ./...
