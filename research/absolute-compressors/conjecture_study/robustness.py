"""The parts of first/page.md about robustness and networks: studies of their own, each with one block and one family of tests."""
import math
import statistics

from conjecture_study import descriptive, figures, limits_page as limits, results
from conjecture_study.answer import Agreement, listed, paragraph
from svg_charts import forest_chart

NAMES = {"robust-dirichlet": "Dirichlet splits", "robust-quadratics": "quadratics", "robust-momentum": "server momentum",
         "robust-published": "published rule", "network-core": "perceptron on Fashion-MNIST", "network-low-rank": "low-rank operators",
         "network-grid": "perceptron, whole grid", "cifar-core": "small CNN on CIFAR-10, exploratory"}
CONDITIONS = {"robust-dirichlet": "with Dirichlet splits", "robust-momentum": "with server momentum", "robust-published": "with the published, untuned threshold"}
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


def agreement(study, verdicts):
    """Returns how the verdicts of a study agree with the core's, {key: verdict}."""
    return Agreement((results.verdict_of(line), verdicts[key(line)]) for line in study.slopes if key(line) in verdicts)


def over_two_levels(core):
    return {at: slope.claim for at, slope in core.items()}


def over_five_levels(budget):
    """Returns the core's verdicts in the primary tables, as a part of their family of slopes."""
    lines = results.of_pair(budget.slopes, PAIR)
    return {key(line): results.verdict_of(line) for line in lines if results.settings_of(line["group"])["local.steps"] == "1"}


def robust_text(study, compared):
    """Returns whether the plan calls a part robust: no group has the opposite claim, and more than half have the same verdict."""
    if compared.total < len(study.slopes):
        return "nothing is said before the core has run in all of these groups"
    robust = not compared.opposite and 2 * (compared.same + compared.neither) > len(study.slopes)
    return "the core is robust to it" if robust else "the core is not robust to it"


def core_table(core):
    """Returns the core's slopes over two levels as Markdown."""
    rows = [[at[0].split("/")[-1], at[1], at[2], " : ".join(PAIR), results.signed(slope.mean), results.interval(slope.interval[0], slope.interval[2]), slope.claim]
            for at, slope in core.items()]
    return results.markdown(["problem", "feedback", "share of clients", "pair", "slope", "95% interval", "the conjecture"], rows)


def answer_text(studies, budget):
    """Returns how the core fares under other conditions in one sentence, "" before any study of them has run."""
    verdicts, said, robust = over_two_levels(core_slopes(budget)), [], []
    for study in studies:
        compared = agreement(study, verdicts)
        if compared.total:
            said.append(f"in {compared.opposite} {CONDITIONS[study.name]}")
            robust += [CONDITIONS[study.name]] if robust_text(study, compared) == "the core is robust to it" else []
    if not said:
        return ""
    return (f"Of {len(verdicts)} groups of the hard threshold against Top-k (one local step, two levels) the claim is the opposite of the study's {listed(said)}; "
            f"by the rule of the plan the study is robust {f'only {listed(robust)}' if robust else 'to none of these'}.")


class AtTheEnds:
    """What stands beside the margins of a study of networks: the differences at all levels, those at the ends of both runs, and the rounds played."""

    def __init__(self, study):
        self.differences, self.ends, self.rounds = {}, {}, {}
        lines = study.differences()
        self.name_alike = str(max({float(line["level"]) for line in lines})).removesuffix(".0") if lines else ""
        runs = {run["run"]: run for run in study.runs()}
        for line in lines:
            at = line["group"], line["a"], line["b"], line["level"]
            pair = runs[line["run_a"]], runs[line["run_b"]]
            if line["difference"]:
                self.differences.setdefault(at, []).append(float(line["difference"]))
            self.ends.setdefault(at, []).append(float(pair[0]["test_accuracy"]) - float(pair[1]["test_accuracy"]))
            self.rounds.setdefault(at, []).append(tuple(int(run["rounds"]) for run in pair))

    def cells(self, line):
        """Returns the cells of a margin with these columns, interval and value together."""
        at, group = (line["group"], line["a"], line["b"], line["level"]), results.group_cells(line)
        rounds = " : ".join(f"{statistics.mean(played):.0f}" for played in zip(*self.rounds[at]))
        margin = results.margin_cells(line)
        result = next(title for title in margin if title.startswith("result"))
        return {**group, "pair": margin["pair"], f"difference at {self.name_alike}%": descriptive.mean_text(self.differences[(*at[:3], self.name_alike)]),
                f"difference at {line['level']}%": f"{descriptive.mean_text(self.differences[at])}{results.capped_mark(line['capped_there'])}", result: margin[result],
                f"rounds at {line['level']}%": rounds, f"last values at {line['level']}%": descriptive.mean_text(self.ends[at])}


def study_part(study, core, budget):
    """Returns the text and the tables of one study."""
    heading = f"### {NAMES[study.name][0].upper()}{NAMES[study.name][1:]}"
    if not study.blocks:
        return f"{heading}\n\n`{study.name}` has not run."
    said = [results.count_line(pair, results.of_pair(study.slopes, pair)) for pair in results.pairs_of(study.slopes)]
    compared = agreement(study, over_two_levels(core))
    if compared.total:
        five = agreement(study, over_five_levels(budget))
        said.append(paragraph(f"compared with the core: {compared.text()}; {robust_text(study, compared)} (with its slopes over five levels in the primary tables: "
                              f"the same claim in {five.same}, the opposite one in {five.opposite})", "- ", "  "))
    elif study.name.startswith("robust-"):
        said.append("- its problem is not one of the core's, so no group is set beside the core")
    if any(int(line["capped"]) for line in study.slopes):
        cap = "f(x_0) - f\\*" if study.slopes[0]["measure"] == "f_gap" else "the accuracy of chance"
        said.append(f"- \\* rests on end points that are capped at {cap}, so the true slope or difference is not known")
    if any(" evaluation" in line["why"] + line["result_why"] for line in study.slopes):
        said.append(f"- {results.SHORT_WINDOW} has fewer than five evaluations in the last fifth of the bits that both sent, so the plan allows no claim")
    said += filter(None, [limits.short_text(study)])
    margins = AtTheEnds(study).cells if study.slopes[0]["measure"] == "test_accuracy" else results.margin_cells
    tables = [results.table(study.slopes, results.slope_cells), results.table(study.slopes, margins)]
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
    pictures = [f"![Slopes of the core and of its variations beside each other](figures/{name}.svg)" for name in names]
    tables = [f"### The core\n\n{core_table(core)}"] if names else []
    return "\n\n".join(pictures + tables + [study_part(study, core, budget) for study in studies])
