#!/usr/bin/env bash
# Tests that the workbench of the GPU bundle needs nvcc and nothing else: an archive is packed and unpacked, and bench/workbench/build.sh builds
# both programs there. They start and report that there is no GPU; GPUs of this machine are hidden. What did not change is not compiled again.
#
#   tests/install/workbench_test.sh SOURCE
set -euo pipefail

source=$(realpath "$1")
command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || { echo "TOOL MISSING: nvcc"; exit 77; }
for tool in python3 strip; do command -v "$tool" >/dev/null || { echo "TOOL MISSING: $tool"; exit 77; }; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

python3 -B "$source/scripts/pack_bundle.py" /bin/true "$work/bundle.tar.xz" >/dev/null
python3 -m tarfile -e "$work/bundle.tar.xz" "$work"
cd "$work/fedbits-gpu"
bytes=$(find bench/workbench fl_core -type f -exec cat {} + | wc -c)
echo "the workbench has $(find bench/workbench fl_core -type f | wc -l) files of $bytes bytes"
[ "$bytes" -lt 1000000 ] || fail "its sources have $bytes bytes, not under 1 MB"

# built TEXT ARGUMENT...: the build succeeds, and its last line contains the text.
built() {
  local text=$1
  shift
  bench/workbench/build.sh "$@" >"$work/log" 2>&1 || fail "build.sh $* ended with $?: $(cat "$work/log")"
  cat "$work/log"
  tail -n 1 "$work/log" | grep -qF -- "$text" || fail "build.sh $* did not say \"$text\""
}
# ends CODE TEXT COMMAND...
ends() {
  local expected=$1 text=$2 code=0 said
  shift 2
  said=$(CUDA_VISIBLE_DEVICES="" "$@" 2>&1) || code=$?
  [ "$code" = "$expected" ] || fail "$* ended with $code, not $expected: $said"
  grep -qF -- "$text" <<<"$said" || fail "$* did not say \"$text\": $said"
}

total=$(($(wc -l <bench/workbench/sources.txt) + 1))
built "compiled $total of $total files"
ends 3 "no GPU" build-workbench/top_k
ends 2 "--rows none: unknown option or invalid value" build-workbench/top_k --rows none
built "compiled 0 of $total files"
built "compiled 1 of $total files" bench/workbench/hard_threshold.cu
ends 3 "no GPU" build-workbench/hard_threshold

# A version of a source beside the engine's, a changed source, and one that does not compile.
mkdir tries
sed 's/kMostMarks = 8/kMostMarks = 4/' fl_core/ops/cuda/pool.cpp >tries/pool.cpp
built "compiled 1 of $total files" bench/workbench/top_k.cu tries/pool.cpp
built "compiled 0 of $total files"
echo "// another line" >>fl_core/ops/cuda/diagnosis.cpp
built "compiled 1 of $total files"
echo "no C++" >>fl_core/ops/cuda/diagnosis.cpp
! bench/workbench/build.sh >"$work/log" 2>&1 || fail "build.sh succeeded with a source that does not compile"
ends 2 "tries/other.cu is no file" bench/workbench/build.sh bench/workbench/top_k.cu tries/other.cu
echo "the workbench builds from the packed files with nvcc alone"
