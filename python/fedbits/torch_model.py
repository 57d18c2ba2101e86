"""Modules of PyTorch as client models."""
from __future__ import annotations

import copy
import threading
from typing import Any, Callable

import numpy as np
import torch

from fedbits import models
from fedbits.models import Rows
from fedbits.data import Dataset
from fedbits.digest import digest_of
from fedbits.registration import calling, register


class Model:
    """A module of PyTorch as a client model of scenarios: model = { kind = "torch" }.

        fedbits.torch.Model(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 10)))
        fedbits.run({"name": "mine", "rounds": 10, "data": {"name": "fashion-mnist"}, "model": {"kind": "torch"}, ...})

    module: called with features [m, *shape of a row] on the CPU. It is copied, and later changes to it have no effect.
    loss: called with the outputs and the labels [m], returns their mean loss; by default that of cross entropy.
    predict: called with the outputs, returns class numbers; by default the largest output.
    kind: the name in scenarios. Another model of the same kind takes the place of the one before.
    initial: None: every run starts with the module's parameters. A function of the module gives it others, after torch.manual_seed() with the
    run's seed; "reset" calls reset_parameters() of its layers.

    Parameters that require a gradient become one flat vector, in the order of module.parameters(). The running statistics of batch normalisation
    follow them, and move and are averaged as those of the simulator's own layers. All other buffers are constants of the module.
    Results are stored under a digest of the module and the functions: parameters, buffers, hooks, code, and all attributes, default arguments,
    captured variables and named global variables. TypeError names an attribute that cannot be read, such as an open file.
    A minibatch is computed in training mode, with random numbers of its own where the module has dropout; losses and predictions, and gradients
    of all rows of a client, in evaluation mode (the latter in training mode if there are running statistics).
    """

    def __init__(self, module: torch.nn.Module, loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None, *, kind: str = "torch",
                 predict: Callable[[torch.Tensor], torch.Tensor] | None = None, initial: Callable[[torch.nn.Module], Any] | str | None = None):
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"expected a module of PyTorch, got {type(module).__name__}")
        for name, parameter in module.named_parameters():
            if parameter.device.type != "cpu":
                raise TypeError(f"the parameter {name!r} lies on {parameter.device}; module.cpu() moves it to where clients compute")
        if isinstance(initial, str) and initial != "reset":
            raise ValueError(f"initial is {initial!r}; it must be None, 'reset' or a function of the module")
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise ValueError("the module has no parameter that requires a gradient")
        self.module, self.kind = copy.deepcopy(module), kind
        self.loss = loss or torch.nn.functional.cross_entropy
        self.predict = predict or (lambda outputs: outputs.argmax(dim=1))
        self.initial: Callable[[torch.nn.Module], Any] | None = _reset if isinstance(initial, str) else initial
        register("model", kind, self, Model)

    def _code(self) -> str:
        return digest_of(module=self.module, loss=self.loss, predict=self.predict, initial=self.initial)

    def _new(self) -> _Bound:
        return _Bound(self)


class _Bound(models.Model):
    """The module of one run: its parameters are views of a flat vector, which each call overwrites."""

    def __init__(self, model: Model):
        self._model, self._lock = model, threading.Lock()
        self._name = f"the model {model.kind!r}"  # in errors
        self._module = copy.deepcopy(model.module)

    def _bind(self, facts: dict[str, Any]) -> list[tuple[str, int, int, float]]:
        self._module.to(getattr(torch, facts["dtype"])).train()
        self._weights = {name: one for name, one in self._module.named_parameters() if one.requires_grad}
        self._tensors = list(self._weights.values())
        self._statistics = _statistics_of(self._module)
        tensors = super()._bind(facts)
        self._draws = any("Dropout" in type(one).__name__ for one in self._module.modules())
        self._flat = torch.empty(self._size, dtype=getattr(torch, facts["dtype"]))
        self._point = self._flat.numpy()
        self._num_weights = sum(one.numel() for one in self._weights.values())
        begin = 0
        for tensor in [*self._weights.values(), *(tensor for tensor, _ in self._statistics.values())]:
            view = self._flat[begin:begin + tensor.numel()].view(tensor.shape)
            view.copy_(tensor.detach())
            tensor.data = view
            begin += tensor.numel()
        self._start = self._point.copy()
        return tensors

    def shapes(self, data: models.DataFacts) -> dict[str, tuple[int, ...]]:
        return {name: tuple(one.shape) for name, one in self._weights.items()} | {name: tuple(one.shape)
                                                                                   for name, (one, _) in self._statistics.items()}

    def _rate_of(self, name: str) -> float:
        return self._statistics[name][1] if name in self._statistics else 0.0

    def _starts_at_random(self) -> bool:
        return True

    def _initial(self, seed: int, out: np.ndarray) -> None:
        with self._lock, torch.random.fork_rng(devices=[]):
            self._point[:] = self._start
            if self._model.initial is not None:
                torch.manual_seed(seed)
                with torch.no_grad():
                    self._model.initial(self._module)
            out[:] = self._point

    def _gradient(self, x: np.ndarray, rows: Rows, out: np.ndarray) -> float:
        with self._lock:
            np.copyto(self._point, x)
            self._set_mode(rows.seed is not None or bool(self._statistics))
            features, labels = self._tensors_of(rows)
            if self._draws and rows.seed is not None:
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(rows.seed)
                    loss = self._loss_of(self._module(features), labels)
            else:
                loss = self._loss_of(self._module(features), labels)
            self._write_gradient(torch.autograd.grad(loss, self._tensors, allow_unused=True), out)
            self._read_statistics(x, out)
            value = loss.item()
        self._require_finite(value, out)
        return value

    def _set_mode(self, trains: bool) -> None:
        if self._module.training != trains:  # a walk over all layers
            self._module.train(trains)

    def _write_gradient(self, found: tuple[torch.Tensor | None, ...], out: np.ndarray) -> None:
        """Writes the gradients of the weights one after another; that of a parameter which the loss does not use is zero."""
        if any(gradient is None for gradient in found):
            self._require_same_parameters()
        pieces = [torch.zeros_like(one).view(-1) if gradient is None else gradient.reshape(-1) for one, gradient in zip(self._tensors, found)]
        torch.cat(pieces, out=torch.from_numpy(out[:self._num_weights]))

    def _require_same_parameters(self) -> None:
        """Raises ValueError for a module that has added, removed or replaced parameters since the run began."""
        now = {name: one for name, one in self._module.named_parameters() if one.requires_grad}
        if len(now) != len(self._weights):
            raise ValueError(f"the module has {len(now)} parameters that require a gradient, and had {len(self._weights)} when the run began")
        for name, one in self._weights.items():
            if now.get(name) is not one:
                raise ValueError(f"the module has replaced its parameter {name!r}, which the simulator sets; change its values instead")

    def _read_statistics(self, x: np.ndarray, out: np.ndarray) -> None:
        """Writes what moves the statistics to those of this minibatch: the forward pass has moved them by their rate."""
        begin = self._num_weights
        for tensor, rate in self._statistics.values():
            place = slice(begin, begin + tensor.numel())
            out[place] = (x[place] - self._point[place]) / rate
            begin += tensor.numel()

    def _loss(self, x: np.ndarray, rows: Rows, counts: bool) -> tuple[float, int]:
        with self._lock, torch.no_grad():
            np.copyto(self._point, x)
            self._set_mode(False)
            features, labels = self._tensors_of(rows)
            where = f"in the evaluation of {len(rows)} rows"
            with calling(self, "forward", where):
                outputs = self._module(features)
                self._require_same_parameters()
            correct = 0
            if counts and self._facts.num_classes > 0:
                with calling(self, "predict", where):
                    correct = int((self._classes_of(outputs, len(rows)) == labels).sum())
            with calling(self, "loss", where):
                return float(self._loss_of(outputs, labels)) * len(rows), correct

    def _classes_of(self, outputs: Any, num_rows: int) -> torch.Tensor:
        found = self._model.predict(outputs)
        classes = torch.from_numpy(found) if isinstance(found, np.ndarray) else found
        if not isinstance(classes, torch.Tensor) or tuple(classes.shape) != (num_rows,):
            kind = f"a tensor of the shape {tuple(classes.shape)}" if isinstance(classes, torch.Tensor) else type(classes).__name__
            raise TypeError(f"predict returned {kind}; it has to return a tensor of the shape ({num_rows},) with the class number of each row")
        return classes

    def _tensors_of(self, rows: Rows) -> tuple[torch.Tensor, Any]:
        labels = None if rows.labels is None else torch.from_numpy(rows.labels)
        features = torch.from_numpy(rows.features).view(len(rows), *self._facts.shape)
        return (features.long() if self._facts.has_integers else features), labels

    def _loss_of(self, outputs: torch.Tensor, labels: Any) -> torch.Tensor:
        loss = self._model.loss(outputs, labels)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            found = f"a tensor of the shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
            raise TypeError(f"loss returned {found}; the loss has to be a tensor of one number, the mean over the rows")
        return loss


def _statistics_of(module: torch.nn.Module) -> dict[str, tuple[torch.Tensor, float]]:
    """Returns the running statistics of batch normalisation, each with the rate at which it moves."""
    found = {}
    for name, layer in module.named_modules():
        if not isinstance(layer, torch.nn.modules.batchnorm._BatchNorm) or not layer.track_running_stats:
            continue
        if layer.momentum is None:
            raise ValueError(f"{name!r} has momentum=None, a mean over all steps; give it a number")
        for kind in ("running_mean", "running_var"):
            found[f"{name}.{kind}"] = (getattr(layer, kind), float(layer.momentum))
    return found


def _reset(module: torch.nn.Module) -> None:
    for layer in module.modules():
        reset: Any = getattr(layer, "reset_parameters", None)
        if reset is not None:
            reset()


def dataset(kind: str, data: Any, *, test: Any = None, layout: str | None = None) -> Dataset:
    """Makes a data set of scenarios from a Dataset of PyTorch, whose items are pairs of a tensor or array and a label; all items are read.

    test: a Dataset of the same kind of items.  layout: as of fedbits.Dataset.
    """
    train = _arrays_of(data)
    held_out = {} if test is None else dict(zip(("test_features", "test_labels"), _arrays_of(test)))
    return Dataset(kind, *train, **held_out, layout=layout)


def _arrays_of(data: Any) -> tuple[np.ndarray, np.ndarray]:
    if not hasattr(data, "__getitem__") or not hasattr(data, "__len__"):
        hint = "; give the Dataset that it reads, loader.dataset" if isinstance(data, torch.utils.data.DataLoader) else ""
        raise TypeError(f"data is of type {type(data).__name__}; it must be a Dataset of PyTorch whose items have numbers, data[0] to "
                        f"data[len(data) - 1]{hint}")
    if len(data) == 0:
        raise ValueError("the data set has no items")
    features, labels = zip(*(_pair_of(i, data[i]) for i in range(len(data))))
    if len(shapes := {one.shape for one in features}) > 1:
        raise ValueError(f"items have the shapes {' and '.join(map(str, sorted(shapes)[:2]))}; all items of a data set must have one shape")
    return np.stack(features), np.asarray(labels)


def _pair_of(place: int, item: Any) -> tuple[np.ndarray, Any]:
    """Returns the features and the label of an item, or raises TypeError with what it is."""
    if not isinstance(item, (tuple, list)) or len(item) != 2:
        found = f"{type(item).__name__} of {len(item)}" if isinstance(item, (tuple, list)) else type(item).__name__
        raise TypeError(f"item {place} of the data set is a {found}; every item must be a pair of a tensor or array and a label")
    label = np.asarray(item[1])
    if label.size != 1:
        raise TypeError(f"the label of item {place} has the shape {label.shape}; it must be one number or text")
    return np.asarray(item[0]), label.item()
