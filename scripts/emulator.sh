#!/usr/bin/env bash
# Prints an emulator of a Haswell with its options, as CMAKE_CROSSCOMPILING_EMULATOR takes them: cmake --preset haswell
# "-DCMAKE_CROSSCOMPILING_EMULATOR=$(scripts/emulator.sh)". It has what a Haswell has but for what qemu does not know.
#
# The emulator is that of the package qemu-user-static if its version is 10 or newer. Version 7.2 of Debian 12 takes the index of a gather for
# 0 if it is in register 4 (vgatherdps with %ymm4 as index), so that right programs compute wrong sums under it. In its place the one of
# Debian's backports is unpacked into ~/.cache/fedbits/qemu, or into the folder that FEDBITS_QEMU names. FEDBITS_DEBIAN_MIRROR names
# a mirror.
set -euo pipefail

readonly oldest=10 options=';-cpu;Haswell,-pcid,-x2apic,-tsc-deadline,-hle,-rtm,-invpcid'
folder=${FEDBITS_QEMU:-$HOME/.cache/fedbits/qemu}

is_new_enough() {
  local version
  version=$("$1" --version 2>/dev/null | sed -nE '1s/.*version ([0-9]+).*/\1/p')
  [ "${version:-0}" -ge "$oldest" ]
}

# Unpacks qemu-user of Debian 12's backports. The lists of packages are apt's own kind, in a folder of ours, and apt checks their signature.
unpack_backport() {
  local apt keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  apt=$(mktemp -d)
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/empty" "$folder"
  echo "deb [signed-by=$keyring] ${FEDBITS_DEBIAN_MIRROR:-http://deb.debian.org/debian} bookworm-backports main" >"$apt/sources.list"
  local apt_options=(-qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o "Dir::Etc::sourceparts=$apt/empty" -o "Dir::State::lists=$apt/lists"
    -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
  apt-get "${apt_options[@]}" update && (cd "$apt" && apt-get "${apt_options[@]}" download qemu-user && dpkg-deb -x qemu-user_*.deb "$folder")
  rm -rf "$apt"
}

main() {
  local unpacked=$folder/usr/bin/qemu-x86_64 installed
  installed=$(command -v qemu-x86_64-static || command -v qemu-x86_64 || true)
  if [ -n "$installed" ] && is_new_enough "$installed"; then
    echo "$installed$options"
    return
  fi
  [ -x "$unpacked" ] || unpack_backport >&2
  is_new_enough "$unpacked" || { echo "emulator: no qemu-user of version $oldest or newer, neither installed nor in Debian's backports" >&2; exit 1; }
  echo "$unpacked$options"
}

main
