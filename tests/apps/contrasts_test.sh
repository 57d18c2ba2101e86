#!/usr/bin/env bash
# Repeats the analysis of contrasts of small studies with SciPy; see contrasts.py. It is skipped, with exit code 77, where SciPy is missing.
# PYTHON names an interpreter that has it.
#
#   tests/apps/contrasts_test.sh FEDBITS SOURCE
set -euo pipefail

fedbits=$(realpath "$1") source=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OMP_NUM_THREADS=1

# The first Python on the path need not be Debian's.
python=
for candidate in ${PYTHON:+"$PYTHON"} python3 /usr/bin/python3; do
  ! "$candidate" -c 'import scipy' 2>/dev/null || { python=$candidate; break; }
done
[ -n "$python" ] || { echo "SCIPY MISSING: contrasts were NOT COMPARED with SciPy; python3-scipy runs this test"; exit 77; }

# study NAME SEEDS LEVELS FEEDBACKS [BETWEEN]: three methods; `wild` has so large a step that it ends worse than it began, or diverges.
study() {
  cat > "$1.toml" <<TOML
name   = "$1"
rounds = 40
data   = { name = "mushrooms", rows = 300, test_fraction = 0.2 }
model  = { kind = "logistic_regression", l2 = "L/1e3" }
local  = { kind = "gradient", batch = 16, learning_rate = "1/(L+l2)" }
partition     = { kind = "similarity", percent = 0, clients = 6 }
compressor.up = { kind = "top_k", k = 4, unit = "gradient" }
feedback.up   = { kind = "ef14" }
evaluate      = { every = 1 }
[sweep]
seeds = $2
[[sweep.axis]]
key    = "feedback.up"
values = [$4]
[[sweep.axis]]
key    = "partition.percent"
values = [$3]
[[sweep.axis]]
key    = "compressor.up"
zip    = "method"
values = [{ label = "top", kind = "top_k", k = 4 }, { label = "hard", kind = "hard_threshold", threshold = 0.05 },
          { label = "wild", kind = "random_k", k = 4 }]
[[sweep.axis]]
key    = "local.learning_rate"
zip    = "method"
values = ["1/(L+l2)", "1/(L+l2) + 0.0", "1000/(L+l2)"]
TOML
  "$fedbits" sweep "$1.toml" --out "$1" --jobs 2 > "$1.log" 2>&1 || [ $? = 1 ]  # diverged runs end with 1
  "$fedbits" export "$1" --reproducible --rounds "$1/rounds.csv" --runs "$1/runs.csv" --differences "$1/differences.csv" \
    --slopes "$1/slopes.csv" --contrast "hard + 1/(L+l2) + 0.0:top + 1/(L+l2)" --contrast "wild + 1000/(L+l2):top + 1/(L+l2)" \
    --classes absolute:contraction --margin 1.1x --margin 1pt --measure f_gap --measure test_accuracy --window 0.3 ${5:+--between "$5"}
  "$python" -B "$source/tests/apps/contrasts.py" "$1" 0.3
}

study exact 6 "0, 40, 100" '{ label = "ef14", kind = "ef14" }, { label = "ef21", kind = "ef21" }' feedback.up=ef14:ef21
study drawn 23 "0, 100" '{ label = "ef14", kind = "ef14" }'
grep -q ',1,0,' exact/differences.csv || { echo "no value was capped: the study no longer tests the bound of diverged runs"; exit 1; }
grep -q 'feedback.up=ef14:ef21,feedback.up=ef21$' exact/slopes.csv || { echo "no slopes were compared between feedbacks"; exit 1; }
