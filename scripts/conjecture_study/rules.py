"""Three rules of thumb of docs/conjecture.md, each with the counts that support it. They are descriptive: nothing in them is tested but what the
tables of the page test."""
import math
import statistics

from conjecture_study import figures, results
from conjecture_study.answer import WORDS, claims_turned, listed, margin_counts, number_of, paragraph
from conjecture_study.limits_page import value_of

LEVEL, METHOD = "partition.percent", "compressor.up"
ALIKE, DIFFERENT = "100", "0"  # the percentages of rows that are dealt at random where clients are most alike and least
TUNED = {"hard": "compressor.up.threshold", "rounding": "compressor.up.step"}


def gaps_of(runs):
    """Returns {(level, group, method): mean over the seeds of the log gap at the end of the runs}, without cells in which a run diverged."""
    cells = {}
    for run in runs:
        at = run[LEVEL], tuple(run[key] if key in run else "1" for key in results.FACTORS.values()), run[METHOD]
        cells.setdefault(at, []).append(math.log(float(run["f_gap"])) if run["status"] == "done" else math.inf)
    return {at: statistics.mean(values) for at, values in cells.items() if math.inf not in values}


def wins(gaps, name):
    """Returns in how many groups an operator has the smallest gap where clients are most alike and where they differ most, and of how many."""
    won, groups = {}, {}
    for level in (ALIKE, DIFFERENT):
        by_group = {}
        for (at, group, method), gap in gaps.items():
            if at == level:
                by_group.setdefault(group, {})[method] = gap
        won[level], groups[level] = sum(min(found, key=found.get) == name for found in by_group.values()), len(by_group)
    return won, groups


def others_below(gaps, name, others):
    """Returns {operator outside of the pairs: [whether it ended below an operator of the study, with other seeds, in each cell]}."""
    below = {}
    for (level, group, method), gap in others.items():
        if method not in WORDS and (level, group, name) in gaps:
            below.setdefault(method, []).append(gap < gaps[level, group, name])
    return below


def of_mechanism(budget, runs, others):
    pairs = results.pairs_of(budget.slopes)
    shown = [f"{WORDS[pair[0]]} was shown to be better than {WORDS[pair[1]]} in "
             f"{margin_counts(results.of_pair(budget.slopes, pair))['superior']} of {number_of(len(results.of_pair(budget.slopes, pair)), 'group')}"
             for pair in pairs]
    best = max(pairs, key=lambda pair: margin_counts(results.of_pair(budget.slopes, pair))["superior"])[0]
    gaps = gaps_of(runs)
    won, groups = wins(gaps, best)
    below = others_below(gaps, best, gaps_of(others))
    outside = listed([f"`{name}` ended below it in {sum(found)} of {number_of(len(found), 'cell')}" for name, found in below.items()])
    beside_pairs = f" Of the contractions outside of the pairs, {outside} with one local step (other seeds, not tested)." if outside else ""
    return (f"**Choose the mechanism, not the class.** Where clients differ most, {listed(shown)}. Of all four operators {WORDS[best]} had the smallest gap "
            f"at the end of its runs in {won[DIFFERENT]} of {number_of(groups[DIFFERENT], 'group')} there and in {won[ALIKE]} of {groups[ALIKE]} where "
            f"clients are alike, with four times the tuning candidates of 3LC and Top-k.{beside_pairs} Do not infer the same for another operator of a class.")


def of_feedback(budget, second, runs):
    opposite = sum(results.sign_depends(line, budget.slopes) for line in budget.between)
    by_rest = {}
    for (level, group, method), gap in gaps_of(runs).items():
        labels = dict(zip(results.FACTORS.values(), group))
        if level == DIFFERENT and method == results.pairs_of(budget.slopes)[0][0]:
            rest = tuple(label for key, label in labels.items() if key != "feedback.up")
            by_rest.setdefault(rest, {})[labels["feedback.up"]] = gap
    best = [min(found, key=found.get) for found in by_rest.values()]
    counts = listed([f"{title} in {best.count(name)}" for name, title in figures.FEEDBACKS.items()])
    turned = ""
    if second.blocks:
        opposed, _ = claims_turned(second, budget)
        turned = f" At a budget of {second.name}% the claim of {opposed} of {number_of(len(second.slopes), 'group')} is the opposite of that at {budget.name}%."
    return (f"**Do not carry a result from one feedback or budget to another.** In {opposite} of {len(budget.between)} comparisons of two feedbacks the slopes have claims "
            f"of opposite signs. With the threshold and the most different clients the smallest gap was reached with {counts} of "
            f"{number_of(len(by_rest), 'setting')} of the other factors, with three times the tuning candidates for EControl.{turned}")


def changed_text(runs):
    """Returns in how many cells the tuned values are not the same at all levels, and where the thresholds went."""
    cells = {}
    for run in runs:
        values = cells.setdefault((run[METHOD], *(run[key] for key in results.FACTORS.values())), ({}, set()))
        values[0][run[LEVEL]] = run[TUNED.get(run[METHOD], LEVEL)]
        values[1].add(run["local.learning_rate"])
    absolute = [found for cell, (found, _) in cells.items() if cell[0] in TUNED]
    rates = [sum(len(values[1]) > 1 for cell, values in cells.items() if (cell[0] in TUNED) == is_absolute) for is_absolute in (True, False)]
    ends = [(value_of(found[ALIKE]), value_of(found[DIFFERENT])) for found in absolute if {ALIKE, DIFFERENT} <= set(found)]
    return (f"The best threshold or grid step, in units of the gradient, was not the same at all levels of heterogeneity in "
            f"{sum(len(set(found.values())) > 1 for found in absolute)} of {number_of(len(absolute), 'cell')}, with no common direction: from 100% to 0% it "
            f"grew in {sum(high > low for low, high in ends)} and shrank in {sum(high < low for low, high in ends)}. The best step size changed in {rates[0]} of "
            f"them and in {rates[1]} of {len(cells) - len(absolute)} of the contractions.")


def core_of(budget, lines):
    """Returns the lines of a budget with one local step that are about the pairs and groups of other lines."""
    def place(line):
        labels = results.settings_of(line["group"])
        return line["a"], line["b"], *(labels[results.FACTORS[name]] for name in ("problem", "feedback", "share of clients"))
    places = {place(line) for line in lines}
    return [line for line in budget.slopes if place(line) in places and results.settings_of(line["group"])["local.steps"] == "1"]


def of_tuning(budget, runs, published):
    text = "**Tune a threshold for the clients at hand.** "
    if published.blocks:
        lines = [line for line in published.slopes if line["margin"]]
        worst = max((line for line in lines if line["difference"]), key=lambda line: float(line["difference"]))
        tuned = core_of(budget, lines)
        capped = " (or more: runs of it are capped at f(x_0) - f\\*)" if worst["capped_there"] else ""
        text += (f"The published threshold 1/(2 sqrt(k)), untuned, ended at up to {math.exp(float(worst['difference'])):.0f} times{capped} the gap of Top-k where "
                 f"clients differ most, and was worse by more than the margin in {margin_counts(lines)['worse']} of {number_of(len(lines), 'group')}; the tuned "
                 f"one, with other seeds, in {margin_counts(tuned)['worse']} of these {len(tuned)}. ")
    return text + changed_text(runs)


def rules(budget, second, runs, published, others):
    texts = of_mechanism(budget, runs, others), of_feedback(budget, second, runs), of_tuning(budget, runs, published)
    return "\n".join(paragraph(text, f"{i}. ", "   ") for i, text in enumerate(texts, 1))
