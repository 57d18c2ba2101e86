"""The page of the study: the figures in docs/conjecture/figures and the generated parts of docs/conjecture.md, from the exports alone.

A part of the page lies between `<!-- begin NAME -->` and `<!-- end NAME -->`. Every number and every conclusion there is computed by the rules of
docs/conjecture-plan.md; the text outside of these marks is written by hand and has no result in it."""
import math
import re
import textwrap

import conjecture_figures as figures
import conjecture_results as results
import conjecture_robustness as robustness
import conjecture_why_figures as why

FOR, AGAINST, NONE = results.VERDICTS
SHORT = {("hard", "top-k"): "hard", ("rounding", "three-lc"): "rounding"}
WORDS = {"hard": "the hard threshold", "top-k": "Top-k", "rounding": "absolute rounding", "three-lc": "3LC"}


def words_of(pair):
    return f"{WORDS[pair[0]]} against {WORDS[pair[1]]}"


def title_of(pair):
    return words_of(pair).removeprefix("the ").capitalize().replace("3lc", "3LC").replace("top-k", "Top-k")


def paragraph(text, first="", rest=""):
    """Returns text in lines of the width of the other pages."""
    return textwrap.fill(text, 150, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)


def number_of(count, noun):
    """Returns a number with its noun: "1 group", "3 groups"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def listed(texts):
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


class Study:
    """What has been exported of the blocks of a study, such as one budget of the convex part, and the groups that the plan has for it."""

    def __init__(self, folder, name, planned, groups, bits="up", grids=None):
        self.name, self.planned, self.groups, self.bits, self.folder, self.grids = name, planned, groups, bits, folder, grids or {}
        self.blocks, self.slopes, self.between = results.results_of(folder, planned, bits)
        self.missing = [block for block in planned if block not in self.blocks]

    def differences(self):
        """Returns the lines of all paired differences, which are many."""
        lines = [line for block in self.blocks for line in results.read_table(self.folder / block / "differences.csv.xz")]
        return [line for line in lines if line["bits"] == self.bits]

    def runs(self):
        return [run for block in self.blocks for run in results.read_table(self.folder / block / "runs.csv.xz")]

    def whole(self):
        return not self.missing


def verdict_text(counted):
    return (f"the slope has a claim for the conjecture in {number_of(counted[FOR], 'group')}, against it in {counted[AGAINST]}, "
            f"and no claim in {counted[NONE]}")


def conclusion_text(budget, pair):
    """Returns the plan's conclusion for a pair."""
    lines = results.of_pair(budget.slopes, pair)
    said = verdict_text(results.counts(lines))
    kind = results.conclusion_of(lines, len(budget.groups))
    name = f"**{title_of(pair)}**"
    if kind == "open":
        return f"{name}: no conclusion yet, {len(lines)} of {len(budget.groups)} groups have run. So far {said}."
    if kind in ("holds", "fails"):
        return f"{name}: the conjecture {kind}; {said}."
    return f"{name}: the conjecture neither holds nor fails in general; {said}. {separation_text(lines)}"


def label_text(factor, label):
    """Returns a label with its factor where it does not speak for itself: "EF14", "a9a", "local steps 10"."""
    name = figures.FEEDBACKS.get(label, label.split("/")[-1])
    return name if factor in ("problem", "feedback") else f"{factor} {name}"


def separation_text(lines):
    """Returns which factors decide the claims: all labels but those with the most frequent claim are named."""
    factors, verdicts = results.separating_factors(lines)
    if not factors:
        return "No factor and no two factors decide which it is; a table below counts the groups by factor."
    usual = max(results.VERDICTS, key=list(verdicts.values()).count)
    others = [f"{verdict} with {listed([label_text(*pair) for pair in zip(factors, labels)])}" for labels, verdict in verdicts.items() if verdict != usual]
    return f"What decides is {listed(list(factors))}: {listed(others)}, otherwise {usual}."


def state_text(budget):
    """Returns which blocks have run and which are missing."""
    if budget.whole():
        return f"All {len(budget.planned)} blocks of the budget of {budget.name}% have run."
    missing = ", ".join(f"`{block}`" for block in budget.missing)
    return (f"**Provisional.** {len(budget.blocks)} of {len(budget.planned)} blocks of the budget of {budget.name}% have run; missing: {missing}. P-values "
            "are adjusted over the part of the family that has run, and the plan draws no conclusion from a part.")


def answer(budget):
    """Returns the first part of the page: the state, and a conclusion for each pair."""
    conclusions = [paragraph(conclusion_text(budget, pair), "- ", "  ") for pair in results.pairs_of(budget.slopes)]
    return paragraph(state_text(budget)) + "\n\n" + "\n".join(conclusions)


def short_answer(budget):
    """Returns the answer in two sentences and one picture, for the README."""
    parts, kinds = [], {}
    for pair in results.pairs_of(budget.slopes):
        lines = results.of_pair(budget.slopes, pair)
        found, kinds[pair] = results.counts(lines), results.conclusion_of(lines, len(budget.groups))
        parts.append(f"the gap of {WORDS[pair[0]]} grew against that of {WORDS[pair[1]]} in {found[AGAINST]} of {number_of(len(lines), 'group')} and shrank in "
                     f"{found[FOR]}")
    verdicts = {"open": "draws no conclusion yet, because a part of it has not run", "holds": "finds that this holds", "fails": "finds that this fails",
                "mixed": "finds that this neither holds nor fails in general"}
    said = list(dict.fromkeys(kinds.values()))
    verdict = verdicts[said[0]] if len(said) == 1 else listed([f"{verdicts[kind]} for {words_of(pair)}" for pair, kind in kinds.items()])
    text = (f"Sahu et al. (NeurIPS 2021) conjecture that absolute compressors are the better choice when clients differ; a study with a plan written before "
            f"its runs {verdict}. With growing heterogeneity and at equal bits, {', and '.join(parts)} ([figures, limits and commands](docs/conjecture.md)).")
    return paragraph(text) + "\n\n" + picture(f"slopes-hard-{budget.name}", "Does the hard threshold lose against Top-k as clients differ more? Slopes by group",
                                              "docs/conjecture")


# ---- what it means ----

def margin_counts(lines):
    found = [results.margin_result_of(line) for line in lines]
    return {kind: found.count(kind) for kind in ("superior", "non-inferior", "not shown")}


def better_text(pair, lines):
    """Returns what somebody with the most different clients finds for one pair."""
    found, ratios = margin_counts(lines), sorted(math.exp(float(line["difference"])) for line in lines if line["difference"])
    return (f"{WORDS[pair[0]]} ended at {ratios[0]:.2f} to {ratios[-1]:.2f} times the gap of {WORDS[pair[1]]}, which shows it to be better in "
            f"{found['superior']} of {number_of(len(lines), 'group')}, at least as good within a tenth in {found['non-inferior']} more, and neither in "
            f"{found['not shown']}")


def practice(budget):
    """Returns one paragraph for somebody who has to choose a compressor."""
    counted, start = results.counts(budget.slopes), "So far" if budget.missing else "In this study"
    parts = [better_text(pair, results.of_pair(budget.slopes, pair)) for pair in results.pairs_of(budget.slopes)]
    return paragraph(
        f"{start}, growing heterogeneity made the absolute compressor worse relative to its partner in {counted[AGAINST]} of {sum(counted.values())} "
        f"comparisons, better in {counted[FOR]}, and without a claim in {counted[NONE]}. With the most different clients (similarity 0%) {'; '.join(parts)}. "
        f"{advice(budget)} Compare the two operators at equal bits, with the feedback, the participation and the local steps of the application, and with "
        "the threshold tuned there.")


def advice(budget):
    kinds = {results.conclusion_of(results.of_pair(budget.slopes, pair), len(budget.groups)) for pair in results.pairs_of(budget.slopes)}
    if kinds == {"holds"}:
        return "That clients differ is a reason to prefer an absolute compressor, as far as this study goes."
    return "That clients differ is therefore not by itself a reason to prefer the class of absolute compressors."


def rule_of_mechanism(budget):
    found = {pair: margin_counts(results.of_pair(budget.slopes, pair))["superior"] for pair in results.pairs_of(budget.slopes)}
    best = max(found, key=found.get)
    others = [f"{WORDS[pair[0]]} than {WORDS[pair[1]]} in {count}" for pair, count in found.items() if pair != best]
    return (f"**Choose the mechanism, not the class.** At similarity 0% {WORDS[best[0]]} was shown to be better than {WORDS[best[1]]} in "
            f"{found[best]} of {number_of(len(results.of_pair(budget.slopes, best)), 'group')}, and {listed(others)}.")


def rule_of_feedback(budget):
    """Returns the mean slope of the first pair under each feedback."""
    pair, by_feedback = results.pairs_of(budget.slopes)[0], {}
    for line in results.of_pair(budget.slopes, pair):
        by_feedback.setdefault(results.settings_of(line["group"])["feedback.up"], []).append(float(line["slope"]))
    ranges = listed([f"{min(found):+.2f} to {max(found):+.2f} under {figures.FEEDBACKS[label]}" for label, found in by_feedback.items()])
    worst = max(by_feedback, key=lambda label: max(by_feedback[label]))
    return (f"**Choose the feedback with the compressor.** The slope of {words_of(pair)} was {ranges}: heterogeneity can cost the threshold most under "
            f"{figures.FEEDBACKS[worst]}.")


TUNED = {"hard": "compressor.up.threshold", "rounding": "compressor.up.step"}
CELL = "data.name", "feedback.up", "participation.fraction", "local.steps"


def rule_of_tuning(runs):
    """Returns in how many cells the tuned values are not the same at all levels."""
    cells = {}
    for run in runs:
        if run["compressor.up"] in TUNED:
            thresholds, rates = cells.setdefault((run["compressor.up"], *(run[key] for key in CELL)), (set(), set()))
            thresholds.add(run[TUNED[run["compressor.up"]]])
            rates.add(run["local.learning_rate"])
    changed = [sum(len(found[i]) > 1 for found in cells.values()) for i in range(2)]
    return (f"**Tune for the clients at hand.** The best threshold or grid step, in units of the gradient, was not the same at all five levels of "
            f"heterogeneity in {changed[0]} of {number_of(len(cells), 'cell')} of an absolute operator, and the best step size in {changed[1]}.")


def rules(budget, runs):
    texts = rule_of_mechanism(budget), rule_of_feedback(budget), rule_of_tuning(runs)
    return "\n".join(paragraph(text, f"{i}. ", "   ") for i, text in enumerate(texts, 1))


# ---- tables and pictures ----

def picture(name, text, folder="conjecture"):
    return f"![{text}]({folder}/figures/{name}.svg)"


def factor_table(budget):
    """Returns the counts of claims for each label of each factor."""
    rows = []
    for pair in results.pairs_of(budget.slopes):
        for factor, labels in results.counts_by_factor(results.of_pair(budget.slopes, pair)).items():
            for label, counted in labels.items():
                rows.append([f"{pair[0]} : {pair[1]}", factor, label.split("/")[-1], *(counted[verdict] for verdict in results.VERDICTS)])
    return results.markdown(["pair", "factor", "", "for", "against", "no claim"], rows)


def slopes_part(budget):
    parts = []
    for pair, short in SHORT.items():
        parts += [picture(f"slopes-{short}-{budget.name}", f"Slopes of {words_of(pair)} in each group, with intervals"),
                  picture(f"ratios-{short}-{budget.name}", f"Log ratio of gaps of {words_of(pair)} against heterogeneity")]
    return "\n\n".join(parts + [factor_table(budget), results.table(budget.slopes, results.slope_cells)])


def margins_part(budget):
    pictures = [picture(f"margins-{short}-{budget.name}", f"Ratio of gaps at 0% of {words_of(pair)} in each group, with intervals")
                for pair, short in SHORT.items()]
    said = []
    for pair in results.pairs_of(budget.slopes):
        found = margin_counts(results.of_pair(budget.slopes, pair))
        said.append(paragraph(f"{title_of(pair)}: superior in {number_of(found['superior'], 'group')}, non-inferior only in {found['non-inferior']}, "
                              f"not shown in {found['not shown']}.", "- ", "  "))
    return "\n\n".join(["\n".join(said), *pictures, results.table(budget.slopes, results.margin_cells)])


def between_part(budget):
    pictures = [picture(f"between-{short}-{budget.name}", f"Differences of slopes between feedbacks of {words_of(pair)}, with intervals")
                for pair, short in SHORT.items()]
    said = []
    for pair in results.pairs_of(budget.slopes):
        lines = results.of_pair(budget.between, pair)
        differ = sum(results.difference_of(line) == "differ" for line in lines)
        opposite = sum(results.sign_depends(line, budget.slopes) for line in lines)
        said.append(paragraph(f"{title_of(pair)}: the slopes differ by a claim in {differ} of {len(lines)} comparisons of feedbacks. In {opposite} of these "
                              "they also have claims of opposite signs.", "- ", "  "))
    return "\n\n".join(["\n".join(said), *pictures, results.table(budget.between, results.between_cells)])


def second_part(budget):
    """Returns the second study of the same questions, at the small budget."""
    if not budget.blocks:
        return f"No block of the budget of {budget.name}% has run."
    kinds = {"slopes": "Slopes", "ratios": "Log ratio of gaps", "margins": "Ratio of gaps at 0%", "between": "Differences of slopes between feedbacks"}
    pictures = [picture(f"{kind}-{short}-{budget.name}", f"{text} of {words_of(pair)} at the budget of {budget.name}%")
                for kind, text in kinds.items() for pair, short in SHORT.items()]
    return "\n\n".join([answer(budget), *pictures, results.table(budget.slopes, results.slope_cells),
                        results.table(budget.slopes, results.margin_cells), results.table(budget.between, results.between_cells)])


def both_directions_part(budget):
    """Returns the slopes at bits up and down together, which are secondary."""
    counts = "\n".join(results.count_line(pair, results.of_pair(budget.slopes, pair)) for pair in results.pairs_of(budget.slopes))
    return "\n\n".join([counts, results.table(budget.slopes, results.slope_cells)])


def mean_ratio(runs, pair, column):
    """Returns the geometric mean over the seeds of a column's ratio between the two methods of a pair, or "" if some run has no value."""
    values = {method: {run["seed"]: float(run[column]) for run in runs if run["compressor.up"] == method and run[column]} for method in pair}
    if not values[pair[0]] or set(values[pair[0]]) != set(values[pair[1]]) or min(map(min, (found.values() for found in values.values()))) <= 0:
        return ""
    return f"{math.exp(sum(math.log(values[pair[0]][seed] / values[pair[1]][seed]) for seed in values[pair[0]]) / len(values[pair[0]])):.2f}"


def secondary_part(budget, runs):
    """Returns how many rounds the tuned absolute operator played beside its partner, and its total error, where clients are most alike and least."""
    rows = []
    for at in budget.groups:
        of_group = [run for run in runs if all(run[key] == label for key, label in at.items())]
        for pair in SHORT:
            if of_group:
                cells = [mean_ratio([run for run in of_group if run["partition.percent"] == level], pair, column)
                         for column in ("rounds", "total_error") for level in ("100", "0")]
                rows.append([at["data.name"].split("/")[-1], figures.FEEDBACKS[at["feedback.up"]], at["participation.fraction"], at["local.steps"],
                             f"{pair[0]} : {pair[1]}", *cells])
    return results.markdown(["problem", "feedback", "share of clients", "steps", "pair", "rounds, 100%", "rounds, 0%", "total error, 100%", "total error, 0%"],
                            rows)


def run_part(studies):
    """Returns what has run: runs, diverged ones, values that stayed at the edge of a grid."""
    rows = []
    for budget in studies:
        for block in budget.planned:
            if block in budget.missing:
                rows.append([f"`{block}`", "missing", "", "", ""])
                continue
            runs = results.read_table(budget.folder / block / "runs.csv.xz")
            lines = [line for line in budget.slopes if line["block"] == block]
            rows.append([f"`{block}`", len(runs), sum(run["status"] == "diverged" for run in runs), sum(int(line["capped"]) for line in lines),
                         edge_text(runs, budget.grids)])
    return results.markdown(["block", "runs", "diverged", "end points capped", "tuned values at the end of an extended grid"], rows)


def value_of(text):
    """Returns a step size in units of 1/L, or a plain number: "2/L" and "2*(1/L)" are 2."""
    product = 1.0
    for factor in re.findall(r"[0-9.e+-]+(?=\*|/L|\)|$)", text.replace("(", "").replace(")", "")):
        product *= float(factor)
    return product


def last_values(values):
    """Returns the smallest and the largest value that a grid can reach: it is extended up to four times by the ratio of its two outermost values."""
    return values[0] * (values[0] / values[1]) ** 4, values[-1] * (values[-1] / values[-2]) ** 4


def edge_text(runs, grids):
    """Returns which tuned values lie at the last value that their grid can reach."""
    cells = {}
    for run in runs:
        for key, texts in grids.items():
            if run.get(key):
                low, high = last_values([value_of(str(text)) for text in texts])
                if not low * 1.001 < value_of(run[key]) < high * 0.999:
                    cells.setdefault(key, set()).add(tuple(run.get(k, "") for k in (*CELL, "partition.percent", "partition.alpha", "data.zeta_sq",
                                                                                    "compressor.up")))
    return "; ".join(f"`{key}` in {number_of(len(found), 'cell')}" for key, found in sorted(cells.items())) or "none"


def draw(budget, folder):
    """Writes the figures of one budget, none if no block has run."""
    if not budget.blocks:
        return
    differences = budget.differences()
    for pair, short in SHORT.items():
        title = f"{words_of(pair).removeprefix('the ')}, budget of {budget.name}%"
        made = {"slopes": figures.slopes(f"Slopes: {title}", pair, budget.groups, budget.slopes),
                "ratios": figures.ratios(f"Gaps: {title}", pair, budget.groups, differences),
                "margins": figures.margins(f"The most different clients: {title}", pair, budget.groups, budget.slopes),
                "between": figures.between(f"Feedbacks: {title}", pair, budget.groups, budget.between)}
        for name, svg in made.items():
            (folder / f"{name}-{short}-{budget.name}.svg").write_text(svg)


def filled(text, parts):
    """Returns the page with its generated parts. Raises ValueError if a part has no place."""
    for name, content in parts.items():
        pattern = re.compile(rf"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"the page has no marks for the part {name}")
        text = pattern.sub(lambda match: match[1] + content.rstrip("\n") + "\n" + match[2], text)
    return text


def write(page, readme, budgets, both, studies):
    """Draws all figures beside the page and fills its parts and that of the README. `budgets` are the primary one and the second one at uplink bits, `both` is the primary
    one at bits up and down, `studies` are those of robustness and of networks."""
    first, second = budgets
    folder = page.parent / "conjecture" / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    for budget in budgets:
        draw(budget, folder)
    beside_core = robustness.write_figures(studies, first, folder)
    runs = first.runs()
    reasons = why.write_figures(first.folder, folder)
    robust, networks = ([study for study in studies if study.name.startswith(kind)] for kind in ("robust-", "network-"))
    readme.write_text(filled(readme.read_text(), {"answer": short_answer(first)}))
    page.write_text(filled(page.read_text(), {
        "answer": answer(first), "practice": practice(first), "rules": rules(first, runs), "slopes": slopes_part(first),
        "margins": margins_part(first), "between": between_part(first), "both": both_directions_part(both), "second": second_part(second),
        "robustness": robustness.part(robust, first, beside_core), "networks": robustness.part(networks, first, []),
        "secondary": secondary_part(first, runs), "why": why.part(reasons, paragraph, picture), "ran": run_part(budgets + studies)}))
