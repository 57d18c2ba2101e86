"""Charts as SVG for scripts/gallery.py and those of research/absolute-compressors, and the curves of an export that they show. Needs nothing but Python.

A picture is a card with a background of its own, so that it can be read on a light and on a dark page."""
import csv
import html
import math
import sys


WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 68, 18, 74, 52
FONT = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"
LIGHT = ["#1f5fbf", "#c2410c", "#15803d", "#7e22ce", "#a16207", "#0e7490", "#be185d", "#4d7c0f", "#475569", "#b91c1c"]
DARK = ["#7db2ff", "#ff9d5c", "#5fd38a", "#cf9bff", "#f0c04a", "#56cfe1", "#ff8fc0", "#b5e36b", "#a8b3c2", "#ff8a8a"]
DASHES = ["", "7 3", "2 3", "10 3 2 3", "4 4", "1 4"]


def style():
    """Returns the style sheet: one class per series, for lines (l), areas (a) and text (t), in two colour schemes."""
    def scheme(colours, paper, ink, faint, grid):
        rules = [f".paper{{fill:{paper};stroke:{grid}}}.ink{{fill:{ink}}}.faint{{fill:{faint}}}.grid{{stroke:{grid};stroke-width:1}}"
                 f".mark{{stroke:{faint};stroke-width:1.4}}"]
        rules += [f".l{i}{{stroke:{c};fill:none;stroke-width:2.2;stroke-linejoin:round}}.a{i}{{fill:{c}}}.b{i}{{fill:{c};opacity:.16}}"
                  for i, c in enumerate(colours)]
        return "".join(rules)
    light = scheme(LIGHT, "#ffffff", "#1c2330", "#5b6575", "#dfe3ea")
    dark = scheme(DARK, "#161b22", "#e6edf3", "#9aa5b4", "#303845")
    return f"<style>text{{{FONT};font-size:13px}}{light}@media screen and (prefers-color-scheme:dark){{{dark}}}</style>"


def number(value):
    """Returns a coordinate with one digit after the point."""
    return f"{value:.1f}".replace("-0.0", "0.0")


def with_unit(value, unit=""):
    """Returns a tick's text: 1500000 -> 1.5M; small numbers as powers of ten."""
    if value == 0:
        return "0" + (" " + unit if unit else "")
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}{unit}".strip()
    text = f"{value:.3g}"
    if abs(value) < 1e-3:
        mantissa, exponent = f"{value:.0e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    return f"{text} {unit}".strip()


class Axis:
    """One axis: from data to pixels, linear or logarithmic, with its ticks."""

    def __init__(self, low, high, first, last, log=False):
        self.log = log
        if log:
            low, high = math.log10(low), math.log10(high)
        self.low, self.high, self.first, self.last = low, high, first, last

    def at(self, value):
        """Returns the pixel of a value."""
        value = math.log10(value) if self.log else value
        return self.first + (value - self.low) / (self.high - self.low) * (self.last - self.first)

    def ticks(self):
        """Returns round values inside the axis, four to nine of them where the range allows."""
        if self.log:
            for factors in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
                found = [f * 10.0**e for e in range(math.floor(self.low), math.ceil(self.high) + 1) for f in factors]
                found = [t for t in found if self.low - 1e-9 <= math.log10(t) <= self.high + 1e-9]
                if len(found) >= 4:
                    break
            return found
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 4))
        step *= max(f for f in (1, 2, 5) if (self.high - self.low) / (f * step) >= 4 or f == 1)
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


class Chart:
    """Collects the elements of one SVG file."""

    def __init__(self, title, subtitle="", width=WIDTH, height=HEIGHT):
        self.width, self.height = width, height
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(title)}">',
                      style(), f'<rect class="paper" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>']
        self.text(18, 26, title, "ink", size=16, bold=True)
        if subtitle:
            self.text(18, 45, subtitle, "faint")

    def text(self, x, y, text, style_class="ink", anchor="start", size=13, bold=False, turn=None):
        weight = ' font-weight="600"' if bold else ""
        turned = f' transform="rotate({turn} {number(x)} {number(y)})"' if turn is not None else ""
        self.parts.append(f'<text class="{style_class}" x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" '
                          f'style="font-size:{size}px"{weight}{turned}>{html.escape(text)}</text>')

    def rectangle(self, x, y, width, height, style_class):
        self.parts.append(f'<rect class="{style_class}" x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"/>')

    def line(self, x1, y1, x2, y2, style_class):
        self.parts.append(f'<line class="{style_class}" x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"/>')

    def path(self, points, series, dash=True):
        where = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        dashes = DASHES[series % len(DASHES)] if dash else ""
        self.parts.append(f'<polyline class="l{series}"' + (f' stroke-dasharray="{dashes}"' if dashes else "") + f' points="{where}"/>')

    def band(self, points, series):
        where = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        self.parts.append(f'<polygon class="b{series}" points="{where}"/>')

    def legend(self, names, y=62, x=18, solid=False):
        """Writes one row of names, each beside a sample of its line."""
        for series, name in enumerate(names):
            self.path([(x, y - 4), (x + 26, y - 4)], series, dash=not solid)
            self.text(x + 32, y, name)
            x += 32 + 7.4 * len(name) + 20

    def axes(self, x, y, x_label, y_label, x_unit="", y_unit=""):
        """Draws the grid and the numbers of both axes."""
        for tick in x.ticks():
            self.line(x.at(tick), y.first, x.at(tick), y.last, "grid")
            self.text(x.at(tick), y.first + 18, with_unit(tick, x_unit), "faint", "middle", 12)
        for tick in y.ticks():
            self.line(x.first, y.at(tick), x.last, y.at(tick), "grid")
            self.text(x.first - 7, y.at(tick) + 4, with_unit(tick, y_unit), "faint", "end", 12)
        self.text((x.first + x.last) / 2, y.first + 39, x_label, "ink", "middle")
        self.text(16, (y.first + y.last) / 2, y_label, "ink", "middle", turn=-90)

    def dot(self, x, y, radius, style_class):
        self.parts.append(f'<circle class="{style_class}" cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"/>')

    def whisker(self, axis, low, middle, high, y, series):
        """Draws an interval with its middle. What lies outside of the axis is cut at its end, and an interval without a middle inside has no dot."""
        first, last = (min(max(axis.at(value), axis.first), axis.last) for value in (low, high))
        self.parts.append(f'<line class="l{series}" x1="{number(first)}" y1="{number(y)}" x2="{number(last)}" y2="{number(y)}"/>')
        if axis.first <= axis.at(middle) <= axis.last:
            self.dot(axis.at(middle), y, 4, f"a{series}")

    def svg(self):
        return "\n".join(self.parts + ["</svg>"]) + "\n"


def line_chart(title, subtitle, curves, x_label, y_label, x_log=False, y_log=False, x_unit="", y_from=None):
    """Returns a chart of curves {name: [(x, y)] or [(x, y, low, high)]}, each with a colour and a dash of its own. A logarithmic
    axis leaves out what is not above 0."""
    chart = Chart(title, subtitle)
    curves = {name: [p for p in curve if (p[0] > 0 or not x_log) and (min(p[1:]) > 0 or not y_log)] for name, curve in curves.items()}
    points = [p for curve in curves.values() for p in curve]
    xs, ys = [p[0] for p in points], [v for p in points for v in p[1:]]
    x = Axis(min(xs), max(xs), LEFT, WIDTH - RIGHT, x_log)
    low, high = min(ys), max(ys)
    if y_log:
        y = Axis(low / 1.15, high * 1.15, HEIGHT - BOTTOM, TOP, True)
    else:
        low = low if y_from is None else y_from
        y = Axis(low, high + 0.04 * (high - low), HEIGHT - BOTTOM, TOP)
    chart.axes(x, y, x_label, y_label, x_unit)
    for series, curve in enumerate(curves.values()):
        if len(curve[0]) == 4:
            chart.band([(x.at(p[0]), y.at(p[2])) for p in curve] + [(x.at(p[0]), y.at(p[3])) for p in reversed(curve)], series)
    for series, curve in enumerate(curves.values()):
        chart.path([(x.at(p[0]), y.at(p[1])) for p in curve], series)
    chart.legend(list(curves))
    return chart.svg()


def forest_chart(title, subtitle, rows, x, x_label, names, marks=(), ends=("", "")):
    """Returns intervals below each other. Each row is (heading, label, interval, series, result): the heading stands where it differs from the one
    above, the interval is (low, middle, high) or None where there is no result yet, and the series gives the colour, which `names` explains.
    `marks` are values with a line of their own; `ends` says what lies to the left and to the right of the first one."""
    row_height, top = 17, 104
    headings = [row[0] != rows[i - 1][0] or i == 0 for i, row in enumerate(rows)]
    chart = Chart(title, subtitle, height=top + row_height * len(rows) + 6 * sum(headings) + 58)
    bottom = chart.height - 54
    chart.legend(names, solid=True)
    for tick in x.ticks():
        chart.line(x.at(tick), top - 8, x.at(tick), bottom, "grid")
        chart.text(x.at(tick), bottom + 17, with_unit(tick), "faint", "middle", 12)
    for mark in marks:
        chart.line(x.at(mark), top - 8, x.at(mark), bottom, "mark")
    if marks:
        chart.text(x.at(marks[0]) - 6, top - 16, ends[0], "faint", "end", 12)
        chart.text(x.at(marks[0]) + 6, top - 16, ends[1], "faint", "start", 12)
    chart.text((x.first + x.last) / 2, bottom + 38, x_label, "ink", "middle")
    y = top - 4
    for (heading, label, interval, series, result), is_first in zip(rows, headings):
        y += 6 if is_first else 0
        if is_first:
            chart.text(18, y + 13, heading, "ink", size=12)
        chart.text(x.first - 10, y + 13, label, "ink", "end", 12)
        if interval:
            chart.whisker(x, *interval, y + 9, series)
        chart.text(x.last + 10, y + 13, result, "ink" if interval else "faint", size=12)
        y += row_height
    return chart.svg()


def panel_chart(title, subtitle, panels, columns, x_label, y_label, names, y_mark=None):
    """Returns small charts with common axes. Each panel is (heading, {series: [(x, y, low, high)]}); a panel without a curve says so."""
    points = [point for _, curves in panels for curve in curves.values() for point in curve]
    rows = -(-len(panels) // columns)
    left, top, width, height = 62, 92, (WIDTH - 62 - 14) / columns, 170
    chart = Chart(title, subtitle, height=top + rows * height + 30)
    chart.legend(names)
    xs, ys = [p[0] for p in points], [v for p in points for v in p[1:]] + ([] if y_mark is None else [y_mark])
    margin = 0.05 * (max(ys) - min(ys))
    for place, (heading, curves) in enumerate(panels):
        x0, y0 = left + place % columns * width, top + place // columns * height
        x = Axis(min(xs) - 0.2, max(xs) + 0.2, x0 + 4, x0 + width - 10)
        y = Axis(min(ys) - margin, max(ys) + margin, y0 + height - 26, y0 + 12)
        for tick in x.ticks():
            chart.line(x.at(tick), y.first, x.at(tick), y.last, "grid")
            chart.text(x.at(tick), y.first + 15, with_unit(tick), "faint", "middle", 11)
        for tick in y.ticks():
            chart.line(x.first, y.at(tick), x.last, y.at(tick), "grid")
            if place % columns == 0:
                chart.text(x.first - 6, y.at(tick) + 4, with_unit(tick), "faint", "end", 11)
        if y_mark is not None:
            chart.line(x.first, y.at(y_mark), x.last, y.at(y_mark), "mark")
        chart.text((x.first + x.last) / 2, y0 + 6, heading, "ink", "middle", 12, bold=True)
        if not curves:
            chart.text((x.first + x.last) / 2, (y.first + y.last) / 2, "has not run", "faint", "middle", 12)
        for series, curve in curves.items():
            chart.band([(x.at(p[0]), y.at(p[2])) for p in curve] + [(x.at(p[0]), y.at(p[3])) for p in reversed(curve)], series)
            chart.path([(x.at(p[0]), y.at(p[1])) for p in curve], series)
    chart.text(left + columns * width / 2, chart.height - 16, x_label, "ink", "middle")
    chart.text(16, top + rows * height / 2, y_label, "ink", "middle", turn=-90)
    return chart.svg()


def read(path):
    """Returns the rows of a CSV file; lines that begin with # are left out."""
    with open(path, newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def mean(values):
    return sum(values) / len(values)


def thinned_log(points, count=200):
    """Returns at most `count` points, the first after each step of the logarithm of x, and the last one."""
    first, last = math.log(points[0][0]), math.log(points[-1][0])
    kept, due = [], first
    for point in points:
        if math.log(point[0]) >= due - 1e-12:
            kept.append(point)
            due = max(due, math.log(point[0])) + (last - first) / count
    return kept if kept[-1] == points[-1] else kept + [points[-1]]


def curves_of(rounds, runs, x, measure, by, where=()):
    """Returns {label: [(x, measure)]}: means over the runs of a label at each evaluated round. x is a column, or bits_up added up."""
    label = {run["run"]: run[by] for run in runs if all(run[key] == value for key, value in where)}
    if not label:
        sys.exit("no run has " + ", ".join(f"{key}={value}" for key, value in where) + "; the columns of the runs file have the values")
    sums, collected = {}, {}
    for row in rounds:
        if row["run"] not in label:
            continue
        sums[row["run"]] = sums.get(row["run"], 0) + int(row["bits_up"])  # every round counts, measured or not
        if row[measure] != "":
            at = sums[row["run"]] if x == "bits_up" else int(row[x])
            collected.setdefault(label[row["run"]], {}).setdefault(int(row["round"]), []).append((at, float(row[measure])))
    return {name: [(mean([a for a, _ in pairs]), mean([v for _, v in pairs])) for _, pairs in sorted(by_round.items())]
            for name, by_round in sorted(collected.items())}
