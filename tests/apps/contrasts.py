"""Repeats the analysis of contrasts with NumPy and SciPy on an export of a small study.

    contrasts.py FOLDER WINDOW

FOLDER holds rounds.csv, runs.csv, differences.csv and slopes.csv of one store. The end points, differences, slopes, intervals and
p-values are computed again from rounds.csv and the definitions in docs/statistics.md, and compared with the exported ones to 1e-9. The drawn
sign vectors of the sign-flip test come from Philox4x32-10, which is written out here.
"""
import csv
import itertools
import math
import sys

import numpy as np
from scipy import stats

FLIP_KEY = 0x7369676E666C6970
MOST_EXACT, FLIPS = 20, 99_999
CLASSES = 2  # of the study's data


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def number(text):
    return math.nan if text == "" else float(text)


def same(name, got, want, tolerance=1e-9):
    if math.isnan(got) and math.isnan(want):
        return
    assert abs(got - want) <= tolerance * max(1.0, abs(want)), f"{name}: fedbits {got!r}, SciPy {want!r}"


# ---- end points ----

class Run:
    """The step function of a measure against bits."""

    def __init__(self, rows, measure, bits, status):
        up = np.array([float(row["cumulative_bits_up"]) for row in rows])
        total = up if bits == "up" else up + np.array([float(row["cumulative_bits_down"]) for row in rows])
        value = np.array([number(row[measure]) for row in rows])
        known = ~np.isnan(value)
        self.end, self.x, self.v, self.status = total[-1], total[known], value[known], status

    def mean(self, budget, window):
        start = budget - window * budget
        ends = np.append(self.x[1:], np.inf)
        low, high = np.maximum(self.x, start), np.minimum(ends, budget)
        length = np.maximum(high - low, 0)
        assert self.x[0] <= start
        return float(np.sum(length * self.v) / (budget - start))


def values_of(a, b, measure, window, divergence=10.0):
    """Returns the bounded values of a pair and its budget."""
    budgets = [run.end for run in (a, b) if run.status != "diverged"]
    budget = min(budgets) if budgets else math.nan
    higher = "accuracy" in measure
    result = []
    for run in (a, b):
        bound = 1 / CLASSES if higher else run.v[0]
        value = math.nan if run.status == "diverged" else run.mean(budget, window)
        if run.status == "diverged" or not math.isfinite(value) or (value < bound if higher else value > bound):
            value, capped = bound, True
        else:
            capped = False
        result.append((value, capped))
    return result, budget


# ---- tests ----

def philox_words(key, counter2, count):
    """Returns the first words of the stream {index / 4, counter2, 0, 0} of Philox4x32-10."""
    quads = (count + 3) // 4
    c = [np.arange(quads, dtype=np.uint64), np.full(quads, counter2, np.uint64), np.zeros(quads, np.uint64), np.zeros(quads, np.uint64)]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        low, high = np.uint64(0xFFFFFFFF), np.uint64(32)
        c = [(p1 >> high) ^ c[1] ^ np.uint64(k0), p1 & low, (p0 >> high) ^ c[3] ^ np.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, axis=1).reshape(-1)[:count]


def sign_flip(d):
    n = len(d)
    least = abs(d.sum()) - 1e-12 * np.abs(d).sum()
    if n <= MOST_EXACT:
        signs = np.array(list(itertools.product([1, -1], repeat=n)))
        return float(np.mean(np.abs(signs @ d) >= least))
    words = -(-n // 32)
    drawn = philox_words(FLIP_KEY, n, FLIPS * words).reshape(FLIPS, words)
    bits = (drawn[:, np.arange(n) // 32] >> (np.arange(n) % 32).astype(np.uint64)) & np.uint64(1)
    sums = np.where(bits == 1, -1.0, 1.0) @ d
    return (1 + int(np.sum(np.abs(sums) >= least))) / (1 + FLIPS)


def holm(p):
    p = np.asarray(p, float)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(np.minimum(1, (len(p) - np.arange(len(p))) * p[order]))
    return adjusted


def graph_adjusted(chains):
    """Returns adjusted p-values by the general graphical procedure of Bretz et al. (2009), for chains first -> second -> other chains."""
    m = len(chains)
    p = np.array([x for chain in chains for x in chain])
    w = np.array([1 / m, 0] * m)
    g = np.zeros((2 * m, 2 * m))
    for i in range(m):
        g[2 * i, 2 * i + 1] = 1
        for j in range(m):
            if j != i:
                g[2 * i + 1, 2 * j] = 1 / (m - 1)
    alive, adjusted, largest = set(range(2 * m)), np.ones(2 * m), 0.0
    while alive:
        ratio = {i: p[i] / w[i] if w[i] > 1e-15 else math.inf for i in alive}
        j = min(sorted(alive), key=lambda i: ratio[i])
        if math.isinf(ratio[j]):
            break
        largest = max(largest, min(1.0, ratio[j]))
        adjusted[j] = largest
        alive.remove(j)
        new_w, new_g = w.copy(), np.zeros_like(g)
        for i in alive:
            new_w[i] = w[i] + w[j] * g[j, i]
            for k in alive:
                if i != k and g[i, j] * g[j, i] < 1:
                    new_g[i, k] = (g[i, k] + g[i, j] * g[j, k]) / (1 - g[i, j] * g[j, i])
        w, g = new_w, new_g
    return [(adjusted[2 * i], adjusted[2 * i + 1]) for i in range(m)]


# ---- the study ----

def check_differences(folder, window):
    runs = {row["run"]: row for row in table(f"{folder}/runs.csv")}
    rounds = {}
    for row in table(f"{folder}/rounds.csv"):
        rounds.setdefault(row["run"], []).append(row)
    differences = table(f"{folder}/differences.csv")
    for row in differences:
        a, b = (Run(rounds[row[key]], row["measure"], row["bits"], runs[row[key]]["status"]) for key in ("run_a", "run_b"))
        for key in ("run_a", "run_b"):
            assert runs[row[key]]["seed"] == row["seed"]
        (value_a, value_b), budget = values_of(a, b, row["measure"], window)
        difference = math.log(value_a[0] / value_b[0]) if row["measure"] == "f_gap" else value_a[0] - value_b[0]
        name = f"{row['a']}:{row['b']} {row['group']} {row['measure']} {row['bits']} level {row['level']} seed {row['seed']}"
        same(f"{name}, A", number(row["value_a"]), value_a[0])
        same(f"{name}, B", number(row["value_b"]), value_b[0])
        same(f"{name}, difference", number(row["difference"]), difference)
        same(f"{name}, budget", number(row["budget_bits"]), budget)
        same(f"{name}, zeta^2", number(row["zeta_sq"]), number(runs[row["run_a"]]["zeta_sq"]))
        same(f"{name}, x", number(row["x"]), math.log(number(row["zeta_sq_optimum"])))
        assert (row["capped_a"], row["capped_b"]) == (str(int(value_a[1])), str(int(value_b[1]))), name
        row["_d"], row["_x"] = difference, math.log(number(row["zeta_sq_optimum"]))
    return differences


def slopes_of(differences, row, group):
    """Returns the differences of a contrast in a group, their seeds, and the slope of each seed."""
    mine = [d for d in differences if d["group"] == group and all(d[k] == row[k] for k in ("measure", "bits", "a", "b"))]
    seeds = sorted({d["seed"] for d in mine}, key=int)
    of_seed = [[d for d in mine if d["seed"] == seed] for seed in seeds]
    return mine, seeds, np.array([stats.linregress([d["_x"] for d in one], [d["_d"] for d in one]).slope for one in of_seed])


def check_slopes(folder, differences):
    slopes = table(f"{folder}/slopes.csv")
    families = {}
    for row in slopes:
        mine, seeds, b = slopes_of(differences, row, row["group"])
        if row["between"]:
            _, other_seeds, other = slopes_of(differences, row, row["other_group"])
            assert seeds == other_seeds, "both groups have the same seeds"
            key, labels = row["between"].split("=")
            assert all(f"{key}={label}" in group for label, group in zip(labels.split(":"), (row["group"], row["other_group"])))
            b = b - other
        name = f"{row['a']}:{row['b']} {row['group']} {row['measure']} {row['bits']}"
        test = stats.ttest_1samp(b, 0)
        low, high = test.confidence_interval(0.95)
        assert int(row["seeds"]) == len(seeds), name
        same(f"{name}, slope", number(row["slope"]), b.mean())
        same(f"{name}, low", number(row["slope_low"]), low)
        same(f"{name}, high", number(row["slope_high"]), high)
        same(f"{name}, p", number(row["p"]), test.pvalue)
        same(f"{name}, p flip", number(row["p_flip"]), sign_flip(b))
        if len(b) <= 12:
            same(f"{name}, SciPy's permutation test", number(row["p_flip"]),
                 stats.permutation_test((b,), np.mean, permutation_type="samples", n_resamples=np.inf).pvalue)
        strongest = row["level"]
        if strongest:
            d = np.array([one["_d"] for one in mine if one["level"] == strongest])
            margin = math.log(float(row["margin"][:-1])) if row["margin"].endswith("x") else float(row["margin"][:-2]) / 100
            harm = d if row["measure"] == "f_gap" else -d
            same(f"{name}, not inferior", number(row["p_non_inferior"]), stats.ttest_1samp(harm, margin, alternative="less").pvalue)
            same(f"{name}, superior", number(row["p_superior"]), stats.ttest_1samp(harm, 0, alternative="less").pvalue)
            low, high = stats.ttest_1samp(d, 0).confidence_interval(0.95)
            same(f"{name}, difference", number(row["difference"]), d.mean())
            same(f"{name}, difference low", number(row["difference_low"]), low)
            same(f"{name}, difference high", number(row["difference_high"]), high)
        families.setdefault((row["measure"], row["bits"], row["between"] != ""), []).append(row)
    for family in families.values():
        for key in ("p", "p_flip"):
            for row, want in zip(family, holm([number(row[key]) for row in family])):
                same(f"{key} after Holm", number(row[key + "_holm"]), want)
        if family[0]["margin"]:
            chains = [(number(row["p_non_inferior"]), number(row["p_superior"])) for row in family]
            for row, (first, second) in zip(family, graph_adjusted(chains)):
                same("not inferior, adjusted", number(row["p_non_inferior_adjusted"]), first)
                same("superior, adjusted", number(row["p_superior_adjusted"]), second)
    return slopes


def main():
    folder, window = sys.argv[1], float(sys.argv[2])
    differences = check_differences(folder, window)
    slopes = check_slopes(folder, differences)
    capped = sum(row["capped_a"] == "1" or row["capped_b"] == "1" for row in differences)
    between = sum(row["between"] != "" for row in slopes)
    print(f"{len(differences)} differences ({capped} with a capped value), {len(slopes) - between} contrasts and {between} differences of "
          "slopes agree with SciPy to 1e-9")
    assert differences and slopes


main()
