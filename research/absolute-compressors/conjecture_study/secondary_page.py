"""The parts of first/page.md about secondary end points, from the tables of runs and from conjecture_study/secondary.py's."""
import csv
import math

from conjecture_study import figures, results
from conjecture_study.answer import listed, number_of, paragraph, title_of

LEVELS = "100", "0"  # where clients are most alike, and least


def mean_ratio(runs, pair, column):
    """Returns the geometric mean over the seeds of a column's ratio between the two methods of a pair, or "" if some run has no value."""
    values = {method: {run["seed"]: float(run[column]) for run in runs if run["compressor.up"] == method and run[column]} for method in pair}
    first, second = values[pair[0]], values[pair[1]]
    if not first or set(first) != set(second) or min([*first.values(), *second.values()]) <= 0:
        return ""
    return f"{math.exp(sum(math.log(first[seed] / second[seed]) for seed in first) / len(first)):.2f}"


def ratios_part(budget, runs, pairs):
    """Returns how many rounds the tuned absolute operator played beside its partner, and its total error, where clients are most alike and least."""
    rows, falls = [], []
    for at in budget.groups:
        of_group = [run for run in runs if all(run[key] == label for key, label in at.items())]
        for pair in pairs:
            if of_group:
                cells = [mean_ratio([run for run in of_group if run["partition.percent"] == level], pair, column)
                         for column in ("rounds", "total_error") for level in ("100", "0")]
                rows.append([at["data.name"].split("/")[-1], figures.FEEDBACKS[at["feedback.up"]], at["participation.fraction"], at["local.steps"],
                             f"{pair[0]} : {pair[1]}", *cells])
                falls.append((pair, *(falls_of(*cells[i:i + 2]) for i in (0, 2))))
    said = [paragraph(falls_text(pair, [found[1:] for found in falls if found[0] == pair]), "- ", "  ") for pair in pairs]
    return "\n".join(said) + "\n\n" + results.markdown(["problem", "feedback", "share of clients", "steps", "pair", "rounds, 100%", "rounds, 0%", "total error, 100%",
                             "total error, 0%"], rows)


def falls_of(alike, different):
    """Returns whether a ratio is smaller where clients differ most; None where it is not known."""
    return float(different) < float(alike) if alike and different else None


def falls_text(pair, found):
    """Returns how often the ratios fall as clients differ more. `found` has for each group whether rounds and total error fall."""
    known = [(rounds, error) for rounds, error in found if None not in (rounds, error)]
    return (f"{title_of(pair)}: from 100% to 0% the ratio of rounds falls in {sum(rounds for rounds, _ in found if rounds is not None)} of "
            f"{number_of(len(found), 'group')}, that of total error in {sum(error for _, error in known)} of {len(known)}, and both, as with the fixed values "
            f"above, in {sum(rounds and error for rounds, error in known)} of {len(known)}.")


def read(budget):
    """Returns the lines of the blocks' secondary end points by cell, and the exported blocks that have none."""
    lines, missing = {}, []
    for block in budget.blocks:
        path = budget.folder / block / "secondary.csv"
        if not path.exists():
            missing.append(block)
            continue
        with open(path, newline="", encoding="utf-8") as text:
            lines.update({(*figures.key(line), line["partition.percent"], line["compressor.up"]): line for line in csv.DictReader(text)})
    return lines, missing


def both(pair, at, level, lines, text):
    """Returns a number of the absolute operator and of its partner beside each other."""
    return " : ".join(text(lines[(*figures.key(at), level, method)]) for method in pair)


def swing_text(line):
    return f"{float(line['swing']):.2f}" if line["swing"] else "diverged"


def target_text(pair, at, level, lines):
    """Returns the ratio of the median bits to the target, with the runs that arrived: "0.42 (30 : 28)"."""
    first, second = (float(lines[(*figures.key(at), level, method)]["median_bits"]) for method in pair)
    ratio = f"{first / second:.2f}" if max(first, second) < math.inf else "no median"
    return f"{ratio} ({both(pair, at, level, lines, lambda line: line['arrived'])})"


def oscillating_text(pair, at, lines):
    """Returns how many runs oscillate, over all levels."""
    levels = [key[-2] for key in lines if key[:-2] == figures.key(at) and key[-1] == pair[0]]
    return " : ".join(str(sum(int(lines[(*figures.key(at), level, method)]["oscillating"]) for level in levels)) for method in pair)


def refused_text(lines):
    refused, updates = (sum(int(line[name]) for line in lines.values()) for name in ("refused", "updates"))
    cells = sum(line["refused"] != "0" for line in lines.values())
    if not refused:
        return f"None of the {updates / 1e6:.1f} million updates of clients was refused."
    return f"{refused} of the {updates / 1e6:.1f} million updates of clients were refused ({100 * refused / updates:.2g}%), in {cells} of {len(lines)} cells."


def curves_part(budget, pairs):
    """Returns swing, oscillation, refused updates and bits to a target of the blocks that have them."""
    lines, missing = read(budget)
    said = [refused_text(lines)] if lines else []
    if missing:
        said.append(f"{listed([f'`{block}`' for block in missing])} {'has' if len(missing) == 1 else 'have'} no such end points, which the plan promises of "
                    "every block: they need the curves of a store, which were not kept.")
    rows = []
    for at in budget.groups:
        for pair in pairs:
            if (*figures.key(at), LEVELS[0], pair[0]) in lines:
                rows.append([at["data.name"].split("/")[-1], figures.FEEDBACKS[at["feedback.up"]], at["participation.fraction"], at["local.steps"],
                             f"{pair[0]} : {pair[1]}", *(both(pair, at, level, lines, swing_text) for level in LEVELS), oscillating_text(pair, at, lines),
                             *(target_text(pair, at, level, lines) for level in LEVELS)])
    head = ["problem", "feedback", "share of clients", "steps", "pair", "swing, 100%", "swing, 0%", "oscillating runs", "bits to target, 100%",
            "bits to target, 0%"]
    return "\n\n".join([paragraph(" ".join(said) or "No block has run."), *([results.markdown(head, rows)] if rows else [])])
