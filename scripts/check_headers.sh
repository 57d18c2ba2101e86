#!/usr/bin/env bash
# Compiles each header alone: a header that leans on what its includer happened to include fails here, by name.
#
#   scripts/check_headers.sh [FILE ...]     default: every tracked header but those that a source of the library includes before
#                                           anything else, which the build has compiled alone by that, and those of python/, which
#                                           need nanobind
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

# Headers of net/ include what protoc makes of net/proto; a build has done so.
wire=build/wire
if [ ! -f $wire/wire.pb.h ] && command -v protoc >/dev/null; then
  mkdir -p $wire && protoc --cpp_out=$wire --proto_path=net/proto wire.proto
fi
export wire

# One source for each header, in a folder of its own, so that the compiler cache can answer for a header that has not changed.
command -v ccache >/dev/null && launcher=ccache || launcher=
export launcher
check_header() {
  local source="build/headers/$1.cpp"
  mkdir -p "$(dirname "$source")" && echo "#include \"$1\"" >"$source"
  $launcher ${CXX:-g++} -std=c++20 -march=native -O0 -c -Wall -Wextra -I. -isystem /usr/include/eigen3 -isystem "$wire" \
    -DFL_VERSION='""' -DFL_BINARY='""' -DFL_SOURCE_DIR='""' -DFL_FUZZ_CORPUS='""' "$source" -o "${source%.cpp}.o" ||
    { echo "$1 does not compile alone" >&2; return 1; }
}
export -f check_header

# Headers that are the first include of a source; not of tests and of the command line, which have a precompiled header before it.
included_first() {
  git ls-files '*.cpp' ':!tests' ':!apps' | xargs awk 'FNR == 1 { seen = 0 } /^#include/ && !seen { seen = 1; if ($2 ~ /^"/) print $2 }' |
    tr -d '"' | sort -u
}

if [ $# -gt 0 ]; then printf '%s\n' "$@"; else git ls-files '*.hpp' ':!python' | sort | comm -23 - <(included_first); fi | xargs -r -P "$(nproc)" -I{} bash -c 'check_header {}'
