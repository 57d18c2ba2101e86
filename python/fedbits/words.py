"""Texts of the command line in the words of this package: options become arguments, and places of a file that nobody has written are left out."""
from __future__ import annotations

import contextlib
import difflib
import re
from typing import Iterable, Iterator

from fedbits import _core

# Options of the command line that are arguments here: by another name, without a value, and with the same name.
_OTHERS = {"data": "data_folder", "contrast": "contrasts", "margin": "margins", "lambda": "lambda_"}
_FLAGS = ("again", "any-build", "claims-despite-refused", "materialise", "resume")
_SAME = ("baseline", "block", "checkpoint-minutes", "checkpoint-rounds", "classes", "device", "epsilon", "gamma", "heterogeneity", "jobs", "k", "level",
         "measure", "memory", "method", "model-format", "out", "ratio", "save-model", "shard", "sigma", "state-folder", "state-memory", "study", "target",
         "threads", "window", "zeta")
_ARGUMENTS = _OTHERS | {name: name.replace("-", "_") + "=True" for name in _FLAGS} | {name: name.replace("-", "_") for name in _SAME}
# Keywords of other libraries for arguments of run and sweep, and for what is said elsewhere.
_MEANT = {"verbose": "progress", "quiet": "progress", "silent": "progress", "callback": "progress", "callbacks": "progress", "workers": "jobs",
          "num_workers": "jobs", "n_jobs": "jobs", "processes": "jobs", "parallel": "jobs", "folder": "out", "output": "out", "output_dir": "out",
          "save_dir": "out", "log_dir": "out", "data_dir": "data_folder", "data_path": "data_folder", "root": "data_folder", "gpu": "device", "cuda": "device",
          "overwrite": "again", "force": "again", "repeat": "again"}
_MEASURES = ("measure", "measures", "metric", "metrics")
_OF_MEASURES = ("every study measures its losses and test_accuracy; Store.comparison(measure=\"test_accuracy\") and fedbits.plot choose one, and "
                "evaluate__measures=[...] adds other measures")
_TABLES = ("compressor", "data", "evaluate", "feedback", "local", "model", "participation", "partition", "seeds", "server", "start", "stop", "sweep")
_KINDS = ("local", "model", "participation", "partition", "server", "start")  # tables whose `kind` names a part
_OF_ONE = {"jobs": "sweep", "memory": "sweep", "shard": "sweep", "block": "run", "materialise": "run"}  # arguments of one function alone
_FETCH = re.compile(r"`(fedbits data fetch \S+) --data DIR` gets it from its publisher, then pass --data DIR \(`fedbits data` shows what is there\)")


def in_python(text: str) -> str:
    """Returns a text of the command line in the words of this package. Commands in backticks stay as they are."""
    text = _FETCH.sub(r"the command line program, which a clone builds, gets it from its publisher: `\1 --data DIR`; then pass data_folder=DIR", text)
    text = re.sub(r"`fedbits export [^`]* --runs runs\.csv` lists them", "Store.runs lists them", text)
    pieces = text.split("`")
    pieces[::2] = [re.sub(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)\b", lambda found: _ARGUMENTS.get(found[1], found[0]), one) for one in pieces[::2]]
    return "`".join(pieces)


@contextlib.contextmanager
def python_words(*, is_dict: bool = False, arguments: Iterable[str] = ()) -> Iterator[None]:
    """Rewrites errors of the core in the words of this package.

    is_dict: the scenario is a dict, so that its user knows no lines and columns.  arguments: of the function, for keys that were meant as one of them.
    """
    try:
        yield
    except _core.ConfigError as error:
        error.problems = [_problem(where, what, is_dict, list(arguments)) for where, what in getattr(error, "problems", [])]
        error.args = ("\n".join(f"{where}: {what}" if where else what for where, what in error.problems) or in_python(str(error)),)
        raise
    except _core.Error as error:
        error.args = (in_python(str(error)),)
        raise


def _problem(where: str, what: str, is_dict: bool, arguments: list[str]) -> tuple[str, str]:
    """Returns the place and the message of a problem."""
    if is_dict and re.fullmatch(r"scenario:\d+:\d+", where):
        where = ""
    setting = re.fullmatch(r"--set (\w+)=(.*)", where, re.DOTALL)
    if setting and "__" not in setting[1] and what.startswith((f"{setting[1]}: ", f"{setting[1]}.kind: unknown key")):
        what = _of_keyword(setting[1], setting[2], what, arguments)
    return in_python(where.removeprefix("--set ")), in_python(what)


def _of_keyword(name: str, value: str, what: str, arguments: list[str]) -> str:
    """Returns the message about a keyword argument that is no key of the scenario: what was meant is written as a keyword argument."""
    is_unknown = what.startswith(f"{name}: unknown key")
    near = difflib.get_close_matches(name, arguments, 1, 0.6)
    meant = _MEANT.get(name, near[0] if near else name)
    if is_unknown and name in _MEASURES:
        text = f"; {_OF_MEASURES}"
    elif is_unknown and meant in arguments:
        text = f"; did you mean the argument {meant}=?"
    elif is_unknown and arguments and meant in _OF_ONE:
        text = f"; did you mean the argument {meant}= of fedbits.{_OF_ONE[meant]}?"
    elif found := re.search(r'; did you mean "(\w+)"(?: \((?:in \[([\w.]+)\]|above the first table)\))?(.*?)\?', what):
        path = f"{found[2]}.{found[1]}" if found[2] else found[1]
        text = f"; did you mean {_as_table(path, value) if path in _TABLES else _as_keyword(path, value)}{found[3]}?"
    elif "must be a table" in what or (".kind: unknown key" in what and name in ("compressor", "feedback")):
        text = f"; did you mean {_as_table(name, value)}?"
    else:
        return what
    return re.sub(r'(?:; did you mean [^?]*\?|; write [^;(]*)?( \(known: .*)?$', lambda rest: text + (rest[1] or ""), what, count=1, flags=re.DOTALL)


def _as_table(name: str, value: str) -> str:
    """Returns the keyword argument for a value that stands in the place of a whole table."""
    is_text = value.startswith('"')
    if name in ("compressor", "feedback"):
        return _as_keyword(f"{name}.up.kind" if is_text else f"{name}.up", value)
    if name == "data" and is_text:
        return _as_keyword("data.kind" if value.strip('"') in _core.names("data") else "data.name", value)
    return _as_keyword(f"{name}.kind", value) if name in _KINDS and is_text else f"{name}={{...}}"


def _as_keyword(path: str, value: str) -> str:
    return f"{path.replace('.', '__')}={_short(value)}"


def _short(value: str) -> str:
    """Returns a value of TOML as one of Python, if it is a short one."""
    value = {"true": "True", "false": "False"}.get(value, value)
    return value if len(value) <= 40 and not value.startswith(("{", "[")) else "..."
