"""The part of first/page.md about what was run: runs, diverged ones, tuned values at the end of a grid, and pairs compared before the budget."""
import csv
import itertools
import json
import re

from conjecture_study import figures, results
from conjecture_study.answer import listed, number_of, paragraph

# The axes that make a cell of tuning.
CELL = (*results.FACTORS.values(), "partition.percent", "partition.alpha", "data.zeta_sq", "compressor.up")
SHORT_NAMES = {"local.learning_rate": "step size", "feedback.up.eta": "eta", "compressor.up.threshold": "threshold", "compressor.up.step": "grid step"}
LARGEST = {"feedback.up.eta": 1.0}  # what fedbits accepts


def value_of(text):
    """Returns a step size in units of 1/L, or a plain number: "2/L" and "2*(1/L)" are 2."""
    product = 1.0
    for factor in re.findall(r"[0-9.e+-]+(?=\*|/L|\)|$)", text.replace("(", "").replace(")", "")):
        product *= float(factor)
    return product


def last_values(values, largest):
    """Returns the smallest and the largest value that a grid can reach: it is extended up to four times by the ratio of its two outermost values."""
    return values[0] * (values[0] / values[1]) ** 4, min(largest, values[-1] * (values[-1] / values[-2]) ** 4)


def values_at_edge(runs, grids):
    """Returns {key: {cell: value}} of the tuned values that lie at the last value that their grid can reach."""
    found = {}
    for run in runs:
        for key, texts in grids.items():
            if run.get(key):
                low, high = last_values([value_of(str(text)) for text in texts], LARGEST.get(key, float("inf")))
                if not low * 1.001 < value_of(run[key]) < high * 0.999:
                    found.setdefault(key, {})[tuple(run.get(axis, "") for axis in CELL)] = run[key]
    return found


def edge_text(found):
    return "; ".join(f"{SHORT_NAMES[key]} in {number_of(len(cells), 'cell')}" for key, cells in sorted(found.items())) or "none"


def cell_words(cell):
    """Returns a cell in words, without its level and operator: "a9a, EF14, a tenth of clients, 10 steps"."""
    at = dict(zip(CELL, cell))
    steps = f"{at['local.steps']} step" + ("s" if at["local.steps"] != "1" else "") if at["local.steps"] else ""
    return ", ".join(filter(None, [at["data.name"].split("/")[-1], figures.FEEDBACKS.get(at["feedback.up"], at["feedback.up"]), figures.clients_of(at), steps]))


def level_words(cell):
    at = dict(zip(CELL, cell))
    return f"{at['partition.percent']}%" if at["partition.percent"] else f"alpha = {at['partition.alpha']}" if at["partition.alpha"] else f"zeta^2 = {at['data.zeta_sq']}"


def edge_lines(block, found):
    """Returns a line for each key, operator and group whose tuned values lie at the end of the grid."""
    merged = {}
    for key, cells in sorted(found.items()):
        for cell, text in sorted(cells.items()):
            value = f"{value_of(text):.3g}" + ("/L" if "/L" in text else "")
            merged.setdefault((key, cell[-1], cell_words(cell), value), []).append(level_words(cell))
    return [f"- `{block}`: {SHORT_NAMES[key]} {value} of `{method}` ({words}) at {listed(levels)}" for (key, method, words, value), levels in merged.items()]


def versions_of(runs):
    """Returns the numbers of the results (results_version) that runs were made with; "not known" where they have none."""
    return listed(sorted({str(json.loads(run["configuration"]).get("results_version", "not known")) for run in runs}))


def commits_of(folder):
    """Returns {block: commit with which its tables came}, from commits.csv beside the tables."""
    with open(folder / "commits.csv", newline="", encoding="utf-8") as text:
        return {line["block"]: f"`{line['commit']}`" for line in csv.DictReader(text)}


def part(budgets, others):
    """Returns what has run, every tuned value that stayed at the end of an extended grid, and the pairs compared before the budget."""
    rows, at_edge, commits = [], [], commits_of(budgets[0].folder)
    for budget in [*budgets, *others]:
        for block in budget.planned:
            if block in budget.missing:
                rows.append([f"`{block}`", "not run", "", "", "", "", ""])
                continue
            runs = results.read_table(budget.folder / block / "runs.csv.xz")
            lines = [line for line in budget.slopes if line["block"] == block]
            found = values_at_edge(runs, budget.grids)
            at_edge += edge_lines(block, found)
            rows.append([f"`{block}`", len(runs), sum(run["status"] == "diverged" for run in runs), sum(int(line["capped"]) for line in lines), edge_text(found),
                         versions_of(runs), commits.get(block, "not known")])
    table = results.markdown(["block", "runs", "diverged", "end points capped", "tuned values at the end of an extended grid", "results version",
                              "commit"], rows)
    meant = paragraph("*Commit* is that with which the tables came into this repository; the program was of that time. A + means that the program had changes which came "
                      "after this commit. `results version` is the program's number for what results mean.")
    listed_edges = ["The tuned values at the end of their grids, where the best ones may lie beyond (eta cannot exceed 1):\n\n" + "\n".join(at_edge)] if at_edge else []
    return "\n\n".join([table, meant, *listed_edges, *itertools.chain(*map(short_budgets, budgets))])


# ---- pairs compared before the budget ----

ENOUGH = 0.95  # of the budget


def shares_of_budget(budget):
    """Returns {(group, pair, level): mean share of the budget at which its pairs are compared}."""
    limits = {run["run"]: float(run["stop.bits_up"]) for run in budget.runs()}
    shares = {}
    for line in budget.differences():
        if line["budget_bits"] and line["run_a"] in limits:
            shares.setdefault((line["group"], (line["a"], line["b"]), line["level"]), []).append(float(line["budget_bits"]) / limits[line["run_a"]])
    return {at: sum(found) / len(found) for at, found in shares.items()}


def short_pairs(study):
    """Returns {(group, pair): ["LEVEL (SHARE)"]} of the pairs that are compared at clearly less than the budget, these shares, and the number of cells."""
    shares = shares_of_budget(study) if study.blocks else {}
    groups, short = {}, []
    for (group, pair, level), share in shares.items():
        if share < ENOUGH:
            short.append(share)
            groups.setdefault((group, pair), []).append(f"{results.level_text(study.name, level)} ({100 * share:.0f}%)")
    return groups, short, len(shares)


def short_budgets(budget):
    """Returns a paragraph and a list of the pairs that are compared at clearly less than the budget, nothing if there are none."""
    groups, short, cells = short_pairs(budget)
    if not short:
        return []
    text = (f"In {len(short)} of {cells} cells of the budget of {budget.name}% a run ended after 1,600 rounds, before it had sent the budget. The plan "
            f"compares such a pair at the bits that both sent, {100 * min(short):.0f} to {100 * max(short):.0f}% of the budget, although both "
            "were tuned for all of it. The levels, with the share of the budget:")
    lines = []
    for (group, pair), levels in groups.items():
        at = results.settings_of(group)
        lines.append(f"- {pair[0]} : {pair[1]}, {figures.heading_of(at)}, {figures.FEEDBACKS[at['feedback.up']]}: {', '.join(levels)}")
    return [paragraph(text), "\n".join(lines)]


def short_text(study):
    """Returns one item of a list about the pairs of a smaller study that are compared before the budget, "" if there are none."""
    groups, short, cells = short_pairs(study)
    if not short:
        return ""
    said = []
    for (group, pair), levels in groups.items():
        at = results.settings_of(group)
        words = [at["data.name"].split("/")[-1]] if "data.name" in at else []
        said.append(f"{pair[0]} : {pair[1]}, {', '.join([*words, figures.FEEDBACKS[at['feedback.up']], figures.clients_of(at)])}: {', '.join(levels)}")
    return paragraph(f"in {len(short)} of {cells} cells a run played all its rounds before it had sent the budget, so its pair is compared at the bits that "
                     f"both sent. The levels, with the share of the budget: {'; '.join(said)}", "- ", "  ")
