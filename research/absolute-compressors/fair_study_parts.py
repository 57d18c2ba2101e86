"""The parts of the second study beside its core: other budgets and feedbacks, targets, witnesses, images, and the values that were tuned. Needs nothing
but Python."""
import math
import statistics

import fair_study_inference as inference
from conjecture_study import limits_page
from conjecture_study.answer import paragraph
from conjecture_study.results import markdown
from fair_study_tables import (VERDICTS, WORDS, ahead_word, capital, contrast_table, counted, estimate_cells, group_of, level_of, of_pair, short_runs, signed)

KNOBS = {"top-k": "compressor.up.ratio", "hard": "compressor.up.threshold", "three-lc": "compressor.up.sparsity", "rounding": "compressor.up.step",
         "qsgd": "compressor.up.levels"}
BOUNDS = {"compressor.up.ratio": (0, 1), "compressor.up.sparsity": (1, 2), "compressor.up.levels": (1, math.inf)}  # of the options
IMAGES_DIFFERENT = "0.1"  # alpha of the most different clients


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
            shown = min(values.values()), statistics.median(values.values()), max(values.values())
            rows.append([f"`{name}`", tuned.rsplit(".", 1)[-1], *(f"{one:.4g}{unit}" for one in shown), f"{edges} of {len(values)}"])
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
    if not rows:
        return f"Fewer than two repetitions of `{part.name}` have run."
    return markdown(["dealt at random", "operator", "gap over that of the tuned Top-k", "95% interval"], rows)


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
            sign = one.sign if measure == "train_loss" else -one.sign
            rows.append([words, " : ".join(one.pair), *map(signed, at), *estimate_cells(one, "contrast").values(), VERDICTS[sign]])
    header = ["measure", "pair", "at alpha = 100", "at alpha = 0.1", "contrast", "95% interval", "p (Holm)", "own variance: p", "the conjecture"]
    return "\n\n".join([*([paragraph(part.state().strip())] if part.state() else []), markdown(header, rows)])


def silent_text(part):
    """Returns the hits of what the plan predicts for EF21: with all clients the threshold is worse than Top-k at both ends."""
    if len(part.runs) < 2:
        return ""
    log = part.log()
    found = [one for level in (inference.ALIKE, inference.DIFFERENT) for one in inference.family(log, inference.ahead_at(level))
             if one.pair == ("hard", "top-k") and "ef21" in one.group and "1" in one.group[2:]]
    words = [ahead_word(one) for one in found]
    return paragraph("Predicted for EF21 with all clients: the threshold falls silent and is worse than Top-k at 100% and at 0%. It is worse in "
                     f"{words.count('worse')} of {len(words)} groups and levels, better in {words.count('better')}, alike in {words.count('alike')}, and open in {words.count('open')}.")


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
