"""Whether calls of a module leave it as it was: its buffers, its attributes, and the random numbers of PyTorch.

Clients share one module, and calls come in an order that depends on the number of threads. A module that remembers something from one call to the
next would give results that depend on that order.
"""
from __future__ import annotations

import copy
import dataclasses
import fnmatch
import weakref
from typing import Any, Iterable, Sequence

import torch

from fedbits.digest import digest_of

_OWN_OF_MODULES = frozenset(vars(torch.nn.Module()))
_KINDS_OF_STATISTICS = (torch.nn.modules.batchnorm._NormBase,)


class Steadiness:
    """The buffers and attributes of a module that calls must not change.

    statistics: names of buffers that are part of the model's vector instead.  restored: patterns of names, as "mean" or "*._u", of buffers and
    attributes that calls may change, and that are set to their starting values before each call.
    """

    def __init__(self, module: torch.nn.Module, statistics: Iterable[str], restored: Sequence[str]):
        self._kept: list[_Kept] = []
        self._restored: list[tuple[_Kept, Any]] = []  # each with a copy of its starting value
        found = set()
        for path, layer in module.named_modules():
            for is_buffer, name, value in _memories_of(layer):
                one = _Kept(layer, is_buffer, name, f"{path}.{name}".lstrip("."), value, _version_of(value))
                if one.path in statistics:
                    continue
                pattern = next((pattern for pattern in restored if fnmatch.fnmatchcase(one.path, pattern)), None)
                if pattern is None:
                    self._kept.append(one)
                else:
                    found.add(pattern)
                    self._restored.append((one, copy.deepcopy(value)))
        for pattern in restored:
            if pattern not in found:
                raise ValueError(f"restored has {pattern!r}, which is no buffer and no attribute of the module")
        self._layers = [(path, layer, set(vars(layer))) for path, layer in module.named_modules()]
        self._looked: dict[str, int] = {}  # calls around which all numbers were read, by the mode
        self._digests = self._numbers()

    def begin(self) -> None:
        """Sets what calls may change to its starting value, before a call."""
        for one, start in self._restored:
            one.restore(start)

    def require(self, mode: str) -> None:
        """Raises ValueError, after a call in this mode, for the buffers and attributes that it has changed."""
        moved = [(one.path, one.is_buffer) for one in self._kept if one.has_moved()]
        for path, layer, names in self._layers:
            if len(vars(layer)) != len(names):
                moved += [(f"{path}.{name}".lstrip("."), False) for name in sorted(set(vars(layer)).difference(names, _computed_by_hooks(layer)))]
        if (looked := self._looked.get(mode, 0)) < _CALLS_LOOKED_AT:
            self._looked[mode] = looked + 1
            now = self._numbers()
            moved += [(one.path, one.is_buffer) for one in self._kept if now.get(one.path) != self._digests.get(one.path) and not one.has_moved()]
        if moved:
            raise ValueError(_text_of(moved))

    def forgive(self) -> None:
        """Takes the module as it is now as unchanged, after a call that was no part of a run; what it has changed, the run's own calls will change."""
        for one in self._kept:
            one.version = _version_of(one.value)
        self._layers = [(path, layer, set(vars(layer))) for path, layer, _ in self._layers]
        self._digests = self._numbers()

    def _numbers(self) -> dict[str, str]:
        """Returns digests of all values, which tell of changes inside lists and through .data."""
        return {one.path: digest_of(value=one.value) for one in self._kept if not _has_parameters(one.value)}


@dataclasses.dataclass
class _Kept:
    """A buffer or an attribute of a layer."""

    layer: torch.nn.Module
    is_buffer: bool
    name: str
    path: str  # in the module
    value: Any
    version: int

    def has_moved(self) -> bool:
        now = (self.layer._buffers if self.is_buffer else vars(self.layer)).get(self.name, _GONE)
        return now is not self.value or _version_of(now) != self.version

    def restore(self, start: Any) -> None:
        if self.is_buffer:
            self.layer._buffers[self.name] = self.value
            with torch.no_grad():
                self.value.copy_(start)
        else:
            setattr(self.layer, self.name, copy.deepcopy(start))


def _text_of(moved: Sequence[tuple[str, bool]]) -> str:
    what = " and ".join(f"the {'buffer' if is_buffer else 'attribute'} {path!r}" for path, is_buffer in moved[:4])
    more = f" and {len(moved) - 4} more" if len(moved) > 4 else ""
    return (f"forward() changes {what}{more} of the module, which all clients share: results would depend on the order of the calls. "
            f"Model(..., restored={[path for path, _ in moved[:4]]!r}) sets them to their starting values before each call; what clients train has to be a "
            "parameter, or a running statistic of a batch or instance norm layer")


def _has_parameters(value: Any) -> bool:
    """Whether a value holds parameters, whose numbers every call sets, as the list of weights of an LSTM does."""
    if isinstance(value, (list, tuple)):
        return any(_has_parameters(one) for one in value)
    if isinstance(value, dict):
        return any(_has_parameters(one) for one in value.values())
    return isinstance(value, (torch.nn.Parameter, weakref.ref))


_CALLS_LOOKED_AT = 2  # in each mode: reading all numbers takes longer than a call of a small module
_GONE = object()


def _memories_of(layer: torch.nn.Module) -> list[tuple[bool, str, Any]]:
    """Returns whether it is a buffer, the name and the value of all that a layer keeps beside its parameters."""
    counts = ("num_batches_tracked",) if isinstance(layer, _KINDS_OF_STATISTICS) else ()
    computed = _computed_by_hooks(layer)
    buffers = [(True, name, value) for name, value in layer._buffers.items() if value is not None and name not in counts]
    return buffers + [(False, name, value) for name, value in vars(layer).items() if name not in _OWN_OF_MODULES and name not in computed]


def _computed_by_hooks(layer: torch.nn.Module) -> set[str]:
    """Returns the attributes that the hooks of torch.nn.utils compute before each call, as the weight of weight_norm."""
    hooks = [one for one in layer._forward_pre_hooks.values() if type(one).__module__.startswith("torch.nn.utils.")]
    return {name for one in hooks if isinstance(name := getattr(one, "name", None) or getattr(one, "_tensor_name", None), str)}


def _version_of(value: Any) -> int:
    return value._version if isinstance(value, torch.Tensor) and not value.is_inference() else 0


def _differing(before: dict[tuple[str, bool], str], after: dict[tuple[str, bool], str]) -> tuple[str, bool] | None:
    return next((name for name, digest in before.items() if after[name] != digest), None)
