"""Client models, partitioners and data sets in Python, which scenarios use like those of the simulator.

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
import hashlib
import math
from typing import Any, ClassVar, Mapping, Sequence

import numpy as np

from fedbits import _core
from fedbits.registration import code_of, register


@dataclasses.dataclass(frozen=True)
class DataFacts:
    """What a model is told of the data: shape is that of a row, (channels, height, width) of images. num_classes is 0 for other targets."""

    name: str
    num_rows: int
    num_features: int
    num_classes: int
    shape: tuple[int, ...]
    dtype: np.dtype


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
            register(cls._role, kind, cls, base, code_of(cls))


class Model(_Part):
    """A client model: subclass it with a kind, which names it in scenarios, and write shapes() and loss_and_gradient().

    Class attributes that are numbers, texts or bools are options of the scenario, and attributes of the object. The constructor takes no
    arguments. The regulariser of the scenario (l2, nonconvex) is added by the simulator. Calls may come from several threads.
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
        return self.loss_and_gradient(x, rows)[0]

    def predict(self, x: np.ndarray, rows: Rows) -> np.ndarray:
        """Returns the class number of each row, for accuracies. Without it they are 0."""
        return np.full(len(rows), -1)

    # ---- what the simulator calls

    def _bind(self, facts: dict[str, Any]) -> list[tuple[str, int, int, float]]:
        self._facts = DataFacts(**facts | {"shape": tuple(facts["shape"]), "dtype": np.dtype(facts["dtype"])})
        shapes = self.shapes(self._facts)
        named = dict(shapes) if isinstance(shapes, Mapping) else {str(i): shape for i, shape in enumerate(shapes)}
        tensors = [(name, *_matrix_of(name, shape), self._rate_of(name)) for name, shape in named.items()]
        if not tensors:
            raise ValueError(f"{type(self).__name__}.shapes() returns no tensors")
        self._size = sum(rows * cols for _, rows, cols, _ in tensors)
        return tensors

    def _rate_of(self, name: str) -> float:
        """Returns the rate at which a tensor of running statistics moves; 0: it has weights."""
        return 0.0

    def _starts_at_random(self) -> bool:
        return type(self).initial is not Model.initial

    def _initial(self, seed: int, out: np.ndarray) -> None:
        found = self.initial(seed)
        out[:] = 0 if found is None else self._checked(found, "initial()")

    def _rows(self, features: np.ndarray, labels: np.ndarray | None, numbers: np.ndarray, seed: int | None) -> Rows:
        return Rows(features, labels, numbers, seed)

    def _gradient(self, x: np.ndarray, rows: Rows, out: np.ndarray) -> float:
        """Writes the gradient to memory of the simulator, and returns the loss."""
        found = self.loss_and_gradient(x.copy(), rows)
        if not isinstance(found, tuple) or len(found) != 2:
            raise TypeError(f"loss_and_gradient() has to return the loss and the gradient, and returned {type(found).__name__}")
        loss = float(found[0])
        out[:] = self._checked(found[1], "the gradient")
        self._require_finite(loss, out)
        return loss

    def _require_finite(self, loss: float, gradient: np.ndarray) -> None:
        """Raises ValueError for a gradient that is not finite. If the loss is not finite either, the run has diverged, which is a result."""
        if not math.isfinite(loss) or math.isfinite(np.dot(gradient, gradient)) or np.isfinite(gradient).all():
            return
        place = int(np.flatnonzero(~np.isfinite(gradient))[0])
        raise ValueError(f"the gradient is not finite at place {place}, and the loss is {loss:g}")

    def _loss(self, x: np.ndarray, rows: Rows, counts: bool) -> tuple[float, int]:
        """Returns the sum of the losses over the rows, and how many were predicted correctly."""
        point = x.copy()
        correct = int((self.predict(point, rows) == rows.labels).sum()) if counts and rows.labels is not None else 0
        return float(self.loss(point, rows)) * len(rows), correct

    def _checked(self, array: Any, what: str) -> np.ndarray:
        """Returns an array of the parameters' size and type, or raises the reason why it is none."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{what} has to be an array of NumPy, and is {type(array).__name__}")
        if array.dtype != self._facts.dtype:
            raise TypeError(f"{what} has {array.dtype}; this run computes in {self._facts.dtype}")
        if array.size != self._size:
            raise ValueError(f"{what} has {array.size} numbers; shapes() has {self._size}")
        if not array.flags.c_contiguous:
            raise ValueError(f"{what} is not contiguous; numpy.ascontiguousarray() makes a copy that is")
        return array.reshape(-1)


def _matrix_of(name: str, shape: Sequence[int]) -> tuple[int, int]:
    """Returns the rows and columns of a tensor as operators see it: all dimensions but the first are columns."""
    sizes = tuple(int(size) for size in shape)
    if any(size < 1 for size in sizes):
        raise ValueError(f"the shape of {name!r} is {sizes}; every size must be at least 1")
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

    draws: whether the seed changes the split.
    """

    _role = "partitioner"
    draws = True

    def split(self, request: Request) -> Sequence[Any]:
        """Returns the row numbers of each client. Every row goes to one client, and every client has a row."""
        raise NotImplementedError(f"{type(self).__name__} needs split(self, request)")

    def _split(self, facts: dict[str, Any]) -> list[np.ndarray]:
        split = []
        for client, rows in enumerate(self.split(Request(**facts))):
            numbers = np.asarray(rows)
            if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
                raise TypeError(f"the rows of client {client} have to be a list of whole numbers")
            split.append(np.ascontiguousarray(numbers, np.int64))
        return split


@dataclasses.dataclass(frozen=True)
class _Arrays:
    """A set as the core copies it: features [m,D], and labels int32 (classes) or float64 (targets)."""

    features: np.ndarray
    labels: np.ndarray
    shape: tuple[int, ...]
    num_classes: int
    class_names: list[str]

    @property
    def has_bytes(self) -> bool:
        return self.features.dtype == np.uint8


class Dataset:
    """Arrays as a data set of scenarios: data = { kind = "..." }.

    features: [m, ...] of numbers; bytes (uint8) of images [m,channels,height,width] or [m,height,width] are read as byte / 255.
    labels: [m]; whole numbers and texts are classes, floating point numbers are targets.
    test_features, test_labels: a test set; without it, data.test_fraction of a scenario holds rows out.
    The arrays are kept, not copied.
    """

    def __init__(self, kind: str, features: Any, labels: Any, *, test_features: Any = None, test_labels: Any = None):
        if (test_features is None) != (test_labels is None):
            raise ValueError("a test set has features and labels")
        self.kind = kind
        train_labels = np.asarray(labels)
        self._has_classes = not np.issubdtype(train_labels.dtype, np.floating)
        self._classes = np.unique(train_labels) if self._has_classes else np.empty(0)
        self._sets = {"train": self._checked(features, train_labels, "features", "labels")}
        if test_features is not None:
            self._sets["test"] = self._checked(test_features, np.asarray(test_labels), "test_features", "test_labels")
            if self._sets["test"][0].shape[1:] != self._sets["train"][0].shape[1:]:
                raise ValueError(f"a test row has the shape {self._sets['test'][0].shape[1:]}, a training row {self._sets['train'][0].shape[1:]}")
        self._digest = self._digest_of_arrays()
        register("data", kind, self, Dataset, self._digest)

    @classmethod
    def from_huggingface(cls, kind: str, dataset: Any, *, features: str | Sequence[str], label: str, test: Any = None) -> Dataset:
        """Makes a data set of one of Hugging Face `datasets` that lies in memory or in local files.

        features: the column of arrays or images, or several columns of numbers.  test: a data set of the same columns.
        """
        parts = [_columns_of(one, features, label) for one in (dataset, test) if one is not None]
        held_out = {"test_features": parts[1][0], "test_labels": parts[1][1]} if len(parts) > 1 else {}
        return cls(kind, *parts[0], **held_out)

    def _checked(self, features: Any, labels: np.ndarray, name: str, label_name: str) -> tuple[np.ndarray, np.ndarray]:
        array = np.asarray(features)
        if array.dtype != np.uint8 and not np.issubdtype(array.dtype, np.floating):
            if not np.issubdtype(array.dtype, np.integer) and array.dtype != bool:
                raise TypeError(f"{name} has {array.dtype}; numbers are needed")
            array = array.astype(np.float64)
        if array.ndim < 2 or array.size == 0:
            raise ValueError(f"{name} has the shape {array.shape}; rows of at least one number are needed")
        if labels.shape not in ((len(array),), (len(array), 1)):
            raise ValueError(f"{label_name} has the shape {labels.shape}; {name} has {len(array)} rows")
        if array.dtype != np.uint8 and not np.isfinite(array).all():
            raise ValueError(f"{name} has a number that is not finite, in row {int(np.argwhere(~np.isfinite(array))[0][0])}")
        labels = labels.reshape(-1)
        if not self._has_classes:
            if not np.isfinite(labels).all():
                raise ValueError(f"{label_name} has a number that is not finite, in row {int(np.flatnonzero(~np.isfinite(labels))[0])}")
            return array, labels.astype(np.float64)
        places = np.searchsorted(self._classes, labels).clip(max=len(self._classes) - 1)
        if not (self._classes[places] == labels).all():
            raise ValueError(f"{label_name} has {labels[self._classes[places] != labels][0].item()!r}, which is no class of the training rows")
        return array, places.astype(np.int32)

    def _arrays(self, which: str, dtype: str) -> _Arrays | None:
        if which not in self._sets:
            return None
        features, labels = self._sets[which]
        if features.dtype != np.uint8:
            features = features.astype(dtype, copy=False)
        shape = features.shape[1:] if features.ndim != 3 else (1, *features.shape[1:])
        rows = np.ascontiguousarray(features.reshape(len(features), -1))
        return _Arrays(rows, labels, shape, len(self._classes), [str(one) for one in self._classes])

    def _digest_of_arrays(self) -> str:
        digest = hashlib.sha256()
        for name, arrays in sorted(self._sets.items()):
            for array in arrays:
                digest.update(f"{name} {array.dtype} {array.shape}".encode())
                digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(repr(list(self._classes)).encode())
        return digest.hexdigest()[:16]

    def _code(self) -> str:
        return self._digest

    def _new(self) -> Dataset:
        return self


def _columns_of(dataset: Any, features: str | Sequence[str], label: str) -> tuple[np.ndarray, np.ndarray]:
    names = [features] if isinstance(features, str) else list(features)
    missing = [name for name in [*names, label] if name not in dataset.column_names]
    if missing:
        raise ValueError(f"the data set has no column {missing[0]!r}; it has {', '.join(map(repr, dataset.column_names))}")
    columns = dataset.with_format("numpy")[:]
    if isinstance(features, str):
        return np.stack(list(columns[features])), np.asarray(columns[label])
    return np.stack([np.asarray(columns[name]) for name in names], axis=1), np.asarray(columns[label])
