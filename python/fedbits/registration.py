"""Classes of Python as parts of scenarios: their kinds, their options, and what they raised."""
from __future__ import annotations

import contextlib
import inspect
import pathlib
import re
import secrets
import threading
from typing import Any, Iterator

from fedbits import _core
from fedbits.arguments import text
from fedbits.digest import digest_of

_OPTION_TYPES = (bool, int, float, str)
_PARTS: dict[tuple[str, str], _Part] = {}
_FAILURES: list[BaseException] = []
_NOTED: list[BaseException] = []  # those of them that the core has passed on
_LOCK = threading.Lock()


class _Part:
    """A class, or one object, that is a part, and what of it the core knows."""

    def __init__(self, made: Any, base: type, code: str):
        self.made, self.cls, self.base = made, made if isinstance(made, type) else type(made), base
        self.code = code
        self.error: TypeError | None = None  # why it has no digest any more


def register(role: str, kind: str, made: Any, base: type) -> None:
    """Makes a class, or one object, the part `kind` of scenarios. A class that is defined again takes the place of the one before.

    Its options are the class attributes with a number, a text or a bool. The digest of its code and values becomes one more option, `code`, which
    tells runs of other code apart. Raises ValueError for the kind of a part of the simulator and for a name that a scenario cannot hold, and
    TypeError for an attribute that has no digest.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", text("kind", kind)):
        raise ValueError(f"kind is {kind!r}; it must begin with a small letter and consist of small letters, digits and underscores")
    if (role, kind) not in _PARTS and kind in _core.names(role):
        raise ValueError(f"the simulator has a {role} {kind!r} already; choose another kind")
    part = _Part(made, base, _code_of(made))
    _describe(role, kind, part)
    _PARTS[role, kind] = part


def registered(role: str, kind: str) -> Any:
    """Returns the class or object that is the part `kind`, or None for a part of the simulator."""
    part = _PARTS.get((role, kind))
    return None if part is None else part.made


def _describe(role: str, kind: str, part: _Part) -> None:
    options = [(name, value, f"an option of {part.cls.__name__}") for name, value in _options_of(part.cls, part.base).items()]
    options.append(("code", part.code, "a digest of the class, which tells runs of other code apart"))
    summary = (inspect.getdoc(part.cls) or part.cls.__name__).splitlines()[0].rstrip(".")
    _core.register_part(role, kind, summary, options)


def refresh(scenario: str) -> None:
    """Tells the core the options and digests, as they are now, of the parts whose kinds stand in the text of a scenario.

    Attributes of a class, captured variables and arrays may have changed since they were registered, and then stored results are not theirs. A part
    that has no digest now gets one that no stored run has, and an error when it is used.
    """
    for (role, kind), part in list(_PARTS.items()):
        if kind not in scenario:
            continue
        try:
            code, error = _code_of(part.made), None
        except TypeError as raised:
            code, error = f"unknown-{secrets.token_hex(8)}", raised
        if code != part.code:
            part.code, part.error = code, error
            _describe(role, kind, part)


def text_of(options: dict[str, Any]) -> str:
    """Returns the text of a scenario with its changes, from the options of the extension module."""
    path = options.get("file")
    try:
        found = options.get("text", "") if path is None else pathlib.Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:  # the core will say so
        found = ""
    return "\n".join([found, *options.get("settings", ())])


def _options_of(part: type, base: type) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for cls in reversed(part.__mro__[:part.__mro__.index(base)]):
        for name, value in vars(cls).items():
            if not name.startswith("_") and isinstance(value, _OPTION_TYPES) and name not in vars(base):
                options[name] = value
    return options


def make(role: str, kind: str, options: dict[str, Any]) -> Any:
    """Returns the object of a part, with its options as attributes. The core calls this.

    The digest is that from the beginning of the study: a list in which a model collects what it sees does not end the study.
    """
    part = _PARTS[role, kind]
    code = options.pop("code")
    if part.error is not None:
        raise part.error
    if code != part.code:
        raise _core.ConfigError(f"{kind}: the scenario is of code {code}, the class that is defined now has code {part.code}; "
                                "define the class again as it was, or leave the key \"code\" out")
    if not isinstance(part.made, type):
        return part.made._new()
    made = part.made()
    for name, value in options.items():
        setattr(made, name, value)
    return made


def _code_of(made: Any) -> str:
    return digest_of(**{made.__name__: made}) if isinstance(made, type) else made._code()


# ---- failures: the core knows that something was raised, and fedbits.run raises it


@contextlib.contextmanager
def calling(part: Any, method: str, when: str) -> Iterator[None]:
    """Adds to what a method of a part raises that it was called, and when."""
    try:
        yield
    except Exception as error:
        error.add_note(f"{getattr(part, '_name', type(part).__name__)}.{method}(), called {when}")
        raise


def keep_failure(error: BaseException) -> int:
    """Keeps what a client raised, and returns its number. Several clients may raise at the same time, in threads of their own."""
    with _LOCK:
        _FAILURES.append(error)
        return len(_FAILURES) - 1


def note_failure(number: int, where: str) -> None:
    """Adds to the failure of this number which client computed, and when: of those at the same time it is the one that the core passes on."""
    with _LOCK:
        if number >= len(_FAILURES):
            return
        error = _FAILURES[number]
        if where not in getattr(error, "__notes__", []):
            error.add_note(where)
        _NOTED.append(error)


def text_of_failure(error: BaseException) -> str:
    """Returns the type of what was raised and its text, as UTF-8 can have it."""
    try:
        what = str(error)
    except Exception as raised:  # of any type: the error's own code runs
        what = f"an error whose text raises {type(raised).__name__}"
    return f"{type(error).__name__}: {what}".encode("utf-8", "backslashreplace").decode()


def forget_failures() -> None:
    with _LOCK:
        _FAILURES.clear()
        _NOTED.clear()


def raise_failure() -> None:
    """Raises the first failure of the study that has just ended, and forgets all of them. Returns if there is none."""
    with _LOCK:
        failures = _NOTED + _FAILURES
        _FAILURES.clear()
        _NOTED.clear()
    if failures:
        raise failures[0]
