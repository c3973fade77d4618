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

# Builds the binaries of the test cluster from Go modules, into bin/k8s/<Kubernetes version>/.
#
#   build-binaries.sh [--tools DIR] [component...]
#
# A component is the base name of a `tool` line in DIR/go.mod (default: the folder "tools" beside this script);
# without components, all of them are built. A binary that is up to date is left alone.
# Another Kubernetes version needs no more than a folder of its own: its go.mod says which version that is.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

usage() {
  sed -n '/^# Builds/,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

tools=$here/tools
case ${1:-} in
-h | --help)
  usage
  exit
  ;;
--tools)
  [[ $# -ge 2 ]] || { usage >&2; exit 2; }
  tools=$(cd "$2" && pwd)
  shift 2
  ;;
esac
cd "$tools"

# A workspace of the surrounding checkout must not change what these modules resolve to.
export GOWORK=off CGO_ENABLED=0

version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"
component_base=k8s.io/component-base/version
# Without its version, the API server calls itself v0.0.0-master and clients switch features off.
kubernetes_ldflags="-s -w -X $component_base.gitVersion=$version -X $component_base.gitMajor=$major"
kubernetes_ldflags+=" -X $component_base.gitMinor=$minor"

bin=$root/bin/k8s/$version
stages=$bin/kwok-stages
mkdir -p "$bin"

# component_of PACKAGE prints the name of the binary: etcd's main package has a version for its last element.
component_of() {
  case $1 in
  go.etcd.io/etcd/server/*) echo etcd ;;
  *) basename "$1" ;;
  esac
}

ldflags_of() {
  case $1 in
  k8s.io/kubernetes/*) echo "$kubernetes_ldflags" ;;
  esac
}

# stamp_of PACKAGE prints everything the binary depends on.
stamp_of() {
  go version
  go env GOOS GOARCH
  echo "$1 $(ldflags_of "$1")"
  cksum go.mod go.sum
}

expected_time() {
  case $1 in
  kube-apiserver) echo "about 10 minutes on 2 cores when nothing is cached" ;;
  kube-controller-manager | kube-scheduler) echo "up to 4 minutes on 2 cores, once kube-apiserver is built" ;;
  *) echo "about a minute on 2 cores when nothing is cached" ;;
  esac
}

temp='' compiler=''
cleanup() {
  if [[ -n $compiler ]]; then
    # An interrupted go build removes its work folder, a terminated one does not.
    kill -INT "$compiler" 2>/dev/null || true
    wait "$compiler" || true
  fi
  if [[ -n $temp ]]; then rm -f "$temp"; fi
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

build() {
  local package=$1 name=$2 ldflags started=$SECONDS
  local stamp=$bin/.$name.stamp
  ldflags=$(ldflags_of "$package")

  if [[ -x $bin/$name && -f $stamp && $(<"$stamp") == "$(stamp_of "$package")" ]] &&
    [[ $name != kwok || -d $stages ]]; then
    echo "$name: up to date"
    return
  fi

  echo "$name: building ($(expected_time "$name"))"
  # Under another name until it is whole, so that an interrupted build leaves nothing that looks finished.
  temp=$bin/.$name.$$
  go build -trimpath ${ldflags:+-ldflags "$ldflags"} -o "$temp" "$package" &
  compiler=$!
  while kill -0 "$compiler" 2>/dev/null; do
    sleep 1
    (((SECONDS - started) % 30)) || echo "$name: $((SECONDS - started)) s"
  done
  wait "$compiler"
  compiler=''
  mv "$temp" "$bin/$name"
  temp=''
  [[ $name != kwok ]] || copy_kwok_stages
  stamp_of "$package" >"$stamp"
  echo "$name: built in $((SECONDS - started)) s"
}

# kwok reads the life of its nodes and pods from stage files, which lie in its module.
copy_kwok_stages() {
  local module stage
  module=$(go mod download -json sigs.k8s.io/kwok | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
  rm -rf "$stages" "$stages.$$"
  mkdir "$stages.$$"
  for stage in node/fast node/heartbeat-with-lease pod/fast; do
    cp "$module/kustomize/stage/$stage"/*.yaml "$stages.$$"
  done
  rm "$stages.$$/kustomization.yaml"
  # Files of the module cache are read-only, and so would be their copies.
  chmod u+w "$stages.$$"/*
  mv "$stages.$$" "$stages"
}

# Sorted, so that kube-apiserver with all that the others share comes early.
packages=$(go list -find tool | LC_ALL=C sort)
components=$(for package in $packages; do component_of "$package"; done)

# package_of NAME prints the package that a component is built from.
package_of() {
  local package
  for package in $packages; do
    if [[ $(component_of "$package") == "$1" ]]; then
      echo "$package"
      return
    fi
  done
  echo "unknown component $1, there are:" $components >&2
  return 2
}

# shellcheck disable=SC2086 # one word a component
[[ $# -gt 0 ]] || set -- $components
for name in "$@"; do
  package_of "$name" >/dev/null
done
for name in "$@"; do
  package=$(package_of "$name")
  build "$package" "$name"
done
echo "binaries of Kubernetes $version are in ${bin#"$root/"}"
