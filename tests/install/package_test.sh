#!/usr/bin/env bash
# Installs the Debian package in a clean Debian 12 root and uses it there, plug-ins included. Needs root, debootstrap and the network, and
# takes some minutes: not among the tests of ctest.
#
#   cmake --preset portable -DFL_TESTS=OFF -DFL_BENCH=OFF && cmake --build --preset portable && (cd build-portable && cpack)
#   tests/install/package_test.sh build-portable/fedbits_*_amd64.deb [ROOT]
#
# ROOT: a folder for the root, kept and used again; by default a temporary one.
set -euo pipefail

package=$(realpath "$1")
root=${2:-}
if [ -z "$root" ]; then
  root=$(mktemp -d)
  trap 'rm -rf "$root"' EXIT
fi
[ -x "$root/usr/bin/apt-get" ] || debootstrap --variant=minbase bookworm "$root"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"; }

# The package alone, with what apt finds it depends on.
cp "$package" "$root/tmp/fedbits.deb"
inside apt-get update -qq
inside apt-get install -y -qq --no-install-recommends /tmp/fedbits.deb
inside fedbits --version
inside fedbits run /usr/share/fedbits/scenarios/quickstart.toml --out /tmp/results --again | tail -3
inside sh -c 'test -s /usr/share/man/man1/fedbits.1.gz && bash -n /usr/share/bash-completion/completions/fedbits'

# A plug-in, with the packages that docs/plugins.md names.
inside apt-get install -y -qq --no-install-recommends g++ cmake ninja-build librandom123-dev
inside cmake -G Ninja -S /usr/share/fedbits/examples -B /tmp/examples
inside cmake --build /tmp/examples
inside sh -c 'cd /tmp/examples && fedbits run /usr/share/fedbits/examples/plugins.toml --out /tmp/results --again \
  --plugin nearest_level.so --plugin squared_hinge.so --plugin big_client.so && fedbits check --plugin nearest_level.so | tail -1'

inside apt-get purge -y -qq fedbits
[ -z "$(find "$root/usr" -name '*fedbits*' -print -quit)" ] || { echo "FAILED: files are left behind" >&2; exit 1; }
echo "the package installs, runs, builds plug-ins and goes away"
