"""Compressors as classes, made from the registry of the simulator."""
from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import math
import sys
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from fedbits import _core, arguments
from fedbits.parts import Part, as_argument, class_name, flat, given_options, make_class, summaries

_ARRAYS = ("error", "state", "shared")  # of a memory
OR_OLD = ", or a version of fedbits before checksums saved it, which cannot be told apart"  # of a state without a checksum
_MOST_OPERATORS = 256  # of a compressor: one for each list of shapes, as layers that are used now and then give many
_OPERATORS = {np.dtype(np.float32): _core.Operator32, np.dtype(np.float64): _core.Operator64}


@dataclasses.dataclass(frozen=True)
class Contract:
    """What an operator promises for its error |C(x) - x|, or None where it promises nothing.

    kappa: absolute, |C(x) - x|^2 <= kappa^2.  delta: contraction, |C(x) - x|^2 <= (1 - delta) |x|^2.  omega: unbiased, with E|C(x) - x|^2 <=
    omega |x|^2.  The first two hold for every message, or in expectation where that is said.  linear: C(x) + C(y) = C(x + y).  domain: the
    inputs for which this holds, "" = all.  no_memory: why a memory of the error does not help, "" = it does.
    """

    kappa: float | None
    delta: float | None
    omega: float | None
    kappa_in_expectation: bool
    delta_in_expectation: bool
    linear: bool
    domain: str
    no_memory: str


def _key_of(seed: int, client: int, round: int, step_size: float) -> tuple[int, int, int, float]:
    """Returns what random numbers and step-dependent units of a message depend on."""
    return (arguments.whole("seed", seed, 0, 2**64 - 1), arguments.whole("client", client, 0, 2**32 - 1), arguments.whole("round", round, 0, 2**32 - 1),
            arguments.positive("step_size", step_size))


class Message:
    """What a client sends: bytes, and the vector that the receiver makes of them.

    The message is counted when bits is asked for and encoded when its bytes are, each once.
    """

    round: int  # the round whose random numbers the message has; the receiver's decode() needs it

    def __init__(self, sender: Any, sent: Any, round: int, contract: Callable[[], dict[str, Any]], decode: Callable[[Message], Any]):
        self._sender, self._sent, self._contract, self._decode = sender, sent, contract, decode
        self.round = round

    @functools.cached_property
    def bits(self) -> int:
        """The exact length that the simulator charges, without encoding the message: 8 * nbytes."""
        return self._sent.bits()

    @property
    def nbytes(self) -> int:
        return self.bits // 8

    @property
    def elements(self) -> int:
        """The number of values that were sent."""
        return self._sent.elements()

    @functools.cached_property
    def parts(self) -> tuple[bytes, ...]:
        """The bytes of each phase. Only operators of several phases, as PowerSGD, have more than one."""
        return tuple(self._sent.bytes())

    def __bytes__(self) -> bytes:
        return b"".join(self.parts)

    def __len__(self) -> int:
        return self.nbytes

    @functools.cached_property
    def contract(self) -> Contract:
        """What the operator promises for the vector of this message."""
        return Contract(**self._contract())

    def decode(self) -> Any:
        """Returns the vector as a new array of the sender's shape and library, read from the bytes."""
        return self._decode(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("a message cannot be pickled or copied; send bytes(message), which decode() of an equal compressor reads")

    def __repr__(self) -> str:
        return f"<Message of {self._sender!r}: {self.nbytes} bytes, {self.elements} elements>"


class Memory:
    """What a client keeps between its messages: the compression error, the state of operators that have one, and the last round.

    compress(x, memory=memory) sends C(error + x) and keeps error + x - C(error + x), in place. Unless it is given a round, it takes the one after
    the memory's last. state_dict() and load_state_dict() save and restore it.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}
        self._round = 0

    @property
    def round(self) -> int:
        """The round of the last message, 0 before the first one."""
        return self._round

    @property
    def error(self) -> np.ndarray | None:
        """The error as a flat array that cannot be written to, or None before the first message."""
        if "error" not in self._arrays:
            return None
        error = self._arrays["error"].view()
        error.flags.writeable = False
        return error

    def __repr__(self) -> str:
        words = [f"{name}: {array.size} numbers of {array.dtype}" for name, array in self._arrays.items()]
        return f"<Memory of {', '.join(words)}>" if words else "<Memory, empty>"

    def __getstate__(self) -> dict[str, Any]:
        return self.state_dict()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.load_state_dict(state)

    def _array(self, name: str, size: int, dtype: np.dtype, start: Any = None) -> np.ndarray | None:
        if size == 0:
            return None
        if name not in self._arrays:
            self._arrays[name] = _aligned_zeros(size, dtype)
            if start is not None:
                start(self._arrays[name])
        found = self._arrays[name]
        if found.size != size or found.dtype != dtype:
            other = f"; convert the vector to {found.dtype}, or begin another fedbits.Memory()" if found.size == size else ""
            raise ValueError(f"this memory is of a vector with {found.size} numbers of {found.dtype}, not {size} of {dtype}{other}")
        return found

    def clear(self) -> None:
        """Forgets everything."""
        self._arrays.clear()
        self._round = 0

    def state_dict(self) -> dict[str, np.ndarray]:
        """Returns copies of its arrays, and the last round and a checksum of all as arrays of one number, for load_state_dict().

        torch.load reads NumPy arrays only with weights_only=False; save them as tensors, with torch.from_numpy, or with numpy.savez.
        """
        arrays = {name: array.copy() for name, array in self._arrays.items()}
        if not arrays:
            return {}
        arrays["round"] = np.array([self._round])
        return arrays | {"checksum": np.array([_checksum_of(arrays)])}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Arrays may be tensors of PyTorch, as torch.load(weights_only=True) reads them.

        Raises TypeError or ValueError for what state_dict() does not return, also if a number of it has changed; the memory is then as it was.
        """
        state = {name: _array_of(array) for name, array in arguments.table("the state", state, ()).items()}
        known = (*_ARRAYS, "round", "checksum")
        for name in state:
            if name not in known:
                raise ValueError(f"a state of a memory has no {arguments.shown(name)}; it has {', '.join(map(repr, known))}")
        arrays = {name: state[name] for name in _ARRAYS if name in state}
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):
                raise TypeError(f"the {name} of this state is of type {type(array).__name__}; it must be an array of NumPy")
            arguments.float_type(f"the type of its {name}", array.dtype)
            if not np.isfinite(array).all():
                raise ValueError(f"the {name} of this state has a number that is not finite")
        round = _checked_round(state)
        if state and _checksum_of(arrays | {"round": np.array([round])}) != _number_of("checksum", state["checksum"], -2**63, 2**63 - 1):
            raise ValueError("this state is damaged: it does not match its checksum")
        self._keep(arrays, round)

    def _keep(self, arrays: Mapping[str, np.ndarray], round: int) -> None:
        self._arrays, self._round = {}, round
        for name, array in arrays.items():
            self._arrays[name] = _aligned_zeros(array.size, array.dtype)
            self._arrays[name][:] = np.ravel(array)


def _checked_round(state: Mapping[str, Any]) -> int:
    """Returns the round of a memory's state, which has everything if it is not empty."""
    if not state:
        return 0
    found = _number_of("round", state["round"], 0, 2**32 - 1) if "round" in state else 0
    for name in ("checksum", "error", "round"):
        if name not in state:
            raise ValueError(f"this state has no {name!r}: it is damaged" + (OR_OLD if name == "checksum" else ""))
    return found


def _number_of(name: str, value: Any, least: int, most: int) -> int:
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"the {name} of this state is {arguments.shown(value)}; it must be one whole number")
    return arguments.whole(f"the {name} of this state", int(array.reshape(-1)[0]), least, most)


def checksum_of(*pieces: bytes | memoryview) -> int:
    """Returns the XXH64 of texts and bytes of a state, as a signed number, which every array of whole numbers can hold."""
    found = _core.checksum([np.frombuffer(piece, np.uint8) for piece in pieces])
    return found - 2**64 if found >= 2**63 else found


def _checksum_of(arrays: Mapping[str, np.ndarray]) -> int:
    pieces: list[bytes | memoryview] = []
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        pieces += [f"{name} {array.dtype.str if name != 'round' else ''}".encode(), array.reshape(-1).view(np.uint8).data]
    return checksum_of(*pieces)


def _array_of(value: Any) -> Any:
    """Returns a tensor of PyTorch as an array, and everything else as it is."""
    torch = sys.modules.get("torch")
    return value.detach().cpu().numpy() if torch is not None and isinstance(value, torch.Tensor) else value


def _aligned_zeros(size: int, dtype: np.dtype) -> np.ndarray:
    """Returns zeros that begin on a cache line: vector loads that cross two lines are slower."""
    line, length = 64, size * dtype.itemsize
    room = np.zeros(length + line, np.uint8)
    start = -room.ctypes.data % line
    return room[start:start + length].view(dtype)


class Compressor(Part):
    """A compressor with its options. The classes of the kinds are made from the registry; help(fedbits.TopK) shows the options of one.

    Options are attributes, defaults included; they cannot be set. Compressors can be pickled and copied.
    """

    scope: str
    bucket: int

    def __new__(cls, *by_position: Any, **_: Any) -> Compressor:
        if by_position:
            first = next((field["name"] for field in cls._fields), "scope")
            raise TypeError(f"{cls.__name__} takes options by their names, as {cls.__name__}({first}=...)")
        return super().__new__(cls)

    def __init__(self, *, scope: str = "model", bucket: int = 0, **options: Any):
        if not self.kind:
            raise TypeError("Compressor is the base of all kinds; use one of fedbits.compressors()")
        if not isinstance(scope, str) or scope not in ("model", "tensor", "bucket"):
            raise ValueError(f"scope is {scope!r}; it must be 'model', 'tensor' or 'bucket'")
        bucket = arguments.whole("bucket", bucket, 0, 2**63 - 1)
        if (scope == "bucket") != (bucket > 0):
            raise ValueError("bucket is the number of elements of scope='bucket', and belongs to it alone")
        vars(self).update(scope=scope, bucket=bucket, _options=given_options(options))
        self._operators: dict[Any, Any] = {}
        self._operator(np.dtype(np.float32), ((16, 16),), is_a_trial=True)

    def compress(self, x: Any, *, client: int = 0, round: int | None = None, seed: int = 1, step_size: float = 1.0,
                 shapes: Sequence[Sequence[int]] | None = None, memory: Memory | None = None, check: bool = True) -> Message:
        """Compresses an array, or a tensor of PyTorch, of float32 or float64 on the CPU; it is not copied.

        shapes: the tensors of a flat vector in order, for scope='tensor' and operators of matrices; by default x is one tensor.
        seed, client and round choose the random numbers, as in a run with seeds.compressor = seed. round: by default the one after the memory's last, and
        1 without a memory; Message.round tells it.
        step_size: of the round, for operators that follow it: rule="lambda", or rule="gamma"; for rule="gamma_steps" that of a local step times their
        number.  memory: error feedback; see Memory.
        check: reads the vector before it is compressed, so that nothing moves for one that is not finite. False: the caller knows that it is finite,
        and gets a meaningless message or memory if it is not.
        Raises TypeError or ValueError for an array that cannot be used, ConfigError for a shape that does not fit the options, and Error for a vector
        that is not finite; the memory is then as it was. If the message of a finite vector is not finite, MessageOverflow is raised and the memory is
        empty afterwards.
        """
        if not isinstance(memory, (Memory, type(None))):
            raise TypeError(f"memory is of type {type(memory).__name__}; it must be a fedbits.Memory(), which is kept from round to round")
        if round is None:
            round = 1 if memory is None else memory.round + 1
        key = _key_of(seed, client, round, step_size)
        vector, shape, like = flat(x)
        tensors = _tensors_of(shapes, shape)
        operator = self._operator(vector.dtype, tensors)
        kept = Memory() if memory is None else memory
        error = None if memory is None else kept._array("error", vector.size, vector.dtype)
        state = kept._array("state", operator.state_size, vector.dtype)
        shared = kept._array("shared", operator.shared_size, vector.dtype, lambda out: operator.read_initial_shared(seed, out))
        before = None if shared is None else shared.copy()
        try:
            sent = operator.compress(vector, *key, error, state, shared, not check)
        except _core.MessageOverflow:
            kept.clear()
            raise
        kept._round = key[2]

        size, dtype = vector.size, vector.dtype

        def decode(message: Message) -> Any:
            out = np.empty(size, dtype)
            operator.decode(list(message.parts), *key, None if before is None else before.copy(), out)
            return like(out.reshape(shape))

        return Message(self, sent, key[2], operator.contract, decode)

    def decode(self, message: bytes, shape: Sequence[int] | int, *, dtype: Any = np.float32, client: int = 0, round: int = 1, seed: int = 1,
               step_size: float = 1.0, shapes: Sequence[Sequence[int]] | None = None) -> np.ndarray:
        """Returns the vector that the bytes of another sender stand for, as an array of this shape.

        The receiver's options, shapes, client, round (Message.round) and seed have to be those of the sender. Raises Error for bytes that cannot be read as a
        message of this format; with other options they may decode to other numbers without an error. Raises ValueError for operators of several
        phases or of a state that both sides share, as PowerSGD: Message.decode() reads those.
        """
        key = _key_of(seed, client, round, step_size)
        sizes, of = arguments.shape("shape", shape), arguments.float_type("dtype", dtype)
        if not isinstance(message, (bytes, bytearray, memoryview, Message)):
            raise TypeError(f"the message is of type {type(message).__name__}; it must be bytes")
        tensors = _tensors_of(shapes, sizes)
        operator = self._require_one_phase(of, tensors)
        out = np.empty(math.prod(sizes), of)
        try:
            operator.decode([bytes(message)], *key, None, out)
        except _core.Error as error:
            error.args = (f"{error}; they are read as of dtype=\"{of}\", and shape, dtype, client, round and seed have to be the sender's",)
            raise
        return out.reshape(sizes)

    def _require_one_phase(self, dtype: np.dtype, tensors: Sequence[tuple[int, ...]]) -> Any:
        operator = self._operator(dtype, tuple(tensors))
        if operator.num_phases > 1 or operator.shared_size > 0:
            raise ValueError(f"{self!r} cannot be read from the bytes of one message: its receiver needs the messages of all senders")
        return operator

    def contract(self, shape: Sequence[int] | int, dtype: Any = np.float32) -> Contract:
        """Returns what the operator promises for vectors of this shape."""
        return Contract(**self._operator(arguments.float_type("dtype", dtype), (arguments.shape("shape", shape),)).contract())

    def _operator(self, dtype: np.dtype, tensors: tuple[tuple[int, ...], ...], is_a_trial: bool = False) -> Any:
        place = dtype, tensors
        if place not in self._operators:
            try:
                made = _OPERATORS[dtype](self.kind, _plain(self._options), [list(one) or [1] for one in tensors], self.scope, self.bucket)
            except _core.ConfigError:
                if is_a_trial and self._is_right():
                    return None  # the options are right, and fit other shapes
                raise
            while len(self._operators) >= _MOST_OPERATORS:
                self._operators.pop(next(iter(self._operators)), None)
            self._operators[place] = made
        return self._operators[place]

    def _is_right(self) -> bool:
        try:
            _core.check_options("compressor", self.kind, _plain(self._options))
        except _core.ConfigError:
            return False
        return True

    def __reduce__(self) -> Any:
        """Returns the class and the options; the copy makes operators of its own."""
        options = {as_argument(name): value for name, value in self._options.items()}
        return _made, (type(self), options | {"scope": self.scope, "bucket": self.bucket})

    def _default(self, value: Any) -> Any:
        """Returns a compressor for the table of one."""
        if isinstance(value, list):
            return [self._default(one) for one in value]
        if not isinstance(value, dict):
            return value
        options = {as_argument(name): self._default(one) for name, one in value.items() if name != "kind"}
        return CLASSES[class_name(value["kind"])](**options)

    def as_table(self) -> dict[str, Any]:
        """Returns the compressor as a table of a scenario: {"kind": "top_k", "ratio": 0.01}."""
        scope = {"scope": self.scope} if self.scope != "model" else {}
        return {"kind": self.kind} | _plain(self._options) | scope | ({"bucket": self.bucket} if self.bucket > 0 else {})

    def __repr__(self) -> str:
        words = [f"{as_argument(name)}={value!r}" for name, value in self._options.items()]
        words += [f"scope={self.scope!r}"] * (self.scope != "model") + [f"bucket={self.bucket}"] * (self.bucket > 0)
        return f"{type(self).__name__}({', '.join(words)})"


def _made(cls: type[Compressor], options: dict[str, Any]) -> Compressor:
    return cls(**options)


# What help() and stub files show: that of __init__.
Compressor.__signature__ = inspect.Signature(list(inspect.signature(Compressor.__init__).parameters.values())[1:])  # type: ignore[attr-defined]


def _tensors_of(shapes: Sequence[Sequence[int]] | None, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Returns the tensors of a vector in order: by default it is one."""
    if shapes is None:
        return (shape,)
    tensors = arguments.shapes("shapes", shapes)
    if (total := sum(map(math.prod, tensors))) != math.prod(shape):
        raise ValueError(f"the shapes have {total} numbers, the vector has {math.prod(shape)}")
    return tensors


def _plain(value: Any, name: str = "", level: int = 0, numbers: Iterator[int] | None = None) -> Any:
    """Returns options as the core reads them: a compressor inside another one is a table. `numbers` counts the values."""
    numbers = numbers or itertools.count()
    if level > arguments.MOST_LEVELS:
        raise ValueError(f"{name[:80]} has more than {arguments.MOST_LEVELS} levels of values in values, as a list that contains itself")
    if next(numbers) > arguments.MOST_VALUES:
        raise ValueError(f"{name[:80]} has more than {arguments.MOST_VALUES} values, as a list that is in many lists")
    if isinstance(value, Compressor):
        if value.scope != "model":
            raise ValueError(f"{value!r} is inside another compressor, whose scope counts; leave out its own")
        return {"kind": value.kind} | _plain(value._options, name, level, numbers)
    if isinstance(value, Mapping):
        return {key: _plain(one, f"{name}.{key}".lstrip("."), level + 1, numbers) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one, f"{name}[{place}]", level + 1, numbers) for place, one in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


_LAST = (inspect.Parameter("scope", inspect.Parameter.KEYWORD_ONLY, default="model", annotation=str),
         inspect.Parameter("bucket", inspect.Parameter.KEYWORD_ONLY, default=0, annotation=int))
CLASSES = {class_name(kind): make_class("compressor", kind, Compressor, (), _LAST) for kind in _core.names("compressor")}


def compressors() -> dict[str, str]:
    """Returns the compressors by class name, each with its summary in a line."""
    return summaries(CLASSES)
