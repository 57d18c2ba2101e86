#!/usr/bin/env bash
# Installs a build, builds the examples against the installed tree and outside of the source tree, and runs and checks them there.
#
#   tests/install/examples_test.sh BUILD SOURCE
set -euo pipefail

build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

flock "$build/install.lock" cmake --install "$build" --prefix "$work/prefix" >/dev/null
fedbits="$work/prefix/bin/fedbits"

# The installed examples, as a reader finds them.
cp -r "$work/prefix/share/fedbits/examples" "$work/examples"
launcher=$(command -v ccache || true)
cmake -S "$work/examples" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" ${launcher:+-DCMAKE_CXX_COMPILER_LAUNCHER="$launcher"}
cmake --build "$work/build"

cd "$work"
plugins=(--plugin build/nearest_level.so --plugin build/squared_hinge.so --plugin build/big_client.so)
"$fedbits" run examples/plugins.toml "${plugins[@]}" --out out | tee run.txt
grep -Eq "done  rounds 40 .* bits_up 1[0-9]{5} " run.txt || fail "the scenario of the examples did not end as it should"
"$fedbits" check "${plugins[@]}" | tail -1 | tee check.txt
grep -q "^28 checks, 0 failed" check.txt || fail "the examples do not pass their checks"

# A program that runs a scenario and reads its rounds, as often as it is asked to.
build/run_scenario "$work/prefix/share/fedbits/scenarios/quickstart.toml" program >program.txt
[ "$(grep -c ' done$' program.txt)" -eq 60 ] && [ "$(grep -c ': loss below 0.5: round [0-9]*, [0-9]* bits up$' program.txt)" -eq 60 ] ||
  fail "the program did not run the quick start: $(cat program.txt)"
build/run_scenario "$work/prefix/share/fedbits/scenarios/quickstart.toml" program >again.txt
diff <(grep -v ' done$' program.txt) again.txt || fail "the program did not find its stored runs again"
! build/run_scenario no-such-file.toml program >/dev/null 2>error.txt && grep -q "no-such-file.toml" error.txt || fail "a missing file was not an error"

# Nothing third-party but Random123 comes with the public headers. Those of cuda/ are for a CUDA compiler.
(cd "$work/prefix/include/fedbits" && find . -name '*.hpp' ! -path '*/cuda/*' -printf '#include "%P"\n') >all.cpp
g++ -std=c++20 -march=native -I"$work/prefix/include/fedbits" -M all.cpp >files.txt
grep -c 'fedbits/' files.txt >/dev/null || fail "no public header was read"
! grep -iE '/(eigen3|Eigen|spdlog|fmt|toml\+\+|CLI|thrust|cub)/|sqlite3\.h|zlib\.h' files.txt || fail "a public header includes third-party ones"
grep -q Random123 files.txt
grep -rhE 'find_package|find_dependency' "$work"/prefix/lib*/cmake/fedbits "$work"/prefix/lib/*/cmake/fedbits 2>/dev/null | grep -vE 'Threads|CUDAToolkit|^#' &&
  fail "the package looks for other packages"
echo "the installed tree is complete"
