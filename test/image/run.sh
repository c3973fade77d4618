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

# Builds the image with the Dockerfile, without a registry, and runs the operator from its root file system against a
# test cluster. Needs root, for mounts, and Debian or Ubuntu, for buildah and debootstrap, which it installs.
#
# Stand-ins take the place of the two base images: Debian's smallest system with the Go that is installed here, and an
# empty image. Modules come from this machine's module cache, and what is compiled already from its build cache. All else
# that is written lies in one temporary folder.
#
# Environment: VERSION, COMMIT: as in the Makefile. DEBIAN_MIRROR: where debootstrap finds Debian, by default at its
# usual place.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if ((EUID != 0)); then
  echo "$0 makes mounts and must run as root" >&2
  exit 1
fi
# Mounts are seen by this script only, and go with it however it ends.
if [[ -z ${IN_OWN_NAMESPACE:-} ]]; then
  IN_OWN_NAMESPACE=1 exec unshare --mount --propagation private "$BASH" "${BASH_SOURCE[0]}"
fi

missing=()
for tool in buildah debootstrap; do
  command -v "$tool" >/dev/null || missing+=("$tool")
done
if ((${#missing[@]})); then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -qqy --no-install-recommends "${missing[@]}"
fi

work=$(mktemp -d)
cleanup() {
  local status=$? mount
  trap - EXIT
  cd /
  # Nothing is removed through a mount, such as that of the module cache: without umount, the folder stays.
  while read -r mount; do
    umount "$mount"
  done < <(awk -v below="$work/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
  rm -rf "$work"
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

export TMPDIR=$work BUILDAH_ISOLATION=chroot
buildah() { command buildah --storage-driver vfs --root "$work/storage" --runroot "$work/run" "$@"; }

# Also makes sure that the caches are there.
go mod download
go build -o "$work/run-image" ./test/image

go_base=localhost/go empty_base=localhost/empty image=localhost/pvc-protection-operator

echo "=== stand-ins for the base images"
container=$(buildah from scratch)
buildah commit --quiet "$container" "$empty_base" >/dev/null
root=$(buildah mount "$container")
# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
debootstrap --variant=minbase "$suite" "$root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$work/debootstrap.log" ||
  { cat "$work/debootstrap.log" >&2; exit 1; }
cp -a "$(go env GOROOT)" "$root/usr/local/go"
# The checksums of all modules are in go.sum.
buildah config --env PATH=/usr/local/go/bin:/usr/bin:/bin --env GOTOOLCHAIN=local --env GOPROXY=file:///modules \
  --env GOSUMDB=off --env GOCACHE=/cache "$container"
buildah commit --quiet "$container" "$go_base" >/dev/null
buildah rm "$container" >/dev/null

echo "=== the image"
buildah build --pull-never --build-arg BASE_IMAGE="$go_base" --build-arg RUNTIME_IMAGE="$empty_base" \
  --build-arg VERSION="${VERSION:-dev}" --build-arg COMMIT="${COMMIT:-unknown}" \
  --volume "$(go env GOMODCACHE)/cache/download:/modules:ro" --volume "$(go env GOCACHE):/cache" --tag "$image" .
config() { buildah inspect --type image --format "{{range .OCIv1.Config.$1}}{{println .}}{{end}}" "$image"; }
user=$(buildah inspect --type image --format '{{.OCIv1.Config.User}}' "$image")
entrypoint=$(config Entrypoint)

container=$(buildah from --pull-never "$image")
root=$(buildah mount "$container")
files=$(cd "$root" && find . -mindepth 1)
echo "user $user, entry point $entrypoint, files: $files"
if [[ $files != .$entrypoint ]]; then
  echo "on an empty base, the image has to hold the manager and nothing else" >&2
  exit 1
fi

echo "=== the operator, from the image's root file system"
# What a container runtime does: make mount points, mount, and let nothing be written.
account=/var/run/secrets/kubernetes.io/serviceaccount
mkdir -p "$root$account" "$work/rootfs" "$work/account"
mount --bind "$root" "$work/rootfs"
mount --bind "$work/account" "$work/rootfs$account"
mount -o remount,bind,ro "$work/rootfs$account"
mount -o remount,bind,ro "$work/rootfs"
"$work/run-image" --rootfs "$work/rootfs" --service-account "$work/account" --user "$user" --entrypoint "$entrypoint"
