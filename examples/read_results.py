#!/usr/bin/env python3
"""Draws a measure against the bits that were sent, from what `fedbits export` writes: a panel per level, a curve per method.

    fedbits export results --runs runs.csv --rounds rounds.csv
    python3 read_results.py runs.csv rounds.csv loss.png
    python3 read_results.py runs.csv rounds.csv loss.svg --measure test_accuracy --against round --where partition.alpha=0.1

A curve is the mean over the seeds, its band goes from the smallest to the largest value. The format follows from the picture's name (png,
svg, pdf). Needs matplotlib (apt-get install python3-matplotlib); reading alone, `read_study`, needs nothing but Python. docs/results.md
describes the columns."""
import argparse
import csv
import math
import pathlib
import sys
from collections import namedtuple

MEASURES = ["f_gap", "test_accuracy", "train_loss", "perplexity", "hit_rate_10", "test_loss"]  # the first that was measured is drawn
LEVELS = ("partition", "data", "model")  # axes of these tables are levels: what all methods have in common
MOST_PANELS, MOST_CURVES, LONGEST_LABEL = 12, 10, 44
DASHES = ["-", "--", "-.", ":"]

Run = namedtuple("Run", "hash labels record")  # labels: {axis: label}; record: the line of runs.csv
Curve = namedtuple("Curve", "label points num_runs")  # points: [(x, mean, smallest, largest)], x ascending


def text_of(cell):
    """Returns a cell's text without the apostrophe that keeps spreadsheets from running it."""
    return cell[1:] if cell.startswith("'") else cell


def read_table(path):
    """Returns the lines of a CSV file as dictionaries."""
    csv.field_size_limit(1 << 24)
    with open(path, newline="", encoding="utf-8") as file:
        return [{name: text_of(cell) for name, cell in row.items()} for row in csv.DictReader(file)]


def read_study(runs_file, rounds_file):
    """Returns the runs, {hash: rows of rounds.csv} and the names of the axes: the columns that rounds.csv has after its counts."""
    rounds, columns = {}, []
    for row in read_table(rounds_file):
        rounds.setdefault(row["run"], []).append(row)
        columns = list(row)
    if "cumulative_bits_down" not in columns:
        sys.exit(f"{rounds_file}: has no rounds, or is no file of `fedbits export --rounds`")
    axes = columns[columns.index("cumulative_bits_down") + 1:]
    runs = [Run(record["run"], {axis: record[axis] for axis in axes}, record) for record in read_table(runs_file)]
    return [run for run in runs if run.hash in rounds], rounds, axes


def distinct_axes(runs, axes):
    """Returns the axes that differ between the runs, of axes that move together the first alone."""
    kept = []
    for axis in axes:
        values = [run.labels[axis] for run in runs]
        moves_with = [other for other in kept if len({(run.labels[other], run.labels[axis]) for run in runs})
                      == len({run.labels[other] for run in runs}) == len(set(values))]
        if len(set(values)) > 1 and not moves_with:
            kept.append(axis)
    return kept


def is_number(text):
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def panel_of(run, axes):
    """Returns a run's labels on the axes of its level as one text."""
    return ", ".join(f"{axis} = {run.labels[axis] or 'none'}" for axis in axes)


def method_of(run, axes):
    """Returns a run's labels on the other axes as one text; a number says what it is of."""
    labels = [(axis.rsplit(".", 1)[-1], run.labels[axis] or "none") for axis in axes]
    return ", ".join(f"{name} = {label}" if is_number(label) else label for name, label in labels)


def in_order(labels):
    """Returns distinct labels, by number where all of them are or end in numbers, else in the order in which they came."""
    distinct = list(dict.fromkeys(labels))
    try:
        return sorted(distinct, key=lambda label: float(label.rsplit(" = ", 1)[-1]))
    except ValueError:
        return distinct


def points_of(runs, rounds, measure, against):
    """Returns [(x, mean, smallest, largest)] over the runs at the rounds in which all of them were measured."""
    by_run = [{int(row["round"]): (float(row[against]), float(row[measure])) for row in rounds[run.hash] if row[measure] and row[against]}
              for run in runs]
    points = []
    for number in sorted(set.intersection(*(set(rows) for rows in by_run))):
        values = [rows[number][1] for rows in by_run]
        points.append((sum(rows[number][0] for rows in by_run) / len(runs), sum(values) / len(values), min(values), max(values)))
    return points


def curves_of(runs, rounds, axes, measure, against):
    """Returns {panel: [Curve]} and what was left out: cells with a run that did not end well, which have no mean."""
    levels = [axis for axis in axes if axis.split(".")[0] in LEVELS]
    methods = [axis for axis in axes if axis not in levels] or levels
    levels = [axis for axis in levels if axis not in methods]
    names = {run.record["name"] for run in runs}
    cells, notes = {}, []
    for run in runs:
        label = method_of(run, methods) or run.record["name"]
        label = f"{run.record['name']}: {label}" if len(names) > 1 and methods else label
        cells.setdefault(panel_of(run, levels), {}).setdefault(label, []).append(run)
    panels = {}
    for panel in in_order(cells):
        for label in in_order(cells[panel]):
            cell = cells[panel][label]
            ended = [run for run in cell if run.record["status"] == "done"]
            points = points_of(cell, rounds, measure, against) if len(ended) == len(cell) else []
            points = [p for p in points if all(math.isfinite(v) for v in p)]
            if points:
                panels.setdefault(panel, []).append(Curve(label, points, len(cell)))
            else:
                why = f"{len(cell) - len(ended)} of {len(cell)} runs did not end well" if len(ended) < len(cell) else f"no {measure}"
                notes.append(f"{panel + ': ' if panel else ''}{label}: left out, {why}")
    return panels, notes


def is_better_if_larger(measure):
    return "accuracy" in measure and not measure.endswith("deviation") or measure in ("hit_rate_10", "ndcg_10", "measured_delta")


def chosen_labels(panels, measure):
    """Returns the labels that get a colour: all, or those that end best in some panel, in turns until there are enough."""
    labels = in_order(curve.label for curves in panels.values() for curve in curves)
    if len(labels) <= MOST_CURVES:
        return labels
    ranked = [sorted(curves, key=lambda c: c.points[-1][1], reverse=is_better_if_larger(measure)) for curves in panels.values()]
    best = dict.fromkeys(curve.label for place in range(MOST_CURVES) for curves in ranked for curve in curves[place:place + 1])
    return list(best)[:MOST_CURVES]


def clipped(text, length=LONGEST_LABEL):
    return text if len(text) <= length else text[:length - 3] + "..."


def is_log(values, least):
    """Returns true if the positive values span more than a factor."""
    positive = [value for value in values if value > 0]
    return bool(positive) and max(positive) > least * min(positive)


def scales_of(panels, measure):
    """Returns whether x and y are logarithmic: bits where runs differ tenfold in them, gaps and squared norms where all are above 0."""
    curves = [curve for all_of_one in panels.values() for curve in all_of_one]
    log_x = is_log([curve.points[-1][0] for curve in curves], 10)
    is_gap = measure.endswith(("_gap", "_sq")) or measure == "virtual_drift"
    log_y = is_gap and any(p[1] > 0 for curve in curves for p in curve.points)
    return log_x, log_y


def draw_curve(axes, curve, place, log_x, log_y):
    """Draws one curve; `place` is that of its label among those with a colour, -1 for the others."""
    points = [p for p in curve.points if (p[0] > 0 or not log_x) and (p[1] > 0 or not log_y)]
    if not points:
        return
    x, mean, low, high = zip(*points)
    style = dict(color="0.78", linewidth=0.7, zorder=1)
    if place >= 0:
        style = dict(color=f"C{place % 10}", linestyle=DASHES[place % len(DASHES)], linewidth=1.6, zorder=3)
    axes.plot(x, mean, marker="o" if len(x) < 13 and place >= 0 else None, markersize=3.5, **style)
    if curve.num_runs > 1 and place >= 0:
        least = min(mean) if log_y else -math.inf  # a band that reaches 0 has no place on a logarithmic axis
        axes.fill_between(x, [max(v, least) if v <= 0 else v for v in low], high, color=style["color"], alpha=0.15, linewidth=0, zorder=2)


def label_axes(axes, against, measure, log_x, log_y):
    """Gives both axes their scale, numbers with prefixes for bits, and a grid."""
    from matplotlib import ticker
    axes.set_xscale("log" if log_x else "linear")
    axes.set_yscale("log" if log_y else "linear")
    if "bits" in against:
        axes.xaxis.set_major_formatter(ticker.EngFormatter(sep="\N{THIN SPACE}"))
        if log_x:
            axes.xaxis.set_major_locator(ticker.LogLocator(numticks=5))
            axes.xaxis.set_minor_formatter(ticker.NullFormatter())
        else:
            axes.xaxis.set_major_locator(ticker.MaxNLocator(5))
    axes.set_xlabel({"cumulative_bits_up": "bits sent up, by all clients", "cumulative_bits_down": "bits sent down, to all clients",
                     "round": "round"}.get(against, against.replace("_", " ")))
    names = {"f_gap": "f - f*", "test_accuracy": "test accuracy", "train_loss": "training loss"}
    axes.set_ylabel(names.get(measure, measure.replace("_", " ")))
    axes.grid(True, which="major", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


def draw(panels, title, against, measure, picture):
    """Draws the panels with one legend on their right. Returns the figure."""
    try:
        import matplotlib
    except ImportError:
        sys.exit(f"{picture} is not drawn: Python has no matplotlib here (apt-get install python3-matplotlib, or pip install matplotlib)")
    matplotlib.use("Agg")
    matplotlib.rcParams.update({"font.size": 9, "svg.fonttype": "none", "axes.spines.top": False, "axes.spines.right": False})
    from matplotlib import lines, pyplot
    labels = chosen_labels(panels, measure)
    num_others = len({curve.label for curves in panels.values() for curve in curves}) - len(labels)
    log_x, log_y = scales_of(panels, measure)
    num_columns = min(len(panels), 2 if len(panels) in (2, 4) else 3)
    num_rows = -(-len(panels) // num_columns)
    legend_width = 0.7 + 0.075 * max(len(clipped(label)) for label in labels + ["others: 00 methods"])
    width = max(4.6 * num_columns if num_columns == 1 else 3.7 * num_columns, 4.6) + legend_width
    figure = pyplot.figure(figsize=(width, max(2.9 * num_rows, 0.24 * (len(labels) + 3)) + 0.5), layout="constrained")
    figure.suptitle(clipped(title, 90), x=0.01, ha="left", fontweight="bold")
    left, right = figure.subfigures(1, 2, width_ratios=[width - legend_width, legend_width])
    grid = left.subplots(num_rows, num_columns, squeeze=False)
    for axes in grid.flat[len(panels):]:
        axes.set_visible(False)
    for axes, (panel, curves) in zip(grid.flat, panels.items()):
        for curve in curves:
            draw_curve(axes, curve, labels.index(curve.label) if curve.label in labels else -1, log_x, log_y)
        axes.set_title(clipped(panel, 46), fontsize=9)
        label_axes(axes, against, measure, log_x, log_y)
    handles = [lines.Line2D([], [], color=f"C{i % 10}", linestyle=DASHES[i % len(DASHES)], linewidth=1.6) for i in range(len(labels))]
    names = [clipped(label) for label in labels]
    if num_others > 0:
        handles.append(lines.Line2D([], [], color="0.78", linewidth=0.9))
        names.append(f"others: {num_others} methods")
    right.legend(handles, names, loc="center left", frameon=False, fontsize=9, handlelength=2.6)
    figure.savefig(picture, dpi=150)
    return figure


def print_ends(panels, measure, against):
    """Prints where each curve ends."""
    for panel, curves in panels.items():
        if panel:
            print(panel)
        for curve in curves:
            x, mean, low, high = curve.points[-1]
            spread = f"  [{low:.4g}, {high:.4g}] over {curve.num_runs} runs" if curve.num_runs > 1 else ""
            print(f"  {curve.label}: {measure} {mean:.4g}{spread} at {against} {x:.6g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", help="what `fedbits export STORE --runs` writes, as CSV")
    parser.add_argument("rounds", help="what `fedbits export STORE --rounds` writes, as CSV")
    parser.add_argument("picture", help="a file that ends in .png, .svg or .pdf")
    parser.add_argument("--measure", help="a column of rounds.csv (default: the first that was measured of " + ", ".join(MEASURES) + ")")
    parser.add_argument("--against", default="cumulative_bits_up", help="a column of rounds.csv, such as round (default: %(default)s)")
    parser.add_argument("--where", action="append", default=[], metavar="COLUMN=VALUE",
                        help="only runs with this value in runs.csv (repeatable)")
    parser.add_argument("--title", help="(default: the names of the scenarios)")
    arguments = parser.parse_args()

    runs, rounds, axes = read_study(arguments.runs, arguments.rounds)
    for setting in arguments.where:
        column, _, value = setting.partition("=")
        if column not in runs[0].record:
            sys.exit(f"--where {setting}: {arguments.runs} has no column {column}")
        values = in_order(run.record[column] for run in runs)
        runs = [run for run in runs if run.record[column] == value]
        if not runs:
            sys.exit(f"--where {setting}: no run has this value; there are {', '.join(values[:20])}")
    rows = [row for run in runs for row in rounds[run.hash]]
    later = [row for row in rows if row["round"] != "0"]
    measured = [name for name in MEASURES if any(row[name] for row in later)]
    for column in filter(None, (arguments.measure, arguments.against)):
        if column not in rows[0]:
            sys.exit(f"{arguments.rounds} has no column {column}; docs/results.md lists them")
    measure = arguments.measure or (measured[0] if measured else "train_loss")
    panels, notes = curves_of(runs, rounds, distinct_axes(runs, axes), measure, arguments.against)
    if not panels:
        sys.exit(f"nothing to draw: {measure} was measured in no run that ended well")
    print_ends(panels, measure, arguments.against)
    if len(panels) > MOST_PANELS:
        notes.append(f"{len(panels) - MOST_PANELS} of {len(panels)} panels are not drawn; --where chooses")
        panels = dict(list(panels.items())[:MOST_PANELS])
    for note in notes:
        print(note, file=sys.stderr)
    title = arguments.title or ", ".join(in_order(run.record["name"] for run in runs))
    draw(panels, title, arguments.against, measure, pathlib.Path(arguments.picture))


if __name__ == "__main__":
    main()
