"""Progress of studies and exports: a callback, the bars of tqdm, or lines on stderr."""
from __future__ import annotations

import atexit
import contextlib
import dataclasses
import math
import re
import sys
import threading
import time
import warnings
from typing import Any, Callable, Iterator, Protocol, TypeVar

from fedbits import _core, arguments

_FIRST_S, _EVERY_S = 2.0, 5.0  # until the first line, and between lines
_Item = TypeVar("_Item", covariant=True)


@dataclasses.dataclass(frozen=True)
class Progress:
    """What has happened in a study.

    event: "stage" (text says what is done before runs begin), "tuning" (of `runs` tuning runs of a step, which text describes, `done` have ended),
    "study" (the study begins: it has `runs` runs, and `pending` are going to run), "started", "round" (at most ten a second) or "ended" (status is
    "done", "diverged", "failed" or "interrupted"; text says why).  run: the hash of the run, title: its name and labels, number: from 1.
    round: of `rounds`.  workers: runs at a time, in "tuning" and "study".  train_loss, test_accuracy: measured last, or NaN.
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
    done: int = 0
    workers: int = 0


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

    def tuning(self, what: str, done: int, runs: int, workers: int) -> None:
        self._show(Progress("tuning", text=what, done=done, runs=runs, workers=workers))

    def begin_study(self, cells: list[tuple[str, str, int]], pending: list[int], workers: int, folder: str) -> None:
        self._cells = cells
        self._show(Progress("study", runs=len(cells), pending=len(pending), text=folder, workers=workers))

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
        self._bar.update(max(_part_of(at) - self._parts.get(at.number, 0.0), 0.0))
        self._parts[at.number] = _part_of(at)
        self._bar.set_description_str(at.title, refresh=False)
        if not math.isnan(at.train_loss):
            accuracy = {} if math.isnan(at.test_accuracy) else {"accuracy": f"{at.test_accuracy:.4g}"}
            self._bar.set_postfix(loss=f"{at.train_loss:.4g}", **accuracy, refresh=False)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class _Lines:
    """Writes a line on stderr every few seconds, the first one after two: a shorter study or export writes none.

    text: returns what the line says after this many seconds, or "" for no line.  A thread calls tick(), because a single round may take minutes.
    """

    def __init__(self, text: Callable[[float], str], clock: Callable[[], float] = time.monotonic):
        self._text, self._clock = text, clock
        self._began = clock()
        self._next = self._began + _FIRST_S
        self._lock, self._is_closed = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="fedbits progress", daemon=True)
        self.has_written = False

    def start(self) -> _Lines:
        atexit.register(self.close)  # before the interpreter's end takes stderr
        self._thread.start()
        return self

    @property
    def seconds(self) -> float:
        return self._clock() - self._began

    def tick(self) -> None:
        """Writes a line if it is due. Any thread may call it."""
        with self._lock:
            if self._clock() < self._next:
                return
            self._next = self._clock() + _EVERY_S
        if text := self._text(self.seconds):
            self.write(text)

    def write(self, text: str) -> None:
        self.has_written = True
        with contextlib.suppress(OSError, ValueError):  # stderr is closed
            if sys.stderr is not None:
                print(f"fedbits: {text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        self._is_closed.set()
        if self._thread.is_alive():
            self._thread.join()
        atexit.unregister(self.close)

    def _run(self) -> None:
        while not self._is_closed.wait(max(min(_FIRST_S, _EVERY_S) / 10, 0.01)):
            self.tick()


class _StudyLines:
    """The progress of a study as lines."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.lines = _Lines(self.text, clock)
        self._stage = Progress("stage", text="preparing")
        self._stage_began = 0.0
        self._study: Progress | None = None
        self._parts: dict[int, float] = {}  # of each run that has begun, by its number
        self._reached = 0.0  # their sum
        self._ended = self._bad = 0
        self._last: Progress | None = None

    def __call__(self, at: Progress) -> None:
        if at.event in ("stage", "tuning"):
            if (at.event, at.text) != (self._stage.event, self._stage.text):
                self._stage_began = self.lines.seconds
            self._stage = at
        elif at.event == "study":
            self._study, self._stage_began = at, self.lines.seconds
        elif at.number > 0:
            self._reached += _part_of(at) - self._parts.get(at.number, 0.0)
            self._parts[at.number] = _part_of(at)
            self._ended += at.event == "ended"
            self._bad += at.status in ("failed", "diverged")
            self._last = None if at.event == "ended" else at

    def text(self, seconds: float) -> str:
        """Returns the line of this moment."""
        preparing = re.sub(r" \(\d+ s\)$", "", _core.take_preparation())
        if self._study is None:
            line = self._tuning_text(seconds) if self._stage.event == "tuning" else self._stage.text
            return f"{line}: {preparing}" if preparing else line
        if self._study.pending == 0:
            return ""
        line = self._counts() + _workers(self._study) + _left(seconds - self._stage_began, self._reached, self._study.pending)
        at = self._last
        if at is None:
            return f"{line}; {preparing}" if preparing else line
        if at.event == "started":
            return f"{line}; {at.title}: {preparing or 'preparing'}"
        return f"{line}; {at.title}: round {at.round}/{at.rounds}{_measures(at)}"

    def close(self) -> None:
        self.lines.close()
        if self.lines.has_written and self._study is not None:
            self.lines.write(f"{self._counts()} in {_duration(self.lines.seconds)}")

    def _tuning_text(self, seconds: float) -> str:
        at = self._stage
        return f"{at.text}: {at.done}/{at.runs} runs{_workers(at)}{_left(seconds - self._stage_began, at.done, at.runs)}"

    def _counts(self) -> str:
        assert self._study is not None
        bad = f", {self._bad} failed or diverged" if self._bad else ""
        return f"{self._ended}/{self._study.pending} runs{bad}"


def _part_of(at: Progress) -> float:
    """Returns how much of its run an event has reached, from 0 to 1."""
    return 1.0 if at.event == "ended" else at.round / at.rounds if at.rounds > 0 else 0.0


def _workers(at: Progress) -> str:
    return f", {at.workers} at a time" if at.workers > 1 else ""


def _measures(at: Progress) -> str:
    named = (("loss", at.train_loss), ("accuracy", at.test_accuracy))
    return "".join(f", {name} {value:.4g}" for name, value in named if not math.isnan(value))


def _left(seconds: float, done: float, total: float) -> str:
    """Returns ", 12 s left", if `done` of `total` took `seconds` and the rest goes on as fast; "" while nothing is done."""
    return f", {_duration(seconds * (total - done) / done)} left" if done > 0 and seconds > 0 else ""


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _tqdm_or_none(progress: bool | None) -> Callable[..., Any] | None:
    """Returns tqdm, or None where it is not installed. Raises ImportError if `progress` is True, which asks for bars."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a notebook without widgets, where the bar is text
            from tqdm.auto import tqdm  # type: ignore[import-untyped]
    except ImportError:
        if progress is True:
            raise ImportError("progress=True needs the package tqdm: pip install tqdm; progress=None writes lines without it") from None
        return None
    return tqdm


def _require_progress(progress: Any, choices: str) -> None:
    if progress is not None and not isinstance(progress, bool):
        raise TypeError(f"progress is {arguments.shown(progress)}; it must be {choices}True for bars, False for nothing, or None")


@contextlib.contextmanager
def listener_of(progress: bool | Callable[[Progress], Any] | None) -> Iterator[_Listener]:
    """Returns what the extension module tells: it shows a callback, the bars of tqdm, lines where None is given and tqdm is missing, or nothing."""
    if callable(progress):
        yield _Listener(progress)
        return
    _require_progress(progress, "a function, ")
    if progress is False:
        yield _Listener(lambda at: None)
        return
    tqdm = _tqdm_or_none(progress)
    with contextlib.closing(_StudyLines() if tqdm is None else _Bars(tqdm)) as shown:
        if isinstance(shown, _StudyLines):
            shown.lines.start()
        yield _Listener(shown)


class _Counted(Protocol[_Item]):
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[_Item]: ...


def counted(items: _Counted[_Item], what: str, progress: bool | None) -> Iterator[_Item]:
    """Yields the items, and shows how many of them are done: as a bar of tqdm, or as lines that begin with `what`."""
    _require_progress(progress, "")
    tqdm = None if progress is False else _tqdm_or_none(progress)
    if progress is False or tqdm is not None:
        yield from items if tqdm is None else tqdm(items, desc=what, unit="run")
        return
    done = 0
    lines = _Lines(lambda seconds: f"{what}: {done}/{len(items)} runs{_left(seconds, done, len(items))}").start()
    with contextlib.closing(lines):
        for item in items:
            yield item
            done += 1
            lines.tick()
    if lines.has_written:
        lines.write(f"{what}: {done}/{len(items)} runs in {_duration(lines.seconds)}")
