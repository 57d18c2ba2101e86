"""Compressors as classes, made from the registry of the simulator."""
from __future__ import annotations

import dataclasses
import functools
import inspect
import keyword
import math
import sys
from typing import Any, Sequence

import numpy as np

from fedbits import _core

# Names whose letters are not those of a kind in capitals at the beginning of each word.
_SPELLING = {"adaqs": "AdaQS", "dgc_sampled": "DGCSampled", "dqsgd": "DQSGD", "drive": "DRIVE", "eden": "EDEN", "ef_sign": "EFSign", "fp8": "FP8",
             "gradzip": "GradZip", "lgreco": "LGreCo", "lpc": "LPC", "powersgd": "PowerSGD", "qsgd": "QSGD", "rank_r_svd": "RankRSVD",
             "sidco": "SIDCo", "sketched_sgd": "SketchedSGD", "sketchml": "SketchML", "stc": "STC", "sz": "SZ", "terngrad": "TernGrad",
             "three_lc": "ThreeLC", "vqsgd": "VQSGD", "zfp": "ZFP"}
_TYPES = {"bool": bool, "integer": int, "int": int, "number": float, "float": float, "string": str, "choice": str}
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


@dataclasses.dataclass(frozen=True)
class _Key:
    seed: int
    client: int
    round: int
    step_size: float

    def __post_init__(self):
        for name, most in (("seed", 2**64), ("client", 2**32), ("round", 2**32)):
            value = getattr(self, name)
            if not 0 <= value < most:
                raise ValueError(f"{name} is {value}; it must be from 0 to {most - 1}")
        if not (self.step_size > 0 and math.isfinite(self.step_size)):
            raise ValueError(f"step_size is {self.step_size}; it must be above 0 and finite")

    def __iter__(self):
        return iter((self.seed, self.client, self.round, self.step_size))


class Message:
    """What a client sends: bytes, and the vector that the receiver makes of them.

    The message is counted when bits is asked for and encoded when its bytes are, each once.
    """

    def __init__(self, compressor: Compressor, operator: Any, key: _Key, shape: tuple[int, ...], like: Any, sent: Any, shared: np.ndarray | None):
        self._compressor, self._operator, self._key, self._shape, self._like = compressor, operator, key, shape, like
        self._sent, self._shared = sent, shared

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

    def decode(self) -> Any:
        """Returns the vector as a new array of the sender's shape and library, read from the bytes."""
        out = np.empty(math.prod(self._shape), self._compressor._dtype_of(self._operator))
        shared = None if self._shared is None else self._shared.copy()
        self._operator.decode(list(self.parts), *self._key, shared, out)
        return self._like(out.reshape(self._shape))

    def __repr__(self) -> str:
        return f"<Message of {self._compressor!r}: {self.nbytes} bytes, {self.elements} elements>"


class Memory:
    """What a client keeps between its messages: the compression error, and the state of operators that have one.

    compress(x, memory=memory) sends C(error + x) and keeps error + x - C(error + x), in place. state_dict() and load_state_dict() save and restore
    it.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}

    @property
    def error(self) -> np.ndarray | None:
        """The error as a flat array, or None before the first message."""
        return self._arrays.get("error")

    def _array(self, name: str, size: int, dtype: np.dtype, start: Any = None) -> np.ndarray | None:
        if size == 0:
            return None
        if name not in self._arrays:
            self._arrays[name] = np.zeros(size, dtype)
            if start is not None:
                start(self._arrays[name])
        found = self._arrays[name]
        if found.size != size or found.dtype != dtype:
            raise ValueError(f"this memory is of a vector with {found.size} numbers of {found.dtype}, not {size} of {dtype}")
        return found

    def clear(self) -> None:
        """Forgets everything."""
        self._arrays.clear()

    def state_dict(self) -> dict[str, np.ndarray]:
        return {name: array.copy() for name, array in self._arrays.items()}

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        self._arrays = {name: np.array(array) for name, array in state.items()}


class Compressor:
    """A compressor with its options. The classes of the kinds are made from the registry; help(fedbits.TopK) shows the options of one."""

    kind: str = ""
    _fields: tuple[dict[str, Any], ...] = ()

    def __init__(self, *, scope: str = "model", bucket: int = 0, **options: Any):
        if not self.kind:
            raise TypeError("Compressor is the base of all kinds; use one of fedbits.compressors()")
        if scope not in ("model", "tensor", "bucket"):
            raise ValueError(f"scope is {scope!r}; it must be 'model', 'tensor' or 'bucket'")
        if (scope == "bucket") != (bucket > 0):
            raise ValueError("bucket is the number of elements of scope='bucket', and belongs to it alone")
        self.scope, self.bucket = scope, bucket
        self.options = {name.removesuffix("_"): value for name, value in options.items() if value is not None}
        self._operators: dict[Any, Any] = {}
        self._operator(np.dtype(np.float32), ((16, 16),), is_a_trial=True)

    def compress(self, x: Any, *, client: int = 0, round: int = 1, seed: int = 1, step_size: float = 1.0, shapes: Sequence[Sequence[int]] | None = None,
                 memory: Memory | None = None) -> Message:
        """Compresses an array, or a tensor of PyTorch, of float32 or float64 on the CPU; it is not copied.

        shapes: the tensors of a flat vector in order, for scope='tensor' and operators of matrices; by default x is one tensor.
        seed, client and round choose the random numbers, as in a run with seeds.compressor = seed.
        memory: error feedback; see Memory.
        Raises TypeError or ValueError for an array that cannot be used, ConfigError for a shape that does not fit the options, and Error for a vector
        that is not finite; the memory is then as it was. If the message of a finite vector is not finite, MessageOverflow is raised and the memory is
        empty afterwards.
        """
        key = _Key(seed, client, round, step_size)
        vector, shape, like = _flat(x)
        tensors = _tensors_of(shapes, shape)
        operator = self._operator(vector.dtype, tensors)
        kept = Memory() if memory is None else memory
        error = None if memory is None else kept._array("error", vector.size, vector.dtype)
        state = kept._array("state", operator.state_size, vector.dtype)
        shared = kept._array("shared", operator.shared_size, vector.dtype, lambda out: operator.read_initial_shared(seed, out))
        before = None if shared is None else shared.copy()
        try:
            sent = operator.compress(vector, *key, error, state, shared)
        except _core.MessageOverflow:
            kept.clear()
            raise
        return Message(self, operator, key, shape, like, sent, before)

    def decode(self, message: bytes, shape: Sequence[int] | int, *, dtype: Any = np.float32, client: int = 0, round: int = 1, seed: int = 1,
               step_size: float = 1.0, shapes: Sequence[Sequence[int]] | None = None) -> np.ndarray:
        """Returns the vector that the bytes of another sender stand for, as an array of this shape.

        The receiver's options, shapes, client, round and seed have to be those of the sender. Raises Error for bytes that are no message of this
        operator, and ValueError for operators of several phases or of a state that both sides share, as PowerSGD: Message.decode() reads those.
        """
        key = _Key(seed, client, round, step_size)
        sizes = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(map(int, shape))
        tensors = _tensors_of(shapes, sizes)
        operator = self._require_one_phase(np.dtype(dtype), tensors)
        out = np.empty(math.prod(sizes), np.dtype(dtype))
        operator.decode([bytes(message)], *key, None, out)
        return out.reshape(sizes)

    def _require_one_phase(self, dtype: np.dtype, tensors: Sequence[tuple[int, ...]]) -> Any:
        operator = self._operator(dtype, tuple(tensors))
        if operator.num_phases > 1 or operator.shared_size > 0:
            raise ValueError(f"{self!r} cannot be read from the bytes of one message: its receiver needs the messages of all senders")
        return operator

    def contract(self, shape: Sequence[int] | int, dtype: Any = np.float32) -> Contract:
        """Returns what the operator promises for vectors of this shape."""
        sizes = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(map(int, shape))
        return Contract(**self._operator(np.dtype(dtype), (sizes,)).contract())

    def _operator(self, dtype: np.dtype, tensors: tuple[tuple[int, ...], ...], is_a_trial: bool = False) -> Any:
        place = dtype, tensors
        if place not in self._operators:
            try:
                made = _OPERATORS[dtype](self.kind, _plain(self.options), [list(one) or [1] for one in tensors], self.scope, self.bucket)
            except _core.ConfigError:
                if is_a_trial and self._is_right():
                    return None  # the options are right, and fit other shapes
                raise
            self._operators[place] = made
        return self._operators[place]

    def _is_right(self) -> bool:
        try:
            _core.check_options(self.kind, _plain(self.options))
        except _core.ConfigError:
            return False
        return True

    @staticmethod
    def _dtype_of(operator: Any) -> np.dtype:
        return next(dtype for dtype, kind in _OPERATORS.items() if isinstance(operator, kind))

    def as_table(self) -> dict[str, Any]:
        """Returns the compressor as a table of a scenario: {"kind": "top_k", "ratio": 0.01}."""
        scope = {"scope": self.scope} if self.scope != "model" else {}
        return {"kind": self.kind} | _plain(self.options) | scope | ({"bucket": self.bucket} if self.bucket > 0 else {})

    def __repr__(self) -> str:
        words = [f"{name}={value!r}" for name, value in self.options.items()]
        words += [f"scope={self.scope!r}"] * (self.scope != "model") + [f"bucket={self.bucket}"] * (self.bucket > 0)
        return f"{type(self).__name__}({', '.join(words)})"


def _tensors_of(shapes: Sequence[Sequence[int]] | None, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Returns the tensors of a vector in order: by default it is one."""
    if shapes is None:
        return (shape,)
    tensors = tuple(tuple(int(size) for size in one) for one in shapes)
    if (total := sum(map(math.prod, tensors))) != math.prod(shape):
        raise ValueError(f"the shapes have {total} numbers, the vector has {math.prod(shape)}")
    return tensors


def _plain(value: Any) -> Any:
    """Returns options as the core reads them: a compressor inside another one is a table."""
    if isinstance(value, Compressor):
        if value.scope != "model":
            raise ValueError(f"{value!r} is inside another compressor, whose scope counts; leave out its own")
        return {"kind": value.kind} | _plain(value.options)
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def _flat(x: Any) -> tuple[np.ndarray, tuple[int, ...], Any]:
    """Returns the numbers of x as a flat array that shares its memory, the shape of x, and a function that makes its library's array."""
    torch = sys.modules.get("torch")
    like: Any = lambda array: array
    if torch is not None and isinstance(x, torch.Tensor):
        if x.device.type != "cpu":
            raise TypeError(f"the tensor lies on {x.device}; x.cpu() copies it to where this package works")
        x, like = x.detach(), torch.from_numpy
        if x.dtype not in (torch.float32, torch.float64):
            raise TypeError(f"the tensor has {x.dtype}; float32 and float64 can be compressed")
        if not x.is_contiguous():
            raise ValueError("the tensor is not contiguous; x.contiguous() makes a copy that is")
    if not isinstance(x, np.ndarray):
        if not hasattr(x, "__dlpack__"):
            raise TypeError(f"expected an array of NumPy or one with DLPack, got {type(x).__name__}")
        try:
            x = np.from_dlpack(x)
        except (BufferError, RuntimeError, TypeError) as error:
            raise TypeError(f"{type(x).__name__} cannot be read here ({error}); an array on the CPU can") from error
    if x.dtype not in _OPERATORS:
        raise TypeError(f"the array has {x.dtype}; float32 and float64 can be compressed")
    if not x.flags.c_contiguous:
        raise ValueError("the array is not contiguous; numpy.ascontiguousarray(x) makes a copy that is")
    if x.size == 0:
        raise ValueError("the array is empty")
    return x.reshape(-1), x.shape, like


def _class_name(kind: str) -> str:
    return _SPELLING.get(kind) or "".join(word.capitalize() for word in kind.split("_"))


def _class_of(kind: str) -> type[Compressor]:
    facts = _core.describe("compressor", kind)
    lines = [facts["summary"][:1].upper() + facts["summary"][1:] + ".", ""]
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    for field in facts["fields"]:
        limits = ", ".join(filter(None, (" or ".join(map(repr, field["choices"])), field["constraint"])))
        default = "required" if field["required"] else f"default {field['default']!r}"
        name = field["name"] + "_" * keyword.iskeyword(field["name"])  # from_ of a schedule
        lines.append(f"{name}: {field['doc']} ({'; '.join(filter(None, (limits, field['unit'], default)))})")
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_TYPES.get(field["type"], Any)))
    parameters += [inspect.Parameter("scope", inspect.Parameter.KEYWORD_ONLY, default="model", annotation=str),
                   inspect.Parameter("bucket", inspect.Parameter.KEYWORD_ONLY, default=0, annotation=int)]
    if facts["source"]:
        lines += ["", f"Source: {facts['source']}."]
    made = type(_class_name(kind), (Compressor,), {"kind": kind, "_fields": tuple(facts["fields"]), "__doc__": "\n".join(lines), "__module__": "fedbits"})
    made.__signature__ = inspect.Signature(parameters[1:])
    return made


CLASSES = {made.__name__: made for made in map(_class_of, _core.names("compressor"))}


def compressors() -> dict[str, str]:
    """Returns the compressors by class name, each with its summary in a line."""
    return {name: made.__doc__.splitlines()[0] for name, made in sorted(CLASSES.items())}
