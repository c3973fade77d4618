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

# Writes a release into a folder: for every platform an archive and a software bill of materials, the manifests of every
# overlay, and the checksums of all that.
#
#   release.sh DIR
#
# The same source, VERSION, COMMIT, IMG and Go give the same files, bit for bit, wherever and whenever they are built;
# verify-release.sh tries that. "make release" sets the environment: VERSION, COMMIT, LDFLAGS, IMG, PLATFORMS, and the
# tools KUSTOMIZE, CYCLONEDX_GOMOD, GO_LICENSES and GO_LICENSES_FLAGS.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p "$1"
dist=$(cd "$1" && pwd)
if [[ -n $(ls -A "$dist") ]]; then
  echo "$1 is not empty" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
export LC_ALL=C # the order of files

name=pvc-protection-operator
plugin=kubectl-pvc_protection

for platform in $PLATFORMS; do
  os=${platform%/*} arch=${platform#*/}
  files=$work/$os-$arch
  mkdir "$files"
  echo "$platform"
  # GOAMD64 and its like are at their defaults: the binary runs on every such machine.
  env -u GOAMD64 -u GOARM64 -u GOPPC64 -u GOEXPERIMENT CGO_ENABLED=0 GOOS="$os" GOARCH="$arch" \
    go build -trimpath -buildvcs=false -ldflags "-s -w $LDFLAGS" -o "$files/$plugin" .
  # Dates and serial numbers would make every bill another one. It names the version, of which the binary knows nothing.
  "$CYCLONEDX_GOMOD" bin -json -std -noserial -notimestamp -version "$VERSION" \
    -output "$dist/${name}_${os}_$arch.cdx.json" "$files/$plugin"
  # One program by two names: as the plugin it may be extracted alone.
  ln -s "$plugin" "$files/manager"
  cp LICENSE "$files"
  # Their licences ask for it.
  # shellcheck disable=SC2086 # several flags
  GOOS="$os" GOARCH="$arch" "$GO_LICENSES" save $GO_LICENSES_FLAGS --save_path "$files/third-party-licenses"
  (cd "$files" && tar --create --format=ustar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX -- *) | gzip --no-name --best >"$dist/${name}_${os}_$arch.tar.gz"
done

cp -R config "$work/config"
(cd "$work/config/manager" && "$KUSTOMIZE" edit set image controller="$IMG")
for overlay in "$work"/config/overlays/*/; do
  "$KUSTOMIZE" build "$overlay" >"$dist/$(basename "$overlay").yaml"
done

# Not straight into the folder, whose list the checksums are of.
(cd "$dist" && sha256sum -- *) >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" "$dist"
