#!/usr/bin/env python3
"""Warns if an operator has become much slower than its bound in bench/operator_bounds.tsv.

    bench/operator_guard.py build/bench              a table, and a warning for each ratio below half of its bound
    bench/operator_guard.py build/bench --write      renews the bounds: four fifths of the ratios measured

A ratio is the time of an in-place add of the same size / the time of the operator, measured in turn in one process on one core, so that it
says little about the machine. A warning fails nothing: another machine and a busy one have other ratios. The exit code is 0 unless the
benchmark itself fails.
"""
import pathlib
import subprocess
import sys

BOUNDS = pathlib.Path(__file__).with_name("operator_bounds.tsv")
HEADER = "# Least ratio (in-place add / operator) expected of each operator. bench/operator_guard.py reads and writes it.\n"
SLOWER = 2.0  # the factor below the bound that is worth a warning


def measured(program):
    text = subprocess.run([program, "--ratios"], check=True, capture_output=True, text=True).stdout
    rows = (line.split("\t") for line in text.splitlines())
    return {name: float(ratio) for ratio, name in rows}


def bounds():
    lines = [line for line in BOUNDS.read_text().splitlines() if line and not line.startswith("#")]
    return {name: float(ratio) for ratio, name in (line.split("\t") for line in lines)}


def warnings_of(ratios, least):
    for name, ratio in ratios.items():
        if name not in least:
            yield f"{name}: has no bound; --write adds one"
        elif ratio * SLOWER <= least[name]:
            yield f"{name}: ratio {ratio:.3g}, expected {least[name]:.3g} or more: {least[name] / ratio:.1f} times as slow"
    for name in least.keys() - ratios.keys():
        yield f"{name}: has a bound and was not measured"


def main(arguments):
    if not arguments or arguments[1:] not in ([], ["--write"]):
        print(__doc__)
        return 2
    ratios = measured(pathlib.Path(arguments[0]) / "operator_bench")
    if arguments[1:]:
        BOUNDS.write_text(HEADER + "".join(f"{0.8 * ratio:.3g}\t{name}\n" for name, ratio in ratios.items()))
        return 0
    least = bounds()
    print(f"{'operator':40} {'ratio':>8} {'bound':>8}")
    for name, ratio in ratios.items():
        print(f"{name:40} {ratio:8.3g} {least.get(name, 0):8.3g}")
    found = list(warnings_of(ratios, least))
    for text in found:
        print("WARNING: " + text)
    print(f"{len(ratios)} operators, {len(found)} warnings")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
