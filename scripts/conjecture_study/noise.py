"""The part of docs/conjecture.md about the noise that tuning leaves in the slopes. Intervals and p-values hold for the tuned values as chosen. The two levels
at which clients differ most are nearly one place on the axis, so what their log ratios differ by shows what another choice of tuned values does."""
import math
import statistics

from conjecture_study import results
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


def part(budget, runs):
    """Returns how far the log ratios of two nearly equal levels differ, and what such a difference does to a slope."""
    means = means_of(budget.differences())
    same, other = split_by_tuning(means, tuned_values(runs))
    if not same or not other:
        return "Too few blocks have run to tell."
    places = [levels[NEAR[1]][0] - levels[NEAR[0]][0] for levels in means.values()]
    size = root_mean_square(other)
    moved = statistics.mean(deviation_of_slope(levels, size / math.sqrt(2)) for levels in means.values())
    claims = [line for line in budget.slopes if results.verdict_of(line) != "no claim"]
    within = sum(abs(float(line["slope"])) < 1.96 * moved for line in claims)
    return paragraph(
        f"The levels 1% and 0% are {statistics.mean(places):.2f} apart in log zeta^2(x\\*), so the log ratios of gaps should be nearly the same at both. Where "
        f"tuning chose the same values, in {number_of(len(same), 'comparison')}, they differ by {root_mean_square(same):.3f} (root mean square); where it chose "
        f"others, in {len(other)}, by {size:.2f}, and by {max(map(abs, other)):.2f} at most. If tuning did this at every level, a slope would have a standard "
        f"deviation of about {moved:.3f} from it alone, and {within} of {number_of(len(claims), 'claim')} have slopes within 1.96 of these.")
