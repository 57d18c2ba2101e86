#!/usr/bin/env bash
# Builds and packs what a machine with an NVIDIA driver needs to try and measure the CUDA engine, with nothing to build there: one program (fedbits,
# the GPU tests and the GPU benchmarks) for sm_90 and, as PTX, for newer GPUs, the check with its baselines in Python, and data. See docs/gpu.md.
#
#   scripts/gpu_bundle.sh [--no-data] [OUT]      OUT: default build-bundle/fedbits-gpu.tar.xz
#   FEDBITS_DATA=DIR                             fashion-mnist and cifar10: test sets whole, training sets as far as the limit allows
#   FEDBITS_JOBS=N                               compilers at a time
#
# The program needs a processor of the level x86-64-v3, glibc 2.36 or newer, and no other library.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

data="${FEDBITS_DATA:-}"
out=build-bundle/fedbits-gpu.tar.xz
for word in "$@"; do
  case "$word" in
    --no-data) data="" ;;
    -*) echo "usage: scripts/gpu_bundle.sh [--no-data] [OUT]" >&2; exit 2 ;;
    *) out=$word ;;
  esac
done

readonly program=build-bundle/fedbits_bundle newest_glibc=2.36

# Fails where the program would not start on the machines that it is for.
needs_glibc_alone() {
  local others versions
  others=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libpthread|libdl|librt|ld-linux-x86-64)\.so\.' || true)
  [ -z "$others" ] || { echo "$program needs libraries beside glibc's: $(echo "$others" | xargs)" >&2; return 1; }
  versions=$(readelf -V "$program" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -n 1)
  [ "$(printf '%s\n' "GLIBC_$newest_glibc" "$versions" | sort -V | tail -n 1)" = "GLIBC_$newest_glibc" ] ||
    { echo "$program needs $versions; build it where glibc is $newest_glibc or older (Debian 12)" >&2; return 1; }
  echo "needs $versions or newer, and no other library"
}

nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || { echo "nvcc was not found: the bundle needs a CUDA toolkit to be built" >&2; exit 2; }
step "configure" configure bundle -DCMAKE_CUDA_COMPILER="$nvcc"
step "build" build bundle
step "libraries" needs_glibc_alone
step "pack" python3 -B scripts/pack_bundle.py "$program" "$out" ${data:+--data "$data"}
