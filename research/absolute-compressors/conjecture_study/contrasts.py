"""The contrast of the most different clients with the most similar ones: the mean over the seeds of the log ratio of gaps at a similarity of 0% minus
that at 100%, with a t test and Holm's rule over the same family as the slopes. It needs no axis of heterogeneity, on which 10, 1 and 0% are nearly one
place.

A contrast is a line like one of slopes.csv, so that the counts of results.py apply to it: `slope` is the contrast."""
import copy
import math
import statistics

from conjecture_study import results, student

ALIKE, DIFFERENT = "100", "0"  # the percentages of rows that are dealt at random where clients are most alike and least
DECIDED_BY_TESTS = "", results.OF_SLOPE_TEST, "the interval contains zero"


def of_seeds(differences):
    """Returns {(group, pair): contrasts of the seeds that have both levels}."""
    ends = {}
    for line in differences:
        if line["difference"] and line["level"] in (ALIKE, DIFFERENT):
            ends.setdefault((line["group"], line["a"], line["b"]), {}).setdefault(line["seed"], {})[line["level"]] = float(line["difference"])
    return {at: [found[DIFFERENT] - found[ALIKE] for found in seeds.values() if len(found) == 2] for at, seeds in ends.items()}


def tested(line, mean, error, freedom):
    """Returns a line with another mean and standard error. What excludes a claim for other reasons than a test still does."""
    half = student.quantile(freedom) * error
    return {**line, "slope": str(mean), "slope_low": str(mean - half), "slope_high": str(mean + half), "p": str(student.two_sided_p(mean / error, freedom)),
            "why": "" if line["why"] in DECIDED_BY_TESTS else line["why"]}


def adjusted(lines):
    """Returns the lines with p-values adjusted by Holm's rule over all of them."""
    return [{**line, "p_holm": p} for line, p in zip(lines, results.holm_adjusted([float(line["p"]) for line in lines]))]


def lines_of(study, deviation=0.0):
    """Returns a contrast for each slope of a study. The variance of `deviation`, that of tuning, is added to the squared standard error of the seeds."""
    seeds, made = of_seeds(study.differences()), []
    for line in study.slopes:
        values = seeds.get((line["group"], line["a"], line["b"]), [])
        if len(values) < 2:
            continue
        error = math.hypot(statistics.stdev(values) / math.sqrt(len(values)), deviation)
        made.append(tested(line, statistics.mean(values), error, len(values) - 1))
    return adjusted(made)


def widened(lines, deviation):
    """Returns lines of slopes, or of their differences, with a variance added to the squared standard error of each, and the same degrees of freedom."""
    made = []
    for line in lines:
        freedom = int(line["seeds"]) - 1
        if freedom < 1:
            continue
        error = (float(line["slope_high"]) - float(line["slope_low"])) / 2 / student.quantile(freedom)
        made.append(tested(line, float(line["slope"]), math.hypot(error, deviation), freedom))
    return adjusted(made)


def with_tuning(study, deviation):
    """Returns a study whose slopes, and differences of two slopes, have the noise of tuning in their errors, `deviation` for each slope."""
    made = copy.copy(study)
    made.slopes, made.between = widened(study.slopes, deviation), widened(study.between, math.sqrt(2) * deviation)
    return made


def same_verdicts(lines, others):
    """Returns in how many groups two analyses have the same verdict."""
    verdicts = {(line["group"], line["a"], line["b"]): results.verdict_of(line) for line in others}
    return sum(results.verdict_of(line) == verdicts[line["group"], line["a"], line["b"]] for line in lines)
