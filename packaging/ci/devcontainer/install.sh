#!/bin/sh
# Installs Patchbay in a development container. Options come as variables (containers.dev, "Development Container Features").
set -eu
cd "$(dirname "$0")"
command -v npm >/dev/null || {
  echo 'Patchbay needs Node 20.19 or later with npm: add the feature "node" before it' >&2
  exit 1
}
if [ -n "${EMULATORS:-}" ]; then
  apt-get update -q
  apt-get install -yq --no-install-recommends $EMULATORS
fi
package=${PACKAGE:-patchbay.tgz}
# For npm, a path of two words is a repository of GitHub.
[ ! -e "$package" ] || package=$(realpath "$package")
npm install --global --no-audit --no-fund "$package"
patchbay --version
