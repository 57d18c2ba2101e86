"""Checks of arguments: a wrong one is named, with its value and what it has to be, before it reaches the core."""
from __future__ import annotations

import difflib
import math
import operator
import os
import reprlib
from typing import Any, Iterable, Mapping, Sequence

import numpy as np

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
MOST_NUMBERS = 2**32 - 1  # of a vector: positions have 32 bits
MOST_LEVELS = 64  # of values in values, as in a scenario
MOST_VALUES = 1_000_000  # of an option or a key: a list that is in several lists counts each time


def shown(value: Any) -> str:
    """Returns a value as errors show it. Python itself refuses to write whole numbers of thousands of digits."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a whole number of {value.bit_length()} bits"
    try:
        return reprlib.repr(value)
    except ValueError:
        return f"an object of type {type(value).__name__}"


def index(name: str, value: Any) -> int:
    """Returns a whole number."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {shown(value)}; it must be a whole number") from None


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Returns a whole number from `least` to `most`."""
    found = index(name, value)
    if found < least or (most is not None and found > most):
        raise ValueError(f"{name} is {shown(found)}; it must be {f'at least {least}' if most is None else f'from {least} to {most}'}")
    return found


def real(name: str, value: Any) -> float:
    """Returns a number, which may be infinite or NaN."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} is {shown(value)}; it must be a number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} is {shown(value)}; it is too large for a floating point number") from None


def text(name: str, value: Any) -> str:
    """Returns a text that can be written as UTF-8."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {shown(value)}; it must be a str")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} is {shown(value)}, which has half of a surrogate pair and is no text") from None
    return value


def path(name: str, value: Any) -> str:
    """Returns a path as a text that names a file."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} is {shown(value)}; it must be a path")
    found = text(name, os.fspath(value))
    if "\0" in found:
        raise ValueError(f"{name} is {shown(found)}; a path cannot contain a byte 0")
    return found


def number(name: str, value: Any) -> float:
    """Returns a finite number."""
    found = real(name, value)
    if not math.isfinite(found):
        raise ValueError(f"{name} is {found}; it must be finite")
    return found


def positive(name: str, value: Any) -> float:
    """Returns a finite number above 0."""
    found = real(name, value)
    if not (found > 0 and math.isfinite(found)):
        raise ValueError(f"{name} is {found}; it must be above 0 and finite")
    return found


def numbers(name: str, values: Any) -> list[float]:
    """Returns a list of finite numbers."""
    return [number(f"{name}[{i}]", value) for i, value in enumerate(_items(name, values, "a list of numbers"))]


def shape(name: str, value: Any) -> tuple[int, ...]:
    """Returns a shape as a tuple; a whole number is the length of a vector."""
    if hasattr(value, "__index__"):
        return (whole(name, value, 0, MOST_NUMBERS),)
    return _few(name, tuple(whole(f"{name}[{i}]", size, 0) for i, size in enumerate(_items(name, value, "a whole number or a list of them"))))


def shapes(name: str, values: Any) -> tuple[tuple[int, ...], ...]:
    """Returns a list of shapes."""
    found = tuple(_items(name, values, "a list of shapes, as [(64, 32), (64,)]"))
    for i, value in enumerate(found):
        if hasattr(value, "__index__"):
            raise TypeError(f"{name}[{i}] is {shown(value)}; it must be the shape of a tensor, as ({shown(value)},)")
    made = tuple(shape(f"{name}[{i}]", value) for i, value in enumerate(found))
    if (total := sum(map(math.prod, made))) > MOST_NUMBERS:
        raise ValueError(f"{name} have {shown(total)} numbers together; a vector has at most {MOST_NUMBERS}")
    return made


def _few(name: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the sizes of a shape that a vector can have."""
    total = 1
    for size in sizes:
        total *= max(size, 1)  # a size of 0 makes others no smaller
        if total > MOST_NUMBERS:
            raise ValueError(f"{name} is {shown(sizes)}; a vector has at most {MOST_NUMBERS} numbers")
    return sizes


def float_type(name: str, value: Any) -> np.dtype:
    """Returns float32 or float64."""
    try:
        found = np.dtype(value)
    except (TypeError, ValueError, RecursionError):
        found = None
    if found is None or found not in FLOATS:
        raise TypeError(f"{name} is {shown(value) if found is None else found}; it must be float32 or float64")
    return found


def table(name: str, value: Any, keys: Sequence[str]) -> Mapping[str, Any]:
    """Returns a mapping that has these keys."""
    if not isinstance(value, Mapping) or any(key not in value for key in keys):
        raise ValueError(f"{name} is {shown(value)}; it must be a dict of state_dict()" + (f", with {', '.join(map(repr, keys))}" if keys else ""))
    return value


def nearest(name: str, names: Iterable[str]) -> str:
    """Returns "; did you mean 'X'?" for the nearest name, whatever its capitals, or ""."""
    by_letters = {one.lower().replace("_", ""): one for one in names}
    found = difflib.get_close_matches(name.lower().replace("_", ""), by_letters, n=1)
    return f"; did you mean {by_letters[found[0]]!r}?" if found else ""


def _items(name: str, values: Any, expected: str) -> list[Any]:
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__iter__") or getattr(values, "ndim", 1) == 0:
        raise TypeError(f"{name} is {shown(values)}; it must be {expected}")
    return list(values)
