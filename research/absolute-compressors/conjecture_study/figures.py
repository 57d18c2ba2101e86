"""The figures of first/page.md, from lines of the exported slopes and differences (conjecture_study/results.py)."""
import math

from conjecture_study import results
from svg_charts import WIDTH, Axis, forest_chart, panel_chart

FEEDBACKS = {"ef14": "EF14", "ef21": "EF21", "econtrol": "EControl"}
FIRST, LAST = 286, WIDTH - 84  # pixels of the axis of a forest chart


def heading_of(at):
    steps = "1 step" if at["local.steps"] == "1" else f"{at['local.steps']} steps"
    return f"{at['data.name'].split('/')[-1]}, {steps}, {clients_of(at)}"


def clients_of(at):
    return "all clients" if at["participation.fraction"] == "1" else "a tenth of clients"


def axis_around(intervals, marks, log=False):
    """Returns an axis that holds the intervals and the marks, with room on both sides of the first mark."""
    to_axis, from_axis = (math.log, math.exp) if log else (float, float)
    values = [to_axis(value) for interval in intervals for value in interval] + [to_axis(mark) for mark in marks]
    low, high, middle = min(values), max(values), to_axis(marks[0])
    room = 0.25 * (high - low) or 1.0
    low, high = min(low - 0.16 * room, middle - room), max(high + 0.16 * room, middle + room)
    return Axis(from_axis(low), from_axis(high), FIRST, LAST, log)


def forest(title, subtitle, groups, find, x_label, marks, ends, log=False):
    """Returns a forest chart of groups, each a dictionary of labels. `find` returns the interval and the result of one, or None and a text."""
    rows = []
    for at in groups:
        interval, result = find(at)
        series = list(FEEDBACKS).index(at["feedback.up"]) if "feedback.up" in at else at["series"]
        rows.append((heading_of(at), at.get("label") or FEEDBACKS[at["feedback.up"]], interval, series, result))
    intervals = [row[2] for row in rows if row[2]]
    return forest_chart(title, subtitle, rows, axis_around(intervals, marks, log), x_label, list(dict.fromkeys(row[1] for row in rows)), marks, ends)


def interval_of(line, names, transform=float):
    return tuple(transform(float(line[name])) for name in names) if line[names[0]] else None


BOTH_INTERVALS = "thick: Student's 95% interval over the seeds; thin: with the noise of tuning, which decides the words"


def slopes(title, pair, groups, lines, wide):
    """Returns the slopes of a pair in each group (H1), with the intervals of the seeds and the wide ones, which have the noise of tuning as well."""
    return with_both(title, pair, groups, lines, wide, f"slope of log({pair[0]} / {pair[1]}) over log zeta^2(x*)")


def contrasts(title, pair, groups, lines, wide):
    """Returns the contrasts of 0% with 100% of a pair in each group, with both intervals."""
    return with_both(title, pair, groups, lines, wide, f"log({pair[0]} / {pair[1]}) at 0% minus that at 100%")


def with_both(title, pair, groups, lines, wide, x_label):
    """Returns a chart with thin lines of wide intervals behind thick ones of narrow intervals, and the verdicts of the wide ones."""
    found, found_wide = ({key(results.settings_of(line["group"])): line for line in some if (line["a"], line["b"]) == pair} for some in (lines, wide))
    names = "slope_low", "slope", "slope_high"
    rows = [forest_row(at, found_wide.get(key(at)), names) for at in groups]
    narrow = [(*row[:2], interval_of(found[key(at)], names) if key(at) in found else None, *row[3:]) for at, row in zip(groups, rows)]
    axis = axis_around([row[2] for row in rows if row[2]], (0.0,))
    charts = [forest_chart(title, BOTH_INTERVALS, some, axis, x_label, list(FEEDBACKS.values()), (0.0,), ("for", "against")) for some in (rows, narrow)]
    drawn = []
    for thin, thick in zip(*(chart.splitlines() for chart in charts), strict=True):
        drawn += [thick] if thin == thick else [thin.replace("<line ", '<line style="stroke-width:1" '), thick]
    return "\n".join(drawn) + "\n"


def forest_row(at, line, names):
    interval, result = (interval_of(line, names), results.verdict_of(line)) if line else (None, "has not run")
    return heading_of(at), FEEDBACKS[at["feedback.up"]], interval, list(FEEDBACKS).index(at["feedback.up"]), result


def margins(title, pair, groups, lines):
    """Returns the ratios of gaps at the most heterogeneous level with their intervals (H2)."""
    found = {key(results.settings_of(line["group"])): line for line in lines if (line["a"], line["b"]) == pair}

    def find(at):
        line = found.get(key(at))
        if not line:
            return None, "has not run"
        return interval_of(line, ("difference_low", "difference", "difference_high"), math.exp), results.shown_of(line)
    return forest(title, "ratio of gaps at a similarity of 0%, with Student's 95% interval; lines at 1 and at the margin of 1.1", groups, find,
                  f"gap of {pair[0]} / gap of {pair[1]}", (1.0, 1.1), (f"{pair[0]} better", f"{pair[1]} better"), log=True)


def between(title, pair, groups, lines):
    """Returns the differences of slopes between feedbacks with their intervals (H3)."""
    names = list(dict.fromkeys(line["between"] for line in lines))
    found = {(line["between"], key(results.settings_of(line["group"]))): line for line in lines if (line["a"], line["b"]) == pair}
    rows = [{"data.name": at["data.name"], "participation.fraction": at["participation.fraction"], "local.steps": at["local.steps"], "series": i,
             "label": FEEDBACKS[name.split(":")[-1]], "between": name}
            for at in groups if at["feedback.up"] == "ef14" for i, name in enumerate(names)]

    def find(at):
        line = found.get((at["between"], key({**at, "feedback.up": at["between"].split("=", 1)[1].split(":")[0]})))
        if not line:
            return None, "has not run"
        return interval_of(line, ("slope_low", "slope", "slope_high")), results.difference_of(line)
    return forest(title, "slope under EF14 minus that under the feedback named, paired by seed, with Student's 95% interval", rows, find,
                  f"difference of the slopes of log({pair[0]} / {pair[1]})", (0.0,), ("EF14 smaller", "EF14 larger"))


def key(at):
    return tuple(at[name] for name in results.FACTORS.values())


def level_curve(lines):
    """Returns (mean of x, mean difference, the middle 80% of the seeds) for each level, in the order of x."""
    levels = {}
    for line in lines:
        if line["difference"] and line["x"]:
            levels.setdefault(line["level"], []).append((float(line["x"]), float(line["difference"])))
    curve = []
    for pairs in levels.values():
        values, count = sorted(value for _, value in pairs), len(pairs)
        rest = count // 10
        curve.append((sum(x for x, _ in pairs) / count, sum(values) / count, values[rest], values[count - 1 - rest]))
    return sorted(curve)


def ratios(title, pair, groups, differences):
    """Returns the log ratio of gaps against log zeta^2(x*): one panel for each feedback and participation, one curve for each problem and number of steps."""
    by_group = {}
    for line in differences:
        if (line["a"], line["b"]) == pair:
            by_group.setdefault(key(results.settings_of(line["group"])), []).append(line)
    curves = list(dict.fromkeys((at["data.name"], at["local.steps"]) for at in groups))
    panels = {}
    for at in groups:
        panel = panels.setdefault((at["participation.fraction"], at["feedback.up"]), (f"{FEEDBACKS[at['feedback.up']]}, {clients_of(at)}", {}))
        if key(at) in by_group:
            panel[1][curves.index((at["data.name"], at["local.steps"]))] = level_curve(by_group[key(at)])
    names = [f"{data.split('/')[-1]}, {steps} step" + ("s" if steps != "1" else "") for data, steps in curves]
    return panel_chart(title, "means and the middle 80% of the seeds at five levels; above 0 the contraction operator is better",
                       list(panels.values()), 3, "log zeta^2(x*): clients differ more to the right", f"log({pair[0]} / {pair[1]})", names, 0.0)
