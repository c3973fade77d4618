#!/usr/bin/env bash
#
# Copyright 2026.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.


# Extends a copy of this project by the kubebuilder CLI, as docs/extending.md says, and checks that the result builds,
# passes vet, and can be installed. Needs nothing but Go and its module proxy.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# The copy uses the tools of the original.
export LOCALBIN="${LOCALBIN:-$PWD/bin}"

copy="$(mktemp -d)"
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | while IFS= read -rd '' file; do
  if [[ -e $file ]]; then printf '%s\0' "$file"; fi # not deleted
done | tar --create --null --files-from=- | tar --extract --directory="$copy"
cd "$copy"
git init --quiet

fail() {
  echo "test-kubebuilder: $*" >&2
  exit 1
}

# has FILE TEXT...
has() {
  local file=$1 text
  shift
  for text in "$@"; do
    grep -qF -- "$text" "$file" || fail "$file lacks: $text"
  done
}

hack/kubebuilder create webhook --group core --version v1 --kind PersistentVolumeClaim --defaulting
hack/kubebuilder edit --multigroup
hack/kubebuilder create api --group example --version v1 --kind Widget --resource --controller

has main.go \
  webhookv1.SetupPersistentVolumeClaimWebhookWithManager \
  'examplev1.AddToScheme(scheme)' '&examplecontroller.WidgetReconciler{'
has PROJECT 'multigroup: true' 'defaulting: true' 'kind: Widget'
for lent in cmd test/e2e/e2e_test.go; do
  [[ ! -e $lent ]] || fail "$lent is left"
done

make manifests generate
go build -o "$copy/manager" .
go vet ./...

# What .dockerignore lets into the image is enough for the manager.
mkdir image
sed -n 's/^!//p' .dockerignore | xargs -I{} cp -R {} image
(cd image && go build -o /dev/null .)
rm -r image

# Everything that could be rendered before can be rendered now, with what is new.
make verify-kustomize
mkdir config/overlays/mine
cat >config/overlays/mine/kustomization.yaml <<EOF
resources: [../replace]
components: [../../components/network-policy, ../../components/prometheus, ../../components/metrics-certificate]
EOF
"$LOCALBIN/kustomize" build config/overlays/mine >rendered.yaml
has rendered.yaml \
  'name: widgets.example.pvc-protection.io' \
  'kind: MutatingWebhookConfiguration' 'name: pvc-protection-operator-allow-webhook-traffic' \
  'cert-manager.io/inject-ca-from: pvc-protection-operator-system/pvc-protection-operator-serving-cert' \
  'name: pvc-protection-operator-serving-cert' 'secretName: webhook-server-cert' \
  'pvc-protection-operator-webhook-service.pvc-protection-operator-system.svc' \
  'name: pvc-protection-operator-metrics-certs'

# The manager knows every flag that the Deployment sets.
mapfile -t args < <(sed -n 's/^ *- \(--[a-z].*\)/\1/p' rendered.yaml)
((${#args[@]})) || fail "no arguments in the Deployment"
"$copy/manager" "${args[@]}" --version
