"""The mixed model of first/plan.md, a check of sensitivity: fitted by conjecture_study/mixed.R, kept in first/results/mixed-*.csv,
shown by first/page.md. Only a fit needs R; the page reads the small table."""
import csv
import math
import pathlib
import shutil
import subprocess

from conjecture_study import contrasts, results
from conjecture_study.answer import Agreement, listed, paragraph, words_of

SCRIPT = pathlib.Path(__file__).resolve().parent / "mixed.R"


def path_of(folder, budget):
    return folder / f"mixed-{budget}.csv"


def missing_tool():
    """Returns what a fit needs and does not find; "" if all is there."""
    if not shutil.which("Rscript"):
        return "R (Debian: r-base-core)"
    found = subprocess.run(["Rscript", "--vanilla", "-e", "quit(status = !requireNamespace('lmerTest', quietly = TRUE))"], check=False, capture_output=True)
    return "the R package lmerTest (Debian: r-cran-lmertest)" if found.returncode else ""


def fit(folder, blocks, out):
    """Writes the slopes of a mixed model for each problem and pair of some exported blocks."""
    subprocess.run(["Rscript", "--vanilla", SCRIPT, out, *(folder / block / "differences.csv.xz" for block in blocks)], check=True)


def read(path):
    """Returns the fitted slopes by group and pair, with p-values adjusted by Holm's rule over all of them; empty if nothing has been fitted."""
    if not path.exists():
        return {}
    with open(path, newline="", encoding="utf-8") as text:
        lines = list(csv.DictReader(text))
    tested = [line for line in lines if math.isfinite(float(line["p"]))]
    for line, p in zip(tested, results.holm_adjusted([float(line["p"]) for line in tested])):
        line["p_holm"] = p
    return {key(line): line for line in lines}


def key(line):
    return line["group"], line["a"], line["b"]


def beside(primary, mixed):
    """Returns a line of the primary analysis with the numbers of the mixed model. What excludes a claim for other reasons than a test still does."""
    kept = primary["why"] if primary["why"] not in contrasts.DECIDED_BY_TESTS else ""
    return {**primary, **mixed, "p_holm": mixed.get("p_holm", 1.0), "why": kept}


def compared(budget):
    """Returns (primary, mixed) for each group of a budget that the committed fit covers, and the blocks that it does not cover."""
    fitted = read(path_of(budget.folder, budget.name))
    pairs = [(line, beside(line, fitted[key(line)])) for line in budget.slopes if key(line) in fitted]
    return pairs, list(dict.fromkeys(line["block"] for line in budget.slopes if key(line) not in fitted))


def cells(primary, mixed):
    """Returns {title: text} of a slope of the mixed model beside that of the primary analysis."""
    return {**results.group_cells(primary), "pair": f"{primary['a']} : {primary['b']}", "slope": results.signed(mixed["slope"]),
            "95% interval": results.interval(mixed["slope_low"], mixed["slope_high"]), "degrees of freedom": f"{float(mixed['df']):.0f}",
            "p (Holm)": results.p_value(mixed), "the conjecture": results.verdict_of(mixed), "primary analysis": results.verdict_of(primary)}


def fits_text(pairs):
    """Returns how many fits there were, and which of them are not regular."""
    fits = {((line["a"], line["b"]), results.settings_of(line["group"])["data.name"].split("/")[-1]): mixed["fit"] for line, mixed in pairs}
    said = [f"{words_of(pair)} on {problem} ({state})" for (pair, problem), state in fits.items() if state != "regular"]
    text = f"There are {len(fits)} fits, one for each pair and problem." if len(fits) > 1 else "There is one fit."
    if not said:
        return f"{text} None of them was singular."
    if set(fits.values()) == {"singular"}:
        return (f"{text} All are singular: a variance between seeds, or a correlation, is estimated at its bound, so their p-values come close to those of a "
                "regression that takes the levels of a seed as independent.")
    return f"{text} These are not regular: {listed(said)}. In a singular fit a variance between seeds, or a correlation, is estimated at its bound."


def budget_text(budget):
    """Returns in how many groups the mixed model has the claim of the primary analysis, and what the fit lacks."""
    pairs, missing = compared(budget)
    if not pairs:
        return f"Budget of {budget.name}%: no mixed model has been fitted."
    agreement = Agreement((results.verdict_of(primary), results.verdict_of(mixed)) for primary, mixed in pairs)
    stale = f" **The fit is older than the exports**: it does not cover {listed([f'`{block}`' for block in missing])}." if missing else ""
    return f"Budget of {budget.name}%: compared with the primary analysis, the mixed model has {agreement.text()}. {fits_text(pairs)}{stale}"


def part(budgets):
    """Returns the generated part of the page: a sentence for each budget, and the slopes of the first one."""
    pairs, _ = compared(budgets[0])
    said = [paragraph(budget_text(budget), "- ", "  ") for budget in budgets]
    rows = [cells(*pair) for pair in pairs]
    return "\n".join(said) + ("\n\n" + results.markdown(list(rows[0]), [row.values() for row in rows]) if rows else "")
