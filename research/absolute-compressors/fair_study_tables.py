"""The exported parts of the second study, the words of its verdicts, and its tables. Needs nothing but Python."""
import csv
import math
import statistics
import typing

import fair_study_inference as inference
from conjecture_study.answer import number_of
from conjecture_study.results import markdown

PROBLEMS = ("libsvm/a9a", "libsvm/w8a", "libsvm/letter")
WORDS = {("hard", "top-k"): "the hard threshold against Top-k", ("rounding", "three-lc"): "absolute rounding against 3LC"}
VERDICTS = {-1: "for", 1: "against", 0: "open"}
FULL_BUDGET = 0.95  # of the budget: runs that end before it are counted
FEEDBACKS = {"ef21": "EF21", "econtrol": "EControl"}


class Part(typing.NamedTuple):
    """What has been exported of a part of the study: for each repetition that has run, the lines of its runs and of its differences."""
    name: str
    planned: int
    runs: list
    differences: list

    @property
    def is_whole(self):
        return len(self.runs) == self.planned

    def log(self, bits="up", measure="f_gap"):
        return inference.LogRatios.of([[line for line in lines if line.get("measure", measure) == measure] for lines in self.differences], bits)

    def state(self):
        return "" if self.is_whole else (f"**A part: {len(self.runs)} of {self.planned} repetitions of `{self.name}` have run, and nothing is decided before all of "
                                         "them have.** ")


def part_of(folder, name, planned):
    """Reads the exported blocks of a part."""
    tables = {table: [folder / f"{name}-{number + 1}-{table}.csv.xz" for number in range(planned)] for table in ("runs", "differences")}
    found = [pair for pair in zip(tables["runs"], tables["differences"]) if pair[0].exists()]
    return Part(name, planned, [inference.lines_in(runs) for runs, _ in found], [inference.lines_in(lines) for _, lines in found])


def forecasts_in(folder):
    """Returns the forecasts of the plan: {(problem, steps, participation, level): value}."""
    with open(folder / "forecast.csv", newline="") as file:
        return {(line["data.name"], line["local.steps"], line["participation.fraction"], line["partition.percent"]): float(line["forecast"])
                for line in csv.DictReader(file)}


def group_cells(group):
    """Returns the cells that name a group."""
    cells = {}
    rest = list(group)
    if rest and rest[0].startswith("libsvm/"):
        cells["problem"] = rest.pop(0).removeprefix("libsvm/")
    labels = {"1": "all", "0.1": "a tenth"}
    if rest and len(group) > 2:
        cells["steps"] = rest.pop(0)
    if rest and rest[0] in labels:
        cells["clients"] = labels[rest.pop(0)]
    if rest:
        cells["feedback"] = FEEDBACKS.get(rest[0], rest[0])
    return cells


def in_order(verdicts):
    return sorted(verdicts, key=lambda one: (list(WORDS).index(one.pair), place_of(one.group)))


def place_of(group):
    return [PROBLEMS.index(label) if label in PROBLEMS else -float(label) if label in ("1", "0.1") else list(FEEDBACKS).index(label) if label in FEEDBACKS
            else float(label) for label in group]


def signed(value):
    return f"{value:+.3f}"


def interval(bounds):
    return f"{bounds[0]:+.3f} .. {bounds[1]:+.3f}"


def p_text(p):
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def counts(verdicts):
    """Returns the numbers of claims for the conjecture and against it, and of those that are open."""
    return {word: sum(one.sign == sign for one in verdicts) for sign, word in VERDICTS.items()}


def counted(verdicts):
    found = counts(verdicts)
    return f"for the conjecture in {found['for']} of {number_of(len(verdicts), 'group')}, against it in {found['against']}, and open in {found['open']}"


def conclusion(verdicts):
    """Returns what the plan concludes for a pair."""
    found = counts(verdicts)
    if found["for"] and found["against"]:
        return "the conjecture holds in some groups and fails in others"
    if found["for"]:
        return "the conjecture holds"
    return "the conjecture fails" if found["against"] else "nothing is shown"


def of_pair(verdicts, pair):
    return [one for one in verdicts if one.pair == pair]


def table_of(verdicts, more):
    """Returns a Markdown table of verdicts; more(verdict) returns further cells by title."""
    rows = [{"pair": " : ".join(one.pair), **group_cells(one.group), **more(one)} for one in in_order(verdicts)]
    return markdown(list(rows[0]), [list(row.values()) for row in rows]) if rows else "Nothing of it has run."


def estimate_cells(one, name):
    return {name: signed(one.pooled.mean), "95% interval": interval(one.pooled.interval), "p (Holm)": p_text(one.adjusted), "own variance: p": p_text(one.own.p)}


def contrast_table(log, verdicts, predict=None):
    """Returns the table of contrasts. predict(group) returns the predicted sign, None where nothing is predicted."""
    def cells(one):
        levels = log[one.pair, one.group]
        at = {level: statistics.mean(inference.mean_at(found, level) for found in levels.values()) for level in (inference.ALIKE, inference.DIFFERENT)}
        made = {"at 100%": signed(at[inference.ALIKE]), "at 0%": signed(at[inference.DIFFERENT]), **estimate_cells(one, "contrast"),
                "the conjecture": VERDICTS[one.sign]}
        if predict:
            made["predicted"] = VERDICTS[predict(one.group)]
        return made
    return table_of(verdicts, cells)


def ahead_word(one):
    """Returns who is ahead: the absolute operator is better, worse or alike, or nothing is shown."""
    return {-1: "better", 1: "worse"}.get(one.sign) or ("alike" if one.is_alike else "open")


def ahead_counts(verdicts):
    words = [ahead_word(one) for one in verdicts]
    return {word: words.count(word) for word in ("better", "worse", "alike", "open")}


def ahead_text(verdicts):
    found = ahead_counts(verdicts)
    return (f"better in {found['better']} of {number_of(len(verdicts), 'group')}, worse in {found['worse']}, alike within a factor of 1.1 in {found['alike']}, "
            f"and open in {found['open']}")


def ahead_table(verdicts, predict):
    def cells(one):
        low, high = (math.exp(bound) for bound in one.pooled.interval)
        return {"ratio of gaps": f"{math.exp(one.pooled.mean):.3f}", "95% interval": f"{low:.3f} .. {high:.3f}", "p (Holm)": p_text(one.adjusted),
                "result": ahead_word(one), "predicted": {-1: "better", 1: "worse", 0: "open"}[predict(one.group)]}
    return table_of(verdicts, cells)


def hits_text(verdicts, predict):
    found = inference.hits(verdicts, predict)
    hits, misses = (f"{found[key]} {one if found[key] == 1 else several}" for key, one, several in (("hit", "hit", "hits"), ("miss", "miss", "misses")))
    return f"{hits}, {misses}, {found['open']} predicted and open"


def group_of(line):
    return tuple(line[name] for name in inference.GROUP if line.get(name))


def level_of(line):
    return line.get("partition.percent") or line["partition.alpha"]


def short_runs(part):
    """Returns {(operator, group, level): number} of the runs that ended below 95% of the budget of their cell, and the number of all runs."""
    found, total = {}, 0
    for lines in part.runs:
        for line in lines:
            total += 1
            budget = line.get("stop.bits_up") or line.get("stop.bits")
            sent = float(line["bits_up"]) + (float(line["bits_down"]) if line.get("stop.bits") else 0)
            if budget and float(budget) > 0 and sent < FULL_BUDGET * float(budget):
                place = line["compressor.up"], group_of(line), level_of(line)
                found[place] = found.get(place, 0) + 1
    return found, total


def counts_in_order(verdicts):
    found = counts(verdicts)
    return found["for"], found["against"], found["open"]


def capital(text):
    return text[:1].upper() + text[1:]
