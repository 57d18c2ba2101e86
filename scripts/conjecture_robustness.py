"""The parts of docs/conjecture.md about robustness and networks: studies of their own, each with one block and one family of tests."""
import conjecture_figures as figures
import conjecture_results as results
from svg_charts import forest_chart

NAMES = {"robust-dirichlet": "Dirichlet splits", "robust-quadratics": "quadratics", "robust-momentum": "server momentum",
         "robust-published": "published rule", "network-core": "perceptron on Fashion-MNIST", "network-low-rank": "low-rank operators",
         "network-grid": "perceptron, whole grid", "cifar-core": "small CNN on CIFAR-10, exploratory"}
CORE = "core (similarity)"
PAIR = "hard", "top-k"


def key(line):
    """Returns what a group of the core and one of a study of robustness have in common."""
    at = results.settings_of(line["group"])
    return at.get("data.name", ""), at["feedback.up"], at["participation.fraction"]


def core_lines(budget):
    """Returns the core's slopes by key: the first pair with one local step."""
    return {key(line): line for line in results.of_pair(budget.slopes, PAIR) if results.settings_of(line["group"])["local.steps"] == "1"}


def agreement(study, core):
    """Returns how many groups have the core's claim, no claim where the core has one or the reverse, and the opposite claim."""
    found = {"the same claim": 0, "one of the two without a claim": 0, "the opposite claim": 0}
    for line in study.slopes:
        if key(line) in core:
            here, there = results.verdict_of(line), results.verdict_of(core[key(line)])
            kind = "the same claim" if here == there else "one of the two without a claim" if "no claim" in (here, there) else "the opposite claim"
            found[kind] += 1
    return found


def robust_text(study, compared):
    """Returns whether the plan calls a part robust: no group has the opposite claim, and more than half have the same."""
    if sum(compared.values()) < len(study.slopes):
        return "nothing is said before the core has run in all of these groups"
    robust = not compared["the opposite claim"] and 2 * compared["the same claim"] > len(study.slopes)
    return "the core is robust to it" if robust else "the core is not robust to it"


def study_part(study, core):
    """Returns the text and the tables of one study."""
    heading = f"### {NAMES[study.name][0].upper()}{NAMES[study.name][1:]}"
    if not study.blocks:
        return f"{heading}\n\n`{study.name}` has not run."
    said = [results.count_line(pair, results.of_pair(study.slopes, pair)) for pair in results.pairs_of(study.slopes)]
    compared = agreement(study, core)
    if sum(compared.values()):
        said.append(f"- beside the core: {', '.join(f'{kind} in {count}' for kind, count in compared.items())}; {robust_text(study, compared)}")
    tables = [results.table(study.slopes, results.slope_cells), results.table(study.slopes, results.margin_cells)]
    return "\n\n".join([heading, "\n".join(said), *tables, *filter(None, [results.table(study.between, results.between_cells)])])


def slope_row(heading, label, line, series):
    if not line:
        return heading, label, None, series, "has not run"
    return heading, label, figures.interval_of(line, ("slope_low", "slope", "slope_high")), series, results.verdict_of(line)


def slopes_beside_core(studies, budget):
    """Returns the slopes of the core and of each study of robustness beside each other."""
    core, rows = core_lines(budget), []
    names = [CORE] + [NAMES[study.name] for study in studies]
    for data in dict.fromkeys(at["data.name"] for at in budget.groups):
        for fraction in ("1", "0.1"):
            for feedback, name in figures.FEEDBACKS.items():
                heading = f"{data.split('/')[-1]}, {figures.clients_of({'participation.fraction': fraction})}, {name}"
                at = data, feedback, fraction
                rows.append(slope_row(heading, CORE, core.get(at), 0))
                for i, study in enumerate(studies, 1):
                    rows.append(slope_row(heading, NAMES[study.name], {key(line): line for line in study.slopes}.get(at), i))
    axis = figures.axis_around([row[2] for row in rows if row[2]], (0.0,))
    return forest_chart("Robustness: slopes of hard threshold against Top-k", "one local step, budget of 5%, with Student's 95% interval", rows, axis,
                        "slope of log(hard / top-k)", names, (0.0,), ("for", "against"))


def write_figures(studies, budget, folder):
    """Draws the studies that share their groups with the core beside it, and returns the names of the figures."""
    shared = [study for study in studies if study.name.startswith("robust-") and study.name != "robust-quadratics"]
    if not any(study.blocks for study in shared):
        return []
    (folder / "robustness.svg").write_text(slopes_beside_core(shared, budget))
    return ["robustness"]


def part(studies, budget, names):
    """Returns the generated part of the page about some studies, with the figures drawn for them."""
    core = core_lines(budget)
    pictures = [f"![Slopes of the core and of its variations beside each other](conjecture/figures/{name}.svg)" for name in names]
    return "\n\n".join(pictures + [study_part(study, core) for study in studies])
