"""Charts of the report with matplotlib."""
import copy
import inspect
import re
import shutil
import subprocess

import pytest

import fedbits
from fedbits import _drawing

matplotlib = pytest.importorskip("matplotlib", reason="TOOL MISSING: no matplotlib here")
plot = fedbits.plot

CHARTS = [(plot.accuracy_against_bits, {}), (plot.loss_against_bits, {"bits": "both"}), (plot.curves, {"measure": "f_gap", "against": "round"}),
          (plot.density, {}), (plot.clients, {}), (plot.price, {"measure": "train_loss"}), (plot.heterogeneity, {"measure": "train_loss"}),
          (plot.differences, {"measure": "train_loss", "baseline": "qsgd"}), (plot.contrasts, {"pairs": "top-5%:qsgd", "measure": "train_loss"}),
          (plot.contract, {"constant": "delta"}), (plot.splits, {})]


@pytest.mark.parametrize("chart, options", CHARTS, ids=[chart.__name__ for chart, _ in CHARTS])
def test_a_chart_is_drawn_and_saved(store, tmp_path, chart, options):
    figure = chart(store, **options)
    first, second = [tmp_path / "a.pdf", tmp_path / "a.svg"], [tmp_path / "b.pdf", tmp_path / "b.svg"]
    plot.save(figure, *first)
    plot.save(chart(store.folder, **options), *second)
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert first[0].read_bytes().startswith(b"%PDF") and b"<svg" in first[1].read_bytes()
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_curves_have_the_numbers_of_the_store(store):
    figure = plot.curves(store, "train_loss", against="round", levels=["0.1"], methods=["qsgd"])
    (line,) = figure.axes[0].lines
    rounds = store.columns("rounds")
    mine = (rounds["partition.alpha"] == "0.1") & (rounds["compressor.up"] == "qsgd")
    for x, y in zip(*line.get_data()):
        assert y == pytest.approx(rounds["train_loss"][mine & (rounds["round"] == int(x))].mean(), rel=1e-3)


def test_panels_share_their_axes_and_name_their_levels(store):
    figure = plot.accuracy_against_bits(store)
    first, second, legend = figure.axes
    assert [first.get_title(), second.get_title()] == ["partition.alpha = 0.1", "partition.alpha = 100"]
    assert first.get_ylim() == second.get_ylim() and first.get_xlim() == second.get_xlim()
    assert {text.get_text() for text in legend.get_legend().get_texts()} == {"none", "top-5%", "qsgd"}


@pytest.mark.parametrize("draw, words", [(lambda store: plot.curves(store, "train_loss", methods=["qsg"]), "did you mean 'qsgd'"),
                                         (lambda store: plot.curves(store, "train_loss", levels=[0.2]), "no level '0.2'"),
                                         (lambda store: plot.curves(store, "train_loss", scale="logg"), "scale is 'logg'"),
                                         (lambda store: plot.curves(store, "train_loss", against="upp"), "did you mean 'up'"),
                                         (lambda store: plot.contract(store, "delt"), "constant is 'delt'"),
                                         (lambda store: plot.theory(store), "nothing that this chart draws")])
def test_what_cannot_be_drawn_is_named(store, draw, words):
    with pytest.raises(ValueError, match=words):
        draw(store)


@pytest.mark.parametrize("draw", [lambda store: plot.price(store, "train_loss"), lambda store: plot.price(store, "train_loss", methods=["top-5%", "qsgd"]),
                                  lambda store: plot.heterogeneity(store, "train_loss"),
                                  lambda store: plot.accuracy_against_bits(store, methods="top-5%")])
def test_labels_of_a_logarithmic_axis_do_not_touch(store, draw):
    figure = draw(store)
    require_apart(figure, figure.axes[0])


@pytest.mark.parametrize("width", [2.0, 2.25])
@pytest.mark.parametrize("low", [1.0, 2.1, 3.5, 5.1, 8.5])
@pytest.mark.parametrize("span", [1.01, 1.2, 1.7, 2.5, 3.9, 4.0, 8.0, 12.0, 30.0, 90.0, 300.0])
def test_labels_of_any_range_do_not_touch(low, span, width):
    figure = _drawing.figure_class()(figsize=(width, 0.8 * width), layout="constrained")
    axis = _drawing.styled(figure.add_subplot())
    axis.set(xscale="log", xlim=(low * 1e5 * 0.99, low * span * 1e5))
    _drawing.thin_labels(axis)
    require_apart(figure, axis)


def require_apart(figure, axis):
    figure.draw_without_rendering()
    low, high = axis.get_xlim()
    boxes = sorted((label.get_window_extent().x0, label.get_window_extent().x1, label.get_text())
                   for label in axis.get_xticklabels(which="both") if label.get_text() and low <= label.get_position()[0] <= high)
    assert len(boxes) > 1
    for left, right in zip(boxes, boxes[1:]):
        assert left[1] < right[0], f"{left[2]} touches {right[2]}"


def test_axes_say_what_they_show(store):
    assert plot.differences(store, "train_loss", baseline="qsgd").axes[0].get_xlabel() == "training loss,\ndifference to qsgd (%)"
    splits = plot.splits(store).axes
    assert [axis.get_ylabel() for axis in splits] == ["class", ""]


def test_one_label_is_a_selection(store):
    figure = plot.curves(store, "train_loss", methods="top-5%", levels=0.1)
    assert [text.get_text() for text in figure.axes[-1].get_legend().get_texts()] == ["top-5%"] and len(figure.axes) == 2


def test_saving_needs_a_path(store):
    with pytest.raises(TypeError, match="needs the paths of files"):
        plot.save(plot.density(store))


# ---- signatures

FUNCTIONS = [function for name, function in sorted(vars(plot).items())
             if inspect.isfunction(function) and function.__module__ == "fedbits.plot" and not name.startswith("_") and name != "save"]


def test_every_chart_is_tested():
    assert {chart for chart, _ in CHARTS} | {plot.theory} == set(FUNCTIONS)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_arguments_are_named_in_the_signature(function):
    parameters = inspect.signature(function).parameters
    assert not any(one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL) for one in parameters.values())
    assert {"store", "size", "figure", "baseline", "method", "level", "study"} <= set(parameters) and ("ax" in parameters or function is plot.splits)
    assert all(one.annotation != one.empty for one in parameters.values())
    assert "errors are those of" in re.sub(r"\s+", " ", function.__doc__) or "Raises" in function.__doc__
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        function("nowhere", siz="page")


# ---- sizes

@pytest.mark.parametrize("options, width, height", [
    ({"size": "column", "levels": 0.1}, 3.25, 0.8 * 3.25 + 0.3),
    ({"size": "column"}, 3.25, 2 * 2.0 + 0.3),  # one panel below the other
    ({"size": "page"}, 6.75, 2.7 + 0.3),
    ({"size": 5.5}, 5.5, 0.8 * 5.5 / 2 + 0.3),
    ({"size": (4.0, 3.5)}, 4.0, 3.5),
    ({"levels": 0.1}, 3.25, 0.8 * 3.25 + 0.3),
    ({}, 4.5, 1.8 + 0.3),
])
def test_a_size_is_that_of_the_whole_figure_and_of_its_file(store, tmp_path, options, width, height):
    figure = plot.accuracy_against_bits(store, **options)
    assert figure.get_size_inches() == pytest.approx([width, height])
    plot.save(figure, tmp_path / "chart.pdf")
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", (tmp_path / "chart.pdf").read_bytes())
    assert [float(one) / 72 for one in box.groups()] == pytest.approx([width, height], abs=1e-3)
    figure.draw_without_rendering()
    box = figure.get_tightbbox()  # of all that is drawn: nothing is cut off
    assert -0.02 < box.x0 and box.x1 < width + 0.02 and -0.02 < box.y0 and box.y1 < height + 0.02


@pytest.mark.parametrize("options, error, words", [
    ({"size": "colum"}, ValueError, "size is 'colum'; did you mean 'column'.; it must be 'column' .3.25 in., 'page' .6.75 in., a width or"),
    ({"size": (1, 2, 3)}, ValueError, "size is .1, 2, 3.; it must have a width and a height, in inches"),
    ({"size": -1}, ValueError, "size is -1.0; it must be above 0"),
    ({"size": (3, "wide")}, TypeError, "the height of size is 'wide'; it must be a number"),
    ({"figure": 3}, TypeError, "figure is 3; it must be a Figure or a SubFigure of matplotlib"),
    ({"ax": "axes"}, TypeError, "ax is 'axes'; it must be an Axes of matplotlib, or a list of them"),
    ({"size": "page", "figure": 3}, TypeError, "give one of size, figure and ax"),
    ({"scale": "logg"}, ValueError, "scale is 'logg'; it must be one of 'auto', 'linear', 'log'"),
])
def test_a_wrong_look_is_named(store, options, error, words):
    with pytest.raises(error, match=words):
        plot.loss_against_bits(store, **options)


# ---- figures and axes of the user

def test_a_chart_is_drawn_in_axes_of_the_user(store):
    from matplotlib.figure import Figure

    mine = Figure(figsize=(6, 3))
    left, right = mine.subplots(1, 2)
    assert plot.curves(store, "train_loss", against="round", levels=0.1, ax=left) is mine
    assert left.get_title() == "partition.alpha = 0.1" and left.get_legend() is None
    left.legend()
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["none", "top-5%", "qsgd"]
    plot.price(store, "train_loss", ax=[left, right])
    plot.heterogeneity(store, "train_loss", ax=right)
    assert tuple(mine.get_size_inches()) == (6, 3) and len(mine.axes) == 2
    with pytest.raises(ValueError, match="ax has 1 axes, and there are 2 panels to draw; levels= selects panels"):
        plot.density(store, ax=left)


@pytest.mark.parametrize("kind", ["figure", "part of one"])
def test_a_chart_is_drawn_in_a_figure_of_the_user(store, tmp_path, kind):
    from matplotlib.figure import Figure

    whole = Figure(figsize=(8, 3), layout="constrained")
    mine = whole if kind == "figure" else whole.subfigures(1, 2)[1]
    assert plot.accuracy_against_bits(store, figure=mine) is mine
    assert len(mine.axes) == 3 and tuple(whole.get_size_inches()) == (8, 3)
    plot.save(whole, tmp_path / "whole.pdf")
    require_embedded_fonts(tmp_path / "whole.pdf")


# ---- ranges and scales

@pytest.fixture
def changed(store, monkeypatch):
    """Returns a function that changes the numbers of charts before they are drawn."""
    def change(how):
        original = fedbits.Store.chart_data

        def chart_data(self, **options):
            data = copy.deepcopy(original(self, **options))
            for measure in data["measures"]:
                for panels in measure["curves"].values():
                    for panel in panels:
                        for line in panel["lines"]:
                            how(line)
            for of_bits in data["measures"][0]["bits"].values():
                for one in of_bits["finals"] + of_bits["overLevels"]:
                    middle = {"y": [one["value"]["mean"]], "lo": [one["value"]["t"][0]], "hi": [one["value"]["t"][1]]}
                    how(middle)
                    one["value"] |= {"mean": middle["y"][0], "t": [middle["lo"][0], middle["hi"][0]]}
            return data

        monkeypatch.setattr(fedbits.Store, "chart_data", chart_data)

    return change


def widen(line):
    """Gives a line an interval that leaves every range."""
    line["lo"], line["hi"] = [-0.2] * len(line["y"]), [1.3] * len(line["y"])


@pytest.mark.parametrize("draw", [lambda store, measure: plot.curves(store, measure), lambda store, measure: plot.curves(store, measure, against="round"),
                                  plot.price, plot.heterogeneity])
def test_axes_stay_in_the_range_of_the_measure(store, changed, draw):
    changed(widen)
    for axis in draw(store, "test_accuracy").axes[:1]:
        assert axis.get_ylim() == (0.0, 1.0)
    for axis in draw(store, "train_loss").axes[:1]:
        assert axis.get_ylim()[0] == 0.0 and axis.get_ylim()[1] > 1.3


def test_a_measure_that_may_be_negative_is_drawn_below_zero(store, changed):
    def lower(line):
        line["y"] = [-5.0 for _ in line["y"]]
        line["lo"], line["hi"] = [-6.0] * len(line["y"]), [-4.0] * len(line["y"])

    changed(lower)
    assert plot.curves(store, "train_loss").axes[0].get_ylim()[0] < -6


def test_shares_and_accuracies_of_clients_stay_in_their_range(store):
    for figure in (plot.density(store), plot.clients(store)):
        assert figure.axes[0].get_ylim()[0] >= 0 and figure.axes[0].get_ylim()[1] <= 1


def between(first, last):
    def how(line):
        steps = max(len(line["y"]) - 1, 1)
        line["y"] = [first * (last / first) ** (i / steps) for i in range(len(line["y"]))]
        line["lo"], line["hi"] = [-last for _ in line["y"]], [2 * y for y in line["y"]]

    return how


@pytest.mark.parametrize("measure, first, last, scale", [("f_gap", 0.5, 1e-6, "log"), ("f_gap", 0.5, 0.04, "log"), ("f_gap", 0.5, 0.2, "linear"),
                                                         ("train_loss", 0.5, 0.04, "linear"), ("train_loss", 0.5, 1e-3, "log"),
                                                         ("test_accuracy", 1e-4, 0.9, "linear")])
def test_gaps_that_span_a_decade_are_on_a_logarithmic_axis(store, changed, measure, first, last, scale):
    changed(between(first, last))
    axis = plot.curves(store, measure).axes[0]
    assert axis.get_yscale() == scale
    if scale == "log":  # the values fill the axis, whatever the intervals do
        low, high = axis.get_ylim()
        assert last / 2 < low < last and first < high < 2 * first
    assert plot.curves(store, measure, scale="linear").axes[0].get_yscale() == "linear"


def test_a_gap_that_rounding_leaves_at_zero_is_on_a_logarithmic_axis_too(store, changed):
    def how(line):
        between(0.5, 1e-6)(line)
        line["y"][-1] = -1e-17

    changed(how)
    axis = plot.curves(store, "f_gap", against="round").axes[0]
    assert axis.get_yscale() == "log" and axis.get_ylim()[0] > 1e-7


def test_a_logarithmic_axis_needs_values_above_zero(store, changed):
    changed(lambda line: line.update(y=[0.0] * len(line["y"])))
    with pytest.raises(ValueError, match="scale is 'log', and no value is above 0"):
        plot.curves(store, "f_gap", scale="log")
    assert plot.curves(store, "f_gap").axes[0].get_yscale() == "linear"


# ---- files

def require_embedded_fonts(path):
    """TrueType fonts are embedded, and there is no Type 3 font, which publishers refuse."""
    data = path.read_bytes()
    assert b"/FontFile2" in data and b"/Type3" not in data
    if shutil.which("pdffonts") is None:
        return
    listed = subprocess.run(["pdffonts", path], capture_output=True, text=True, check=True).stdout.splitlines()
    place = listed[0].index("emb")
    assert len(listed) > 2 and all(line[place:place + 3] == "yes" and "Type 3" not in line for line in listed[2:])


@pytest.mark.parametrize("chart, options", CHARTS, ids=[chart.__name__ for chart, _ in CHARTS])
def test_fonts_are_embedded(store, tmp_path, chart, options):
    figure = chart(store, **options)
    plot.save(figure, tmp_path / "saved.pdf")
    figure.savefig(tmp_path / "own.pdf")
    for name in ("saved.pdf", "own.pdf"):
        require_embedded_fonts(tmp_path / name)


def test_settings_of_matplotlib_stay_as_they_are(store, tmp_path):
    matplotlib.rcParams["pdf.fonttype"], matplotlib.rcParams["font.size"] = 3, 13
    try:
        before = dict(matplotlib.rcParams)
        for chart, options in CHARTS:
            figure = chart(store, **options)
            plot.save(figure, tmp_path / "chart.pdf", tmp_path / "chart.svg")
            figure._repr_png_()
        assert dict(matplotlib.rcParams) == before
    finally:
        matplotlib.rcdefaults()
