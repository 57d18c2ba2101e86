"""The parts of docs/conjecture.md about robustness and networks: studies of their own, each with one block and one family of tests."""
import math
import statistics

from conjecture_study import descriptive, figures, limits_page as limits, results
from svg_charts import forest_chart

NAMES = {"robust-dirichlet": "Dirichlet splits", "robust-quadratics": "quadratics", "robust-momentum": "server momentum",
         "robust-published": "published rule", "network-core": "perceptron on Fashion-MNIST", "network-low-rank": "low-rank operators",
         "network-grid": "perceptron, whole grid", "cifar-core": "small CNN on CIFAR-10, exploratory"}
CORE = "core"
PAIR, LEVELS = ("hard", "top-k"), ("100", "0")


def key(line):
    """Returns what a group of the core and one of a study of robustness have in common."""
    at = results.settings_of(line["group"])
    return at.get("data.name", ""), at["feedback.up"], at["participation.fraction"]


class Slope:
    """The mean slope over the seeds of one group of the core, with Student's 95% interval, and its claim once all are known."""

    def __init__(self, slopes):
        freedom, error = len(slopes) - 1, statistics.stdev(slopes) / math.sqrt(len(slopes))
        self.mean, self.t, self.freedom, self.claim = statistics.mean(slopes), abs(statistics.mean(slopes)) / error, freedom, "no claim"
        self.interval = tuple(self.mean + side * descriptive.student(freedom) * error for side in (-1, 0, 1))


def decide(slopes):
    """Sets the claims of a family by Holm's rule at 0.05: the largest t is compared with the smallest level."""
    for rank, slope in enumerate(sorted(slopes, key=lambda slope: -slope.t)):
        quantile = descriptive.student(slope.freedom, statistics.NormalDist().inv_cdf(1 - 0.025 / (len(slopes) - rank)))
        if slope.t <= quantile:
            return
        slope.claim = "for" if slope.mean < 0 else "against"


def core_slopes(budget):
    """Returns the core's slopes by key: hard against top-k with one local step, over the two levels of the plan's core, as a family of its own."""
    lines = [line for line in budget.differences() if (line["a"], line["b"]) == PAIR and results.settings_of(line["group"])["local.steps"] == "1"]
    return two_level_slopes(lines, LEVELS)


def two_level_slopes(differences, levels):
    """Returns {key: Slope} of the paired differences of one pair over two levels, with claims adjusted over all of them."""
    ends = {}
    for line in differences:
        if line["level"] in levels and line["difference"]:
            ends.setdefault(key(line), {}).setdefault(line["seed"], {})[line["level"]] = float(line["x"]), float(line["difference"])
    slopes = {}
    for at, seeds in ends.items():
        pairs = [(found[levels[0]], found[levels[1]]) for found in seeds.values() if len(found) == len(levels)]
        slopes[at] = Slope([(different[1] - alike[1]) / (different[0] - alike[0]) for alike, different in pairs])
    decide(slopes.values())
    return slopes


def agreement(study, core):
    """Returns how many groups have the core's claim, no claim where the core has one or the reverse, and the opposite claim."""
    found = {"the same claim": 0, "one of the two without a claim": 0, "the opposite claim": 0}
    for line in study.slopes:
        if key(line) in core:
            here, there = results.verdict_of(line), core[key(line)].claim
            kind = "the same claim" if here == there else "one of the two without a claim" if "no claim" in (here, there) else "the opposite claim"
            found[kind] += 1
    return found


def robust_text(study, compared):
    """Returns whether the plan calls a part robust: no group has the opposite claim, and more than half have the same."""
    if sum(compared.values()) < len(study.slopes):
        return "nothing is said before the core has run in all of these groups"
    robust = not compared["the opposite claim"] and 2 * compared["the same claim"] > len(study.slopes)
    return "the core is robust to it" if robust else "the core is not robust to it"


def study_part(study, core):
    """Returns the text and the tables of one study."""
    heading = f"### {NAMES[study.name][0].upper()}{NAMES[study.name][1:]}"
    if not study.blocks:
        return f"{heading}\n\n`{study.name}` has not run."
    said = [results.count_line(pair, results.of_pair(study.slopes, pair)) for pair in results.pairs_of(study.slopes)]
    compared = agreement(study, core)
    if sum(compared.values()):
        said.append(f"- beside the core: {', '.join(f'{kind} in {count}' for kind, count in compared.items())}; {robust_text(study, compared)}")
    elif study.name.startswith("robust-"):
        said.append("- its problem is not one of the core's, so no group is set beside the core")
    if any(int(line["capped"]) for line in study.slopes):
        cap = "f(x_0) - f\\*" if study.slopes[0]["measure"] == "f_gap" else "the accuracy of chance"
        said.append(f"- \\* rests on end points that are capped at {cap}, so the true slope is not known")
    if any(" evaluation" in line["why"] + line["result_why"] for line in study.slopes):
        said.append(f"- {results.SHORT_WINDOW} has fewer than five evaluations in the last fifth of the bits that both sent, so the plan allows no claim")
    said += filter(None, [limits.short_text(study)])
    tables = [results.table(study.slopes, results.slope_cells), results.table(study.slopes, results.margin_cells)]
    return "\n\n".join([heading, "\n".join(said), *tables, *filter(None, [results.table(study.between, results.between_cells)])])


def slope_row(heading, label, line, series):
    if not line:
        return heading, label, None, series, "has not run"
    return heading, label, figures.interval_of(line, ("slope_low", "slope", "slope_high")), series, results.verdict_of(line)


def slopes_beside_core(studies, budget):
    """Returns the slopes of the core and of each study of robustness beside each other."""
    core, rows = core_slopes(budget), []
    names = [CORE] + [NAMES[study.name] for study in studies]
    for data in dict.fromkeys(at["data.name"] for at in budget.groups):
        for fraction in ("1", "0.1"):
            for feedback, name in figures.FEEDBACKS.items():
                heading = f"{data.split('/')[-1]}, {'all clients' if fraction == '1' else 'a tenth'}, {name}"
                at = data, feedback, fraction
                rows.append((heading, CORE, core[at].interval, 0, core[at].claim) if at in core else (heading, CORE, None, 0, "has not run"))
                for i, study in enumerate(studies, 1):
                    rows.append(slope_row(heading, NAMES[study.name], {key(line): line for line in study.slopes}.get(at), i))
    axis = figures.axis_around([row[2] for row in rows if row[2]], (0.0,))
    return forest_chart("Robustness: slopes of hard threshold against Top-k", "one local step, budget of 5%, with Student's 95% interval", rows, axis,
                        "slope of log(hard / top-k)", names, (0.0,), ("for", "against"))


def write_figures(studies, budget, folder):
    """Draws the studies that share their groups with the core beside it, and returns the names of the figures."""
    shared = [study for study in studies if study.name.startswith("robust-") and study.name != "robust-quadratics"]
    if not any(study.blocks for study in shared):
        return []
    (folder / "robustness.svg").write_text(slopes_beside_core(shared, budget))
    return ["robustness"]


def part(studies, budget, names):
    """Returns the generated part of the page about some studies, with the figures drawn for them."""
    core = core_slopes(budget)
    pictures = [f"![Slopes of the core and of its variations beside each other](conjecture/figures/{name}.svg)" for name in names]
    return "\n\n".join(pictures + [study_part(study, core) for study in studies])
