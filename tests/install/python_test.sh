#!/usr/bin/env bash
# The Python example on exports of small studies and of every scenario of the library; see read_results_test.py. It is skipped, with exit code
# 77, where matplotlib is missing. PYTHON names an interpreter that has it.
#
#   tests/install/python_test.sh FEDBITS SOURCE
set -euo pipefail

fedbits=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export MPLCONFIGDIR="$work" MPLBACKEND=Agg

# The first Python on the path need not be Debian's.
python=
for candidate in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3; do
  ! "$candidate" -c 'import matplotlib' 2>/dev/null || { python=$candidate; break; }
done
[ -n "$python" ] || { echo "MATPLOTLIB MISSING: examples/read_results.py was NOT TESTED; python3-matplotlib runs this test"; exit 77; }
"$python" -B "$source/tests/install/read_results_test.py" "$fedbits" "$source"
