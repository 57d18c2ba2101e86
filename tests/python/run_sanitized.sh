#!/usr/bin/env bash
# Runs the tests of the Python package with an extension module that was built with the AddressSanitizer.
#
#   tests/python/run_sanitized.sh BUILD ENVIRONMENT
#
# BUILD is a folder of the preset `sanitize` with FL_PYTHON=ON, ENVIRONMENT one with pytest and the package's other needs, as run_tests.sh makes it.
# Python itself is not instrumented: the sanitizer's library is loaded first, and leaks are not looked for. Left out are the tests whose work is
# in other packages (figures, notebooks, types, PyTorch), and those that only compare with runs of the program.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(realpath "$1") environment=$(realpath "$2")

runtime=$(clang++ -print-file-name=libclang_rt.asan-x86_64.so)
[ -f "$runtime" ] || { echo "TOOL MISSING: clang has no AddressSanitizer to load ($runtime; Debian: libclang-rt-14-dev)"; exit 1; }

# The package as it would be installed, with the modules of this build.
package=$build/python/package
rm -rf "$package"
mkdir -p "$package"
cp -r "$source/python/fedbits" "$package"
ln -s "$build"/python/_core.*.so "$build"/python/_processor.*.so "$package/fedbits"

# Reports go to files, because pytest takes what a process writes, and loses it when the process ends at once.
rm -f "$build"/python/report.*
export ASAN_OPTIONS=detect_leaks=0:log_path=$build/python/report UBSAN_OPTIONS=print_stacktrace=1:log_path=$build/python/report
export LD_PRELOAD=$runtime PYTHONMALLOC=malloc PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1
# run_half NUMBER FILES...: each half in a process of its own, because the tests use one core.
run_half() {
  local half=$1 status=0
  shift
  (cd "$build/python" && "$environment/bin/python" -m pytest -q -p no:cacheprovider --basetemp="$build/python/half-$half" "${@/#/$source/tests/python/}") \
    >"$build/python/half-$half.log" 2>&1 || status=$?
  return "$status"
}
"$environment/bin/python" -c "import fedbits; assert fedbits._core.__file__.startswith('$package'), fedbits._core.__file__"
running=() status=0
run_half 0 test_compressors.py test_models.py test_store.py & running+=($!)
run_half 1 test_feedbacks.py test_simulator.py & running+=($!)
for half in "${running[@]}"; do wait "$half" || status=1; done
unset LD_PRELOAD
cat "$build"/python/half-[01].log
if compgen -G "$build/python/report.*" >/dev/null; then
  cat "$build"/python/report.*
  status=1
fi
[ "$status" -eq 0 ] || echo "FAILED: the tests of the Python package under the AddressSanitizer"
exit "$status"
