"""Charts of the report with matplotlib."""
import pytest

import fedbits

pytest.importorskip("matplotlib", reason="TOOL MISSING: no matplotlib here")
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


@pytest.mark.parametrize("low", [1.0, 2.1, 3.5, 5.1, 8.5])
@pytest.mark.parametrize("span", [1.01, 1.2, 1.7, 2.5, 3.9, 4.0, 8.0, 12.0, 30.0, 90.0, 300.0])
def test_labels_of_any_range_do_not_touch(low, span):
    figure = plot._Chart.empty(plot._SIZE)
    axis = plot._axis(figure.add_subplot())
    axis.set(xscale="log", xlim=(low * 1e5 * 0.99, low * span * 1e5))
    plot._thin_labels(axis)
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
