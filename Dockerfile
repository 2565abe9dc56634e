# The operator's image, for whoever has a container builder: make docker-build IMG=... K6_IMG=...
# The test cluster does not use this file: hack/devcluster makes the same image (one static binary,
# user 65532) without Docker. test/install builds what stands here with the same files and commands.
FROM --platform=${BUILDPLATFORM:-linux/amd64} golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY controllers controllers
COPY internal internal
COPY loadtests/scenarios loadtests/scenarios
ARG TARGETOS TARGETARCH
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags="-s -w" -o /manager ./cmd/manager

FROM gcr.io/distroless/static:nonroot
COPY --from=build /manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
