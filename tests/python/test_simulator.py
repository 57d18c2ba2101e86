"""Studies from Python: the command line's results, its errors, its ways to be stopped, and progress."""
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import fedbits
from fedbits import progress
from fedbits.words import in_python
from studies import STUDY, TUNED, command_line


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def tables(folder, name):
    return [path.read_bytes() for path in fedbits.export.csv(folder, name, reproducible=True)]


# ---- results

@pytest.mark.parametrize("study", [STUDY, TUNED], ids=["plain", "tuned"])
@pytest.mark.parametrize("command, play, options", [("run", fedbits.run, {"threads": 1}), ("run", fedbits.run, {"threads": 3}),
                                                    ("sweep", fedbits.sweep, {"jobs": 1}), ("sweep", fedbits.sweep, {"jobs": 3, "threads": 2})])
def test_results_are_those_of_the_command_line(tmp_path, study, command, play, options):
    (tmp_path / "study.toml").write_text(study)
    command_line(command, "study.toml", "--out", "theirs", "--quiet")
    command_line("export", "theirs", "--runs", "runs.csv", "--rounds", "rounds.csv", "--reproducible")
    store = play("study.toml", out="ours", progress=False, **options)
    assert tables(store, "tables") == [(tmp_path / name).read_bytes() for name in ("runs.csv", "rounds.csv")]
    if study is TUNED:
        assert tables("theirs/tuning", "a") == tables("ours/tuning", "b")


def test_stored_runs_are_kept(tmp_path):
    first = fedbits.run(STUDY, out="out", progress=False)
    seconds = first.columns("runs")["seconds"]
    started = []
    fedbits.run(STUDY, out="out", progress=lambda at: started.append(at.run) if at.event == "started" else None)
    assert not started and np.array_equal(first.columns("runs")["seconds"], seconds)
    fedbits.run(STUDY, out="out", again=True, progress=lambda at: started.append(at.run) if at.event == "started" else None)
    assert sorted(started) == sorted(first.columns("runs")["run"])


def test_a_path_a_text_a_dict_and_a_scenario_are_the_same(tmp_path):
    import tomllib

    (tmp_path / "study.toml").write_text(STUDY)
    sources = ["study.toml", tmp_path / "study.toml", STUDY, tomllib.loads(STUDY), fedbits.Scenario(STUDY)]
    hashes = [[one["run"] for one in fedbits.Scenario(source).runs()] for source in sources]
    assert all(one == hashes[0] for one in hashes) and len(set(hashes[0])) == 18


def test_settings_in_their_forms_are_the_same():
    alone = {"sweep": {"axis": [], "seeds": 1}}
    forms = [{"partition": {"alpha": 0.3}, "rounds": 3}, {"partition__alpha": 0.3, "rounds": np.int64(3)}, {"partition.alpha": np.float64(0.3), "rounds": 3}]
    runs = [fedbits.Scenario(STUDY, **alone, **form).runs() for form in forms]
    assert runs[0] == runs[1] == runs[2] and len(runs[0]) == 1
    compressors = [fedbits.TopK(ratio=0.01), {"kind": "top_k", "ratio": 0.01}]
    assert len({fedbits.Scenario(STUDY, **alone, compressor={"up": one}).runs()[0]["run"] for one in compressors}) == 1


def test_the_store_is_in_the_folder_of_the_name():
    store = fedbits.run(STUDY, progress=False, rounds=1)
    assert str(store.folder) == "fedbits-out/small" and store.folder.is_dir()


# ---- errors

@pytest.mark.parametrize("settings, words", [
    ({"local__learning_rat": 0.1}, ["local.learning_rat", 'did you mean "learning_rate"']),
    ({"rounds": -1}, ["rounds", "-1"]),
    ({"model": {"kind": "logistic_regresion"}}, ["logistic_regresion", "logistic_regression"]),
    ({"compressor__down": {"kind": "top_k", "ratio": 2.0}}, ["ratio", "2"]),
    ({"partition__clients": 1_000_000}, ["clients"]),
])
def test_errors_are_those_of_the_command_line(tmp_path, settings, words):
    (tmp_path / "study.toml").write_text(STUDY)
    with pytest.raises(fedbits.ConfigError) as caught:
        fedbits.run("study.toml", out="out", progress=False, **settings)
    changes = [f"--set={one}" for one in fedbits._toml.settings(settings)]
    said = command_line("run", "study.toml", "--out", "out", *changes, status=2).stderr.strip()
    # Other tests register models of their own, which the list of known ones has here.
    assert str(caught.value).split(" known: ")[0] == said.split(" known: ")[0].replace("--set ", "")
    assert all(word in said for word in words)
    assert caught.value.problems and not (tmp_path / "out").exists()


def test_a_place_in_the_text_is_named():
    with pytest.raises(fedbits.ConfigError, match=r'^scenario:6:1: data\.test_fractio: unknown key; did you mean "test_fraction"') as caught:
        fedbits.run(STUDY.replace("test_fraction", "test_fractio"), out="out")
    assert caught.value.problems[0][0] == "scenario:6:1"


TABLE = {"name": "table", "rounds": 3, "data": {"name": "mushrooms"}, "partition": {"kind": "shuffled", "clients": 4},
         "model": {"kind": "logistic_regression", "l2": 0.01}, "local": {"kind": "gradient", "learning_rate": 0.5}}


@pytest.mark.parametrize("use, words", [
    (lambda: fedbits.run(TABLE, thread=1), "^thread=1: thread: unknown key; did you mean the argument threads="),
    (lambda: fedbits.run(TABLE, data_dir="x"), '^data_dir="x": data_dir: unknown key; did you mean the argument data_folder=. .known'),
    (lambda: fedbits.plan(TABLE, thread=1), "did you mean the argument threads="),
    (lambda: fedbits.run(TABLE, device="gpu"), "^device: must be one of cpu, cuda, auto; is 'gpu'; did you mean 'cuda'.$"),
    (lambda: fedbits.run(TABLE, device="GPU"), "did you mean 'cuda'"),
    (lambda: fedbits.run(TABLE, device="CPU"), "did you mean 'cpu'"),
    (lambda: fedbits.run(TABLE, device="cuda:1"), "did you mean 'cuda'. The environment variable CUDA_VISIBLE_DEVICES chooses one"),
    (lambda: fedbits.run(TABLE, seeds=3), "^seeds=3: seeds: must be a table, is 3; did you mean sweep__seeds=3.$"),
    (lambda: fedbits.run(TABLE, lr=0.1), "^lr=0.1: lr: unknown key; did you mean local__learning_rate=0.1. .known"),
    (lambda: fedbits.Scenario(TABLE, lr=0.1), "did you mean local__learning_rate=0.1"),
    (lambda: fedbits.run(TABLE, batch_size=8), "did you mean local__batch=8"),
    (lambda: fedbits.run(TABLE, num_rounds=8), "did you mean rounds=8"),
    (lambda: fedbits.run(TABLE, roundss=8), "did you mean rounds=8"),
    (lambda: fedbits.run(TABLE, measure="accuracy"), r'^measure="accuracy": measure: unknown key; every study measures its losses and test_accuracy; '
     r'Store.comparison\(measure="test_accuracy"\) .*evaluate__measures=\[...\] adds other measures \(known'),
    (lambda: fedbits.run(TABLE, metrics=["accuracy"]), "every study measures its losses and test_accuracy"),
    (lambda: fedbits.run(TABLE, verbose=False), "did you mean the argument progress="),
    (lambda: fedbits.run(TABLE, output_dir="x"), "did you mean the argument out="),
    (lambda: fedbits.run(TABLE, workers=2), "did you mean the argument jobs= of fedbits.sweep"),
    (lambda: fedbits.sweep(TABLE, n_jobs=2), "did you mean the argument jobs=."),
    (lambda: fedbits.run(TABLE, shard="1/2"), "did you mean the argument shard= of fedbits.sweep"),
    (lambda: fedbits.sweep(TABLE, block=2), "did you mean the argument block= of fedbits.run"),
    (lambda: fedbits.run(TABLE, compressor=fedbits.TopK(k=3)), r"did you mean compressor__up=\.\.\."),
    (lambda: fedbits.run(TABLE, compressor="top_k"), 'did you mean compressor__up__kind="top_k"'),
    (lambda: fedbits.run(TABLE, feedback="ef21"), 'did you mean feedback__up__kind="ef21"'),
    (lambda: fedbits.run(TABLE, data="mnist"), 'did you mean data__name="mnist"'),
    (lambda: fedbits.run(TABLE, dataset="mnist"), 'did you mean data__name="mnist"'),
    (lambda: fedbits.run(TABLE, data="synthetic"), 'did you mean data__kind="synthetic"'),
    (lambda: fedbits.run(TABLE, model="mlp"), 'did you mean model__kind="mlp"'),
    (lambda: fedbits.run(TABLE, model={"kind": "logistic_regresion"}), 'model.kind: .*did you mean "logistic_regression"'),
    (lambda: fedbits.run(TABLE | {"data": {"name": "mnist"}}, data_folder="."),
     r"^data\.name: .*clone builds, gets it.*`fedbits data fetch mnist --data DIR`; then pass data_folder=DIR$"),
    (lambda: fedbits.run(TABLE | {"model": {"kind": "logistic_regression", "l22": 1}}), r"^model\.l22: unknown key"),
    (lambda: fedbits.Scenario(TABLE | {"model": {"kind": "logistic_regression", "l22": 1}}), r"^model\.l22: unknown key"),
    (lambda: fedbits.run(TABLE, state_memory="2X"), "^state_memory: must be a size"),
    (lambda: fedbits.run(TABLE, data_folder="nowhere"), "^data_folder nowhere: there is no such folder"),
    (lambda: fedbits.sweep(TABLE, shard="3/2"), "^shard: must be i/n"),
])
def test_errors_name_arguments_of_python(monkeypatch, use, words):
    monkeypatch.delenv("FEDBITS_DATA", raising=False)
    with pytest.raises(fedbits.ConfigError, match=words):
        use()


@pytest.mark.parametrize("text, words", [
    ("interrupted: 2 of 3 runs are stored in out; --resume continues", "interrupted: 2 of 3 runs are stored in out; resume=True continues"),
    ("a label--data, `fedbits run FILE --out FOLDER` and --slope-test", "a label--data, `fedbits run FILE --out FOLDER` and --slope-test"),
    ("--memory allows more, a.batch needs less; choose another folder with --out", "memory allows more, a.batch needs less; choose another folder with out"),
])
def test_options_of_the_command_line_become_arguments(text, words):
    assert in_python(text) == words


def test_a_folder_for_models_is_checked_before_the_study(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in ("file", "file/models"):
        with pytest.raises(fedbits.StoreError, match="^save_model: nothing can be saved in .*file is a file"):
            fedbits.run(TABLE, out=tmp_path / "out", save_model=tmp_path / folder)
    assert not (tmp_path / "out").exists()
    fedbits.run(TABLE, out=tmp_path / "out", progress=False, save_model=tmp_path / "new" / "models")
    assert list((tmp_path / "new" / "models").iterdir())


@pytest.mark.parametrize("wrong", [3, None, b"rounds = 2", ["study.toml"]])
def test_what_is_no_scenario_is_refused(wrong):
    with pytest.raises(TypeError, match="a scenario is a path"):
        fedbits.run(wrong)


@pytest.mark.parametrize("value", [object(), None, {1: 2}, b"x"])
def test_a_value_that_no_option_can_take_is_refused(value):
    with pytest.raises(TypeError):
        fedbits.run(STUDY, out="out", local={"learning_rate": value})
    assert not os.path.exists("out")


@pytest.mark.parametrize("wrong, error, words", [
    (lambda: fedbits.suggest(ratio="1%"), TypeError, "ratio is '1%'; it must be a number"),
    (lambda: fedbits.suggest(STUDY, k=3, measure="ten"), TypeError, "measure is 'ten'; it must be a whole number"),
    (lambda: fedbits.check(fedbits.TopK), TypeError, "is no name of a part; give that of a scenario, as 'top_k'"),
    (lambda: fedbits.check("top_k", only="bits"), TypeError, "it must be a list of checks, as ['bits']"),
    (lambda: fedbits.Scenario(STUDY, compressor={"up": fedbits.TopK}), TypeError, "TopK is a class; a value of a scenario is one of its objects, as TopK(...)"),
    (lambda: fedbits.run(STUDY, rounds=None), TypeError, "None is of type NoneType"),
    (lambda: fedbits.run(STUDY, feedback=fedbits.EF21), TypeError, "a scenario names the kind of a feedback, as feedback__up__kind='ef21'"),
    (lambda: fedbits.Scenario(STUDY).learning_rate, AttributeError, "learning_rate: unknown key; did you mean \"local.learning_rate\"?"),
    (lambda: fedbits.run(3), TypeError, "this is of type int"),
])
def test_a_wrong_argument_is_named(wrong, error, words):
    with pytest.raises(error, match=re.escape(words)):
        wrong()
    assert not os.path.exists("out")


@pytest.mark.parametrize("options, error, words", [
    ({"threads": 0}, fedbits.ConfigError, "threads: must be from 1 to 4096, is 0"),
    ({"checkpoint_minutes": float("nan")}, fedbits.ConfigError, "checkpoint_minutes: must be from 0"),
    ({"resume": True, "again": True}, fedbits.ConfigError, "give one of them"),
    ({"model_format": "npz"}, fedbits.ConfigError, "must be one of npy, safetensors; is 'npz'"),
    ({"device": "gpu"}, fedbits.ConfigError, "did you mean 'cuda'"),
    ({"state_memory": "2Q"}, fedbits.ConfigError, "such as 8G or 500M"),
    ({"jobs": 3}, fedbits.ConfigError, "jobs: unknown key; did you mean the argument jobs= of fedbits.sweep"),
    ({"out": 3}, TypeError, "out is 3; it must be a path"),
    ({"threads": "two"}, TypeError, "threads is 'two'; it must be a whole number"),
    ({"threads": 1.5}, TypeError, "threads is 1.5; it must be a whole number"),
    ({"progress": 3}, TypeError, "progress is 3; it must be a function, True for bars, False for nothing, or None"),
    ({"checkpoint_minutes": "5"}, TypeError, "checkpoint_minutes is '5'; it must be a number"),
])
def test_an_option_out_of_its_range_is_named(options, error, words):
    with pytest.raises(error, match=words):
        fedbits.run(STUDY, **{"out": "out", "progress": False} | options)
    assert not os.path.exists("out")


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(fedbits.Error, match="missing.toml"):
        fedbits.run("missing.toml")


def test_an_unwritable_folder_is_named(tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(fedbits.StoreError, match="out"):
        fedbits.run(STUDY, out="out", progress=False)


def test_runs_that_diverge_are_stored_and_told():
    with pytest.warns(fedbits.StudyWarning, match="diverged") as told:
        store = fedbits.run(STUDY, out="out", progress=False, local__learning_rate=1e9, model__l2=10.0, rounds=40)
    status = store.columns("runs")["status"]
    assert set(status) == {"diverged"} and len(told) <= 6


def test_a_sweep_of_a_begun_folder_needs_a_word():
    fedbits.sweep(STUDY, out="out", progress=False, shard="1/2")
    fedbits.sweep(STUDY, out="out/shard-1-of-2", progress=False, resume=True)
    assert len(fedbits.Store("out/shard-1-of-2").columns("runs")["run"]) == 18
    with pytest.raises(fedbits.ConfigError, match="holds 18 of the 24"):
        fedbits.sweep(STUDY, out="out/shard-1-of-2", progress=False, sweep__seeds=4)


# ---- progress

LONG_TO_PREPARE = {
    "name": "long", "rounds": 5, "precision": "float64",
    "data": {"kind": "synthetic", "clients": 40, "features": 400, "classes": 40, "alpha": 1, "beta": 1},
    "partition": {"kind": "natural", "clients": 40}, "model": {"kind": "logistic_regression", "l2": 1e-9},
    "local": {"kind": "gradient", "learning_rate": 0.01}, "compressor": {"up": {"kind": "top_k", "ratio": 0.1}}, "feedback": {"up": {"kind": "ef14"}}}


@pytest.mark.parametrize("play", [fedbits.run, fedbits.sweep])
def test_progress_tells_every_run(play):
    seen = []
    store = play(STUDY, out="out", progress=seen.append)
    ended = [at for at in seen if at.event == "ended"]
    assert [at.runs for at in seen if at.event == "study"] == [18]
    assert sorted(at.run for at in ended) == sorted(store.columns("runs")["run"])
    assert all(at.status == "done" and at.round == at.rounds == 6 and at.title.startswith("small ") for at in ended)
    assert {at.number for at in ended} == set(range(1, 19))


@pytest.mark.parametrize("play", [fedbits.run, fedbits.sweep])
def test_an_error_in_the_callback_comes_out_and_the_study_can_go_on(play):
    class Mine(Exception):
        pass

    def fail(at):
        if at.event == "ended":
            raise Mine(at.title)

    with pytest.raises(Mine):
        play(STUDY, out="out", progress=fail, rounds=500)
    assert 1 <= list(fedbits.Store("out").columns("runs")["status"]).count("done") < 18
    whole = play(STUDY, out="out", progress=False, rounds=500, resume=True)
    assert tables(whole, "a") == tables(play(STUDY, out="other", progress=False, rounds=500), "b")


def test_bars_are_shown_where_tqdm_is_there(capsys):
    pytest.importorskip("tqdm", reason="TOOL MISSING: no tqdm here")
    fedbits.run(STUDY, out="out", rounds=2)
    assert "18/18" in capsys.readouterr().err


def test_progress_true_names_the_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="pip install tqdm"):
        fedbits.run(STUDY, out="out", progress=True)
    fedbits.run(STUDY, out="out", rounds=1)


class Clock:
    """A clock that tests set."""

    seconds = 0.0

    def __call__(self):
        return self.seconds


def test_lines_come_after_two_seconds_and_then_every_five(capsys):
    clock = Clock()
    lines = progress._Lines(lambda seconds: f"after {seconds:g} s" if seconds != 7 else "", clock)
    seen = []
    for clock.seconds in range(20):
        lines.tick()
        seen.append(capsys.readouterr().err)
    assert [second for second, text in enumerate(seen) if text] == [2, 12, 17] and seen[12] == "fedbits: after 12 s\n"


def test_lines_say_what_is_done_and_how_long_it_takes(monkeypatch):
    clock = Clock()
    shown = progress._StudyLines(clock)
    told = iter(["", "the data are read: 3 of 9 files (12 s)", *[""] * 9])
    monkeypatch.setattr(fedbits._core, "take_preparation", lambda: next(told))

    def text_at(seconds, *events):
        clock.seconds = seconds
        for event in events:
            shown(fedbits.Progress(**event))
        return shown.text(seconds)

    assert text_at(2) == "preparing" and text_at(7) == "preparing: the data are read: 3 of 9 files"
    tuning = {"event": "tuning", "text": "matching bits, step 2", "runs": 8, "workers": 2}
    assert text_at(10, {"event": "stage", "text": "tuning"}) == "tuning"
    assert text_at(10, tuning) == "matching bits, step 2: 0/8 runs, 2 at a time"
    assert text_at(16, tuning | {"done": 2}) == "matching bits, step 2: 2/8 runs, 2 at a time, 18 s left"
    run = {"number": 1, "runs": 5, "title": "small 1/5", "rounds": 100}
    assert text_at(20, {"event": "study", "runs": 5, "pending": 4, "workers": 3}, run | {"event": "started"}) == (
        "0/4 runs, 3 at a time; small 1/5: preparing")
    assert text_at(30, run | {"event": "round", "round": 50, "train_loss": 0.25, "test_accuracy": 0.9}) == (
        "0/4 runs, 3 at a time, 70 s left; small 1/5: round 50/100, loss 0.25, accuracy 0.9")
    assert text_at(40, run | {"event": "ended", "round": 100, "status": "diverged"}) == "1/4 runs, 1 failed or diverged, 3 at a time, 60 s left"
    others = [{"event": "ended", "number": number, "runs": 5, "rounds": 100, "round": 100, "status": "done"} for number in (2, 3)]
    assert text_at(2000, *others) == "3/4 runs, 1 failed or diverged, 3 at a time, 11 min left"


def test_a_study_whose_runs_are_stored_says_nothing(monkeypatch):
    shown = progress._StudyLines(Clock())
    shown(fedbits.Progress("study", runs=5, pending=0))
    assert shown.text(9.0) == ""


@pytest.fixture
def without_tqdm(monkeypatch):
    """Lines in the place of bars, many a second."""
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(progress, "_FIRST_S", 0.02)
    monkeypatch.setattr(progress, "_EVERY_S", 0.02)


@pytest.mark.parametrize("play, options", [(fedbits.run, {}), (fedbits.sweep, {"jobs": 2})])
def test_lines_are_written_where_tqdm_is_missing(capsys, without_tqdm, play, options):
    play(TUNED, out="out", rounds=300, **options)
    told = capsys.readouterr().err
    assert all(line.startswith("fedbits: ") for line in told.splitlines())
    assert re.search(r"tuning, comparing candidates: \d+/12 runs", told) and re.search(r"fedbits: \d/6 runs.* left; small \d/6 ", told)
    assert ", 2 at a time" in told and re.search(r"fedbits: 6/6 runs in \d+ (s|min)\n$", told)


def test_lines_say_what_is_prepared(capsys, without_tqdm, monkeypatch):
    written = progress._Lines.write

    def write_and_stop(lines, text):
        written(lines, text)
        if "the minimum of f is looked for" in text:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(progress._Lines, "write", write_and_stop)
    with pytest.raises(KeyboardInterrupt):
        fedbits.run(LONG_TO_PREPARE)
    assert "fedbits: preparing: the minimum of f is looked for" in capsys.readouterr().err


def test_progress_false_says_nothing(capsys, without_tqdm):
    fedbits.run(STUDY, out="out", rounds=500, progress=False)
    assert capsys.readouterr().err == ""


def test_a_study_without_stderr_goes_on(without_tqdm, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    fedbits.run(STUDY, out="out", rounds=500)


def test_tuning_is_told():
    seen = []
    fedbits.run(TUNED, out="out", progress=seen.append)
    tuning = [at for at in seen if at.event == "tuning"]
    assert [at.text for at in seen if at.event == "stage"] == ["tuning"]
    steps = {text: [at for at in tuning if at.text == text] for text in dict.fromkeys(at.text for at in tuning)}
    assert list(steps)[:2] == ["tuning, finding the budget of bits", "tuning, comparing candidates"]
    assert all([at.done for at in step] == list(range(step[0].runs + 1)) and step[0].workers >= 1 for step in steps.values())
    assert [at.event for at in seen].index("study") > seen.index(tuning[-1])


def test_nothing_that_is_tuned_has_no_stage():
    seen = []
    fedbits.run(STUDY, out="out", progress=seen.append)
    assert not [at for at in seen if at.event in ("stage", "tuning")]


def test_other_threads_of_python_go_on():
    stop, count = threading.Event(), [0]

    def counting():
        while not stop.is_set():
            count[0] += 1

    thread = threading.Thread(target=counting)
    thread.start()
    try:
        during = []
        fedbits.run(STUDY, out="out", rounds=300, progress=lambda at: during.append(count[0]) if at.event == "ended" else None)
    finally:
        stop.set()
        thread.join()
    assert len(during) == 18 and len(set(during)) > 9


def test_studies_in_several_threads():
    stores = {}
    threads = [threading.Thread(target=lambda i=i: stores.update({i: fedbits.run(STUDY, out=f"out{i}", seed=i, progress=False)})) for i in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in (1, 2):
        assert tables(stores[i], f"a{i}") == tables(fedbits.run(STUDY, out=f"alone{i}", seed=i, progress=False), f"b{i}")


# ---- stopping

LONG = textwrap.dedent("""
    import sys
    import fedbits
    from studies import STUDY
    def show(at):
        if at.event == "ended" and at.number >= 2:
            print("going", flush=True)
    play = getattr(fedbits, sys.argv[1])
    try:
        play(STUDY, out="out", progress=show, rounds=3000, evaluate__every=50)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.exit(3)
""")


def begin(command):
    path = os.pathsep.join([os.path.dirname(__file__), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen([sys.executable, "-c", LONG, command], stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path})
    assert process.stdout.readline() == "going\n"
    return process


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize("way", ["interrupt", "kill"])
def test_a_stopped_study_is_whole_and_goes_on(command, way):
    process = begin(command)
    process.send_signal(signal.SIGINT if way == "interrupt" else signal.SIGKILL)
    rest, _ = process.communicate(timeout=120)
    assert (process.returncode, rest.splitlines()[-1:]) == (3, ["interrupted"]) if way == "interrupt" else process.returncode == -signal.SIGKILL
    status = list(fedbits.Store("out").columns("runs")["status"])
    assert 1 <= status.count("done") < 18 and set(status) <= {"done", "interrupted"}
    assert len(status) < 18  # a run that was being prepared has nothing to keep
    play = getattr(fedbits, command)
    whole = play(STUDY, out="out", progress=False, rounds=3000, evaluate__every=50, resume=True)
    assert tables(whole, "a") == tables(play(STUDY, out="other", progress=False, rounds=3000, evaluate__every=50), "b")


def test_an_interrupt_leaves_the_handler_of_python():
    before = signal.getsignal(signal.SIGINT)
    has_begun = threading.Event()

    def interrupt():
        if has_begun.wait(60):
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        fedbits.run(STUDY, out="out", progress=lambda at: at.event == "round" and has_begun.set(), rounds=100_000, evaluate__every=1000)
    assert "interrupted" in fedbits.Store("out").columns("runs")["status"]
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)


@pytest.mark.parametrize("play", [fedbits.run, fedbits.plan])
def test_an_interrupt_ends_the_search_for_a_minimum(play):
    timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        play(LONG_TO_PREPARE)
    timer.join()
    assert not os.path.exists("fedbits-out/long/results.sqlite")


# ---- plan, suggest, check

def test_a_plan_predicts_the_bits(tmp_path):
    plan = fedbits.plan(STUDY, seconds=0.05)
    runs = fedbits.run(STUDY, out="out", progress=False).columns("runs")
    assert plan["runs"] == 18 and len(plan["combinations"]) == 6 and not any(one["failure"] for one in plan["combinations"])
    top = next(one for one in plan["combinations"] if one["axes"] == {"partition.alpha": "0.1", "compressor.up": "top-5%"})
    is_top = (runs["partition.alpha"] == "0.1") & (runs["compressor.up"] == "top-5%")
    assert top["rounds"] == 6 and top["bits_up"] == pytest.approx(runs["bits_up"][is_top].mean(), rel=0.01)
    assert plan["wall_s"] > 0 and plan["worker_bytes"] > 0 and not (tmp_path / "fedbits-out").exists()


def test_suggestions_are_the_command_lines(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    found = fedbits.suggest("study.toml", ratio=0.05, measure=4)
    said = command_line("suggest", "study.toml", "--ratio", 0.05, "--measure", 4).stdout
    assert found["unit"] == "gradient"  # a threshold on gradients is no lambda, which is for steps
    for name, words in (("lambda_rule", "the rule of Sahu"), ("lambda_equal_bounds", "equal bounds"), ("threshold_measured", "measured on gradients")):
        line = next(line for line in said.splitlines() if words in line and " = " in line)
        assert float(line.split(" = ")[1].split()[0]) == pytest.approx(found[name], rel=1e-3)
    assert fedbits.suggest(k=100)["lambda_rule"] == pytest.approx(0.05)
    assert fedbits.suggest(lambda_=0.05)["k_rule"] == pytest.approx(100)
    with pytest.raises(fedbits.ConfigError, match="give one of k, ratio, lambda_ and epsilon"):
        fedbits.suggest()


def test_parts_are_checked():
    checks = fedbits.check("top_k", only=["bits"], k=3)
    assert [(one.part, one.name) for one in checks] == [("top_k", "bits")] and all(checks)
    with pytest.raises(fedbits.ConfigError, match="did you mean 'top_k'"):
        fedbits.check("top_q")
    with pytest.raises(fedbits.ConfigError, match="ratio"):
        fedbits.check("top_k", rati=0.1)
    assert fedbits._core.describe("compressor", "top_k")["fields"][0]["default"] in (None, 0)


# ---- scenarios

def test_a_scenario_completes_its_keys():
    scenario = fedbits.Scenario(STUDY)
    assert {"local", "partition", "rounds", "compressor"} <= set(dir(scenario))
    assert {"learning_rate", "batch", "kind"} <= set(dir(scenario.local)) and "ratio" not in dir(scenario.compressor.down)
    scenario.compressor.down = fedbits.TopK(ratio=0.1)
    assert "ratio" in dir(scenario.compressor.down) and scenario.compressor.down.ratio == 0.1
    assert "local.learning_rate" in scenario.keys() and "local.learning_rate" in scenario


def test_a_scenario_gives_and_takes_values():
    scenario = fedbits.Scenario(STUDY)
    assert (scenario.rounds, scenario.local.batch, scenario.local.schedule, scenario["partition.alpha"]) == (6, 16, "constant", 0.1)
    scenario.local.batch = 4
    scenario["rounds"] = 2
    copy = scenario.copy()
    copy.rounds = 3
    assert (scenario.local.batch, scenario.rounds, copy.rounds) == (4, 2, 3) and "local.batch=4" in repr(scenario)
    assert list(fedbits.run(scenario, out="out", progress=False).columns("runs")["rounds"]) == [2] * 18


def test_a_scenario_refuses_unknown_keys_and_wrong_values():
    scenario = fedbits.Scenario(STUDY)
    for change, words in [(lambda: setattr(scenario.local, "learning_rat", 1), 'did you mean "learning_rate"'),
                          (lambda: setattr(scenario, "round", 1), 'did you mean "rounds"'),
                          (lambda: setattr(scenario.local, "batch", -1), "local.batch"),
                          (lambda: setattr(scenario.compressor, "down", {"kind": "top_q"}), "top_k"),
                          (lambda: setattr(scenario.compressor, "up", fedbits.TopK(k=3)), "an axis of .sweep. sets compressor.up")]:
        with pytest.raises(fedbits.ConfigError, match=words):
            change()
    with pytest.raises(AttributeError, match='did you mean "learning_rate"'):
        scenario.local.learning_rat
    assert repr(scenario) == "<Scenario scenario>" and not hasattr(scenario, "_ipython_display_")


def test_keys_of_a_part_may_come_one_after_another():
    scenario = fedbits.Scenario(STUDY, sweep={"axis": [], "seeds": 1})
    scenario.compressor.up.kind = "hard_threshold"
    scenario.compressor.up.threshold = 0.1
    assert scenario.compressor.up.threshold == 0.1 and len(scenario.runs()) == 1
