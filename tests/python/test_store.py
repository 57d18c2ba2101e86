"""Stores from Python: tables, comparisons, and the report in a notebook."""
import csv
import html
import re
import sys

import numpy as np
import pytest

import fedbits
from studies import STUDY, TUNED, command_line

pandas = pytest.importorskip("pandas", reason="TOOL MISSING: no pandas here")


def test_tables_have_the_cells_of_the_export(store, tmp_path):
    for table, path in zip(("runs", "rounds"), fedbits.export.csv(store, tmp_path)):
        frame = getattr(store, table)
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        assert list(frame.columns) == list(rows[0]) and len(frame) == len(rows) > 0
        for name in set(frame.columns) - {"configuration"}:
            texts = [row[name] for row in rows]
            if frame[name].dtype == object or str(frame[name].dtype).startswith("str"):
                assert [as_text(value) for value in frame[name]] == texts, name
            else:
                np.testing.assert_array_equal(frame[name].to_numpy(float), [float(text) if text else np.nan for text in texts], name)


def as_text(value):
    return "" if value is None or value != value else str(value).lower() if isinstance(value, bool) else value


def test_bits_are_integers_and_configurations_are_dicts(store):
    runs, rounds = store.runs, store.rounds
    assert runs["bits_up"].dtype == rounds["bits_up"].dtype == rounds["cumulative_bits_up"].dtype == np.int64
    assert runs["configuration"][0]["local"]["batch"] == 16
    last = rounds.groupby("run", sort=False)["cumulative_bits_up"].last()
    assert (last.to_numpy() == runs["bits_up"].to_numpy()).all()


def test_columns_need_no_pandas(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(store.columns("rounds")["train_loss"], np.ndarray)
    for use in (lambda: store.runs, lambda: store.rounds, store.comparison):
        with pytest.raises(ImportError, match="pip install pandas"):
            use()


def test_a_comparison_is_the_reports(store):
    frame = store.comparison("qsgd", measure="train_loss")
    assert set(frame["baseline"]) == {"qsgd"} and set(frame["level"]) == {"0.1", "100"} and list(frame["measure"].unique()) == ["train_loss"]
    data = store.chart_data(baseline="qsgd", measure="train_loss")
    shown = {(data["panels"][one["panel"]]["level"], data["methods"][one["method"]]): one for one in data["measures"][0]["bits"]["up"]["comparisons"]}
    assert len(shown) == len(frame)
    for _, row in frame.iterrows():
        one = shown[row["level"], row["method"]]
        if one["difference"]["mean"] is not None:
            assert row["difference"] == pytest.approx(one["difference"]["mean"], rel=1e-6)
            assert [row["difference_low"], row["difference_high"]] == pytest.approx(one["difference"]["t"], rel=1e-6)
        assert (row["verdict"], row["why"]) == (one["verdict"], one["why"])


def test_comparisons_at_shares_and_of_all_bits(store):
    assert set(store.comparison("qsgd", at="shares", measure="train_loss")["share"]) == {0.25, 0.5, 1.0}
    up, both = (store.comparison("qsgd", bits=bits, measure="train_loss")["budget_bits"] for bits in ("up", "both"))
    assert (both > up).all()
    assert any("; baseline compares with another" in note for note in store.comparison().attrs["notes"])


@pytest.mark.parametrize("use, error, words", [
    (lambda store: store.comparison("topp-5%"), fedbits.ConfigError, "top-5%"),
    (lambda store: store.comparison(measure="train_los"), fedbits.ConfigError, "measure: 'train_los' is not a measured column of rounds.csv; did you mean "
     "'train_loss'? (known: f_gap, "),
    (lambda store: store.comparison(measure="accuracy"), fedbits.ConfigError, "did you mean 'test_accuracy'?"),
    (lambda store: store.comparison(measure="beauty"), fedbits.ConfigError, "'beauty' is not a measured column of rounds.csv (known: "),
    (lambda store: store.comparison(bits="upp"), fedbits.ConfigError, "did you mean 'up'"),
    (lambda store: store.comparison(baselin="qsgd"), TypeError, "did you mean 'baseline'"),
    (lambda store: store.comparison(at="equals"), ValueError, "'equal' or 'shares'"),
    (lambda store: store.columns("runds"), ValueError, "'runs' and 'rounds'"),
    (lambda store: store.report(level="partition.alfa"), fedbits.ConfigError, "partition.alpha"),
])
def test_what_the_store_does_not_have_is_named(store, use, error, words):
    with pytest.raises(error, match=re.escape(words)):
        use(store)


@pytest.fixture
def stores(tmp_path, monkeypatch, store):
    """Two stores in fedbits-out, and beside them a folder, a file, and a store of its own."""
    import shutil

    monkeypatch.chdir(tmp_path)
    for folder in ("fedbits-out/quickstart", "fedbits-out/tuned", "mine"):
        shutil.copytree(store.folder, tmp_path / folder)
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("no database")


A_STORE = "; a store is a folder that fedbits.run or fedbits.sweep has written, out= or fedbits-out/NAME"


@pytest.mark.parametrize("folder, words", [
    ("nope", "there is no folder nope" + A_STORE + "; the stores here are 'mine', 'fedbits-out/quickstart', 'fedbits-out/tuned'"),
    ("quickstart", "there is no folder quickstart" + A_STORE + "; did you mean 'fedbits-out/quickstart'?"),
    ("fedbits-out/quikstart", "did you mean 'fedbits-out/quickstart'?"),
    ("fedbits-out", "fedbits-out holds no results.sqlite" + A_STORE + "; the folder holds the stores 'fedbits-out/quickstart', 'fedbits-out/tuned'"),
    ("empty", "empty holds no results.sqlite" + A_STORE),
    ("", ". holds no results.sqlite" + A_STORE + "; the folder holds the stores 'mine'"),
    ("notes.txt", "notes.txt: file is not a database"),
])
def test_a_folder_that_is_no_store_is_an_error_at_once(stores, folder, words):
    for use in (fedbits.Store, lambda folder: fedbits.export.csv(folder, "tables"), lambda folder: fedbits.plot.density(folder)):
        with pytest.raises(fedbits.StoreError, match=re.escape(words)):
            use(folder)
    assert len(fedbits.Store("mine").columns("runs")["run"]) == len(fedbits.Store("mine/results.sqlite").columns("runs")["run"])


def test_a_store_that_is_gone_is_named_when_it_is_read(stores):
    import shutil

    gone = fedbits.Store("mine")
    shutil.rmtree("mine")
    with pytest.raises(fedbits.StoreError, match="no results in mine: mine/results.sqlite is not there.* with out$"):
        gone.columns()


def test_a_shard_without_runs_has_a_store(tmp_path):
    for part in (1, 2):
        fedbits.sweep(STUDY, out=tmp_path, progress=False, shard=f"{part}/2", rounds=1, sweep={"axis": [], "seeds": 1})


def test_a_report_is_the_command_lines_page(store, tmp_path):
    try:
        report = store.report(baseline="qsgd", target=0.3)
    except fedbits.ConfigError as error:
        pytest.skip(f"TOOL MISSING: {error}")
    command_line("report", store.folder, "--baseline", "qsgd", "--target", 0.3, "-o", tmp_path / "theirs.html")
    assert report.save(tmp_path / "ours.html").read_text() == (tmp_path / "theirs.html").read_text()
    frame = report._repr_html_()
    srcdoc = re.fullmatch(r'<iframe srcdoc="([^"]*)" style="[^"]*"></iframe>', frame)
    assert srcdoc and html.unescape(srcdoc[1]) == report.page


def test_a_damaged_run_is_left_out_and_told(store, tmp_path):
    import shutil
    import sqlite3

    folder = shutil.copytree(store.folder, tmp_path / "damaged")
    with sqlite3.connect(folder / "results.sqlite") as database:
        database.execute("UPDATE runs SET bits_up = bits_up + 1 WHERE id = 1")
    with pytest.warns(fedbits.StudyWarning, match="is damaged.*left out"):
        assert len(fedbits.Store(folder).columns("runs")["run"]) == len(store.columns("runs")["run"]) - 1


def test_studies_in_one_folder_are_kept_apart(tmp_path):
    first = fedbits.run(STUDY, out=tmp_path, progress=False)
    second = fedbits.run(STUDY, out=tmp_path, progress=False, rounds=5)
    for store, rounds in ((first, 6), (second, 5)):
        assert set(store.columns("runs")["rounds"]) == {rounds} and set(store.columns("rounds")["round"]) == set(range(rounds + 1))
        assert len(store.runs) == 18 and store.chart_data()["name"] == f"rounds = {rounds}"
        assert store.comparison()["pairs"].max() == 3
    again = fedbits.run(STUDY, out=tmp_path, progress=False, **{"sweep.seeds": 1})
    assert len(again.columns("runs")["run"]) == 18 and set(again.columns("runs")["rounds"]) == {6}

    whole = fedbits.Store(tmp_path)
    with pytest.warns(fedbits.StudyWarning, match="holds 2 studies.*'rounds = 6'.*Store.study"):
        assert len(whole.columns("runs")["run"]) == 36
    assert {name: len(runs) for name, runs in whole.studies.items()} == {"rounds = 5": 18, "rounds = 6": 18}
    assert set(whole.study("rounds = 6").runs["run"]) == set(first.runs["run"]) and "rounds = 6" in repr(whole.study("rounds = 6"))
    with pytest.raises(fedbits.ConfigError, match="no study 'rounds = 7'; there are 'rounds = 5', 'rounds = 6'"):
        whole.study("rounds = 7")


def test_tuned_values_and_seeds_make_no_other_study(tmp_path, recwarn):
    store = fedbits.run(TUNED, out=tmp_path, progress=False)
    fedbits.run(TUNED, out=tmp_path, progress=False, **{"sweep.seeds": 2})
    assert len(store.studies) == 1 and len(fedbits.Store(tmp_path).runs) == len(store.runs) == 12
    assert not [one for one in recwarn if "studies" in str(one.message)]
