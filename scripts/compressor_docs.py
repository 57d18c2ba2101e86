#!/usr/bin/env python3
"""Prints docs/compressors.md: the head of every operator's and feedback's file, with what `fedbits list` finds out by asking the part.

Usage: python3 scripts/compressor_docs.py build/fedbits > docs/compressors.md
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GROUPS = {  # of operators, in the order of the page: the word in `// Group: WORD` at the end of a file's head, and the title
    "sparsifier": "Sparsifiers",
    "quantiser": "Quantisers",
    "low rank": "Low rank",
    "hybrid": "Hybrids, and operators around operators",
}
GROUP_LINE = "Group: "
FACT = r"      (differs|bound on its error|its message|operators|units|local updates|participation|downlink|server|also called)"
INTRO = """# Compressors and feedbacks

What each method computes, how large its error can be and what it sends. Written by `scripts/compressor_docs.py` from the head of each part's file and
from `fedbits list`, which asks the parts themselves: bounds and messages are those of 1,000 parameters (40 x 25) with the default options,
messages of normal numbers in float32. Options with their defaults are in [scenario-reference.md](scenario-reference.md), the wire format in
compressors/codec/codec.hpp, classes and notation in [maths.md](maths.md).
"""


def head_of(path):
    """Returns the lines of the comment that a file begins with, without their slashes."""
    lines = []
    for line in path.read_text().splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].removeprefix(" "))
    return lines


def group_of(path):
    """Returns the word of GROUPS that the head of an operator's file states."""
    stated = [line.removeprefix(GROUP_LINE).rstrip() for line in head_of(path) if line.startswith(GROUP_LINE)]
    if len(stated) == 1 and stated[0] in GROUPS:
        return stated[0]
    known = ", ".join(GROUPS)
    found = f"it states: {', '.join(stated)}" if stated else "it has no such line"
    sys.exit(f"{path.relative_to(ROOT)}: the comment at the top of an operator's file needs one line `// {GROUP_LINE}WORD` with one of these words: "
             f"{known}; {found}")


def markdown(lines):
    """Indented lines are formulas; the rest is text, a paragraph up to an empty line or a formula. Stars and bars are no markup."""
    blocks, kind = [], None
    for line in lines:
        if not line.strip():
            kind = None
            continue
        now = "formula" if line.startswith("  ") else "text"
        if now != kind:
            blocks.append((now, []))
        blocks[-1][1].append(line.rstrip())
        kind = now
    for kind, block in blocks:
        if kind == "formula":
            yield "```text\n" + "\n".join(line[2:] for line in block) + "\n```"
        else:
            yield re.sub(r"([*_<>|])", r"\\\1", "\n".join(block))


def parts_of(fedbits, what):
    """name -> (summary, what was found out, also called, source) from `fedbits list`."""
    parts, facts = {}, None
    for line in subprocess.run([fedbits, "list", what], capture_output=True, text=True, check=True).stdout.splitlines():
        if match := re.fullmatch(r"  (\w+) \[.*?\]  (.*)", line):
            facts = []
            parts[match[1]] = (match[2], facts)
        elif facts is not None and re.match(FACT, line):
            facts.append(line.strip())
    return parts


def describe(name, path, part):
    facts = part[1]
    yield f"### {name}\n"
    yield from (block + "\n" for block in markdown(line for line in head_of(path) if not line.startswith(GROUP_LINE)))
    yield "".join(f"- {fact}\n" for fact in facts)
    yield f"File: {path.relative_to(ROOT)}\n"


def file_of(folder, name):
    for path in folder.glob("*.cpp"):
        if re.search(rf'PartInfo\{{"\w+",\s*"{name}"', path.read_text()):
            return path
    sys.exit(f"no file in {folder} registers {name}")


def main():
    fedbits = sys.argv[1]
    operators, feedbacks = parts_of(fedbits, "compressors"), parts_of(fedbits, "feedbacks")
    files = {name: file_of(ROOT / "compressors", name) for name in sorted(operators)}
    groups = {name: group_of(path) for name, path in files.items()}
    print(INTRO)
    for group, title in GROUPS.items():
        print(f"## {title}\n")
        for name, path in files.items():
            if groups[name] == group:
                print("\n".join(describe(name, path, operators[name])))
    print("## Feedbacks\n")
    for name in feedbacks:
        print("\n".join(describe(name, file_of(ROOT / "compressors/feedback", name), feedbacks[name])))


if __name__ == "__main__":
    main()
