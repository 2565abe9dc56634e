##@ Images and a cluster of yours

# No image is published: build them, push them where your cluster can pull, and install. The storage
# probe's is not needed to install; without it no storage is probed.
IMG ?=
K6_IMG ?=
PROBE_IMG ?=
CONTAINER_TOOL ?= docker

.PHONY: images-named
images-named:
	@[ -n "$(IMG)" ] && [ -n "$(K6_IMG)" ] || { echo "name both images: make $(MAKECMDGOALS) IMG=registry.example.com/authstack-operator:v1 K6_IMG=registry.example.com/authstack-k6:v1" >&2; exit 1; }

.PHONY: docker-build
docker-build: images-named ## Build the operator's image IMG, k6's K6_IMG and, if named, the probe's PROBE_IMG with docker, or CONTAINER_TOOL=podman.
	$(CONTAINER_TOOL) build -t $(IMG) .
	$(CONTAINER_TOOL) build -f loadtests/k6/Dockerfile --build-arg REVISION=$$(git rev-parse HEAD) -t $(K6_IMG) .
	[ -z "$(PROBE_IMG)" ] || $(CONTAINER_TOOL) build -f loadtests/probe/Dockerfile -t $(PROBE_IMG) .

.PHONY: docker-push
docker-push: images-named ## Push them.
	$(CONTAINER_TOOL) push $(IMG)
	$(CONTAINER_TOOL) push $(K6_IMG)
	[ -z "$(PROBE_IMG)" ] || $(CONTAINER_TOOL) push $(PROBE_IMG)

.PHONY: deploy
deploy: images-named ## Install CRDs, roles and the operator with IMG and K6_IMG into the current kubectl context, without Helm.
	hack/render-install.sh $(IMG) $(K6_IMG) | kubectl apply --server-side -f -

.PHONY: undeploy
undeploy: ## Remove the operator and its roles; the CRDs, and so the stacks, stay.
	kubectl kustomize config/default | awk -v RS='---\n' '!/kind: CustomResourceDefinition/ {printf "---\n%s", $$0}' | kubectl delete --ignore-not-found -f -
