"""Digests of modules and tensors of PyTorch."""
from __future__ import annotations

from typing import Any, Protocol

import torch

# What every module has: whether it trains, where hooks are kept by numbers of the process, and what is digested by itself.
_OWN_OF_MODULES = frozenset(vars(torch.nn.Module()))
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")  # those that take part in a result


class Walk(Protocol):
    """The walk of fedbits.digest, as far as tensors and modules need it."""

    def word(self, *words: Any) -> None: ...
    def value(self, value: Any) -> None: ...
    def named(self, name: str, value: Any) -> None: ...
    def numbers(self, value: Any) -> None: ...
    def refusal(self, value: Any) -> TypeError: ...


def write(walk: Walk, value: Any) -> None:
    """Digests a tensor or a module."""
    if isinstance(value, torch.Tensor):
        _tensor(walk, value)
    elif isinstance(value, torch.jit.ScriptModule):
        _script(walk, value)
    else:
        _module(walk, value._orig_mod if type(value).__name__ == "OptimizedModule" else value)  # of torch.compile, which computes the same


def _module(walk: Walk, module: torch.nn.Module) -> None:
    """Digests the class of a module, its parameters, buffers and layers in their order, its own attributes, and its hooks."""
    walk.word("module")
    walk.value(type(module))
    for kind in ("_parameters", "_buffers", "_modules"):
        walk.word(kind)
        for name, one in getattr(module, kind).items():
            walk.named(name, one)
    for kind in _HOOKS:
        walk.word(kind)
        for hook in getattr(module, kind, {}).values():
            walk.named(kind, hook)
    for name, one in sorted(vars(module).items()):
        if name not in _OWN_OF_MODULES:
            walk.named(name, one)


def _script(walk: Walk, module: Any) -> None:
    """Digests a compiled module: the code of its layers, which holds their attributes, and its tensors."""
    walk.word("script")
    for name, layer in module.named_modules():
        walk.word(name, layer.code if hasattr(layer, "forward") else "")
    for name, tensor in module.state_dict().items():
        walk.named(name, tensor)


def _tensor(walk: Walk, tensor: torch.Tensor) -> None:
    walk.word("tensor", tensor.dtype, tuple(tensor.shape), tensor.requires_grad, tensor.layout, tensor.device.type)
    try:
        values = tensor.detach().to_dense() if tensor.layout != torch.strided else tensor.detach()
        array = values.cpu().contiguous().reshape(-1).view(torch.uint8).numpy() if values.numel() > 0 else None
    except (NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        raise walk.refusal(tensor) from error
    if array is not None:
        walk.numbers(array)
