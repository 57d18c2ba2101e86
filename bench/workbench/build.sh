#!/usr/bin/env bash
# Builds a program of the workbench with nvcc alone: one operation of the GPU engine, its reference and a timer (docs/gpu.md). Only what has
# changed since the last build is compiled again.
#
#   bench/workbench/build.sh [PROGRAM.cu [VARIANT...]]      PROGRAM.cu: default bench/workbench/top_k.cu
#
# Each VARIANT is compiled in place of the engine's source with the same file name, so that several versions of a kernel can lie side by side:
#   bench/workbench/build.sh bench/workbench/top_k.cu tries/candidates.cu
#
#   WORKBENCH_ARCH=sm_90       the architecture
#   WORKBENCH_FLAGS=           further options of nvcc, for example "-Xptxas -v" for registers and spills
#   WORKBENCH_JOBS=N           compilers at a time; default: the number of cores
#   WORKBENCH_BUILD=FOLDER     objects and programs; default build-workbench
#
# The list of the engine's sources is bench/workbench/sources.txt. The host code is not compiled for this processor, which changes no kernel.
set -euo pipefail

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
root=$(realpath "$here/../..")
words=()
for word in "${@:-$here/top_k.cu}"; do
  [ -f "$word" ] || { echo "usage: bench/workbench/build.sh [PROGRAM.cu [VARIANT...]]; $word is no file" >&2; exit 2; }
  words+=("$(realpath --relative-base="$root" "$word")")
done
folder=$(realpath -m "${WORKBENCH_BUILD:-$root/build-workbench}")
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) ||
  { echo "nvcc was not found, neither in PATH nor in /usr/local/cuda/bin" >&2; exit 2; }
cd "$root"
mkdir -p "$folder"

read -ra further <<<"${WORKBENCH_FLAGS:-}"
# As in cmake/FedbitsCudaToolkit.cmake and the build type Release.
compiler=("$nvcc" -std=c++20 "-arch=${WORKBENCH_ARCH:-sm_90}" -O3 -DNDEBUG --fmad=false -lineinfo -diag-suppress 554
  -Xcompiler "-ffp-contract=off,-Wall,-Wextra" -I. ${further[@]+"${further[@]}"})

program=${words[0]}
mapfile -t engine <bench/workbench/sources.txt
sources=("$program")
for variant in "${words[@]:1}"; do
  printf '%s\n' "${engine[@]}" | grep -q "/${variant##*/}\$" || { echo "$variant: sources.txt has no file of this name" >&2; exit 2; }
  sources+=("$variant")
done
for source in "${engine[@]}"; do
  printf '%s\n' "${words[@]:1}" | grep -qE "(^|/)${source##*/}\$" || sources+=("$source")
done

# What an object depends on: the command, and the checksum of every file that was read.
inputs_of() {
  printf '%s\n' "${compiler[*]}"
  sed -e 's/^[^:]*://' -e 's/\\$//' "$1.d" | xargs cksum
}
is_current() { [ -f "$1.inputs" ] && inputs_of "$1" 2>/dev/null | cmp -s - "$1.inputs"; }
compile() {
  local source=$1 object=$2 start=$EPOCHREALTIME
  rm -f "$object.inputs"
  "${compiler[@]}" -MMD -MF "$object.d" -c "$source" -o "$object" || return
  inputs_of "$object" >"$object.inputs.new"
  mv "$object.inputs.new" "$object.inputs"
  seconds_since "$start" | tee "$object.seconds" | xargs -I{} printf '%7s s  %s\n' {} "$source"
}
seconds_since() { awk -v a="${1/,/.}" -v b="${EPOCHREALTIME/,/.}" 'BEGIN {printf "%.1f\n", b - a}'; }

start=$EPOCHREALTIME
most=${WORKBENCH_JOBS:-$(nproc)}
objects=() compiled=()
for source in "${sources[@]}"; do
  object=$folder/${source//\//_}.o
  objects+=("$object")
  is_current "$object" && continue
  compiled+=("$object")
  while [ "$(jobs -rp | wc -l)" -ge "$most" ]; do wait -n || true; done
  compile "$source" "$object" &
done
wait
for object in "${objects[@]}"; do [ -f "$object.inputs" ] || { echo "not built" >&2; exit 1; }; done

name=$(basename "$program" .cu)
"$nvcc" "-arch=${WORKBENCH_ARCH:-sm_90}" "${objects[@]}" -o "$folder/$name"
sum=0
[ ${#compiled[@]} -eq 0 ] || sum=$(cat "${compiled[@]/%/.seconds}" | awk '{sum += $1} END {printf "%.1f", sum}')
echo "$folder/$name: compiled ${#compiled[@]} of ${#objects[@]} files ($sum s one after another), built in $(seconds_since "$start") s"
