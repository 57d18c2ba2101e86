"""Classes of Python as parts of scenarios: their kinds, their options, and what they raised."""
from __future__ import annotations

import hashlib
import inspect
import re
import threading
import types
from typing import Any

from fedbits import _core

_OPTION_TYPES = (bool, int, float, str)
_PARTS: dict[tuple[str, str], Any] = {}
_FAILURES: list[BaseException] = []
_NOTED: list[BaseException] = []  # those of them that the core has passed on
_LOCK = threading.Lock()


def register(role: str, kind: str, part: Any, base: type, code: str) -> None:
    """Makes a class, or one object, the part `kind` of scenarios. A class that is defined again takes the place of the one before.

    Its options are the class attributes with a number, a text or a bool. `code` becomes one more option, whose value tells runs of other code
    apart. Raises ValueError for the kind of a part of the simulator and for a name that a scenario cannot hold.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", kind):
        raise ValueError(f"kind is {kind!r}; it must begin with a small letter and consist of small letters, digits and underscores")
    if (role, kind) not in _PARTS and kind in _core.names(role):
        raise ValueError(f"the simulator has a {role} {kind!r} already; choose another kind")
    found = part if isinstance(part, type) else type(part)
    options = [(name, value, f"an option of {found.__name__}") for name, value in _options_of(found, base).items()]
    options.append(("code", code, "a digest of the class, which tells runs of other code apart"))
    summary = (inspect.getdoc(found) or found.__name__).splitlines()[0].rstrip(".")
    _core.register_part(role, kind, summary, options)
    _PARTS[role, kind] = part


def _options_of(part: type, base: type) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for cls in reversed(part.__mro__[:part.__mro__.index(base)]):
        for name, value in vars(cls).items():
            if not name.startswith("_") and isinstance(value, _OPTION_TYPES) and name not in vars(base):
                options[name] = value
    return options


def make(role: str, kind: str, options: dict[str, Any]) -> Any:
    """Returns the object of a part, with its options as attributes. The core calls this."""
    part = _PARTS[role, kind]
    code = options.pop("code")
    current = _code_of_part(part)
    if code != current:
        raise _core.ConfigError(f"{kind}: the scenario is of code {code}, the class that is defined now has code {current}")
    if not isinstance(part, type):
        return part._new()
    made = part()
    for name, value in options.items():
        setattr(made, name, value)
    return made


def _code_of_part(part: Any) -> str:
    return part._code() if not isinstance(part, type) else code_of(part)


def code_of(part: type) -> str:
    """Returns a digest of the compiled code of a class and of its bases outside of this package. Names and places of files do not count."""
    digest = hashlib.sha256()
    for cls in part.__mro__:
        if cls.__module__.split(".")[0] in ("fedbits", "builtins", "torch"):
            continue
        for name, value in sorted(vars(cls).items()):
            code = getattr(inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", value))), "__code__", None)
            if code is not None:
                digest.update(f"{name} {_text_of(code)}".encode())
            elif isinstance(value, (*_OPTION_TYPES, tuple)) and not name.startswith("__"):
                digest.update(f"{name} {value!r}".encode())
    return digest.hexdigest()[:16]


def _text_of(code: types.CodeType) -> str:
    """Returns what a function does, as text: its instructions, the names that it uses and its constants."""
    constants = [_text_of(one) if isinstance(one, types.CodeType) else repr(one) for one in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {constants}"


# ---- failures: the core knows that something was raised, and fedbits.run raises it


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
