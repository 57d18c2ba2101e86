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
    setting = re.fullmatch(r"--set (\w+)=.*", where, re.DOTALL)
    near = difflib.get_close_matches(setting[1], arguments, 1, 0.6) if setting and what.startswith(f"{setting[1]}: unknown key") else []
    if near:
        what = re.sub(r'unknown key(; did you mean "[^"]*"(?: \(in [^)]*\))?\?)?', f"unknown key; did you mean the argument {near[0]}=?", what, count=1)
    return in_python(where.removeprefix("--set ")), in_python(what)
