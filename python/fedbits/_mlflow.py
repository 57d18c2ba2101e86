"""Metrics of MLflow, many at once.

MLflow takes 1000 metrics a call and needs about a quarter of a millisecond for each of them, in a database and in a folder: a minute and more for
a small study. What it keeps of a metric is a row of a table or a line of a file, so that rows and lines are written here. Where the table or the
folder is not as it is known here, and for servers, log_batch() writes.
"""
from __future__ import annotations

import contextlib
import itertools
import sqlite3
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Sequence

from fedbits.needed import needed

Row = tuple[str, float, int]  # name, value, round
Runs = Sequence[tuple[Any, Sequence[Row]]]  # runs of MLflow, with the rows of each, metric by metric
_MOST_IN_A_CALL = 1000
_LARGEST = 1.7976931348623157e308  # in the place of infinity, as MLflow has it
_COLUMNS = ("key", "value", "timestamp", "run_uuid", "step", "is_nan")


@contextlib.contextmanager
def metric_writer(client: Any, uri: str) -> Iterator[Callable[[Runs], None]]:
    """Returns a function that writes the metrics of new runs. The round is the time, too."""
    if uri.startswith("sqlite:"):
        path = needed("sqlalchemy.engine", f"fedbits.export.mlflow with {uri}").make_url(uri).database
        if path and Path(path).is_file():
            with contextlib.closing(sqlite3.connect(path, timeout=60)) as database:
                if _has_known_tables(database):
                    yield lambda runs: _insert(database, runs)
                    return
    yield lambda runs: _write_or_log(client, runs)


def _has_known_tables(database: sqlite3.Connection) -> bool:
    return all(sorted(column[1] for column in database.execute(f"PRAGMA table_info({table})")) == sorted(_COLUMNS)
               for table in ("metrics", "latest_metrics"))


def _insert(database: sqlite3.Connection, runs: Runs) -> None:
    """Adds the rows, and the last round of each metric to the table of latest metrics, in one transaction: one for each run takes twice as long."""
    columns = f"({', '.join(_COLUMNS)}) VALUES (?, ?, ?, ?, ?, 0)"
    with database:
        for run, rows in runs:
            database.executemany(f"INSERT INTO metrics {columns}", _values(run.info.run_id, rows))
            database.executemany(f"INSERT INTO latest_metrics {columns}", _values(run.info.run_id, {row[0]: row for row in rows}.values()))


def _values(run: str, rows: Iterable[Row]) -> Iterator[tuple[str, float, int, str, int]]:
    return ((name, _finite(value), number, run, number) for name, value, number in rows)


def _write_or_log(client: Any, runs: Runs) -> None:
    for run, rows in runs:
        if _has_known_folder(run):
            _write_files(run, rows)
        else:
            _log(client, run.info.run_id, rows)


def _has_known_folder(run: Any) -> bool:
    folder = _folder_of(run)
    return folder.name == run.info.run_id and (folder / "meta.yaml").is_file() and (folder / "metrics").is_dir()


def _folder_of(run: Any) -> Path:
    """Returns the folder of a run in a folder of MLflow; of other runs, some path."""
    address = urllib.parse.urlparse(run.info.artifact_uri)
    return Path(urllib.request.url2pathname(address.path)).parent if address.scheme in ("", "file") else Path()


def _write_files(run: Any, rows: Sequence[Row]) -> None:
    """Writes a file for each metric, with a line "time value step" for each round."""
    folder = _folder_of(run) / "metrics"
    for name, some in itertools.groupby(rows, key=lambda row: row[0]):
        (folder / name).write_text("".join(f"{number} {value} {number}\n" for _, value, number in some), encoding="utf-8")


def _log(client: Any, run: str, rows: Sequence[Row]) -> None:
    metric = needed("mlflow.entities", "fedbits.export.mlflow").Metric
    for begin in range(0, len(rows), _MOST_IN_A_CALL):
        client.log_batch(run, metrics=[metric(name, value, number, number) for name, value, number in rows[begin:begin + _MOST_IN_A_CALL]])


def _finite(value: float) -> float:
    return min(max(value, -_LARGEST), _LARGEST)
