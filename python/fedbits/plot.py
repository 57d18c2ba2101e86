"""The charts of the report as figures of matplotlib, ready for a paper.

    figure = fedbits.plot.accuracy_against_bits(store, size="column")
    fedbits.plot.save(figure, "accuracy.pdf", "accuracy.svg")

Every function takes a Store (or its folder) and returns a Figure with a panel per level of heterogeneity, in which something is drawn. Colours are Okabe
and Ito's, which the colour-blind can tell apart; the baseline is black, methods that lose nothing are grey and dotted. Means are over seeds, bands and bars
are Student's 95% intervals. matplotlib's own settings (rcParams) stay as they are. What most functions take:

methods: labels, or one label, in the place of all.  levels: those of the levels (panels), in the place of all.
scale: of the vertical axis: "linear", "log", or "auto" = logarithmic for gaps f - f* that span a decade, and for other values above 0 that span two.
size: of the whole figure. "column" = 3.25 inches wide and "page" = 6.75, the widths of a column and of both in the template of ICML; a number = width
in inches (NeurIPS has 5.5); (width, height) in inches. Panels are at least 2 inches wide, up to three beside each other, so that several lie below each
other in a column; without a height they have 0.8 times their width, and 2 inches at the most in several rows. None = "column" for one panel, and for more
2.25 inches for each.
figure: a Figure or SubFigure of yours in which panels and legend are drawn; layout="constrained" of it makes room for labels.
ax: an Axes of yours, or a list with one for each panel. Lines have labels, so that ax.legend() shows them; no legend is drawn.
baseline: label of the method that others are compared with.  method, level: keys of the axes of the sweep that are methods and levels.  study: name of
one of several studies in the store. None = those of Store.report.

Axes stay in the range of the measure: accuracies in [0, 1], and what is at least 0 in every run from 0 on; intervals end there.
Raises ImportError where matplotlib is missing, StoreError for a folder without a store, ConfigError for names and labels that the store does not have,
ValueError for methods, levels, scales and sizes that do not exist and where there is nothing to draw, and TypeError for what is no figure or axes.
"""
from __future__ import annotations

import math
import os
from typing import Any, Sequence

from fedbits import arguments
from fedbits._drawing import (BITS, INK, SOFT, Chart, Labels, Place, Range, Size, bar, choice, drawn_y, file_settings, forest_height, forest_names,
                              forest_row, known, set_scale, thin_labels, wants_log)
from fedbits.store import Store

_StoreLike = Store | str | os.PathLike[str]
_SHARE = {"share": True, "gap": False}  # of a measure in [0, 1]


def accuracy_against_bits(store: _StoreLike, *, bits: str = "up", methods: Labels = None, levels: Labels = None, scale: str = "auto", size: Size = None,
                          figure: Any = None, ax: Any = None, baseline: str | None = None, method: str | None = None, level: str | None = None,
                          study: str | None = None) -> Any:
    """Test accuracy, in [0, 1], against bits of all clients together, or simulated time. bits: "up", "both", "published", "entropy" or "seconds".

    The other arguments and errors are those of curves().
    """
    return curves(store, "test_accuracy", against=bits, methods=methods, levels=levels, scale=scale, size=size, figure=figure, ax=ax, baseline=baseline,
                  method=method, level=level, study=study)


def loss_against_bits(store: _StoreLike, *, bits: str = "up", methods: Labels = None, levels: Labels = None, scale: str = "auto", size: Size = None,
                      figure: Any = None, ax: Any = None, baseline: str | None = None, method: str | None = None, level: str | None = None,
                      study: str | None = None) -> Any:
    """The training objective against bits of all clients together, or simulated time. bits: "up", "both", "published", "entropy" or "seconds".

    The other arguments and errors are those of curves().
    """
    return curves(store, "train_loss", against=bits, methods=methods, levels=levels, scale=scale, size=size, figure=figure, ax=ax, baseline=baseline,
                  method=method, level=level, study=study)


def curves(store: _StoreLike, measure: str, *, against: str = "up", methods: Labels = None, levels: Labels = None, scale: str = "auto", size: Size = None,
           figure: Any = None, ax: Any = None, baseline: str | None = None, method: str | None = None, level: str | None = None,
           study: str | None = None) -> Any:
    """A measure (a column of Store.rounds) against bits of all clients together, or against rounds: a line per method, with its interval as a band.

    against: "up", "both" (up and down), "published" (as the method's paper counts), "entropy" (an ideal code's bits), "seconds" (simulated) or "round".
    A run keeps its last measured value, and a curve ends where its first run ends. Bits are on a logarithmic axis.

    methods, levels: labels of what is drawn, or one label.  scale: "auto", "linear" or "log", of the measure.
    size: "column" (3.25 in), "page" (6.75 in), a width, or (width, height) in inches.  figure: a figure of yours.  ax: axes of yours, one per panel.
    baseline, method, level, study: as for Store.report. help(fedbits.plot) says more of them.

    Returns the Figure (that of `ax`, if given). Raises ConfigError for a measure or label that the store does not have, and ValueError for other names
    and where there is nothing to draw.
    """
    chart = Chart(store, Place(size, figure, ax), methods, levels, measure=measure, baseline=baseline, method=method, level=level, study=study)
    of_measure = chart.measure()
    panels = of_measure["curves"][known(against, of_measure["curves"])]
    return _curve_figure(chart, panels, of_measure["title"], against, scale, of_measure, chart.range_of_measure())


def density(store: _StoreLike, *, methods: Labels = None, levels: Labels = None, scale: str = "auto", size: Size = None, figure: Any = None,
            ax: Any = None, baseline: str | None = None, method: str | None = None, level: str | None = None, study: str | None = None) -> Any:
    """The share of entries that were sent, elements / (clients x P), in [0, 1], against rounds.

    The arguments and errors are those of curves(); scale="auto" is linear.
    """
    chart = Chart(store, Place(size, figure, ax), methods, levels, baseline=baseline, method=method, level=level, study=study)
    return _curve_figure(chart, chart.data["density"], "share of entries sent", "round", scale, _SHARE, Range(0.0, 1.0))


def clients(store: _StoreLike, *, methods: Labels = None, levels: Labels = None, size: Size = None, figure: Any = None, ax: Any = None,
            baseline: str | None = None, method: str | None = None, level: str | None = None, study: str | None = None) -> Any:
    """Accuracy on each client's own rows, in [0, 1], against rounds: the median client, the 10th to the 90th percentile as the band, and the worst client
    dotted. Needs runs with evaluate.clients_every.

    The arguments and errors are those of curves().
    """
    chart = Chart(store, Place(size, figure, ax), methods, levels, baseline=baseline, method=method, level=level, study=study)
    p10, p50, p90, worst = ([chart.lines(curve) for curve in panels] for panels in chart.data["clients"])
    drawn, axes = chart.axes(x="round", y="accuracy of clients", drawn=[len(lines) for lines in p50])
    for panel, axis in axes:
        for low, middle, high, least in zip(p10[panel], p50[panel], p90[panel], worst[panel]):
            style = chart.style(middle["m"])
            axis.fill_between(middle["x"], low["y"], high["y"], step="post", alpha=0.15, color=style["color"], linewidth=0)
            axis.step(middle["x"], middle["y"], where="post", label=chart.label(middle["m"]), **style)
            axis.step(least["x"], least["y"], where="post", color=style["color"], linestyle=":", linewidth=0.9)
    set_scale([axis for _, axis in axes], False, Range(0.0, 1.0), ())
    return drawn


def theory(store: _StoreLike, *, quantity: str = "gradient", methods: Labels = None, levels: Labels = None, size: Size = None, figure: Any = None,
           ax: Any = None, baseline: str | None = None, method: str | None = None, level: str | None = None, study: str | None = None) -> Any:
    """What a convergence theorem bounds (lines) beside its bound (dots) against rounds, both on logarithmic axes, for runs that satisfy its assumptions.

    quantity: "gradient" = mean of |grad f|^2 over the rounds so far, "average" = f - f* at the weighted average of the models, "tight" = f - f* under
    learning_rate = "tight", with the rate of its worst case. The other arguments and errors are those of curves().
    """
    place = choice("quantity", quantity, ("gradient", "average", "tight"))
    chart = Chart(store, Place(size, figure, ax), methods, levels, baseline=baseline, method=method, level=level, study=study)
    measured, bounds = ([chart.lines(curve) for curve in panels] for panels in chart.data["theory"][place])
    title = ("mean of $|\\nabla f|^2$", "$f - f^*$ at the average", "$f - f^*$")[place]
    drawn, axes = chart.axes(x="rounds", y=title, drawn=[len(lines) for lines in measured])
    for panel, axis in axes:
        axis.set(xscale="log", yscale="log")
        for line in measured[panel]:
            axis.step(line["x"], line["y"], where="post", label=chart.label(line["m"]), **chart.style(line["m"]))
        for line in bounds[panel]:
            axis.plot(line["x"], line["y"], color=chart.style(line["m"])["color"], linestyle="none", marker=".", markersize=2.5)
        thin_labels(axis)
    return drawn


def price(store: _StoreLike, measure: str | None = None, *, bits: str = "up", methods: Labels = None, levels: Labels = None, scale: str = "auto",
          size: Size = None, figure: Any = None, ax: Any = None, baseline: str | None = None, method: str | None = None, level: str | None = None,
          study: str | None = None, window: float | None = None) -> Any:
    """A measure at the end of the runs against the bits that they sent, with an interval for each method; the line joins the methods that no other one
    beats in both.

    measure: a column of Store.rounds; None = the first of the report.  bits: "up", "both", "published", "entropy" or "seconds".
    window: share of a budget over which a run's value is averaged, weighted by bits. The other arguments and errors are those of curves().
    """
    chart = Chart(store, Place(size, figure, ax), methods, levels, measure=measure, baseline=baseline, method=method, level=level, study=study, window=window)
    of_measure = chart.measure()
    ends = [one for one in chart.of_bits(bits)["finals"] if chart.shows(one) and one["value"]["mean"] is not None and one["bits"]]
    drawn, axes = chart.axes(x=BITS[bits] if bits == "seconds" else f"{BITS[bits]} of all rounds", y=of_measure["title"], drawn=chart.counts(ends))
    values = [one["value"]["mean"] for one in ends]
    is_log = wants_log(scale, of_measure, values)
    for panel, axis in axes:
        axis.set_xscale("log")
        mine = [one for one in ends if one["panel"] == panel]
        front = _front([(one["bits"], one["value"]["mean"]) for one in mine], of_measure["lower"])
        axis.plot(*zip(*front), color=SOFT, linestyle=(0, (4, 3)), linewidth=0.8)
        for one in mine:
            bar(axis, one["bits"], one["value"], chart.style(one["method"]) | {"label": chart.label(one["method"])}, is_log)
    set_scale([axis for _, axis in axes], is_log, chart.range_of_measure(), values)
    for _, axis in axes:
        thin_labels(axis)
    return drawn


def heterogeneity(store: _StoreLike, measure: str | None = None, *, bits: str = "up", methods: Labels = None, scale: str = "auto", size: Size = None,
                  figure: Any = None, ax: Any = None, baseline: str | None = None, method: str | None = None, level: str | None = None,
                  study: str | None = None, window: float | None = None) -> Any:
    """A measure at the bits that all methods reached at all levels, against the measured heterogeneity zeta^2 of the initial model: one panel with a line
    per method, whose points are the levels.

    The arguments and errors are those of price(); `ax` is one Axes.
    """
    chart = Chart(store, Place(size, figure, ax), methods, None, measure=measure, baseline=baseline, method=method, level=level, study=study, window=window)
    of_measure = chart.measure()
    zeta = {(cell["panel"], cell["method"]): cell["zeta"]["mean"] for cell in chart.data["cells"] if cell["zeta"]["mean"] is not None}
    points = [(zeta[one["panel"], one["method"]], one) for one in chart.of_bits(bits)["overLevels"]
              if chart.shows(one) and (one["panel"], one["method"]) in zeta and one["value"]["mean"] is not None]
    drawn, ((_, axis),) = chart.axes(x=r"measured $\zeta^2$", y=of_measure["title"], drawn=[len(points)], is_one=True)
    axis.set_xscale("log" if all(x > 0 for x, _ in points) else "linear")
    values = [one["value"]["mean"] for _, one in points]
    is_log = wants_log(scale, of_measure, values)
    for rest in dict.fromkeys(panel["rest"] for panel in chart.data["panels"]):
        for number in chart.methods:
            mine = sorted(((x, one) for x, one in points if one["method"] == number and chart.data["panels"][one["panel"]]["rest"] == rest),
                          key=lambda point: point[0])
            axis.plot([x for x, _ in mine], [one["value"]["mean"] for _, one in mine], alpha=0.6, label=chart.label(number), **chart.style(number))
            for x, one in mine:
                bar(axis, x, one["value"], chart.style(number), is_log)
    set_scale([axis], is_log, chart.range_of_measure(), values)
    thin_labels(axis)
    return drawn


def differences(store: _StoreLike, measure: str | None = None, *, bits: str = "up", methods: Labels = None, levels: Labels = None, size: Size = None,
                figure: Any = None, ax: Any = None, baseline: str | None = None, method: str | None = None, level: str | None = None,
                study: str | None = None, window: float | None = None, claims_despite_refused: bool | None = None) -> Any:
    """Differences to the baseline at equal bits: in percent of its mean, for accuracies in percentage points; a row per method.

    The thick line is Student's 95% interval, the thin one the BCa bootstrap's. A filled dot is a claim, an open one is none.
    claims_despite_refused: as for Store.report. The other arguments and errors are those of price().
    """
    chart = Chart(store, Place(size, figure, ax), methods, levels, measure=measure, baseline=baseline, method=method, level=level, study=study, window=window,
                  claims_despite_refused=claims_despite_refused)
    of_measure = chart.measure()
    rows = [one for one in chart.of_bits(bits)["comparisons"] if chart.shows(one) and one["difference"]["mean"] is not None]
    unit = "percentage points" if of_measure["share"] else "%"
    named = [number for number in chart.methods if any(one["method"] == number for one in rows)]
    drawn, axes = chart.axes(x=f"{of_measure['title']},\ndifference to {chart.label(chart.data['baseline'])} ({unit})", y="", drawn=chart.counts(rows),
                             has_legend=False, height=forest_height(len(named)))
    for panel, axis in axes:
        axis.axvline(0, color=SOFT, linewidth=0.8)
        for one in (one for one in rows if one["panel"] == panel):
            factor = 100.0 if of_measure["share"] else 100.0 / abs(one["base"]["mean"] or 1)
            forest_row(axis, len(named) - 1 - named.index(one["method"]), one["difference"], factor, chart.style(one["method"])["color"],
                       one["verdict"] != "no claim")
        forest_names(axis, [chart.label(number) for number in named])
    return drawn


def contrasts(store: _StoreLike, pairs: str | Sequence[str], measure: str | None = None, *, bits: str = "up", classes: str | None = None,
              heterogeneity: str | None = None, margins: str | Sequence[str] | None = None, size: Size = None, figure: Any = None, ax: Any = None,
              baseline: str | None = None, method: str | None = None, level: str | None = None, study: str | None = None, window: float | None = None,
              claims_despite_refused: bool | None = None) -> Any:
    """Slopes of the differences of pairs "A:B" over heterogeneity: left of zero A gains against B (for a loss) as clients differ more; a row per pair.

    pairs: "A:B", labels of two methods, or a list of them.  bits: "up" or "both".  classes, heterogeneity, margins, claims_despite_refused: as
    for Store.report. The other arguments and errors are those of price(); `ax` is one Axes.
    """
    chart = Chart(store, Place(size, figure, ax), None, None, measure=measure, contrasts=pairs, classes=classes, heterogeneity=heterogeneity,
                  margins=margins, baseline=baseline, method=method, level=level, study=study, window=window,
                  claims_despite_refused=claims_despite_refused)
    family = chart.data["contrasts"]["families"][0][known(bits, ("up", "both"))] if chart.data["contrasts"] else {"slopes": []}
    rows = [row for row in family["slopes"] if row["mean"] is not None]
    drawn, ((_, axis),) = chart.axes(x="slope of " + ("log(A / B)" if rows and family["isLogRatio"] else "A - B"), y="", drawn=[len(rows)], is_one=True,
                                     has_legend=False, height=forest_height(len(rows)))
    axis.axvline(0, color=SOFT, linewidth=0.8)
    for place, row in enumerate(reversed(rows)):
        forest_row(axis, place, {"mean": row["mean"], "t": row["t"], "b": [None, None]}, 1.0,
                   chart.style(chart.data["methods"].index(row["a"]))["color"], row["verdict"] != "no claim")
    forest_names(axis, [f"{row['a']} : {row['b']}" + (f", {row['group']}" if row["group"] else "") for row in rows])
    return drawn


def contract(store: _StoreLike, constant: str = "kappa", *, methods: Labels = None, size: Size = None, figure: Any = None, ax: Any = None,
             baseline: str | None = None, method: str | None = None, level: str | None = None, study: str | None = None) -> Any:
    """What was measured of an operator's promise, a dot per level, beside its bound, a tick; a row per method that promises something.

    constant: "kappa" (largest absolute error), "delta" (contraction, in [0, 1]) or "omega" (relative variance). The other arguments and errors are those
    of curves(); `ax` is one Axes.
    """
    key = ("kappa", "delta", "omega")[choice("constant", constant, ("kappa", "delta", "omega"))]
    chart = Chart(store, Place(size, figure, ax), methods, None, baseline=baseline, method=method, level=level, study=study)
    nothing_lost = {"kappa": 0, "delta": 1, "omega": 0}[key]
    cells = [cell for cell in chart.data["cells"] if chart.shows(cell) and cell[key]["mean"] is not None
             and cell["promised"][key] not in (None, nothing_lost)]
    label = {"kappa": "largest $|C(p) - p|$", "delta": r"smallest $\delta$", "omega": r"largest $\omega$"}[key]
    named = [number for number in chart.methods if any(cell["method"] == number for cell in cells)]
    drawn, ((_, axis),) = chart.axes(x=label, y="", drawn=[len(cells)], is_one=True, has_legend=False, height=forest_height(len(named)))
    for cell in cells:
        place = len(named) - 1 - named.index(cell["method"])
        axis.plot(cell["promised"][key], place, marker="|", markersize=14, color=INK)
        axis.plot(cell[key]["mean"], place, marker="o", markersize=4, color=chart.style(cell["method"])["color"], alpha=0.75)
    low, high = axis.get_xlim()
    axis.set_xlim(max(low, 0.0), min(high, 1.0) if key == "delta" else high)
    forest_names(axis, [chart.label(number) for number in named])
    return drawn


def splits(store: _StoreLike, *, data_folder: str | os.PathLike[str] = "", size: Size = None, figure: Any = None, baseline: str | None = None,
           method: str | None = None, level: str | None = None, study: str | None = None) -> Any:
    """The number of training rows of each class at each client, for the smallest seed, as a panel [classes, clients] per split; the darker, the more.

    data_folder: that of the data sets, which are read. The other arguments and errors are those of curves(); ValueError says which data are missing.
    """
    chart = Chart(store, Place(size, figure, None), None, None, splits=True, data_folder=data_folder, baseline=baseline, method=method, level=level, study=study)
    drawn = [split for split in chart.data["splits"] if not split["missing"]]
    if not drawn:
        raise ValueError("; ".join(split["missing"] for split in chart.data["splits"]) or "this store has no splits to draw")
    whole, grid, columns = chart.place.grid(len(drawn))
    for place, split in enumerate(drawn):
        axis = whole.add_subplot(grid[place // columns, place % columns])
        axis.imshow(list(map(list, zip(*split["rows"]))), aspect="auto", cmap="Blues", vmin=0, interpolation="nearest")
        axis.set_title(chart.data["panels"][split["panels"][0]]["title"], fontsize=8)
        axis.set_xlabel("client", fontsize=8)
        if place % columns == 0:
            axis.set_ylabel("class", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.set_yticks(range(len(split["classes"])), split["classes"])
        for side in axis.spines.values():
            side.set_visible(False)
    return whole


def save(figure: Any, *paths: str | os.PathLike[str]) -> None:
    """Writes a figure to files such as "x.pdf" and "x.svg", in its own size in inches. Fonts are embedded in PDF as TrueType, texts of SVG stay texts, and the
    same figure gives the same bytes.

    figure: any Figure of matplotlib.  Raises TypeError without paths, and what matplotlib raises for a format that it does not know.
    """
    if not paths:
        raise TypeError('save needs the paths of files behind the figure, as save(figure, "chart.pdf")')
    with file_settings():
        for given in paths:
            path = arguments.path("a path of save", given)
            metadata = {"CreationDate": None} if path.endswith(".pdf") else {"Date": None} if path.endswith(".svg") else None
            figure.savefig(path, metadata=metadata, dpi=200)


def _curve_figure(chart: Chart, panels: list[dict[str, Any]], title: str, against: str, scale: str, measure: dict[str, Any], within: Range) -> Any:
    lines = [chart.lines(curve) for curve in panels]
    drawn, axes = chart.axes(x={"round": "round", "seconds": BITS["seconds"]}.get(against) or f"{BITS[against]}, all clients", y=title, drawn=[len(one) for one in lines])
    values = [y for panel, _ in axes for line in lines[panel] for y in line["y"]]
    is_log = wants_log(scale, measure, values)
    for panel, axis in axes:
        axis.set_xscale("linear" if against == "round" else "log")
        for line in lines[panel]:
            style = chart.style(line["m"])
            if "lo" in line:
                low, high = ([drawn_y(y, is_log) for y in line[key]] for key in ("lo", "hi"))
                axis.fill_between(line["x"], low, high, step="post", alpha=0.15, color=style["color"], linewidth=0)
            axis.step(line["x"], [y if y > 0 or not is_log else math.nan for y in line["y"]], where="post", label=chart.label(line["m"]), **style)
    set_scale([axis for _, axis in axes], is_log, within, values)
    for _, axis in axes:
        thin_labels(axis)
    return drawn


def _front(points: list[tuple[float, float]], is_lower_better: bool) -> list[tuple[float, float]]:
    """Returns the points that no other point beats in both bits and value, by bits."""
    front: list[tuple[float, float]] = []
    for bits, value in sorted(points, key=lambda point: (point[0], point[1] if is_lower_better else -point[1])):
        if not front or (value < front[-1][1]) == is_lower_better and value != front[-1][1]:
            front.append((bits, value))
    return front
