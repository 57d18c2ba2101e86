#!/usr/bin/env python3
"""The plan of the study of docs/conjecture-plan.md: its sums hold, a changed, new or missing file is named, and its blocks are the whole grid.

    conjecture_test.py FEDBITS SOURCE

Without a9a and w8a under FEDBITS_DATA the grid is not counted, and the exit code is 77."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FEDBITS, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
SCRIPT = SOURCE / "scripts" / "conjecture.py"


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
        shutil.copytree(SOURCE / "docs" / "conjecture", copy / "docs" / "conjecture")
        shutil.copy(SOURCE / "docs" / "conjecture-plan.md", copy / "docs")
        assert said("check", "--root", copy) == (0, ""), said("check", "--root", copy)
        change(copy / "docs" / "conjecture")
        code, text = said("check", "--root", copy)
        assert code == 1 and expected in text, text


def check_grid():
    names = said("blocks")[1].split()
    for budget in ("5", "1"):
        file = SOURCE / "docs" / "conjecture" / f"convex-{budget}.toml"
        whole = subprocess.run([FEDBITS, "plan", file, "--try", "1"], capture_output=True, text=True, check=True).stdout
        parts = [num_runs_of(said("plan", FEDBITS, name, "--try", "1")) for name in names if f"-{budget}-" in name]
        total = num_runs_of((0, whole))
        assert len(parts) == 4 and tuple(map(sum, zip(*parts))) == total, (parts, total)
        print(f"budget of {budget}%: {total[0]} runs and {total[1]} tuning runs in four blocks")


assert said("check") == (0, ""), said("check")
refuses(lambda folder: (folder / "convex-5.toml").write_text("rounds = 3\n"), "convex-5.toml has the SHA-256")
refuses(lambda folder: (folder / "convex-plan.toml").unlink(), "convex-plan.toml is in docs/conjecture-plan.md and not in docs/conjecture")
refuses(lambda folder: (folder / "more.toml").write_text(""), "more.toml is not in docs/conjecture-plan.md")
data = pathlib.Path(os.environ.get("FEDBITS_DATA", "data")) / "libsvm"
if not (data / "a9a").exists() or not (data / "w8a").exists():
    print("DATA MISSING: the blocks of the study were not counted")
    sys.exit(77)
check_grid()
