#!/usr/bin/env python3
"""bench/operator_guard.py with a benchmark that prints chosen ratios, and its bounds: every operator of the program has one.

usage: operator_guard_test.py FEDBITS SOURCE_FOLDER
"""

import pathlib
import re
import subprocess
import sys
import tempfile

fedbits, source = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path.insert(0, str(source / "bench"))
import operator_guard  # noqa: E402  (it lies in bench/)

faults = []


def expect(holds, text):
    if not holds:
        faults.append(text)


def output_of(ratios):
    """Returns the exit code and the output of the script with a benchmark that prints these ratios."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "operator_bench"
        lines = "".join(f"{ratio}\\t{name}\\n" for name, ratio in ratios.items())
        program.write_text(f"#!/bin/sh\n[ \"$1\" = --ratios ] && printf '{lines.replace('%', '%%')}'\n")
        program.chmod(0o755)
        done = subprocess.run([sys.executable, "-B", source / "bench" / "operator_guard.py", folder], capture_output=True, text=True)
        return done.returncode, done.stdout


bounds = operator_guard.bounds()
listed = set(re.findall(r"^  (\w+) \[", subprocess.run([fedbits, "list", "compressors"], capture_output=True, text=True, check=True).stdout,
                        re.MULTILINE))
expect(len(listed) > 30, f"only {len(listed)} operators are listed")
for name in sorted(listed):
    expect(bounds.get("default " + name, 0) > 0, f"{name} has no bound: bench/operator_guard.py build/bench --write")
expect(any(not name.startswith("default ") for name in bounds), "the large operators have no bounds")

code, text = output_of(bounds)
expect(code == 0 and "WARNING" not in text and f"{len(bounds)} operators, 0 warnings" in text, "ratios at their bounds:\n" + text)
slow, missing = list(bounds)[0], list(bounds)[1]
code, text = output_of({name: ratio / (2.1 if name == slow else 1.9) for name, ratio in bounds.items() if name != missing} | {"new": 1.0})
expect(code == 0, "a warning must not fail")
expect(re.search(rf"WARNING: {re.escape(slow)}: .* 2\.1 times as slow", text), "no warning of the slow operator:\n" + text)
expect("WARNING: new: has no bound" in text, "no warning of an operator without a bound:\n" + text)
expect(f"WARNING: {missing}: has a bound and was not measured" in text, "no warning of a missing operator:\n" + text)
expect(text.count("WARNING") == 3, "other warnings:\n" + text)
code, _ = output_of({})
expect(code == 0, "no ratios at all")

print("\n".join(faults) or f"{len(bounds)} bounds")
sys.exit(1 if faults else 0)
