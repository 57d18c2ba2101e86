#!/usr/bin/env bash
# The pages docs/how-to-add-*.md as a reader follows them: every block of shell is typed into one shell, every block of C++ stands in the
# example that the page is about.
#
#   tests/install/docs_test.sh BUILD SOURCE
set -euo pipefail

build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

# blocks PAGE LANGUAGE: the fenced blocks, each ended by a line of its own that says so.
blocks() { awk -v open="\`\`\`$2" '$0 == "```" && on { on = 0; print "=== end" } on { print } $0 == open { on = 1 }' "$1"; }

cmake --install "$build" --prefix "$work/fedbits" >/dev/null
export FEDBITS="$work/fedbits" PATH="$work/fedbits/bin:$PATH" CMAKE_GENERATOR=Ninja
launcher=$(command -v ccache || true)
[ -z "$launcher" ] || export CMAKE_CXX_COMPILER_LAUNCHER="$launcher"

for page in "$source"/docs/how-to-add-a-*.md; do
  echo "== ${page##*/}"
  example=$(grep -o '[a-z_]*\.cpp' <(blocks "$page" sh) | head -1)
  blocks "$page" cpp | while IFS= read -r line; do
    [ "$line" = "=== end" ] || grep -qxF -- "$line" "$source/examples/$example" || fail "$example has no line: $line"
  done
  blocks "$page" sh | grep -v '^=== end' >"$work/typed.sh"
  [ "$(wc -l <"$work/typed.sh")" -gt 15 ] || fail "no commands were found in $page"
  (cd "$work" && bash -euo pipefail typed.sh >"$work/said.txt" 2>&1) || { cat "$work/said.txt"; fail "a command of $page"; }
  grep -q " checks, 0 failed" "$work/said.txt" || fail "the checks of $page"
  grep -qE "^run .* done  rounds 50 " "$work/said.txt" || fail "the run of $page"
done
