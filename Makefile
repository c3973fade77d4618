# Image URL to use all building/pushing image targets
IMG ?= pvc-protection-operator:latest

# What "bin/manager --version" prints; a tree without git, such as a source archive, builds too.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse --verify -q HEAD 2>/dev/null || echo unknown)
VERSION_PACKAGE = pvc-protection-operator/internal/version
GO_LDFLAGS ?= -X $(VERSION_PACKAGE).version=$(VERSION) -X $(VERSION_PACKAGE).commit=$(COMMIT)

# CONTAINER_TOOL defines the container tool to be used for building images (docker, podman).
CONTAINER_TOOL ?= docker

# Setting SHELL to bash allows bash commands to be executed by recipes.
# Options are set to exit when a recipe line exits non-zero or a piped command fails.
SHELL = /usr/bin/env bash -o pipefail
.SHELLFLAGS = -ec

.PHONY: all
all: build

##@ General

# The help target prints out all targets with their descriptions organized
# beneath their categories. The categories are represented by '##@' and the
# target descriptions by '##'.

.PHONY: help
help: ## Display this help.
	@awk 'BEGIN {FS = ":.*##"; printf "\nUsage:\n  make \033[36m<target>\033[0m\n"} /^[a-zA-Z_0-9-]+:.*?##/ { printf "  \033[36m%-18s\033[0m %s\n", $$1, $$2 } /^##@/ { printf "\n\033[1m%s\033[0m\n", substr($$0, 5) } ' $(MAKEFILE_LIST)

##@ Development

# There are no CRDs and no webhooks: "crd" and "webhook" write nothing until kubebuilder has scaffolded one. The two
# lines stay as kubebuilder wrote them, because its CLI edits them by their text.
.PHONY: manifests
manifests: controller-gen ## Generate WebhookConfiguration, ClusterRole and CustomResourceDefinition objects.
	"$(CONTROLLER_GEN)" rbac:roleName=manager-role crd webhook paths="./..." output:crd:artifacts:config=config/crd/bases

# There are no API types, so that this writes nothing until "kubebuilder create api" has scaffolded one.
.PHONY: generate
generate: controller-gen ## Generate code containing DeepCopy, DeepCopyInto, and DeepCopyObject method implementations.
	"$(CONTROLLER_GEN)" object:headerFile="hack/boilerplate.go.txt" paths="./..."

.PHONY: fmt
fmt: ## Run go fmt against code.
	go fmt ./...

.PHONY: vet
vet: ## Run go vet against code.
	go vet ./...

.PHONY: lint
lint: golangci-lint ## Run golangci-lint linter
	"$(GOLANGCI_LINT)" run

.PHONY: lint-fix
lint-fix: golangci-lint ## Run golangci-lint linter and perform fixes
	"$(GOLANGCI_LINT)" run --fix

.PHONY: lint-config
lint-config: golangci-lint ## Verify golangci-lint linter configuration
	"$(GOLANGCI_LINT)" config verify

##@ Test

# The race detector needs cgo, and its own error does not say so.
define require-c-compiler
@cc="$$(go env CC)"; command -v "$${cc%% *}" >/dev/null || { \
	echo "make $@: go test -race needs a C compiler, and '$$cc' is not installed (Debian, Ubuntu: gcc libc6-dev)" >&2; \
	exit 1; \
}
endef

# A package as seen in a test's coverage: what ships, not the tests' own helpers.
GO_TEST = CGO_ENABLED=1 go test -race $(TESTFLAGS)
COVERED = ./internal/...,.

# Unlike kubebuilder's, this target changes no file: that generated files are current is checked by verify-generated.
.PHONY: test
test: vet cluster-binaries ## Run all tests but e2e with the race detector, on a real API server; TESTFLAGS are passed on.
	$(require-c-compiler)
	KUBEBUILDER_ASSETS="$(CLUSTER_BINARIES)" $(GO_TEST) -timeout 30m -coverpkg=$(COVERED) -coverprofile=cover.out \
		$$(go list ./... | grep -v /test/e2e)
	@echo "coverage of $(COVERED):"
	@go tool cover -func=cover.out | tail -n 1

.PHONY: test-unit
test-unit: ## Run only the tests that need no control plane.
	$(require-c-compiler)
	$(GO_TEST) . ./internal/... ./test/model

.PHONY: test-e2e
test-e2e: vet cluster-binaries prometheus ## Run the tests under faults, of the alerts, and a minute of random traffic, on real control planes.
	$(require-c-compiler)
	KUBEBUILDER_ASSETS="$(CLUSTER_BINARIES)" $(GO_TEST) -count=1 -p 1 -timeout 30m ./test/e2e/...

.PHONY: test-alerts
test-alerts: prometheus ## Run the tests of the alerts and the dashboard that need no cluster; test-e2e has the others.
	go test $(TESTFLAGS) -skip '^TestLive$$' ./test/e2e/prometheus

# The older versions, each a folder with a go.mod. One alone: make test-compat COMPAT=test/cluster/tools-1.30
COMPAT ?= $(wildcard test/cluster/tools-*)
.PHONY: test-compat
test-compat: vet ## Run the integration tests on API servers of older Kubernetes versions, those in test/cluster/tools-*.
	$(require-c-compiler)
	@for tools in $(COMPAT); do \
		test/cluster/build-binaries.sh --tools "$$tools"; \
		version="$$(cd "$$tools" && GOWORK=off go list -m -f '{{.Version}}' k8s.io/kubernetes)"; \
		echo "integration tests on Kubernetes $$version"; \
		KUBEBUILDER_ASSETS="$$PWD/bin/k8s/$$version" $(GO_TEST) -count=1 -timeout 30m ./test/integration; \
	done

# -all goes on after a test has failed, and takes hours. Some permissions only: RBACFLAGS='-only "manager-role: .* pods"'
RBACFLAGS ?=
.PHONY: test-rbac
test-rbac: ## Take each verb of the shipped roles away in turn, and show what breaks; RBACFLAGS are passed on.
	test/cluster/build-binaries.sh etcd kube-apiserver kube-controller-manager kubectl
	KUBEBUILDER_ASSETS="$(CLUSTER_BINARIES)" go run ./test/rbac/minimal $(RBACFLAGS)

# Not a part of "make test": it takes root, buildah and debootstrap.
.PHONY: test-image
test-image: cluster-binaries ## Build the image without a registry, and run the operator from it; as root, on Debian or Ubuntu.
	VERSION="$(VERSION)" COMMIT="$(COMMIT)" KUBEBUILDER_ASSETS="$(CLUSTER_BINARIES)" test/image/run.sh

.PHONY: test-kubebuilder
test-kubebuilder: kustomize controller-gen kubebuilder ## Extend a copy of the project by the kubebuilder CLI, and check the result.
	test/kubebuilder/test.sh

.PHONY: test-chart
test-chart: helm ## Compare the Helm chart with the overlays, install it on a real API server, and uninstall it.
	test/cluster/build-binaries.sh etcd kube-apiserver kube-controller-manager kubectl
	KUBEBUILDER_ASSETS="$(CLUSTER_BINARIES)" HELM="$(HELM)" go test $(TESTFLAGS) -count=1 -run '^TestChart' ./test/integration

DURATION ?= 10m
.PHONY: soak
soak: cluster-binaries ## Play random traffic under faults for DURATION, and check every release. SEED=n replays a plan.
	KUBEBUILDER_ASSETS="$(CLUSTER_BINARIES)" SOAK_DURATION=$(DURATION) SOAK_SEED=$(SEED) \
		go test -count=1 -timeout 0 -v -run '^TestSoak$$' ./test/e2e/soak

.PHONY: bench
bench: cluster-binaries ## Compare the operator with the in-tree controller and the floor; BENCHFLAGS are passed on.
	KUBEBUILDER_ASSETS="$(CLUSTER_BINARIES)" go run ./test/perf $(BENCHFLAGS)

# The folder that bench wrote to.
BENCH ?= dist/bench
.PHONY: bench-report
bench-report: ## Draw what bench has measured, and fit how memory and time grow.
	go -C test/perf/report run . -folder "$(abspath $(BENCH))"

.PHONY: demo
demo: cluster-binaries ## Show the operator at work on a cluster of its own; KEEP=1 leaves that cluster up.
	$(GO_BUILD)
	go run ./test/demo

##@ Verification

# Looks for what the generators change, not for what git calls changed: it also works in a tree with work in progress.
.PHONY: verify-generated
verify-generated: ## Check that generated files are current.
	@state() { git status --porcelain; git diff; }; \
	before="$$(state)"; \
	$(MAKE) --no-print-directory manifests generate; \
	diff <(printf '%s\n' "$$before") <(printf '%s\n' "$$(state)") || { \
		echo "make $@: the files above were out of date; commit what 'make manifests generate' has just written" >&2; \
		exit 1; \
	}

# Every go.mod of the repository: the operator's and those of the tools.
.PHONY: verify-tidy
verify-tidy: ## Check that go.mod and go.sum of every module are tidy.
	@git ls-files --cached --others --exclude-standard -- go.mod '*/go.mod' | while read -r mod; do \
		dir="$$(dirname "$$mod")"; \
		echo "go mod tidy -diff in $$dir"; \
		(cd "$$dir" && GOWORK=off go mod tidy -diff) || { echo "make $@: $$mod or its go.sum is not tidy" >&2; exit 1; }; \
	done

# Components cannot be built on their own: they are for the kustomizations that name them.
.PHONY: verify-kustomize
verify-kustomize: kustomize ## Check that every kustomization in config/ builds.
	@find config -name kustomization.yaml | sort | while read -r file; do \
		if grep -q '^kind: Component$$' "$$file"; then continue; fi; \
		echo "kustomize build $$(dirname "$$file")"; \
		"$(KUSTOMIZE)" build "$$(dirname "$$file")" >/dev/null || { echo "make $@: $$file does not build" >&2; exit 1; }; \
	done

# The flags are those that the manager prints, so it is built first.
CHECK_DOCS_SOURCE = hack/tools/check-docs
.PHONY: verify-docs
verify-docs: ## Check that what the Markdown pages name exists: links, files, commands, targets, flags, metrics, tests.
	$(GO_BUILD)
	cd $(CHECK_DOCS_SOURCE) && GOWORK=off go test . && GOWORK=off go run . -root "$(CURDIR)"

.PHONY: vulncheck
vulncheck: govulncheck ## Look for known vulnerabilities in what is called; asks https://vuln.go.dev.
	"$(GOVULNCHECK)" ./...

# Licences that ask for no more than a notice.
ALLOWED_LICENSES = Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT
# Its warnings are about assembly, and about pages on the web that it looks for and that are not used.
GO_LICENSES_FLAGS = . --ignore=pvc-protection-operator --logtostderr=false --stderrthreshold=ERROR --log_file=/dev/null
LICENSES_FILE = docs/licenses.md
.PHONY: licenses
licenses: go-licenses ## Check the licences of what is linked into the manager, and list them in docs/licenses.md.
	@export GOOS=linux; tmp="$$(mktemp)"; trap 'rm -f "$$tmp"' EXIT; \
	"$(GO_LICENSES)" check $(GO_LICENSES_FLAGS) --allowed_licenses=$(ALLOWED_LICENSES); \
	"$(GO_LICENSES)" report $(GO_LICENSES_FLAGS) --template=hack/licenses.md.tmpl > "$$tmp"; \
	cat "$$tmp" > $(LICENSES_FILE)

.PHONY: verify-licenses
verify-licenses: ## Check the licences, and that docs/licenses.md is current.
	@tmp="$$(mktemp)"; trap 'rm -f "$$tmp"' EXIT; \
	$(MAKE) --no-print-directory licenses LICENSES_FILE="$$tmp"; \
	diff -u docs/licenses.md "$$tmp" || { echo "make $@: docs/licenses.md is out of date, run 'make licenses'" >&2; exit 1; }

.PHONY: verify-chart
verify-chart: kustomize kubebuilder helm ## Check that the Helm chart is current, and lint it.
	@tmp="$$(mktemp -d)"; trap 'rm -rf "$$tmp"' EXIT; \
	hack/generate-chart.sh "$$tmp/chart"; \
	diff -r config/helm/chart "$$tmp/chart" || { \
		echo "make $@: config/helm/chart is out of date; run 'make chart' and commit what it writes" >&2; \
		exit 1; \
	}
	"$(HELM)" lint --strict config/helm/chart

##@ Build

GO_BUILD = go build -trimpath -ldflags "$(GO_LDFLAGS)" -o bin/manager .

.PHONY: build
build: manifests generate fmt vet ## Build manager binary.
	$(GO_BUILD)

.PHONY: run
run: manifests generate fmt vet ## Run a controller from your host; its flags go into ARGS.
	go run -ldflags "$(GO_LDFLAGS)" . $(ARGS)

# Other base images, e.g. from a mirror: make docker-build BASE_IMAGE=<go image> RUNTIME_IMAGE=<static image>
DOCKER_BUILD_ARGS = --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) \
	$(if $(BASE_IMAGE),--build-arg BASE_IMAGE=$(BASE_IMAGE)) \
	$(if $(RUNTIME_IMAGE),--build-arg RUNTIME_IMAGE=$(RUNTIME_IMAGE))

# If you wish to build the manager image targeting other platforms you can use the --platform flag.
# (i.e. docker build --platform linux/arm64). However, you must enable docker buildKit for it.
# More info: https://docs.docker.com/develop/develop-images/build_enhancements/
.PHONY: docker-build
docker-build: ## Build docker image with the manager.
	$(CONTAINER_TOOL) build $(DOCKER_BUILD_ARGS) -t $(IMG) .

.PHONY: docker-push
docker-push: ## Push docker image with the manager.
	$(CONTAINER_TOOL) push $(IMG)

# PLATFORMS defines the platforms the manager image is built for. To use this target you need docker buildx and
# BuildKit, and to be able to push to the registry IMG names.
# The builder stage must run on the build host's platform, and only BuildKit knows which that is: the line that says so
# goes into a copy of the Dockerfile.
PLATFORMS ?= linux/arm64,linux/amd64,linux/s390x,linux/ppc64le
.PHONY: docker-buildx
docker-buildx: ## Build and push docker image for the manager for cross-platform support
	trap '$(CONTAINER_TOOL) buildx rm pvc-protection-operator-builder; rm -f Dockerfile.cross' EXIT; \
	awk '!done && sub(/^FROM/, "FROM --platform=$${BUILDPLATFORM}") { done = 1 } 1' Dockerfile > Dockerfile.cross; \
	$(CONTAINER_TOOL) buildx create --name pvc-protection-operator-builder; \
	$(CONTAINER_TOOL) buildx build --builder pvc-protection-operator-builder --push --platform=$(PLATFORMS) \
		$(DOCKER_BUILD_ARGS) --tag $(IMG) -f Dockerfile.cross .

# What is installed: a folder of config/overlays. See docs/install.md.
OVERLAY ?= replace

# Renders OVERLAY with the image IMG into $$tmp/install.yaml. The image is set in a copy, so that no target leaves a
# change behind in the working tree.
define render-install
tmp="$$(mktemp -d)"; trap 'rm -rf "$$tmp"' EXIT; \
cp -R config "$$tmp/config"; \
(cd "$$tmp/config/manager" && "$(KUSTOMIZE)" edit set image controller="$(IMG)"); \
"$(KUSTOMIZE)" build "$$tmp/config/overlays/$(OVERLAY)" > "$$tmp/install.yaml"
endef

.PHONY: build-installer
build-installer: manifests generate kustomize ## Generate dist/install.yaml: everything "make deploy" applies, in one file.
	@$(render-install); \
	mkdir -p dist; \
	cp "$$tmp/install.yaml" dist/install.yaml; \
	echo "dist/install.yaml installs the image $(IMG)"

RELEASE_PLATFORMS ?= linux/amd64 linux/arm64
RELEASE_ENV = VERSION="$(VERSION)" COMMIT="$(COMMIT)" LDFLAGS="$(GO_LDFLAGS)" IMG="$(IMG)" PLATFORMS="$(RELEASE_PLATFORMS)" \
	KUSTOMIZE="$(KUSTOMIZE)" CYCLONEDX_GOMOD="$(CYCLONEDX_GOMOD)" \
	GO_LICENSES="$(GO_LICENSES)" GO_LICENSES_FLAGS="$(GO_LICENSES_FLAGS)"
.PHONY: release
release: kustomize cyclonedx-gomod go-licenses ## Write archives, bills of materials, manifests of IMG and checksums into dist/release.
	@rm -rf dist/release
	@$(RELEASE_ENV) hack/release.sh dist/release

.PHONY: verify-release
verify-release: kustomize cyclonedx-gomod go-licenses ## Check that a release is reproducible, bit for bit.
	@$(RELEASE_ENV) hack/verify-release.sh

.PHONY: chart
chart: manifests kustomize kubebuilder ## Generate the Helm chart in config/helm/chart.
	hack/generate-chart.sh config/helm/chart

##@ Deployment

ifndef ignore-not-found
  ignore-not-found = false
endif

# Not an alias of deploy: who types "make install run", as with other kubebuilder projects, wants the controller on the
# host and not a second one in the cluster.
.PHONY: install
install: manifests kustomize ## Install CRDs into the K8s cluster specified in ~/.kube/config: there are none.
	@if [ -d config/crd ]; then "$(KUSTOMIZE)" build config/crd | "$(KUBECTL)" apply -f -; \
	else echo "No CRDs to install: the operator has none. 'make deploy' installs the operator."; fi

.PHONY: uninstall
uninstall: manifests kustomize ## Uninstall CRDs from the K8s cluster specified in ~/.kube/config: there are none.
	@if [ -d config/crd ]; then "$(KUSTOMIZE)" build config/crd | "$(KUBECTL)" delete --ignore-not-found=$(ignore-not-found) -f -; \
	else echo "No CRDs to uninstall: the operator has none. 'make undeploy' removes the operator."; fi

.PHONY: deploy
deploy: manifests kustomize ## Deploy OVERLAY with the image IMG to the K8s cluster specified in ~/.kube/config.
	@$(render-install); \
	"$(KUBECTL)" apply -f "$$tmp/install.yaml"

# A finalizer that is not the in-tree one is taken off the claims first, since nobody would serve it any more: the one that
# is deployed or, if the operator is gone already, that of OVERLAY.
.PHONY: undeploy
undeploy: kustomize ## Undeploy OVERLAY, its own finalizer first. Call with ignore-not-found=true to ignore resources that are not there.
	@$(render-install); \
	"$(KUBECTL)" -n pvc-protection-operator-system get deployments -l app.kubernetes.io/name=pvc-protection-operator \
		-o yaml > "$$tmp/deployed.yaml"; \
	finalizer="$$(awk '/^ *- --finalizer=/ { sub(/.*--finalizer=/, ""); if (!own && $$0 != "kubernetes.io/pvc-protection") own = $$0 } \
		END { print own }' "$$tmp/deployed.yaml" "$$tmp/install.yaml")"; \
	ignore=$(ignore-not-found); \
	if [ -n "$$finalizer" ]; then \
		go run . drain-finalizers --finalizer="$$finalizer" --stop; \
		ignore=true; \
	fi; \
	"$(KUBECTL)" delete --ignore-not-found=$$ignore -f "$$tmp/install.yaml"

##@ Dependencies

## Location to install dependencies to
LOCALBIN ?= $(shell pwd)/bin
$(LOCALBIN):
	mkdir -p "$(LOCALBIN)"

## Tool Binaries
KUBECTL ?= kubectl
KUSTOMIZE ?= $(LOCALBIN)/kustomize
CONTROLLER_GEN ?= $(LOCALBIN)/controller-gen
GOLANGCI_LINT ?= $(LOCALBIN)/golangci-lint
KUBEBUILDER ?= $(LOCALBIN)/kubebuilder
HELM ?= $(LOCALBIN)/helm
GOVULNCHECK ?= $(LOCALBIN)/govulncheck
CYCLONEDX_GOMOD ?= $(LOCALBIN)/cyclonedx-gomod
GO_LICENSES ?= $(LOCALBIN)/go-licenses

## Tool Versions
KUSTOMIZE_VERSION ?= v5.8.2
CONTROLLER_TOOLS_VERSION ?= v0.23.0
KUBEBUILDER_VERSION ?= v4.16.0
HELM_VERSION ?= v4.3.2
GOVULNCHECK_VERSION ?= v1.9.0
CYCLONEDX_GOMOD_VERSION ?= v1.10.0

# Kubernetes of the test cluster, as its tools' go.mod says. test/cluster/build-binaries.sh builds into this folder.
CLUSTER_K8S_VERSION := $(shell awk '{ for (i = 1; i < NF; i++) if ($$i == "k8s.io/kubernetes") { print $$(i + 1); exit } }' test/cluster/tools/go.mod)
CLUSTER_BINARIES = $(shell pwd)/bin/k8s/$(CLUSTER_K8S_VERSION)

# Tools are built by phony targets, which look for themselves whether the right version is there: a file target would
# not notice a new version number in this Makefile.
.PHONY: kustomize
kustomize: | $(LOCALBIN) ## Build kustomize into ./bin if necessary.
	$(call go-install-tool,$(KUSTOMIZE),sigs.k8s.io/kustomize/kustomize/v5,$(KUSTOMIZE_VERSION))

.PHONY: controller-gen
controller-gen: | $(LOCALBIN) ## Build controller-gen into ./bin if necessary.
	$(call go-install-tool,$(CONTROLLER_GEN),sigs.k8s.io/controller-tools/cmd/controller-gen,$(CONTROLLER_TOOLS_VERSION))

# hack/kubebuilder runs it; see docs/extending.md.
.PHONY: kubebuilder
kubebuilder: | $(LOCALBIN) ## Build the kubebuilder CLI into ./bin if necessary.
	$(call go-install-tool,$(KUBEBUILDER),sigs.k8s.io/kubebuilder/v4,$(KUBEBUILDER_VERSION))

.PHONY: helm
helm: | $(LOCALBIN) ## Build helm into ./bin if necessary.
	$(call go-install-tool,$(HELM),helm.sh/helm/v4/cmd/helm,$(HELM_VERSION))

.PHONY: govulncheck
govulncheck: | $(LOCALBIN) ## Build govulncheck into ./bin if necessary.
	$(call go-install-tool,$(GOVULNCHECK),golang.org/x/vuln/cmd/govulncheck,$(GOVULNCHECK_VERSION))

# A bill of materials has the checksum of the tool that wrote it, which must not depend on the folder it was built in.
.PHONY: cyclonedx-gomod
cyclonedx-gomod: export GOFLAGS += -trimpath
cyclonedx-gomod: | $(LOCALBIN) ## Build cyclonedx-gomod into ./bin if necessary.
	$(call go-install-tool,$(CYCLONEDX_GOMOD),github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod,$(CYCLONEDX_GOMOD_VERSION))

# By a go.mod and not "go install", which asks for the latest version, too: module proxies do not have one of this module.
GO_LICENSES_SOURCE = hack/tools/go-licenses
.PHONY: go-licenses
go-licenses: $(GO_LICENSES) ## Build go-licenses into ./bin if necessary.
$(GO_LICENSES): $(addprefix $(GO_LICENSES_SOURCE)/,go.mod go.sum) | $(LOCALBIN)
	cd $(GO_LICENSES_SOURCE) && GOWORK=off go build -o "$(GO_LICENSES)" github.com/google/go-licenses/v2

# golangci-lint with the logcheck plugin compiled in. Its version, and the plugin's, are in the go.mod of this folder.
GOLANGCI_LINT_SOURCE = hack/tools/golangci-lint
.PHONY: golangci-lint
golangci-lint: $(GOLANGCI_LINT) ## Build golangci-lint, with its plugin, into ./bin if necessary.
$(GOLANGCI_LINT): $(addprefix $(GOLANGCI_LINT_SOURCE)/,go.mod go.sum main.go) | $(LOCALBIN)
	@echo "Building golangci-lint (some minutes when nothing is cached)"
	cd $(GOLANGCI_LINT_SOURCE) && GOWORK=off go build -o "$(GOLANGCI_LINT)" .

# What the alerts are tested with; without web pages, and with no service discovery but files.
PROMETHEUS_SOURCE = test/e2e/prometheus/tools
.PHONY: prometheus
prometheus: $(LOCALBIN)/prometheus $(LOCALBIN)/promtool ## Build Prometheus and promtool into ./bin if necessary.
$(LOCALBIN)/prometheus $(LOCALBIN)/promtool: $(addprefix $(PROMETHEUS_SOURCE)/,go.mod go.sum) | $(LOCALBIN)
	@echo "Building $(@F) (some minutes when nothing is cached)"
	cd $(PROMETHEUS_SOURCE) && GOWORK=off go build -trimpath -tags remove_all_sd -ldflags "-s -w" \
		-o "$@" github.com/prometheus/prometheus/cmd/$(@F)

# envtest's binaries, built from Go modules like everything else: nothing is fetched from an archive.
.PHONY: setup-envtest
setup-envtest: ## Build what envtest needs (etcd, kube-apiserver, kubectl) into ./bin/k8s.
	test/cluster/build-binaries.sh etcd kube-apiserver kubectl

COMPONENTS ?=
.PHONY: cluster-binaries
cluster-binaries: ## Build the test cluster's binaries into ./bin/k8s: all, or those in COMPONENTS.
	test/cluster/build-binaries.sh $(COMPONENTS)

# go-install-tool will 'go install' any package with custom target and name of binary, if it doesn't exist
# $1 - target path with name of binary
# $2 - package url which can be installed
# $3 - specific version of package
define go-install-tool
@[ -f "$(1)-$(3)" ] && [ "$$(readlink -- "$(1)" 2>/dev/null)" = "$(1)-$(3)" ] || { \
set -e; \
package=$(2)@$(3) ;\
echo "Building $${package}" ;\
rm -f "$(1)" ;\
GOBIN="$(LOCALBIN)" go install $${package} ;\
mv "$(LOCALBIN)/$$(basename "$(1)")" "$(1)-$(3)" ;\
} ;\
ln -sf "$$(realpath "$(1)-$(3)")" "$(1)"
endef
