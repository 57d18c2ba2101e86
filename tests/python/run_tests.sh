#!/usr/bin/env bash
# Installs the Python package into an environment of its own and runs its tests there.
#
#   tests/python/run_tests.sh [FOLDER]      the environment lies in FOLDER, by default build/python-tests
#
# FEDBITS names the program, with whose runs messages are compared; without it that test is skipped and says so.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(realpath -m "${1:-$source/build/python-tests}")

python3 -m venv "$folder"
# The compiler that CMake would take: Python may name another, whose objects the compiler cache does not know.
export CXX=${CXX:-/usr/bin/c++} CC=${CC:-/usr/bin/cc}
# Files one by one, as in every other build here, so that the compiler cache has them.
"$folder/bin/pip" install --quiet "$source[test]" --config-settings=cmake.define.FL_UNITY_LIBRARY=OFF
cd "$folder"  # away from the sources of the package
"$folder/bin/python" -m pytest -q -rs -p no:cacheprovider "$source/tests/python"
