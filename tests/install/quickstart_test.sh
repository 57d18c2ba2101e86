#!/usr/bin/env bash
# Runs quickstart.sh with this build's program, in a few rounds: it ends with a report and prints the location of the results, and the next
# command that it names runs. Hashes are not shown. A step that fails ends the script with its exit code and says what helps.
#
#   tests/install/quickstart_test.sh BINARY SOURCE
set -euo pipefail

binary=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

# A checkout that is built already: packages and CMake have nothing to do.
mkdir -p "$work/clone/build" "$work/clone/scripts" "$work/bin"
cp "$source/quickstart.sh" "$work/clone"
cp "$source/scripts/steps.sh" "$source/scripts/jobs.sh" "$work/clone/scripts"
printf '#!/bin/sh\nexit 0\n' | tee "$work/clone/scripts/packages.sh" >"$work/bin/cmake"
chmod +x "$work/clone/scripts/packages.sh" "$work/bin/cmake"
touch "$work/clone/build/CMakeCache.txt"
ln -s "$binary" "$work/clone/build/fedbits"
ln -s "$source/scenarios" "$work/clone/scenarios"

# Prints the command that the script names next.
next_command() { sed -nE 's/^    (build\/fedbits .*)/\1/p' said.txt | sed 's/ *#.*//'; }

# try FOLDER [ARGUMENT...]: the script from another folder, and what it says.
try() {
  local folder=$1
  shift
  (cd / && PATH="$work/bin:$PATH" "$work/clone/quickstart.sh" "$@") >said.txt 2>&1 || { cat said.txt; fail "quickstart.sh $*"; }
  grep -qF "The results lie in $folder." said.txt || { cat said.txt; fail "it does not say that the results lie in $folder"; }
  grep -qF "The report is $folder/report.html" said.txt || fail "it does not name its report"
  grep -q '<html' "$folder/report.html" || fail "$folder/report.html is no report"
  [ -s "$folder/results.sqlite" ] || fail "there are no results in $folder"
  ! grep -E '\b[0-9a-f]{16}\b' said.txt || fail "hashes are shown"
  [ "$(grep -cE '^ *(0\.1|1|100)? +(none|fp16|top-5%|hard) ' said.txt)" -eq 12 ] || { cat said.txt; fail "there is no line per method and level"; }
  local next
  next=$(next_command)
  [ -n "$next" ] || fail "it names no command"
  (cd "$work/clone" && eval "$next") >next.txt || fail "the command that it names next"
  grep -q 'at equal' next.txt || fail "the command that it names next prints no tables"
}

cd "$work"
"$work/clone/quickstart.sh" --help >help.txt
grep -q 'FEDBITS_JOBS=N' help.txt || fail "--help does not name FEDBITS_JOBS"
! grep -q '^== ' help.txt || fail "--help builds"
try "$work/clone/fedbits-out/quickstart" --set rounds=12 --set sweep.seeds=2
try "$work/clone/mine" --set rounds=12 --out mine --set sweep.seeds=2
try "$work/elsewhere" --out="$work/elsewhere" --set rounds=12 --set sweep.seeds=2 --set name=other

# fails_with STEP WORDS FILE: where FILE, the program of that step, ends with 3, so does the script, and it says WORDS.
fails_with() {
  local step=$1 words=$2 file=$3 status=0
  mv "$file" kept
  printf '#!/bin/sh\nexit 3\n' >"$file"
  chmod +x "$file"
  (cd / && PATH="$work/bin:$PATH" "$work/clone/quickstart.sh") >said.txt 2>&1 || status=$?
  mv kept "$file"
  [ "$status" -eq 3 ] || { cat said.txt; fail "the step $step failed with 3, the script ended with $status"; }
  grep -qF "$step: failed after" said.txt || { cat said.txt; fail "it does not say that the step $step has failed"; }
  grep -qF -- "$words" said.txt || { cat said.txt; fail "a failure of the step $step does not say: $words"; }
}
fails_with packages 'FEDBITS_SKIP_PACKAGES=1 ./quickstart.sh' "$work/clone/scripts/packages.sh"
fails_with configure 'rm -rf build' "$work/bin/cmake"
fails_with quickstart.toml 'build/fedbits verify' "$work/clone/build/fedbits"
# shellcheck disable=SC2016
printf '#!/bin/sh\ncase $1 in --build) exit 3 ;; esac\n' >"$work/bin/cmake.build"
chmod +x "$work/bin/cmake.build"
mv "$work/bin/cmake" "$work/bin/cmake.good"
ln -s cmake.build "$work/bin/cmake"
status=0
PATH="$work/bin:$PATH" "$work/clone/quickstart.sh" >said.txt 2>&1 || status=$?
[ "$status" -eq 3 ] || fail "the build failed with 3, the script ended with $status"
for words in 'FEDBITS_JOBS=1 ./quickstart.sh' 'FEDBITS_NATIVE=0 ./quickstart.sh'; do grep -q "$words" said.txt || fail "a failure of the build does not say: $words"; done
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "$@" >>"%s"\nexit 3\n' "$work/options.txt" >"$work/bin/cmake.build"
FEDBITS_NATIVE=0 PATH="$work/bin:$PATH" "$work/clone/quickstart.sh" >said.txt 2>&1 || true
grep -q -- '--preset release .*-DFL_NATIVE=OFF' options.txt || { cat options.txt; fail "FEDBITS_NATIVE=0 does not reach CMake"; }
echo "quickstart.sh ends as it says"
