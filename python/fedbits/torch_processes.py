"""The processes of a group of torch.distributed: what they gather from each other."""
from __future__ import annotations

import atexit
import datetime
import time
import uuid
import weakref
from typing import Any, Sequence

import numpy as np
import torch
import torch.distributed as dist

_LONGEST_WAIT = datetime.timedelta(minutes=30)  # for another process, as in groups of PyTorch


class Processes:
    """The processes that share a mean: those of a group, or one alone where torch.distributed does not run.

    group: of torch.distributed; None = all processes.  apart: the messages have a connection of their own, because other collectives of this group
    may run meanwhile. Messages lie on the CPU, so a group of NCCL gets a connection of gloo beside it. All processes have to make it together.
    """

    def __init__(self, group: Any = None, apart: bool = False):
        self.group = group
        self.own, self.count = place_in(group)
        self._received: list[torch.Tensor] = []
        is_apart = self.count > 1 and (apart or dist.get_backend(group) == "nccl")
        self._connection = _beside(group) if is_apart else None

    def gather(self, numbers: Sequence[int]) -> list[list[int]]:
        """Returns the whole numbers of all processes, which give equally many, in the order of the processes."""
        if self.count == 1:
            return [list(numbers)]
        own = torch.tensor(numbers, dtype=torch.int64)
        received = [torch.empty_like(own) for _ in range(self.count)]
        self._all_gather(received, own)
        return [one.tolist() for one in received]

    def gather_bytes(self, own: np.ndarray, lengths: Sequence[int]) -> list[np.ndarray]:
        """Returns the bytes of all processes, whose lengths all of them know. The arrays are valid until the next call."""
        if self.count == 1:
            return [own]
        longest = max(lengths)
        padded = torch.from_numpy(own)
        if len(own) < longest:
            padded = torch.zeros(longest, dtype=torch.uint8)
            padded[:len(own)] = torch.from_numpy(own)
        if not self._received or len(self._received[0]) < longest:
            self._received = [torch.empty(longest, dtype=torch.uint8) for _ in range(self.count)]
        received = [one[:longest] for one in self._received]
        self._all_gather(received, padded)
        return [one.numpy()[:length] for one, length in zip(received, lengths)]

    def gather_texts(self, text: str) -> list[str]:
        """Returns the texts of all processes."""
        own = np.frombuffer(bytearray(text.encode()), np.uint8)
        lengths = [length for length, in self.gather([len(own)])]
        return [one.tobytes().decode() for one in self.gather_bytes(own, lengths)]

    def _all_gather(self, received: list[torch.Tensor], own: torch.Tensor) -> None:
        if len(own) > 0:
            if self._connection is None:
                dist.all_gather(received, own, group=self.group)
            else:
                self._connection.allgather([received], [own]).wait()
            _lend([own, *received])

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("the processes of a group cannot be pickled or copied")


def place_in(group: Any) -> tuple[int, int]:
    """Returns the number of this process in a group and the number of its processes: 0 and 1 where torch.distributed does not run."""
    if not (dist.is_available() and dist.is_initialized()):
        return 0, 1
    own = dist.get_rank(group)
    if own < 0:
        raise ValueError("this process is not in the group that it sends to")
    return own, dist.get_world_size(group)


def _beside(group: Any) -> Any:
    """Returns a connection of gloo between the same processes. new_group() of PyTorch cannot make one: it counts the groups of each process, which
    differ where only some processes have made others (PyTorch 2.15)."""
    own, count = place_in(group)
    name = [uuid.uuid4().hex if own == 0 else None]
    first = 0 if group is None else dist.get_global_rank(group, 0)
    dist.broadcast_object_list(name, first, group=group)
    store = dist.PrefixStore(f"fedbits-{name[0]}", dist.distributed_c10d._get_default_store())
    return dist.ProcessGroupGloo(store, own, count, _LONGEST_WAIT)


# The threads of gloo let go of the tensors of a collective a moment after it has ended, which takes the interpreter's lock. DistributedDataParallel
# keeps those threads alive for as long as the process, and a thread that asks for the lock while the interpreter shuts down ends the process with an
# error (PyTorch 2.15). So the end of the program waits for them.
_lent: list[weakref.ref[torch.Tensor]] = []


def _lend(tensors: list[torch.Tensor]) -> None:
    """Notes the tensors of a collective that has ended, which nobody but the threads of PyTorch will hold."""
    _lent[:] = [one for one in _lent if one() is not None]
    _lent.extend(weakref.ref(tensor) for tensor in tensors)


@atexit.register
def _wait_for_lent_tensors(longest_s: float = 5) -> None:
    end = time.monotonic() + longest_s
    while any(one() is not None for one in _lent) and time.monotonic() < end:
        time.sleep(0.001)
