#!/usr/bin/env bash
# The installed pages docs/how-to-add-*.md and docs/tutorial.md as a reader follows them: every block of shell is typed into one shell. Blocks
# of C++ stand in the example that a how-to page is about; those of the tutorial, and on any page those whose first line is the name of a
# file, are saved as that file and compiled.
#
#   tests/install/docs_test.sh BUILD SOURCE
set -euo pipefail

build=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

source "$(dirname "${BASH_SOURCE[0]}")/page_files.sh"

flock "$build/install.lock" cmake --install "$build" --prefix "$work/fedbits" >/dev/null
# quickstart.sh installs Ninja and no make, so the pages must not lean on one.
mkdir "$work/without"
for name in make gmake; do
  printf '#!/bin/sh\necho "a page leans on make, which quickstart.sh does not install" >&2\nexit 1\n' >"$work/without/$name"
  chmod +x "$work/without/$name"
done
export FEDBITS="$work/fedbits" PATH="$work/without:$work/fedbits/bin:$PATH"
launcher=$(command -v ccache || true)
[ -z "$launcher" ] || export CMAKE_CXX_COMPILER_LAUNCHER="$launcher"

# Checks that C++ on a how-to page that is not a separate file is part of its example, or of the CUDA half of the example.
check_excerpts() {
  local page=$1 example=$2 line begins=1 named=0 files
  files=("$source/examples/$example")
  [ ! -e "${files[0]%.cpp}.cu" ] || files+=("${files[0]%.cpp}.cu")
  while IFS= read -r line; do
    if [ "$begins" = 1 ]; then [[ $line =~ ^//\ [a-z_]+\.cpp$ ]] && named=1 || named=0; fi
    begins=0
    if [ "$line" = "=== end" ]; then begins=1; continue; fi
    [ "$named" = 1 ] || grep -qxF -- "$line" "${files[@]}" || fail "$example has no line: $line"
  done < <(blocks "$page" cpp)
}

# The first Python on the path need not be Debian's, which may have matplotlib where that one has not.
draws=0
for candidate in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3; do
  "$candidate" -c 'import matplotlib' 2>/dev/null || continue
  draws=1
  mkdir "$work/python"
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v "$candidate")" >"$work/python/python3"
  chmod +x "$work/python/python3"
  PATH="$work/python:$PATH"
  break
done

# Types the blocks of shell in a folder that has the files of the page.
type_page() {
  write_files "$1"
  blocks "$1" sh | grep -v '^=== end' >typed.sh
  if [ "$draws" = 0 ] && grep -q read_results.py typed.sh; then
    echo "MATPLOTLIB MISSING: the picture of $1 is NOT DRAWN; python3-matplotlib draws it"
    sed -i /read_results.py/d typed.sh
  fi
  [ "$(wc -l <typed.sh)" -gt "$2" ] || fail "no commands were found in $1"
  bash -euo pipefail typed.sh >said.txt 2>&1 || { cat said.txt; fail "a command of $1"; }
}

# Builds NAME.cpp of the folder as a plug-in.
build_plugin() {
  printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' "project($1 LANGUAGES CXX)" 'find_package(fedbits REQUIRED)' \
    "fedbits_add_plugin($1 $1.cpp)" >CMakeLists.txt
  cmake -G Ninja -S . -B build -DCMAKE_PREFIX_PATH="$FEDBITS" && cmake --build build
}

pages="$FEDBITS/share/doc/fedbits"
for page in compressor layer measure model partitioner; do
  page=how-to-add-a-$page.md
  echo "== $page"
  mkdir "$work/page"
  cd "$work/page"
  check_excerpts "$pages/$page" "$(grep -o '[a-z_]*\.cpp' <(blocks "$pages/$page" sh) | head -1)"
  type_page "$pages/$page" 15
  # Layers have no checks of their own.
  [ "$page" = how-to-add-a-layer.md ] || grep -q " checks, 0 failed" said.txt || fail "the checks of $page"
  # One run says how it ended; several are a table, below which stands where the results lie.
  grep -qE "^(.*  )?seed=[0-9]+  done  rounds 50 |^the results lie in (results|own); " said.txt || { cat said.txt; fail "the run of $page"; }
  for file in *.cpp; do
    [ -e "$file" ] || continue
    mkdir "${file%.cpp}"
    mv "$file" "${file%.cpp}"
    (cd "${file%.cpp}" && build_plugin "${file%.cpp}" >built.txt 2>&1) || { cat "${file%.cpp}/built.txt"; fail "$file of $page"; }
    fedbits check --plugin "${file%.cpp}/build/${file%.cpp}.so" | grep -q " checks, 0 failed" || fail "the checks of $file"
    echo "   $file builds and passes its checks"
  done
  cd "$work"
  mv page "tried-${page%.md}"
done
[ -e tried-how-to-add-a-compressor/oldest_first/build/oldest_first.so ] || fail "the compressor with memory was not found"

echo "== tutorial.md"
mkdir tutorial
cd tutorial
type_page "$pages/tutorial.md" 13
grep -q " checks, 0 failed" said.txt || fail "the checks of the tutorial"
grep -q "^partition.alpha = 100  hard " said.txt || fail "the tutorial's report has no comparison"
[ -s levels.html ] && [ -s own.html ] || fail "the tutorial's reports"
[ "$draws" = 0 ] || for label in top-5% hard ours; do grep -q ">$label</text>" loss.svg || fail "the tutorial's picture has no curve $label"; done
cd "$work"

# Options without their `describe` are the one mistake that a compiler would explain badly.
echo "== options that nothing describes"
mkdir forgotten
cd forgotten
sed '/^inline void describe/,/^}/d' ../tutorial/relative_threshold.cpp >relative_threshold.cpp
! grep -q describe relative_threshold.cpp || fail "describe was not taken out"
! build_plugin relative_threshold >built.txt 2>&1 || fail "options without describe compile"
grep -q "a part's options need a function beside their struct that names the fields" built.txt || { cat built.txt; fail "the sentence is missing"; }
[ "$(grep -c "error:" built.txt)" -eq 1 ] || { cat built.txt; fail "the sentence is not the only error"; }
cd "$work"

# Links between installed pages.
python3 -B "$source/tests/install/pages_test.py" --links "$pages" || fail "links of the installed pages"
