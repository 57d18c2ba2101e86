"""The part of first/page.md about operators beside the pairs of the study: how far each is from Top-k at each level, with intervals and no tests."""
import math
import statistics

from conjecture_study import figures, results
from conjecture_study.answer import number_of, paragraph

BLOCKS = "descriptive-operators", "descriptive-powersgd"
TITLES = {"descriptive-operators": "Scaled signs and random levels", "descriptive-powersgd": "PowerSGD on a perceptron"}
CORE = "hard", "top-k"
NORMAL = 1.959963984540054  # the 97.5% quantile


def student(freedom, z=NORMAL):
    """Returns the 97.5% quantile of Student's t, by its expansion in 1/freedom (Abramowitz and Stegun, 26.7.5): to 4e-5 from 9 on."""
    terms = ((z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
             (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160)
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))


def mean_text(values):
    """Returns a mean with Student's 95% interval over the seeds."""
    if len(values) < 10:
        return f"{number_of(len(values), 'seed')} only"
    mean = statistics.mean(values)
    half = student(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean:+.3f} ({mean - half:+.3f} to {mean + half:+.3f})"


def cells_of(differences):
    """Returns {(group, measure, pair): {level: differences over the seeds}}, levels in the order of the lines."""
    cells = {}
    for line in differences:
        if line["difference"]:
            levels = cells.setdefault((line["group"], line["measure"], line["a"], line["b"]), {})
            levels.setdefault(line["level"], []).append(float(line["difference"]))
    return cells


def capped_cells(differences):
    """Returns the cells of cells_of() whose means rest on capped end points."""
    return {(line["group"], line["measure"], line["a"], line["b"], line["level"]) for line in differences if int(line["capped_a"]) or int(line["capped_b"])}


def rows_of(differences, names):
    """Returns the rows of a table with the columns of `names`, those of a group beside each other."""
    rows, capped = [], capped_cells(differences)
    for (group, measure, a, b), levels in cells_of(differences).items():
        at = results.settings_of(group)
        problem, feedback, share = at.get("data.name", "").split("/")[-1], at["feedback.up"], at["participation.fraction"]
        labels = {"problem": problem, "feedback": figures.FEEDBACKS[feedback], "share of clients": share, "measure": measure.replace("_", " "),
                  "operators": f"{a} : {b}"}
        place = problem, list(figures.FEEDBACKS).index(feedback), -float(share)
        means = [mean_text(levels.get(level, [])) + results.capped_mark((group, measure, a, b, level) in capped) for level in ("100", "0")]
        rows.append((place, [*(labels[name] for name in names), *means]))
    return [row for _, row in sorted(rows, key=lambda row: row[0])]


def table(study, core):
    """Returns the differences of a study at both levels; `core` are those of the pair that is shown beside them."""
    gaps = study.name == "descriptive-operators"
    names = ["problem", "feedback", "share of clients", "operators"] if gaps else ["feedback", "share of clients", "measure", "operators"]
    what = "log ratio" if gaps else "difference"
    rows = rows_of(study.differences() + (core if gaps else []), names)
    return results.markdown([*names, f"{what}, 100%", f"{what}, 0%"], rows)


def core_of(budget):
    """Returns the differences of the first pair with one local step, under the feedbacks that the descriptive studies have."""
    settings = ((line, results.settings_of(line["group"])) for line in budget.differences() if (line["a"], line["b"]) == CORE)
    return [line for line, at in settings if at["local.steps"] == "1" and at["feedback.up"] != "econtrol"]


def part(studies, budget):
    """Returns the generated part of the page."""
    parts, core = [], core_of(budget) if any(study.blocks for study in studies) else []
    for study in studies:
        shown = table(study, core) if study.blocks else paragraph(f"`{study.name}` has not run.")
        parts.append(f"### {TITLES[study.name]}\n\n{shown}")
        if "\\* |" in shown:
            parts.append("\\* rests on end points that are capped, of the accuracy at that of chance and of the loss at that of the start.")
    return "\n\n".join(parts)
