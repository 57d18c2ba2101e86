"""Modules of PyTorch as client models."""
from __future__ import annotations

import copy
import dataclasses
import math
import threading
from typing import Any, Callable, Sequence

import numpy as np
import torch

from fedbits import _core, models
from fedbits.models import Rows
from fedbits.data import Dataset
from fedbits.digest import digest_of
from fedbits.registration import calling, register
from fedbits.torch_steadiness import Steadiness

_STATISTICS = torch.nn.modules.batchnorm._NormBase  # layers with running statistics: batch and instance normalisation
_OWN_ROWS = "rows of its own shape"  # the data set of fedbits.check()


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
    restored: names of buffers and attributes that forward() changes, as "mean" or "*._u", which are set to their starting values before each call.
    example: features of a few rows, for fedbits.check(); by default the shape that the first layer takes is tried out.

    Parameters that require a gradient become one flat vector, in the order of module.parameters(). The running statistics of batch and instance
    normalisation follow them, and move and are averaged as those of the simulator's own layers. All other buffers and attributes are constants of
    the module: if forward() changes one, the run ends with a ValueError that names it, because all clients share the module.
    Results are stored under a digest of the module and the functions: parameters, buffers, hooks, code, and all attributes, default arguments,
    captured variables and named global variables. TypeError names an attribute that cannot be read, such as an open file.
    A minibatch is computed in training mode, with random numbers of its own where the module draws with PyTorch; losses and predictions, and
    gradients of all rows of a client, in evaluation mode (the latter in training mode, without dropout, if there are running statistics).
    """

    def __init__(self, module: torch.nn.Module, loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None, *, kind: str = "torch",
                 predict: Callable[[torch.Tensor], torch.Tensor] | None = None, initial: Callable[[torch.nn.Module], Any] | str | None = None,
                 restored: Sequence[str] = (), example: Any = None):
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"expected a module of PyTorch, got {type(module).__name__}")
        for name, parameter in module.named_parameters():
            if parameter.device.type != "cpu":
                raise TypeError(f"the parameter {name!r} lies on {parameter.device}; module.cpu() moves it to where clients compute")
        if isinstance(initial, str) and initial != "reset":
            raise ValueError(f"initial is {initial!r}; it must be None, 'reset' or a function of the module")
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise ValueError("the module has no parameter that requires a gradient")
        self.module, self.kind = _copy_of(module), kind
        self.loss = loss or torch.nn.functional.cross_entropy
        self.predict = predict or (lambda outputs: outputs.argmax(dim=1))
        self.initial: Callable[[torch.nn.Module], Any] | None = _reset if isinstance(initial, str) else initial
        self.restored = [restored] if isinstance(restored, str) else list(restored)
        self.example = None if example is None else torch.as_tensor(example)
        Steadiness(self.module, _statistics_of(self.module), self.restored)  # names that do not exist are refused at once
        register("model", kind, self, Model)

    def _code(self) -> str:
        values = {"module": self.module, "loss": self.loss, "predict": self.predict, "initial": self.initial}
        return digest_of(**values, **({"restored": self.restored} if self.restored else {}))

    def _new(self) -> _Bound:
        return _Bound(self)

    def _prepare_check(self) -> None:
        """Tells the checks of the core the shape of rows that the module takes."""
        found = _form_of(self.module, self.example)
        if found is not None:
            _core.check_model_on(self.kind, *found)


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
        if facts["name"] == _OWN_ROWS:
            self._facts = dataclasses.replace(self._facts, has_integers=_takes_integers(self._module, self._model.example))
        self._dropout = [one for one in self._module.modules() if "Dropout" in type(one).__name__]
        self._draws = bool(self._dropout)  # or found out in a call
        self._mode = "training"
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
        self._steadiness = Steadiness(self._module, self._statistics, self._model.restored)
        return tensors

    def _least_rows(self) -> int:
        """Returns the fewest rows of a gradient: two, if a normalisation gets one number per channel of one row, which has no variance."""
        if not any(isinstance(one, _STATISTICS) for one in self._module.modules()):
            return 1
        one_row = Rows(np.zeros((1, self._facts.num_features), self._facts.dtype), None, np.zeros(1, np.int64), 0)
        with self._lock, torch.no_grad(), torch.random.fork_rng(devices=[]):
            try:
                self._set_mode("training")
                self._steadiness.begin()
                self._module(self._tensors_of(one_row)[0])
            except ValueError as error:
                return 2 if _NO_VARIANCE in str(error) else 1
            except Exception:  # a minibatch will say what is wrong
                return 1
            finally:
                self._steadiness.forgive()
                np.copyto(self._point, self._start)
        return 1

    def shapes(self, data: models.DataFacts) -> dict[str, tuple[int, ...]]:
        return {name: tuple(one.shape) for name, one in self._weights.items()} | {name: tuple(one.shape)
                                                                                   for name, (one, _) in self._statistics.items()}

    def _rate_of(self, name: str) -> float:
        return self._statistics[name][1] if name in self._statistics else 0.0

    def _stated_flops(self) -> float | None:
        self.flops_per_row = getattr(self._model, "flops_per_row", None)
        return super()._stated_flops()

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
            self._set_mode("training" if rows.seed is not None else "measuring" if self._statistics else "evaluation")
            loss = self._call(x, rows.seed, lambda: self._loss_of_rows(rows))
            self._write_gradient(torch.autograd.grad(loss, self._tensors, allow_unused=True), out)
            self._read_statistics(x, out)
            value = loss.item()
        self._require_finite(value, out)
        return value

    def _loss_of_rows(self, rows: Rows) -> torch.Tensor:
        features, labels = self._tensors_of(rows)
        try:
            return self._loss_of(self._module(features), labels)
        except ValueError as error:
            if _NO_VARIANCE not in str(error):
                raise
            raise _core.ConfigError(f"local.batch: a minibatch of {len(rows)} row gives a normalisation layer of the module one value per channel, which has no "
                                    "variance; it needs 2 or more") from error

    def _call(self, x: np.ndarray, seed: int | None, compute: Callable[[], Any]) -> Any:
        """Returns what a call of the module at x gives. A module that draws gets the random numbers of its minibatch, or those of the seed 0."""
        for draws in (self._draws, True):
            np.copyto(self._point, x)
            self._steadiness.begin()
            if draws:
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(seed or 0)
                    found = compute()
            else:
                before = torch.random.get_rng_state()
                found = compute()
                self._draws = not torch.equal(before, torch.random.get_rng_state())
            self._steadiness.require(self._mode)
            if draws or not self._draws:
                return found
        raise AssertionError("a second call draws")

    def _set_mode(self, mode: str) -> None:
        """Sets the layers to training, to evaluation, or to measuring: training without dropout."""
        if self._mode == mode:  # else a walk over all layers
            return
        self._mode = mode
        self._module.train(mode != "evaluation")
        if mode == "measuring":
            for layer in self._dropout:
                layer.eval()

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
            self._set_mode("evaluation")
            features, labels = self._tensors_of(rows)
            where = f"in the evaluation of {len(rows)} rows"
            with calling(self, "forward", where):
                outputs = self._call(x, None, lambda: self._module(features))
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
    """Returns the running statistics of normalisation layers, each with the rate at which it moves."""
    found = {}
    for name, layer in module.named_modules():
        if not isinstance(layer, _STATISTICS) or layer.running_mean is None:
            continue
        if layer.momentum is None:
            raise ValueError(f"{name!r} has momentum=None, a mean over all steps; give it a number")
        for kind in ("running_mean", "running_var"):
            found[f"{name}.{kind}"] = (getattr(layer, kind), float(layer.momentum))
    return found


def _copy_of(module: torch.nn.Module) -> torch.nn.Module:
    try:
        return copy.deepcopy(module)
    except RuntimeError as error:
        raise ValueError("the module cannot be copied, because it keeps a tensor that was computed from its parameters, as torch.nn.utils.weight_norm does; "
                         "torch.nn.utils.parametrizations.weight_norm does not") from error


_NO_VARIANCE = "more than 1"  # in PyTorch's "Expected more than 1 value per channel when training", and "more than 1 spatial element"


def _takes_integers(module: torch.nn.Module, example: torch.Tensor | None) -> bool:
    """Whether the features of a row are whole numbers, as tokens."""
    if example is not None:
        return not example.is_floating_point()
    return isinstance(_first_layer(module), (torch.nn.Embedding, torch.nn.EmbeddingBag))


def _first_layer(module: torch.nn.Module) -> torch.nn.Module | None:
    """Returns the first layer that says what it takes."""
    kinds = (torch.nn.Linear, torch.nn.modules.conv._ConvNd, torch.nn.Embedding, torch.nn.EmbeddingBag, torch.nn.RNNBase,
             torch.nn.modules.batchnorm._BatchNorm, torch.nn.LayerNorm)
    return next((one for one in module.modules() if isinstance(one, kinds)), None)


def _shapes_of_first(layer: Any) -> list[tuple[int, ...]]:
    """Returns shapes of a row that a layer may take, to be tried in this order."""
    lengths = range(1, 65)  # of a sequence
    if isinstance(layer, torch.nn.Linear):
        return [(layer.in_features,), *((length, layer.in_features) for length in lengths)]
    if isinstance(layer, torch.nn.modules.conv._ConvNd):
        axes = len(layer.kernel_size)
        return [(layer.in_channels, *(size,) * axes) for size in (32, 28, 64, 224, *lengths)]
    if isinstance(layer, torch.nn.RNNBase):
        return [(length, layer.input_size) for length in lengths]
    if isinstance(layer, torch.nn.LayerNorm):
        return [tuple(layer.normalized_shape), *((length, *layer.normalized_shape) for length in lengths)]
    if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
        return [(layer.num_features,), (layer.num_features, 8), (layer.num_features, 8, 8)]
    return [(length,) for length in lengths] if isinstance(layer, (torch.nn.Embedding, torch.nn.EmbeddingBag)) else []


def _form_of(module: torch.nn.Module, example: torch.Tensor | None) -> tuple[list[int], int, int] | None:
    """Returns the shape of a row, the number of classes (0: targets) and that of tokens (0: real features), or None if no shape was found."""
    layer, integers = _first_layer(module), _takes_integers(module, example)
    tokens = int(getattr(layer, "num_embeddings", 2)) if integers else 0
    tried = copy.deepcopy(module).eval()
    for shape in _shapes_of_first(layer) if example is None else [tuple(example.shape[1:])]:
        rows = torch.zeros(2, *shape, dtype=torch.int64 if integers else next(tried.parameters()).dtype)
        try:
            with torch.no_grad():
                outputs = tried(rows)
        except Exception:  # another shape may fit
            continue
        if isinstance(outputs, torch.Tensor) and outputs.ndim >= 1 and len(outputs) == 2:
            classes = math.prod(outputs.shape[1:])
            return list(shape), classes if classes > 1 else 0, tokens
    return None


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
