"""Compressed gradients in loops of PyTorch, in one process or in several.

    optimizer = fedbits.torch.Compressed(torch.optim.SGD(model.parameters(), lr=0.1), fedbits.TopK(ratio=0.01))

replaces an optimizer: step() compresses the gradient of all parameters as one vector, with a memory of the error, and steps with what was sent.
In several processes of torch.distributed every process sends its message to all others, and steps with the mean of the messages.

    hook = fedbits.torch.ddp_hook(fedbits.TopK(ratio=0.01))
    model.register_comm_hook(model, hook)           # a DistributedDataParallel

does the same between the backward pass and any optimizer. `bits` is the exact length of the messages that this process has sent.
"""
# DistributedDataParallel reads the annotations of a hook as types, so they are not postponed here.
import atexit
import math
import time
import weakref
from typing import Any, Callable, Iterable, Mapping

import numpy as np
import torch
import torch.distributed as dist

from fedbits import arguments
from fedbits.compressors import OR_OLD, Compressor, Memory, Message, checksum_of
from fedbits.torch_model import Model, dataset

__all__ = ["Compressed", "DdpHook", "Model", "dataset", "ddp_hook"]


class _Sender:
    """Sends the gradients of one process, and returns the mean of the messages of all processes."""

    def __init__(self, compressor: Compressor, feedback: bool, seed: int, group: Any):
        if not isinstance(compressor, Compressor):
            raise TypeError(f"expected a compressor, as fedbits.TopK(ratio=0.01), got {type(compressor).__name__}")
        self.compressor, self.seed, self.group = compressor, arguments.whole("seed", seed, 0, 2**64 - 1), group
        self._has_feedback, self._memory = feedback, Memory()
        self.rounds, self.bits = 0, 0

    @property
    def error(self) -> np.ndarray | None:
        """The compression error that has not been sent yet, flat, or None without feedback and before the first message."""
        return self._memory.error if self._has_feedback else None

    def _mean(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        """Returns the mean over the processes of C(gradients + error), in the shapes of the gradients."""
        shapes = [tuple(gradient.shape) or (1,) for gradient in gradients]
        vector = torch.cat([gradient.detach().reshape(-1) for gradient in gradients])
        processes = dist.get_world_size(self.group) if dist.is_available() and dist.is_initialized() else 1
        client = dist.get_rank(self.group) if processes > 1 else 0
        if processes > 1:
            self.compressor._require_one_phase(vector.numpy().dtype, shapes)
        key = {"seed": self.seed, "client": client, "round": self.rounds + 1}
        message = self.compressor.compress(vector, **key, shapes=shapes, memory=self._memory if self._has_feedback else None)
        mean = message.decode() if processes == 1 else self._mean_of_all(message, vector, shapes, processes)
        self.rounds += 1
        self.bits += message.bits
        pieces = mean.split([math.prod(shape) for shape in shapes])
        return [piece.reshape(gradient.shape) for piece, gradient in zip(pieces, gradients)]

    def _mean_of_all(self, message: Message, vector: torch.Tensor, shapes: list[tuple[int, ...]], processes: int) -> torch.Tensor:
        """Sums in the order of the processes, so that all of them compute the same bits."""
        total = torch.zeros_like(vector)
        for client, received in enumerate(_all_gather(bytes(message), processes, self.group)):
            total += torch.from_numpy(self.compressor.decode(received, vector.shape, dtype=vector.numpy().dtype, client=client, round=self.rounds + 1,
                                                             seed=self.seed, shapes=shapes))
        return total / processes

    def __repr__(self) -> str:
        of = f"{type(self.optimizer).__name__}, " if isinstance(self, Compressed) else ""
        count = f"{self.rounds} message" + "s" * (self.rounds != 1)
        return f"<{type(self).__name__} of {of}{self.compressor!r}{'' if self._has_feedback else ', without feedback'}: {count}, {self.bits} bits>"

    def state_dict(self) -> dict[str, Any]:
        """What is kept between steps: the memory, the counts of messages and bits, and a checksum of all."""
        memory = {name: torch.from_numpy(array) for name, array in self._memory.state_dict().items()}
        return {"memory": memory, "rounds": self.rounds, "bits": self.bits, "checksum": _checksum_of(memory, self.rounds, self.bits)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises TypeError or ValueError for what state_dict() does not return, also if a number of it has changed; nothing is changed then."""
        self._memory, self.rounds, self.bits = _restored(state)


def _checksum_of(memory: Mapping[str, Any], rounds: int, bits: int) -> int:
    return checksum_of(str(int(memory["checksum"]) if memory else 0).encode(), str(rounds).encode(), str(bits).encode())


def _restored(state: Any) -> tuple[Memory, int, int]:
    """Returns the memory, the messages and the bits of a sender's state, or raises the reason why it is none."""
    arguments.table("the state", state, ("memory", "rounds", "bits"))
    if "checksum" not in state:
        raise ValueError("this state has no 'checksum': it is damaged" + OR_OLD)
    for name in state:
        if name not in ("memory", "rounds", "bits", "checksum"):
            raise ValueError(f"a state of a sender has no {arguments.shown(name)}; it has 'memory', 'rounds', 'bits' and 'checksum'")
    memory = Memory()
    memory.load_state_dict(state["memory"])
    rounds, bits = (arguments.whole(f"the {name} of this state", state[name], 0, 2**63 - 1) for name in ("rounds", "bits"))
    if arguments.index("the checksum of this state", state["checksum"]) != _checksum_of(state["memory"], rounds, bits):
        raise ValueError("this state is damaged: it does not match its checksum")
    return memory, rounds, bits


class Compressed(_Sender):
    """An optimizer whose gradients are what a compressor makes of them.

    step() compresses the gradients of all parameters as one vector, in the order of the optimizer, writes what was sent into their .grad, and takes
    the optimizer's step. In several processes it writes the mean of all messages. A parameter without a gradient counts as zero. Parameters are of
    one type, float32 or float64, on the CPU.

    feedback: keeps the error of a message and adds it to the next gradient.  seed, and the process and number of a message, choose its random
    numbers.  group: of torch.distributed; None = all processes.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, compressor: Compressor, *, feedback: bool = True, seed: int = 1, group: Any = None):
        if not isinstance(optimizer, torch.optim.Optimizer) and not (hasattr(optimizer, "param_groups") and hasattr(optimizer, "step")):
            raise TypeError(f"optimizer is of type {type(optimizer).__name__}; it must be an optimizer of PyTorch, as "
                            "torch.optim.SGD(model.parameters(), lr=0.1)")
        super().__init__(compressor, feedback, seed, group)
        self.optimizer = optimizer

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The optimizer's, so that schedulers of the learning rate find them."""
        return self.optimizer.param_groups

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Sends the gradients and takes a step. With a closure, it is called first, and its loss is returned."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        parameters = [one for group in self.param_groups for one in group["params"] if one.requires_grad]
        gradients = [torch.zeros_like(one) if one.grad is None else one.grad for one in parameters]
        for parameter, mean in zip(parameters, self._mean(gradients)):
            parameter.grad = mean
        self.optimizer.step()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none)

    def state_dict(self) -> dict[str, Any]:
        return {"optimizer": self.optimizer.state_dict(), "sender": super().state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises TypeError or ValueError, before anything is changed, for a state of the sender that state_dict() does not return, and what the optimizer
        raises."""
        arguments.table("the state", state, ("optimizer", "sender"))
        _restored(state["sender"])
        self.optimizer.load_state_dict(state["optimizer"])
        super().load_state_dict(state["sender"])


class DdpHook(_Sender):
    """A communication hook of DistributedDataParallel; see ddp_hook().

    DistributedDataParallel hands over the gradients in buckets, whose contents change after the first step. The hook waits for the last one and
    sends one message for the whole model, in the order of model.parameters(), as the simulator does.
    """

    def __init__(self, compressor: Compressor, feedback: bool, seed: int, group: Any):
        super().__init__(compressor, feedback, seed, group)
        self.__name__ = self.__qualname__ = "fedbits"  # DistributedDataParallel logs the name of a hook
        self._waiting: list[tuple[Any, Any]] = []

    def __call__(self, state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        if not isinstance(state, torch.nn.Module):
            raise TypeError("the hook needs the model as its state: model.register_comm_hook(model, hook)")
        if bucket.index() == 0:
            self._waiting.clear()  # of a step that an error has ended
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        self._waiting.append((bucket, future))
        if bucket.is_last():
            self._send(list(state.parameters()))
        return future

    def _send(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        gradients = {id(parameter): gradient for bucket, _ in self._waiting
                     for parameter, gradient in zip(bucket.parameters(), bucket.gradients())}
        sent = [gradients[id(parameter)] for parameter in parameters if id(parameter) in gradients]
        for gradient, mean in zip(sent, self._mean(sent)):
            gradient.copy_(mean)  # a view of its bucket
        for bucket, future in self._waiting:
            future.set_result(bucket.buffer())
        self._waiting.clear()


def ddp_hook(compressor: Compressor, feedback: bool = True, *, seed: int = 1, group: Any = None) -> DdpHook:
    """Returns a communication hook: model.register_comm_hook(model, hook), where model is a DistributedDataParallel.

    Every process sends one message a step to all others (all-gather; the backend has to carry tensors on the CPU, as gloo does), and all use the mean.
    feedback, seed and group are those of Compressed. The hook has `bits`, `rounds`, `error`, state_dict() and load_state_dict().
    Raises ValueError at the first step for an operator whose messages depend on those of other processes, as PowerSGD's do.
    """
    return DdpHook(compressor, feedback, seed, group)


def _all_gather(message: bytes, processes: int, group: Any) -> list[bytes]:
    """Returns the messages of all processes, which differ in length."""
    own = torch.frombuffer(bytearray(message), dtype=torch.uint8)
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(processes)]
    own_length = torch.tensor([len(own)])
    dist.all_gather(lengths, own_length, group=group)
    longest = max(int(length) for length in lengths)
    padded = torch.zeros(longest, dtype=torch.uint8)
    padded[:len(own)] = own
    received = [torch.empty(longest, dtype=torch.uint8) for _ in range(processes)]
    dist.all_gather(received, padded, group=group)
    _lend([own_length, padded, *lengths, *received])
    return [bytes(one[:int(length)].numpy()) for one, length in zip(received, lengths)]


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
