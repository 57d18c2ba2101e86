"""What a sender keeps between steps: the compression error of every parameter, by its name, and the state of the operator."""
from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any, Iterable, Mapping

import numpy as np
import torch

from fedbits import arguments
from fedbits.compressors import Memory, checksum_of


@dataclasses.dataclass
class Vector:
    """The parameters that one message is made of, in their order, and the memory of that message."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    memory: Memory = dataclasses.field(default_factory=Memory)

    @functools.cached_property
    def places(self) -> dict[str, slice]:
        ends = list(itertools.accumulate(self.sizes))
        return {name: slice(begin, end) for name, begin, end in zip(self.names, [0, *ends], ends)}

    def error_of(self, name: str) -> np.ndarray | None:
        """Returns a view of the error of a parameter, flat, or None if none is kept."""
        error = self.memory._arrays.get("error")
        return None if error is None else error[self.places[name]]

    @property
    def has_state(self) -> bool:
        """Whether the operator keeps more than the error."""
        return any(name != "error" for name in self.memory._arrays)


class ParameterMemory:
    """The errors of all parameters. Those of one vector lie one after another, as operators need them. They move where a parameter comes to another
    vector: with layers that are added, frozen or not used in a step, and with buckets that are formed anew."""

    def __init__(self, vectors: Iterable[Vector] = ()) -> None:
        self._vectors = {name: vector for vector in vectors for name in vector.names}  # of each parameter

    def vector_of(self, names: tuple[str, ...], sizes: tuple[int, ...], moves_state: bool = False) -> Vector:
        """Returns the vector of these parameters, made anew if they have not been one vector. New parameters begin with an error of zero.

        moves_state: a state of the operator of other parameters is forgotten; by default it is a ValueError, because it cannot move.
        """
        found = self._vectors.get(names[0])
        if found is not None and (found.names, found.sizes) == (names, sizes):
            return found
        others = {id(one): one for name in names if (one := self._vectors.get(name)) is not None}
        if not moves_state and any(one.has_state for one in others.values()):
            raise ValueError("this compressor keeps a state of its own for the parameters of the steps before, and the parameters are others now; forget() "
                             "begins anew, and what has been kept back is lost")
        vector = Vector(names, sizes, self._moved(names, sizes))
        for other in others.values():
            for name in set(other.names).difference(names):
                self._vectors[name] = Vector((name,), (other.sizes[other.names.index(name)],), self._moved((name,), None))
        self._vectors.update(dict.fromkeys(names, vector))
        return vector

    def _moved(self, names: tuple[str, ...], sizes: tuple[int, ...] | None) -> Memory:
        """Returns a memory with the errors that the parameters have now."""
        memory, errors = Memory(), [self.error_of(name) for name in names]
        kept = [error for error in errors if error is not None]
        if not kept:
            return memory
        for name, error, size in zip(names, errors, sizes or ()):
            if error is not None and len(error) != size:
                raise ValueError(f"what is kept of the parameter {name!r} has {len(error)} numbers, and the parameter has {size}")
        pieces = [np.zeros(size, kept[0].dtype) if error is None else error for error, size in zip(errors, sizes or (0,) * len(names))]
        memory._keep({"error": np.concatenate(pieces)}, 0)
        return memory

    @property
    def names(self) -> list[str]:
        return list(self._vectors)

    def error_of(self, name: str) -> np.ndarray | None:
        """Returns a view of the error of a parameter, flat, or None if none is kept."""
        vector = self._vectors.get(name)
        return None if vector is None else vector.error_of(name)

    def vectors(self) -> list[Vector]:
        """Returns every vector once, in the order of the first parameters."""
        return list({id(one): one for one in self._vectors.values()}.values())

    def state(self) -> list[dict[str, Any]]:
        """Returns what is kept of each vector, with tensors instead of arrays."""
        return [{"names": list(one.names), "sizes": list(one.sizes),
                 "memory": {name: torch.from_numpy(array) for name, array in one.memory.state_dict().items()}} for one in self.vectors()]


def restored(state: Any) -> ParameterMemory:
    """Returns the memory of a state, or raises TypeError or ValueError with the reason why it is none."""
    if not isinstance(state, (list, tuple)):
        raise TypeError(f"the vectors of this state are of type {type(state).__name__}; they must be a list")
    vectors: list[Vector] = []
    for one in state:
        arguments.table("a vector of this state", one, ("names", "sizes", "memory"))
        names, sizes = tuple(one["names"]), tuple(arguments.whole("a size of this state", size, 0, arguments.MOST_NUMBERS) for size in one["sizes"])
        if len(names) != len(sizes) or not all(isinstance(name, str) for name in names):
            raise ValueError("a vector of this state does not have a name and a size for each parameter")
        memory = Memory()
        memory.load_state_dict(one["memory"])
        if memory.error is not None and memory.error.size != sum(sizes):
            raise ValueError(f"a vector of this state has an error of {memory.error.size} numbers for parameters of {sum(sizes)}")
        vectors.append(Vector(names, sizes, memory))
    if len({name for one in vectors for name in one.names}) != sum(len(one.names) for one in vectors):
        raise ValueError("this state has a parameter twice")
    return ParameterMemory(vectors)


def checksum_of_state(state: Mapping[str, Any]) -> int:
    """Returns the checksum of a sender's state. It covers the counts and the vectors; each vector has a checksum of its numbers already."""
    pieces = [f"{name} {int(state[name])}" for name in ("rounds", "bits", "process", "processes")]
    for one in state["vectors"]:
        pieces += [repr(list(one["names"])), repr([int(size) for size in one["sizes"]]), str(int(one["memory"]["checksum"]) if one["memory"] else 0)]
    return checksum_of(*(piece.encode() for piece in pieces))
