"""The page of the second study, docs/conjecture.md: its generated parts and figures, and the answer in README.md, from the exported tables alone.

Every number and every conclusion in them is computed by the rules of second/plan.md. The text outside of the marks is written by hand and
has no result in it. Needs nothing but Python."""
import statistics
import tomllib

import fair_study_inference as inference
from conjecture_study import figures
from conjecture_study.answer import number_of, paragraph, picture
from conjecture_study.page import filled
from fair_study_answer import answer, short_answer, state_text
from fair_study_parts import images_part, knobs_part, ran_part, sign_part, silent_text, simple_contrasts, target_part
from fair_study_tables import (PROBLEMS, VERDICTS, WORDS, ahead_table, ahead_text, capital, contrast_table, counted, estimate_cells, forecasts_in, group_cells,
                               hits_text, in_order, of_pair, part_of, short_runs, table_of)
from svg_charts import forest_chart

PICTURES = "../research/absolute-compressors/second/figures"  # from the page
SHORT = {("hard", "top-k"): "hard", ("rounding", "three-lc"): "rounding"}


class Budget:
    """What is inferred at one budget of the core."""

    def __init__(self, part, forecasts):
        self.part, self.forecasts, self.log = part, forecasts, part.log()
        self.contrasts = inference.family(self.log, inference.contrast)
        self.slopes = inference.family(self.log, inference.slope)
        self.ahead = {level: inference.family(self.log, inference.ahead_at(level)) for level in (inference.ALIKE, inference.DIFFERENT)}

    @property
    def name(self):
        return self.part.name.removeprefix("core-")

    @property
    def has_results(self):
        return len(self.part.runs) > 1

    def predicted(self, group):
        return inference.predicted_contrast(self.forecasts, group)

    def predicted_at(self, level):
        return lambda group: inference.predicted_sign(self.forecasts[*group, level])

    def without_short(self, pair):
        """Returns the contrasts of a pair without the groups in which a run of the pair ended below the budget."""
        short = {(operator, group) for operator, group, _ in short_runs(self.part)[0]}
        return [one for one in of_pair(self.contrasts, pair) if not any((operator, one.group) in short for operator in pair)]


def contrasts_part(budget):
    if not budget.has_results:
        return f"Fewer than two repetitions of the budget of {budget.name}% have run."
    said = []
    for pair in WORDS:
        of = of_pair(budget.contrasts, pair)
        said.append(paragraph(f"{capital(WORDS[pair])}: {counted(of)}; predictions: {hits_text(of, budget.predicted)}.", "- ", "  "))
    pictures = [picture(f"contrasts-{short}-{budget.name}", f"Contrasts of {WORDS[pair]} in each group, with intervals and forecasts", PICTURES)
                for pair, short in SHORT.items()]
    return "\n\n".join([*([paragraph(budget.part.state().strip())] if budget.part.state() else []), "\n".join(said), *pictures,
                        contrast_table(budget.log, budget.contrasts, budget.predicted), short_text(budget)])


def short_text(budget):
    """Returns the counts without the groups in which a run ended below the budget."""
    found, total = short_runs(budget.part)
    if not found:
        return "Every run sent at least 95% of the budget of its cell."
    said = [f"{WORDS[pair]} is {counted(budget.without_short(pair))}" for pair in WORDS]
    return paragraph(f"{sum(found.values())} of {total:,} runs ended below 95% of the budget of their cell, those of the witnesses included. Without the groups "
                     f"in which one of the pair did, the contrast of {'; of '.join(said)}.")


def slopes_part(budget):
    if not budget.has_results:
        return f"Fewer than two repetitions of the budget of {budget.name}% have run."
    pictures = [picture(f"ratios-{short}-{budget.name}", f"Log ratio of gaps of {WORDS[pair]} against heterogeneity", PICTURES)
                for pair, short in SHORT.items()]
    return "\n\n".join([*pictures, table_of(budget.slopes, lambda one: {**estimate_cells(one, "slope"), "the conjecture": VERDICTS[one.sign]})])


def ahead_part(budget):
    if not budget.has_results:
        return f"Fewer than two repetitions of the budget of {budget.name}% have run."
    parts = []
    for level, verdicts in budget.ahead.items():
        said = []
        for pair in WORDS:
            of = of_pair(verdicts, pair)
            said.append(paragraph(f"{capital(WORDS[pair])}: {ahead_text(of)}; predictions: {hits_text(of, budget.predicted_at(level))}.", "- ", "  "))
        parts += [f"At a share of {level}% dealt at random:", "\n".join(said), ahead_table(verdicts, budget.predicted_at(level))]
    return "\n\n".join(parts)


def ratio_curves(log, pair, panels):
    """Returns {panel: {curve: [(x, mean, low, high)]}} of the log ratios over the levels; low and high are the least and the largest repetition."""
    made = {}
    for (of, group), repetitions in log.items():
        if of != pair:
            continue
        levels = {}
        for found in repetitions.values():
            for level, points in found.items():
                levels.setdefault(level, []).append((statistics.mean(x for _, x, _ in points), statistics.mean(y for _, _, y in points)))
        curve = sorted((statistics.mean(x for x, _ in points), statistics.mean(y for _, y in points), min(y for _, y in points), max(y for _, y in points))
                       for points in levels.values())
        made.setdefault(group[1:], {})[PROBLEMS.index(group[0])] = curve
    return [(name, made.get(panel, {})) for panel, name in panels.items()]


def draw(budget, folder):
    """Writes the figures of a budget."""
    folder.mkdir(exist_ok=True)
    panels = {(steps, clients): f"{number_of(int(steps), 'local step')}, {'all clients' if clients == '1' else 'a tenth of clients'}"
              for steps in ("1", "10") for clients in ("1", "0.1")}
    for pair, short in SHORT.items():
        rows = []
        for one in in_order(of_pair(budget.contrasts, pair)):
            low, high = one.pooled.interval
            cells = group_cells(one.group)
            forecast = budget.forecasts[*one.group, inference.DIFFERENT] - budget.forecasts[*one.group, inference.ALIKE]
            heading = f"{cells['problem']}, {number_of(int(cells['steps']), 'step')}, {cells['clients']}"
            rows += [(heading, "measured", (low, one.pooled.mean, high), 0, VERDICTS[one.sign]),
                     (heading, "forecast", (forecast, forecast, forecast), 1, VERDICTS[budget.predicted(one.group)])]
        if not rows:
            continue
        axis = figures.axis_around([row[2] for row in rows], (0.0,))
        chart = forest_chart(f"From 100% to 0%: {WORDS[pair].removeprefix('the ')}, budget of {budget.name}%",
                             "with 95% intervals over the repetitions of the tuning", rows, axis, f"log({pair[0]} / {pair[1]}) at 0% minus that at 100%", ["measured", "forecast"], (0.0,), ("for", "against"))
        (folder / f"contrasts-{short}-{budget.name}.svg").write_text(chart)
        curves = figures.panel_chart(f"Gaps: {WORDS[pair].removeprefix('the ')}, budget of {budget.name}%",
                                     "means and the range of the repetitions; above 0 the contraction is better", ratio_curves(budget.log, pair, panels), 2,
                                     "log zeta^2(x*): clients differ more to the right", f"log({pair[0]} / {pair[1]})",
                                     [name.removeprefix("libsvm/") for name in PROBLEMS], 0.0)
        (folder / f"ratios-{short}-{budget.name}.svg").write_text(curves)


def parts_of(folder, repetitions):
    return {name: part_of(folder, name, planned) for name, planned in repetitions.items()}


def grids_of(path):
    """Returns the grids of a scenario's tuned keys at their first size."""
    return {tuned["key"]: tuned["values"] for tuned in tomllib.loads(path.read_text())["sweep"]["tune"]["keys"]}


def write(root, page, folder, repetitions):
    """Fills the generated parts of the page and of README.md, and draws the figures beside the folder of results. `repetitions` has the planned number
    of repetitions of every part."""
    parts = parts_of(folder, repetitions)
    forecasts = forecasts_in(folder)
    budgets = [Budget(parts[name], forecasts) for name in ("core-5", "core-2")]
    for budget in budgets:
        if budget.has_results:
            draw(budget, folder.parent / "figures")
    pairs = tuple(WORDS)
    grids = grids_of(folder.parent / "core-5.toml")
    texts = {"answer": answer(budgets), "state": state_text(parts.values()), "ran": ran_part(parts.values()), "knobs": knobs_part(budgets[0].part, grids),
             "sign": sign_part(parts["sign-5"], parts["core-5"]), "images": images_part(parts["images"])}
    for budget in budgets:
        texts |= {f"contrasts-{budget.name}": contrasts_part(budget), f"slopes-{budget.name}": slopes_part(budget), f"ahead-{budget.name}": ahead_part(budget)}
    feedbacks = [simple_contrasts(parts["feedbacks-5"], pairs), silent_text(parts["feedbacks-5"])]
    texts |= {"both": simple_contrasts(parts["both-5"], pairs, "both"), "feedbacks": "\n\n".join(filter(None, feedbacks)),
              "decay": simple_contrasts(parts["decay-5"], pairs[:1]), "target": target_part(parts["target"])}
    page.write_text(filled(page.read_text(), texts))
    readme = root / "README.md"
    readme.write_text(filled(readme.read_text(), {"answer": short_answer(budgets[0], PICTURES.removeprefix("../"))}))
