#!/usr/bin/env python3
"""Checks, prices and runs the study of docs/conjecture-plan.md. Needs nothing but Python and fedbits.

    python3 scripts/conjecture.py hashes                   the table of SHA-256 sums that the plan contains
    python3 scripts/conjecture.py check                    compares the files with the sums in the plan
    python3 scripts/conjecture.py blocks                   the blocks of the study, in the order in which they run
    python3 scripts/conjecture.py plan FEDBITS BLOCK ...   what a block costs; further arguments are those of fedbits
    python3 scripts/conjecture.py run FEDBITS BLOCK ...    plays a block, or continues it; further arguments are those of fedbits

The blocks of one budget share a store, fedbits-out/conjecture-5 or -1 unless --out says otherwise. Nothing runs if a file has changed."""
import argparse
import hashlib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUDGETS = ("5", "1")
PROBLEMS = ("libsvm/a9a", "libsvm/w8a")
STEPS = ("1", "10")


def blocks():
    """Returns the blocks by name, each with its file and what it leaves out. One local step comes before ten, and the large budget first."""
    result = {}
    for budget in BUDGETS:
        for steps in STEPS:
            for problem in PROBLEMS:
                other = next(p for p in PROBLEMS if p != problem), next(s for s in STEPS if s != steps)
                name = f"{problem.split('/')[1]}-{budget}-steps-{steps}"
                result[name] = (f"docs/conjecture/convex-{budget}.toml", f'sweep.exclude=[{{data.name="{other[0]}"}},{{local.steps={other[1]}}}]')
    return result


def sums(root):
    """Returns the SHA-256 sums of the files of the study by name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted((root / "docs" / "conjecture").glob("*.toml"))}


def problems(root):
    """Returns what differs between the files and the plan."""
    written = dict(re.findall(r"^\| `([^`]+\.toml)` \| `([0-9a-f]{64})` \|$", (root / "docs" / "conjecture-plan.md").read_text(), re.MULTILINE))
    found = sums(root)
    texts = [f"{name} is not in docs/conjecture-plan.md" for name in found if name not in written]
    texts += [f"{name} is in docs/conjecture-plan.md and not in docs/conjecture" for name in written if name not in found]
    for name, digest in found.items():
        if digest != written.get(name, digest):
            texts.append(f"{name} has the SHA-256 {digest}, the plan says {written[name]}")
    return texts


def play(command, fedbits, block, more):
    """Returns the exit code of fedbits for a block."""
    file, exclude = blocks()[block]
    words = [fedbits, "sweep" if command == "run" else "plan", str(ROOT / file), "--set", exclude]
    return subprocess.call(words + (["--resume"] if command == "run" else []) + more)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["hashes", "check", "blocks", "plan", "run"])
    parser.add_argument("fedbits", nargs="?")
    parser.add_argument("block", nargs="?", choices=list(blocks()))
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="another tree to check")
    arguments, more = parser.parse_known_args()
    if arguments.command == "hashes":
        print("\n".join(f"| `{name}` | `{digest}` |" for name, digest in sums(arguments.root).items()))
        return 0
    if arguments.command == "blocks":
        print("\n".join(blocks()))
        return 0
    if arguments.command != "check" and not arguments.block:
        parser.error("plan and run need the program and a block")
    wrong = problems(arguments.root)
    for text in wrong:
        print(text, file=sys.stderr)
    if wrong or arguments.command == "check":
        return 1 if wrong else 0
    return play(arguments.command, arguments.fedbits, arguments.block, more)


sys.exit(main())
