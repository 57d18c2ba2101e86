#!/usr/bin/env bash
# Tests that traces.txt equals the output of traces.py. Skipped, with exit code 77, if there is no Python with NumPy.
#
#   tests/golden/numpy_traces_test.sh SOURCE
set -euo pipefail

golden=$1/tests/golden

# The first Python on the path need not be Debian's.
for python in python3 /usr/bin/python3; do
  if "$python" -c 'import numpy' 2>/dev/null; then
    exec "$python" "$golden/traces.py" --check "$golden/traces.txt"
  fi
done
echo "TOOL MISSING: python3-numpy (apt-get install python3-numpy)"
exit 77
