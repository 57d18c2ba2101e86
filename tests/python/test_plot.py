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
