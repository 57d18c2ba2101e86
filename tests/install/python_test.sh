#!/usr/bin/env bash
# The Python example on a store of two runs; skipped, with exit code 77, where Debian's python3-pandas or python3-matplotlib are missing.
#
#   tests/install/python_test.sh FEDBITS SOURCE
set -euo pipefail

fedbits=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export MPLCONFIGDIR="$work" MPLBACKEND=Agg

# The first Python on the path need not be Debian's.
python=
for candidate in python3 /usr/bin/python3; do
  ! "$candidate" -c 'import pandas, matplotlib' 2>/dev/null || { python=$candidate; break; }
done
[ -n "$python" ] || { echo "PANDAS MISSING: python3-pandas and python3-matplotlib run this test"; exit 77; }
cat >two.toml <<'TOML'
name = "two"
rounds = 20
data = { name = "mushrooms", rows = 400 }
model = { kind = "logistic_regression", l2 = 0.001 }
compressor.up = { kind = "top_k", ratio = 0.05 }
feedback.up = { kind = "ef14" }
sweep.seeds = 2
TOML
"$fedbits" run two.toml --out out -q
"$fedbits" export out --rounds rounds.csv --runs runs.csv
"$python" "$source/examples/read_results.py" out loss.png | tee printed.txt
[ "$(head -c 4 loss.png | tail -c 3)" = PNG ]

# The last line of each run says the same as the exports: its bits in all, and its loss.
"$python" - <<'PY'
import csv
runs = {row["run"]: row for row in csv.DictReader(open("runs.csv"))}
printed = {line.split()[0]: line.split()[1:] for line in open("printed.txt") if line.split()[0] in runs}
assert len(printed) == len(runs) == 2, printed
for run, (bits_up, loss, total) in printed.items():
    assert int(total) == int(runs[run]["bits_up"]), (run, total)
    assert abs(float(loss) - float(runs[run]["train_loss"])) < 1e-5, (run, loss)
PY
