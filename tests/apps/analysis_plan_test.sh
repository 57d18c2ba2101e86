#!/usr/bin/env bash
# An analysis plan from the scenario file to the report: it is stored, followed, departed from aloud, and not changed.
#
#   tests/apps/analysis_plan_test.sh FEDBITS
set -euo pipefail

fedbits=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "$1"; exit 1; }
says() { grep -qF -- "$2" "$1" || { cat "$1"; fail "'$2' is missing from $1"; }; }

cat > study.toml <<'TOML'
name   = "planned"
rounds = 30
data   = { name = "mushrooms", rows = 200 }
model  = { kind = "logistic_regression", l2 = "L/1e3" }
local  = { kind = "gradient", batch = 16, learning_rate = "1/(L+l2)" }
partition     = { kind = "similarity", percent = 0, clients = 4 }
compressor.up = { kind = "top_k", k = 4, unit = "gradient" }
feedback.up   = { kind = "ef14" }
evaluate      = { every = 1 }
[sweep]
seeds     = 3
plan_file = "plan.toml"
[[sweep.axis]]
key    = "partition.percent"
values = [0, 50, 100]
[[sweep.axis]]
key    = "compressor.up"
values = [{ label = "top", kind = "top_k", k = 4 }, { label = "two", kind = "top_k", k = 2 }]
TOML
cat > plan.toml <<'TOML'
contrasts = ["two:top"]
classes   = ["sparser", "denser"]
measures  = ["f_gap"]
margins   = ["1.5x"]
levels    = ["100", "0"]
window    = 0.3
TOML

"$fedbits" sweep study.toml --out out --jobs 2 > log 2>&1 || { cat log; fail "the sweep failed"; }
"$fedbits" report out --text > followed 2> errors
says followed "analysis plan plan.toml, SHA-256 $(sha256sum plan.toml | cut -d' ' -f1), stored with 18 of 18 finished runs"
says followed "two (sparser)"
says followed "levels from the least to the most heterogeneous: 100, 0;"
says followed "non-inferiority of A by a margin of 1.5x in f_gap"
says followed "means over the last 30% of the bits"
! grep -q "NOT AS PLANNED" followed errors || fail "nothing departs from the plan"
"$fedbits" export out --differences differences.csv --slopes slopes.csv 2> errors
[ "$(wc -l < differences.csv)" = 13 ] || fail "two levels, three seeds, two kinds of bits: 12 differences"

"$fedbits" report out --text --window 0.2 --contrast top:two --level partition.percent > departed 2> errors
for place in departed errors; do
  says $place "NOT AS PLANNED: --window 0.2 departs from the analysis plan, which has 0.3"
  says $place "NOT AS PLANNED: --contrast top:two departs from the analysis plan, which has two:top"
  says $place "NOT AS PLANNED: --level partition.percent departs from the analysis plan, which does not have it"
done

"$fedbits" explain "$(cut -d, -f21 differences.csv | sed -n 2p)" --out out > explained
says explained '#   contrasts = ["two:top"]'
! grep -q "analysis_plan_text" explained || fail "the plan stands among the constants"

# A changed plan is refused; the store stays as it was.
sed -i 's/0.3/0.4/' plan.toml
for command in sweep run; do
  ! "$fedbits" $command study.toml --out out --again > log 2>&1 || fail "$command accepted a changed plan"
  says log "sweep.plan_file: run"
  says log "restore the plan, or choose another folder with --out"
done
sed -i 's/0.4/0.3/' plan.toml
"$fedbits" sweep study.toml --out out --resume > log 2>&1 || { cat log; fail "the plan is restored"; }

# Runs with the same hashes whatever the plan says, and bytes without one as ever.
sed '/plan_file/d' study.toml > unplanned.toml
"$fedbits" sweep unplanned.toml --out unplanned --jobs 2 > log 2>&1
for store in out unplanned; do "$fedbits" export $store --reproducible --runs $store.csv --rounds $store-rounds.csv 2> /dev/null; done
cmp out.csv unplanned.csv
cmp out-rounds.csv unplanned-rounds.csv
"$fedbits" report unplanned --text > plain 2>&1
! grep -q "analysis plan" plain || fail "a store without a plan has none"
echo "the analysis plan is stored, followed, and not changed"
