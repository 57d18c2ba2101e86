#!/usr/bin/env bash
# Reads saved models with Python; skipped, with exit code 77, if there is no Python with NumPy.
#
#   tests/apps/model_files_test.sh FEDBITS SOURCE
set -euo pipefail

# The first Python on the path need not be Debian's.
for python in python3 /usr/bin/python3; do
  if "$python" -c 'import numpy' 2>/dev/null; then
    exec "$python" "$2/tests/apps/model_files.py" "$1"
  fi
done
echo "TOOL MISSING: python3-numpy (apt-get install python3-numpy)"
exit 77
