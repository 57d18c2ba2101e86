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

_LONGEST_WAIT = datetime.timedelta(minutes=30)  # for another process, where the group does not tell its own


class Processes:
    """The processes that share a mean: those of a group, or one alone where torch.distributed does not run.

    group: of torch.distributed; None = all processes.  apart: the messages have a connection of their own, because other collectives of this group
    may run meanwhile. Messages lie on the CPU, so a group of NCCL gets a connection of gloo beside it. All processes have to make it together.
    """

    def __init__(self, group: Any = None, apart: bool = False):
        self.group = group
        self.own, self.count = place_in(group)
        self._received: dict[int, np.ndarray] = {}
        if self.count == 1:
            return
        is_apart = apart or dist.get_backend(group) == "nccl"
        self._group = _beside(group) if is_apart else group or dist.distributed_c10d._get_default_group()

    def gather(self, numbers: Sequence[int]) -> list[list[int]]:
        """Returns the whole numbers of all processes, which give equally many, in the order of the processes."""
        if self.count == 1:
            return [list(numbers)]
        own = torch.tensor(numbers, dtype=torch.int64)
        received = [torch.empty_like(own) for _ in range(self.count)]
        self._group.allgather([received], [own]).wait()
        _lend([own, *received])
        return [one.tolist() for one in received]

    def gather_bytes(self, own: np.ndarray, lengths: Sequence[int]) -> list[np.ndarray]:
        """Returns the bytes of all processes, whose lengths all of them know. The arrays are valid until the next call.

        Every process sends its bytes to each of the others: all_gather() would fill them up to the longest, and copy them twice. Each begins to
        receive before it sends; otherwise gloo sends one way after the other (PyTorch 2.15).
        """
        if self.count == 1:
            return [own]
        received = [own if sender == self.own else self._room(sender, length) for sender, length in enumerate(lengths)]
        sent = torch.from_numpy(own)
        for distance in range(1, self.count):
            to, sender = (self.own + distance) % self.count, (self.own - distance) % self.count
            works = []
            if lengths[sender] > 0:
                to_fill = torch.from_numpy(received[sender])
                works.append(self._group.recv([to_fill], sender, 0))
                _lend([to_fill])
            if len(own) > 0:
                works.append(self._group.send([sent], to, 0))
            for work in works:
                work.wait()
        _lend([sent])
        return received

    def _room(self, sender: int, length: int) -> np.ndarray:
        """Returns memory for the bytes of a process, which is used again."""
        if sender not in self._received or len(self._received[sender]) < length:
            self._received[sender] = np.empty(length, np.uint8)
        return self._received[sender][:length]

    def gather_texts(self, text: str) -> list[str]:
        """Returns the texts of all processes."""
        own = np.frombuffer(bytearray(text.encode()), np.uint8)
        lengths = [length for length, in self.gather([len(own)])]
        return [one.tobytes().decode() for one in self.gather_bytes(own, lengths)]

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
    return dist.ProcessGroupGloo(store, own, count, _timeout_of(group or dist.distributed_c10d._get_default_group()))


def _timeout_of(group: Any) -> datetime.timedelta:
    """Returns how long a group waits for a process, as its user has set it; PyTorch tells that only of gloo."""
    try:
        gloo = group._get_backend(torch.device("cpu")) if hasattr(group, "_get_backend") else group
        return gloo.options._timeout
    except (AttributeError, RuntimeError):
        return _LONGEST_WAIT


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
