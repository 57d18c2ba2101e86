#!/usr/bin/env python3
"""Checks, prices and runs the first study, whose plan is first/plan.md. Needs nothing but Python and fedbits, but for `mixed`.

The commands, each after `python3 research/absolute-compressors/`:

    conjecture.py hashes                   the table of SHA-256 sums that the plan contains
    conjecture.py check                    compares the files with the sums in the plan
    conjecture.py blocks                   the blocks of the study, in the order in which they run
    conjecture.py plan FEDBITS BLOCK ...   what a block costs; further arguments are those of fedbits
    conjecture.py run FEDBITS BLOCK ...    plays a block, or continues it; further arguments are those of fedbits
    conjecture.py export FEDBITS BLOCK     writes the block's tables, compressed, into first/results/BLOCK
    conjecture.py tables STUDY             the tables of a study's exported blocks as Markdown: 5 and 1 are budgets of the convex
                                           part, every other block is a study of its own, and why-* and
                                           descriptive-* have no tests
    conjecture.py mixed                    fits the mixed models of the exported blocks into first/results/mixed-*.csv (needs R
                                           with lmerTest)
    conjecture.py page                     first/page.md, its tables and figures, from all exported blocks

Each block has a store, fedbits-out/conjecture/BLOCK unless --out says otherwise. Nothing runs if a file has changed."""
import argparse
import hashlib
import itertools
import json
import math
import pathlib
import re
import subprocess
import sys
import tomllib
import typing

from conjecture_study import descriptive, mixed as mixed_models, page as study_page, results, secondary, why

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path("research") / "absolute-compressors" / "first"
PLAN = FOLDER / "plan.md"
RESULTS = ROOT / FOLDER / "results"
STORES = pathlib.Path("fedbits-out") / "conjecture"
BUDGETS = ("5", "1")
PROBLEMS = ("libsvm/a9a", "libsvm/w8a")
STEPS = (1, 10)
ROBUSTNESS = ("robust-dirichlet", "robust-quadratics", "robust-momentum", "robust-published")
NETWORKS = ("network-core", "network-low-rank", "network-grid", "cifar-core")
DESCRIPTIVE = descriptive.BLOCKS
# At the file's own step size Top-k diverges in one cell of these blocks, which then has no budget (first/plan.md, the additions).
CHANGED = {"a9a-1-steps-10": ("local.learning_rate=0.25/L",), "cifar-core": ("local.learning_rate=0.025",)}


class Block(typing.NamedTuple):
    """A part of a scenario file that runs by itself: the combinations that have the fixed labels, with changed settings where the plan says so."""
    file: str
    fixed: dict = {}
    changed: tuple = ()  # words for --set

    def sweep(self):
        with open(ROOT / FOLDER / self.file, "rb") as file:
            return tomllib.load(file)["sweep"]

    def settings(self):
        """Returns the words that leave out all other labels of the fixed axes and change settings."""
        others = [f"{{{axis['key']}={json.dumps(value)}}}" for axis in self.sweep()["axis"] if axis["key"] in self.fixed
                  for value in axis["values"] if value != self.fixed[axis["key"]]]
        excluded = [f"sweep.exclude=[{','.join(others)}]"] if others else []
        return [word for setting in (*excluded, *self.changed) for word in ("--set", setting)]

    def grids(self):
        """Returns the tuned keys with the values at which their grids begin."""
        return {tuned["key"]: tuned["values"] for tuned in self.sweep().get("tune", {}).get("keys", [])}

    def num_runs(self):
        sweep = self.sweep()
        return sweep["seeds"] * math.prod(len(axis["values"]) for axis in sweep["axis"] if axis["key"] not in self.fixed)


def studies():
    """Returns the studies by name, each with its blocks: p-values are adjusted over all blocks of a study. The order is that in which they run: in
    the convex part the large budget first, and one local step before ten."""
    result = {}
    for budget in BUDGETS:
        names = {f"{problem.split('/')[1]}-{budget}-steps-{steps}": {"data.name": problem, "local.steps": steps} for steps in STEPS for problem in PROBLEMS}
        result[budget] = {name: Block(f"convex-{budget}.toml", fixed, CHANGED.get(name, ())) for name, fixed in names.items()}
    for name in ROBUSTNESS + NETWORKS + DESCRIPTIVE + why.BLOCKS:
        result[name] = {name: Block(f"{name}.toml", changed=CHANGED.get(name, ()))}
    return result


def blocks():
    """Returns all blocks by name."""
    return {name: block for study in studies().values() for name, block in study.items()}


def sums(root):
    """Returns the SHA-256 sums of the files of the study by name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted((root / FOLDER).glob("*.toml"))}


def problems(root):
    """Returns what differs between the files and the plan."""
    written = dict(re.findall(r"^\| `([^`]+\.toml)` \| `([0-9a-f]{64})` \|$", (root / PLAN).read_text(), re.MULTILINE))
    found = sums(root)
    texts = [f"{name} is not in {PLAN}" for name in found if name not in written]
    texts += [f"{name} is in {PLAN} and not in {FOLDER}" for name in written if name not in found]
    for name, digest in found.items():
        if digest != written.get(name, digest):
            texts.append(f"{name} has the SHA-256 {digest}, the plan says {written[name]}")
    return texts


def play(command, fedbits, block, out, more):
    """Returns the exit code of fedbits for a block."""
    part = blocks()[block]
    words = [fedbits, "sweep" if command == "run" else "plan", str(ROOT / FOLDER / part.file), *part.settings()]
    if command == "run":
        words += ["--resume", "--out", str(out)]
    return subprocess.call(words + more)


def export(fedbits, block, out):
    """Writes the tables of a block that is whole."""
    kind = why if block in why.BLOCKS else results
    try:
        kind.export_block(fedbits, out, RESULTS / block, blocks()[block].num_runs())
        if any(block in studies()[budget] for budget in BUDGETS):
            secondary.export_block(out, RESULTS / block)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def tables(study):
    """Prints the tables of a study, of one without tests only the differences."""
    planned = list(studies()[study])
    if not results.blocks_in(RESULTS, planned):
        print(f"no block of the study {study} is exported", file=sys.stderr)
        return 1
    if study in DESCRIPTIVE:
        print(descriptive.part([exported(ROOT, study)], exported(ROOT, BUDGETS[0])))
    else:
        print(results.tables(RESULTS, planned), end="")
    return 0


def mixed(root):
    """Fits the mixed models of all exported blocks of the convex part."""
    lacking = mixed_models.missing_tool()
    if lacking:
        print(f"{lacking} is not installed", file=sys.stderr)
        return 1
    folder = root / FOLDER / "results"
    for budget in BUDGETS:
        names = results.blocks_in(folder, studies()[budget])
        if names:
            mixed_models.fit(folder, names, mixed_models.path_of(folder, budget))
    return 0


def groups():
    """Returns the groups of a budget as dictionaries of labels, in the order in which the page shows them."""
    labels = PROBLEMS, map(str, STEPS), ("1", "0.1"), ("ef14", "ef21", "econtrol")
    keys = "data.name", "local.steps", "participation.fraction", "feedback.up"
    return [dict(zip(keys, group)) for group in itertools.product(*labels)]


def exported(root, name, bits="up"):
    """Returns what has been exported of a study."""
    planned = studies()[name]
    return study_page.Study(root / FOLDER / "results", name, list(planned), groups(), bits, next(iter(planned.values())).grids())


def page(root):
    """Writes the page and its figures."""
    others = {kind: [exported(root, name) for name in names]
              for kind, names in (("robustness", ROBUSTNESS), ("networks", NETWORKS), ("descriptive", DESCRIPTIVE))}
    study_page.write(root / FOLDER / "page.md", [exported(root, name) for name in BUDGETS],
                     [exported(root, name, "both") for name in BUDGETS], others)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="another tree to check")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("hashes", "check", "blocks", "mixed", "page"):
        commands.add_parser(name)
    for name in ("plan", "run", "export"):
        command = commands.add_parser(name)
        command.add_argument("fedbits")
        command.add_argument("block", choices=list(blocks()))
        command.add_argument("--out", type=pathlib.Path, help="the block's store")
    commands.add_parser("tables").add_argument("study", choices=list(studies()))
    arguments, more = parser.parse_known_args()
    if more and arguments.command not in ("plan", "run"):
        parser.error(f"unknown: {' '.join(more)}")
    if arguments.command == "hashes":
        print("\n".join(f"| `{name}` | `{digest}` |" for name, digest in sums(arguments.root).items()))
        return 0
    if arguments.command == "blocks":
        print("\n".join(blocks()))
        return 0
    if arguments.command == "tables":
        return tables(arguments.study)
    if arguments.command == "mixed":
        return mixed(arguments.root)
    if arguments.command == "page":
        page(arguments.root)
        return 0
    wrong = problems(arguments.root)
    for text in wrong:
        print(text, file=sys.stderr)
    if wrong or arguments.command == "check":
        return 1 if wrong else 0
    out = arguments.out or STORES / arguments.block
    if arguments.command == "export":
        return export(arguments.fedbits, arguments.block, out)
    return play(arguments.command, arguments.fedbits, arguments.block, out, more)


if __name__ == "__main__":
    sys.exit(main())
