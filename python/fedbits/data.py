"""Arrays as data sets of scenarios."""
from __future__ import annotations

import dataclasses
import warnings
from typing import Any, Sequence

import numpy as np

from fedbits.arguments import text
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

    features: [m, ...] of numbers. Bytes (uint8) of images are read as byte / 255; [m,height,width] of bytes gets a channel, and other arrays keep the
    shape of their rows, such as sequences [m,steps,values]. Whole numbers reach a module of PyTorch as integers, and everything else as
    floating point numbers.
    layout: of images [m,...] with channels, "channels_first" ([m,C,H,W]) or "channels_last" ([m,H,W,C], as PIL, TensorFlow and Hugging Face have them),
    which is turned into the first; of images without, either adds a channel. None: recognised where one of the two axes alone has 1, 3 or 4 entries, or
    where one of the two makes square images.
    labels: [m]; whole numbers and texts are classes, floating point numbers are targets.
    test_features, test_labels: a test set; without it, data.test_fraction of a scenario holds rows out.
    The arrays are kept, not copied. Every study reads them again to compute their digest (about a second per gigabyte), so that changed numbers make
    other runs; they may not change while a study runs.
    """

    def __init__(self, kind: str, features: Any, labels: Any, *, test_features: Any = None, test_labels: Any = None, layout: str | None = None):
        if (test_features is None) != (test_labels is None):
            raise ValueError("a test set has features and labels")
        if layout not in (None, "channels_first", "channels_last"):
            raise ValueError(f"layout is {layout!r}; it must be 'channels_first', 'channels_last' or None")
        self.kind, self._layout = kind, layout
        for table in (features, test_features):
            _refuse_other_columns(table)
        self._given = {"train": (np.asarray(features), np.asarray(labels))}
        if test_features is not None:
            self._given["test"] = (np.asarray(test_features), np.asarray(test_labels))
        for which in self._given:
            self._axes_of(which)
        self._warn_of_whole_targets()
        shapes = {which: self._checked(which)[0].shape[1:] for which in self._given}
        if shapes.get("test", shapes["train"]) != shapes["train"]:
            raise ValueError(f"a test row has the shape {shapes['test']}, a training row {shapes['train']}")
        register("data", kind, self, Dataset)

    @classmethod
    def from_huggingface(cls, kind: str, dataset: Any, *, features: str | Sequence[str], label: str, test: Any = None,
                         layout: str | None = None) -> Dataset:
        """Makes a data set of one of Hugging Face `datasets` that lies in memory or in local files.

        features: the column of arrays or images, or several columns of numbers.  test: a data set of the same columns.  layout: as of Dataset.
        """
        parts = [_columns_of(one, features, label) for one in (dataset, test) if one is not None]
        held_out = {"test_features": parts[1][0], "test_labels": parts[1][1]} if len(parts) > 1 else {}
        return cls(kind, *parts[0], **held_out, layout=layout)

    @property
    def has_integers(self) -> bool:
        """Whether features are whole numbers, such as tokens, which a module of PyTorch gets as integers."""
        dtype = self._given["train"][0].dtype
        return dtype != np.uint8 and bool(np.issubdtype(dtype, np.integer))

    def _axes_of(self, which: str) -> str | None:
        """Returns the layout of a set's images, or None for rows that are none. Raises ValueError where it has to be given."""
        shape = self._given[which][0].shape
        if self._layout is not None and len(shape) not in (3, 4):
            raise ValueError(f"layout is {self._layout!r}; it is for images, and features has the shape {shape}")
        if self._layout is not None or len(shape) != 4:
            return self._layout
        first, last = (shape[axis] in (1, 3, 4) for axis in (1, 3))
        if first and last and (shape[2] == shape[3]) != (shape[1] == shape[2]):
            first, last = shape[2] == shape[3], shape[1] == shape[2]  # images are square more often than not
        if first and last:
            raise ValueError(f"features has the shape {shape}; say which axis has the channels: layout='channels_first' or layout='channels_last'")
        return "channels_last" if last else "channels_first"

    def _warn_of_whole_targets(self) -> None:
        labels = self._given["train"][1]
        if not np.issubdtype(labels.dtype, np.floating) or labels.size == 0 or not np.isfinite(labels).all():
            return
        found = np.unique(labels)
        if len(found) <= 20 and (found == np.rint(found)).all():
            some = ", ".join(str(one) for one in found[:3]) + (", ..." if len(found) > 3 else "")
            warnings.warn(f"labels are floating point numbers ({some}), so they are targets and no classes; for classes give labels.astype(int)",
                          stacklevel=3)

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
        for name in classes if classes.dtype.kind in "UO" else ():
            if isinstance(name, str):
                text(f"a class in {before}labels", name)
        places = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
        if not (classes[places] == labels).all():
            raise ValueError(f"{before}labels has {labels[classes[places] != labels][0].item()!r}, which is no class of the training rows")
        return features, places.astype(np.int32)

    def _arrays(self, which: str, dtype: str) -> _Arrays | None:
        if which not in self._given:
            return None
        features, labels = self._checked(which)  # again: the arrays may have changed since
        classes = [str(one) for one in self._classes()]
        if self.has_integers and dtype == "float32" and np.abs(features).max() > 2**24:
            raise ValueError("features has whole numbers above 2^24, which float32 does not hold exactly; use precision = \"float64\"")
        if features.dtype != np.uint8:
            features = features.astype(dtype, copy=False)
        layout = self._axes_of(which)
        if layout == "channels_last" and features.ndim == 4:
            features = np.moveaxis(features, 3, 1)
        gets_a_channel = features.ndim == 3 and (layout is not None or features.dtype == np.uint8)
        shape = (1, *features.shape[1:]) if gets_a_channel else features.shape[1:]
        rows = np.ascontiguousarray(features.reshape(len(features), -1))
        return _Arrays(rows, labels, shape, len(classes), classes)

    def _code(self) -> str:
        return digest_of(arrays=self._given) if self._layout is None else digest_of(arrays=self._given, layout=self._layout)

    def _new(self) -> Dataset:
        return self


def _refuse_other_columns(table: Any) -> None:
    """Raises TypeError for a table of pandas with columns that are no numbers, such as dates and names, and names them."""
    types = getattr(table, "dtypes", None)
    if not hasattr(table, "columns") or types is None:
        return
    others = [f"{name!r} ({kind})" for name, kind in zip(table.columns, types) if not (isinstance(kind, np.dtype) and kind.kind in "biuf")]
    if others:
        raise TypeError(f"features has columns that are no numbers: {', '.join(others[:5])}{', ...' if len(others) > 5 else ''}; leave them out or turn "
                        "them into numbers")


def _numbers_of(features: np.ndarray, name: str) -> np.ndarray:
    """Returns features as bytes or floating point numbers."""
    if features.dtype != np.uint8 and not np.issubdtype(features.dtype, np.floating):
        if not np.issubdtype(features.dtype, np.integer) and features.dtype != bool:
            way = f", and {name}.astype(float) makes them of texts and objects that are numbers" if features.dtype.kind in "OSU" else ""
            raise TypeError(f"{name} has {features.dtype}; numbers are needed{way}")
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
