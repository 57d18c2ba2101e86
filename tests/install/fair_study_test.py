#!/usr/bin/env python3
"""The second study's plan: its sums hold, a changed, new or missing file is named, its blocks are the whole study on seeds of their own, and its
forecasts cover every cell.

    fair_study_test.py SOURCE"""
import csv
import itertools
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "research" / "absolute-compressors"))
import fair_study

FOLDER = SOURCE / fair_study.FOLDER
TUNING = 1_000_000  # from a seed of the study to its tuning seed


def said(root, *words):
    done = subprocess.run([sys.executable, "-B", fair_study.__file__, "--root", str(root), *words], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout + done.stderr


def refuses(change, expected):
    """Makes a change in a copy of the plan and its files, which is then named, and keeps blocks from running."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        shutil.copytree(FOLDER, root / fair_study.FOLDER)
        assert said(root, "check") == (0, "")
        change(root / fair_study.FOLDER)
        for words in (("check",), ("run", "no-program", "core-5-1"), ("next", "no-program", "1")):
            code, text = said(root, *words)
            assert code == 1 and expected in text, (words, code, text)


def edit(folder):
    path = folder / "core-5.toml"
    path.write_text(path.read_text().replace("percent = 0", "percent = 1"))


def scenario(name):
    return tomllib.loads((FOLDER / name).read_text())


assert said(SOURCE, "check") == (0, ""), said(SOURCE, "check")
refuses(edit, "core-5.toml has the SHA-256")
refuses(lambda folder: (folder / "more.toml").write_text(""), "more.toml is not in")
refuses(lambda folder: (folder / "sign-5.toml").unlink(), "sign-5.toml is in")

# Every file that is not a plan, nor the rehearsal, runs; the seeds of the study and of its tuning meet nowhere.
files = {path.name for path in FOLDER.glob("*.toml") if not path.stem.endswith("-plan")} - {"rehearsal.toml"}
blocks = fair_study.blocks()
assert {block.file for block in blocks.values()} == files
for file in files:
    sweep, used = scenario(file)["sweep"], set()
    for block in blocks.values():
        if block.file != file:
            continue
        first = block.seed or scenario(file)["seed"]
        seeds = {*range(first, first + sweep["seeds"]), *range(first + TUNING, first + TUNING + sweep["tune"]["seeds"])}
        assert not seeds & used, (file, sorted(seeds & used))
        used |= seeds

# Equal numbers of candidates for every operator of a file.
for file in files - {"forecast.toml"}:
    tune = scenario(file)["sweep"]["tune"]
    keys = {one["key"].rsplit(".")[-1]: len(one["values"]) for one in tune.get("keys", [{"key": tune.get("key", ""), "values": tune.get("values", [])}])}
    operators = next(axis for axis in scenario(file)["sweep"]["axis"] if axis["key"] == "compressor.up")["values"]
    knobs = {"top_k": "ratio", "hard_threshold": "threshold", "three_lc": "sparsity", "absolute_rounding": "step", "qsgd": "levels"}
    counts = {one["label"]: keys["learning_rate"] * keys.get(knobs.get(one["kind"], ""), 1) for one in operators if one["label"] != "none"}
    assert set(counts.values()) == {12 if file == "images.toml" else 20}, (file, counts)

# A forecast for every cell of the core.
axes = {axis["key"]: [str(value).removesuffix(".0") for value in axis["values"]] for axis in scenario("core-5.toml")["sweep"]["axis"]}
names = ("data.name", "local.steps", "participation.fraction", "partition.percent")
with open(FOLDER / "results" / "forecast.csv", newline="") as lines:
    forecasts = {tuple(line[name] for name in names): float(line["forecast"]) for line in csv.DictReader(lines)}
assert set(forecasts) == set(itertools.product(*(axes[name] for name in names)))
assert all(abs(value) < 2 for value in forecasts.values())
# Updates of one size to the end are no advantage for either; updates that shrink are one for Top-k, clients that differ one for the threshold.
assert abs(fair_study.forecast([(place, 3.0, 9.0) for place in range(1, 101)])) < 1e-12
assert fair_study.forecast([(place, 1 / place, 1 / place**2) for place in range(1, 101)]) > 0
assert fair_study.forecast([(place, 2.0, 5.0) for place in range(1, 101)]) < 0
