#!/usr/bin/env bash
# Runs the quickstart's study with a program for AVX2. On this processor its table is README's, digit by digit; emulated, where the study is
# shorter because it takes thirty times as long, the rounds have the same bytes as on this processor.
#
#   tests/haswell/quickstart_test.sh PROGRAM EMULATED SOURCE
set -euo pipefail

program=$(realpath "$1") emulated=$(realpath "$2") source=$(realpath "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Prints the lines of the table in a text, without indentation.
table() { grep -E '^ *((0\.1|1|100) +)?(none|fp16|top-5%|hard) +[0-9]' "$1" | sed 's/^ *//; s/ *$//'; }

# rounds PROGRAM FOLDER: the first rounds of the study as CSV, in FOLDER.csv.
rounds() {
  "$1" run "$source/scenarios/library/quickstart.toml" --set rounds=5 --set sweep.seeds=1 --out "$2" --quiet &&
    "$1" export "$2" --reproducible --rounds "$2.csv"
}

"$program" run "$source/scenarios/library/quickstart.toml" --out results >said.txt
table "$source/README.md" >expected.txt
table said.txt >table.txt
[ "$(wc -l <expected.txt)" -eq 12 ] || { echo "FAILED: README's table of the quickstart has not 12 lines"; exit 1; }
diff expected.txt table.txt || { echo "FAILED: the table is not README's"; exit 1; }
echo "the table of the quickstart's study is README's"

rounds "$program" native
rounds "$emulated" emulated
cmp native.csv emulated.csv || { echo "FAILED: emulated, the study has other bytes"; exit 1; }
echo "emulated, $(wc -l <emulated.csv) lines of results have the same bytes"
