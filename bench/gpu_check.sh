#!/usr/bin/env bash
# Everything that needs a GPU, in one table: three short plans, or all stages in ten minutes. docs/gpu.md says what each of them shows.
#
#   bench/gpu_check.sh [BUILD] --plan A|B|C [--after A.json] [--json FILE]        three runs of at most 180, 150 and 120 s
#   bench/gpu_check.sh --plan A|B|C --dry-run                                     prints what the plan does
#   bench/gpu_check.sh [BUILD] [--stage NAME]... [--only TEXT] [--json FILE]      --help lists the other options
#   FEDBITS_DATA=DIR           fashion-mnist and cifar10, for the benchmarks of training; a bundle has its own
#   FEDBITS_PYTHON=PYTHON      with torch or jax, for the baselines; default python3
#
# BUILD: the bundle that this file lies in, else build-cuda, which is built where it is missing (cmake --preset cuda).
#
# Exit code: 0 all agree, 1 something differs, 2 nothing to run, 3 no GPU (operators are listed, parity is not run).
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

build=""
case "${1:-}" in
  '' | -*) ;;
  *) build=$1; shift ;;
esac
if [ -z "$build" ] && [ -x "$here/../fedbits_gpu_parity" ]; then build="$here/.."; fi
case " $* " in *" --dry-run "* | *" --print "*) build="${build:-.}" ;; esac
if [ -z "$build" ]; then
  build="$here/../build-cuda"
  if [ ! -x "$build/fedbits" ] || [ ! -x "$build/fedbits_gpu_parity" ]; then
    (cd "$here/.." && cmake --preset cuda -DFL_BENCH=ON >/dev/null && cmake --build --preset cuda) || exit 2
  fi
fi
python="${FEDBITS_PYTHON:-python3}"
command -v "$python" >/dev/null || { echo "gpu_check.sh: $python was not found; it needs Python 3.8 or newer, which FEDBITS_PYTHON may name" >&2; exit 2; }
exec "$python" -B "$here/gpu_check.py" "$build" "$@"
