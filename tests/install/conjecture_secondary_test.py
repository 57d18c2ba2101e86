#!/usr/bin/env python3
"""The secondary end points of the study are those of fedbits: end points, bits to a target, and targets from the tuning runs of a small study. Whether a
curve oscillates is tried on curves made up for each case.

    conjecture_secondary_test.py FEDBITS SOURCE

Without a9a under FEDBITS_DATA no study runs, and the exit code is 77."""
import csv
import lzma
import math
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
FEDBITS, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
sys.path.insert(0, str(SOURCE / "research" / "absolute-compressors"))
from conjecture_study import secondary, why

STUDY = """
name      = "curves"
rounds    = 60
precision = "float64"
data   = { name = "libsvm/a9a", rows = 300 }
model  = { kind = "logistic_regression", l2 = "L/1e3" }
local  = { kind = "sgd", batch = 16, steps = 1, learning_rate = "1/L" }
partition     = { kind = "similarity", percent = 0, clients = 6 }
participation = { kind = "uniform", fraction = 1.0 }
compressor.up = { kind = "top_k", k = 4 }
feedback.up   = { kind = "ef14" }
evaluate      = { every = 1, gradient = "start" }
[sweep]
seeds      = 6
to_bits_of = "top-k"
[sweep.tune]
seeds     = 3
measure   = "f_gap"
budget_of = "top-k"
keys = [
  { key = "local.learning_rate", values = ["1/L", "2/L", "4/L"] },
  { key = "compressor.up.threshold", values = [0.04, 0.16] },
  { key = "feedback.up.eta", values = [0.1, 0.5] },
]
[[sweep.axis]]
key    = "data.name"
values = ["libsvm/a9a"]
[[sweep.axis]]
key    = "feedback.up"
values = [{ label = "ef14", kind = "ef14" }, { label = "econtrol", kind = "econtrol" }]
[[sweep.axis]]
key    = "participation.fraction"
values = [1.0]
[[sweep.axis]]
key    = "local.steps"
values = [1]
[[sweep.axis]]
key    = "partition.percent"
values = [100, 0]
[[sweep.axis]]
key    = "compressor.up"
values = [{ label = "top-k", kind = "top_k", k = 4 }, { label = "hard", kind = "hard_threshold", threshold = 0.04, rule = "threshold" },
          { label = "three-lc", kind = "three_lc" }]
"""


def curve(gaps):
    return [1000 * i for i in range(len(gaps))], gaps


def check_oscillation():
    draw = random.Random(1)
    swings = [1 / (i + 1) + (0.01 if i % 2 else -0.01) for i in range(100)]
    falls = [1 / (i + 1) for i in range(100)]
    noise = [1 + draw.gauss(0, 0.01) for _ in range(100)]
    slow = [2 - 0.01 * i + (0.001 if i % 2 else -0.001) for i in range(100)]
    assert [secondary.oscillates(curve(gaps)) for gaps in (swings, falls, noise, slow)] == [True, False, False, False]
    assert not secondary.oscillates(curve([1, 2, 1, 2, 1, 2, 1, 2, 1, 2])), "fewer than five evaluations in the window"
    print("a period of two oscillates; a decrease, noise, and a swing smaller than the progress do not")


def reported(store, target):
    """Returns {(level, feedback, method): (runs that arrived, median bits)} of a report."""
    words = [FEDBITS, "report", store, "--text", "--measure", "f_gap", "--target", repr(target)]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found, level = {}, ()
    for line in text[text.index("uplink bits until f_gap"):].splitlines():
        at = re.match(r"partition.percent = (\d+), .*feedback.up=(\w+)", line)
        level = at.groups() if at else level
        cell = re.search(r"(top-k|hard|three-lc) +(\d+) of 6 +(?:([0-9.]+) (kbit|Mbit|bit)|not reached)", line)
        if cell:
            scale = {"kbit": 1e3, "Mbit": 1e6, "bit": 1}.get(cell[4], 1)
            found[(*level, cell[1])] = int(cell[2]), float(cell[3]) * scale if cell[3] else math.inf
    return found


def check_arrivals(store, lines):
    """Compares arrivals and medians with the report's, at the target of each cell."""
    for line in lines:
        arrived, median = reported(store, float(line["target"]))[(line["partition.percent"], line["feedback.up"], line["compressor.up"])]
        assert int(line["arrived"]) == arrived, (line, arrived)
        assert math.isclose(float(line["median_bits"]), median, rel_tol=1e-3), (line, median)
    some = {int(line["arrived"]) for line in lines}
    assert len(some) > 1, f"every cell has the same number of arrivals, {some}: censoring is not tested"
    print(f"bits to the target of {len(lines)} cells are those of the report; {sorted(some)} runs arrive")


def check_targets(store, lines):
    """Takes the targets out of an export of the tuning runs, and compares them."""
    tuning, curves = why.store_tables(FEDBITS, store / "tuning")
    study = {tuple(run[key] for key in secondary.CELL): run for run in why.store_tables(FEDBITS, store)[0]}
    for line in lines:
        partner = (*(line[key] for key in secondary.CELL[:-1]), secondary.PARTNERS.get(line["compressor.up"], line["compressor.up"]))
        chosen = [run for run in tuning if tuple(run[key] for key in secondary.CELL) == partner and run["stop.bits_up"]
                  and all(run[key] == study[partner][key] for key in ("local.learning_rate", "feedback.up.eta"))]
        assert len({run["seed"] for run in chosen}) == len(chosen) == 3, (partner, chosen)
        target = statistics.median(why.windowed_gap(curves[run["run"]]) for run in chosen)
        assert math.isclose(float(line["target"]), target, rel_tol=1e-9), (line, target)
    assert len({line["target"] for line in lines}) == 8, "a target is that of a level, a feedback, and a partner"
    print("targets are the medians of the partners' tuning runs")


def check_study():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "curves.toml").write_text(STUDY)
        subprocess.run([FEDBITS, "sweep", folder / "curves.toml", "--out", folder / "store"], check=True, capture_output=True)
        subprocess.run([FEDBITS, "export", folder / "store", "--reproducible", "--runs", folder / "runs.csv"], check=True, capture_output=True)
        (folder / "runs.csv.xz").write_bytes(lzma.compress((folder / "runs.csv").read_bytes()))
        secondary.export_block(folder / "store", folder)
        lines = list(csv.DictReader((folder / "secondary.csv").open()))
        assert len(lines) == 12 and all(line["runs"] == "6" and line["refused"] == "0" and int(line["updates"]) > 0 for line in lines), lines
        check_arrivals(folder / "store", lines)
        check_targets(folder / "store", lines)


check_oscillation()
if not (pathlib.Path(os.environ.get("FEDBITS_DATA", "data")) / "libsvm" / "a9a").exists():
    print("DATA MISSING: the secondary end points of a study were not compared")
    sys.exit(77)
check_study()
