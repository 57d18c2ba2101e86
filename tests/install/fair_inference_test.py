#!/usr/bin/env python3
"""The inference of the second study on numbers that can be checked by hand.

    fair_inference_test.py SOURCE"""
import math
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(sys.argv[1]).resolve() / "research" / "absolute-compressors"))
import fair_study_inference as inference


def line(problem, level, seed, difference, zeta_sq, pair=("hard", "top-k"), bits="up"):
    return {"bits": bits, "a": pair[0], "b": pair[1], "level": level, "seed": str(seed), "zeta_sq_optimum": str(zeta_sq), "difference": str(difference),
            "data.name": problem, "local.steps": "1", "participation.fraction": "1"}


def near(value, expected):
    assert math.isclose(value, expected, rel_tol=1e-9, abs_tol=1e-12), (value, expected)


# Two problems, three repetitions of two seeds: contrasts of one are -1, -2, -3, of the other 0.5, 0, -0.5.
repetitions = []
for number in range(3):
    lines = [line("a", "0", seed, -1 - number + shift, 4.0) for seed, shift in ((1, 0.25), (2, -0.25))]
    lines += [line("a", "100", seed, 0, 1.0) for seed in (1, 2)]
    lines += [line("b", "0", 1, 0.5 - 0.5 * number, 9.0), line("b", "100", 1, 0, 3.0)]
    lines += [line("b", "0", 1, 7, 9.0, bits="both"), {**line("b", "0", 2, 0, 9.0), "difference": ""}]
    repetitions.append(lines)
log = inference.LogRatios.of(repetitions)
a, b = ("a", "1", "1"), ("b", "1", "1")
found = inference.estimates(log, inference.contrast, ("hard", "top-k"))
near(found[a][0].mean, -2)
near(found[b][0].mean, 0)
# Variances 1 and 1/4 with two degrees of freedom each: 5/8 with four.
near(found[a][0].error, math.sqrt(0.625 / 3))
assert found[a][0].freedom == 4 and found[a][1].freedom == 2
near(found[a][1].error, math.sqrt(1 / 3))
# Student's quantiles of the tables: 2.776 with four degrees of freedom, 4.303 with two.
low, high = found[a][0].interval
assert abs((high - low) / 2 / found[a][0].error - 2.776) < 1e-3
low, high = found[a][1].interval
assert abs((high - low) / 2 / found[a][1].error - 4.303) < 1e-3

# Slopes over log zeta^2: the levels are log 4 apart, then log 3.
near(inference.slope(log[("hard", "top-k"), a][0]), -1 / math.log(4))
near(inference.slope(log[("hard", "top-k"), b][0]), 0.5 / math.log(3))
near(inference.ahead_at("0")(log[("hard", "top-k"), a][1]), -2)
assert inference.ahead_at("40")(log[("hard", "top-k"), a][1]) is None

# Holm's rule: the smaller p-value twice, the larger one at least that.
verdicts = {one.group: one for one in inference.family(log, inference.contrast)}
near(verdicts[a].adjusted, 2 * verdicts[a].pooled.p)
near(verdicts[b].adjusted, 1)
assert verdicts[a].sign == -1 and verdicts[b].sign == 0

# Hits: a claim of the predicted sign, or none where none is predicted.
forecasts = {(*a, "0"): -0.3, (*a, "100"): -0.1, (*b, "0"): 0.04, (*b, "100"): 0.0}
assert inference.predicted_contrast(forecasts, a) == -1 and inference.predicted_contrast(forecasts, b) == 0
assert inference.hits(verdicts.values(), lambda group: inference.predicted_contrast(forecasts, group)) == {"hit": 2, "miss": 0, "open": 0}
assert inference.hits(verdicts.values(), lambda group: 1) == {"hit": 0, "miss": 1, "open": 1}

# Alike: the whole interval within a factor of 1.1.
narrow = [[line("a", level, 1, 0.01 * number * (level == "0"), 2.0 + (level == "0")) for level in ("0", "100")] for number in (-1, 0, 1)]
assert inference.family(inference.LogRatios.of(narrow), inference.ahead_at("0"))[0].is_alike
assert not verdicts[b].is_alike
