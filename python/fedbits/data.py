"""Arrays as data sets of scenarios."""
from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import numpy as np

from fedbits.digest import digest_of
from fedbits.registration import register


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
    The arrays are kept, not copied. Every study reads them again to compute their digest (about a second per gigabyte), so that changed numbers make
    other runs; they may not change while a study runs.
    """

    def __init__(self, kind: str, features: Any, labels: Any, *, test_features: Any = None, test_labels: Any = None):
        if (test_features is None) != (test_labels is None):
            raise ValueError("a test set has features and labels")
        self.kind = kind
        self._given = {"train": (np.asarray(features), np.asarray(labels))}
        if test_features is not None:
            self._given["test"] = (np.asarray(test_features), np.asarray(test_labels))
        shapes = {which: self._checked(which)[0].shape[1:] for which in self._given}
        if shapes.get("test", shapes["train"]) != shapes["train"]:
            raise ValueError(f"a test row has the shape {shapes['test']}, a training row {shapes['train']}")
        register("data", kind, self, Dataset)

    @classmethod
    def from_huggingface(cls, kind: str, dataset: Any, *, features: str | Sequence[str], label: str, test: Any = None) -> Dataset:
        """Makes a data set of one of Hugging Face `datasets` that lies in memory or in local files.

        features: the column of arrays or images, or several columns of numbers.  test: a data set of the same columns.
        """
        parts = [_columns_of(one, features, label) for one in (dataset, test) if one is not None]
        held_out = {"test_features": parts[1][0], "test_labels": parts[1][1]} if len(parts) > 1 else {}
        return cls(kind, *parts[0], **held_out)

    @property
    def _has_classes(self) -> bool:
        return not np.issubdtype(self._given["train"][1].dtype, np.floating)

    def _classes(self) -> np.ndarray:
        return np.unique(self._given["train"][1]) if self._has_classes else np.empty(0)

    def _checked(self, which: str) -> tuple[np.ndarray, np.ndarray]:
        """Returns the features and labels of a set as numbers, or raises the reason why they are none."""
        before = "test_" if which == "test" else ""
        features, labels = self._given[which]
        features = _numbers_of(features, before + "features")
        if labels.shape not in ((len(features),), (len(features), 1)):
            raise ValueError(f"{before}labels has the shape {labels.shape}; {before}features has {len(features)} rows")
        labels = labels.reshape(-1)
        if not self._has_classes:
            if not np.isfinite(labels).all():
                raise ValueError(f"{before}labels has a number that is not finite, in row {int(np.flatnonzero(~np.isfinite(labels))[0])}")
            return features, labels.astype(np.float64)
        classes = self._classes()
        places = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
        if not (classes[places] == labels).all():
            raise ValueError(f"{before}labels has {labels[classes[places] != labels][0].item()!r}, which is no class of the training rows")
        return features, places.astype(np.int32)

    def _arrays(self, which: str, dtype: str) -> _Arrays | None:
        if which not in self._given:
            return None
        features, labels = self._checked(which)  # again: the arrays may have changed since
        classes = [str(one) for one in self._classes()]
        if features.dtype != np.uint8:
            features = features.astype(dtype, copy=False)
        shape = features.shape[1:] if features.ndim != 3 else (1, *features.shape[1:])
        rows = np.ascontiguousarray(features.reshape(len(features), -1))
        return _Arrays(rows, labels, shape, len(classes), classes)

    def _code(self) -> str:
        return digest_of(arrays=self._given)

    def _new(self) -> Dataset:
        return self


def _numbers_of(features: np.ndarray, name: str) -> np.ndarray:
    """Returns features as bytes or floating point numbers."""
    if features.dtype != np.uint8 and not np.issubdtype(features.dtype, np.floating):
        if not np.issubdtype(features.dtype, np.integer) and features.dtype != bool:
            raise TypeError(f"{name} has {features.dtype}; numbers are needed")
        features = features.astype(np.float64)
    if features.ndim < 2 or features.size == 0:
        raise ValueError(f"{name} has the shape {features.shape}; rows of at least one number are needed")
    if features.dtype != np.uint8 and not np.isfinite(features).all():
        raise ValueError(f"{name} has a number that is not finite, in row {int(np.argwhere(~np.isfinite(features))[0][0])}")
    return features


def _columns_of(dataset: Any, features: str | Sequence[str], label: str) -> tuple[np.ndarray, np.ndarray]:
    names = [features] if isinstance(features, str) else list(features)
    missing = [name for name in [*names, label] if name not in dataset.column_names]
    if missing:
        raise ValueError(f"the data set has no column {missing[0]!r}; it has {', '.join(map(repr, dataset.column_names))}")
    columns = dataset.with_format("numpy")[:]
    if isinstance(features, str):
        return np.stack(list(columns[features])), np.asarray(columns[label])
    return np.stack([np.asarray(columns[name]) for name in names], axis=1), np.asarray(columns[label])
