#!/usr/bin/env bash
# clang-tidy on the sources that changed, with the flags of build/.
#
#   scripts/tidy.sh                 what differs from origin/main; on main itself the last commit that touched a source
#   scripts/tidy.sh --all           every source
#   scripts/tidy.sh FILE ...        these
#
# FEDBITS_TIDY_SECONDS bounds the time: files that did not get their turn are counted in the last line, never dropped in silence.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The commit to compare with; empty in a history of one commit.
base_commit() {
  if git rev-parse -q --verify origin/main >/dev/null && [ "$(git rev-parse origin/main)" != "$(git rev-parse HEAD)" ]; then
    git merge-base origin/main HEAD
  else
    git rev-parse -q --verify "$(git log -1 --format=%H -- '*.cpp')^"
  fi
}

sources() {
  local base
  case "${1:-}" in
    --all) git ls-files '*.cpp' ;;
    "")
      base=$(base_commit || true)
      if [ -n "$base" ]; then git diff --name-only --diff-filter=d "$base" -- '*.cpp'; else git ls-files '*.cpp'; fi
      ;;
    *) printf '%s\n' "$@" ;;
  esac
}

# Sources outside the build (a fuzz target's driver, tests of the emulator) have no flags to check them with. A test that the build compiles
# together with others has the flags of their unit.
check_source() {
  grep -q "/$1\"" "$FL_TIDY_FLAGS/compile_commands.json" || return 0
  [ "$(date +%s)" -lt "$FL_TIDY_END" ] || { echo "$1" >>"$FL_TIDY_LEFT"; return 0; }
  clang-tidy -p "$FL_TIDY_FLAGS" --quiet "$1" 2> >(grep -v 'warnings generated' >&2)
}
export -f check_source

FL_TIDY_LEFT="$(mktemp)"
FL_TIDY_FLAGS="$(mktemp -d)"
trap 'rm -rf "$FL_TIDY_LEFT" "$FL_TIDY_FLAGS"' EXIT
# The build's flags without its precompiled header, which only its own compiler reads. A source that is compiled together with others has the
# flags of their unit.
python3 - build/compile_commands.json "$FL_TIDY_FLAGS/compile_commands.json" <<'PYTHON'
import json, pathlib, re, sys

commands = json.loads(re.sub(r"-fpch-preprocess|-Winvalid-pch|-include [^ ]*cmake_pch\.hxx", "", pathlib.Path(sys.argv[1]).read_text()))
for unit in [command for command in commands if pathlib.Path(command["file"]).name.startswith("unity_")]:
    for file in re.findall(r'^#include "(/.*)"$', pathlib.Path(unit["file"]).read_text(), re.MULTILINE):
        commands.append({**unit, "file": file, "command": unit["command"].replace(unit["file"], file)})
pathlib.Path(sys.argv[2]).write_text(json.dumps(commands))
PYTHON
FL_TIDY_END=$(($(date +%s) + ${FEDBITS_TIDY_SECONDS:-86400}))
export FL_TIDY_LEFT FL_TIDY_FLAGS FL_TIDY_END

files=$(sources "$@")
status=0
printf '%s\n' "$files" | xargs -r -P "$(nproc)" -I{} bash -c 'check_source {}' || status=1
echo "clang-tidy: $(printf '%s\n' "$files" | grep -c . || true) files, $(wc -l <"$FL_TIDY_LEFT") of them not looked at for want of time"
exit "$status"
