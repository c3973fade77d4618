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

# Checks that a release is reproducible: builds it twice and compares every file. The second time, as much is different
# as one machine allows: the folder, the age of the files, the user's mask, locale and time zone, and nothing comes from
# Go's build cache. The environment is that of release.sh, which "make verify-release" sets.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

copy() {
  mkdir -p "$1"
  # Of the working tree, without what git ignores.
  git ls-files --cached --others --exclude-standard -z | while IFS= read -r -d '' file; do
    if [[ -e $file ]]; then printf '%s\0' "$file"; fi # deleted, and not committed yet
  done | tar --create --null --files-from=- | tar --extract --directory "$1"
}
copy "$work/first"
copy "$work/second/of/another/length"
find "$work/second" -exec touch -d 2001-02-03 {} +

"$work/first/hack/release.sh" "$work/first-release"
(
  umask 077
  export GOCACHE=$work/cache TZ=Pacific/Auckland LC_ALL=C
  "$work/second/of/another/length/hack/release.sh" "$work/second-release"
)
diff -r "$work/first-release" "$work/second-release" || {
  echo "the release is not reproducible: the files above differ" >&2
  exit 1
}
echo "both releases are the same, bit for bit:"
cat "$work/first-release/SHA256SUMS"
