"""Stores of results: their runs and rounds as tables, comparisons of methods, and the report."""
from __future__ import annotations

import difflib
import html
import json
import os
import warnings
from pathlib import Path
from typing import Any, Sequence

import numpy as np

from fedbits import _core, arguments
from fedbits.needed import needed
from fedbits.words import in_python, python_words


_FILE = "results.sqlite"


class StudyWarning(UserWarning):
    """What the command line would say on stderr: damaged runs, runs without a result, departures from an analysis plan."""


class Report:
    """The page of `fedbits report`: charts and tables that open anywhere. A notebook shows it in a frame."""

    def __init__(self, page: str, height: int = 800):
        self.page, self.height = page, height

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page to a file, whose name should end in .html."""
        Path(arguments.path("path", path)).write_text(self.page, encoding="utf-8")
        return Path(path)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.page)}" style="width: 100%; height: {self.height}px; border: 0"></iframe>'

    def __repr__(self) -> str:
        return f"<Report of {len(self.page)} characters; save(path) writes it>"


class Store:
    """The results of studies in a folder. fedbits.run and fedbits.sweep return one, and Store(folder) opens one that exists.

    folder: that which holds results.sqlite. Everything is read from the file again each time.

    A folder may hold several studies, whose runs may not be compared with each other: another number of rounds makes another study. A store that run or
    sweep returns shows the study that was played, and study(name) returns a store of one. Store(folder) has the runs of all, with a StudyWarning, and
    compares those of the largest study.
    Raises StoreError for a folder without a store, with the stores that may be meant, and when it is read for a folder that is gone since.
    """

    def __init__(self, folder: str | os.PathLike[str]):
        self._begin(Path(arguments.path("folder", folder)), frozenset())
        _require_store(self.folder)

    @classmethod
    def _of_played(cls, folder: str, runs: frozenset[str]) -> Store:
        """Returns the store of a study that was played. A shard may have no runs, and then there is no file."""
        store = cls.__new__(cls)
        store._begin(Path(folder), runs)
        return store

    def _begin(self, folder: Path, played: frozenset[str]) -> None:
        self.folder = folder
        self._study, self._played = "", played  # the study that is shown, or that of the runs that were played; none = all

    @property
    def studies(self) -> dict[str, list[str]]:
        """The runs (their hashes) of each study of the folder by its name, the largest study first."""
        with python_words():
            return dict(_core.studies_of(str(self.folder)))

    def study(self, name: str) -> Store:
        """Returns a store that shows the runs of one study. Raises ConfigError, with the names of all, for one that does not exist."""
        store = Store(self.folder)
        if arguments.text("name", name) not in store.studies:
            store.chart_data(study=name)  # raises the error
        store._study = name
        return store

    @property
    def runs(self) -> Any:
        """A row per run: labels of its axes, status, bits (of all clients and rounds), last measurements, and its whole configuration.

        A DataFrame with the columns of runs.csv (docs/results.md); `configuration` holds dicts. Bits are exact integers. Runs whose results
        another version of fedbits made are left out, and damaged ones too, with a StudyWarning.
        """
        return self._frame("runs")

    @property
    def rounds(self) -> Any:
        """A row per run and round: bits of the round and up to it, losses, accuracies and measures, with NaN where nothing was measured.

        A DataFrame with the columns of rounds.csv (docs/results.md). Round 0 is the initial model.
        """
        return self._frame("rounds")

    def columns(self, table: str = "rounds", *, all_results: bool = False) -> dict[str, np.ndarray]:
        """Returns the table "runs" or "rounds" as arrays by the names of their columns; needs no pandas.

        all_results: the runs of all studies, and those whose results another version of fedbits made.
        """
        readers = {"runs": _core.runs_of, "rounds": _core.rounds_of}
        if table not in readers:
            raise ValueError(f"there is no table {table!r}; a store has 'runs' and 'rounds'")
        with python_words():
            text, damaged = readers[table](str(self.folder), all_results=all_results)
        _warn(damaged)
        rows = json.loads(text)
        if not all_results:
            rows = self._shown(rows, rows if table == "runs" else json.loads(_core.runs_of(str(self.folder), all_results=False)[0]))
        return {name: _array_of([row[name] for row in rows]) for name in (rows[0] if rows else ())}

    def comparison(self, baseline: str | None = None, *, bits: str = "up", at: str = "equal", **options: Any) -> Any:
        """Compares methods with a baseline at equal bits, over paired seeds, as `fedbits report` does.

        baseline: label of a method; None = the first of the compressing methods that send the fewest bits.
        bits: "up", "both" (up and down), "published" (as the method's paper counts), "entropy" (an ideal code's), or "seconds": simulated time.
        at: "equal" = the largest budget that both runs of a pair reached, "shares" = shares of the bits of the baseline's run, in column `share`.
        options: measure (or a list of measures), method and level (keys of axes), study, window, claims_despite_refused.

        Returns a DataFrame with a row per measure, level, group of the other axes, and method. `difference` is the mean of method - baseline, in
        units of the measure, with Student's 95% interval (_low, _high) and the BCa bootstrap's; p_holm is corrected for the family. `verdict` is
        "better", "worse" or "no claim", and `why` says why there is none. `.attrs["notes"]` says what was chosen.
        Raises ConfigError for labels and names that the store does not have.
        """
        if at not in ("equal", "shares"):
            raise ValueError(f"at is {at!r}; it must be 'equal' or 'shares'")
        pandas = needed("pandas", "Store.comparison")
        with python_words():
            rows, notes, damaged = _core.compare(str(self.folder), self._options(baseline=baseline, **options), arguments.text("bits", bits),
                                                 at == "shares")
        _warn(damaged)
        frame = pandas.DataFrame(rows)
        if at == "equal" and len(frame):
            del frame["share"]
        frame.attrs["notes"] = [in_python(note) for note in notes]
        return frame

    def report(self, *, target: float | None = None, splits: bool = True, data_folder: str | os.PathLike[str] = "", height: int = 800,
               **options: Any) -> Report:
        """Returns the page of `fedbits report`.

        target: value of the first measure, for the bits that each method needs to reach it.  splits: draws how the data lie with the clients.
        data_folder: that of the data sets.  height: of the frame in a notebook, in pixels.
        options: baseline, measure, method, level, study, window, contrasts ("A:B"), classes, heterogeneity, margins, claims_despite_refused.
        """
        with python_words():
            page = _core.report_page(str(self.folder), self._options(target=target, **options), arguments.path("data_folder", data_folder) if splits else None)
        return Report(page, height)

    def chart_data(self, *, splits: bool = False, data_folder: str | os.PathLike[str] = "", **options: Any) -> dict[str, Any]:
        """Returns the numbers of the report's charts, from which fedbits.plot draws: means on common grids, intervals, comparisons."""
        with python_words():
            return json.loads(_core.chart_data(str(self.folder), self._options(**options), arguments.path("data_folder", data_folder) if splits else None))

    def _shown(self, rows: list[dict[str, Any]], runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns the rows of the study that this store shows; warns where it shows the runs of several."""
        if not _may_be_of_several(runs):
            return rows
        name = self._study or self._name_of_played()
        if name:
            shown = self._played.union(self.studies[name])
            return [row for row in rows if row["run"] in shown]
        names = list(self.studies)
        if len(names) > 1:
            warnings.warn(f"{self.folder} holds {len(names)} studies, whose runs may not be compared with each other: {', '.join(map(repr, names))}; "
                          "Store.study(name) has those of one", StudyWarning, stacklevel=5)
        return rows

    def _name_of_played(self) -> str:
        """Returns the name of the study that has most of the runs that were played, or "" where none has."""
        if not self._played:
            return ""
        common = {name: len(self._played.intersection(runs)) for name, runs in self.studies.items()}
        return max(common, key=lambda name: common[name]) if any(common.values()) else ""

    def _of_study(self, options: dict[str, Any]) -> dict[str, Any]:
        """Adds the study that this store shows to the options of a comparison, unless they choose among studies themselves."""
        by_names = any("name" in str(options.get(axis)).split(",") for axis in ("method", "level"))
        if options.get("study") is not None or by_names or not (self._study or self._played):
            return options
        if not self._study and not _may_be_of_several(json.loads(_core.runs_of(str(self.folder), all_results=False)[0])):
            return options
        return options | {"study": self._study or self._name_of_played() or None}

    def _frame(self, table: str) -> Any:
        pandas = needed("pandas", f"Store.{table}", f"Store.columns({table!r}) gives arrays of NumPy without it")
        return pandas.DataFrame(self.columns(table))

    def _options(self, **options: Any) -> dict[str, Any]:
        """Returns the options of the extension module, without those that are None."""
        known = ("baseline", "measure", "method", "level", "study", "window", "claims_despite_refused", "contrasts", "classes", "heterogeneity",
                 "margins", "target")
        for name in options:
            if name not in known:
                arguments.text("the name of an option", name)
                raise TypeError(f"there is no option {name!r}{_core.hint(name, list(known))}")
        given = {name: value for name, value in self._of_study(options).items() if value is not None}
        for name, plural in (("measure", "measures"), ("contrasts", "contrasts"), ("margins", "margins")):
            if name in given:
                given[plural] = list_of(given.pop(name))
        for name in ("target", "window"):
            if name in given:
                given[name] = arguments.real(name, given[name])
        return given

    def __repr__(self) -> str:
        return f"Store({str(self.folder)!r})" + (f".study({self._study!r})" if self._study else "")


def _require_store(folder: Path) -> None:
    """Raises StoreError for a folder or a file that is no store."""
    try:
        with python_words():
            _core.require_store(str(folder))
    except _core.StoreError:
        if folder.is_file() or (folder / _FILE).exists():
            raise  # it says what is wrong with the file
        what = f"{folder} holds no {_FILE}" if folder.is_dir() else f"there is no folder {folder}"
        raise _core.StoreError(f"{what}; a store is a folder that fedbits.run or fedbits.sweep has written, out= or fedbits-out/NAME"
                               f"{_hint_of_store(folder)}") from None


def _hint_of_store(folder: Path) -> str:
    """Returns the stores that may be meant: those in the folder, the nearest by its name, or those of fedbits-out."""
    def named(stores: Sequence[Path]) -> str:
        return ", ".join(repr(str(store)) for store in stores[:5]) + (", ..." if len(stores) > 5 else "")

    if inside := _stores_in(folder):
        return f"; the folder holds the stores {named(inside)}"
    known = [*_stores_in(folder.parent), *_stores_in(Path("fedbits-out"))]
    near = difflib.get_close_matches(folder.name, [store.name for store in known], n=1)
    if near:
        return f"; did you mean {named([store for store in known if store.name == near[0]][:1])}?"
    return f"; the stores here are {named(known)}" if known else ""


def _stores_in(folder: Path) -> list[Path]:
    try:
        return sorted(file.parent for file in folder.glob(f"*/{_FILE}"))
    except OSError:
        return []


def _may_be_of_several(runs: list[dict[str, Any]]) -> bool:
    """Whether runs differ in more than their axes and seeds, as runs of several studies do, and of one study with tuned values too."""
    columns = list(runs[0]) if runs else []
    if not {"seconds", "split_hash"} <= set(columns):
        return False
    axes = columns[columns.index("seconds") + 1:columns.index("split_hash")]
    keys = [axis.removeprefix("axis.") for axis in axes]
    differing = [name.removeprefix("configuration.") for name in columns[columns.index("split_hash") + 1:]
                 if name not in ("plugins", "results_version", "configuration")]
    return len({run["name"] for run in runs}) > 1 or any(run[axis] is None for axis in axes for run in runs) or any(
        not name.startswith("seeds.") and name != "data.test_seed" and not any(name == key or name.startswith(key + ".") for key in keys)
        for name in differing)


def list_of(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _warn(damaged: list[str]) -> None:
    for text in damaged:
        warnings.warn(f"{text}; it is left out", StudyWarning, stacklevel=4)


def _array_of(values: list[Any]) -> np.ndarray:
    """Returns integers and floats as such, with NaN for missing ones, and everything else as objects."""
    if all(value is None or type(value) in (int, float) for value in values) and any(value is not None for value in values):
        return np.array([np.nan if value is None else value for value in values])
    if all(value is None for value in values):
        return np.full(len(values), np.nan)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
