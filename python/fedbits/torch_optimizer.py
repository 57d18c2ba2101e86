"""An optimizer of PyTorch whose gradients are compressed."""
from __future__ import annotations

import inspect
from typing import Any, Callable

import torch

from fedbits import arguments
from fedbits.compressors import Compressor
from fedbits.torch_sender import Gradient, Sender


class _Nothing:
    """What the constructor of Optimizer writes to, in place of the optimizer that it must not change."""

    def add_param_group(self, group: dict[str, Any]) -> None:
        pass


class Compressed(Sender, torch.optim.Optimizer):
    """An optimizer whose gradients are what a compressor makes of them.

    step() compresses the gradients of all parameters as one vector, in the order of the optimizer, writes what was sent into their .grad, and takes
    the optimizer's step. In several processes it writes the mean of all messages. Parameters that have no gradient in any process keep none; what
    is kept back of them waits for their next gradient, also while they are frozen. Gradients may be sparse, and of float16 and bfloat16, which are
    sent as float32; on a GPU they are copied to the CPU and back.

    feedback: keeps the error of a message and adds it to the next gradient.  seed, and the process and number of a message, choose its random
    numbers.  group: of torch.distributed; None = all processes.

    A GradScaler works as with any optimizer: scaler.step(optimizer) tells its scale, errors are kept without it, and a step in which the gradient of
    a process is not finite is left out in all of them.

    It is a torch.optim.Optimizer, as schedulers need it. Names of parameters are those that the optimizer got, or their numbers in it.
    Raises ValueError for an optimizer that evaluates the loss several times in a step, as LBFGS.
    """

    _step_supports_amp_scaling = True  # a GradScaler gives its scale and leaves it to step() to look for infinities

    def __init__(self, optimizer: torch.optim.Optimizer, compressor: Compressor, *, feedback: bool = True, seed: int = 1, group: Any = None):
        if not isinstance(optimizer, torch.optim.Optimizer) and not (hasattr(optimizer, "param_groups") and hasattr(optimizer, "step")):
            raise TypeError(f"optimizer is of type {type(optimizer).__name__}; it must be an optimizer of PyTorch, as "
                            "torch.optim.SGD(model.parameters(), lr=0.1)")
        if isinstance(optimizer, Compressed):
            raise TypeError("optimizer is compressed already; its gradients would be sent twice")
        if _needs_closure(optimizer):
            raise ValueError(f"{type(optimizer).__name__} evaluates the loss several times in a step, where a message goes with each step; take an optimizer "
                             "that steps along one gradient, as torch.optim.SGD")
        self.optimizer: Any = _Nothing()
        torch.optim.Optimizer.__init__(self, [{"params": [torch.zeros(1)]}], {})
        Sender.__init__(self, compressor, feedback, seed, group)
        self.optimizer = optimizer

    # What belongs to the optimizer: schedulers read and set it here.

    @property
    def param_groups(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The optimizer's."""
        return self.optimizer.param_groups

    @param_groups.setter
    def param_groups(self, groups: list[dict[str, Any]]) -> None:
        self.optimizer.param_groups = groups

    @property
    def state(self) -> Any:  # type: ignore[override]
        """The optimizer's."""
        return self.optimizer.state

    @state.setter
    def state(self, state: Any) -> None:
        self.optimizer.state = state

    @property
    def defaults(self) -> dict[str, Any]:  # type: ignore[override]
        """The optimizer's."""
        return self.optimizer.defaults

    @defaults.setter
    def defaults(self, defaults: dict[str, Any]) -> None:
        self.optimizer.defaults = defaults

    def add_param_group(self, group: dict[str, Any]) -> None:
        """Adds parameters, whose errors begin at zero. All processes have to do that alike."""
        self.optimizer.add_param_group(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Sends the gradients and takes a step. With a closure, it is called first, and its loss is returned.

        Raises fedbits.Error, in all processes, if the gradient of one of them is not finite and no scale was given: nothing has been sent or moved
        then. Raises ValueError, in all processes, if they differ in the compressor, the parameters or their values when they begin.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        gradients = self._gradients()
        means = self._mean_of(gradients, self._scale())
        if means is None:
            return loss
        for one, mean in zip(gradients, means):
            if mean is not None:
                _write(one, mean)
        self.optimizer.step()
        self.rounds += 1
        return loss

    def _gradients(self) -> list[Gradient]:
        found = []
        for group in self.param_groups:
            names = group.get("param_names") or [str(len(found) + place) for place in range(len(group["params"]))]
            found += [Gradient(name, one, one.grad if one.requires_grad else None) for name, one in zip(names, group["params"])]
        return found

    def _names_in_order(self) -> list[str]:
        return [one.name for one in self._gradients()]

    def _scale(self) -> float | None:
        """Returns the scale of the GradScaler that calls step(), 1 if it has divided by it already, or None without a GradScaler."""
        if not hasattr(self, "found_inf"):
            return None
        scale = getattr(self, "grad_scale", None)
        return 1.0 if scale is None else float(scale)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the optimizer and that of the sender, which is another one in every process."""
        return {"optimizer": self.optimizer.state_dict(), "sender": Sender.state_dict(self)}

    def load_state_dict(self, state: dict[str, Any]) -> None:  # type: ignore[override]
        """Raises TypeError or ValueError, before anything is changed, for a state of the sender that state_dict() does not return or that is another
        process's, and what the optimizer raises."""
        arguments.table("the state", state, ("optimizer", "sender"))
        self._restored(state["sender"])
        self.optimizer.load_state_dict(state["optimizer"])
        Sender.load_state_dict(self, state["sender"])

    def __getstate__(self) -> dict[str, Any]:
        return Sender.__getstate__(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def __repr__(self) -> str:
        return f"<Compressed of {type(self.optimizer).__name__}, {self._words()}>"


def _needs_closure(optimizer: Any) -> bool:
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    return closure is not None and closure.default is inspect.Parameter.empty


def _write(gradient: Gradient, mean: torch.Tensor) -> None:
    """Writes what was sent into the .grad of a parameter; a sparse one stays sparse."""
    parameter = gradient.parameter
    shaped = mean.view(parameter.shape)
    if gradient.value is None:
        parameter.grad = shaped.to(parameter, copy=True)
    elif gradient.value.is_sparse:
        parameter.grad = shaped.to_sparse(gradient.value.sparse_dim()).to(parameter.device, parameter.dtype)
    else:
        gradient.value.copy_(shaped)
