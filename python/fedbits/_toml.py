"""Values of Python as the text of a scenario file."""
from __future__ import annotations

import itertools
import json
import math
import os
from typing import Any, Iterable, Iterator, Mapping

from fedbits import arguments


def value_text(value: Any, path: str, level: int = 0, numbers: Iterator[int] | None = None) -> str:
    """Returns a value in the syntax of TOML. Raises TypeError and ValueError, with its path, for a value that no option can take. `numbers` counts
    the values in it."""
    numbers = numbers or itertools.count()
    if next(numbers) > arguments.MOST_VALUES:
        raise ValueError(f"{path[:80]} has more than {arguments.MOST_VALUES} values, as a list that is in many lists")
    if level > arguments.MOST_LEVELS:
        raise ValueError(f"{path[:80]} has more than {arguments.MOST_LEVELS} levels of values in values, as a list that contains itself")
    if hasattr(value, "as_table"):
        if isinstance(value, type):
            raise TypeError(f"{value.__name__} is a class; a value of a scenario is one of its objects, as {value.__name__}(...)")
        value = value.as_table()  # a compressor
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value  # a number of NumPy or PyTorch
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(arguments.whole(path, value, -2**63, 2**63 - 1))
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(arguments.text(path, os.fspath(value)), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        texts = (f"{_key_text(key, path)} = {value_text(one, f'{path}.{key}', level + 1, numbers)}" for key, one in value.items())
        return "{" + ", ".join(texts) + "}"
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        return "[" + ", ".join(value_text(one, f"{path}[{place}]", level + 1, numbers) for place, one in enumerate(value)) + "]"
    if hasattr(value, "kind") and hasattr(value, "receive"):  # a feedback
        raise TypeError(f"{path}: a scenario names the kind of a feedback, as feedback__up__kind={value.kind!r}, and not its object")
    raise TypeError(f"{path}: a value of a scenario is a bool, an int, a float, a str, a list or a dict of these; {arguments.shown(value)} is of type "
                    f"{type(value).__name__}")


def scenario_text(tables: Mapping[str, Any]) -> str:
    """Returns the text of a scenario file with one key a line."""
    return "".join(f"{_key_text(key)} = {value_text(value, key)}\n" for key, value in tables.items())


def flat(changes: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, Any]]:
    """Yields ("partition.alpha", 0.1) for partition={"alpha": 0.1}, partition__alpha=0.1 and {"partition.alpha": 0.1}.

    A dict with a `kind` describes a part and takes the place of the whole table.
    """
    if above.count(".") > arguments.MOST_LEVELS:
        raise ValueError(f"{above[:80]} has more than {arguments.MOST_LEVELS} levels of values in values, as a dict that contains itself")
    for key, value in changes.items():
        _require_key(key, above)
        path = (above + "." if above else "") + key.replace("__", ".")
        if isinstance(value, Mapping) and "kind" not in value:
            yield from flat(value, path)
        else:
            yield path, value


def leaves(tables: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, Any]]:
    """Yields the dotted path and the value of everything in nested tables that is no table."""
    for key, value in tables.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{above}{key}.")
        else:
            yield above + key, value


def settings(changes: Mapping[str, Any]) -> Iterable[str]:
    """Yields changes as the command line's --set has them: "partition.alpha=0.1"."""
    for path, value in flat(changes):
        yield f"{path}={value_text(value, path)}"


def _require_key(key: Any, above: str) -> None:
    if not isinstance(key, str):
        raise TypeError(f"a key of a scenario is a str; {arguments.shown(key)} is of type {type(key).__name__}")
    arguments.text(f"a key of {above[:80]}" if above else "a key", key)


def _key_text(key: str, above: str = "") -> str:
    _require_key(key, above)
    bare = key.isascii() and key.replace("_", "a").replace("-", "a").isalnum()
    return key if bare else json.dumps(key, ensure_ascii=False)
