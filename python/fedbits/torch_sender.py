"""What the optimizer and the hook have in common: gradients of one process become a message, and messages of all processes their mean.

A step has these parts, in all processes alike:

    collect     every process flattens the gradients that it has, and looks whether they are finite
    agree       the processes compare who they are and whether all can send; if one cannot, all raise the same error, and nothing has moved
    exchange    every process sends the message of its gradient and error to all others, and all compute the mean of the messages
"""
from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, Mapping, Sequence

import numpy as np
import torch

from fedbits import _core, arguments
from fedbits.compressors import OR_OLD, Compressor, checksum_of
from fedbits.torch_memory import ParameterMemory, Vector, checksum_of_state, restored
from fedbits.torch_processes import Processes, place_in

_EXCHANGES = {np.dtype(np.float32): _core.Exchange32, np.dtype(np.float64): _core.Exchange64}
_REQUIRE_FINITE = {np.dtype(np.float32): _core.require_finite32, np.dtype(np.float64): _core.require_finite64}
_KEYS = ("vectors", "rounds", "bits", "process", "processes")  # of a state, beside its checksum
_CAN_SEND, _IS_SCALED_TOO_FAR, _HAS_FAILED = range(3)  # what a process says before anything moves


@dataclasses.dataclass
class Gradient:
    """The gradient of a parameter in this process. value: None if the loss has not used the parameter here; it may be sparse."""

    name: str
    parameter: torch.Tensor
    value: torch.Tensor | None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.parameter.shape) or (1,)


@dataclasses.dataclass
class _Room:
    """Memory that every step uses again: for what is sent, and for the mean of what all have sent, [P] each."""

    sent: np.ndarray
    mean: np.ndarray


class Sender:
    """Compresses the gradients of one process with its memory, and returns the mean of the messages of all processes."""

    def __init__(self, compressor: Compressor, feedback: bool, seed: int, group: Any):
        if not isinstance(compressor, Compressor):
            raise TypeError(f"expected a compressor, as fedbits.TopK(ratio=0.01), got {type(compressor).__name__}")
        self.compressor, self.seed, self.group = compressor, arguments.whole("seed", seed, 0, 2**64 - 1), group
        self._has_feedback, self._memory = bool(feedback), ParameterMemory()
        self._processes: Processes | None = None
        self._rooms: dict[tuple[str, ...], _Room] = {}
        self._compared: set[tuple[str, ...]] = set()  # vectors whose parameters all processes have compared
        self.rounds, self.bits = 0, 0

    @property
    def error(self) -> np.ndarray | None:
        """The compression error that has not been sent yet, flat, parameter after parameter; None without feedback and before the first message."""
        kept = list(self.errors.values())
        return np.concatenate(kept) if kept else None

    @property
    def errors(self) -> dict[str, np.ndarray]:
        """Copies of the compression errors that have not been sent yet, flat, by the names of the parameters."""
        found = {name: self._memory.error_of(name) for name in self._names_in_order()} if self._has_feedback else {}
        return {name: error.copy() for name, error in found.items() if error is not None}

    def _names_in_order(self) -> list[str]:
        return self._memory.names

    def forget(self) -> None:
        """Forgets the errors and what the operator keeps, and goes on as before the first step. All processes have to do that alike."""
        self._memory = ParameterMemory()
        self._compared.clear()

    # ---- a step

    def _mean_of(self, gradients: Sequence[Gradient], scale: float | None, seed: int | None = None, moves_state: bool = False
                 ) -> list[torch.Tensor | None] | None:
        """Returns the mean over the processes of C(gradient + error) for each parameter, flat, on the CPU, or None for a parameter that no process has
        used. The tensors are valid until the next step.

        scale: the factor of the loss, by which gradients are divided before they are sent. With one, the answer is None if the gradient of a process is
        not finite, and nothing has been sent; without one that is an error.  seed: of the random numbers.  moves_state: as of ParameterMemory.
        """
        processes = self._require_processes()
        status, failure, room, dtype = _CAN_SEND, None, None, np.dtype(np.float32)
        try:
            dtype = _type_of(gradients)
            self._require_right(gradients, dtype)
            room = self._flatten(gradients, dtype, scale)
            if not _is_finite(room.sent):
                status = _IS_SCALED_TOO_FAR
                if scale is None:
                    raise _core.Error(_not_finite(gradients, processes))
        except Exception as error:
            status, failure = _HAS_FAILED, error
        used = self._agree(processes, gradients, status, failure)
        if used is None or room is None:
            return None
        idle = {one.name for one, is_used in zip(gradients, used) if not is_used}
        if len(idle) == len(gradients):
            return [None] * len(gradients)
        sent = gradients
        if idle and not self._has_state(gradients, dtype):
            sent = [one for one in gradients if one.name not in idle]
            room = self._flatten(sent, dtype, scale)
        means = self._exchange(processes, sent, room, self.seed if seed is None else seed, idle, moves_state)
        return [None if one.name in idle else means[one.name] for one in gradients]

    def _flatten(self, gradients: Sequence[Gradient], dtype: np.dtype, scale: float | None) -> _Room:
        """Returns the gradients one after another, zeros for those that are missing here, divided by the scale."""
        names, size = tuple(one.name for one in gradients), sum(math.prod(one.shape) for one in gradients)
        room = self._rooms.get(names)
        if room is None or (room.mean.dtype, room.mean.size) != (dtype, size):
            self._rooms = {kept: one for kept, one in self._rooms.items() if set(kept).isdisjoint(names) or len(kept) > len(names)}
            room = self._rooms[names] = _Room(np.empty(size, dtype), np.empty(size, dtype))
        to, begin = torch.from_numpy(room.sent), 0
        for one in gradients:
            place = to[begin:begin + math.prod(one.shape)]
            begin += len(place)
            if one.value is None:
                place.zero_()
            else:
                place.copy_((one.value.detach().to_dense() if one.value.is_sparse else one.value.detach()).reshape(-1))
        if scale not in (None, 1):
            to /= scale
        return room

    def _require_processes(self) -> Processes:
        if self._processes is None:
            self._processes = self._new_processes()
        return self._processes

    def _new_processes(self) -> Processes:
        return Processes(self.group)

    def _require_right(self, gradients: Sequence[Gradient], dtype: np.dtype) -> None:
        """Raises what is wrong with parameters that are sent for the first time."""
        names = tuple(one.name for one in gradients)
        if names in self._compared:
            return
        unknown = sorted(set(self._memory.names).difference(self._known_names(names)))
        if unknown:
            raise ValueError(f"the state that was loaded has an error of the parameter {unknown[0]!r}, which this model does not have")
        self.compressor._operator(dtype, tuple(one.shape for one in gradients))

    def _known_names(self, names: tuple[str, ...]) -> Sequence[str]:
        return names

    def _agree(self, processes: Processes, gradients: Sequence[Gradient], status: int, failure: BaseException | None) -> list[bool] | None:
        """Returns which parameters are used in one process or more, or None if a loss was scaled too far. Raises the same error in all processes if one of
        them cannot send, or if they do not send the same thing."""
        own = [one.value is not None for one in gradients]
        names = tuple(one.name for one in gradients)
        if processes.count == 1:
            if failure is not None:
                raise failure
            self._compared.add(names)
            return None if status == _IS_SCALED_TOO_FAR else own
        is_new = names not in self._compared
        facts = processes.gather([status, _digest_of(self._description()), int(is_new), sum(own)])
        if any(one[0] == _HAS_FAILED for one in facts):
            _raise_alike(processes, failure)
        if any(one[1] != facts[0][1] or one[2] for one in facts):
            described = self._description() | self._description_of(gradients)
            if len({digest for digest, in processes.gather([_digest_of(described)])}) > 1:
                raise ValueError(_difference_of([json.loads(text) for text in processes.gather_texts(json.dumps(described))]))
        self._compared.add(names)
        if any(one[0] == _IS_SCALED_TOO_FAR for one in facts):
            return None
        if all(one[3] == len(own) for one in facts):
            return own
        return [any(column) for column in zip(*processes.gather([int(one) for one in own]))]

    def _description(self) -> dict[str, Any]:
        """Returns what all processes must have in common in every step."""
        return {"compressor": repr(self.compressor), "feedback": self._has_feedback, "seed": self.seed, "steps before": self.rounds}

    def _description_of(self, gradients: Sequence[Gradient]) -> dict[str, Any]:
        """Returns what they must have in common when they begin."""
        return {"parameters": [[one.name, list(one.shape), str(one.parameter.dtype).removeprefix("torch."), _checksum_of(one.parameter)]
                               for one in gradients]}

    def _has_state(self, gradients: Sequence[Gradient], dtype: np.dtype) -> bool:
        """Whether the operator keeps more than the error, so that its vector has to consist of the same parameters in every step."""
        operator = self.compressor._operator(dtype, tuple(one.shape for one in gradients))
        return operator.state_size > 0 or operator.shared_size > 0

    def _exchange(self, processes: Processes, sent: Sequence[Gradient], room: _Room, seed: int, idle: set[str], moves_state: bool
                  ) -> dict[str, torch.Tensor]:
        """Sends a message and returns the mean of all messages by parameter. What is kept of idle parameters, whose means nobody uses, stays."""
        operator = self.compressor._operator(room.sent.dtype, tuple(one.shape for one in sent))
        vector = self._memory.vector_of(tuple(one.name for one in sent), tuple(math.prod(one.shape) for one in sent), moves_state)
        idle = idle.intersection(vector.places)
        kept = {name: error.copy() for name in idle if (error := vector.error_of(name)) is not None}
        self.bits += self._talk(processes, operator, vector, room, seed)
        for name in idle:
            error = vector.error_of(name)
            if error is not None:
                error[:] = kept.get(name, 0)
        whole = torch.from_numpy(room.mean)
        return {name: whole[place] for name, place in vector.places.items()}

    def _talk(self, processes: Processes, operator: Any, vector: Vector, room: _Room, seed: int) -> int:
        """Runs all phases of the operator. Returns the bits that this process has sent."""
        memory, flat = vector.memory, room.sent
        keeps_error = self._has_feedback and operator.contract()["kappa"] != 0  # else nothing is ever kept back
        error = memory._array("error", len(flat), flat.dtype) if keeps_error else None
        state = memory._array("state", operator.state_size, flat.dtype)
        shared = memory._array("shared", operator.shared_size, flat.dtype, lambda out: operator.read_initial_shared(seed, out))
        memory._round = self.rounds + 1
        exchange = _EXCHANGES[flat.dtype](operator, seed, processes.own, self.rounds + 1, 1.0, error, state, shared)
        bits = 0
        while not exchange.is_over:
            failure, message = None, np.empty(0, np.uint8)
            try:
                message = exchange.send(flat)
            except _core.Error as raised:
                failure = raised
            facts = processes.gather([int(failure is not None), len(message)])
            if any(has_failed for has_failed, _ in facts):
                self.forget()  # in all processes: the error has moved in those that could send
                _raise_alike(processes, failure)
            exchange.receive(processes.gather_bytes(message, [length for _, length in facts]), room.mean)
            bits += 8 * len(message)
        return bits

    # ---- what is kept

    def state_dict(self) -> dict[str, Any]:
        """Returns what this process keeps between steps, with a checksum: the errors by parameter, what the operator keeps, the counts of messages and
        bits, the number of this process and that of all. Every process has a state of its own."""
        own, count = place_in(self.group)
        state: dict[str, Any] = {"vectors": self._memory.state(), "rounds": self.rounds, "bits": self.bits, "process": own, "processes": count}
        return state | {"checksum": checksum_of_state(state)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises TypeError or ValueError, with nothing changed, for what state_dict() does not return, also if a number of it has changed, and for the
        state of another process or of another number of processes."""
        memory, rounds, bits = self._restored(state)
        self._memory, self.rounds, self.bits = memory, rounds, bits
        self._compared.clear()

    def _restored(self, state: Any) -> tuple[ParameterMemory, int, int]:
        """Returns the memory, the messages and the bits of a sender's state, or raises the reason why it is none of this process."""
        if isinstance(state, Mapping) and "memory" in state and "vectors" not in state:
            raise ValueError("this is the state of a sender of fedbits before memories had the names of parameters; it cannot be read any more")
        arguments.table("the state", state, _KEYS)
        if "checksum" not in state:
            raise ValueError("this state has no 'checksum': it is damaged" + OR_OLD)
        for name in state:
            if name not in (*_KEYS, "checksum"):
                raise ValueError(f"a state of a sender has no {arguments.shown(name)}; it has {', '.join(map(repr, _KEYS))} and 'checksum'")
        memory = restored(state["vectors"])
        rounds, bits = (arguments.whole(f"the {name} of this state", state[name], 0, 2**63 - 1) for name in ("rounds", "bits"))
        own, count = (arguments.whole(f"the {name} of this state", state[name], 0, 2**31) for name in ("process", "processes"))
        if arguments.index("the checksum of this state", state["checksum"]) != checksum_of_state(state):
            raise ValueError("this state is damaged: it does not match its checksum")
        here = place_in(self.group)
        if (own, count) != here:
            raise ValueError(f"this is the state of process {own} of {count}, and here is process {here[0]} of {here[1]}; every process saves and loads "
                             "its own, because each has an error of its own")
        return memory, rounds, bits

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_processes": None, "_rooms": {}}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._words()}>"

    def _words(self) -> str:
        count = f"{self.rounds} message" + "s" * (self.rounds != 1)
        return f"{self.compressor!r}{'' if self._has_feedback else ', without feedback'}: {count}, {self.bits} bits"


# ---- gradients


def _type_of(gradients: Sequence[Gradient]) -> np.dtype:
    """Returns the type of numbers in which gradients are sent: float64 if one of them has it, else float32, which holds narrower ones."""
    for one in gradients:
        if not one.parameter.is_floating_point():
            raise TypeError(f"the parameter {one.name!r} is of {one.parameter.dtype}; gradients must be real floating point numbers")
    return np.dtype(np.float64 if any(one.parameter.dtype == torch.float64 for one in gradients) else np.float32)


def _is_finite(vector: np.ndarray) -> bool:
    try:
        _REQUIRE_FINITE[vector.dtype](vector)
    except _core.Error:
        return False
    return True


def _not_finite(gradients: Sequence[Gradient], processes: Processes) -> str:
    name = next(one.name for one in gradients if one.value is not None and not bool(torch.isfinite(one.value.to_dense()).all()))
    where = f" in process {processes.own} of {processes.count}" if processes.count > 1 else ""
    return (f"the gradient of the parameter {name!r} is not finite{where}; nothing was sent. A loop that scales its loss gives the scale: "
            "loss_scale=scaler")


def _checksum_of(parameter: torch.Tensor) -> int:
    """Returns a checksum of the values of a parameter."""
    values = parameter.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return checksum_of(values.numpy().data)


# ---- failures that all processes share


def _raise_alike(processes: Processes, failure: BaseException | None) -> None:
    """Raises the failures of all processes in each of them."""
    if processes.count == 1 and failure is not None:
        raise failure
    texts = processes.gather_texts("" if failure is None else str(failure) or type(failure).__name__)
    first = next(place for place, text in enumerate(texts) if text)
    text = texts[first] if f"in process {first} of" in texts[first] else f"process {first} of {processes.count} cannot send: {texts[first]}"
    raise _core.Error(text) from failure


def _difference_of(described: Sequence[Mapping[str, Any]]) -> str:
    """Returns a sentence that names the first difference between what processes send."""
    first = described[0]
    for place, other in enumerate(described[1:], 1):
        for name in first:
            if name != "parameters" and first[name] != other[name]:
                return f"processes differ: process 0 has {name} {_shown(first[name])}, and process {place} has {_shown(other[name])}"
        if first["parameters"] != other["parameters"]:
            return f"processes differ: {_difference_of_parameters(first['parameters'], other['parameters'], place)}"
    return "processes differ"


def _digest_of(described: Mapping[str, Any]) -> int:
    return checksum_of(json.dumps(described).encode())


def _shown(value: Any) -> str:
    return "yes" if value is True else "no" if value is False else str(value)


def _difference_of_parameters(first: Sequence[Sequence[Any]], other: Sequence[Sequence[Any]], place: int) -> str:
    if len(first) != len(other):
        return f"process 0 has {len(first)} parameters, and process {place} has {len(other)}"
    mine, theirs = next((mine, theirs) for mine, theirs in zip(first, other) if mine != theirs)
    if mine[0] != theirs[0]:
        return f"where process 0 has the parameter {mine[0]!r}, process {place} has {theirs[0]!r}; give parameters in one order"
    for kind, one, another in (("the shape", mine[1], theirs[1]), ("the type", mine[2], theirs[2])):
        if one != another:
            return f"the parameter {mine[0]!r} has {kind} {one} in process 0 and {another} in process {place}; give the same parameters in one order"
    return (f"the parameter {mine[0]!r} has other values in process {place} than in process 0; processes have to start with the same parameters in the same "
            "order, as torch.distributed.broadcast(parameter.data, 0) sets them")
