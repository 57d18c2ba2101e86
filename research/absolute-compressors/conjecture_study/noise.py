"""The noise that tuning leaves in contrasts and slopes, and the part of first/page.md about it. Tuning is one draw for each cell, so the intervals over
the seeds hold for the tuned values as chosen. The two levels at which clients differ most are nearly one place on the axis, so what their log ratios differ
by shows what another choice of tuned values does."""
import math
import statistics
import typing

from conjecture_study import contrasts, limits_page as limits, results
from conjecture_study.answer import number_of, paragraph

NEAR = "1", "0"  # percentages of rows that are dealt at random, nearly one place on the axis
VALUES = "local.learning_rate", "feedback.up.eta", "compressor.up.threshold", "compressor.up.step"


def tuned_values(runs):
    """Returns {(level, group, method): values} that tuning chose, the same for all seeds."""
    axes = "partition.percent", *results.FACTORS.values(), "compressor.up"
    return {tuple(run[key] for key in axes): tuple(run[key] for key in VALUES) for run in runs}


def means_of(differences):
    """Returns {(group, pair): {level: (mean of x, mean log ratio)}}."""
    found = {}
    for line in differences:
        if line["difference"] and line["x"]:
            found.setdefault((line["group"], line["a"], line["b"]), {}).setdefault(line["level"], []).append((float(line["x"]), float(line["difference"])))
    return {at: {level: tuple(map(statistics.mean, zip(*values))) for level, values in levels.items()} for at, levels in found.items()}


def deviation_of_slope(levels, deviation):
    """Returns the standard deviation of a fitted slope if the log ratio of each level has one of its own."""
    places = [x for x, _ in levels.values()]
    middle = statistics.mean(places)
    return deviation / math.sqrt(sum((x - middle)**2 for x in places))


def split_by_tuning(means, tuned):
    """Returns the differences of the mean log ratios of the two near levels: where tuning chose the same values for both operators, and where not."""
    same, other = [], []
    for (group, *pair), levels in means.items():
        labels = tuple(results.settings_of(group)[key] for key in results.FACTORS.values())
        chosen = [[tuned[(level, *labels, method)] for method in pair] for level in NEAR]
        (same if chosen[0] == chosen[1] else other).append(levels[NEAR[1]][1] - levels[NEAR[0]][1])
    return same, other


def root_mean_square(values):
    return math.sqrt(statistics.mean(value**2 for value in values))


class Estimate(typing.NamedTuple):
    """What tuning adds to the noise of a budget. The deviations are those of results that have one draw of tuning for each cell."""
    same: list  # differences of the log ratios of the two near levels where tuning chose the same values for both operators
    other: list  # and where it chose others
    apart: float  # mean distance of the two near levels on the axis
    contrast: float  # standard deviation of the difference of two levels
    slope: float  # of a slope, if each level has 1/sqrt(2) of the deviation of a contrast
    lack_of_fit: float  # of a slope, if all that the five levels deviate from a line is noise


def lack_of_fit(levels):
    """Returns the standard error of the slope of a line fitted to the means of the levels: what they deviate from it, with two degrees of freedom less."""
    places, values = zip(*levels.values())
    middle, mean = statistics.mean(places), statistics.mean(values)
    spread = sum((x - middle)**2 for x in places)
    slope = sum((x - middle) * (y - mean) for x, y in zip(places, values)) / spread
    return math.sqrt(sum((y - mean - slope * (x - middle))**2 for x, y in zip(places, values)) / (len(places) - 2) / spread)


def estimate(budget, runs):
    """Returns the noise of tuning in a budget; None if too few blocks have run to tell."""
    means = means_of(budget.differences())
    same, other = split_by_tuning(means, tuned_values(runs))
    if not same or not other:
        return None
    size = root_mean_square(other)
    return Estimate(same, other, statistics.mean(levels[NEAR[1]][0] - levels[NEAR[0]][0] for levels in means.values()), size,
                    statistics.mean(deviation_of_slope(levels, size / math.sqrt(2)) for levels in means.values()),
                    root_mean_square([lack_of_fit(levels) for levels in means.values()]))


class Evidence:
    """The results of a budget with the noise of tuning in their errors, and without it. The noise cannot be estimated before enough
    of a budget has run; then both are the same."""

    def __init__(self, budget, runs):
        self.budget, self.noise = budget, estimate(budget, runs)
        self.contrasts_without = contrasts.lines_of(budget)
        self.contrasts = contrasts.lines_of(budget, self.noise.contrast) if self.noise else self.contrasts_without
        self.noisy = contrasts.with_tuning(budget, self.noise.slope) if self.noise else budget
        self.short = limits.short_pairs(budget)


def part(evidence):
    """Returns how far the log ratios of two nearly equal levels differ, what such a difference does to a slope, and what remains of the claims."""
    budget, noise = evidence.budget, evidence.noise
    if noise is None:
        return "Too few blocks have run to tell."
    tests = (("contrasts", evidence.contrasts, evidence.contrasts_without), ("slopes", evidence.noisy.slopes, budget.slopes),
             (f"slopes, deviation {noise.lack_of_fit:.3f}", contrasts.with_tuning(budget, noise.lack_of_fit).slopes, budget.slopes))
    rows = [[f"{pair[0]} : {pair[1]}", name, *(count_text(results.of_pair(lines, pair)) for lines in (with_noise, without))]
            for pair in results.pairs_of(budget.slopes) for name, with_noise, without in tests]
    said = paragraph(
        f"The levels 1% and 0% are {noise.apart:.2f} apart in log zeta^2(x\\*), so the log ratios of gaps should be nearly the same at both. Where "
        f"tuning chose the same values, in {number_of(len(noise.same), 'comparison')}, they differ by {root_mean_square(noise.same):.3f} (root mean square); where it "
        f"chose others, in {len(noise.other)}, by {noise.contrast:.2f}, and by {max(map(abs, noise.other)):.2f} at most. If tuning does this at every level, it alone "
        f"gives a contrast of two levels a standard deviation of {noise.contrast:.2f}, and a slope one of about {noise.slope:.3f}. If all that the five levels deviate "
        f"from a line is such noise, curvature included, a slope has one of {noise.lack_of_fit:.3f} (root mean square over the groups).")
    how = paragraph("The variance is added to the squared standard error of each result. The t test keeps its degrees of freedom, those of the seeds, although the "
                    "variance of tuning is itself an estimate from few comparisons. Holm's rule is over the same families.")
    return "\n\n".join([said, how, results.markdown(["pair", "tests", "with the noise of tuning", "without it"], rows)])


def count_text(lines):
    """Returns counts of verdicts: "9 for, 7 against, 8 open"."""
    counted = results.counts(lines)
    return f"{counted['for']} for, {counted['against']} against, {counted['no claim']} open"
