#!/usr/bin/env bash
# Starts the program on processors of other ages, which qemu-user emulates. On a processor that lacks something it says so in one sentence and
# ends with exit code 2, before any other instruction of the build can end it.
#
#   tests/install/processor_test.sh FEDBITS
set -euo pipefail

fedbits=$(realpath "$1")
emulator=$(command -v qemu-x86_64-static || command -v qemu-x86_64) || { echo "TOOL MISSING: qemu-user-static; other processors were NOT TESTED"; exit 77; }
[ "$(uname -m)" = x86_64 ] || { echo "TOOL MISSING: a machine with x86-64; nothing is checked on others"; exit 77; }
failed=0
fail() { printf 'FAILED: %s\n' "$*" >&2; failed=1; }

said='' code=0
# emulated PROCESSOR ARGUMENT...: sets `said`, without the emulator's own warnings, and `code`.
emulated() {
  code=0
  said=$("$emulator" -cpu "$1" "$fedbits" "${@:2}" 2>&1 | grep -v '^qemu-x86_64[a-z-]*: warning') || code=${PIPESTATUS[0]}
}

version=$("$fedbits" --version)
level=$(sed -n 's/^built for \(.*\) with .*/\1/p' <<<"$version")
[ -n "$level" ] || fail "--version does not say what the program was built for: $version"

# A processor of 2008, which has SSE4.2 and no AVX.
emulated Nehalem --version
sentence="^fedbits: the program was built for ${level//[()]/.}, and this processor lacks [A-Z].* AVX, .* and [A-Z0-9a-z.-]+; .*build it from source on this machine"
says_sentence() { [ "$code" = 2 ] && [ "$(wc -l <<<"$said")" = 1 ] && grep -qE "$sentence" <<<"$said"; }
says_sentence || fail "on Nehalem the program does not say in one sentence what is missing, or ends with $code in place of 2: $said"
emulated Nehalem run nothing.toml
says_sentence || fail "on Nehalem a command does not say what is missing: $said"

# A processor of 2013, which has all of x86-64-v3. The emulator knows no AVX-512.
emulated Haswell --version
if [ "$level" = x86-64-v3 ]; then
  [ "$code $said" = "0 $version" ] || fail "on Haswell the program does not start, but ends with $code: $said"
elif [ "$code" = 2 ]; then
  grep -q " this processor lacks " <<<"$said" || fail "on Haswell: $said"
  ! grep -qE "\b(SSE4.2|AVX|AVX2|FMA|BMI2)[, ;]" <<<"$said" || fail "what a Haswell has is called missing: $said"
elif [ "$code $said" != "0 $version" ]; then
  fail "on Haswell the program neither starts nor says why: exit code $code: $said"
fi
[ "$failed" = 0 ] && echo "built for $level: the program starts where it can, and says elsewhere what the processor lacks"
exit "$failed"
