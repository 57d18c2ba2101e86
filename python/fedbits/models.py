"""Client models and partitioners in Python, which scenarios use like those of the simulator.

    class Mean(fedbits.Model, kind="mean"):
        def shapes(self, data):
            return {"center": (data.num_features,)}

        def loss_and_gradient(self, x, rows):
            difference = x - rows.features
            return 0.5 * (difference**2).sum(axis=1).mean(), difference.mean(axis=0)

    fedbits.run({"name": "mean", "rounds": 20, "data": {"name": "mushrooms"}, "model": {"kind": "mean"}, ...})
"""
from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar, Mapping, Sequence

import numpy as np

from fedbits.arguments import MOST_NUMBERS, shown, text
from fedbits.registration import calling, register, registered


@dataclasses.dataclass(frozen=True)
class DataFacts:
    """What a model is told of the data: shape is that of a row, (channels, height, width) of images. num_classes is 0 for other targets.
    has_integers: features are whole numbers, such as tokens."""

    name: str
    num_rows: int
    num_features: int
    num_classes: int
    shape: tuple[int, ...]
    dtype: np.dtype
    has_integers: bool = False


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows of data: features [m,D] in the precision of the run, labels [m] (class numbers, or targets, or None), and their numbers in the
    data set. seed is a number of this minibatch's own, for models that draw (dropout); it is None where nothing is drawn."""

    features: np.ndarray
    labels: np.ndarray | None
    numbers: np.ndarray
    seed: int | None

    def __len__(self) -> int:
        return len(self.features)


class _Part:
    """Registers each subclass that names its kind."""

    _role: ClassVar[str] = ""

    def __init_subclass__(cls, kind: str | None = None, **others: Any):
        super().__init_subclass__(**others)
        if kind is not None:
            base = next(one for one in cls.__mro__ if one.__module__.split(".")[0] == "fedbits")
            register(cls._role, kind, cls, base)


class Model(_Part):
    """A client model: subclass it with a kind, which names it in scenarios, and write shapes() and loss_and_gradient().

    Class attributes that are numbers, texts or bools are options of the scenario, and attributes of the object. The constructor takes no
    arguments. The regulariser of the scenario (l2, nonconvex) is added by the simulator. Calls may come from several threads.
    A model may state the cost of its gradients for runs with simulated time: the attribute flops_per_row is the number of operations for each
    row, forward and backward.
    All attributes, default arguments, captured variables and named global variables belong to the code under which results are stored: a change
    makes other runs from the next study on. TypeError names an attribute that cannot be read, such as an open file.
    """

    _role = "model"

    def shapes(self, data: DataFacts) -> Mapping[str, Sequence[int]] | Sequence[Sequence[int]]:
        """Returns the shapes of the parameter tensors in order, by name or without names. Called once, before everything else."""
        raise NotImplementedError(f"{type(self).__name__} needs shapes(self, data)")

    def initial(self, seed: int) -> np.ndarray | None:
        """Returns the initial parameters [P]; None: zeros. A model that overrides this starts at random."""
        return None

    def loss_and_gradient(self, x: np.ndarray, rows: Rows) -> tuple[float, np.ndarray]:
        """Returns the mean loss over the rows at x [P], and its gradient [P] in the type of x. x is valid during the call."""
        raise NotImplementedError(f"{type(self).__name__} needs loss_and_gradient(self, x, rows)")

    def loss(self, x: np.ndarray, rows: Rows) -> float:
        """Returns the mean loss over the rows."""
        return self._loss_and_gradient(x, rows)[0]

    def predict(self, x: np.ndarray, rows: Rows) -> np.ndarray:
        """Returns the class number of each row, for accuracies. Without it they are 0."""
        return np.full(len(rows), -1)

    # ---- what the simulator calls

    def _bind(self, facts: dict[str, Any]) -> list[tuple[str, int, int, float]]:
        self._facts = DataFacts(**facts | {"shape": tuple(facts["shape"]), "dtype": np.dtype(facts["dtype"]),
                                           "has_integers": getattr(registered("data", facts["name"]), "has_integers", False)})
        with calling(self, "shapes", "before the run"):
            named = self._named(self.shapes(self._facts))
            tensors = [(text("the name of a tensor", name), *_matrix_of(name, shape), self._rate_of(name)) for name, shape in named.items()]
            if not tensors:
                raise ValueError(f"{type(self).__name__}.shapes() returns no tensors")
            self._size = sum(rows * cols for _, rows, cols, _ in tensors)
            if self._size > MOST_NUMBERS:
                raise ValueError(f"{type(self).__name__}.shapes() returned tensors of {self._size} numbers together; a model has at most {MOST_NUMBERS}")
        return tensors

    def _named(self, shapes: Any) -> dict[str, Sequence[int]]:
        """Returns the shapes by name, or raises TypeError with what shapes() has to return."""
        is_mapping = isinstance(shapes, Mapping)
        if is_mapping or isinstance(shapes, (list, tuple)):
            named = dict(shapes) if is_mapping else {str(i): shape for i, shape in enumerate(shapes)}
            if all(isinstance(name, str) and _is_shape(shape) for name, shape in named.items()):
                return named
        raise TypeError(f"{type(self).__name__}.shapes() returned {shown(shapes)}; it has to return the shapes of the tensors by name, as "
                        '{"weight": (10, 3), "bias": (10,)}, or a list of them, as [(10, 3), (10,)]')

    def _rate_of(self, name: str) -> float:
        """Returns the rate at which a tensor of running statistics moves; 0: it has weights."""
        return 0.0

    def _least_rows(self) -> int:
        """Returns the fewest rows of a gradient."""
        return 1

    def _stated_flops(self) -> float | None:
        """Returns the operations of a gradient for each row, or None if the model does not state them."""
        found = getattr(self, "flops_per_row", None)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found < float("inf"):
            raise TypeError(f"{type(self).__name__}.flops_per_row is {shown(found)}; it has to be the number of operations of a gradient for each row")
        return float(found)

    def _starts_at_random(self) -> bool:
        return type(self).initial is not Model.initial

    def _initial(self, seed: int, out: np.ndarray) -> None:
        with calling(self, "initial", "before the first round"):
            found = self.initial(seed)
            out[:] = 0 if found is None else self._checked(found, "initial()")

    def _rows(self, features: np.ndarray, labels: np.ndarray | None, numbers: np.ndarray, seed: int | None) -> Rows:
        return Rows(features, labels, numbers, seed)

    def _gradient(self, x: np.ndarray, rows: Rows, out: np.ndarray) -> float:
        """Writes the gradient to memory of the simulator, and returns the loss."""
        loss, gradient = self._loss_and_gradient(x.copy(), rows)
        out[:] = self._checked(gradient, "the gradient")
        self._require_finite(loss, out)
        return loss

    def _loss_and_gradient(self, x: np.ndarray, rows: Rows) -> tuple[float, Any]:
        found = self.loss_and_gradient(x, rows)
        if not isinstance(found, tuple) or len(found) != 2:
            raise TypeError(f"{type(self).__name__}.loss_and_gradient() has to return the loss and the gradient, and returned {shown(found)}")
        return self._number(found[0], "loss_and_gradient"), found[1]

    def _number(self, loss: Any, method: str) -> float:
        if np.ndim(loss) == 0 and hasattr(loss, "__float__"):
            return float(loss)
        raise TypeError(f"the loss that {type(self).__name__}.{method}() returned is {shown(loss)}; it has to be a number, the mean over the rows")

    def _require_finite(self, loss: float, gradient: np.ndarray) -> None:
        """Raises ValueError for a gradient that is not finite. If the loss is not finite either, the run has diverged, which is a result."""
        if not math.isfinite(loss) or math.isfinite(np.dot(gradient, gradient)) or np.isfinite(gradient).all():
            return
        place = int(np.flatnonzero(~np.isfinite(gradient))[0])
        raise ValueError(f"the gradient is not finite at place {place}, and the loss is {loss:g}")

    def _loss(self, x: np.ndarray, rows: Rows, counts: bool) -> tuple[float, int]:
        """Returns the sum of the losses over the rows, and how many were predicted correctly."""
        point, correct = x.copy(), 0
        where = f"in the evaluation of {len(rows)} rows"
        if counts and rows.labels is not None:
            with calling(self, "predict", where):
                correct = int((self._classes(self.predict(point, rows), len(rows)) == rows.labels).sum())
        with calling(self, "loss", where):
            return self._number(self.loss(point, rows), "loss") * len(rows), correct

    def _classes(self, found: Any, num_rows: int) -> np.ndarray:
        """Returns predictions, or raises the reason why they are not one for each row."""
        classes = np.asarray(found)
        if classes.dtype.kind not in "biuf":
            raise TypeError(f"{type(self).__name__}.predict() returned {shown(found)}; it has to return the class number of each row")
        if classes.shape != (num_rows,):
            raise ValueError(f"{type(self).__name__}.predict() returned an array of the shape {classes.shape}; it has to return the class number of "
                             f"each of the {num_rows} rows, in the shape ({num_rows},)")
        return classes

    def _checked(self, array: Any, what: str) -> np.ndarray:
        """Returns an array of the parameters' size and type, or raises the reason why it is none."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{what} has to be an array of NumPy, and is {type(array).__name__}")
        if array.dtype != self._facts.dtype:
            raise TypeError(f"{what} has {array.dtype}; this run computes in {self._facts.dtype}: convert it, as {what.split()[-1]}.astype("
                            f"\"{self._facts.dtype}\"), or set precision of the scenario")
        if array.size != self._size:
            raise ValueError(f"{what} has {array.size} numbers; shapes() has {self._size}")
        if not array.flags.c_contiguous:
            raise ValueError(f"{what} is not contiguous; numpy.ascontiguousarray() makes a copy that is")
        return array.reshape(-1)


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, (list, tuple)) and all(hasattr(size, "__index__") for size in shape)


def _matrix_of(name: str, shape: Sequence[int]) -> tuple[int, int]:
    """Returns the rows and columns of a tensor as operators see it: all dimensions but the first are columns."""
    sizes = tuple(int(size) for size in shape)
    if any(size < 1 for size in sizes):
        raise ValueError(f"the shape of {name!r} is {shown(sizes)}; every size must be at least 1")
    if math.prod(sizes) > MOST_NUMBERS:
        raise ValueError(f"the shape of {name!r} is {shown(sizes)}; a model has at most {MOST_NUMBERS} numbers")
    return (sizes[0] if sizes else 1), math.prod(sizes[1:])


@dataclasses.dataclass(frozen=True)
class Request:
    """What a partitioner is asked: labels [num_rows] are class numbers, groups [num_rows] those of the data's own partition; both may be None."""

    num_rows: int
    num_clients: int
    num_classes: int
    seed: int
    labels: np.ndarray | None
    groups: np.ndarray | None


class Partitioner(_Part):
    """Gives each training row to a client: subclass it with a kind, and write split(). Class attributes are options, as those of a Model.

    draws: whether the seed changes the split; False for a split that is always the same.
    """

    _role = "partitioner"
    draws = True

    def split(self, request: Request) -> Sequence[Any]:
        """Returns the row numbers of each client. Every row goes to one client, and every client has a row."""
        raise NotImplementedError(f"{type(self).__name__} needs split(self, request)")

    def _draws(self) -> bool:
        if not isinstance(self.draws, (bool, np.bool_)):
            raise TypeError(f"{type(self).__name__}.draws is {shown(self.draws)}; it must be True or False")
        return bool(self.draws)

    def _split(self, facts: dict[str, Any]) -> list[np.ndarray]:
        with calling(self, "split", "before the run"):
            found = self.split(Request(**facts))
            if not hasattr(found, "__iter__"):
                raise TypeError(f"{type(self).__name__}.split() returned {shown(found)}; it has to return the row numbers of each client, as a "
                                "list of lists of whole numbers")
            return [self._numbers_of(client, rows) for client, rows in enumerate(found)]

    def _numbers_of(self, client: int, rows: Any) -> np.ndarray:
        numbers = np.asarray(rows)
        if numbers.shape == (0,):  # NumPy makes floating point numbers of an empty list; the core names the client
            return np.empty(0, np.int64)
        if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
            raise TypeError(f"{type(self).__name__}.split() gives client {client} {shown(rows)}; the rows of a client have to be a list of "
                            "whole numbers")
        return np.ascontiguousarray(numbers, np.int64)
