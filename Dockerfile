# Both base images can be replaced, e.g. by a mirror's or by ones of your own:
# the first needs Go and a shell, the second nothing at all (the binary is static).
ARG BASE_IMAGE=golang:1.26
ARG RUNTIME_IMAGE=gcr.io/distroless/static:nonroot

# Build the manager binary
FROM ${BASE_IMAGE} AS builder
ARG TARGETOS
ARG TARGETARCH

WORKDIR /workspace
# Copy the Go Modules manifests
COPY go.mod go.mod
COPY go.sum go.sum
# cache deps before building and copying source so that we don't need to re-download as much
# and so that source changes don't invalidate our downloaded layer
RUN go mod download

# Copy the Go source (relies on .dockerignore to filter)
COPY . .

# Declared this late, so that a new commit invalidates no layer but the last one.
ARG VERSION=dev
ARG COMMIT=unknown

# GOARCH has no default: it is TARGETARCH where the builder sets it, and otherwise that of the image, which is the
# host's. So the binary always fits the image.
RUN CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} \
    go build -trimpath -o manager -ldflags "-s -w \
      -X pvc-protection-operator/internal/version.version=${VERSION} \
      -X pvc-protection-operator/internal/version.commit=${COMMIT}" .

# Distroless: certificates, time zones and a user, no shell and no libc.
# Refer to https://github.com/GoogleContainerTools/distroless for more details
FROM ${RUNTIME_IMAGE}
WORKDIR /
COPY --from=builder /workspace/manager .
USER 65532:65532

ENTRYPOINT ["/manager"]
