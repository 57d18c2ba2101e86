#!/usr/bin/env bash
# Installs the Debian packages of the named groups that are missing; says nothing when none is.
#
#   scripts/packages.sh build [test] [onednn] [bench] [python] [ci]
#
# As root, or where sudo asks for no password, it installs; otherwise it prints the apt line to type and ends with 1. Where there is no apt
# it prints Fedora's names of the packages and a line for dnf. FEDBITS_SKIP_PACKAGES=1 leaves the check out (libraries from elsewhere).
set -euo pipefail

list="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/packages.txt"
readonly groups="build test onednn bench python ci"

# column N GROUP...: the N-th word of the groups' lines, in the order of the list.
column() {
  local word=$1
  shift
  awk -v word="$word" -v groups="$*" \
    'BEGIN { n = split(groups, g, " "); for (i = 1; i <= n; i++) want[g[i]] = 1 } !/^#/ && ($1 in want) { print $word }' "$list"
}

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# missing_of NAME[|NAME...]: nothing if one of them is installed, else the first that the archive has.
missing_of() {
  local name names
  IFS='|' read -r -a names <<<"$1"
  for name in "${names[@]}"; do ! is_installed "$name" || return 0; done
  for name in "${names[@]}"; do
    if [ ${#names[@]} -eq 1 ] || apt-cache show "$name" >/dev/null 2>&1; then
      echo "$name"
      return 0
    fi
  done
  echo "${names[0]}"
}

# as_root COMMAND...: fails where that would need a password.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo -n "$@"
  fi
}

may_install() { [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }

# say_without_apt GROUP...: what to type on Fedora, and what other systems have to provide.
say_without_apt() {
  local fedora without
  fedora=$(column 3 "$@" | tr ',' '\n' | grep -vx -- '-' | awk '!seen[$0]++' | xargs)
  without=$(awk -v groups="$*" 'BEGIN { n = split(groups, g, " "); for (i = 1; i <= n; i++) want[g[i]] = 1 }
    !/^#/ && ($1 in want) && $3 == "-" { name = $2; $1 = $2 = $3 = ""; sub(/^ +/, ""); printf "    %s: %s\n", name, $0 }' "$list")
  {
    echo "packages: there is no apt here. fedbits needs these packages, on Fedora:"
    printf '\n    sudo dnf install %s\n\n' "$fedora"
    [ -z "$without" ] || printf 'packages: Fedora has no package for these of Debian:\n%s\n' "$without"
    echo "packages: when everything is installed, set FEDBITS_SKIP_PACKAGES=1 and run this again. On other systems, install what these packages"
    echo "packages: of Debian contain: $(column 2 "$@" | sed 's/|.*//' | xargs)"
  } >&2
}

main() {
  [ $# -gt 0 ] || { echo "usage: scripts/packages.sh GROUP...  (groups: $groups)" >&2; exit 2; }
  [ "${FEDBITS_SKIP_PACKAGES:-}" != 1 ] || exit 0
  for group in "$@"; do
    [ -n "$(column 2 "$group")" ] || { echo "packages: there is no group '$group' (groups: $groups)" >&2; exit 2; }
  done
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say_without_apt "$@"
    exit 1
  fi

  local missing
  mapfile -t missing < <(for package in $(column 2 "$@"); do missing_of "$package"; done)
  [ ${#missing[@]} -gt 0 ] || exit 0

  local line="sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}"
  if ! may_install; then
    printf 'packages: missing here: %s\npackages: install them, then run this again:\n\n    %s\n\n' "${missing[*]}" "$line" >&2
    exit 1
  fi
  # An archive that cannot be reached does not stop the others: whether the packages can be had shows in the installation.
  as_root apt-get update -qq </dev/null || echo "packages: apt-get update failed; going on with the lists that are here" >&2
  mapfile -t missing < <(for package in $(column 2 "$@"); do missing_of "$package"; done)  # a machine without lists knows no names before
  echo "packages: installing ${missing[*]}"
  local said
  if ! said=$(as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null 2>&1); then
    printf '%s\n\npackages: apt-get could not install them; its reason is above. The line was:\n\n    %s\n\n' "$said" "$line" >&2
    exit 1
  fi
}

main "$@"
