#!/usr/bin/env bash
# Runs test.sh in a checkout where packages, CMake and CTest have nothing to do: which folder of data the tests get, which options CTest gets,
# what is said without data, and which arguments are refused.
#
#   tests/install/test_script_test.sh SOURCE
set -euo pipefail

source=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

mkdir -p "$work/clone/build" "$work/clone/scripts" "$work/bin" "$work/sets" "$work/shared/data"
cp "$source/test.sh" "$work/clone"
cp "$source/scripts/steps.sh" "$source/scripts/jobs.sh" "$work/clone/scripts"
printf '#!/bin/sh\nexit 0\n' | tee "$work/clone/scripts/packages.sh" >"$work/bin/cmake"
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "data=${FEDBITS_DATA-none}"\necho "options=$*"\nexit 5\n' >"$work/bin/ctest"
printf '#!/bin/sh\necho "an archive beside the checkout was unpacked" >&2\nexit 1\n' >"$work/shared/data/unpack.sh"
chmod +x "$work/clone/scripts/packages.sh" "$work"/bin/*

# try STATUS [NAME=VALUE...] -- [ARGUMENT...]: test.sh from the folder above the checkout.
try() {
  local expected=$1 status=0 environment=()
  shift
  while [ "$1" != -- ]; do environment+=("$1") && shift; done
  shift
  (cd "$work" && env -u FEDBITS_DATA "${environment[@]}" PATH="$work/bin:$PATH" FEDBITS_JOBS=3 clone/test.sh "$@") >"$work/said.txt" 2>&1 || status=$?
  [ "$status" -eq "$expected" ] || { cat "$work/said.txt"; fail "test.sh $* ends with $status, not with $expected"; }
}
says() { grep -qF -- "$1" "$work/said.txt" || { cat "$work/said.txt"; fail "it does not say: $1"; }; }

try 5 -- -R codec
says "data=none"
says "options=-j 3 --output-on-failure -R codec"
says "DATA MISSING: neither --data nor FEDBITS_DATA names a folder, so the tests that read real data are skipped"
try 5 -- --data sets -R codec
says "data=$work/sets"
says "options=-j 3 --output-on-failure -R codec"
! grep -q "DATA MISSING" "$work/said.txt" || fail "it says that data are missing"
try 5 -- -R codec --data=sets
says "data=$work/sets"
try 5 FEDBITS_DATA=sets --
says "data=$work/sets"
try 5 FEDBITS_DATA=nowhere -- --data sets
says "data=$work/sets"

try 2 -- --data
says "--data needs the folder"
try 2 -- --data nowhere
says "names 'nowhere', which is no folder"
try 2 FEDBITS_DATA=nowhere --
says "names 'nowhere', which is no folder"
try 0 -- --help
says "./test.sh [--data DIR] [option of ctest ...]"
! grep -q "^options=" "$work/said.txt" || fail "--help runs the tests"
echo "test.sh passes data and options on"
