#!/usr/bin/env bash
# Installs the Python package into environments of its own and runs its tests there.
#
#   tests/python/run_tests.sh [FOLDER]      the environments lie in FOLDER, by default build/python-tests
#
# The first has today's NumPy, the second Debian's NumPy and PyTorch; without python3-torch the second is left out, and the tests say so.
# FEDBITS names the program, with whose runs messages are compared; without it that test is skipped and says so.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(realpath -m "${1:-$source/build/python-tests}")

# The compiler that CMake would take: Python may name another, whose objects the compiler cache does not know.
export CXX=${CXX:-/usr/bin/c++} CC=${CC:-/usr/bin/cc}

# run_tests ENVIRONMENT TESTS...: away from the sources of the package.
run_tests() {
  local environment=$1
  shift
  (cd "$environment" && bin/python -m pytest -q -rs -p no:cacheprovider "$@")
}

python3 -m venv --clear "$folder/numpy"
rm -rf "$folder/wheel" "$folder/sdist"
# The wheel is made of the source distribution, which has to hold all that it needs.
"$folder/numpy/bin/pip" install --quiet build
"$folder/numpy/bin/python" -m build --sdist --outdir "$folder/sdist" "$source" >/dev/null
tar -xzf "$folder"/sdist/*.tar.gz -C "$folder/sdist"
unpacked=$(echo "$folder"/sdist/*/)
# By the same names as in the other builds of .ci/run, so that the compiler cache has most of the files.
CCACHE_BASEDIR=${unpacked%/} "$folder/numpy/bin/pip" wheel --quiet --no-deps --wheel-dir "$folder/wheel" "$unpacked"
wheel=$(echo "$folder"/wheel/*.whl)
size=$(stat -c %s "$wheel")
[ "$size" -lt 15000000 ] || { echo "FAILED: the wheel has $size bytes, more than 15 MB"; exit 1; }

# The tests of both environments run beside each other, because they use one core.
test_with_numpy() {
  "$folder/numpy/bin/pip" install --quiet --force-reinstall "$wheel[test]" || return
  run_tests "$folder/numpy" "$source/tests/python" --ignore "$source/tests/python/test_torch.py" --ignore "$source/tests/python/test_torch_model.py" \
    --ignore "$source/tests/python/test_torch_processes.py"
}

test_with_torch() {
  if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    echo "TORCH MISSING: no python3-torch here; the tests of fedbits.torch are skipped"
    return
  fi
  /usr/bin/python3 -m venv --clear --system-site-packages "$folder/torch" || return
  "$folder/torch/bin/pip" install --quiet --force-reinstall --no-deps "$wheel" || return
  "$folder/torch/bin/pip" install --quiet pytest nbclient ipykernel || return
  # Types, studies, exports, refusals and the end of the interpreter are tested in the first environment.
  local others=() name
  for name in stubs simulator store plot export refusals ending; do others+=(--ignore "$source/tests/python/test_$name.py"); done
  run_tests "$folder/torch" "$source/tests/python" "${others[@]}"
}

test_with_torch >"$folder/torch.log" 2>&1 & beside=$!
status=0
test_with_numpy || status=$?
wait "$beside" || status=$?
cat "$folder/torch.log"
exit "$status"
