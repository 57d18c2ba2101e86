"""The descriptive figures of first/page.md and their text, from the small tables of conjecture_study/why.py."""
import math

from conjecture_study.figures import FIRST, LAST
from conjecture_study.results import markdown
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
    return panel_chart("Gaps against step sizes at equal bits", "a9a, EF14, all clients; gap over the last fifth of the bits of Top-5%, all seeds in the band",
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


# ---- the text beside the figures ----

def cell(lines, column, **labels):
    """Returns a number of the one line with these labels."""
    (line,) = where(lines, **labels)
    return float(line[column])


def growth(levels, column, method):
    """Returns by how much a number grows from similar clients (100%) to dissimilar ones (0%), all clients taking part."""
    return cell(levels, column, level="0", method=method, share="1") / cell(levels, column, level="100", method=method, share="1")


def gain_text(levels):
    loud = [cell(levels, "client_bits_max", level="0", method=method, share="1") / cell(levels, "client_bits_min", level="0", method=method, share="1")
            for method in NAMES]
    return (f"**Where a threshold gains: silent clients send little, loud clients much.** At a similarity of 0% the loudest client sent {loud[0]:.1f} times as many "
            f"bits as the quietest one with the threshold, and {loud[1]:.1f} times with Top-k. The total error of the threshold, however, was only "
            f"{growth(levels, 'total_error', 'hard'):.1f} times that at 100%, and that of Top-k {growth(levels, 'total_error', 'top-k'):.1f} times: the bound "
            "of an absolute compressor does not know how the clients differ. This is the observation behind the conjecture.")


def sent_beside_top_k(levels, level):
    return cell(levels, "density", level=level, method="hard", share="1") / cell(levels, "density", level=level, method="top-k", share="1")


def price_text(levels):
    return (f"**What the threshold pays for it: bits.** One threshold sent {growth(levels, 'density', 'hard'):.1f} times as many entries at 0% as at 100%. Beside "
            f"Top-k these were {sent_beside_top_k(levels, '100'):.2f} times as many at 100%, and {sent_beside_top_k(levels, '0'):.2f} times as many at 0%. "
            "At equal bits, by which this study compares, the threshold plays its most rounds where clients are similar and Top-k sends more than they need. "
            "At these fixed values, what it gains in error as clients differ it loses in rounds; tuned values need not show this (the table below).")


def gap_at(lines, level, method, rate):
    return next(float(line["gap"]) for line in where(lines, level=level, method=method) if rate_of(line) == rate)


def best_gap(lines, level, method):
    return min(float(line["gap"]) for line in where(lines, level=level, method=method))


def steps_text(lines):
    """Returns how the gaps of the thresholds compare with that of Top-k at the best step sizes and at large ones."""
    thresholds = [method for method in dict.fromkeys(line[METHOD] for line in lines) if method != "top-k"]
    said = []
    for level in ("100", "0"):
        best = [best_gap(lines, level, method) / best_gap(lines, level, "top-k") for method in thresholds]
        large = {rate: [gap_at(lines, level, method, rate) / gap_at(lines, level, "top-k", rate) for method in thresholds] for rate in (4, 8)}
        texts = [f"{both_of(best)} at each operator's best step size"] + [f"{both_of(ratios)} at {rate}/L" for rate, ratios in large.items()]
        said.append(f"at {level}% {', '.join(texts)}")
    names = " and ".join(method.removeprefix("hard-") for method in thresholds)
    return ("**What the step size does, with EF14 and all clients.** The thresholds were applied to updates, so the bound of their error is the same at every step "
            "size, and it does not shrink with the gradient. At the same model a larger step makes the updates larger, so that more of their entries exceed the "
            f"threshold. The thresholds {names} have these multiples of the gap of Top-k: {'; '.join(said)}. This file has "
            "one feedback, all clients and one local step: where tuned thresholds lose is counted under H2.")


def both_of(ratios):
    return " and ".join(f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}" for ratio in ratios)


def factor(lines, method, column):
    """Returns the largest value of a column over the levels divided by the smallest one."""
    values = [float(line[column]) for line in where(lines, method=method)]
    return max(values) / min(values)


def bounds_text(lines):
    error, outcome = ([factor(lines, method, column) for method in NAMES] for column in ("bound_error", "measured"))
    loose = [min(float(line["bound_start"]) + float(line["bound_error"]) for line in where(lines, method=method)) /
             max(float(line["measured"]) for line in where(lines, method=method)) for method in NAMES]
    steps = [{float(line["gamma"]) for line in where(lines, method=method)} for method in NAMES]
    apart = max(steps[0]) / max(steps[1])
    return (f"**What the theorems promise.** Over the five levels the part of the bound that is due to the error changes by a factor of {error[0]:.2f} for the "
            f"threshold (theorem 6 of Sahu et al.) and of {error[1]:.0f} for Top-k (theorem 7, proportional to zeta^2). What was measured changes by {outcome[0]:.2f} "
            f"and {outcome[1]:.2f}. The bounds are at least {loose[0]:.1f} and {loose[1]:.1f} times what was measured. They count rounds and not bits, so they do "
            f"not say which operator is ahead at equal bits. Each operator took the largest step size that its own theorem allows, which is {apart:.0f} times smaller "
            "for Top-k, whose theorem is looser. The measured curves inherit these steps, so they do not compare the operators either.")


def part(tables, paragraph, picture):
    """Returns the generated part of the page: a statement with each picture. `paragraph` breaks lines, `picture` shows a figure."""
    if not tables:
        return "The files `why-levels`, `why-steps` and `why-bounds` have not run."
    parts = []
    if "levels" in tables:
        parts += [paragraph(gain_text(tables["levels"])), picture("why-clients", "Bits of the quietest, median and loudest client by level"),
                  picture("why-error", "Squared error memory over the rounds by level"), paragraph(price_text(tables["levels"])),
                  picture("why-density", "Share of entries sent over the rounds by level"),
                  picture("why-drift", "Drift of the virtual iterate over the rounds by level"), level_table(tables["levels"])]
    if "steps" in tables:
        parts += [paragraph(steps_text(tables["steps"])), picture("why-steps", "Gap at equal bits against the step size")]
    if "bounds" in tables:
        parts += [paragraph(bounds_text(tables["bounds"])), picture("why-bounds", "Bounds of the theorems and measured gradients against zeta^2")]
    return "\n\n".join(parts)


def level_table(levels):
    """Returns means over rounds and seeds for each level as Markdown."""
    head = ["clients", "similarity", "operator", "total error", "share sent", "first tenth", "last tenth", "drift", "residual age"]
    rows = [[SHARES[line[SHARE]], f"{line[LEVEL]}%", NAMES[line[METHOD]], *(f"{float(line[column]):.3g}" for column in
             ("total_error", "density", "density_first_tenth", "density_last_tenth", "virtual_drift", "residual_age"))]
            for share in SHARES for line in by_level(where(levels, share=share))]
    return markdown(head, rows)
