"""Stores for other programs: CSV, Parquet, TensorBoard, Weights & Biases (offline) and MLflow.

    fedbits.export.csv(store, "tables")
    fedbits.export.tensorboard(store, "logs")

Every function takes a Store (or its folder). The package of a format is imported when its function is called; ImportError names one that is missing.
The logs of TensorBoard, Weights & Biases and MLflow hold what was measured, by round, and the bits that all clients had sent until then; a run of the
store is a run there, named by its labels and seed.
"""
from __future__ import annotations

import json
import math
import os
import shutil
import warnings
from pathlib import Path
from typing import Any, Iterator

from fedbits import _core, _toml, arguments
from fedbits.needed import needed
from fedbits.store import Store, StudyWarning

# Columns of rounds.csv that say which round a row is of, and are no measurements.
_NOT_LOGGED = {"run", "round"}


def csv(store: Store | str, folder: str | os.PathLike[str], *, reproducible: bool = False, all_results: bool = False) -> list[Path]:
    """Writes runs.csv and rounds.csv into a folder, with the bytes of `fedbits export`, and returns their paths.

    reproducible: sorts the runs by their hash and leaves out seconds, so that equal results give equal bytes.  all_results: also runs whose results
    another version of fedbits made.
    """
    of = _store(store).folder
    paths = [_made(folder) / "runs.csv", _made(folder) / "rounds.csv"]
    for text in _core.export_tables(str(of), str(paths[0]), str(paths[1]), reproducible, all_results):
        warnings.warn(f"{text}; it is left out", StudyWarning, stacklevel=2)
    return paths


def parquet(store: Store | str, folder: str | os.PathLike[str]) -> list[Path]:
    """Writes runs.parquet and rounds.parquet into a folder, and returns their paths; needs pyarrow. `configuration` is JSON."""
    arrow, writer = needed("pyarrow", "fedbits.export.parquet"), needed("pyarrow.parquet", "fedbits.export.parquet")
    paths = []
    for table in ("runs", "rounds"):
        columns = {name: [json.dumps(one) if isinstance(one, dict) else one for one in values] if values.dtype == object else values
                   for name, values in _store(store).columns(table).items()}
        paths.append(_made(folder) / f"{table}.parquet")
        writer.write_table(arrow.table(columns), paths[-1])
    return paths


def tensorboard(store: Store | str, folder: str | os.PathLike[str]) -> Path:
    """Writes a folder of event files for each run, in the place of those that are there, and returns the folder for `tensorboard --logdir`.

    Needs tensorboardX.
    """
    package, folder = needed("tensorboardX", "fedbits.export.tensorboard"), arguments.path("folder", folder)
    for run in _runs(store):
        for old in (Path(folder) / run.file_name).glob("events.out.tfevents.*"):
            old.unlink()
        with package.SummaryWriter(str(_made(folder) / run.file_name)) as writer:
            writer.add_text("scenario", f"```json\n{json.dumps(run.configuration, indent=2)}\n```", 0, walltime=0)
            for number, values in run.rounds:
                for name, value in values.items():
                    writer.add_scalar(name, value, number, walltime=float(number))
    return Path(folder)


def wandb(store: Store | str, folder: str | os.PathLike[str], *, project: str = "fedbits") -> Path:
    """Writes a run of Weights & Biases for each run, offline, in the place of those that are there: `wandb sync` sends them later.

    Returns the folder; needs wandb.
    """
    package, folder = needed("wandb", "fedbits.export.wandb"), arguments.path("folder", folder)
    for run in _runs(store):
        for old in (Path(folder) / "wandb").glob(f"offline-run-*-{run.hash}"):
            shutil.rmtree(old)
        with package.init(mode="offline", dir=str(_made(folder)), project=project, name=run.name, group=run.study, config=run.configuration,
                          id=run.hash, settings=package.Settings(silent=True, console="off", x_disable_stats=True)) as logged:
            for number, values in run.rounds:
                logged.log(values, step=number)
            logged.summary.update(run.summary)
    if package.run is None:
        package.teardown()  # waits until the process that writes has written everything; a run of the caller's would end too
    return Path(folder)


def mlflow(store: Store | str, tracking_uri: str | os.PathLike[str], *, experiment: str | None = None) -> str:
    """Writes a run of MLflow for each run, and returns the tracking URI; needs mlflow or mlflow-skinny.

    tracking_uri: "sqlite:///mlflow.db", for which mlflow-skinny needs sqlalchemy and alembic too; the address of a server; or a folder, which MLflow 3
    takes only where the environment variable MLFLOW_ALLOW_FILE_STORE is "true".
    experiment: its name; None = the name of the study. Runs that it has, with the same status, are not written again.
    """
    arguments.path("tracking_uri", tracking_uri)
    uri = str(tracking_uri) if "://" in str(tracking_uri) else Path(tracking_uri).absolute().as_uri()
    client = _mlflow_client(uri)
    for run in _runs(store):
        name = experiment or run.study
        found = client.get_experiment_by_name(name)
        number = found.experiment_id if found else client.create_experiment(name)
        filter = f"tags.`fedbits.run` = '{run.hash}' and tags.`fedbits.status` = '{run.summary['status']}'"
        if not client.search_runs([number], filter, max_results=1):
            _log_to_mlflow(client, number, run)
    return uri


def _mlflow_client(uri: str) -> Any:
    """Returns a client that can write to this address. Raises ImportError or RuntimeError with what is missing."""
    package = needed("mlflow", "fedbits.export.mlflow")
    if uri.split(":")[0].split("+")[0] in ("sqlite", "postgresql", "mysql", "mssql"):
        for module in ("sqlalchemy", "alembic"):
            needed(module, f"fedbits.export.mlflow with {uri}")
    try:
        client = package.MlflowClient(tracking_uri=uri)
        client.search_experiments(max_results=1)
    except package.exceptions.MlflowException as error:
        if "MLFLOW_ALLOW_FILE_STORE" not in str(error):
            raise
        raise RuntimeError("this MLflow does not write to a folder: give the address of a database, as \"sqlite:///mlflow.db\" (pip install sqlalchemy "
                           "alembic), or set the environment variable MLFLOW_ALLOW_FILE_STORE=true before") from error
    return client


def _log_to_mlflow(client: Any, experiment: str, run: _Run) -> None:
    """Writes a run. Its hash comes last, so that a run whose export was interrupted is written again."""
    entities = needed("mlflow.entities", "fedbits.export.mlflow")
    logged = client.create_run(experiment, run_name=run.name, start_time=0, tags={"fedbits.status": run.summary["status"]})
    parameters = [entities.Param(key, str(value)[:500]) for key, value in _toml.leaves(run.configuration)]
    for part in _parts(parameters, 100):
        client.log_batch(logged.info.run_id, params=part)
    metrics = [entities.Metric(name, value, number, number) for number, values in run.rounds for name, value in values.items()]
    for part in _parts(metrics, 1000):
        client.log_batch(logged.info.run_id, metrics=part)
    client.set_tag(logged.info.run_id, "fedbits.run", run.hash)
    client.set_terminated(logged.info.run_id, "FINISHED" if run.summary["status"] == "done" else "FAILED", end_time=0)


class _Run:
    """A run of a store with what was measured of it."""

    def __init__(self, summary: dict[str, Any], labels: dict[str, Any], rounds: list[tuple[int, dict[str, float]]]):
        self.hash, self.study, self.summary = summary["run"], summary["name"], summary
        self.configuration = summary.pop("configuration") or {}
        self.rounds = rounds
        self.name = ", ".join([self.study, *map(str, labels.values()), f"seed {summary['seed']}"])

    @property
    def file_name(self) -> str:
        """The name of its folder: readable, and its own by the beginning of its hash."""
        return "".join(c if c.isalnum() or c in ".-_%" else "-" for c in self.name.replace(", ", "_")) + "-" + self.hash[:8]


def _runs(store: Store | str) -> Iterator[_Run]:
    """Yields the runs of a store in its order."""
    store = _store(store)
    runs, rounds = store.columns("runs"), store.columns("rounds")
    axes = list(runs)[list(runs).index("seconds") + 1:list(runs).index("split_hash")] if runs else []
    text_columns = _NOT_LOGGED | {name for name, values in rounds.items() if values.dtype == object}
    numbers = {name: values for name, values in rounds.items() if name not in text_columns}
    rows: dict[str, list[int]] = {}
    for place, run in enumerate(rounds.get("run", ())):
        rows.setdefault(run, []).append(place)
    for place, run in enumerate(runs.get("run", ())):
        summary = {name: _plain(values[place]) for name, values in runs.items()}
        measured = [(int(rounds["round"][row]), {name: float(values[row]) for name, values in numbers.items() if not math.isnan(values[row])})
                    for row in rows.get(run, ())]
        yield _Run(summary, {axis: summary[axis] for axis in axes if summary[axis] is not None}, measured)


def _store(store: Store | str) -> Store:
    return store if isinstance(store, Store) else Store(store)


def _made(folder: str | os.PathLike[str]) -> Path:
    path = Path(arguments.path("folder", folder))
    path.mkdir(parents=True, exist_ok=True)
    return path


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _parts(values: list[Any], size: int) -> Iterator[list[Any]]:
    for begin in range(0, len(values), size):
        yield values[begin:begin + size]
