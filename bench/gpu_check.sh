#!/usr/bin/env bash
# Everything that needs a GPU, in one table: which operators exist on which device and whether both devices give the same bytes, whether
# whole runs of every method do, and whether training steps agree; then the benchmarks (gpu_bench) and, with Python's torch or jax, the same
# local steps by PyTorch and JAX on the same GPU. Under nine minutes: benchmarks end where the time is up.
#
#   bench/gpu_check.sh [BUILD]     default: build-cuda, built here where it is missing (cmake --preset cuda)
#   FEDBITS_DATA=DIR               fashion-mnist and cifar10, for the benchmarks of training
#
# Exit code: 0 all agree, 1 something differs, 2 nothing to run, 3 no GPU (operators are listed, parity is not run).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build="${1:-build-cuda}"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT

if [ ! -x "$build/fedbits" ] || [ ! -x "$build/fedbits_gpu_parity" ]; then
  [ "$build" = build-cuda ] || { echo "$build holds no fedbits and fedbits_gpu_parity; build the preset cuda there" >&2; exit 2; }
  cmake --preset cuda -DFL_BENCH=ON >/dev/null && cmake --build --preset cuda || exit 2
fi

echo "GPUs:"
nvidia-smi --query-gpu=name,compute_cap,driver_version,memory.total --format=csv,noheader 2>/dev/null || echo "  none that nvidia-smi can see"

status=0
"$build/fedbits_gpu_parity" --gtest_color=no >"$log" 2>&1 || status=1

# One line per operator; a cell is "same", "DIFFERS" or "not run", with its milliseconds.
"$build/fedbits" list compressors | awk -v log_file="$log" '
  BEGIN {
    while ((getline line < log_file) > 0) {
      if (line !~ /^\[ +(OK|FAILED|SKIPPED) +\].*ms\)$/) continue
      verdict = line ~ /OK/ ? "same" : line ~ /SKIPPED/ ? "not run" : "DIFFERS"
      match(line, /\([0-9]+ ms\)$/)
      time = substr(line, RSTART + 1, RLENGTH - 2)
      name = line; sub(/(, where GetParam.*)? \([0-9]+ ms\)$/, "", name); sub(/^\[[^]]*\] /, "", name)
      if (name ~ /AgreesUpToRounding/) { cell["powersgd", "sizes"] = verdict " (rounding)"; cell["powersgd", "numbers"] = "-"; continue }
      column = name ~ /OddSizes/ ? "sizes" : name ~ /NastyNumbers/ ? "numbers" : ""
      if (column == "") continue
      sub(/.*\//, "", name)
      cell[name, column] = verdict (verdict == "not run" ? "" : ", " time)
    }
    printf "%-18s %-12s %-22s %s\n", "operator", "devices", "odd sizes", "nasty numbers"
  }
  /^  [a-z]/ && $2 ~ /^\[/ {
    devices = $2; gsub(/[][]/, "", devices)
    sizes = ($1, "sizes") in cell ? cell[$1, "sizes"] : "no test"
    numbers = ($1, "numbers") in cell ? cell[$1, "numbers"] : "no test"
    printf "%-18s %-12s %-22s %s\n", $1, devices, sizes, numbers
  }'

# Whole runs and training, one line each.
awk '
  /^\[ +(OK|FAILED|SKIPPED) +\] .*(GpuRun|GpuTraining).*ms\)$/ {
    verdict = /OK/ ? "holds" : /SKIPPED/ ? "not run" : "FAILS"
    match($0, /\([0-9]+ ms\)$/)
    time = substr($0, RSTART + 1, RLENGTH - 2)
    name = $0; sub(/(, where GetParam.*)? \([0-9]+ ms\)$/, "", name); sub(/^\[[^]]*\] /, "", name); sub(/^[A-Za-z]+\/Gpu/, "", name); sub(/^Gpu/, "", name)
    printf "%-62s %s\n", name, verdict (verdict == "not run" ? "" : ", " time)
  }' "$log"
tail -n 5 "$log"
[ "$status" = 0 ] || { grep -m 20 -A 6 "Failure" "$log" || true; exit 1; }
if grep -q "no GPU is visible" "$log"; then exit 3; fi

# Whatever fails here is said and is no failure of the check.
readonly most_s=500
left() { echo $((most_s > SECONDS ? most_s - SECONDS : 1)); }
echo
if [ -x "$build/bench/gpu_bench" ]; then
  timeout "$(left)" "$build/bench/gpu_bench" || echo "gpu_bench: ended with $?"
else
  echo "gpu_bench is not in $build/bench (-DFL_BENCH=ON)"
fi
printf '\nthe same local steps by others\n'
timeout "$(left)" python3 bench/rivals_gpu.py || echo "rivals_gpu.py: ended with $?"
