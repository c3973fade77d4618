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


# Generates the Helm chart into the given folder: kubebuilder's plugin makes the templates from config/helm, then
# config/helm/chart.patch is applied. Chart.yaml, values.yaml, NOTES.txt and _helpers.tpl are edited by hand; the plugin
# leaves them as they are in config/helm/chart.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools="${LOCALBIN:-$PWD/bin}"
output=$1

tmp="$(mktemp -d)"
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/dist" "$tmp/config/helm"
cp PROJECT "$tmp"
cp -R config/helm/chart "$tmp/config/helm"
rm -rf "$tmp"/config/helm/chart/templates/*/ # all that is generated
"$tools/kustomize" build config/helm >"$tmp/dist/chart.yaml"
(
  cd "$tmp"
  # In a folder of its own, where the plugin's other files (a workflow that downloads what it runs, and its Makefile
  # targets) do not matter.
  "$tools/kubebuilder" edit --plugins=helm.kubebuilder.io/v2-alpha \
    --manifests=dist/chart.yaml --output-dir=config/helm
  git init --quiet # or "git apply" would look at a repository around it
  git apply --recount - <"$OLDPWD/config/helm/chart.patch"
)
mkdir -p "$output"
rm -rf "$output"/templates
cp -R "$tmp/config/helm/chart/." "$output"
