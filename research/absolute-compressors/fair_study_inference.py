"""What second/plan.md infers from the exported tables: contrasts, slopes and who is ahead, each from repetitions of the tuning.

A repetition has one number for each group and pair, the mean over its seeds, and the numbers of the repetitions are tested with a variance that is
pooled over all groups of a pair. Needs nothing but Python."""
import csv
import io
import lzma
import math
import statistics

from conjecture_study import student
from conjecture_study.results import holm_adjusted

PAIRS = (("hard", "top-k"), ("rounding", "three-lc"))
GROUP = ("data.name", "local.steps", "participation.fraction", "feedback.up")
ALIKE, DIFFERENT = "100", "0"  # percentages of the rows that are dealt at random
SIGNIFICANT = 0.05
MARGIN = math.log(1.1)
CLEAR = 0.05  # a forecast nearer to zero predicts nothing


def lines_in(path):
    """Returns the lines of an exported table as dictionaries."""
    return list(csv.DictReader(io.StringIO(lzma.decompress(path.read_bytes()).decode())))


class LogRatios(dict):
    """Log ratios by (pair, group), then repetition, then level: a list of (seed, log zeta^2 at the optimum, or at the start
    where no optimum is known, log ratio)."""

    @classmethod
    def of(cls, repetitions, bits="up"):
        """Reads the lines of differences of each repetition; a pair without a difference, for want of evaluations, has no place."""
        made = cls()
        for number, lines in enumerate(repetitions):
            for line in lines:
                if line["bits"] != bits or not line["difference"]:
                    continue
                at = (line["a"], line["b"]), tuple(line[name] for name in GROUP if line.get(name))
                levels = made.setdefault(at, {}).setdefault(number, {})
                zeta_sq = float(line.get("zeta_sq_optimum") or line["zeta_sq"])
                levels.setdefault(line["level"], []).append((line["seed"], math.log(zeta_sq), float(line["difference"])))
        return made


def mean_at(levels, level):
    return statistics.mean(ratio for _, _, ratio in levels[level])


def contrast(levels, different=DIFFERENT):
    """Returns the mean log ratio of the most different clients minus that of the most similar ones; None without both."""
    return mean_at(levels, different) - mean_at(levels, ALIKE) if ALIKE in levels and different in levels else None


def slope(levels):
    """Returns the least-squares slope of the log ratio over log zeta^2; None without two places on that axis."""
    points = [(x, y) for found in levels.values() for _, x, y in found]
    if len(levels) < 2:
        return None
    middle = statistics.mean(x for x, _ in points)
    return sum((x - middle) * y for x, y in points) / sum((x - middle) ** 2 for x, _ in points)


def ahead_at(level):
    """Returns a function for the mean log ratio at a level."""
    return lambda levels: mean_at(levels, level) if level in levels else None


class Estimate:
    """The mean of the repetitions, with a standard error and degrees of freedom."""

    def __init__(self, values, variance, freedom):
        self.values, self.mean = values, statistics.mean(values)
        self.error, self.freedom = math.sqrt(variance / len(values)), freedom

    @property
    def p(self):
        return student.two_sided_p(self.mean / self.error, self.freedom) if self.error > 0 else float(self.mean == 0)

    @property
    def interval(self):
        half = student.quantile(self.freedom) * self.error
        return self.mean - half, self.mean + half


def estimates(log, statistic, pair):
    """Returns {group: (with the pooled variance, with its own)} of a pair. Groups with fewer than two repetitions are left out."""
    values = {}
    for (of, group), repetitions in log.items():
        found = [value for value in map(statistic, repetitions.values()) if value is not None]
        if of == pair and len(found) > 1:
            values[group] = found
    freedom = sum(len(found) - 1 for found in values.values())
    pooled = sum((len(found) - 1) * statistics.variance(found) for found in values.values()) / freedom if freedom else 0.0
    return {group: (Estimate(found, pooled, freedom), Estimate(found, statistics.variance(found), len(found) - 1)) for group, found in values.items()}


class Verdict:
    """An estimate in its family: `adjusted` is its p-value by Holm's rule."""

    def __init__(self, pair, group, pooled, own, adjusted):
        self.pair, self.group, self.pooled, self.own, self.adjusted = pair, group, pooled, own, adjusted

    @property
    def sign(self):
        """-1 for a claim below zero, for the absolute operator; 1 for one above; 0 for none."""
        return 0 if self.adjusted > SIGNIFICANT else int(math.copysign(1, self.pooled.mean))

    @property
    def is_alike(self):
        low, high = self.pooled.interval
        return -MARGIN < low and high < MARGIN


def family(log, statistic, pairs=PAIRS):
    """Returns the verdicts of all groups of all pairs, adjusted together."""
    found = [(pair, group, *both) for pair in pairs for group, both in sorted(estimates(log, statistic, pair).items())]
    adjusted = holm_adjusted([pooled.p for _, _, pooled, _ in found])
    return [Verdict(*one, p) for one, p in zip(found, adjusted)]


def by_own_variance(verdicts):
    """Returns the same verdicts with each group's own variance in place of the pooled one, adjusted together again."""
    adjusted = holm_adjusted([one.own.p for one in verdicts])
    return [Verdict(one.pair, one.group, one.own, one.own, p) for one, p in zip(verdicts, adjusted)]


def predicted_sign(value):
    """Returns the sign of a forecast, 0 for one that predicts nothing."""
    return 0 if abs(value) <= CLEAR else int(math.copysign(1, value))


def predicted_contrast(forecasts, group):
    """Returns the sign of the contrast that the forecasts {(*group, level): value} predict."""
    return predicted_sign(forecasts[*group, DIFFERENT] - forecasts[*group, ALIKE])


def hits(verdicts, predict):
    """Returns the numbers of verdicts that are hits, misses, and predicted but open. predict(group) returns a sign."""
    counts = {"hit": 0, "miss": 0, "open": 0}
    for verdict in verdicts:
        expected = predict(verdict.group)
        kind = "hit" if verdict.sign == expected else "open" if verdict.sign == 0 else "miss"
        counts[kind] += 1
    return counts
