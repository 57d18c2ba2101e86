#!/usr/bin/env bash
# Compiles each header alone: a header that leans on what its includer happened to include fails here, by name.
#
#   scripts/check_headers.sh [FILE ...]     default: every tracked header
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

check_header() {
  echo "#include \"$1\"" | ${CXX:-g++} -std=c++20 -march=native -fsyntax-only -Wall -Wextra -I. -isystem /usr/include/eigen3 \
    -DFL_VERSION='""' -DFL_BINARY='""' -DFL_SOURCE_DIR='""' -DFL_FUZZ_CORPUS='""' -x c++ - || { echo "$1 does not compile alone" >&2; return 1; }
}
export -f check_header

if [ $# -gt 0 ]; then printf '%s\n' "$@"; else git ls-files '*.hpp'; fi | xargs -r -P "$(nproc)" -I{} bash -c 'check_header {}'
