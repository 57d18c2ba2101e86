#!/usr/bin/env bash
# Makes what people can use without a compiler: an archive of the program, wheels, the source distribution and SHA256SUMS.
#
#   scripts/release.sh [OUT]      OUT: a folder for the products, by default build-release/out; its sibling "work" is kept for the next time
#
# The commit that is checked out is built, without changes that are not committed. Equal commits give equal bytes on Debian 12, in any folder.
# tests/install/release_test.sh tests the products. docs/releasing.md says what they need and what is inside them.
#
# PYTHON_ABI3 names a CPython of 3.12 or later for the wheel that serves all of them; by default one on the path or of pyenv.
set -euo pipefail
umask 022
# shellcheck source=scripts/steps.sh
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

out=$(realpath -m "${1:-$fl_root/build-release/out}")
work=$(dirname "$out")/work
source=$work/source
version=$(sed -n 's/^project(fedbits VERSION \([0-9.]*\).*/\1/p' "$fl_root/CMakeLists.txt")
archive=fedbits-$version-x86_64-linux
glibc=2.28
readonly manylinux=manylinux_${glibc/./_}_x86_64

SOURCE_DATE_EPOCH=$(git -C "$fl_root" log -1 --format=%ct)
# Paths in objects and in the compiler cache begin at the sources.
export SOURCE_DATE_EPOCH CCACHE_BASEDIR=$source TZ=UTC CXX=/usr/bin/c++ CC=/usr/bin/cc PYTHONHASHSEED=0
options=(-DFL_STATIC_LIBRARIES=ON "-DFL_OLD_GLIBC=$work/libraries/glibc" -DFL_WERROR=OFF)
# paths_of FOLDER: the option with which objects name their sources as if FOLDER were the working folder.
paths_of() { echo "-DCMAKE_CXX_FLAGS=-ffile-prefix-map=$1=."; }

newer_python() {
  local candidate
  for candidate in ${PYTHON_ABI3:+"$PYTHON_ABI3"} python3.12 python3.13 python3.14 ~/.pyenv/versions/3.1[2-9]*/bin/python; do
    ! "$candidate" -c 'import sys, sysconfig; sys.exit(sys.version_info < (3, 12))' 2>/dev/null || { command -v "$candidate"; return; }
  done
  echo "no CPython of 3.12 or later was found for the abi3 wheel; PYTHON_ABI3=/path/to/python names one" >&2
  return 1
}

take_sources() {
  rm -rf "$source"
  mkdir -p "$source"
  git -C "$fl_root" archive HEAD | tar -x -C "$source"
  # The time of the commit, and permissions that do not depend on who calls: wheels keep both.
  chmod -R u+rwX,go+rX,go-w "$source"
  find "$source" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

make_libraries() {
  [ -e "$work/libraries/done" ] || { "$fl_root/scripts/release_libraries.sh" "$work/libraries" && touch "$work/libraries/done"; }
}

# make_environment NAME PYTHON: tools from PyPI, in versions that scripts/release_requirements.txt fixes.
make_environment() {
  [ -x "$work/$1/bin/pip" ] || "$2" -m venv "$work/$1"
  "$work/$1/bin/pip" install --quiet --disable-pip-version-check --requirement "$source/scripts/release_requirements.txt"
}

build_program() {
  cmake -G Ninja -S "$source" -B "$source/build" -DCMAKE_BUILD_TYPE=Release -DFL_SHARED=OFF -DFL_TESTS=OFF -DFL_BENCH=OFF -DFL_UNITY_LIBRARY=ON \
    "-DCMAKE_PREFIX_PATH=$work/libraries/prefix" "${options[@]}" "$(paths_of "$source")" >/dev/null
  cmake --build "$source/build" -j "$fl_jobs" --target fedbits_app
}

# Ends the script if the program asks for a newer glibc or for other libraries.
check_program() {
  local newest others
  newest=$(readelf -W --dyn-syms --version-info "$1" | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -n 1)
  [ "$(printf '%s\n' "$newest" "GLIBC_$glibc" | sort -V | tail -n 1)" = "GLIBC_$glibc" ] || { echo "$1 needs $newest, more than glibc $glibc" >&2; return 1; }
  others=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libpthread|libdl|librt|ld-linux-x86-64)\.so\.' || true)
  [ -z "$others" ] || { echo "$1 needs other libraries than glibc: ${others//$'\n'/ }" >&2; return 1; }
}

# The licences of what is linked into the program, as Debian's packages have them.
copy_licences() {
  local folder=$1/share/doc/fedbits/third-party package
  mkdir -p "$folder"
  for package in libsqlite3-dev zlib1g-dev libssl-dev libprotobuf-dev libfmt-dev libspdlog-dev libeigen3-dev libboost1.81-dev libthrust-dev \
    librandom123-dev libtomlplusplus-dev libcli11-dev nlohmann-json3-dev libjs-vega libstdc++-12-dev; do
    cp -L "/usr/share/doc/$package/copyright" "$folder/$package"
  done
  cp "$work"/libraries/sources/curl-*/debian/copyright "$folder/curl"
  cp "$work"/libraries/sources/libarchive-*/debian/copyright "$folder/libarchive"
}

# pack FOLDER FILE: equal contents give equal bytes.
pack() {
  tar -C "$(dirname "$1")" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w --mtime="@$SOURCE_DATE_EPOCH" \
    -c "$(basename "$1")" | xz -6 --threads=1 >"$2"
}

make_archive() {
  local tree=$work/$archive
  rm -rf "$tree"
  cmake --install "$source/build" --prefix "$tree" --strip >/dev/null
  check_program "$tree/bin/fedbits"
  copy_licences "$tree"
  cp "$source/README.md" "$source/CHANGELOG.md" "$tree/"
  cp "$source/LICENSE" "$tree/"
  pack "$tree" "$out/$archive.tar.xz"
}

make_sdist() { "$work/python3/bin/python" -m build --sdist --no-isolation --outdir "$out" "$source" >/dev/null; }

# make_wheel NAME OPTION...: in the folder of the program, whose objects the compiler cache has. That the source distribution holds all that a
# wheel needs is tested by tests/python/run_tests.sh.
make_wheel() {
  local name=$1 environment=$work/$1 option settings=()
  shift
  rm -rf "$environment/wheel"
  for option in "${options[@]}" "$(paths_of "$source")"; do
    option=${option#-D}
    settings+=("--config-setting=cmake.define.${option%%=*}=${option#*=}")
  done
  (
    export PATH=$environment/bin:$PATH
    python -m build --wheel --no-isolation --outdir "$environment/wheel" "--config-setting=build-dir=build-$name" "${settings[@]}" "$@" "$source" \
      >"$environment/wheel.log" 2>&1 || { tail -n 40 "$environment/wheel.log" >&2; exit 1; }
    auditwheel repair --plat "$manylinux" --only-plat --wheel-dir "$out" "$environment"/wheel/*.whl
  )
}

main() {
  mkdir -p "$out" "$work"
  rm -f "$out"/fedbits-* "$out/SHA256SUMS"
  local newer
  newer=$(newer_python)
  step "sources of $(git -C "$fl_root" log -1 --format='%h, %s')" take_sources
  step "libraries that are linked in" make_libraries
  step "tools of Python" make_environment python3 /usr/bin/python3
  step "tools of $("$newer" --version)" make_environment abi3 "$newer"
  step "the program" build_program
  step "$archive.tar.xz" make_archive
  step "source distribution" make_sdist
  step "wheel for Debian's Python" make_wheel python3
  step "wheel for CPython 3.12 and later" make_wheel abi3 --config-setting=wheel.py-api=cp312
  (cd "$out" && sha256sum fedbits-* >SHA256SUMS && ls -l && cat SHA256SUMS)
}

main
