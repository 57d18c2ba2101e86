"""Progress of studies: a callback, or the bars of tqdm."""
from __future__ import annotations

import contextlib
import dataclasses
import math
import warnings
from typing import Any, Callable, Iterator

from fedbits import arguments


@dataclasses.dataclass(frozen=True)
class Progress:
    """What has happened in a study.

    event: "stage" (text says what is done before runs begin), "study" (the study begins, with `runs` runs of which `pending` are going to run),
    "started", "round" (at most ten a second) or "ended" (status is "done", "diverged", "failed" or "interrupted"; text says why).  run: the
    hash of the run, title: its name and labels, number: from 1.  round: of `rounds`.  train_loss, test_accuracy: measured last, or NaN.
    """

    event: str
    text: str = ""
    run: str = ""
    title: str = ""
    number: int = 0
    runs: int = 0
    pending: int = 0
    round: int = 0
    rounds: int = 0
    status: str = ""
    train_loss: float = math.nan
    test_accuracy: float = math.nan


class _Listener:
    """Hears of a study from the extension module, and tells `show` in the words of Progress."""

    def __init__(self, show: Callable[[Progress], Any]):
        self._show = show
        self._cells: list[tuple[str, str, int]] = []

    @property
    def runs(self) -> frozenset[str]:
        """The hashes of the study's runs."""
        return frozenset(run for run, _, _ in self._cells)

    def stage(self, text: str) -> None:
        self._show(Progress("stage", text=text))

    def begin_study(self, cells: list[tuple[str, str, int]], pending: list[int], workers: int, folder: str) -> None:
        self._cells = cells
        self._show(Progress("study", runs=len(cells), pending=len(pending), text=folder))

    def began(self, cell: int) -> None:
        self._show(self._of(cell, "started"))

    def reached(self, cell: int, round: int, train_loss: float, test_accuracy: float) -> None:
        self._show(self._of(cell, "round", round=round, train_loss=train_loss, test_accuracy=test_accuracy))

    def ended(self, cell: int, round: int, status: str, message: str) -> None:
        self._show(self._of(cell, "ended", round=round, status=status, text=message))

    def _of(self, cell: int, event: str, **values: Any) -> Progress:
        run, title, rounds = self._cells[cell]
        return Progress(event, run=run, title=title, number=cell + 1, runs=len(self._cells), rounds=rounds, **values)


class _Bars:
    """A bar of tqdm over the runs of a study."""

    def __init__(self, tqdm: Callable[..., Any]):
        self._tqdm, self._bar = tqdm, None
        self._parts: dict[int, float] = {}

    def __call__(self, at: Progress) -> None:
        if at.event == "study" and at.pending > 0:
            self._bar = self._tqdm(total=at.pending, unit="run", bar_format="{l_bar}{bar}| {n:.4g}/{total} [{elapsed}<{remaining}{postfix}]")
        if self._bar is None or at.number == 0:
            return
        part = 1.0 if at.event == "ended" else at.round / at.rounds if at.rounds > 0 else 0.0
        self._bar.update(max(part - self._parts.get(at.number, 0.0), 0.0))
        self._parts[at.number] = part
        self._bar.set_description_str(at.title, refresh=False)
        if not math.isnan(at.train_loss):
            accuracy = {} if math.isnan(at.test_accuracy) else {"accuracy": f"{at.test_accuracy:.4g}"}
            self._bar.set_postfix(loss=f"{at.train_loss:.4g}", **accuracy, refresh=False)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


@contextlib.contextmanager
def listener_of(progress: bool | Callable[[Progress], Any] | None) -> Iterator[_Listener]:
    """Returns what the extension module tells: it shows a callback, bars where None is given and tqdm is there, or nothing where False is given."""
    if callable(progress):
        yield _Listener(progress)
        return
    if progress is not None and not isinstance(progress, bool):
        raise TypeError(f"progress is {arguments.shown(progress)}; it must be a function, True for bars, False for nothing, or None")
    if progress is None or progress is True:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a notebook without widgets, where the bar is text
                from tqdm.auto import tqdm  # type: ignore[import-untyped]
        except ImportError:
            if progress is True:
                raise ImportError("progress=True needs the package tqdm: pip install tqdm; a callback needs none") from None
        else:
            with contextlib.closing(_Bars(tqdm)) as bars:
                yield _Listener(bars)
            return
    yield _Listener(lambda at: None)
