#!/usr/bin/env python3
"""The plan of the first study of absolute compressors: its sums hold, a changed, new or missing file is named, and its blocks are the whole grid.

The tables of exported blocks are adjusted over the same families as fedbits adjusts one store, and the blocks that are there are whole.

    conjecture_test.py FEDBITS SOURCE

Without a9a, w8a, Fashion-MNIST and CIFAR-10 under FEDBITS_DATA the grid is not counted, and the exit code is 77."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(sys.argv[2]).resolve() / "research" / "absolute-compressors"))
import conjecture
from conjecture_study import descriptive, results, why

FEDBITS, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
SCRIPT = SOURCE / "research" / "absolute-compressors" / "conjecture.py"


def said(*words):
    done = subprocess.run([sys.executable, "-B", str(SCRIPT), *map(str, words)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def num_runs_of(answer):
    """Returns the runs and the tuning runs that a plan counts."""
    code, text = answer
    assert code == 0, text
    return tuple(int(re.search(pattern, text, re.MULTILINE)[1]) for pattern in (r"^(\d+) runs, ", r"before them about (\d+) tuning runs"))


def refuses(change, expected):
    """Checks that a copy of the study with a change does not pass."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        shutil.copytree(SOURCE / conjecture.FOLDER, copy / conjecture.FOLDER)
        assert said("--root", copy, "check") == (0, ""), said("--root", copy, "check")
        change(copy / conjecture.FOLDER)
        code, text = said("--root", copy, "check")
        assert code == 1 and expected in text, text


# A study of four blocks, each with contrasts of its own.
STUDY = """
name   = "joined"
rounds = 30
data   = { name = "libsvm/a9a", rows = 300 }
model  = { kind = "logistic_regression", l2 = "L/1e3" }
local  = { kind = "gradient", batch = 16, learning_rate = "1/L" }
partition     = { kind = "similarity", percent = 0, clients = 6 }
compressor.up = { kind = "top_k", k = 4, unit = "gradient" }
feedback.up   = { kind = "ef14" }
evaluate      = { every = 1 }
[sweep]
seeds = 6
[[sweep.axis]]
key    = "local.learning_rate"
values = ["1/L", "2/L"]
[[sweep.axis]]
key    = "feedback.up"
values = [{ label = "ef14", kind = "ef14" }, { label = "ef21", kind = "ef21" }]
[[sweep.axis]]
key    = "partition.percent"
values = [100, 40, 0]
[[sweep.axis]]
key    = "compressor.up"
values = [{ label = "top", kind = "top_k", k = 4 }, { label = "hard", kind = "hard_threshold", threshold = 0.05 },
          { label = "three", kind = "three_lc" }]
"""
ADJUSTED = "p_holm", "p_flip_holm", "p_non_inferior_adjusted", "p_superior_adjusted"


def check_families():
    """Exports a small study as a block, adjusts its p-values again, and compares them with those that fedbits wrote."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "joined.toml").write_text(STUDY)
        subprocess.run([FEDBITS, "sweep", folder / "joined.toml", "--out", folder / "store"], check=True, capture_output=True)
        contrasts = ["--contrast", "hard:top", "--contrast", "three:top", "--between", "feedback.up=ef14:ef21", "--margin", "1.1x", "--measure", "f_gap",
                     "--method", "compressor.up", "--level", "partition.percent"]
        with_contrasts = folder / "fedbits"
        with_contrasts.write_text(f'#!/bin/sh\nexec "{FEDBITS}" "$@" {" ".join(contrasts)}\n')
        with_contrasts.chmod(0o755)
        try:
            results.export_block(with_contrasts, folder / "store", folder / "results" / "block", 217)
        except ValueError as error:
            assert "216 of 217 runs" in str(error), error
        else:
            raise AssertionError("a block without one of its runs was exported")
        results.export_block(with_contrasts, folder / "store", folder / "results" / "block", 216)
        written = results.read_table(folder / "results" / "block" / "slopes.csv.xz")
        joined = results.joined_slopes(folder / "results", ["block"])
    assert len(written) == len(joined) and any(line["between"] for line in joined), written
    compared = 0
    for line, again in zip(written, joined):
        for column in ADJUSTED:
            if line[column]:
                assert abs(float(line[column]) - float(again[column])) <= 1e-12, (column, line, again)
                compared += 1
        if not line["between"]:
            assert {"better": "for", "worse": "against", "no claim": "no claim"}[line["verdict"]] == results.verdict_of(again), line
            assert line["result"] == results.margin_result_of(again), line
    assert any(float(line["p"]) < 0.05 for line in joined), "no slope is steep enough to test an adjustment"
    print(f"{compared} adjusted p-values are those of fedbits")


def leaves(table, path=()):
    """Returns {dotted key: value} of a nested table."""
    if not isinstance(table, dict):
        return {".".join(path): table}
    return {key: value for name, inner in table.items() for key, value in leaves(inner, (*path, name)).items()}


def ran_as_planned(name, block, runs):
    """Checks that the exported runs of a block have the settings of its scenario file, but for what is an axis, is tuned, or follows from the budget."""
    scenario = tomllib.loads((SOURCE / conjecture.FOLDER / block.file).read_text())
    sweep = scenario.pop("sweep")
    free = [axis["key"] for axis in sweep["axis"]] + [tuned["key"] for tuned in sweep.get("tune", {}).get("keys", [])] + ["rounds", "seed"]
    fixed = {key: value for key, value in leaves(scenario).items() if not any(key == one or key.startswith(f"{one}.") for one in free)}
    assert len(fixed) >= 10, (name, fixed)
    for run in runs:
        ran = leaves(json.loads(run["configuration"]))
        for key, value in fixed.items():
            assert ran.get(key) == value, f"{name}: the exported run {run['run']} has {key} = {ran.get(key)}, the scenario file says {value}"


def check_results():
    """Checks that the blocks which are exported have all their runs under the plan of today, and that their tables can be made."""
    folder = SOURCE / conjecture.FOLDER / "results"
    for study, planned in conjecture.studies().items():
        for name, block in planned.items():
            if not (folder / name).exists() or name in why.BLOCKS:
                continue
            runs = results.read_table(folder / name / "runs.csv.xz")
            assert len({run["run"] for run in runs}) == len(runs) == block.num_runs(), (name, len(runs))
            first = tomllib.loads((SOURCE / conjecture.FOLDER / block.file).read_text())["seed"]
            assert {int(run["seed"]) for run in runs} == set(range(first, first + block.sweep()["seeds"])), name
            ran_as_planned(name, block, runs)
            code, text = said("tables", study)
            assert code == 0 and descriptive.TITLES.get(name, name) in text and "has not run" not in text, text
            print(f"{name}: {len(runs)} runs")


def check_grid():
    names = said("blocks")[1].split()
    for budget in ("5", "1"):
        file = SOURCE / conjecture.FOLDER / f"convex-{budget}.toml"
        whole = subprocess.run([FEDBITS, "plan", file, "--try", "1"], capture_output=True, text=True, check=True).stdout
        parts = [num_runs_of(said("plan", FEDBITS, name, "--try", "1")) for name in names if f"-{budget}-" in name]
        total = num_runs_of((0, whole))
        assert len(parts) == 4 and tuple(map(sum, zip(*parts))) == total, (parts, total)
        print(f"budget of {budget}%: {total[0]} runs and {total[1]} tuning runs in four blocks")
    for study, planned in conjecture.studies().items():
        if study not in ("5", "1"):
            for name, block in planned.items():
                code, text = said("plan", FEDBITS, name, "--try", "1")
                assert code == 0 and f"\n{block.num_runs()} runs, " in text, (name, block.num_runs(), text)


assert said("check") == (0, ""), said("check")
refuses(lambda folder: (folder / "convex-5.toml").write_text("rounds = 3\n"), "convex-5.toml has the SHA-256")
refuses(lambda folder: (folder / "convex-plan.toml").unlink(), "convex-plan.toml is in research/absolute-compressors/first/plan.md and not in research/absolute-compressors/first")
refuses(lambda folder: (folder / "more.toml").write_text(""), "more.toml is not in research/absolute-compressors/first/plan.md")
data = pathlib.Path(os.environ.get("FEDBITS_DATA", "data")) / "libsvm"
if not all(path.exists() for path in (data / "a9a", data / "w8a", data.parent / "fashion-mnist", data.parent / "cifar10")):
    print("DATA MISSING: the blocks of the study were not counted")
    sys.exit(77)
check_grid()
check_families()
check_results()
