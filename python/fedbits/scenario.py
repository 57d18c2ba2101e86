"""Scenarios with their keys as attributes."""
from __future__ import annotations

import copy
import os
import re
import tomllib
from typing import Any, Iterator, Mapping

from fedbits import _core, _toml, arguments, registration
from fedbits.words import python_words


class Scenario:
    """A scenario: a file, the text of one, or a dict, with changes.

        scenario = fedbits.Scenario("study.toml", rounds=100)
        scenario.local.learning_rate = 0.1
        scenario.compressor.up = fedbits.TopK(ratio=0.01)
        store = fedbits.run(scenario)

    Keys are attributes, by their dotted paths, and `scenario["partition.alpha"]` is the same as `scenario.partition.alpha`. Reading gives the value
    that a run would have, defaults included; where an axis of a sweep has the key, that of the first run. A change is checked at once: ConfigError
    says what is wrong with the key, with the nearest name for one that does not exist. What other keys need for it is checked when it is run.
    """

    _source: dict[str, Any]
    _changes: dict[str, Any]
    _is_dict: bool

    def __init__(self, source: str | os.PathLike[str] | Mapping[str, Any] | Scenario, **changes: Any):
        vars(self).update(_source=_source_of(source), _is_dict=is_dict(source), _changes=dict(getattr(source, "_changes", {})), _cached=None, _known=set())
        self._first_run()
        for path, value in _toml.flat(changes):
            self._change(path, value)
        self._first_run()

    def keys(self) -> list[str]:
        """The dotted paths of all keys that the scenario has, in alphabetical order. They depend on the kinds of its parts."""
        self._first_run()
        return sorted(self._known)

    def runs(self) -> list[dict[str, Any]]:
        """The runs in their order: `run` (their hash in a store, or None where tuning decides it), `seed`, and the labels of the axes."""
        with python_words(is_dict=self._is_dict):
            return [{"run": run or None, "seed": seed} | labels for run, seed, labels in _core.runs_of_scenario(self._refreshed())]

    def text(self) -> str:
        """The first run as a scenario file with every key."""
        return self._first_run()[0]

    def copy(self) -> Scenario:
        return copy.copy(self)

    def __copy__(self) -> Scenario:
        return Scenario(self)

    def __getitem__(self, path: str) -> Any:
        arguments.text("a key", path)
        if any(key.startswith(path + ".") for key in self._known):
            return Section(self, path)
        found: Any = self._first_run()[1]
        for name in path.split("."):
            if not isinstance(found, dict) or name not in found:
                return self._missing(path)
            found = found[name]
        return found

    def __setitem__(self, path: str, value: Any) -> None:
        try:
            self._change(path, value)
        except _core.ConfigError as error:
            raise _in_paths(error.problems) from None

    def _change(self, path: str, value: Any) -> None:
        before = self._changes, self._cached
        # The last change of a key counts, in its new place.
        vars(self).update(_changes={key: one for key, one in self._changes.items() if key != path} | {path: value}, _cached=None)
        try:
            self._first_run()
        except _core.ConfigError as error:
            if own := [problem for problem in error.problems if _is_about(problem[1], path)]:
                vars(self).update(_changes=before[0], _cached=before[1])
                raise _config_error(own) from None

    def __contains__(self, path: str) -> bool:
        return path in self._known

    def _ipython_key_completions_(self) -> list[str]:
        return self.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _attribute(self, "", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name.removesuffix("_")] = value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_names_below(self, "")})

    def __repr__(self) -> str:
        shown = self._source.get("file") or self._source["name"]
        return f"<Scenario {shown}{': ' if self._changes else ''}{', '.join(_toml.settings(self._changes))}>"

    def _options(self) -> dict[str, Any]:
        return self._source | {"settings": list(_toml.settings(self._changes))}

    def _refreshed(self) -> dict[str, Any]:
        """Returns the options after the core has been told what parts in Python are now."""
        options = self._options()
        registration.refresh(registration.text_of(options))
        return options

    def _first_run(self) -> tuple[str, dict[str, Any]]:
        """Returns the first run as text and as values. Keeps the paths of its keys, for completion while keys do not fit together."""
        if self._cached is None:
            with python_words(is_dict=self._is_dict):
                text, keys = _core.first_run_of(self._refreshed())
            values = tomllib.loads(text)
            vars(self).update(_cached=(text, values), _known={*keys, *(path for path, _ in _toml.leaves(values))})
        return self._cached

    def _missing(self, path: str) -> Any:
        """Returns None for a key that may be set, and raises the command line's error for one that does not exist."""
        if path in self._known:
            return None
        options = self._options()
        options["settings"].append(f"{path}=0")
        try:
            with python_words(is_dict=self._is_dict):
                _core.first_run_of(options)
        except _core.ConfigError as error:
            own = [one for one in error.problems if _is_about(one[1], path)] or error.problems
            raise _in_paths([("", what) for _, what in own]) from None
        raise KeyError(path)


class Section:
    """A table of a scenario, such as scenario.local."""

    def __init__(self, scenario: Scenario, path: str):
        vars(self).update(_scenario=scenario, _path=path)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _attribute(self._scenario, self._path + ".", name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._scenario[f"{self._path}.{name.removesuffix('_')}"] = value

    def __dir__(self) -> list[str]:
        return sorted(_names_below(self._scenario, self._path + "."))

    def __repr__(self) -> str:
        names = _names_below(self._scenario, self._path + ".")
        return f"[{self._path}] " + ", ".join(f"{name} = {getattr(self, name)!r}" for name in sorted(names))


def source_of(scenario: Any) -> dict[str, Any]:
    """Returns what the extension module reads: the scenario's file or text, and the changes of a Scenario."""
    return scenario._options() if isinstance(scenario, Scenario) else _source_of(scenario) | {"settings": []}


def is_dict(scenario: Any) -> bool:
    """Whether a scenario was given as a dict, or is made of one."""
    return scenario._is_dict if isinstance(scenario, Scenario) else isinstance(scenario, Mapping)


def _source_of(scenario: Any) -> dict[str, Any]:
    if isinstance(scenario, Scenario):
        return scenario._source
    if isinstance(scenario, Mapping):
        return {"text": _toml.scenario_text(scenario), "name": "scenario", "folder": ""}
    if isinstance(scenario, str) and "\n" in scenario:
        return {"text": arguments.text("the text of the scenario", scenario), "name": "scenario", "folder": ""}
    if isinstance(scenario, (str, os.PathLike)):
        return {"file": arguments.path("the path of the scenario", scenario)}
    raise TypeError(f"a scenario is a path, the text of a scenario file, a dict or a fedbits.Scenario; this is of type {type(scenario).__name__}")


def _in_paths(problems: list[tuple[str, str]]) -> _core.ConfigError:
    """Returns an error that names the key that may be meant by its path, as attributes have it, and not as a keyword argument."""
    def path(meant: re.Match[str]) -> str:
        return f"did you mean \"{meant[1].replace('__', '.')}\"{meant[2] or ''}?"

    return _config_error([(where, re.sub(r"did you mean (\w+)=[^?]*?( \(of [^?]*)?\?", path, what)) for where, what in problems])


def _attribute(scenario: Scenario, above: str, name: str) -> Any:
    try:
        return scenario[above + name.removesuffix("_")]
    except (_core.ConfigError, KeyError) as error:
        raise AttributeError(str(error)) from None


def _names_below(scenario: Scenario, above: str) -> set[str]:
    return {key[len(above):].split(".")[0] for key in scenario._known if key.startswith(above)}


def _is_about(message: str, path: str) -> bool:
    return message == path or message.startswith((path + ":", path + ".", path + " "))


def _config_error(problems: list[tuple[str, str]]) -> _core.ConfigError:
    error = _core.ConfigError("\n".join(f"{where}: {message}" if where else message for where, message in problems))
    error.problems = problems
    return error
