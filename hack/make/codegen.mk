##@ Generated files

# Tools are built on demand, each from its own go.mod, where its version is pinned; a changed go.mod
# builds it anew. Both names work: bin/TOOL and $(BIN)/TOOL.
# helm template checks kubeVersion against what it was linked with, which by itself is v1.20.
helm_flags := -ldflags '-X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=36 -X helm.sh/helm/v3/internal/version.version=v3.22.0'

define tool
$(BIN)/$(1): $(2)/go.mod $(2)/go.sum
	@mkdir -p $$(@D)
	@echo "building $(1)"
	@cd $(2) && CGO_ENABLED=0 go build -trimpath $(4) -o $$@ $(3) && touch $$@
.PHONY: bin/$(1)
bin/$(1): $(BIN)/$(1)
endef
$(eval $(call tool,controller-gen,hack/tools,sigs.k8s.io/controller-tools/cmd/controller-gen))
$(eval $(call tool,crd-ref-docs,hack/tools/crd-ref-docs,github.com/elastic/crd-ref-docs))
$(eval $(call tool,helm,hack/tools/helm,helm.sh/helm/v3/cmd/helm,$(helm_flags)))
$(eval $(call tool,golangci-lint,hack/tools/golangci-lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint))

.PHONY: generate
generate: $(BIN)/controller-gen $(BIN)/crd-ref-docs ## Write deepcopy, CRDs, RBAC, their copies in the chart and the API reference.
	hack/generate.sh

.PHONY: manifests
manifests: generate ## The same as generate, for hands used to kubebuilder.

.PHONY: verify
verify: $(BIN)/controller-gen $(BIN)/crd-ref-docs ## Fail where a generated file is stale or not committed, and name it.
	hack/verify.sh
