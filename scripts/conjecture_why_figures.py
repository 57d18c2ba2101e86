"""The descriptive figures of docs/conjecture.md and their text, from the small tables of scripts/conjecture_why.py."""
import math

from conjecture_figures import FIRST, LAST
from svg_charts import Axis, forest_chart, panel_chart, read

LEVEL, METHOD, SHARE, RATE = "partition.percent", "compressor.up", "participation.fraction", "local.learning_rate"
SHARES = {"1": "all clients", "0.1": "a tenth of the clients"}
NAMES = {"hard": "hard threshold", "top-k": "Top-k"}


def by_level(lines):
    """Returns lines in the order of heterogeneity, the most similar clients first."""
    return sorted(lines, key=lambda line: -float(line[LEVEL]))


def where(lines, **labels):
    axes = {"level": LEVEL, "method": METHOD, "share": SHARE}
    return [line for line in lines if all(line[axes[name]] == label for name, label in labels.items())]


def clients(levels):
    """Draws the bits of the quietest, the median and the loudest client."""
    rows = []
    for line in by_level(where(levels, share="1")):
        bits = tuple(float(line[f"client_bits_{name}"]) for name in ("min", "median", "max"))
        rows.append((f"similarity {line[LEVEL]}%", NAMES[line[METHOD]], bits, 0 if line[METHOD] == "hard" else 1, f"{bits[2] / bits[0]:.1f} times"))
    rows.sort(key=lambda row: (-float(row[0].split()[1][:-1]), row[3]))
    values = [value for row in rows for value in row[2]]
    return forest_chart("Silent clients send little, loud clients much", "bits of 400 rounds: quietest, median and loudest of 20 clients; a9a, EF14, all take part",
                        rows, Axis(min(values) / 1.15, max(values) * 1.15, FIRST, LAST, True), "bits sent by one client", list(NAMES.values()))


def curves(lines, title, subtitle, column, y_label, transform=float):
    """Draws a column over the rounds for each level: one panel for each method and participation."""
    panels = []
    for share, clients_text in SHARES.items():
        for method, name in NAMES.items():
            cells = {}
            for line in by_level(where(lines, share=share, method=method)):
                value = transform(float(line[column]))
                cells.setdefault(line[LEVEL], []).append((float(line["round"]), value, value, value))
            panels.append((f"{name}, {clients_text}", dict(enumerate(cells.values()))))
    levels = list(dict.fromkeys(line[LEVEL] for line in by_level(lines)))
    return panel_chart(title, subtitle, panels, 2, "round", y_label, [f"{level}%" for level in levels])


def steps(lines):
    """Draws the gap against the step size: one panel for each level."""
    methods = list(dict.fromkeys(line[METHOD] for line in lines))
    methods.sort(key=lambda name: name != "top-k")
    panels = []
    for level in ("100", "0"):
        cells = {i: sorted((math.log2(rate_of(line)), *(math.log10(float(line[name])) for name in ("gap", "low", "high")))
                           for line in where(lines, level=level, method=method) if math.isfinite(float(line["gap"]))) for i, method in enumerate(methods)}
        panels.append((f"similarity {level}%", cells))
    return panel_chart("Where thresholds lose: all clients, EF14, large steps", "a9a; gap over the last fifth of the bits of Top-5%, all seeds in the band",
                       panels, 2, "log2 of the step size times L", "log10 of f - f*", [name.replace("top-k", "Top-k").replace("hard-", "threshold ") for name in methods])


def rate_of(line):
    """Returns a step size in units of 1/L."""
    return float(line[RATE].split("/")[0])


def bounds(lines):
    """Draws the theorems' bounds, the part of them that is due to the error, and what was measured: one panel for each operator."""
    columns = {"bound": lambda line: float(line["bound_start"]) + float(line["bound_error"]), "its part for the error": lambda line: float(line["bound_error"]),
               "measured": lambda line: float(line["measured"])}
    panels = []
    for method, name in NAMES.items():
        cells = sorted(where(lines, method=method), key=lambda line: float(line["zeta_sq"]))
        theorem = f"theorem {float(cells[0]['theorem']):.0f}"
        panels.append((f"{name}, {theorem}", {i: [(math.log10(float(line["zeta_sq"])), *[math.log10(of(line))] * 3) for line in cells]
                                              for i, of in enumerate(columns.values())}))
    return panel_chart("What the theorems promise, and what happens", "mean of |grad f|^2 over 400 rounds; a9a, EF14, full gradients, each theorem's largest step",
                       panels, 2, "log10 of zeta^2", "log10 of the mean", list(columns))


def write_figures(results, folder):
    """Draws the figures of those tables that are there, and returns their lines by name."""
    tables = {name: read(results / f"why-{block}" / f"{name}.csv") for block, name in
              (("levels", "levels"), ("levels", "curves"), ("steps", "steps"), ("bounds", "bounds")) if (results / f"why-{block}" / f"{name}.csv").exists()}
    made = {}
    if "levels" in tables:
        made["why-clients"] = clients(tables["levels"])
        made["why-density"] = curves(tables["curves"], "A threshold sends what the clients demand", "share of the 124 entries that a client sends; a9a, EF14",
                                     "density", "share sent")
        made["why-error"] = curves(tables["curves"], "What error feedback carries", "squared norm of the error memory, log10; a9a, EF14", "error_norm_sq",
                                   "log10 of |e|^2", lambda value: math.log10(max(value, 1e-12)))
        made["why-drift"] = curves(tables["curves"], "The virtual iterate drifts away", "norm of the mean error memory of all clients; a9a, EF14",
                                   "virtual_drift", "distance")
    if "steps" in tables:
        made["why-steps"] = steps(tables["steps"])
    if "bounds" in tables:
        made["why-bounds"] = bounds(tables["bounds"])
    for name, svg in made.items():
        (folder / f"{name}.svg").write_text(svg)
    return tables
