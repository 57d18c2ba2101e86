"""The simulator: scenarios are run as by the command line, with the same results in the same store."""
from __future__ import annotations

import os
import signal
import threading
import warnings
from typing import Any, Callable

from fedbits import _core, _toml, registration
from fedbits.progress import Progress, listener_of
from fedbits.scenario import source_of
from fedbits.store import Store, StudyWarning


def run(scenario: Any, *, progress: bool | Callable[[Progress], Any] | None = None, threads: int | None = None, **settings: Any) -> Store:
    return Store(_play(_core.run_study, scenario, progress, settings, threads=threads))


def sweep(scenario: Any, *, progress: bool | Callable[[Progress], Any] | None = None, jobs: int | None = None, threads: int = 1,
          **settings: Any) -> Store:
    return Store(_play(_core.sweep_study, scenario, progress, settings, jobs=jobs, threads=threads))


_OPTIONS = ("out", "data_folder", "device", "state_memory", "state_folder", "resume", "again", "checkpoint_rounds", "checkpoint_minutes",
            "any_build", "save_model", "model_format", "plugins", "block", "materialise", "memory", "shard")


def _play(study: Callable[..., tuple[str, int]], scenario: Any, progress: Any, settings: dict[str, Any], **options: Any) -> str:
    options |= {name: settings.pop(name) for name in _OPTIONS if name in settings}
    options = {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in options.items() if value is not None}
    options |= source_of(scenario)
    options["settings"] = [*options["settings"], *_toml.settings(settings)]
    registration.forget_failures()
    with listener_of(progress) as listener:
        try:
            folder, _ = study(options, listener, _is_interruptible())
        finally:
            for text in _core.take_warnings():
                warnings.warn(text, StudyWarning, stacklevel=3)
    registration.raise_failure()  # what a part that is written in Python has raised; its run is stored as failed
    return folder


def _is_interruptible() -> bool:
    """Whether Ctrl-C reaches this thread, and nobody else has asked for it."""
    return threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
