"""The page of the second study, docs/conjecture.md: its generated parts and figures, from the exported tables alone.

Every number and every conclusion in them is computed by the rules of docs/conjecture-plan-2.md. The text outside of the marks is written by hand and
has no result in it. Needs nothing but Python."""
import csv
import math
import statistics
import tomllib
import typing

import fair_study_inference as inference
from conjecture_study import figures, limits_page
from conjecture_study.answer import listed, number_of, paragraph, picture
from conjecture_study.page import filled
from conjecture_study.results import markdown
from svg_charts import forest_chart

PROBLEMS = ("libsvm/a9a", "libsvm/w8a", "libsvm/letter")
SHORT = {("hard", "top-k"): "hard", ("rounding", "three-lc"): "rounding"}
WORDS = {("hard", "top-k"): "the hard threshold against Top-k", ("rounding", "three-lc"): "absolute rounding against 3LC"}
VERDICTS = {-1: "for", 1: "against", 0: "open"}
KNOBS = {"top-k": "compressor.up.ratio", "hard": "compressor.up.threshold", "three-lc": "compressor.up.sparsity", "rounding": "compressor.up.step",
         "qsgd": "compressor.up.levels"}
BOUNDS = {"compressor.up.ratio": (0, 1), "compressor.up.sparsity": (1, 2), "compressor.up.levels": (1, math.inf)}  # of the options
IMAGES_DIFFERENT = "0.1"  # alpha of the most different clients
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
    return f"better in {found['better']} of {number_of(len(verdicts), 'group')}, worse in {found['worse']}, alike within a factor of 1.1 in {found['alike']}, and open in {found['open']}"


def ahead_table(verdicts, predict):
    def cells(one):
        low, high = (math.exp(bound) for bound in one.pooled.interval)
        return {"ratio of gaps": f"{math.exp(one.pooled.mean):.3f}", "95% interval": f"{low:.3f} .. {high:.3f}", "p (Holm)": p_text(one.adjusted),
                "result": ahead_word(one), "predicted": {-1: "better", 1: "worse", 0: "open"}[predict(one.group)]}
    return table_of(verdicts, cells)


def hits_text(verdicts, predict):
    found = inference.hits(verdicts, predict)
    return f"{found['hit']} hits, {found['miss']} misses, {found['open']} predicted and open"


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


def answer(budgets):
    """Returns the answer: four sentences, and the counts behind them."""
    first = budgets[0]
    if not first.has_results:
        return "The study has not run yet."
    sentences = []
    for pair in WORDS:
        of = of_pair(first.contrasts, pair)
        opening = "With both sides tuned, at equal uplink bits under EF14, " if not sentences else "For "
        words = f"for {WORDS[pair]} " if not sentences else f"{WORDS[pair]} "
        sentences.append(f"{opening}{words}{conclusion(of)}: from the most similar clients to the most different ones the contrast is {counted(of)}.")
    ahead = [f"{WORDS[pair].split(' against')[0]} is {ahead_text(of_pair(first.ahead[inference.DIFFERENT], pair))}" for pair in WORDS]
    sentences.append(f"Where clients differ most, {', and '.join(ahead)}.")
    sentences.append(f"A formula that predicted the sign of each contrast before the runs has {hits_text(first.contrasts, first.predicted)}.")
    rows = []
    for budget in budgets:
        for pair in WORDS if budget.has_results else ():
            of, slopes = of_pair(budget.contrasts, pair), of_pair(budget.slopes, pair)
            found = inference.hits(of, budget.predicted)
            rows.append([f"{budget.name}%", " : ".join(pair), " / ".join(str(value) for value in counts_in_order(of)), " / ".join(str(value) for value in counts_in_order(slopes)),
                         *(" / ".join(str(value) for value in ahead_counts(of_pair(budget.ahead[level], pair)).values()) for level in (inference.ALIKE, inference.DIFFERENT)),
                         f"{found['hit']} / {found['miss']} / {found['open']}"])
    header = ["budget", "pair", "contrasts: for / against / open", "slopes", "at 100%: better / worse / alike / open", "at 0%", "predictions: hit / miss / open"]
    return "\n\n".join([paragraph(first.part.state() + " ".join(sentences)), markdown(header, rows)])


def counts_in_order(verdicts):
    found = counts(verdicts)
    return found["for"], found["against"], found["open"]


def contrasts_part(budget):
    if not budget.has_results:
        return f"Fewer than two repetitions of the budget of {budget.name}% have run."
    said = [paragraph(f"{capital(WORDS[pair])}: {counted(of_pair(budget.contrasts, pair))}; predictions: {hits_text(of_pair(budget.contrasts, pair), budget.predicted)}.", "- ", "  ")
            for pair in WORDS]
    pictures = [picture(f"contrasts-{short}-{budget.name}", f"Contrasts of {WORDS[pair]} in each group, with intervals and forecasts", "conjecture/fair")
                for pair, short in SHORT.items()]
    return "\n\n".join([*([paragraph(budget.part.state().strip())] if budget.part.state() else []), "\n".join(said), *pictures,
                        contrast_table(budget.log, budget.contrasts, budget.predicted), short_text(budget)])


def short_text(budget):
    """Returns the counts without the groups in which a run ended below the budget."""
    found, total = short_runs(budget.part)
    if not found:
        return "Every run sent at least 95% of the budget of its cell."
    said = [f"{WORDS[pair]} is {counted(budget.without_short(pair))}" for pair in WORDS]
    return paragraph(f"{sum(found.values())} of {total:,} runs ended below 95% of the budget of their cell, those of the witnesses included. Without the groups in which one "
                     f"of the pair did, the contrast of {'; of '.join(said)}.")


def slopes_part(budget):
    if not budget.has_results:
        return f"Fewer than two repetitions of the budget of {budget.name}% have run."
    pictures = [picture(f"ratios-{short}-{budget.name}", f"Log ratio of gaps of {WORDS[pair]} against heterogeneity", "conjecture/fair") for pair, short in SHORT.items()]
    return "\n\n".join([*pictures, table_of(budget.slopes, lambda one: {**estimate_cells(one, "slope"), "the conjecture": VERDICTS[one.sign]})])


def ahead_part(budget):
    if not budget.has_results:
        return f"Fewer than two repetitions of the budget of {budget.name}% have run."
    parts = []
    for level, verdicts in budget.ahead.items():
        said = [paragraph(f"{capital(WORDS[pair])}: {ahead_text(of_pair(verdicts, pair))}; predictions: {hits_text(of_pair(verdicts, pair), budget.predicted_at(level))}.", "- ", "  ")
                for pair in WORDS]
        parts += [f"At a share of {level}% dealt at random:", "\n".join(said), ahead_table(verdicts, budget.predicted_at(level))]
    return "\n\n".join(parts)


def capital(text):
    return text[:1].upper() + text[1:]


def simple_contrasts(part, pairs, bits="up", measure="f_gap"):
    """Returns the text and the table of the contrasts of a part with a family of its own."""
    if len(part.runs) < 2:
        return f"Fewer than two repetitions of `{part.name}` have run."
    log = part.log(bits, measure)
    verdicts = inference.family(log, inference.contrast, pairs)
    said = [paragraph(f"{capital(WORDS[pair])}: {counted(of_pair(verdicts, pair))}.", "- ", "  ") for pair in pairs]
    return "\n\n".join([*([paragraph(part.state().strip())] if part.state() else []), "\n".join(said), contrast_table(log, verdicts)])


def knobs_part(part, grids):
    """Returns the range of the tuned step size and knob of each operator, and how many tuned values lie at the last value that their grid could reach."""
    rows = []
    for name, key in KNOBS.items():
        lines = [line for lines in part.runs for line in lines if line["compressor.up"] == name]
        for tuned in (key, "local.learning_rate") if lines else ():
            values = {(*group_of(line), level_of(line), line["run"]): limits_page.value_of(line[tuned]) for line in lines}
            low, high = ends_of(tuned, grids)
            edges = sum(not low * 1.001 < value < high * 0.999 for value in values.values())
            unit = "/L" if tuned == "local.learning_rate" else ""
            rows.append([f"`{name}`", tuned.rsplit(".", 1)[-1], *(f"{one:.4g}{unit}" for one in (min(values.values()), statistics.median(values.values()), max(values.values()))),
                         f"{edges} of {len(values)}"])
    return markdown(["operator", "tuned", "smallest", "median", "largest", "runs at the end of the grid"], rows) if rows else "Nothing has run."


def ends_of(key, grids):
    """Returns the smallest and the largest value that a grid can reach, infinitely far where it ends at a bound of the option."""
    low, high = limits_page.last_values([limits_page.value_of(str(value)) for value in grids[key]], math.inf)
    least, most = BOUNDS.get(key, (0, math.inf))
    return low if low > least else -math.inf, high if high < most else math.inf


def sign_part(part, core):
    """Returns what a witness without a knob, and the fixed Top-5%, end at, relative to the tuned Top-k of the core with the same seeds."""
    if not part.runs:
        return f"`{part.name}` has not run."
    tuned = [end_points(lines, ("hard", "top-k"), "value_b") for lines in core.differences]
    rows = []
    for name, column in (("top-k", "value_b"), ("ef-sign", "value_a")):
        for level in (inference.ALIKE, inference.DIFFERENT):
            means = []
            for fixed, best in zip(part.differences, tuned):
                found = end_points(fixed, ("ef-sign", "top-k"), column)
                logs = [math.log(value / best[place]) for place, value in found.items() if place[1] == level and place in best]
                means += [statistics.mean(logs)] if logs else []
            if len(means) > 1:
                one = inference.Estimate(means, statistics.variance(means), len(means) - 1)
                rows.append([f"{level}%", "Top-5%, fixed" if name == "top-k" else "`ef-sign`", f"{math.exp(one.mean):.3f}",
                             " .. ".join(f"{math.exp(bound):.3f}" for bound in one.interval)])
    return markdown(["dealt at random", "operator", "gap over that of the tuned Top-k", "95% interval"], rows) if rows else f"Fewer than two repetitions of `{part.name}` have run."


def end_points(lines, pair, column):
    """Returns {(group, level, seed): end point} of one operator of a pair."""
    return {(group_of(line), line["level"], line["seed"]): float(line[column]) for line in lines
            if line["bits"] == "up" and (line["a"], line["b"]) == pair and line[column]}


def images_part(part):
    """Returns the contrasts of the part on images, by the training loss and by the accuracy."""
    if len(part.runs) < 2:
        return f"Fewer than two repetitions of `{part.name}` have run."
    rows = []
    for measure, words in (("train_loss", "training loss, log ratio"), ("test_accuracy", "accuracy on test rows, difference")):
        log = part.log(measure=measure)
        for one in inference.family(log, lambda levels: inference.contrast(levels, IMAGES_DIFFERENT)):
            levels = log[one.pair, one.group]
            at = [statistics.mean(inference.mean_at(found, level) for found in levels.values()) for level in (inference.ALIKE, IMAGES_DIFFERENT)]
            rows.append([words, " : ".join(one.pair), *map(signed, at), *estimate_cells(one, "contrast").values(), VERDICTS[one.sign if measure == "train_loss" else -one.sign]])
    return "\n\n".join([*([paragraph(part.state().strip())] if part.state() else []),
                        markdown(["measure", "pair", "at alpha = 100", "at alpha = 0.1", "contrast", "95% interval", "p (Holm)", "own variance: p", "the conjecture"], rows)])


def silent_text(part):
    """Returns the hits of what the plan predicts for EF21: with all clients the threshold is worse than Top-k at both ends."""
    if len(part.runs) < 2:
        return ""
    log = part.log()
    found = [one for level in (inference.ALIKE, inference.DIFFERENT) for one in inference.family(log, inference.ahead_at(level))
             if one.pair == ("hard", "top-k") and "ef21" in one.group and "1" in one.group[2:]]
    words = [ahead_word(one) for one in found]
    return paragraph(f"Predicted for EF21 with all clients: the threshold falls silent and is worse than Top-k at 100% and at 0%. It is worse in {words.count('worse')} of "
                     f"{len(words)} groups and levels, better in {words.count('better')}, alike in {words.count('alike')}, and open in {words.count('open')}.")


def target_part(part):
    """Returns the table of the bits to the level of the method without compression, relative to those of Top-k, with intervals over repetitions."""
    if not part.runs:
        return "`target` has not run."
    operators = ("top-k", "hard", "three-lc", "rounding")
    logs, missed = {}, {}
    for number, lines in enumerate(part.runs):
        bits = {}
        for line in lines:
            cell = group_of(line), level_of(line), line["seed"]
            reached = line["status"] == "done" and line.get("f_gap") and float(line["f_gap"]) <= float(line["stop.f_gap"])
            bits[cell, line["compressor.up"]] = float(line["bits_up"]) if reached else math.inf
        for (cell, operator), value in bits.items():
            if operator not in operators:
                continue
            missed[operator, cell[1]] = missed.get((operator, cell[1]), 0) + math.isinf(value)
            reference = bits.get((cell, "none"), math.inf)
            if math.isfinite(value) and math.isfinite(reference):
                logs.setdefault((operator, cell[1]), {}).setdefault(number, []).append(math.log(value / reference))
    rows = []
    for level in (inference.ALIKE, inference.DIFFERENT):
        for operator in operators:
            means = [statistics.mean(values) for values in logs.get((operator, level), {}).values()]
            if not means:
                continue
            made = [f"{level}%", f"`{operator}`", f"{math.exp(statistics.mean(means)):.4f}", "", str(missed[operator, level])]
            if len(means) > 1:
                one = inference.Estimate(means, statistics.variance(means), len(means) - 1)
                made[3] = " .. ".join(f"{math.exp(bound):.4f}" for bound in one.interval)
            rows.append(made)
    return "\n\n".join([*([paragraph(part.state().strip())] if part.state() else []),
                        markdown(["dealt at random", "operator", "bits over those without compression", "95% interval", "runs that never reached it"], rows)])


def ran_part(parts):
    """Returns what has run, with the runs that ended below the budget."""
    rows = []
    for part in parts:
        short, total = short_runs(part)
        statuses = [line["status"] for lines in part.runs for line in lines]
        rows.append([f"`{part.name}`", f"{len(part.runs)} of {part.planned}", f"{total:,}", str(statuses.count("diverged")), f"{sum(short.values()):,}"])
    return markdown(["part", "repetitions", "runs", "diverged", "ended below 95% of the budget"], rows)


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
        chart = forest_chart(f"From 100% to 0%: {WORDS[pair].removeprefix('the ')}, budget of {budget.name}%", "with 95% intervals over the repetitions of the tuning",
                             rows, axis, f"log({pair[0]} / {pair[1]}) at 0% minus that at 100%", ["measured", "forecast"], (0.0,), ("for", "against"))
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
    """Fills the generated parts of the page and draws its figures. `repetitions` has the planned number of repetitions of every part."""
    parts = parts_of(folder, repetitions)
    forecasts = forecasts_in(folder)
    budgets = [Budget(parts[name], forecasts) for name in ("core-5", "core-2")]
    for budget in budgets:
        if budget.has_results:
            draw(budget, page.parent / "conjecture" / "fair" / "figures")
    pairs = tuple(WORDS)
    texts = {"answer": answer(budgets), "ran": ran_part(parts.values()), "knobs": knobs_part(budgets[0].part, grids_of(root / "docs" / "conjecture" / "fair" / "core-5.toml")),
             "sign": sign_part(parts["sign-5"], parts["core-5"]), "images": images_part(parts["images"])}
    for budget in budgets:
        texts |= {f"contrasts-{budget.name}": contrasts_part(budget), f"slopes-{budget.name}": slopes_part(budget), f"ahead-{budget.name}": ahead_part(budget)}
    texts |= {"both": simple_contrasts(parts["both-5"], pairs, "both"), "feedbacks": "\n\n".join(filter(None, [simple_contrasts(parts["feedbacks-5"], pairs), silent_text(parts["feedbacks-5"])])),
              "decay": simple_contrasts(parts["decay-5"], pairs[:1]), "target": target_part(parts["target"])}
    page.write_text(filled(page.read_text(), texts))
