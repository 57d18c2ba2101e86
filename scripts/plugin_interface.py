#!/usr/bin/env python3
"""The version of the plug-in interface: a number in cmake/plugin_interface.txt, beside a hash of the interface's headers without their comments.

fedbits loads plug-ins that were built with the same number (docs/decisions/0004-plug-ins-carry-a-stamp.md), so any change of these headers'
code needs a new number. A change of comments, blank lines or spaces at the ends of lines needs none.

    python3 scripts/plugin_interface.py             compares the headers with the recorded hash; exit code 1 if they differ
    python3 scripts/plugin_interface.py --raise     raises the number by one and records the headers' hash
    python3 scripts/plugin_interface.py --root DIR  the same in another tree

A change in what a function means also needs a new number if its declaration stays as it is: no hash can see it. Needs nothing but Python.
"""
import argparse
import hashlib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = pathlib.Path("cmake") / "plugin_interface.txt"
HEAD = "# The version of the plug-in interface, and the hash of its headers without comments. `python3 scripts/plugin_interface.py --raise` writes both.\n"
LITERALS = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)|\bu?8?R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'""",
    re.DOTALL,
)


def without_comments(text):
    """Returns the text without comments, blank lines and spaces at the ends of lines. Strings keep what looks like a comment."""
    code = LITERALS.sub(lambda match: " " if match.group("comment") else match.group(), text)
    return "".join(line.rstrip() + "\n" for line in code.split("\n") if line.strip())


def headers_of(root, headers):
    """Returns these headers and all that they include, directly or not, in alphabetical order, as fedbits_headers_of() in CMake does."""
    found, waiting = set(), list(headers)
    while waiting:
        header = waiting.pop()
        if header in found or header.startswith("tests/"):
            continue
        found.add(header)
        waiting += re.findall(r'^[ \t]*#[ \t]*include "([^"]+)"', (root / header).read_text(), re.MULTILINE)
    return sorted(found)


def headers_in(root):
    """Returns the headers of the interface: those that FL_INTERFACE_ROOTS names, and what they include."""
    text = (root / "cmake" / "FedbitsInterface.cmake").read_text()
    roots = re.sub(r"#[^\n]*", "", re.search(r"^set\(FL_INTERFACE_ROOTS\n([^)]*)\)", text, re.MULTILINE)[1])
    return headers_of(root, roots.split())


def hash_of(root):
    hashed = hashlib.sha256()
    for header in headers_in(root):
        code = without_comments((root / header).read_text())
        hashed.update(f"{header} {hashlib.sha256(code.encode()).hexdigest()}\n".encode())
    return hashed.hexdigest()


def recorded_in(root):
    """Returns (number, hash) of the record."""
    match = re.search(r"^(\d+) ([0-9a-f]{64})$", (root / RECORD).read_text(), re.MULTILINE)
    if not match:
        sys.exit(f"{RECORD} has no line `NUMBER HASH`; `git checkout {RECORD}` brings it back")
    return int(match[1]), match[2]


def problem_of(root):
    """Returns a sentence if the headers are not those of the recorded number, else ""."""
    number, recorded = recorded_in(root)
    if hash_of(root) == recorded:
        return ""
    return (f"the code of the plug-in interface's headers has changed, but {RECORD} still gives it the version {number}: raise the version and "
            "record the new hash with `python3 scripts/plugin_interface.py --raise`, and commit that file with the change")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raise", action="store_true", dest="is_raised")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    options = parser.parse_args()
    if options.is_raised:
        number = recorded_in(options.root)[0] + 1
        (options.root / RECORD).write_text(f"{HEAD}{number} {hash_of(options.root)}\n")
        print(f"the plug-in interface has version {number}")
        return 0
    problem = problem_of(options.root)
    print(problem or f"the plug-in interface has version {recorded_in(options.root)[0]}", file=sys.stderr if problem else sys.stdout)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
