#!/usr/bin/env bash
# Builds everything and runs the whole test suite; ends with ctest's closing lines and its exit code.
#
#   ./test.sh [option of ctest ...]     e.g. ./test.sh -R codec
#
# Real data: FEDBITS_DATA names a folder that holds it; else an archive beside the checkout (../shared/data/unpack.sh) is unpacked
# into build/data. Without either, the tests that need real data are skipped and say DATA MISSING.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/scripts/steps.sh"

archive="$fl_root/../shared/data/unpack.sh"

find_data() {
  if [ -n "${FEDBITS_DATA:-}" ]; then
    [ -d "$FEDBITS_DATA" ] || { echo "FEDBITS_DATA is '$FEDBITS_DATA', which is no folder" >&2; return 2; }
    FEDBITS_DATA="$(cd "$FEDBITS_DATA" && pwd)"
  elif [ -f "$archive" ]; then
    bash "$archive" "$fl_root/build/data" || return
    FEDBITS_DATA="$fl_root/build/data"
  else
    echo "DATA MISSING: neither FEDBITS_DATA nor an archive beside the checkout; the tests that need real data are skipped"
    return
  fi
  export FEDBITS_DATA
  echo "the tests read real data from $FEDBITS_DATA"
}

step "1/4 packages" "$fl_root/scripts/packages.sh" build test bench
step "2/4 configure" configure release -DFL_TESTS=ON -DFL_BENCH=ON -DFL_NET=ON
step "3/4 build" build release
step "4/4 data" find_data
printf '\n== tests\n'
cd "$fl_root/build"
exec ctest -j "$fl_jobs" --output-on-failure "$@"
