#!/usr/bin/env bash
# Compiles each header alone: a header that leans on what its includer happened to include fails here, by name.
#
#   scripts/check_headers.sh                headers that differ from origin/main, on main itself from 30 commits before, and those that include them
#   scripts/check_headers.sh --all          every header
#   scripts/check_headers.sh FILE ...       these
#
# Left out, unless named, are headers that a source of the library includes before anything else, which the build has compiled alone by that, and
# those of python/, which need nanobind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

# Headers of net/ include what protoc makes of net/wire; a build has done so.
wire=build/wire
if [ ! -f $wire/wire.pb.h ] && command -v protoc >/dev/null; then
  mkdir -p $wire && protoc --cpp_out=$wire --proto_path=net/wire wire.proto
fi
export wire

# One source for each header, in a folder of its own.
check_header() {
  local source="build/headers/$1.cpp"
  mkdir -p "$(dirname "$source")" && echo "#include \"$1\"" >"$source"
  ${CXX:-g++} -std=c++20 -march=native -fsyntax-only -Wall -Wextra -I. -isystem /usr/include/eigen3 -isystem "$wire" \
    -DFL_VERSION='""' -DFL_BINARY='""' -DFL_SOURCE_DIR='""' -DFL_FUZZ_CORPUS='""' "$source" ||
    { echo "$1 does not compile alone" >&2; return 1; }
}
export -f check_header

# Headers that are the first include of a source; not of tests and of the command line, which have a precompiled header before it.
included_first() {
  git ls-files '*.cpp' ':!tests' ':!apps' | xargs awk 'FNR == 1 { seen = 0 } /^#include/ && !seen { seen = 1; if ($2 ~ /^"/) print $2 }' |
    tr -d '"' | sort -u
}

# The commit to compare with; empty in a shorter history.
base_commit() {
  if git rev-parse -q --verify origin/main >/dev/null && [ "$(git rev-parse origin/main)" != "$(git rev-parse HEAD)" ]; then
    git merge-base origin/main HEAD
  else
    git rev-parse -q --verify HEAD~30
  fi
}

all_headers() { git ls-files '*.hpp' ':!python'; }

# Headers that differ from the base, and those that include one of them: a header may have leaned on an include that is gone.
changed_headers() {
  local base changed
  base=$(base_commit || true)
  [ -n "$base" ] || { all_headers; return; }
  changed=$(git diff --name-only "$base" -- '*.hpp' ':!python')
  [ -n "$changed" ] || return 0
  { git diff --name-only --diff-filter=d "$base" -- '*.hpp' ':!python'
    all_headers | xargs grep -lFf <(sed 's/.*/#include "&"/' <<<"$changed") || true; } | sort -u
}

case "${1:-}" in
  --all) headers=$(all_headers | sort | comm -23 - <(included_first)) ;;
  "") headers=$(changed_headers | sort | comm -23 - <(included_first)) ;;
  *) headers=$(printf '%s\n' "$@") ;;
esac
printf '%s\n' "$headers" | grep . | xargs -r -P "$(nproc)" -I{} bash -c 'check_header {}'
echo "headers: $(printf '%s\n' "$headers" | grep -c . || true) compiled alone, of $(all_headers | wc -l)"
