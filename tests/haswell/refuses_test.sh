#!/usr/bin/env bash
# Runs a program that holds one instruction of AVX-512: the emulated processor ends it as an illegal instruction.
#
#   tests/haswell/refuses_test.sh PROGRAM
set -uo pipefail

readonly illegal_instruction=132 # 128 and the number of SIGILL
said=$("$1" 2>&1)
status=$?
[ "$status" -eq "$illegal_instruction" ] && echo "the emulated processor refuses AVX-512" && exit 0
printf '%s\nFAILED: %s ended with %d, not with %d (an illegal instruction)\n' "$said" "$1" "$status" "$illegal_instruction"
exit 1
