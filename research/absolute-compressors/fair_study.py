#!/usr/bin/env python3
"""Checks, prices and runs the second study, whose plan is second/plan.md. Needs nothing but Python and fedbits.

The commands, each after `python3 research/absolute-compressors/`:

    fair_study.py hashes                    the table of SHA-256 sums that the plan contains
    fair_study.py check                     compares the files with the sums in the plan
    fair_study.py blocks                    the blocks, in the order in which they run, and which of them are exported
    fair_study.py plan FEDBITS BLOCK ...    what a block costs; further arguments are those of fedbits
    fair_study.py run FEDBITS BLOCK ...     plays a block, or continues it; further arguments are those of fedbits
    fair_study.py export FEDBITS BLOCK      writes the block's tables, compressed, into second/results
    fair_study.py next FEDBITS SECONDS ...  plays and exports blocks in their order until the time is up
    fair_study.py page                      docs/conjecture.md, its figures and the answer in README.md, from the exported blocks

A block is one scenario file on one of its sets of seeds. It has a store, fedbits-out/fair/BLOCK unless --out says otherwise. Nothing runs if a file
has changed."""
import argparse
import csv
import hashlib
import io
import lzma
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import typing

import fair_study_page

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path("research") / "absolute-compressors" / "second"
PLAN = FOLDER / "plan.md"
PAGE = pathlib.Path("docs") / "conjecture.md"
STORES = pathlib.Path("fedbits-out") / "fair"
FIRST_SEED = 11  # of the first repetition; the others follow in steps of ten
# What is repeated and how often, in the order in which it runs, and what runs once and before it.
REPETITIONS = {"core-5": 5, "core-2": 5, "both-5": 5, "target": 5, "images": 3, "feedbacks-5": 5, "sign-5": 5, "decay-5": 5}
ONCE = ("forecast",)
# Of the tables of fedbits, what the page reads.
RUN_COLUMNS = ("run", "seed", "status", "rounds", "bits_up", "bits_down", "f_gap", "train_loss", "test_accuracy", "zeta_sq", "checksum", "stop.f_gap", "stop.bits_up", "stop.bits",
               "local.learning_rate", "compressor.up.ratio", "compressor.up.threshold", "compressor.up.sparsity", "compressor.up.step",
               "compressor.up.levels", "feedback.up.eta")
DIFFERENCE_COLUMNS = ("measure", "bits", "a", "b", "level", "seed", "zeta_sq", "zeta_sq_optimum", "value_a", "value_b", "difference", "capped_a", "capped_b",
                      "budget_bits", "evaluations", "run_a", "run_b", "why")
AXES = ("data.name", "local.steps", "participation.fraction", "feedback.up", "partition.percent", "partition.alpha", "compressor.up")


class Block(typing.NamedTuple):
    """A scenario file on one set of seeds."""
    file: str
    seed: int = 0  # 0 = the file's own

    def settings(self):
        return ["--set", f"seed={self.seed}"] if self.seed else []


def blocks():
    """Returns all blocks by name, in the order in which they run: one file after another, each with all its repetitions."""
    result = {name: Block(f"{name}.toml") for name in ONCE}
    for name, repetitions in REPETITIONS.items():
        for repetition in range(repetitions):
            result[f"{name}-{repetition + 1}"] = Block(f"{name}.toml", FIRST_SEED + 10 * repetition)
    return result


def sums(root):
    """Returns the SHA-256 sums of the files of the study by name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted((root / FOLDER).glob("*.toml"))}


def problems(root):
    """Returns what differs between the files and the plan."""
    written = dict(re.findall(r"^\| `([^`]+\.toml)` \| `([0-9a-f]{64})` \|$", (root / PLAN).read_text(), re.MULTILINE))
    found = sums(root)
    texts = [f"{name} is not in {PLAN}" for name in found if name not in written]
    texts += [f"{name} is in {PLAN} and not in {FOLDER}" for name in written if name not in found]
    texts += [f"{name} has the SHA-256 {digest}, the plan says {written[name]}" for name, digest in found.items() if digest != written.get(name, digest)]
    return texts


def path_of(root, block, table):
    return root / FOLDER / "results" / f"{block}-{table}.csv.xz"


def play(root, command, fedbits, block, out, more):
    """Returns the exit code of fedbits for a block."""
    part = blocks()[block]
    words = [fedbits, "sweep" if command == "run" else "plan", str(root / FOLDER / part.file), *part.settings()]
    if command == "run":
        words += ["--resume", "--out", str(out)]
    return subprocess.call(words + more)


def kept(path, columns):
    """Returns the columns of a table of fedbits that are kept, as CSV; columns without a value in any line are left out."""
    with open(path, newline="") as file:
        lines = list(csv.DictReader(file))
    names = [name for name in (*AXES, *columns) if any(line.get(name) for line in lines)]
    text = io.StringIO()
    table = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    table.writerows(lines)
    return text.getvalue()


def export(root, fedbits, block, out):
    """Writes the tables of a block that is whole; returns an exit code."""
    with tempfile.TemporaryDirectory() as folder:
        runs, differences, slopes = (pathlib.Path(folder) / name for name in ("runs.csv", "differences.csv", "slopes.csv"))
        words = [fedbits, "export", str(out), "--runs", str(runs), "--reproducible"]
        if block not in ONCE:
            words += ["--differences", str(differences), "--slopes", str(slopes)]
        if subprocess.call(words, stdout=subprocess.DEVNULL) != 0:
            return 1
        texts = {"runs": kept(runs, RUN_COLUMNS)}
        if block not in ONCE:
            texts["differences"] = kept(differences, DIFFERENCE_COLUMNS)
    (root / FOLDER / "results").mkdir(exist_ok=True)
    for table, text in texts.items():
        path_of(root, block, table).write_bytes(lzma.compress(text.encode(), preset=9))
    return write_forecast(root, fedbits, out) if block == "forecast" else 0


def write_forecast(root, fedbits, out):
    """Writes the predicted log ratio of every cell, 2 log(mean over rounds of |u|_1) - log(mean over the last fifth of |u|_1^2), as the plan defines it."""
    with tempfile.TemporaryDirectory() as folder:
        rounds, runs = pathlib.Path(folder) / "rounds.csv", pathlib.Path(folder) / "runs.csv"
        if subprocess.call([fedbits, "export", str(out), "--rounds", str(rounds), "--runs", str(runs), "--reproducible"], stdout=subprocess.DEVNULL) != 0:
            return 1
        with open(rounds, newline="") as file:
            lines = list(csv.DictReader(file))
        with open(runs, newline="") as file:
            steps = {line["run"]: line["local.learning_rate"] for line in csv.DictReader(file)}
    axes = [name for name in AXES if name in lines[0]]
    cells = {}
    for line in lines:
        if line["update_l1"]:
            places = cells.setdefault(tuple(line[name] for name in axes), {}).setdefault(line["run"], [])
            places.append((int(line["round"]), float(line["update_l1"]), float(line["update_l1_sq"])))
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*axes, "step", "forecast"])
    for cell, of_runs in cells.items():
        table.writerow([*cell, steps[next(iter(of_runs))], f"{sum(map(forecast, of_runs.values())) / len(of_runs):.4f}"])
    (root / FOLDER / "results" / "forecast.csv").write_text(text.getvalue())
    return 0


def forecast(places):
    """Returns the predicted log ratio of one run from its (round, l1, l1 squared)."""
    last = max(place for place, _, _ in places)
    late = [square for place, _, square in places if place > 0.8 * last]
    return 2 * math.log(sum(size for _, size, _ in places) / len(places)) - math.log(sum(late) / len(late))


def play_next(root, fedbits, seconds, more):
    """Plays and exports blocks in their order; begins none after the time is up."""
    end = time.monotonic() + seconds
    for block in blocks():
        if path_of(root, block, "runs").exists():
            continue
        if time.monotonic() > end:
            return 0
        print(f"== {block}", flush=True)
        begin = time.monotonic()
        code = play(root, "run", fedbits, block, STORES / block, more) or export(root, fedbits, block, STORES / block)
        print(f"== {block}: {time.monotonic() - begin:.0f} s, exit code {code}", flush=True)
        if code:
            return code
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="another tree")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("hashes", "check", "blocks", "page"):
        commands.add_parser(name)
    for name in ("plan", "run", "export"):
        command = commands.add_parser(name)
        command.add_argument("fedbits")
        command.add_argument("block", choices=list(blocks()))
        command.add_argument("--out", type=pathlib.Path, help="the block's store")
    following = commands.add_parser("next")
    following.add_argument("fedbits")
    following.add_argument("seconds", type=float)
    arguments, more = parser.parse_known_args()
    root = arguments.root.resolve()
    if more and arguments.command not in ("plan", "run", "next"):
        parser.error(f"unknown: {' '.join(more)}")
    if arguments.command == "hashes":
        print("\n".join(f"| `{name}` | `{digest}` |" for name, digest in sums(root).items()))
        return 0
    if arguments.command == "blocks":
        for name in blocks():
            print(name, "exported" if path_of(root, name, "runs").exists() else "")
        return 0
    if arguments.command == "page":
        fair_study_page.write(root, root / PAGE, root / FOLDER / "results", REPETITIONS)
        return 0
    wrong = problems(root)
    for text in wrong:
        print(text, file=sys.stderr)
    if wrong or arguments.command == "check":
        return 1 if wrong else 0
    if arguments.command == "next":
        return play_next(root, arguments.fedbits, arguments.seconds, more)
    out = arguments.out or STORES / arguments.block
    if arguments.command == "export":
        return export(root, arguments.fedbits, arguments.block, out)
    return play(root, arguments.command, arguments.fedbits, arguments.block, out, more)


if __name__ == "__main__":
    sys.exit(main())
