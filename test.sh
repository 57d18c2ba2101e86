#!/usr/bin/env bash
# Builds everything and runs the whole test suite; ends with ctest's closing lines and its exit code.
#
#   ./test.sh [--data DIR] [option of ctest ...]     e.g. ./test.sh --data ~/data -R codec
#
# --data DIR, or FEDBITS_DATA=DIR, names a folder with real data, laid out as `fedbits data` shows it. Without it, the tests that read a9a,
# madelon, MNIST, Fashion-MNIST, CIFAR-10, Shakespeare or WikiText-2, or mushrooms from a file, are skipped and say DATA MISSING. So are the
# comparisons with curves of the authors' code of Sahu et al. (NeurIPS 2021) unless FEDBITS_REFERENCE names the folder of these curves.
#
# FEDBITS_JOBS=N builds and tests with N processes at a time (default: one per core and per 1.5 GiB of memory).
# FEDBITS_NATIVE=0 builds for any x86-64-v3 processor in place of this one.
# `ctest --help` lists the options of ctest.
set -euo pipefail

data=${FEDBITS_DATA:-}
options=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help)
      sed -n '2,/^set /{/^set /!p}' "${BASH_SOURCE[0]}" | sed 's/^# \?//'
      exit 0
      ;;
    --data | --data=*)
      data=${1#--data}
      data=${data#=}
      if [ "$1" = --data ] && [ $# -gt 1 ]; then
        data=$2
        shift
      fi
      [ -n "$data" ] || { echo "test.sh: --data needs the folder that holds the data, such as --data ~/data" >&2; exit 2; }
      ;;
    *) options+=("$1") ;;
  esac
  shift
done
if [ -n "$data" ]; then
  [ -d "$data" ] || { echo "test.sh: --data or FEDBITS_DATA names '$data', which is no folder" >&2; exit 2; }
  FEDBITS_DATA="$(cd "$data" && pwd)"
  export FEDBITS_DATA
fi

source "$(dirname "${BASH_SOURCE[0]}")/scripts/steps.sh"

step "1/3 packages" "$fl_root/scripts/packages.sh" build test bench
step "2/3 configure" configure release -DFL_TESTS=ON -DFL_BENCH=ON -DFL_NET=ON
step "3/3 build" build release
printf '\n== tests\n'
if [ -n "$data" ]; then
  echo "the tests read real data from $FEDBITS_DATA"
else
  echo "DATA MISSING: neither --data nor FEDBITS_DATA names a folder, so the tests that read real data are skipped (./test.sh --help names the sets)"
fi
cd "$fl_root/build"
exec ctest -j "$fl_jobs" --output-on-failure "${options[@]}"
