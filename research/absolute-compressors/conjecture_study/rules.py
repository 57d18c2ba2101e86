"""Three rules of thumb of first/page.md, each with the counts that support it. They are descriptive: nothing in them is tested but what the
tables of the page test."""
import math
import statistics

from conjecture_study import figures, results
from conjecture_study.answer import WORDS, claims_turned, listed, margin_counts, number_of, paragraph
from conjecture_study.contrasts import ALIKE, DIFFERENT
from conjecture_study.limits_page import short_pairs, value_of

LEVEL, METHOD = "partition.percent", "compressor.up"
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
            f"clients are alike, with four times the tuning candidates of 3LC and Top-k, whose code and k were fixed, so this may come from tuning."
            f"{beside_pairs} Do not infer the same for another operator of a class.")


def of_feedback(evidence, second, runs):
    budget, noisy = evidence.budget, evidence.noisy
    opposite, opposite_noisy = (sum(results.sign_depends(line, study.slopes) for line in study.between) for study in (budget, noisy))
    by_rest = {}
    for (level, group, method), gap in gaps_of(runs).items():
        labels = dict(zip(results.FACTORS.values(), group))
        if level == DIFFERENT and method == results.pairs_of(budget.slopes)[0][0]:
            rest = tuple(label for key, label in labels.items() if key != "feedback.up")
            by_rest.setdefault(rest, {})[labels["feedback.up"]] = gap
    best = [min(found, key=found.get) for found in by_rest.values()]
    counts = listed([f"{title} in {best.count(name)}" for name, title in figures.FEEDBACKS.items()])
    turned = ""
    if second.budget.blocks:
        (by_seeds, _), (opposed, _) = claims_turned(second.budget, budget), claims_turned(second.noisy, noisy)
        turned = (f" At a budget of {second.budget.name}% the claim of {opposed} of {number_of(len(second.budget.slopes), 'group')} is the opposite of that at "
                  f"{budget.name}% ({by_seeds} by the seeds alone).")
    return (f"**Do not carry a result from one feedback or budget to another.** In {opposite_noisy} of {len(budget.between)} comparisons of two feedbacks the slopes have "
            f"claims of opposite signs, with the noise of tuning in their errors ({opposite} by the seeds alone). With the threshold and the most different clients the "
            f"smallest gap was reached with {counts} of {number_of(len(by_rest), 'setting')} of the other factors, with three times the tuning candidates for "
            f"EControl.{turned}")


def in_gradients(run):
    """Returns a run's threshold or grid step in units of the gradient times L: updates are compressed, and an update of one step is the gradient times the step
    size."""
    return float(f"{value_of(run[TUNED[run[METHOD]]]) / value_of(run['local.learning_rate']):.9g}")


def changed_text(runs):
    """Returns in how many cells the tuned values are not the same at all levels, and where the thresholds went."""
    cells = {}
    for run in runs:
        values = cells.setdefault((run[METHOD], *(run[key] for key in results.FACTORS.values())), ({}, set()))
        values[0][run[LEVEL]] = in_gradients(run) if run[METHOD] in TUNED else None
        values[1].add(run["local.learning_rate"])
    absolute = [found for cell, (found, _) in cells.items() if cell[0] in TUNED]
    rates = [sum(len(values[1]) > 1 for cell, values in cells.items() if (cell[0] in TUNED) == is_absolute) for is_absolute in (True, False)]
    ends = [(found[ALIKE], found[DIFFERENT]) for found in absolute if {ALIKE, DIFFERENT} <= set(found)]
    return (f"The best threshold or grid step, divided by the chosen step size of its cell and so in units of the gradient (with ten local steps, of "
            f"their sum), was not the same at all levels of heterogeneity "
            f"in {sum(len(set(found.values())) > 1 for found in absolute)} of {number_of(len(absolute), 'cell')}. From 100% to 0% it grew in "
            f"{sum(high > low for low, high in ends)} and shrank in {sum(high < low for low, high in ends)}. The best step size changed in {rates[0]} of them and in "
            f"{rates[1]} of {len(cells) - len(absolute)} of the contractions.")


def core_of(budget, lines):
    """Returns the lines of a budget with one local step that are about the pairs and groups of other lines."""
    def place(line):
        labels = results.settings_of(line["group"])
        return line["a"], line["b"], *(labels[results.FACTORS[name]] for name in ("problem", "feedback", "share of clients"))
    places = {place(line) for line in lines}
    return [line for line in budget.slopes if place(line) in places and results.settings_of(line["group"])["local.steps"] == "1"]


def published_text(budget, published):
    """Returns what the published, untuned threshold did where clients differ most."""
    lines = [line for line in published.slopes if line["margin"]]
    worst = max((line for line in lines if line["difference"]), key=lambda line: float(line["difference"]))
    tuned, (_, short, cells) = core_of(budget, lines), short_pairs(published)
    capped = " (or more: runs of it are capped at f(x_0) - f\\*)" if worst["capped_there"] else ""
    return (f"The published threshold 1/(2 sqrt(k)), untuned, ended at up to {math.exp(float(worst['difference'])):.3g} times{capped} the gap of Top-k where "
            f"clients differ most, and was worse by more than the margin in {margin_counts(lines)['worse']} of {number_of(len(lines), 'group')}; the tuned "
            f"one, with other seeds, in {margin_counts(tuned)['worse']} of these {len(tuned)}. In {len(short)} of {number_of(cells, 'cell')} of the published one a run "
            "ended before it had sent 95% of the budget. ")


def of_tuning(budget, runs, published):
    return f"**Tune a threshold for the clients at hand.** {published_text(budget, published) if published.blocks else ''}{changed_text(runs)}"


def rules(evidence, second, runs, published, others):
    budget = evidence.budget
    texts = of_mechanism(budget, runs, others), of_feedback(evidence, second, runs), of_tuning(budget, runs, published)
    return "\n".join(paragraph(text, f"{i}. ", "   ") for i, text in enumerate(texts, 1))
