"""Why, not only whether: the few numbers behind the descriptive figures of first/page.md, taken out of stores.

The scenario files first/why-*.toml have the runs. What is kept of each store are small tables in first/results/why-*, which
conjecture_study/why_figures.py draws."""
import csv
import math
import pathlib
import re
import subprocess
import tempfile

from svg_charts import mean

BLOCKS = "why-levels", "why-steps", "why-bounds"
LEVEL, METHOD, SHARE, RATE = "partition.percent", "compressor.up", "participation.fraction", "local.learning_rate"


def store_tables(fedbits, store):
    """Returns the runs and the rounds of a store, the rounds by run."""
    with tempfile.TemporaryDirectory() as folder:
        runs, rounds = pathlib.Path(folder) / "runs.csv", pathlib.Path(folder) / "rounds.csv"
        subprocess.run([fedbits, "export", store, "--reproducible", "--runs", runs, "--rounds", rounds], check=True, stdout=subprocess.DEVNULL)
        by_run = {}
        with open(rounds, newline="", encoding="utf-8") as text:
            for row in csv.DictReader(text):
                by_run.setdefault(row["run"], []).append(row)
        with open(runs, newline="", encoding="utf-8") as text:
            return list(csv.DictReader(text)), by_run


def constants(fedbits, store, run):
    """Returns the resolved constants of a run by name."""
    said = subprocess.run([fedbits, "explain", run["run"], "--out", store], check=True, capture_output=True, text=True).stdout
    lines = said[said.index("# resolved constants"):].split("\n\n")[0]
    return {name: float(value) for name, value in re.findall(r"^#   (\w+) +([-+0-9.e]+|inf)$", lines, re.MULTILINE)}


def cells_of(runs, keys):
    """Returns the runs of each combination of labels, in the order of the seeds."""
    cells = {}
    for run in sorted(runs, key=lambda run: (*(run[key] for key in keys), int(run["seed"]))):
        cells.setdefault(tuple(run[key] for key in keys), []).append(run)
    return cells


def measured(rows, name):
    """Returns the values of a column where it was measured."""
    return [float(row[name]) for row in rows if row[name] != ""]


def windowed_gap(rows):
    """Returns the mean of f - f*, a step function of the bits, over the last fifth of the bits that a run sent."""
    end = float(rows[-1]["cumulative_bits_up"])
    first, total = 0.8 * end, 0.0
    for row, after in zip(rows, rows[1:]):
        low, high = max(first, float(row["cumulative_bits_up"])), float(after["cumulative_bits_up"])
        if high > low:
            total += float(row["f_gap"]) * (high - low)
    return total / (end - first)


# ---- the table of each store ----

def take_levels(runs, rounds, constants_of):
    """Returns one line for each cell: means over seeds of what a round sent, of the errors, and of the quietest and the loudest client's bits."""
    for cell, members in cells_of(runs, (SHARE, LEVEL, METHOD)).items():
        of_run = [rounds[run["run"]] for run in members]
        clients = [constants_of(run) for run in members]
        line = dict(zip((SHARE, LEVEL, METHOD), cell))
        line["total_error"] = mean([float(run["total_error"]) for run in members])
        for name in ("density", "residual_age", "virtual_drift", "error_norm_sq"):
            line[name] = mean([mean(measured(rows[1:], name) or [math.nan]) for rows in of_run])
        line["density_first_tenth"] = mean([mean(measured(rows[1:len(rows) // 10 + 1], "density")) for rows in of_run])
        line["density_last_tenth"] = mean([mean(measured(rows[-(len(rows) // 10):], "density")) for rows in of_run])
        for name in ("min", "median", "max"):
            line[f"client_bits_{name}"] = mean([found[f"client_bits_up_{name}"] for found in clients])
        yield line


def take_curves(runs, rounds, constants_of):
    """Returns the density and the drift of the virtual iterate over the rounds, means over seeds, at every twentieth round."""
    for cell, members in cells_of(runs, (SHARE, LEVEL, METHOD)).items():
        for place in range(20, len(rounds[members[0]["run"]]), 20):
            rows = [rounds[run["run"]][place - 19:place + 1] for run in members]
            yield {**dict(zip((SHARE, LEVEL, METHOD), cell)), "round": place,
                   **{name: mean([mean(measured(part, name) or [math.nan]) for part in rows]) for name in ("density", "error_norm_sq", "virtual_drift")}}


def take_steps(runs, rounds, constants_of):
    """Returns the gap at the budget for each step size: geometric mean, smallest and largest over the seeds, infinite if a run diverged."""
    for cell, members in cells_of(runs, (LEVEL, METHOD, RATE)).items():
        gaps = [windowed_gap(rounds[run["run"]]) if run["status"] == "done" else math.inf for run in members]
        yield {**dict(zip((LEVEL, METHOD, RATE), cell)), "gap": math.exp(mean([math.log(gap) for gap in gaps])), "low": min(gaps), "high": max(gaps),
               "diverged": sum(run["status"] == "diverged" for run in members)}


def take_bounds(runs, rounds, constants_of):
    """Returns for each cell the mean of |grad f|^2 over all rounds and the terms of its theorem's bound (scenarios/experiment/bounds.hpp)."""
    for cell, members in cells_of(runs, (LEVEL, METHOD)).items():
        lines = [bound_of(constants_of(run), rounds[run["run"]]) for run in members]
        yield {**dict(zip((LEVEL, METHOD), cell)), **{name: mean([line[name] for line in lines]) for name in lines[0]}}


def bound_of(of_run, rows):
    """Returns theorem 6 or 7 of Sahu et al. (NeurIPS 2021) for full gradients after all rounds of a run: the part of the start and that of the error."""
    T, step_sq = len(rows) - 1, (of_run["gamma"] * of_run["theorem_L"]) ** 2
    gap = float(rows[0]["f_gap"])
    zeta_sq = max(measured(rows[:-1], "zeta_sq"))
    if of_run["theorem"] == 6:
        start, error = 4 * gap / (of_run["gamma"] * T), 2 * step_sq * of_run["theorem_kappa"] ** 2
    else:
        delta = of_run["theorem_delta"]
        start, error = 8 * gap / (of_run["gamma"] * T), 16 * step_sq * zeta_sq * (1 - delta) / delta**2
    return {"theorem": of_run["theorem"], "gamma": of_run["gamma"], "zeta_sq": zeta_sq, "measured": mean(measured(rows[:-1], "global_grad_norm_sq")),
            "bound_start": start, "bound_error": error}


TAKE = {"why-levels": {"levels": take_levels, "curves": take_curves}, "why-steps": {"steps": take_steps}, "why-bounds": {"bounds": take_bounds}}


def text_of(value):
    return value if isinstance(value, str) else f"{value:.6g}"


def export_block(fedbits, store, folder, num_runs):
    """Writes the tables of a store that has all its runs."""
    runs, rounds = store_tables(fedbits, store)
    if len(runs) != num_runs:
        raise ValueError(f"{store} has {len(runs)} of {num_runs} runs")
    folder.mkdir(parents=True, exist_ok=True)
    for name, take in TAKE[folder.name].items():
        lines = [{key: text_of(value) for key, value in line.items()} for line in take(runs, rounds, lambda run: constants(fedbits, store, run))]
        with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
