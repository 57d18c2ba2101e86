#!/usr/bin/env python3
"""The packages that fedbits rests on are used where docs/architecture.md says, and the table there names each of them.

usage: packages_test.py SOURCE_FOLDER
"""

import pathlib
import re
import sys

PACKAGES = ("Thrust", "CUDA Toolkit", "Eigen", "Boost.Asio", "Protocol Buffers", "spdlog", "GoogleTest")
ROW = re.compile(r"^\| (?P<package>[^|]+?) \| `(?P<file>[^`]+)` \| `(?P<header>[^`]+)` \|", re.MULTILINE)


def is_included(header, text):
    """Whether a line includes the header, or one of the folder that it names."""
    return re.search(rf"^#include {re.escape(header)}", text, re.MULTILINE) is not None


def problems_of(source):
    rows = list(ROW.finditer((source / "docs" / "architecture.md").read_text()))
    named = {row["package"] for row in rows}
    problems = [f"docs/architecture.md does not say where {package} is used" for package in PACKAGES if package not in named]
    for row in rows:
        file = source / row["file"]
        if not file.exists():
            problems.append(f"{row['package']}: there is no {row['file']}")
        elif not is_included(row["header"], file.read_text()):
            problems.append(f"{row['package']}: {row['file']} does not include {row['header']}")
    return problems


def main():
    problems = problems_of(pathlib.Path(sys.argv[1]))
    print("\n".join(problems) or f"each of {len(PACKAGES)} packages is used where docs/architecture.md says")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
