"""Values of Python as the text of a scenario file."""
from __future__ import annotations

import json
import math
import os
from typing import Any, Iterable, Mapping


def value_text(value: Any) -> str:
    """Returns a value in the syntax of TOML. Raises TypeError for a value that no option can take."""
    if hasattr(value, "as_table"):
        if isinstance(value, type):
            raise TypeError(f"{value.__name__} is a class; a value of a scenario is one of its objects, as {value.__name__}(...)")
        value = value.as_table()  # a compressor
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value  # a number of NumPy or PyTorch
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, (str, os.PathLike)):
        return json.dumps(os.fspath(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key_text(key)} = {value_text(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        return "[" + ", ".join(value_text(one) for one in value) + "]"
    raise TypeError(f"a value of a scenario is a bool, an int, a float, a str, a list or a dict of these; {value!r} is of type {type(value).__name__}")


def scenario_text(tables: Mapping[str, Any]) -> str:
    """Returns the text of a scenario file with one key a line."""
    return "".join(f"{_key_text(key)} = {value_text(value)}\n" for key, value in tables.items())


def flat(changes: Mapping[str, Any], above: str = "") -> Iterable[tuple[str, Any]]:
    """Yields ("partition.alpha", 0.1) for partition={"alpha": 0.1}, partition__alpha=0.1 and {"partition.alpha": 0.1}.

    A dict with a `kind` describes a part and takes the place of the whole table.
    """
    for key, value in changes.items():
        if not isinstance(key, str):
            raise TypeError(f"a key of a scenario is a str; {key!r} is of type {type(key).__name__}")
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
        yield f"{path}={value_text(value)}"


def _key_text(key: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key of a scenario is a str; {key!r} is of type {type(key).__name__}")
    bare = key.isascii() and key.replace("_", "a").replace("-", "a").isalnum()
    return key if bare else json.dumps(key, ensure_ascii=False)
