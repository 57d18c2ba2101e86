"""Stores for other programs: CSV, Parquet, TensorBoard, Weights & Biases (offline) and MLflow.

    fedbits.export.csv(store, "tables")
    fedbits.export.tensorboard(store, "logs")

Every function takes a Store (or its folder). The package of a format is imported when its function is called; ImportError names one that is missing.
The logs of TensorBoard, Weights & Biases and MLflow hold what was measured, by round, and the bits that all clients had sent until then; a run of the
store is a run there, named by its labels and seed. Their functions show the runs that are written, as fedbits.run shows its runs: progress=None = bars of
tqdm where it is installed, and otherwise a line on stderr every few seconds; True = bars; False = nothing.
"""
from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import warnings
from pathlib import Path
from typing import Any, Callable, Iterator, Sequence

from fedbits import _core, _toml, arguments
from fedbits._mlflow import Row, metric_writer
from fedbits.needed import needed
from fedbits.progress import counted
from fedbits.store import Store, StudyWarning
from fedbits.words import python_words

# Columns of rounds.csv that say which round a row is of, and are no measurements.
_NOT_LOGGED = {"run", "round"}
_MLFLOW_GROUP = 20  # runs whose metrics are written together
# Without them, wandb reads the versions of all packages and looks for a repository at the start of each run.
_WANDB_SETTINGS = {"silent": True, "console": "off", "x_disable_stats": True, "x_disable_meta": True, "x_disable_machine_info": True,
                   "x_save_requirements": False, "disable_git": True, "disable_code": True}


def csv(store: Store | str, folder: str | os.PathLike[str], *, reproducible: bool = False, all_results: bool = False) -> list[Path]:
    """Writes runs.csv and rounds.csv into a folder, with the bytes of `fedbits export`, and returns their paths.

    reproducible: sorts the runs by their hash and leaves out seconds, so that equal results give equal bytes.  all_results: also runs whose results
    another version of fedbits made.
    """
    of = _store(store).folder
    paths = [_made(folder) / "runs.csv", _made(folder) / "rounds.csv"]
    with python_words():
        damaged = _core.export_tables(str(of), str(paths[0]), str(paths[1]), reproducible, all_results)
    for text in damaged:
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


def tensorboard(store: Store | str, folder: str | os.PathLike[str], *, progress: bool | None = None) -> Path:
    """Writes a folder of event files for each run, in the place of those that are there, and returns the folder for `tensorboard --logdir`.

    Each round is one event with all its values, written at once. Needs tensorboardX.
    """
    needed("tensorboardX", "fedbits.export.tensorboard")
    folder = arguments.path("folder", folder)
    events, writers, texts = (needed(f"tensorboardX.{name}", "fedbits.export.tensorboard") for name in ("proto.event_pb2", "event_file_writer", "summary"))
    for run in counted(_Runs(store), "TensorBoard", progress):
        own = _made(Path(folder) / run.file_name)
        for old in own.glob("events.out.tfevents.*"):
            old.unlink()
        with contextlib.closing(writers.EventsWriter(str(own / "events"))) as writer:
            text = texts.text("scenario", f"```json\n{json.dumps(run.configuration, indent=2)}\n```")
            writer.write_event(events.Event(wall_time=0, step=0, summary=text))
            for number, values in run.rounds:
                scalars = texts.Summary(value=[texts.Summary.Value(tag=name, simple_value=value) for name, value in values.items()])
                writer.write_event(events.Event(wall_time=number, step=number, summary=scalars))
    return Path(folder)


def wandb(store: Store | str, folder: str | os.PathLike[str], *, project: str = "fedbits", progress: bool | None = None) -> Path:
    """Writes a run of Weights & Biases for each run, offline, in the place of those that are there: `wandb sync` sends them later.

    The runs were not made by the program that calls this, so that its packages, source code and machine are left out. Returns the folder; needs
    wandb.
    """
    package, folder = needed("wandb", "fedbits.export.wandb"), arguments.path("folder", folder)
    settings = package.Settings(**{name: value for name, value in _WANDB_SETTINGS.items() if name in package.Settings.model_fields})
    for run in counted(_Runs(store), "Weights & Biases", progress):
        for old in (Path(folder) / "wandb").glob(f"offline-run-*-{run.hash}"):
            shutil.rmtree(old)
        with package.init(mode="offline", dir=str(_made(folder)), project=project, name=run.name, group=run.study, config=run.configuration,
                          id=run.hash, settings=settings) as logged:
            for number, values in run.rounds:
                logged.log(values, step=number)
            logged.summary.update(run.summary)
    if package.run is None:
        package.teardown()  # waits until the process that writes has written everything; a run of the caller's would end too
    return Path(folder)


def mlflow(store: Store | str, tracking_uri: str | os.PathLike[str], *, experiment: str | None = None, progress: bool | None = None) -> str:
    """Writes a run of MLflow for each run, and returns the tracking URI; needs mlflow or mlflow-skinny.

    tracking_uri: "sqlite:///mlflow.db", for which mlflow-skinny needs sqlalchemy and alembic too; the address of a server; or a folder, which MLflow 3
    takes only where the environment variable MLFLOW_ALLOW_FILE_STORE is "true".
    experiment: its name; None = the name of the study. Runs that it has, with the same status, are not written again.
    """
    arguments.path("tracking_uri", tracking_uri)
    uri = str(tracking_uri) if "://" in str(tracking_uri) else Path(tracking_uri).absolute().as_uri()
    client = _mlflow_client(uri)
    numbers: dict[str, str] = {}  # of the experiments, by their names
    written: set[tuple[str, str, str]] = set()
    begun: list[tuple[Any, _Run]] = []
    runs = _Runs(store)
    with metric_writer(client, uri) as write:
        for place, run in enumerate(counted(runs, "MLflow", progress), 1):
            name = experiment or run.study
            if name not in numbers:
                found = client.get_experiment_by_name(name)
                numbers[name] = found.experiment_id if found else client.create_experiment(name)
                written |= _written_runs(client, numbers[name])
            if (numbers[name], run.hash, run.summary["status"]) not in written:
                begun.append((_begin_in_mlflow(client, numbers[name], run), run))
            if len(begun) == _MLFLOW_GROUP or place == len(runs):
                _end_in_mlflow(client, begun, write)
                begun.clear()
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


def _written_runs(client: Any, experiment: str) -> set[tuple[str, str, str]]:
    """Returns the experiment, the hash and the status of each run that an export has written whole."""
    found, token = set(), None
    while True:
        runs = client.search_runs([experiment], max_results=1000, page_token=token)
        found |= {(experiment, run.data.tags.get("fedbits.run", ""), run.data.tags.get("fedbits.status", "")) for run in runs}
        token = runs.token
        if not token:
            return found


def _begin_in_mlflow(client: Any, experiment: str, run: _Run) -> Any:
    """Begins a run, with its configuration as parameters."""
    entities = needed("mlflow.entities", "fedbits.export.mlflow")
    begun = client.create_run(experiment, run_name=run.name, start_time=0, tags={"fedbits.status": run.summary["status"]})
    parameters = [entities.Param(key, str(value)[:500]) for key, value in _toml.leaves(run.configuration)]
    for begin in range(0, len(parameters), 100):
        client.log_batch(begun.info.run_id, params=parameters[begin:begin + 100])
    return begun


def _end_in_mlflow(client: Any, begun: list[tuple[Any, _Run]], write: Callable[[list[tuple[Any, list[Row]]]], None]) -> None:
    """Writes the metrics of runs and ends them. The hash of a run comes last, so that a run whose export was interrupted is written again."""
    write([(mine, run.rows()) for mine, run in begun])
    for mine, run in begun:
        client.set_tag(mine.info.run_id, "fedbits.run", run.hash)
        client.set_terminated(mine.info.run_id, "FINISHED" if run.summary["status"] == "done" else "FAILED", end_time=0)


class _Run:
    """A run of a store with what was measured of it."""

    def __init__(self, summary: dict[str, Any], labels: dict[str, Any], rounds: list[tuple[int, dict[str, float]]]):
        self.hash, self.study, self.summary = summary["run"], summary["name"], summary
        self.configuration = summary.pop("configuration") or {}
        self.rounds = rounds
        self.name = ", ".join([self.study, *map(str, labels.values()), f"seed {summary['seed']}"])

    def rows(self) -> list[Row]:
        """Returns the rounds as rows, metric by metric."""
        names = dict.fromkeys(name for _, values in self.rounds for name in values)
        return [(name, values[name], number) for name in names for number, values in self.rounds if name in values]

    @property
    def file_name(self) -> str:
        """The name of its folder: readable, and its own by the beginning of its hash."""
        return "".join(c if c.isalnum() or c in ".-_%" else "-" for c in self.name.replace(", ", "_")) + "-" + self.hash[:8]


class _Runs:
    """The runs of a store in its order."""

    def __init__(self, store: Store | str):
        store = _store(store)
        self._runs, self._rounds = store.columns("runs"), store.columns("rounds")

    def __len__(self) -> int:
        return len(self._runs.get("run", ()))

    def __iter__(self) -> Iterator[_Run]:
        runs, rounds = self._runs, self._rounds
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
