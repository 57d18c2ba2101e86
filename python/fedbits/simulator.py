"""The simulator: scenarios are run as by the command line, with the same results in the same store.

A scenario is the path of a file, the text of one, a dict, or a fedbits.Scenario. Settings change its keys, like --set of the command line:

    fedbits.run("study.toml", rounds=50, partition={"alpha": 0.1}, local__batch=32)

Everything runs in threads of this process, without Python's lock; a sweep starts no processes. Results do not depend on threads and jobs, and are those
of the command line, byte by byte.
"""
from __future__ import annotations

import dataclasses
import json
import os
import signal
import threading
import warnings
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from fedbits import _core, _toml, arguments, registration
from fedbits.progress import Progress, listener_of
from fedbits.scenario import Scenario, is_dict, source_of
from fedbits.store import Store, StudyWarning
from fedbits.words import in_python, python_words

ScenarioLike = str | os.PathLike[str] | Mapping[str, Any] | Scenario
_Path = str | os.PathLike[str]
_Listener = bool | Callable[[Progress], Any] | None

_MOST_WARNINGS = 5  # of runs that failed or diverged
# Those of the command line's options.
_RANGES = {"threads": (1, 4096), "jobs": (1, 4096), "seconds": (0, 3600), "most": (1, 1_000_000), "checkpoint_rounds": (0, 2**63),
           "checkpoint_minutes": (0, 1e6), "block": (0, 2**32 - 1)}
_PATHS = ("out", "data_folder", "save_model", "state_folder")
_DEVICES = ("cpu", "cuda", "auto")
_TEXTS = ("device", "state_memory", "memory", "shard", "model_format")


def run(scenario: ScenarioLike, *, progress: _Listener = None, out: _Path | None = None, data_folder: _Path | None = None, resume: bool = False,
        again: bool = False, threads: int | None = None, device: str = "cpu", checkpoint_rounds: int = 0, checkpoint_minutes: float = 5.0,
        save_model: _Path | None = None, model_format: str = "safetensors", state_memory: str | None = None, state_folder: _Path | None = None,
        block: int | None = None, materialise: bool = False, any_build: bool = False, **settings: Any) -> Store:
    """Runs every cell of a scenario, one after another, and returns their store. Stored results are kept, not repeated.

    progress: a function that is called with a fedbits.Progress when something happens; None = bars of tqdm where it is installed, and otherwise
    a line on stderr every few seconds, with the runs that are done, the time left and what is done now; True = bars; False = nothing.
    out: folder of the store; None = fedbits-out/NAME, with the scenario's name.
    data_folder: folder with data sets; None = as on the command line.
    resume: continues runs that were interrupted, from their checkpoints.  again: repeats runs that are stored.
    threads: of this process; None = the cores that it may use.  device: "cpu", "cuda" or "auto".
    checkpoint_rounds, checkpoint_minutes: how often checkpoints are written; 0 = never.  any_build: continues those of another build.
    save_model: folder for the final models.  model_format: "safetensors" or "npy".
    state_memory: memory for the clients' state, such as "2G"; the rest is kept in a file in state_folder.
    block: clients that are computed together.  materialise: encodes and decodes every message. Neither changes results.
    settings: changes of the scenario's keys.

    Ctrl-C ends the run that is going on as interrupted, with a checkpoint, and raises KeyboardInterrupt, if the main thread called; so does an exception
    of `progress`, which comes out then. The store is whole at every moment, even if the process is killed.
    Raises ConfigError, with all problems, for a scenario or option that is wrong; DataError for damaged data; StoreError where results cannot be written.
    Runs that fail or diverge are stored as such, and a StudyWarning says why.
    """
    return _play(_core.run_study, scenario, progress, settings, out=out, data_folder=data_folder, resume=resume, again=again, threads=threads,
                 device=device, checkpoint_rounds=checkpoint_rounds, checkpoint_minutes=checkpoint_minutes, save_model=save_model,
                 model_format=model_format, state_memory=state_memory, state_folder=state_folder, block=block, materialise=materialise,
                 any_build=any_build)


def sweep(scenario: ScenarioLike, *, progress: _Listener = None, out: _Path | None = None, data_folder: _Path | None = None, resume: bool = False,
          again: bool = False, jobs: int | None = None, threads: int = 1, memory: str | None = None, shard: str | None = None, device: str = "cpu",
          checkpoint_rounds: int = 0, checkpoint_minutes: float = 5.0, save_model: _Path | None = None, model_format: str = "safetensors",
          state_memory: str | None = None, state_folder: _Path | None = None, any_build: bool = False, **settings: Any) -> Store:
    """Runs every cell of a scenario, several at a time, and returns their store. The options are those of run(), and

    jobs: runs at a time; None = cores / threads.  threads: of each run.
    memory: for all runs together, such as "8G"; fewer run at a time if it is short.
    shard: "I/N" runs only the I-th of N parts, into OUT/shard-I-of-N; `fedbits merge` joins them.

    A folder that holds a part of the runs needs resume=True, which runs the others, or again=True. Runs are threads of this process; on the command line
    they are processes, and one that dies loses only its run.
    """
    return _play(_core.sweep_study, scenario, progress, settings, out=out, data_folder=data_folder, resume=resume, again=again, jobs=jobs,
                 threads=threads, memory=memory, shard=shard, device=device, checkpoint_rounds=checkpoint_rounds,
                 checkpoint_minutes=checkpoint_minutes, save_model=save_model, model_format=model_format, state_memory=state_memory,
                 state_folder=state_folder, any_build=any_build)


def plan(scenario: ScenarioLike, *, data_folder: _Path | None = None, jobs: int | None = None, threads: int = 1, seconds: float = 0.0, most: int = 400,
         state_memory: str | None = None, **settings: Any) -> dict[str, Any]:
    """Predicts the cost of a sweep: starts its combinations for a moment, completes no run and stores nothing.

    jobs, threads: as for sweep().  seconds: how long each combination is tried; 0 = 0.2, or less if there are many.
    most: largest number of combinations that are tried; the others are planned like the nearest of them.

    Returns a dict: runs, workers, wall_s (start to end), computing_s, start_s, tuning_runs, tuning_s, bits (both directions, all runs), worker_bytes (here
    of the whole process), and `combinations`, a list of dicts with axes, runs, rounds, run_s, all_s, bits_up, bits_down, failure. Times end in _s and are
    in seconds. `pandas.DataFrame(plan["combinations"])` makes a table of it.
    """
    options = _options(scenario, settings, data_folder=data_folder, jobs=jobs, threads=threads, seconds=seconds, most=most, state_memory=state_memory)
    with python_words(is_dict=is_dict(scenario), arguments=("data_folder", "jobs", "threads", "seconds", "most", "state_memory")):
        return json.loads(_core.plan(options, _is_interruptible()))


def suggest(scenario: ScenarioLike | None = None, *, k: float | None = None, ratio: float | None = None, lambda_: float | None = None,
            epsilon: float | None = None, d: float | None = None, gamma: float | None = None, sigma: float = 0.25, noise_growth: float = 0.0,
            zeta: float | None = None, measure: int | None = None, data_folder: _Path | None = None, **settings: Any) -> dict[str, float | str]:
    """Converts between the k of Top-k and the threshold lambda of the hard threshold.

    k: entries that Top-k keeps.  ratio: fraction that it keeps.  lambda_: threshold on gradients.  epsilon: squared error allowed in a step.
    d: number of parameters.  gamma: step size.  zeta: heterogeneity; the scenario's first cell tells those that are not given.
    sigma, noise_growth: noise of the gradients, as in the theorems.
    measure: finds the threshold that sends as many bits as Top-k in this many first rounds of the scenario.

    Returns a dict with the numbers that can be told: lambda_rule (1 / (2 sqrt(k))), lambda_equal_bounds (theorems 6 and 7), lambda_epsilon, k_rule,
    k_equal_bounds, epsilon, and what they were computed from. unit is that of what the scenario's clients compress. With `measure` there is
    lambda_measured if the unit is "step", in units of the gradient, and otherwise threshold_measured, in units of what is compressed.
    Source: A. N. Sahu et al., NeurIPS 2021.
    """
    given = {"k": k, "ratio": ratio, "lambda": lambda_, "epsilon": epsilon, "d": d, "gamma": gamma, "sigma": sigma, "noise_growth": noise_growth,
             "zeta": zeta, "measure": measure}
    given_numbers = {name: arguments.whole(name, value, -2**63, 2**63 - 1) if name == "measure" else arguments.real(name, value)
                     for name, value in given.items() if value is not None}
    if scenario is None and settings:
        raise TypeError(f"{next(iter(settings))!r} is a key of a scenario, and there is none")
    options = {} if scenario is None else _options(scenario, settings, data_folder=data_folder)
    with python_words(is_dict=is_dict(scenario), arguments=given):
        return _core.suggest(options | given_numbers, _is_interruptible())


@dataclasses.dataclass(frozen=True)
class Check:
    """A requirement that a part was tested against. findings: the first texts of `count` faults; none if all is well."""

    role: str
    part: str
    name: str
    promise: str
    count: int
    findings: list[str]

    def __bool__(self) -> bool:
        """Whether the part meets the requirement."""
        return self.count == 0


def check(*parts: str, only: Sequence[str] = (), **options: Any) -> list[Check]:
    """Tests parts against the requirements of their role, as `fedbits check`: compressors, models, partitioners and measures.

    parts: their names in a scenario, "top_k".  only: names of checks.  options: options of the parts, k=3. No study may be running meanwhile.
    Raises ConfigError for unknown names, and for a part whose role has no checks.
    """
    for part in parts:
        if not isinstance(part, str):
            raise TypeError(f"{arguments.shown(part)} is no name of a part; give that of a scenario, as 'top_k'")
        arguments.text("the name of a part", part)
    if isinstance(only, str):
        raise TypeError(f"only is {only!r}; it must be a list of checks, as [{only!r}]")
    registration.refresh(" ".join(parts))
    for part in parts:
        prepare = getattr(registration.registered("model", part), "_prepare_check", None)
        if prepare is not None:
            prepare()
    names = [arguments.text(f"only[{place}]", name) for place, name in enumerate(only)]
    rows = _core.check_parts(list(parts), list(_toml.settings(options)), names, _is_interruptible())
    return [Check(*row) for row in rows]


def _play(study: Callable[..., tuple[str, list[str]]], scenario: ScenarioLike, progress: _Listener, settings: dict[str, Any], **options: Any) -> Store:
    given = _options(scenario, settings, **options)
    registration.forget_failures()
    warned: list[str] = []
    with listener_of(progress) as listener:
        try:
            with python_words(is_dict=is_dict(scenario), arguments=[*options, "progress"]):
                folder, bad_runs = study(given, listener, warned, _is_interruptible())
            _warn(bad_runs[:_MOST_WARNINGS])
            if len(bad_runs) > _MOST_WARNINGS:
                _warn([f"{len(bad_runs)} runs failed or diverged; Store.runs has the status of each"])
        finally:
            _warn(warned)
    registration.raise_failure()  # what a part that is written in Python has raised; its run is stored as failed
    return Store._of_played(folder, listener.runs)


def _options(scenario: ScenarioLike, settings: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Returns the options of the extension module, without those that are None. Raises ConfigError for values out of their range."""
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name in _PATHS:
            given[name] = arguments.path(name, given[name])
        elif name in _TEXTS:
            given[name] = arguments.text(name, given[name])
    for name, (least, most) in _RANGES.items():
        if name in given:
            (arguments.real if name in ("seconds", "checkpoint_minutes") else arguments.index)(name, given[name])
        if name in given and not least <= given[name] <= most:
            raise _core.ConfigError(f"{name}: must be from {least} to {most}, is {arguments.shown(given[name])}")
    if given.get("resume") and given.get("again"):
        raise _core.ConfigError("again: repeats what resume continues; give one of them")
    if given.get("model_format", "npy") not in ("npy", "safetensors"):
        raise _core.ConfigError(f"model_format: must be one of npy, safetensors; is {given['model_format']!r}")
    _require_device(given.get("device", "cpu"))
    if "save_model" in given:
        _require_writable("save_model", Path(given["save_model"]))
    source = source_of(scenario)
    found = given | source | {"settings": [*source["settings"], *_toml.settings(settings)]}
    registration.refresh(registration.text_of(found))
    return found


def _require_device(name: str) -> None:
    if name in _DEVICES:
        return
    word = name.lower()
    meant = "cuda" if word.startswith(("gpu", "cuda", "nvidia")) else next((one for one in _DEVICES if one == word), "")
    hint = f"; did you mean {meant!r}?" if meant else _core.hint(name, list(_DEVICES))
    numbered = " The environment variable CUDA_VISIBLE_DEVICES chooses one of several GPUs." if meant == "cuda" and ":" in name else ""
    raise _core.ConfigError(f"device: must be one of {', '.join(_DEVICES)}; is {name!r}{hint}{numbered}")


def _require_writable(name: str, folder: Path) -> None:
    """Raises StoreError for a folder that cannot be made or written to, before anything runs. Nothing is made."""
    there = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        reason = f"{there} cannot be written to" if there.is_dir() else f"{there} is a file"
        raise _core.StoreError(f"{name}: nothing can be saved in {folder}: {reason}; choose another folder")


def _warn(texts: list[str]) -> None:
    for text in texts:
        warnings.warn(in_python(text), StudyWarning, stacklevel=4)


def _is_interruptible() -> bool:
    """Whether Ctrl-C reaches this thread, and nobody else has asked for it."""
    return threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
