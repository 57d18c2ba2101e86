#!/usr/bin/env python3
"""The mixed models of the study: the committed slopes are those of a new fit, and on balanced data the fit is what arithmetic says.

    conjecture_mixed_test.py SOURCE

Without R and lmerTest nothing is fitted, and the exit code is 77."""
import csv
import lzma
import math
import pathlib
import random
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "research" / "absolute-compressors"))
import conjecture
from conjecture_study import mixed

RESULTS = SOURCE / conjecture.FOLDER / "results"
TOLERANCES = {"slope": 1e-3, "se": 1e-3, "df": 1e-2, "t": 1e-3, "slope_low": 1e-3, "slope_high": 1e-3}
# At the bound of a variance another processor's rounding may end elsewhere: there only estimates and their errors are compared, to a hundredth.
OF_SINGULAR_FITS = {"slope": 1e-2, "se": 1e-2}


def near(a, b, tolerance, least=0.0):
    return abs(a - b) <= tolerance * max(abs(a), abs(b), least)


def log_p(line):
    """Returns the logarithm of a p-value. A p-value below the smallest double is stored as zero and counts as 1e-300."""
    return math.log(max(float(line["p"]), 1e-300))


def check_committed():
    """Fits those blocks again that the committed tables cover, and compares the numbers."""
    for budget in conjecture.BUDGETS:
        fitted = mixed.read(mixed.path_of(RESULTS, budget))
        exported = conjecture.results.blocks_in(RESULTS, conjecture.studies()[budget])
        slopes = conjecture.results.joined_slopes(RESULTS, exported)
        covered = [block for block in exported if any(mixed.key(line) in fitted for line in slopes if line["block"] == block)]
        if not fitted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            mixed.fit(RESULTS, covered, pathlib.Path(folder) / "mixed.csv")
            again = mixed.read(pathlib.Path(folder) / "mixed.csv")
        assert list(again) == list(fitted), f"budget of {budget}%: the groups differ: {set(again) ^ set(fitted)}"
        for at, line in fitted.items():
            is_regular = line["fit"] == again[at]["fit"] == "regular"
            for name, tolerance in (TOLERANCES if is_regular else OF_SINGULAR_FITS).items():
                a, b = float(line[name]), float(again[at][name])
                least = float(line["se"]) if name.startswith("slope") else 1 if name == "t" else 0
                assert near(a, b, tolerance, least), f"{at}: {name} is {a} in mixed-{budget}.csv, and {b} in a new fit"
            if is_regular:
                assert near(log_p(line), log_p(again[at]), 0.02, 1), f"{at}: p is {line['p']}, and {again[at]['p']} in a new fit"
            assert (line["p_holm"] < 0.05) == (again[at]["p_holm"] < 0.05), f"{at}: the new fit has another claim"
            assert line["seeds"] == again[at]["seeds"], f"{at}: {line}, and {again[at]} in a new fit"
        print(f"budget of {budget}%: {len(fitted)} slopes of {', '.join(covered)} are those of a new fit")


def check_balanced():
    """Checks on balanced data with large random slopes that the estimate is the mean of the seeds' slopes, with its standard error and n - 1 degrees of
    freedom, which is the analysis in two stages."""
    draw, x, slopes = random.Random(1), (-2.0, -1.0, 0.0, 3.0), []
    columns = "bits", "data.name", "group", "a", "b", "seed", "level", "x", "difference"
    lines = []
    for seed in range(12):
        intercept, slope = draw.gauss(0, 1), draw.gauss(0.3, 1)
        d = [intercept + slope * one + draw.gauss(0, 0.1) for one in x]
        slopes.append(sum(one * value for one, value in zip(x, d)) / sum(one * one for one in x))
        lines += [("up", "made", "data.name=made", "A", "B", seed, i, one, value) for i, (one, value) in enumerate(zip(x, d))]
    lines.append(("both", "made", "data.name=made", "A", "B", 0, 0, 0.0, 100.0))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "block").mkdir()
        with lzma.open(folder / "block" / "differences.csv.xz", "wt", newline="") as text:
            csv.writer(text, lineterminator="\n").writerows([columns, *lines])
        mixed.fit(folder, ["block"], folder / "mixed.csv")
        (line,) = mixed.read(folder / "mixed.csv").values()
    expected = {"slope": statistics.mean(slopes), "se": statistics.stdev(slopes) / math.sqrt(len(slopes)), "df": len(slopes) - 1}
    for name, value in expected.items():
        assert near(float(line[name]), value, 1e-3), f"{name} is {line[name]}, and by arithmetic {value}"
    print("on balanced data the mixed model is the analysis in two stages")


lacking = mixed.missing_tool()
if lacking:
    print(f"TOOL MISSING: {lacking} is not installed, so the mixed models were NOT FITTED AGAIN")
    sys.exit(77)
check_balanced()
check_committed()
