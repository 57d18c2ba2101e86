#!/usr/bin/env bash
# Links, pictures, signatures and the citation file; see pages_test.py.
#
#   tests/install/pages_test.sh SOURCE
set -euo pipefail

for tool in python3 git; do command -v "$tool" >/dev/null || { echo "TOOL MISSING: $tool runs this test"; exit 77; }; done
exec python3 -B "$(dirname "${BASH_SOURCE[0]}")/pages_test.py" "$1"
