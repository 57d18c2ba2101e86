"""The charts of the report as figures of matplotlib, ready for a paper.

    figure = fedbits.plot.accuracy_against_bits(store)
    fedbits.plot.save(figure, "accuracy.pdf", "accuracy.svg")

Every function takes a Store (or its folder) and returns a Figure with a panel per level of heterogeneity. Colours are Okabe and Ito's, which the
colour-blind can tell apart; the baseline is black, methods that lose nothing are grey and dotted. Means are over seeds, bands and bars are Student's 95%
intervals. What every function takes:

methods: labels, or one label, in the place of all.  levels: those of the levels (panels), in the place of all.
size: width and height of a panel, in inches; 2.3 x 1.8 fits three panels into the width of a page.
scale: "linear", "log", or "auto", for the vertical axis.
options: those of Store.report: baseline, method, level, study, window, and the measure where it is not an argument.
Raises ImportError where matplotlib is missing, ConfigError for labels and names that the store does not have, and ValueError where there is nothing to
draw.
"""
from __future__ import annotations

import functools
import math
import os
from typing import Any, Callable, Iterable, Sequence

from fedbits import _core, arguments
from fedbits.needed import needed
from fedbits.store import Store, list_of

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito
_DASHES = ("-", (0, (6, 3)), (0, (2, 3)), (0, (8, 3, 2, 3)))
_INK, _SOFT = "#1b1f24", "#57606a"
_BITS = {"up": "uplink bits", "both": "bits up and down", "published": "published uplink bits", "entropy": "entropy bound of uplink bits"}
_SIZE = (2.3, 1.8)
_Labels = str | Sequence[str] | None


def accuracy_against_bits(store: Store | str, *, bits: str = "up", **looks: Any) -> Any:
    """Test accuracy against bits of all clients together. bits: "up", "both", "published" or "entropy"."""
    return curves(store, "test_accuracy", against=bits, **looks)


def loss_against_bits(store: Store | str, *, bits: str = "up", **looks: Any) -> Any:
    """The training objective against bits of all clients together."""
    return curves(store, "train_loss", against=bits, **looks)


def curves(store: Store | str, measure: str, *, against: str = "up", methods: _Labels = None, levels: _Labels = None,
           size: tuple[float, float] = _SIZE, scale: str = "auto", **options: Any) -> Any:
    """A measure (a column of Store.rounds) against bits, or against="round".

    A run keeps its last measured value, and a curve ends where its first run ends.
    """
    chart = _Chart(store, methods, levels, measure=measure, **options)
    of_measure = chart.measure()
    figure = _curve_figure(chart, of_measure["curves"][chart.known_bits(against, of_measure["curves"])], of_measure["title"], size,
                           _is_log(scale, of_measure, chart), against)
    if of_measure["share"]:  # an interval may leave the range of its measure
        low, high = figure.axes[0].get_ylim()
        figure.axes[0].set_ylim(max(low, -0.02), min(high, 1.02))
    return figure


def density(store: Store | str, *, methods: _Labels = None, levels: _Labels = None, size: tuple[float, float] = _SIZE,
            scale: str = "auto", **options: Any) -> Any:
    """The share of entries that were sent, elements / (clients x P), against rounds."""
    chart = _Chart(store, methods, levels, **options)
    return _curve_figure(chart, chart.data["density"], "share of entries sent", size, scale == "log", "round")


def clients(store: Store | str, *, methods: _Labels = None, levels: _Labels = None, size: tuple[float, float] = _SIZE,
            **options: Any) -> Any:
    """Accuracy on each client's own rows: the median client, the 10th to the 90th percentile as the band, and the worst client dotted.

    Needs runs with evaluate.clients_every.
    """
    chart = _Chart(store, methods, levels, **options)
    p10, p50, p90, worst = ([list(chart.lines(curve)) for curve in panels] for panels in chart.data["clients"])
    figure, axes = chart.figure(size, x="round", y="accuracy of clients", drawn=[len(lines) for lines in p50])
    for panel, axis in axes:
        for low, middle, high, least in zip(p10[panel], p50[panel], p90[panel], worst[panel]):
            style = chart.style(middle["m"])
            axis.fill_between(middle["x"], low["y"], high["y"], step="post", alpha=0.15, color=style["color"], linewidth=0)
            axis.step(middle["x"], middle["y"], where="post", **style)
            axis.step(least["x"], least["y"], where="post", color=style["color"], linestyle=":", linewidth=0.9)
    return figure


def theory(store: Store | str, *, quantity: str = "gradient", methods: _Labels = None, levels: _Labels = None,
           size: tuple[float, float] = _SIZE, **options: Any) -> Any:
    """What a convergence theorem bounds (lines) beside its bound (dots), for runs that satisfy its assumptions.

    quantity: "gradient" = mean of |grad f|^2 over the rounds so far, "average" = f - f* at the weighted average of the models, "tight" = f - f* under
    learning_rate = "tight", with the rate of its worst case.
    """
    chart = _Chart(store, methods, levels, **options)
    measured, bounds = ([list(chart.lines(curve)) for curve in panels]
                        for panels in chart.data["theory"][_choice("quantity", quantity, ("gradient", "average", "tight"))])
    title = {"gradient": "mean of $|\\nabla f|^2$", "average": "$f - f^*$ at the average", "tight": "$f - f^*$"}[quantity]
    figure, axes = chart.figure(size, x="rounds", y=title, drawn=[len(lines) for lines in measured])
    for panel, axis in axes:
        axis.set(xscale="log", yscale="log")
        for line in measured[panel]:
            axis.step(line["x"], line["y"], where="post", **chart.style(line["m"]))
        for line in bounds[panel]:
            axis.plot(line["x"], line["y"], color=chart.style(line["m"])["color"], linestyle="none", marker=".", markersize=2.5)
    _thin_labels(axes[0][1])
    return figure


def price(store: Store | str, measure: str | None = None, *, bits: str = "up", methods: _Labels = None,
          levels: _Labels = None, size: tuple[float, float] = _SIZE, scale: str = "auto", **options: Any) -> Any:
    """A measure at the end of the runs against the bits that they sent; the line joins the methods that no other one beats in both."""
    chart = _Chart(store, methods, levels, measure=measure, **options)
    of_measure = chart.measure()
    ends = [one for one in chart.of_bits(bits)["finals"] if chart.shows(one) and one["value"]["mean"] is not None and one["bits"]]
    drawn = [sum(one["panel"] == panel for one in ends) for panel in range(len(chart.data["panels"]))]
    figure, axes = chart.figure(size, x=f"{_BITS[bits]} of all rounds", y=of_measure["title"], drawn=drawn)
    for panel, axis in axes:
        axis.set_xscale("log")
        if _is_log(scale, of_measure, chart):
            axis.set_yscale("log")
        mine = [one for one in ends if one["panel"] == panel]
        front = _front([(one["bits"], one["value"]["mean"]) for one in mine], of_measure["lower"])
        axis.plot(*zip(*front), color=_SOFT, linestyle=(0, (4, 3)), linewidth=0.8)
        for one in mine:
            _bar(axis, one["bits"], one["value"], chart.style(one["method"]))
    _thin_labels(axes[0][1])
    return figure


def heterogeneity(store: Store | str, measure: str | None = None, *, bits: str = "up", methods: _Labels = None,
                  size: tuple[float, float] = (3.3, 2.4), scale: str = "auto", **options: Any) -> Any:
    """A measure at the bits that all methods reached at all levels, against the measured heterogeneity zeta^2 of the initial model."""
    chart = _Chart(store, methods, None, measure=measure, **options)
    of_measure = chart.measure()
    zeta = {(cell["panel"], cell["method"]): cell["zeta"]["mean"] for cell in chart.data["cells"] if cell["zeta"]["mean"] is not None}
    points = [(zeta[one["panel"], one["method"]], one) for one in chart.of_bits(bits)["overLevels"]
              if chart.shows(one) and (one["panel"], one["method"]) in zeta and one["value"]["mean"] is not None]
    figure, ((_, axis),) = chart.figure(size, x=r"measured $\zeta^2$", y=of_measure["title"], drawn=[len(points)], is_one=True)
    axis.set_xscale("log" if all(x > 0 for x, _ in points) else "linear")
    if _is_log(scale, of_measure, chart):
        axis.set_yscale("log")
    for rest in dict.fromkeys(panel["rest"] for panel in chart.data["panels"]):
        for method in chart.methods:
            mine = sorted(((x, one) for x, one in points if one["method"] == method and chart.data["panels"][one["panel"]]["rest"] == rest),
                          key=lambda point: point[0])
            axis.plot([x for x, _ in mine], [one["value"]["mean"] for _, one in mine], alpha=0.6, **chart.style(method))
            for x, one in mine:
                _bar(axis, x, one["value"], chart.style(method))
    _thin_labels(axis)
    return figure


def differences(store: Store | str, measure: str | None = None, *, bits: str = "up", methods: _Labels = None,
                levels: _Labels = None, size: tuple[float, float] = _SIZE, **options: Any) -> Any:
    """Differences to the baseline at equal bits: in percent of its mean, for accuracies in percentage points.

    The thick line is Student's 95% interval, the thin one the BCa bootstrap's. A filled dot is a claim, an open one is none.
    """
    chart = _Chart(store, methods, levels, measure=measure, **options)
    of_measure = chart.measure()
    rows = [one for one in chart.of_bits(bits)["comparisons"] if chart.shows(one) and one["difference"]["mean"] is not None]
    drawn = [sum(one["panel"] == panel for one in rows) for panel in range(len(chart.data["panels"]))]
    unit = "percentage points" if of_measure["share"] else "%"
    figure, axes = chart.figure(size, x=f"{of_measure['title']},\ndifference to {chart.label(chart.data['baseline'])} ({unit})", y="", drawn=drawn, has_legend=False)
    named = [method for method in chart.methods if any(one["method"] == method for one in rows)]
    for panel, axis in axes:
        axis.axvline(0, color=_SOFT, linewidth=0.8)
        for one in (one for one in rows if one["panel"] == panel):
            factor = 100.0 if of_measure["share"] else 100.0 / abs(one["base"]["mean"] or 1)
            _forest_row(axis, len(named) - 1 - named.index(one["method"]), one["difference"], factor, chart.style(one["method"])["color"],
                        one["verdict"] != "no claim")
        axis.set_yticks(range(len(named)), [chart.label(method) for method in reversed(named)])
        axis.set_ylim(-0.6, len(named) - 0.4)
    return figure


def contrasts(store: Store | str, pairs: str | Sequence[str], measure: str | None = None, *, bits: str = "up",
              size: tuple[float, float] = (3.3, 2.0), **options: Any) -> Any:
    """Slopes of the differences of pairs "A:B" over heterogeneity: left of zero A gains against B (for a loss) as clients differ more."""
    chart = _Chart(store, None, None, measure=measure, contrasts=pairs, **options)
    family = chart.data["contrasts"]["families"][0][chart.known_bits(bits, ("up", "both"))] if chart.data["contrasts"] else {"slopes": []}
    rows = [row for row in family["slopes"] if row["mean"] is not None]
    figure, ((_, axis),) = chart.figure(size, x="slope of " + ("log(A / B)" if rows and family["isLogRatio"] else "A - B"), y="", drawn=[len(rows)],
                                        is_one=True, has_legend=False)
    axis.axvline(0, color=_SOFT, linewidth=0.8)
    for place, row in enumerate(reversed(rows)):
        _forest_row(axis, place, {"mean": row["mean"], "t": row["t"], "b": [None, None]}, 1.0,
                    chart.style(chart.data["methods"].index(row["a"]))["color"], row["verdict"] != "no claim")
    names = [f"{row['a']} : {row['b']}" + (f", {row['group']}" if row["group"] else "") for row in reversed(rows)]
    axis.set_yticks(range(len(rows)), names)
    axis.set_ylim(-0.6, len(rows) - 0.4)
    return figure


def contract(store: Store | str, constant: str = "kappa", *, methods: _Labels = None, size: tuple[float, float] = (3.3, 2.0),
             **options: Any) -> Any:
    """What was measured of an operator's promise, a dot per level, beside its bound, a tick. constant: "kappa", "delta" or "omega"."""
    key = ("kappa", "delta", "omega")[_choice("constant", constant, ("kappa", "delta", "omega"))]
    chart = _Chart(store, methods, None, **options)
    nothing_lost = {"kappa": 0, "delta": 1, "omega": 0}[key]
    cells = [cell for cell in chart.data["cells"] if chart.shows(cell) and cell[key]["mean"] is not None
             and cell["promised"][key] not in (None, nothing_lost)]
    label = {"kappa": "largest $|C(p) - p|$", "delta": r"smallest $\delta$", "omega": r"largest $\omega$"}[key]
    figure, ((_, axis),) = chart.figure(size, x=label, y="", drawn=[len(cells)], is_one=True, has_legend=False)
    named = [method for method in chart.methods if any(cell["method"] == method for cell in cells)]
    for cell in cells:
        place = len(named) - 1 - named.index(cell["method"])
        axis.plot(cell["promised"][key], place, marker="|", markersize=14, color=_INK)
        axis.plot(cell[key]["mean"], place, marker="o", markersize=4, color=chart.style(cell["method"])["color"], alpha=0.75)
    axis.set_yticks(range(len(named)), [chart.label(method) for method in reversed(named)])
    axis.set_ylim(-0.6, len(named) - 0.4)
    return figure


def splits(store: Store | str, *, data_folder: str | os.PathLike[str] = "", size: tuple[float, float] = _SIZE, **options: Any) -> Any:
    """The number of training rows of each class at each client, for the smallest seed; the darker, the more."""
    chart = _Chart(store, None, None, splits=True, data_folder=data_folder, **options)
    drawn = [split for split in chart.data["splits"] if not split["missing"]]
    if not drawn:
        raise ValueError("; ".join(split["missing"] for split in chart.data["splits"]) or "this store has no splits to draw")
    rows, columns = math.ceil(len(drawn) / 3), min(len(drawn), 3)
    figure = chart.empty((size[0] * columns, size[1] * rows))
    for place, split in enumerate(drawn):
        axis = figure.add_subplot(rows, columns, place + 1)
        axis.imshow(list(map(list, zip(*split["rows"]))), aspect="auto", cmap="Blues", vmin=0, interpolation="nearest")
        axis.set_title(chart.data["panels"][split["panels"][0]]["title"], fontsize=8)
        axis.set_xlabel("client", fontsize=8)
        if place % columns == 0:
            axis.set_ylabel("class", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.set_yticks(range(len(split["classes"])), split["classes"])
        for side in axis.spines.values():
            side.set_visible(False)
    return figure


def save(figure: Any, *paths: str | os.PathLike[str]) -> None:
    """Writes a figure to files such as "x.pdf" and "x.svg": text stays text, and the same figure gives the same bytes."""
    if not paths:
        raise TypeError('save needs the paths of files behind the figure, as save(figure, "chart.pdf")')
    with needed("matplotlib", "fedbits.plot").rc_context({"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "fedbits"}):
        for given in paths:
            path = arguments.path("a path of save", given)
            metadata = {"CreationDate": None} if path.endswith(".pdf") else {"Date": None} if path.endswith(".svg") else None
            figure.savefig(path, bbox_inches="tight", metadata=metadata, dpi=200)


class _Chart:
    """The data of a study for charts, with the methods and levels that are drawn and their styles."""

    def __init__(self, store: Store | str, methods: _Labels, levels: _Labels, **options: Any):
        needed("matplotlib", "fedbits.plot")
        self.data = (store if isinstance(store, Store) else Store(store)).chart_data(**options)
        self.methods = _places("method", methods, self.data["methods"])
        names = [panel["level"] or panel["title"] for panel in self.data["panels"]]
        wanted = _places("level", levels, names)
        self.panels = [place for place, name in enumerate(names) if name in [names[one] for one in wanted]]

    def measure(self) -> dict[str, Any]:
        return self.data["measures"][0]

    def of_bits(self, bits: str) -> dict[str, Any]:
        return self.measure()["bits"][self.known_bits(bits, self.measure()["bits"])]

    @staticmethod
    def known_bits(name: str, known: Iterable[str]) -> str:
        if name not in known:
            raise ValueError(f"there is no {name!r}{_core.hint(name, list(known))} (known: {', '.join(known)})")
        return name

    def label(self, method: int) -> str:
        return self.data["methods"][method]

    def shows(self, one: dict[str, Any]) -> bool:
        return one["method"] in self.methods and one["panel"] in self.panels

    def lines(self, curve: dict[str, Any]) -> Iterable[dict[str, Any]]:
        """Yields the lines of a panel with their horizontal positions; the last point lies where the first run ended."""
        for line in curve["lines"]:
            if line["m"] in self.methods:
                xs = curve["x"][line["from"]:line["from"] + len(line["y"])]
                number = [math.nan if y is None else y for y in line["y"]]
                yield line | {"x": [*xs[:-1], line["end"]], "y": number}

    def style(self, method: int) -> dict[str, Any]:
        if method == self.data["baseline"]:
            return {"color": _INK, "linestyle": "-", "linewidth": 1.3}
        if self.data["isReference"][method]:
            return {"color": _SOFT, "linestyle": ":", "linewidth": 1.3}
        place = sum(other != self.data["baseline"] and not self.data["isReference"][other] for other in range(method))
        return {"color": _COLOURS[place % len(_COLOURS)], "linestyle": _DASHES[place // len(_COLOURS) % len(_DASHES)], "linewidth": 1.3}

    @staticmethod
    def empty(size: tuple[float, float]) -> Any:
        return _figure_class()(figsize=size, layout="constrained")

    def figure(self, size: tuple[float, float], *, x: str, y: str, drawn: Sequence[int], is_one: bool = False, has_legend: bool = True) -> Any:
        """Returns a figure, and (panel, axis) of each panel in which something is drawn. Panels share their axes."""
        panels = [0] if is_one else [panel for panel in self.panels if drawn[panel] > 0]
        if not panels or not sum(drawn):
            raise ValueError("these runs have nothing that this chart draws")
        rows, columns = math.ceil(len(panels) / 3), min(len(panels), 3)
        figure = self.empty((size[0] * columns, size[1] * rows + 0.3 * has_legend))
        grid = figure.add_gridspec(rows + has_legend, columns, height_ratios=[size[1]] * rows + [0.25] * has_legend)
        axes: list[Any] = []
        for place, panel in enumerate(panels):
            shared = axes[0] if axes else None
            axes.append(_axis(figure.add_subplot(grid[place // columns, place % columns], sharex=shared, sharey=shared)))
            if not is_one:
                axes[-1].set_title(self.data["panels"][panel]["title"], fontsize=8)
            if place % columns == 0:
                axes[-1].set_ylabel(y, fontsize=8)
            else:
                axes[-1].tick_params(which="both", labelleft=False)
            if place + columns >= len(panels):
                axes[-1].set_xlabel(x, fontsize=8)
            else:
                axes[-1].tick_params(which="both", labelbottom=False)
        if has_legend:
            handles = [needed("matplotlib.lines", "fedbits.plot").Line2D([], [], label=self.label(method), **self.style(method)) for method in self.methods]
            below = figure.add_subplot(grid[rows, :])
            below.axis("off")
            below.legend(handles=handles, loc="center", ncol=min(len(handles), 4), fontsize=8, frameon=False)
        return figure, list(zip(panels, axes))


def _curve_figure(chart: _Chart, panels: list[dict[str, Any]], title: str, size: tuple[float, float], is_log: bool, against: str) -> Any:
    lines = [list(chart.lines(curve)) for curve in panels]
    x = "round" if against == "round" else f"{_BITS[against]}, all clients"
    figure, axes = chart.figure(size, x=x, y=title, drawn=[len(one) for one in lines])
    for panel, axis in axes:
        axis.set(xscale="linear" if against == "round" else "log", yscale="log" if is_log else "linear")
        for line in lines[panel]:
            style = chart.style(line["m"])
            if "lo" in line:
                axis.fill_between(line["x"], [math.nan if y is None else y for y in line["lo"]], [math.nan if y is None else y for y in line["hi"]],
                                  step="post", alpha=0.15, color=style["color"], linewidth=0)
            axis.step(line["x"], line["y"], where="post", **style)
    _thin_labels(axes[0][1])
    return figure


def _thin_labels(axis: Any) -> None:
    """Labels so few ticks of a logarithmic x axis that their texts do not touch, and two of them at least."""
    if axis.get_xscale() != "log":
        return
    low, high = axis.get_xlim()
    if high < 4 * low:  # ticks as on a linear axis
        ticker = needed("matplotlib.ticker", "fedbits.plot")
        axis.xaxis.set_major_locator(ticker.MaxNLocator(3))
        axis.xaxis.set_minor_locator(ticker.NullLocator())
        axis.xaxis.set_major_formatter(lambda x, _: _power_text(x) if x > 0 else "")
        return
    shown = _labelled(sorted({_digit(x) for x in axis.xaxis.get_minorticklocs() if low <= x <= high}),
                      sum(low <= x <= high for x in axis.xaxis.get_majorticklocs()))
    axis.xaxis.set_minor_formatter(lambda x, _: _power_text(x) if _digit(x) in shown else "")


def _labelled(digits: list[int], num_powers: int) -> list[int]:
    """Returns which of the digits of minor ticks are labelled, beside powers of ten."""
    if num_powers > 1:
        return []
    if num_powers == 1:
        return next(([one] for one in (3, 2, 5) if one in digits), digits[:1])
    return [2, 5] if {2, 5} <= set(digits) else digits[::2] if len(digits) > 3 else digits


def _digit(x: float) -> int:
    return round(x / 10.0 ** math.floor(math.log10(x) + 1e-9))


def _power_text(x: float) -> str:
    power = math.floor(math.log10(x) + 1e-9)
    return f"${x / 10.0**power:.6g}\\times10^{{{power}}}$"


def _bar(axis: Any, x: float, value: dict[str, Any], style: dict[str, Any]) -> None:
    low, high = value["t"]
    if low is not None:
        axis.vlines(x, low, high, color=style["color"], linewidth=1.1)
    axis.plot(x, value["mean"], marker="o", markersize=3.5, color=style["color"], linestyle="none")


def _forest_row(axis: Any, place: int, estimate: dict[str, Any], factor: float, colour: str, is_claim: bool) -> None:
    for interval, offset, width in ((estimate["t"], 0.0, 2.2), (estimate["b"], -0.22, 0.9)):
        if interval[0] is not None:
            axis.hlines(place + offset, interval[0] * factor, interval[1] * factor, color=colour, linewidth=width)
    axis.plot(estimate["mean"] * factor, place, marker="o", markersize=5, color=colour, markerfacecolor=colour if is_claim else "white", linestyle="none")


def _front(points: list[tuple[float, float]], is_lower_better: bool) -> list[tuple[float, float]]:
    """Returns the points that no other point beats in both bits and value, by bits."""
    front: list[tuple[float, float]] = []
    for bits, value in sorted(points, key=lambda point: (point[0], point[1] if is_lower_better else -point[1])):
        if not front or (value < front[-1][1]) == is_lower_better and value != front[-1][1]:
            front.append((bits, value))
    return front


def _is_log(scale: str, measure: dict[str, Any], chart: _Chart) -> bool:
    """Whether values are drawn on a logarithmic axis: by default the gaps f - f*, and values that are far apart."""
    _choice("scale", scale, ("auto", "linear", "log"))
    if scale != "auto":
        return scale == "log"
    if measure["share"]:
        return False
    values = [y for panel in chart.panels for line in measure["curves"]["round"][panel]["lines"] for y in line["y"] if y is not None]
    return bool(values) and min(values) > 0 and (measure["gap"] or max(values) > 100 * min(values))


def _places(what: str, labels: Any, known: list[str]) -> list[int]:
    """Returns the places of one label or of several, by default of all."""
    if labels is None:
        return list(range(len(known)))
    labels = [str(label) for label in (labels if isinstance(labels, Iterable) and not isinstance(labels, str) else [labels])]
    for label in labels:
        if label not in known:
            raise ValueError(f"there is no {what} {label!r}{_core.hint(label, known)} (known: {', '.join(known)})")
    return [known.index(label) for label in labels]


def _choice(name: str, value: str, choices: tuple[str, ...]) -> int:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, choices))}")
    return choices.index(value)


def _axis(axis: Any) -> Any:
    """Gives an axis the looks of the report."""
    axis.tick_params(which="both", labelsize=7, color="#d9dee3", labelcolor=_SOFT)
    axis.grid(color="#eceff2", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color("#d9dee3")
    return axis


@functools.cache
def _figure_class() -> Callable[..., Any]:
    """Returns a class of figures that notebooks show, although no pyplot knows of them."""
    base = needed("matplotlib.figure", "fedbits.plot").Figure

    class Figure(base):  # type: ignore[misc, valid-type]
        def _repr_png_(self) -> bytes:
            import io

            png = io.BytesIO()
            self.savefig(png, format="png", bbox_inches="tight", dpi=120)
            return png.getvalue()

    return Figure
