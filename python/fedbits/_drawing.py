"""What the charts of fedbits.plot share: the data of a study, the place where it is drawn, styles and axes."""
from __future__ import annotations

import contextlib
import functools
import io
import math
from typing import Any, Callable, Iterable, Iterator, NamedTuple, Sequence

from fedbits import _core, arguments
from fedbits.needed import needed
from fedbits.store import Store

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito
DASHES = ("-", (0, (6, 3)), (0, (2, 3)), (0, (8, 3, 2, 3)))
INK, SOFT = "#1b1f24", "#57606a"
BITS = {"up": "uplink bits", "both": "bits up and down", "published": "published uplink bits", "entropy": "entropy bound of uplink bits",
        "seconds": "simulated seconds"}
WIDTHS = {"column": 3.25, "page": 6.75}  # inches, of the template of ICML
_PANEL, _LEAST_PANEL, _MOST_ROW, _LEGEND = 2.25, 2.0, 2.0, 0.3  # inches: widths of a panel, height of one among several rows, and of the legend
_ASPECT = 0.8  # height / width of a panel
_MOST_COLUMNS = 3
# PDF and PostScript with TrueType fonts, which publishers take, and SVG with texts. The ids of an SVG do not depend on chance.
_FILES = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "fedbits"}
_NAME = "fedbits.plot"
Labels = str | float | Sequence[Any] | None
Size = str | float | tuple[float, float] | None


class Range(NamedTuple):
    """The values that a measure can have."""

    least: float = -math.inf
    most: float = math.inf


class Place:
    """Where a chart is drawn: in a figure of its own, in one of the user's, or in axes of the user's. Sizes are in inches."""

    def __init__(self, size: Size, figure: Any, ax: Any):
        if sum(one is not None for one in (size, figure, ax)) > 1:
            raise TypeError("give one of size, figure and ax: the size is that of a figure that is made here")
        self.size, self.figure = _checked_size(size), figure
        self.axes = None if ax is None else list(ax.flat) if hasattr(ax, "flat") else list(ax) if isinstance(ax, (list, tuple)) else [ax]
        if figure is not None and not hasattr(figure, "add_gridspec"):
            raise TypeError(f"figure is {arguments.shown(figure)}; it must be a Figure or a SubFigure of matplotlib")
        for one in self.axes or ():
            if not hasattr(one, "plot"):
                raise TypeError(f"ax is {arguments.shown(one)}; it must be an Axes of matplotlib, or a list of them")

    def columns(self, panels: int) -> int:
        """Returns the number of panels beside each other."""
        width = self.size[0] if self.size else None
        if self.figure is not None:
            width = self.figure.bbox.width / self.figure.dpi  # of a SubFigure, too
        most = _MOST_COLUMNS if width is None else max(1, min(_MOST_COLUMNS, int(width / _LEAST_PANEL)))
        return min(panels, most)

    def grid(self, panels: int, *, height: float | None = None, has_legend: bool = False) -> tuple[Any, Any, int]:
        """Returns a figure, a grid of axes in it with a row for the legend, and the grid's columns. height: of a row, in inches."""
        columns = self.columns(panels)
        rows = math.ceil(panels / columns)
        width = self.size[0] if self.size else WIDTHS["column"] if panels == 1 else _PANEL * columns
        row = height or min(_ASPECT * width / columns, _MOST_ROW if rows > 1 else math.inf)
        whole = self.size[1] if self.size and self.size[1] else row * rows + _LEGEND * has_legend
        figure = self.figure if self.figure is not None else figure_class()(figsize=(width, whole), layout="constrained")
        return figure, figure.add_gridspec(rows + has_legend, columns, height_ratios=[row] * rows + [0.25] * has_legend), columns


def _checked_size(size: Size) -> tuple[float, float | None] | None:
    """Returns a width and a height in inches; no height = one that suits the panels."""
    if size is None:
        return None
    if isinstance(size, str):
        if size not in WIDTHS:
            raise ValueError(f"size is {size!r}{_core.hint(size, list(WIDTHS))}; it must be 'column' ({WIDTHS['column']} in), 'page' ({WIDTHS['page']} in), "
                             "a width or (width, height) in inches")
        return WIDTHS[size], None
    if isinstance(size, (tuple, list)):
        if len(size) != 2:
            raise ValueError(f"size is {arguments.shown(size)}; it must have a width and a height, in inches")
        return arguments.positive("the width of size", size[0]), arguments.positive("the height of size", size[1])
    return arguments.positive("size", size), None


class Chart:
    """The data of a study for charts, with the methods and levels that are drawn and their styles."""

    def __init__(self, store: Any, place: Place, methods: Labels, levels: Labels, **options: Any):
        needed("matplotlib", _NAME)
        self.place = place
        self.data = (store if isinstance(store, Store) else Store(store)).chart_data(**options)
        self.methods = _places("method", methods, self.data["methods"])
        names = [panel["level"] or panel["title"] for panel in self.data["panels"]]
        wanted = _places("level", levels, names)
        self.panels = [place for place, name in enumerate(names) if name in [names[one] for one in wanted]]

    def measure(self) -> dict[str, Any]:
        return self.data["measures"][0]

    def of_bits(self, bits: str) -> dict[str, Any]:
        return self.measure()["bits"][known(bits, self.measure()["bits"])]

    def label(self, method: int) -> str:
        return self.data["methods"][method]

    def shows(self, one: dict[str, Any]) -> bool:
        return one["method"] in self.methods and one["panel"] in self.panels

    def counts(self, rows: Iterable[dict[str, Any]]) -> list[int]:
        """Returns how many of the rows belong to each panel."""
        places = [one["panel"] for one in rows]
        return [places.count(panel) for panel in range(len(self.data["panels"]))]

    def lines(self, curve: dict[str, Any]) -> list[dict[str, Any]]:
        """Returns the lines of a panel with their horizontal positions; the last point lies where the first run ended."""
        found = []
        for line in curve["lines"]:
            if line["m"] in self.methods:
                xs = curve["x"][line["from"]:line["from"] + len(line["y"])]
                found.append(line | {"x": [*xs[:-1], line["end"]]} | {key: numbers(line[key]) for key in ("y", "lo", "hi") if key in line})
        return found

    def range_of_measure(self) -> Range:
        """Returns the range of the measure: shares lie in [0, 1], gaps are at least 0, and so is what is at least 0 in every run of the study."""
        measure = self.measure()
        if measure["share"]:
            return Range(0.0, 1.0)
        values = [y for panel in measure["curves"]["round"] for line in panel["lines"] for y in line["y"] if y is not None]
        return Range(0.0) if measure["gap"] or (values and min(values) >= 0) else Range()

    def style(self, method: int) -> dict[str, Any]:
        if method == self.data["baseline"]:
            return {"color": INK, "linestyle": "-", "linewidth": 1.3}
        if self.data["isReference"][method]:
            return {"color": SOFT, "linestyle": ":", "linewidth": 1.3}
        place = sum(other != self.data["baseline"] and not self.data["isReference"][other] for other in range(method))
        return {"color": COLOURS[place % len(COLOURS)], "linestyle": DASHES[place // len(COLOURS) % len(DASHES)], "linewidth": 1.3}

    def axes(self, *, x: str, y: str, drawn: Sequence[int], is_one: bool = False, has_legend: bool = True,
             height: float | None = None) -> tuple[Any, list[tuple[int, Any]]]:
        """Returns a figure, and (panel, axis) of each panel in which something is drawn. Panels of a figure share their axes."""
        panels = [0] if is_one else [panel for panel in self.panels if drawn[panel] > 0]
        if not panels or not sum(drawn):
            raise ValueError("these runs have nothing that this chart draws")
        if self.place.axes is not None:
            return self._given_axes(panels, x, y, is_one)
        figure, grid, columns = self.place.grid(len(panels), height=height, has_legend=has_legend)
        axes: list[Any] = []
        for place, panel in enumerate(panels):
            shared = axes[0] if axes else None
            axes.append(styled(figure.add_subplot(grid[place // columns, place % columns], sharex=shared, sharey=shared)))
            self._name(axes[-1], panel, x if place + columns >= len(panels) else "", y if place % columns == 0 else "", is_one)
            axes[-1].tick_params(which="both", labelleft=place % columns == 0, labelbottom=place + columns >= len(panels))
        if has_legend:
            handles = [needed("matplotlib.lines", _NAME).Line2D([], [], label=self.label(method), **self.style(method)) for method in self.methods]
            below = figure.add_subplot(grid[-1, :])
            below.axis("off")
            below.legend(handles=handles, loc="center", ncol=min(len(handles), 4 if columns > 1 else 3), fontsize=8, frameon=False)
        return figure, list(zip(panels, axes))

    def _given_axes(self, panels: list[int], x: str, y: str, is_one: bool) -> tuple[Any, list[tuple[int, Any]]]:
        axes = self.place.axes or []
        if len(axes) != len(panels):
            raise ValueError(f"ax has {len(axes)} axes, and there are {len(panels)} panels to draw; levels= selects panels")
        for panel, axis in zip(panels, axes):
            self._name(styled(axis), panel, x, y, is_one)
        return axes[0].figure, list(zip(panels, axes))

    def _name(self, axis: Any, panel: int, x: str, y: str, is_one: bool) -> None:
        if not is_one:
            axis.set_title(self.data["panels"][panel]["title"], fontsize=8)
        axis.set_xlabel(x, fontsize=8)
        axis.set_ylabel(y, fontsize=8)


def numbers(values: Iterable[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def known(name: str, names: Iterable[str]) -> str:
    """Returns a name that is one of the names, or raises ValueError with the nearest."""
    if name not in names:
        raise ValueError(f"there is no {name!r}{_core.hint(str(name), list(names))} (known: {', '.join(names)})")
    return name


def choice(name: str, value: str, choices: tuple[str, ...]) -> int:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, choices))}")
    return choices.index(value)


def _places(what: str, labels: Any, known: list[str]) -> list[int]:
    """Returns the places of one label or of several, by default of all."""
    if labels is None:
        return list(range(len(known)))
    labels = [str(label) for label in (labels if isinstance(labels, Iterable) and not isinstance(labels, str) else [labels])]
    for label in labels:
        if label not in known:
            raise ValueError(f"there is no {what} {label!r}{_core.hint(label, known)} (known: {', '.join(known)})")
    return [known.index(label) for label in labels]


# ---- axes

def wants_log(scale: str, measure: dict[str, Any], values: Iterable[float]) -> bool:
    """Whether these values are drawn on a logarithmic axis: with "auto" those of a gap f - f* that span a decade, and others above 0 that span two."""
    choice("scale", scale, ("auto", "linear", "log"))
    finite = [value for value in values if math.isfinite(value)]
    above = [value for value in finite if value > 0]
    if scale == "log" and not above:
        raise ValueError("scale is 'log', and no value is above 0")
    if scale != "auto" or measure["share"] or not above:
        return scale == "log"
    if measure["gap"]:  # rounding may leave some of them at 0 or below
        return 2 * len(above) > len(finite) and max(above) > 10 * min(above)
    return len(above) == len(finite) and max(above) > 100 * min(above)


def set_scale(axes: Sequence[Any], is_log: bool, within: Range, values: Iterable[float]) -> None:
    """Chooses the scale of vertical axes, whose limits stay in the range of the measure; intervals end at the edge."""
    above = [value for value in values if value > 0]
    for axis in axes:
        if is_log:
            axis.set_yscale("log", nonpositive="mask")
            axis.set_ylim(min(above) / 1.3, min(max(above) * 1.3, within.most))
            continue
        low, high = axis.get_ylim()
        axis.set_ylim(max(low, within.least), min(high, within.most))


def drawn_y(value: float, is_log: bool) -> float:
    """Returns where a value is drawn: on a logarithmic axis, an end of an interval that is not above 0 lies below every edge."""
    return value if not is_log or value > 0 or math.isnan(value) else 1e-300


def bar(axis: Any, x: float, value: dict[str, Any], style: dict[str, Any], is_log: bool) -> None:
    """Draws a dot at the mean with Student's interval."""
    low, high = value["t"]
    if low is not None:
        axis.vlines(x, drawn_y(low, is_log), drawn_y(high, is_log), color=style["color"], linewidth=1.1)
    axis.plot(x, value["mean"], marker="o", markersize=3.5, color=style["color"], linestyle="none", label=style.get("label"))


def forest_row(axis: Any, place: int, estimate: dict[str, Any], factor: float, colour: str, is_claim: bool) -> None:
    for interval, offset, width in ((estimate["t"], 0.0, 2.2), (estimate["b"], -0.22, 0.9)):
        if interval[0] is not None:
            axis.hlines(place + offset, interval[0] * factor, interval[1] * factor, color=colour, linewidth=width)
    axis.plot(estimate["mean"] * factor, place, marker="o", markersize=5, color=colour, markerfacecolor=colour if is_claim else "white", linestyle="none")


def forest_height(rows: int) -> float:
    """Returns the height of a panel with a row for each method, in inches."""
    return max(1.8, 0.2 * rows + 0.7)


def forest_names(axis: Any, names: Sequence[str]) -> None:
    """Names the rows from the top to the bottom."""
    axis.set_yticks(range(len(names)), list(reversed(names)))
    axis.set_ylim(-0.6, len(names) - 0.4)


def styled(axis: Any) -> Any:
    """Gives an axis the looks of the report."""
    axis.tick_params(which="both", labelsize=7, color="#d9dee3", labelcolor=SOFT)
    axis.grid(color="#eceff2", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color("#d9dee3")
    return axis


def thin_labels(axis: Any) -> None:
    """Labels so few ticks of a logarithmic x axis that their texts do not touch, and two of them at least."""
    if axis.get_xscale() != "log":
        return
    low, high = axis.get_xlim()
    if high < 4 * low:  # ticks as on a linear axis
        ticker = needed("matplotlib.ticker", _NAME)
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


# ---- files

@contextlib.contextmanager
def file_settings() -> Iterator[None]:
    """Sets how figures are written, and puts the user's settings back."""
    with needed("matplotlib", _NAME).rc_context(_FILES):
        yield


@functools.cache
def figure_class() -> Callable[..., Any]:
    """Returns a class of figures that notebooks show, although no pyplot knows of them, and whose savefig() embeds fonts as save() does."""
    base = needed("matplotlib.figure", _NAME).Figure

    class Figure(base):  # type: ignore[misc, valid-type]
        def savefig(self, *given: Any, **options: Any) -> None:
            with file_settings():
                super().savefig(*given, **options)

        def _repr_png_(self) -> bytes:
            png = io.BytesIO()
            self.savefig(png, format="png", dpi=120)
            return png.getvalue()

    return Figure
