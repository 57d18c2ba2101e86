"""What scripts/choose_page.py reads from the exports of the two studies: gaps and accuracies of operators under feedbacks, and ratios of them with
intervals. Needs nothing but Python.

A *method* is a pair (feedback, operator), such as ("ef14", "top-k"). A *setting* is (problem, local steps, share of clients, level of similarity)."""
import math
import statistics
import typing

import conjecture
import fair_study
import fair_study_inference as inference
import fair_study_parts
from conjecture_study import noise, results, student
from fair_study_tables import FULL_BUDGET, part_of

ALL, TENTH = "1", "0.1"  # shares of the clients that take part in a round
ALIKE, DIFFERENT = "100", "0"  # percentages of the rows that are dealt at random
USUAL = "ef14", "top-k"  # the method that the others are compared with


class Ratio(typing.NamedTuple):
    """A mean with its 95% interval: of a log ratio, or of a difference of accuracies."""
    mean: float
    low: float
    high: float
    samples: int


class Setting(typing.NamedTuple):
    problem: str
    steps: str
    share: str
    level: str


def interval_of(values, deviation=0.0):
    """Returns the mean of paired values with Student's 95% interval. `deviation` is that of tuning, which all values share."""
    error = math.hypot(statistics.stdev(values) / math.sqrt(len(values)), deviation)
    half, mean = student.quantile(len(values) - 1) * error, statistics.mean(values)
    return Ratio(mean, mean - half, mean + half, len(values))


def below(ratios):
    return sum(ratio.high < 0 for ratio in ratios)


def above(ratios):
    return sum(ratio.low > 0 for ratio in ratios)


class FirstStudy:
    """The logarithms of the gaps at the end of the runs of one budget of the first study, by setting, method and seed."""

    def __init__(self, root, budget):
        study = conjecture.exported(root, budget)
        if not study.whole():
            raise ValueError(f"the first study has no exports of {', '.join(study.missing)}")
        runs = study.runs()
        self.budget = budget
        # Tuning is one draw for each cell. The noise that it leaves in the log ratio of two methods at one level is that of a contrast over sqrt(2).
        self.deviation = noise.estimate(study, runs).contrast / math.sqrt(2)
        self.gaps, self.down, self.sent = {}, {}, {}
        for run in runs:
            setting = Setting(run["data.name"].split("/")[-1], run["local.steps"], run["participation.fraction"], run["partition.percent"])
            method = run["feedback.up"], run["compressor.up"]
            gap = math.log(float(run["f_gap"])) if run["status"] == "done" else math.inf
            self.gaps.setdefault(setting, {}).setdefault(method, {})[run["seed"]] = gap
            self.down.setdefault((setting, method), []).append(float(run["bits_down"]) / float(run["bits_up"]))
            self.sent.setdefault((setting, method), []).append(float(run["bits_up"]) / float(run["stop.bits_up"]))

    def settings(self, **fixed):
        """Returns the settings that have the fixed values, in a lasting order."""
        return sorted(at for at in self.gaps if all(getattr(at, name) == value for name, value in fixed.items()))

    def methods(self):
        return sorted({method for found in self.gaps.values() for method in found})

    def mean(self, setting, method):
        return statistics.mean(self.gaps[setting][method].values())

    def ratio(self, setting, method, other=USUAL):
        """Returns the log ratio of the gaps of two methods, paired by seed, with the noise of tuning in its error; None if a run of them diverged."""
        first, second = (self.gaps[setting][one] for one in (method, other))
        if math.inf in (*first.values(), *second.values()):
            return None
        return interval_of([first[seed] - second[seed] for seed in sorted(first)], self.deviation)

    def num_seeds(self):
        return max(len(seeds) for found in self.gaps.values() for seeds in found.values())

    def best(self, settings, allowed=lambda method: True):
        """Returns the method with the smallest gap on the geometric mean over the settings, relative to the smallest one of each setting."""
        return min(filter(allowed, self.methods()), key=lambda method: (self.regret(settings, method), method))

    def regret(self, settings, method):
        """Returns the mean over the settings of the log ratio of a method's gap to the smallest gap of any method there."""
        return statistics.mean(self.mean(at, method) - min(self.mean(at, other) for other in self.gaps[at]) for at in settings)

    def wins(self, settings, method):
        """Returns in how many settings a method has the smallest gap of all."""
        return sum(min(self.gaps[at], key=lambda other: self.mean(at, other)) == method for at in settings)

    def choice(self, settings):
        """Returns the method that the page names first for some settings. The operator is that of the best method. Its feedback is EF14, unless another
        one has an interval below that of the feedback before it in at least half of the settings, and above it in none."""
        operator, chosen = self.best(settings)[1], USUAL[0]
        for feedback in ("ef21", "econtrol"):
            ratios = [self.ratio(at, (feedback, operator), (chosen, operator)) for at in settings]
            if None not in ratios and 2 * below(ratios) >= len(ratios) and not above(ratios):
                chosen = feedback
        return chosen, operator

    def is_clear(self, settings, method):
        """Returns whether a method's interval lies below 1 against Top-k under EF14 in at least half of the settings, and in more than above 1."""
        ratios = [self.ratio(at, method) for at in settings]
        return None not in ratios and 2 * below(ratios) >= len(ratios) and below(ratios) > above(ratios)

    def num_short(self, settings):
        """Returns in how many of the settings' cells, one for each method, a run ended before it had sent 95% of its budget, and the number of cells."""
        cells = [sent for (at, _), sent in self.sent.items() if at in settings]
        return sum(min(sent) < FULL_BUDGET for sent in cells), len(cells)

    def operator_wins(self, feedback, settings):
        """Returns {operator: in how many settings it has the smallest gap under a feedback}."""
        found = {operator: 0 for of, operator in self.methods() if of == feedback}
        for at in settings:
            found[min(found, key=lambda operator: self.mean(at, (feedback, operator)))] += 1
        return found


def pair_ratios(root, first, bits):
    """Returns {(setting, feedback, pair): log ratio of the pair's end points at equal bits} of the first study, at the two ends of the similarity."""
    found = {}
    for line in conjecture.exported(root, first.budget, bits).differences():
        if line["level"] in (ALIKE, DIFFERENT) and line["difference"]:
            setting = Setting(line["data.name"].split("/")[-1], line["local.steps"], line["participation.fraction"], line["level"])
            found.setdefault((setting, line["feedback.up"], (line["a"], line["b"])), []).append(float(line["difference"]))
    return {at: interval_of(values, first.deviation) for at, values in found.items()}


class SecondStudy:
    """The logarithms of the gaps at the end of the runs of a part of the second study, by setting, operator and repetition; all under EF14."""

    def __init__(self, root, name):
        self.part = part_of(root / fair_study.FOLDER / "results", name, fair_study.REPETITIONS[name])
        self.gaps = {}
        for number, lines in enumerate(self.part.runs):
            for run in lines:
                setting = Setting(run["data.name"].split("/")[-1], run.get("local.steps", ""), run["participation.fraction"], run["partition.percent"])
                gap = math.log(float(run["f_gap"])) if run["status"] == "done" else math.inf
                self.gaps.setdefault(setting, {}).setdefault(run["compressor.up"], {}).setdefault(number, []).append(gap)

    def operators(self):
        return sorted({operator for found in self.gaps.values() for operator in found})

    def mean(self, setting, operator):
        return statistics.mean(statistics.mean(values) for values in self.gaps[setting][operator].values())

    def settings(self, **fixed):
        return sorted(at for at in self.gaps if all(getattr(at, name) == value for name, value in fixed.items()))

    def wins(self, settings):
        """Returns {operator: in how many settings it has the smallest mean gap}."""
        found = dict.fromkeys(self.operators(), 0)
        for at in settings:
            found[min(self.gaps[at], key=lambda operator: self.mean(at, operator))] += 1
        return found

    def num_seeds(self):
        """Returns the number of seeds of a repetition."""
        return max(len(values) for found in self.gaps.values() for numbers in found.values() for values in numbers.values())

    def best(self, settings):
        """Returns the operator with the smallest gap on the geometric mean over the settings."""
        return min(self.operators(), key=lambda operator: (statistics.mean(self.mean(at, operator) for at in settings), operator))

    def ratios(self, operator, other, settings):
        """Returns {setting: log ratio of two operators, with an interval over repetitions whose variance is pooled over the settings}, empty for one
        repetition."""
        logs = {at: [statistics.mean(self.gaps[at][operator][number]) - statistics.mean(self.gaps[at][other][number]) for number in self.gaps[at][operator]]
                for at in settings}
        log = {((operator, other), at): {number: {"": [("", 0.0, value)]} for number, value in enumerate(values)} for at, values in logs.items()
               if math.inf not in map(abs, values)}
        made = inference.estimates(log, inference.ahead_at(""), (operator, other))
        return {at: Ratio(pooled.mean, *pooled.interval, len(pooled.values)) for at, (pooled, _) in made.items()}

    def verdicts(self, level):
        """Returns who is ahead at a level by the plan's rule: the verdicts of both pairs, which decide only once the part is whole."""
        return inference.family(self.part.log(), inference.ahead_at(level))


class Networks:
    """The runs of a study of networks: {(feedback, operator): {seed: accuracy on test rows at the end}} by (share, level)."""

    def __init__(self, root, name):
        self.study = conjecture.exported(root, name)
        self.accuracies, self.sent = {}, {}
        for run in self.study.runs():
            at, method = (run["participation.fraction"], run["partition.percent"]), (run.get("feedback.up") or "ef14", run["compressor.up"])
            self.accuracies.setdefault(at, {}).setdefault(method, {})[run["seed"]] = float(run["test_accuracy"])
            self.sent.setdefault((at, method), []).append(float(run["bits_up"]) / float(run["stop.bits_up"]))

    def mean(self, at, method):
        return statistics.mean(self.accuracies[at][method].values())

    def best(self, at):
        return max(sorted(self.accuracies[at]), key=lambda method: self.mean(at, method))

    def ties(self, at):
        """Returns the best method and those whose interval of the difference to it reaches 0, by their means."""
        best = self.best(at)
        others = [method for method in self.accuracies[at] if method != best and self.difference(at, method, best).high >= 0]
        return best, *sorted(others, key=lambda method: (-self.mean(at, method), method))

    def difference(self, at, method, other):
        first, second = (self.accuracies[at][one] for one in (method, other))
        return interval_of([first[seed] - second[seed] for seed in sorted(first)])

    def share_sent(self, at, method):
        """Returns the mean share of its budget that a method sent, at most 1."""
        return min(1.0, statistics.mean(self.sent[at, method]))

    def differences(self, pair):
        """Returns {(feedback, share, level): difference of the end points of the accuracy at equal bits} of a pair, with the reasons of lines without
        enough evaluations left out."""
        found = {}
        for line in self.study.differences():
            if (line["a"], line["b"]) == pair and line["measure"] == "test_accuracy" and line["difference"]:
                at = line["feedback.up"], line["participation.fraction"], line["level"]
                found.setdefault(at, []).append(float(line["difference"]))
        return {at: interval_of(values) for at, values in found.items() if len(values) > 1}


def published(root):
    """Returns the ratios of the gaps of the published, untuned threshold over Top-k where clients differ most, and how many the study calls worse."""
    lines = [line for line in conjecture.exported(root, "robust-published").slopes if line["margin"]]
    ratios = [Ratio(*(float(line[name]) for name in ("difference", "difference_low", "difference_high")), int(line["seeds"])) for line in lines]
    return ratios, sum(results.shown_of(line) == "worse" for line in lines)


def parts_of_second(root):
    """Returns the parts of the second study by name, each with the repetitions that have been exported."""
    return {name: part_of(root / fair_study.FOLDER / "results", name, planned) for name, planned in fair_study.REPETITIONS.items()}


def images(root):
    """Returns {(pair, alpha): difference of the accuracy on test rows} of the part on images, over its repetitions; empty before two have run."""
    log = parts_of_second(root)["images"].log(measure="test_accuracy")
    found = {}
    for pair in inference.PAIRS:
        for alpha in ("100", fair_study_parts.IMAGES_DIFFERENT):
            for pooled, _ in inference.estimates(log, inference.ahead_at(alpha), pair).values():
                found[pair, alpha] = Ratio(pooled.mean, *pooled.interval, len(pooled.values))
    return found
