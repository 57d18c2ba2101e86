"""Exports of stores for other programs, read back with those programs."""
import sys

import numpy as np
import pytest

import fedbits
from studies import command_line


def test_csv_has_the_bytes_of_the_command_line(store, tmp_path):
    ours = fedbits.export.csv(store, tmp_path / "ours")
    command_line("export", store.folder, "--runs", tmp_path / "runs.csv", "--rounds", tmp_path / "rounds.csv")
    assert [path.read_bytes() for path in ours] == [(tmp_path / name).read_bytes() for name in ("runs.csv", "rounds.csv")]


def test_parquet(store, tmp_path):
    reader = pytest.importorskip("pyarrow.parquet", reason="TOOL MISSING: no pyarrow here")
    for table, path in zip(("runs", "rounds"), fedbits.export.parquet(store, tmp_path)):
        read, kept = reader.read_table(path), store.columns(table)
        assert read.column_names == list(kept)
        for name in set(kept) - {"configuration"}:
            if kept[name].dtype == object:
                assert read[name].to_pylist() == list(kept[name])
            else:
                np.testing.assert_array_equal(read[name].to_numpy(), kept[name])


def test_tensorboard(store, tmp_path):
    pytest.importorskip("tensorboardX", reason="TOOL MISSING: no tensorboardX here")
    from tensorboardX.proto import event_pb2

    fedbits.export.tensorboard(store, tmp_path / "logs")
    folders = sorted(fedbits.export.tensorboard(store, tmp_path / "logs").iterdir())
    assert all(len(list(folder.iterdir())) == 1 for folder in folders)
    runs, rounds = store.columns("runs"), store.columns("rounds")
    assert len(folders) == len(runs["run"])
    for folder in folders:
        (run,) = (run for run in runs["run"] if folder.name.endswith(run[:8]))
        losses = [(event.step, value.simple_value) for event in events_of(next(folder.iterdir()), event_pb2) for value in event.summary.value
                  if value.tag == "train_loss"]
        mine = rounds["run"] == run
        assert [step for step, _ in losses] == list(rounds["round"][mine])
        np.testing.assert_array_equal(np.float32([loss for _, loss in losses]), rounds["train_loss"][mine].astype(np.float32))


def events_of(path, proto):
    data, at = path.read_bytes(), 0
    while at < len(data):  # length, its checksum, the record, its checksum
        size = int.from_bytes(data[at:at + 8], "little")
        event = proto.Event()
        event.ParseFromString(data[at + 12:at + 12 + size])
        at += 16 + size
        yield event


def address_of(kind, folder):
    """Returns an address of MLflow: a folder, or a database, for which mlflow-skinny needs two packages more."""
    if kind == "folder":
        return folder / "mlruns"
    for package in ("sqlalchemy", "alembic"):
        pytest.importorskip(package, reason=f"TOOL MISSING: no {package} here")
    return f"sqlite:///{folder / 'mlflow.db'}"


@pytest.fixture(params=["folder", "database"])
def mlflow_address(request, tmp_path, monkeypatch):
    pytest.importorskip("mlflow", reason="TOOL MISSING: no mlflow here")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return address_of(request.param, tmp_path)


def logged_runs(address):
    """Returns a client of MLflow, and the runs of the experiment "small"."""
    import mlflow

    client = mlflow.MlflowClient(tracking_uri=address)
    (experiment,) = [one for one in client.search_experiments() if one.name == "small"]
    return client, list(client.search_runs([experiment.experiment_id], max_results=100))


def test_mlflow(store, mlflow_address):
    address = fedbits.export.mlflow(store, mlflow_address, progress=False)
    fedbits.export.mlflow(store, mlflow_address, progress=False)  # adds nothing
    client, logged = logged_runs(address)
    runs, rounds = store.columns("runs"), store.columns("rounds")
    assert sorted(one.data.tags["fedbits.run"] for one in logged) == sorted(runs["run"])
    one = logged[0]
    history = sorted(client.get_metric_history(one.info.run_id, "train_loss"), key=lambda metric: metric.step)
    mine = rounds["run"] == one.data.tags["fedbits.run"]
    assert [metric.step for metric in history] == list(rounds["round"][mine]) and [metric.value for metric in history] == list(rounds["train_loss"][mine])
    assert one.data.params["local.batch"] == "16" and one.info.status == "FINISHED"


def test_metrics_that_are_written_at_once_are_those_that_mlflow_writes(store, mlflow_address, monkeypatch):
    """A table or a folder that is not as it is known falls back to calls of log_batch, as a server does."""
    seen = {}
    for way in ("at once", "by calls"):
        if way == "by calls":
            monkeypatch.setattr(fedbits._mlflow, "_has_known_tables", lambda database: False)
            monkeypatch.setattr(fedbits._mlflow, "_has_known_folder", lambda run: False)
            mlflow_address = str(mlflow_address).replace("mlflow.db", "other.db").replace("mlruns", "other")
        client, logged = logged_runs(fedbits.export.mlflow(store, mlflow_address, progress=False))
        seen[way] = {one.data.tags["fedbits.run"]: (
            one.data.metrics, one.data.params, one.info.status,
            {name: sorted((metric.step, metric.timestamp, metric.value) for metric in client.get_metric_history(one.info.run_id, name))
             for name in one.data.metrics}) for one in logged[:4]}
    common = seen["at once"].keys() & seen["by calls"].keys()
    assert common and all(seen["at once"][run] == seen["by calls"][run] for run in common)
    assert len(seen["at once"][min(common)][3]["train_loss"]) == 41


def test_a_value_that_is_infinite_is_written_as_mlflow_writes_it(mlflow_address):
    import mlflow

    client = mlflow.MlflowClient(tracking_uri=str(mlflow_address))
    number = client.create_experiment("infinite")
    ours, theirs = client.create_run(number), client.create_run(number)
    with fedbits._mlflow.metric_writer(client, str(mlflow_address)) as write:
        write([(ours, [("loss", float("inf"), 1), ("loss", -float("inf"), 2), ("gap", 0.5, 2)])])
    for name, value, step in (("loss", float("inf"), 1), ("loss", -float("inf"), 2), ("gap", 0.5, 2)):
        client.log_metric(theirs.info.run_id, name, value, timestamp=step, step=step)
    for name in ("loss", "gap"):
        histories = [sorted((one.step, one.value) for one in client.get_metric_history(run.info.run_id, name)) for run in (ours, theirs)]
        assert histories[0] == histories[1]
    assert client.get_run(ours.info.run_id).data.metrics == client.get_run(theirs.info.run_id).data.metrics


def test_an_interrupted_export_to_mlflow_is_written_again(store, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="TOOL MISSING: no mlflow here")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    with monkeypatch.context() as patched:
        patched.setattr(mlflow.MlflowClient, "set_terminated", lambda *_, **__: None)
        patched.setattr(mlflow.MlflowClient, "set_tag", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            fedbits.export.mlflow(store, tmp_path)
    client = mlflow.MlflowClient(tracking_uri=fedbits.export.mlflow(store, tmp_path))
    (experiment,) = [one for one in client.search_experiments() if one.name == "small"]
    logged = client.search_runs([experiment.experiment_id], max_results=100)
    assert sorted(one.data.tags["fedbits.run"] for one in logged if "fedbits.run" in one.data.tags) == sorted(store.columns("runs")["run"])


def test_what_mlflow_needs_for_an_address_is_named(store, tmp_path, monkeypatch):
    pytest.importorskip("mlflow", reason="TOOL MISSING: no mlflow here")
    for module in ("sqlalchemy", "alembic"):
        monkeypatch.setitem(sys.modules, "sqlalchemy", sys)  # is there, as far as an import sees
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=f"sqlite:///x.db needs the package {module}: pip install {module}"):
            fedbits.export.mlflow(store, "sqlite:///x.db")
        monkeypatch.delitem(sys.modules, module)


def test_a_folder_that_mlflow_refuses_has_a_remedy(store, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="TOOL MISSING: no mlflow here")
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    if int(mlflow.__version__.split(".")[0]) < 3:
        pytest.skip("this MLflow writes to folders")
    with pytest.raises(RuntimeError, match="sqlite:///mlflow.db.*MLFLOW_ALLOW_FILE_STORE=true"):
        fedbits.export.mlflow(store, tmp_path / "mlruns")


def test_wandb(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="TOOL MISSING: no wandb here")
    from wandb.proto import wandb_internal_pb2

    monkeypatch.setenv("WANDB_CACHE_DIR", str(tmp_path / "cache"))
    few = fedbits.run(SMALL, out=tmp_path / "few", progress=False)
    (former,) = fedbits.export.wandb(few, tmp_path / "logs").glob("wandb/offline-run-*")
    former = former.rename(former.with_name(former.name.replace("run-2", "run-1", 1)))  # as if written long ago
    folder = fedbits.export.wandb(few, tmp_path / "logs")
    (file,) = folder.glob("wandb/offline-run-*/*.wandb")
    losses = {}
    for data in records_of(file):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        items = {item.key or item.nested_key[0]: item.value_json for item in record.history.item}
        if "train_loss" in items:
            losses[int(float(items["_step"]))] = float(items["train_loss"])
    rounds = few.columns("rounds")
    measured = ~np.isnan(rounds["train_loss"])
    assert losses == dict(zip(map(int, rounds["round"][measured]), map(float, rounds["train_loss"][measured])))


def records_of(path):
    """Yields the records of a log of LevelDB: pieces in blocks of 32 KiB, each after its checksum, length and kind."""
    data, at, record = path.read_bytes(), 7, b""
    while at < len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        size, kind = int.from_bytes(data[at + 4:at + 6], "little"), data[at + 6]
        record = (record if kind in (3, 4) else b"") + data[at + 7:at + 7 + size]
        at += 7 + size
        if kind in (1, 4):
            yield record


SMALL = {"name": "few", "rounds": 3, "data": {"name": "mushrooms"}, "partition": {"kind": "shuffled", "clients": 4},
         "model": {"kind": "logistic_regression", "l2": 0.01},
         "local": {"kind": "gradient", "learning_rate": 0.5}}


@pytest.mark.parametrize("name, package", [("tensorboard", "tensorboardX"), ("wandb", "wandb"), ("mlflow", "mlflow")])
def test_an_export_shows_its_progress(tmp_path, monkeypatch, capsys, name, package):
    pytest.importorskip(package, reason=f"TOOL MISSING: no {package} here")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    few = fedbits.run(SMALL, out=tmp_path / "few", progress=False)
    export = getattr(fedbits.export, name)
    export(few, tmp_path / "silent", progress=False)
    assert "fedbits:" not in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(fedbits.progress, "_FIRST_S", 0.0)
    export(few, tmp_path / "told")
    title = {"tensorboard": "TensorBoard", "wandb": "Weights & Biases", "mlflow": "MLflow"}[name]
    assert f"fedbits: {title}: 1/1 runs" in capsys.readouterr().err
    with pytest.raises(TypeError, match="progress is 3; it must be True for bars, False for nothing, or None"):
        export(few, tmp_path / "told", progress=3)


@pytest.mark.parametrize("name, package", [("parquet", "pyarrow"), ("tensorboard", "tensorboardX"), ("wandb", "wandb"), ("mlflow", "mlflow")])
def test_a_missing_package_is_named(store, tmp_path, monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"fedbits.export.{name} needs the package {package}: pip install {package}"):
        getattr(fedbits.export, name)(store, tmp_path)
