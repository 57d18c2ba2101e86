"""The page of the study: the figures in first/figures and the generated parts of first/page.md and first/tables.md, from
the exports alone.

A part of the page lies between `<!-- begin NAME -->` and `<!-- end NAME -->`. Every number and every conclusion there is computed by the rules of
first/plan.md; the text outside of these marks is written by hand and has no result in it."""
import functools
import itertools
import math
import re

from conjecture_study import (descriptive, figures, limits_page as limits, mixed, noise, results, robustness, rules as thumb, secondary_page as secondary, tables,
                              why_figures as why)
from conjecture_study.answer import (answer, beside, budgets_text, counted_text, feedback_counts, listed, margin_text, number_of, paragraph, picture, practice,
                                     short_windows_text, title_of, words_of)

SHORT = {("hard", "top-k"): "hard", ("rounding", "three-lc"): "rounding"}


class Study:
    """What has been exported of the blocks of a study, such as one budget of the convex part, and the groups that the plan has for it."""

    def __init__(self, folder, name, planned, groups, bits="up", grids=None):
        self.name, self.planned, self.groups, self.bits, self.folder, self.grids = name, planned, groups, bits, folder, grids or {}
        self.blocks, self.slopes, self.between = results.results_of(folder, planned, bits)
        self.missing = [block for block in planned if block not in self.blocks]

    @functools.cache
    def differences(self):
        """Returns the lines of all paired differences, which are many and are read once."""
        lines = [line for block in self.blocks for line in results.read_table(self.folder / block / "differences.csv.xz")]
        return [line for line in lines if line["bits"] == self.bits]

    def runs(self):
        return [run for block in self.blocks for run in results.read_table(self.folder / block / "runs.csv.xz")]

    def whole(self):
        return not self.missing


def factor_table(budget):
    """Returns the counts of claims for each label of each factor."""
    rows = []
    for pair in results.pairs_of(budget.slopes):
        for factor, labels in results.counts_by_factor(results.of_pair(budget.slopes, pair)).items():
            for label, counted in labels.items():
                rows.append([f"{pair[0]} : {pair[1]}", factor, label.split("/")[-1], *(counted[verdict] for verdict in results.VERDICTS)])
    return results.markdown(["pair", "factor", "label", "for", "against", "no claim"], rows)


def flip_text(lines, what):
    """Returns in how many tests the sign-flip test decides as the t test does."""
    same = sum((float(line["p_holm"]) <= 0.05) == (float(line["p_flip_holm"]) <= 0.05) for line in lines)
    return f"The sign-flip test beside the t test decides the same at 0.05 in {same} of {number_of(len(lines), what)}."


def scale_text(budget):
    """Returns what a slope of 0.1 means for the ratio of gaps: how many times it is as large where clients differ most as where they are alike."""
    places = {}
    for line in budget.differences():
        if line["x"] and line["level"] in (thumb.ALIKE, thumb.DIFFERENT):
            places.setdefault((results.settings_of(line["group"])["data.name"].split("/")[-1], line["level"]), []).append(float(line["x"]))
    said = []
    for problem in dict.fromkeys(name for name, _ in places):
        different, alike = (sum(places[problem, level]) / len(places[problem, level]) for level in (thumb.DIFFERENT, thumb.ALIKE))
        said.append(f"{math.exp(0.1 * (different - alike)):.1f} times on {problem}")
    return f"A slope of +0.1 means that the ratio of gaps, absolute over contraction, is larger at a similarity of 0% than at 100%: {listed(said)}."


def ends_text(budget):
    """Returns in how many claims the most different clients are not on the claimed side of the most similar ones: a slope is that of a fitted line."""
    ends = {}
    for line in budget.differences():
        if line["difference"] and line["level"] in (thumb.ALIKE, thumb.DIFFERENT):
            ends.setdefault((line["group"], line["a"], line["b"]), {}).setdefault(line["level"], []).append(float(line["difference"]))
    claims = [line for line in budget.slopes if results.verdict_of(line) != "no claim"]
    others = 0
    for line in claims:
        means = {level: sum(values) / len(values) for level, values in ends[line["group"], line["a"], line["b"]].items()}
        others += (means[thumb.DIFFERENT] - means[thumb.ALIKE]) * float(line["slope"]) <= 0
    return (f"A slope is that of a line fitted to five levels: in {others} of {number_of(len(claims), 'claim')} the mean log ratio at 0% is not on the claimed "
            "side of that at 100%.")


def contrast_cells(evidence):
    """Returns {title: text} of a contrast, with the noise of tuning and without it, for the lines of evidence.contrasts."""
    without = {(line["group"], line["a"], line["b"]): line for line in evidence.contrasts_without}

    def cells(line):
        seeds = without[line["group"], line["a"], line["b"]]
        return {**results.group_cells(line), "pair": f"{line['a']} : {line['b']}", "contrast": results.signed(line["slope"]),
                "95% interval": results.interval(line["slope_low"], line["slope_high"]), "p (Holm)": results.p_value(line), "the conjecture": results.verdict_of(line),
                "seeds alone: interval": results.interval(seeds["slope_low"], seeds["slope_high"]), "p": results.p_value(seeds),
                "conjecture": results.verdict_of(seeds)}
    return cells


def slope_cells(evidence):
    """Returns {title: text} of a slope without the noise of tuning, as the plan has it, and with that noise."""
    noisy = {(line["group"], line["a"], line["b"]): line for line in evidence.noisy.slopes}

    def cells(line):
        wide = noisy[line["group"], line["a"], line["b"]]
        return {**results.slope_cells(line), "with tuning: interval": results.interval(wide["slope_low"], wide["slope_high"]), "p": results.p_value(wide),
                "conjecture": results.verdict_of(wide)}
    return cells


def contrasts_part(evidence):
    """Returns the figures and the table of the contrasts."""
    pictures = [picture(f"contrasts-{short}-{evidence.budget.name}", f"Contrasts of {words_of(pair)} in each group, with intervals") for pair, short in SHORT.items()]
    said = [paragraph(f"{title_of(pair)}: {counted_text(results.of_pair(evidence.contrasts, pair))}; by the seeds alone "
                      f"{counted_text(results.of_pair(evidence.contrasts_without, pair))}.", "- ", "  ") for pair in results.pairs_of(evidence.contrasts)]
    return "\n\n".join(["\n".join(said), *pictures, results.table(evidence.contrasts, contrast_cells(evidence))])


def slopes_part(evidence):
    budget = evidence.budget
    parts = [paragraph(f"{scale_text(budget)} {ends_text(budget)} {flip_text(budget.slopes, 'slope')}")]
    for pair, short in SHORT.items():
        parts += [picture(f"slopes-{short}-{budget.name}", f"Slopes of {words_of(pair)} in each group, with intervals"),
                  picture(f"ratios-{short}-{budget.name}", f"Log ratio of gaps of {words_of(pair)} against heterogeneity")]
    return "\n\n".join(parts + [factor_table(budget), results.table(budget.slopes, slope_cells(evidence))])


def margins_part(budget):
    pictures = [picture(f"margins-{short}-{budget.name}", f"Ratio of gaps at 0% of {words_of(pair)} in each group, with intervals")
                for pair, short in SHORT.items()]
    said = []
    for pair in results.pairs_of(budget.slopes):
        lines = results.of_pair(budget.slopes, pair)
        said.append(paragraph(f"{title_of(pair)}, {number_of(len(lines), 'group')}: {margin_text(lines)}.", "- ", "  "))
    return "\n\n".join(["\n".join(said), *pictures, results.table(budget.slopes, results.margin_cells)])


def between_part(evidence):
    budget, noisy = evidence.budget, evidence.noisy
    pictures = [picture(f"between-{short}-{budget.name}", f"Differences of slopes between feedbacks of {words_of(pair)}, with intervals")
                for pair, short in SHORT.items()]
    said = []
    for pair in results.pairs_of(budget.slopes):
        lines = results.of_pair(budget.between, pair)
        differ, opposite = feedback_counts(lines, budget)
        wide = feedback_counts(results.of_pair(noisy.between, pair), noisy)
        said.append(paragraph(f"{title_of(pair)}: the slopes differ by a claim in {differ} of {len(lines)} comparisons of feedbacks. In {opposite} of these "
                              f"they also have claims of opposite signs. With the noise of tuning in the errors these counts are {wide[0]} and {wide[1]}.", "- ", "  "))
    return "\n\n".join(["\n".join(said), paragraph(flip_text(budget.between, "difference")), *pictures,
                        results.table(budget.between, results.between_cells)])


def second_part(evidence, primary):
    """Returns the second study of the same questions, at the small budget."""
    budget = evidence.budget
    if not budget.blocks:
        return f"No block of the budget of {budget.name}% has run."
    kinds = {"contrasts": "Contrasts", "slopes": "Slopes", "ratios": "Log ratio of gaps", "margins": "Ratio of gaps at 0%",
             "between": "Differences of slopes between feedbacks"}
    pictures = [picture(f"{kind}-{short}-{budget.name}", f"{text} of {words_of(pair)} at the budget of {budget.name}%")
                for kind, text in kinds.items() for pair, short in SHORT.items()]
    tables_of_all = [results.table(evidence.contrasts, contrast_cells(evidence)), results.table(budget.slopes, slope_cells(evidence)),
                     results.table(budget.slopes, results.margin_cells), results.table(budget.between, results.between_cells)]
    return "\n\n".join([answer(evidence), paragraph(budgets_text(budget, primary)), *pictures, factor_table(budget), *tables_of_all])


def both_text(budget, primary, pair):
    """Returns what a pair shows at bits up and down together: H1 beside the claims at uplink bits, H2, and H3."""
    lines, between = results.of_pair(budget.slopes, pair), results.of_pair(budget.between, pair)
    counted, (differ, opposite) = results.counts(lines), feedback_counts(between, budget)
    return (f"{title_of(pair)}, budget of {budget.name}%: claims for the conjecture in {counted['for']}, against it in {counted['against']} and none in "
            f"{counted['no claim']} of {number_of(len(lines), 'group')}{short_windows_text(lines)}. Compared with uplink bits: "
            f"{beside(lines, primary, pair).text()}. Where clients differ most, {margin_text(lines)}. The slopes of two feedbacks differ by a claim in "
            f"{differ} of {len(between)} comparisons, and have claims of opposite signs in {opposite}.")


def both_directions_part(both, budgets):
    """Returns the results at bits up and down together, which are secondary, beside those at uplink bits."""
    said = [paragraph(both_text(study, primary, pair), "- ", "  ") for study, primary in zip(both, budgets) for pair in results.pairs_of(study.slopes)]
    return "\n\n".join([tables.NOTES["both"], "\n".join(said), results.table(both[0].slopes, results.slope_cells)])


def draw(evidence, folder):
    """Writes the figures of one budget, none if no block has run."""
    budget = evidence.budget
    if not budget.blocks:
        return
    differences = budget.differences()
    for pair, short in SHORT.items():
        title = f"{words_of(pair).removeprefix('the ')}, budget of {budget.name}%"
        made = {"contrasts": figures.contrasts(f"From 100% to 0%: {title}", pair, budget.groups, evidence.contrasts_without, evidence.contrasts),
                "slopes": figures.slopes(f"Slopes: {title}", pair, budget.groups, budget.slopes, evidence.noisy.slopes),
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


def write(page, budgets, both, others):
    """Draws all figures beside the page and fills its parts and the page of tables beside it. `budgets` are the primary one and the second one at uplink
    bits, `both` the same at bits up and down, `others` the studies of robustness, of networks, and those without tests."""
    first, second = budgets
    folder = page.parent / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    evidences = [noise.Evidence(budget, budget.runs()) for budget in budgets]
    evidence, other = evidences
    for one in evidences:
        draw(one, folder)
    beside_core = robustness.write_figures(others["robustness"], first, folder)
    runs = first.runs()
    published = next(study for study in others["robustness"] if study.name == "robust-published")
    outside = next(study for study in others["descriptive"] if study.name == "descriptive-operators").runs()
    reasons = why.write_figures(first.folder, folder)
    parts, long_tables = tables.separated({
        "answer": answer(evidence, other, robustness.answer_text(others["robustness"], first), others["networks"]), "practice": practice(evidence),
        "rules": thumb.rules(evidence, other, runs, published, outside), "contrasts": contrasts_part(evidence),
        "slopes": slopes_part(evidence), "noise": noise.part(evidence),
        "mixed": mixed.part(budgets), "margins": margins_part(first), "between": between_part(evidence), "both": both_directions_part(both, budgets),
        "second": second_part(other, first), "secondary": secondary.ratios_part(first, runs, SHORT), "curves": secondary.curves_part(first, SHORT),
        "robustness": robustness.part(others["robustness"], first, beside_core), "networks": robustness.part(others["networks"], first, []),
        "descriptive": descriptive.part(others["descriptive"], first), "why": why.part(reasons, paragraph, picture),
        "ran": limits.part(budgets, itertools.chain(*others.values()))})
    page.write_text(filled(page.read_text(), parts))
    beside = page.with_name("tables.md")
    beside.write_text(filled(beside.read_text(), {"tables": long_tables}))
