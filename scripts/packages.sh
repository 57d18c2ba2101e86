#!/usr/bin/env bash
# Installs the Debian packages of the named groups that are missing; says nothing when none is.
#
#   scripts/packages.sh build [test] [onednn] [bench] [python] [ci]
#
# As root, or where sudo asks for no password, it installs; otherwise it prints the apt line to type and ends with 1.
# FEDBITS_SKIP_PACKAGES=1 leaves the check out (libraries from elsewhere, or another distribution).
set -euo pipefail

list="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/packages.txt"

# packages_of GROUP...: their packages, in the order of the list.
packages_of() {
  awk -v groups="$*" 'BEGIN { n = split(groups, g, " "); for (i = 1; i <= n; i++) want[g[i]] = 1 } !/^#/ && ($1 in want) { print $2 }' "$list"
}

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# as_root COMMAND...: fails where that would need a password.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo -n "$@"
  fi
}

may_install() { [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }

main() {
  [ $# -gt 0 ] || { echo "usage: scripts/packages.sh GROUP...  (groups: build test onednn bench python ci)" >&2; exit 2; }
  [ "${FEDBITS_SKIP_PACKAGES:-}" != 1 ] || exit 0
  for group in "$@"; do
    [ -n "$(packages_of "$group")" ] || { echo "packages: there is no group '$group' (groups: build test onednn bench python ci)" >&2; exit 2; }
  done
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "packages: no apt here; fedbits needs what these Debian packages hold: $(packages_of "$@" | xargs)" >&2
    echo "packages: with all of it installed, set FEDBITS_SKIP_PACKAGES=1" >&2
    exit 1
  fi

  local missing=() package
  for package in $(packages_of "$@"); do is_installed "$package" || missing+=("$package"); done
  [ ${#missing[@]} -gt 0 ] || exit 0

  local line="sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}"
  if ! may_install; then
    printf 'packages: missing here: %s\npackages: install them, then run this again:\n\n    %s\n\n' "${missing[*]}" "$line" >&2
    exit 1
  fi
  echo "packages: installing ${missing[*]}"
  # An archive that cannot be reached does not stop the others: whether the packages can be had shows in the installation.
  as_root apt-get update -qq </dev/null || echo "packages: apt-get update failed; going on with the lists that are here" >&2
  local said
  if ! said=$(as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null 2>&1); then
    printf '%s\n\npackages: apt-get could not install them; its reason is above. The line was:\n\n    %s\n\n' "$said" "$line" >&2
    exit 1
  fi
}

main "$@"
