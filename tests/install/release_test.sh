#!/usr/bin/env bash
# Tests the products of scripts/release.sh on systems without compilers: each starts, plays the quickstart's study and gives the table of the
# README, digit by digit. Needs root, debootstrap and the network, and takes ten minutes: not among the tests of ctest.
#
#   tests/install/release_test.sh OUT [ROOTS]      OUT: the folder with the products; ROOTS: keeps the empty systems for the next time
#   tests/install/release_test.sh OUT --twice      builds the same release in another folder (minutes, an hour without the compiler cache)
#                                                  and compares the bytes
#
# The archive runs on the oldest system that it is made for (Debian 11) and on Debian 12, the wheel of CPython 3.11 on Debian 12, the abi3 wheel
# with the Python that PYTHON_ABI3 names (as scripts/release.sh).
set -euo pipefail

out=$(realpath "$1") source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
fail() { echo "FAILED: $*" >&2; exit 1; }
(cd "$out" && sha256sum --quiet --check SHA256SUMS) || fail "a product is not what SHA256SUMS says"

if [ "${2:-}" = --twice ]; then
  again=$(mktemp -d)
  trap 'rm -rf "$again"' EXIT
  "$source/scripts/release.sh" "$again/out" >"$again/log" 2>&1 || { tail -n 40 "$again/log"; fail "the second build"; }
  diff "$out/SHA256SUMS" "$again/out/SHA256SUMS" || fail "the second build has other bytes"
  echo "built twice, the release has the same bytes"
  exit 0
fi

roots=${2:-}
if [ -z "$roots" ]; then
  roots=$(mktemp -d)
  trap 'rm -rf "$roots"' EXIT
fi
mkdir -p "$roots"
roots=$(realpath "$roots")
root=
inside() { chroot "$root" env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

# enter SUITE: an empty system of Debian, without compilers.
enter() {
  root=$roots/$1
  [ -e "$root/usr/bin/apt-get" ] || debootstrap --variant=minbase "$1" "$root" >"$roots/$1.log" 2>&1 || { tail -n 5 "$roots/$1.log"; fail "debootstrap $1"; }
  ! inside sh -c 'command -v gcc || command -v cc || command -v g++' || fail "$root has a compiler"
  rm -rf "$root/tmp/release" "$root/opt/moved"
  mkdir -p "$root/tmp/release" "$root/opt/moved"
}

# The lines of the README's table, and those in a text that `fedbits run` printed. Of equal studies they are the same.
table_of() { sed -nE 's/^ *//; /^((0\.1|1|100) +)?(none|fp16|top-5%|hard) +5 /p' "$1" | sed -E 's/[[:space:]]+/ /g; s/ $//'; }
check_table() {
  table_of "$source/README.md" >"$roots/expected.txt"
  table_of "$1" >"$roots/table.txt"
  [ "$(wc -l <"$roots/expected.txt")" = 12 ] || fail "the README's table is not where it was"
  diff "$roots/expected.txt" "$roots/table.txt" || fail "$2: the table is not the README's"
}

unpack_archive() { tar -xJf "$out"/fedbits-*-x86_64-linux.tar.xz -C "$root/opt/moved" --strip-components=1; }
study=/opt/moved/share/fedbits/scenarios/quickstart.toml

# The program, from another folder than it was built for, and with the working folder elsewhere.
test_archive() {
  enter "$1"
  unpack_archive
  local program=/opt/moved/bin/fedbits others
  others=$(readelf -d "$root$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libpthread|libdl|librt|ld-linux-x86-64)\.so\.' || true)
  [ -z "$others" ] || fail "the program needs more than glibc: $others"
  inside $program --version
  inside sh -c "cd /tmp && $program run $study --out /tmp/release/results && $program report /tmp/release/results -o /tmp/release/report.html" \
    >"$roots/said.txt" || { tail "$roots/said.txt"; fail "$1: the quickstart"; }
  check_table "$roots/said.txt" "$1"
  grep -q vega "$root/tmp/release/report.html" || fail "the report has no charts"
  inside $program serve --help >/dev/null || fail "serve is missing"
  inside $program join --help >/dev/null || fail "join is missing"
  inside $program certs init /tmp/release/certs --clients 2 --per-peer 1 >/dev/null || fail "certs does not work"
  # There is no server here, so the answer names the connection. Without libcurl it would say that it cannot download.
  inside $program data fetch fashion-mnist --data /tmp/release/data >"$roots/said.txt" 2>&1 && fail "data were fetched from nowhere"
  ! grep -q "built without" "$roots/said.txt" || fail "the archive cannot download"
  echo "$1: the archive runs"
}

# test_wheel NAME PYTHON WHEEL: PYTHON is one of the root's.
test_wheel() {
  local python=$2 wheel=$3
  unpack_archive
  rm -rf "$root/tmp/release/env"
  cp "$wheel" "$root/tmp/release/"
  inside "$python" -m venv /tmp/release/env
  cp "$roots"/numpy/"$1"/*.whl "$root/tmp/release/"
  inside /tmp/release/env/bin/pip install --quiet --no-index --find-links /tmp/release "/tmp/release/$(basename "$wheel")"
  inside /tmp/release/env/bin/python -m fedbits --version
  inside /tmp/release/env/bin/python -c "
import fedbits
fedbits.run('$study', out='/tmp/release/$1', progress=False)
fedbits.Store('/tmp/release/$1').report().save('/tmp/release/$1.html')"
  # The program finds every run of this store, so that it prints the table and computes nothing.
  inside /opt/moved/bin/fedbits run "$study" --out "/tmp/release/$1" >"$roots/said.txt"
  check_table "$roots/said.txt" "$(basename "$wheel")"
  echo "$(basename "$wheel"): installs and runs"
}

# fetch_numpy NAME VERSION: the wheel of NumPy for this version of Python.
fetch_numpy() {
  [ -e "$roots/numpy/$1" ] || python3 -m pip download --quiet --only-binary :all: --no-deps --python-version "$2" --dest "$roots/numpy/$1" numpy
}

newer_python() {
  local candidate
  for candidate in ${PYTHON_ABI3:+"$PYTHON_ABI3"} python3.12 python3.13 python3.14 ~/.pyenv/versions/3.1[2-9]*/bin/python; do
    ! "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null || { command -v "$candidate"; return; }
  done
  fail "no CPython of 3.12 or later for the abi3 wheel: PYTHON_ABI3=/path/to/python names one"
}

test_archive bullseye
test_archive bookworm
inside apt-get update -qq
inside apt-get install -y -qq --no-install-recommends python3 python3-venv >/dev/null
! inside sh -c 'command -v gcc' || fail "a compiler came with Python"
fetch_numpy python3 3.11
test_wheel python3 /usr/bin/python3 "$(echo "$out"/fedbits-*-cp311-cp311-*.whl)"

newer=$(newer_python)
prefix=$("$newer" -c 'import sys; print(sys.base_prefix)') version=$("$newer" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ ! -e "$root$prefix" ]; then
  mkdir -p "$root$(dirname "$prefix")"
  cp -a "$prefix" "$root$prefix"
fi
fetch_numpy "$version" "$version"
test_wheel "$version" "$prefix/bin/python$version" "$(echo "$out"/fedbits-*-abi3-*.whl)"
echo "the release runs on systems without compilers, and gives the README's table"
