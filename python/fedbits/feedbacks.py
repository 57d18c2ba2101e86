"""Error feedback as classes, made from the registry of the simulator: the state of all clients and of the server."""
from __future__ import annotations

import inspect
import math
from typing import Any, Mapping, Sequence

import numpy as np

from fedbits import _core, arguments
from fedbits.compressors import OR_OLD, Compressor, Message, _plain, checksum_of
from fedbits.parts import Part, class_name, flat, given_options, make_class, summaries

_MOST_CLIENTS = 2**24  # whose weights and messages lie in memory together
_ROUNDS = {np.dtype(np.float32): _core.Feedback32, np.dtype(np.float64): _core.Feedback64}


class Feedback(Part):
    """A method that keeps the compression error, with the state of all clients and of the server. The classes of the kinds are made from the
    registry; help(fedbits.EF21) shows the options of one.

        feedback = fedbits.EF21(fedbits.TopK(ratio=0.01), num_clients=10, P=1000)
        for client in range(10):
            message = feedback.send(client, gradient(client, model))
        model -= learning_rate * feedback.receive()

    A round consists of at most one send() of each client, in any order, and receive(), which closes it. Clients that do not send keep their
    state. Estimates, messages and bits are those of a run of the simulator with the same seed.

    compressor: of all clients; for a feedback with several channels it may be a dict with one for each channel.
    num_clients, P: the number of clients, and of parameters. shapes: the tensors of the vector in order, instead of P.
    weights: w_i of the clients in f = sum_i w_i f_i, in any scale; by default all are equal.
    unit: of the vectors: "gradient", "step" (they are multiplied by the step size before compression) or "update".
    seed: that of the random numbers, as seeds.compressor of a run.  dtype: of the vectors, float32 or float64.

    Options are attributes that cannot be set. Between rounds, feedbacks can be pickled and copied with their state.
    """

    channels: list[str]
    compressors: dict[str, Compressor]
    dtype: np.dtype
    shapes: list[tuple[int, ...]]
    P: int
    num_clients: int
    seed: int

    def __init__(self, compressor: Compressor | Mapping[str, Compressor], *, num_clients: int, P: int | None = None,
                 shapes: Sequence[Sequence[int]] | None = None, weights: Sequence[float] | None = None, unit: str | None = None, seed: int = 1,
                 dtype: Any = np.float32, **options: Any):
        if not self.kind:
            raise TypeError("Feedback is the base of all kinds; use one of fedbits.feedbacks()")
        self._options = given_options(options)
        refused, channels = _core.feedback_facts(self.kind, _plain(self._options))
        if refused:
            raise _core.ConfigError(refused)
        vars(self).update(channels=channels)
        vars(self).update(compressors=self._by_channel(compressor), dtype=arguments.float_type("dtype", dtype), shapes=_shapes_of(P, shapes))
        vars(self).update(P=sum(map(math.prod, self.shapes)), num_clients=arguments.whole("num_clients", num_clients, 1, _MOST_CLIENTS),
                          seed=arguments.whole("seed", seed, 0, 2**64 - 1))
        self._weights = _weights_of(weights, self.num_clients)
        self._unit = None if unit is None else arguments.text("unit", unit)
        self._rounds = self._new_rounds()

    def send(self, client: int, vector: Any, *, step_size: float = 1.0, check: bool = True) -> Message:
        """Returns the message of a client in this round. The array or tensor is not copied where the method needs no copy.

        step_size: of the round, for unit="step" and for operators that follow it (rule="lambda" and "gamma").  check: see Compressor.compress.
        Raises TypeError or ValueError for an array that cannot be used, and Error for a vector that is not finite or a client that has sent in
        this round; nothing has then been sent. If the message of a finite vector is not finite, MessageOverflow is raised, and the client may
        send another vector.
        """
        array, shape, like = flat(vector)
        if array.dtype != self.dtype:
            raise TypeError(f"the vector has {array.dtype}; this feedback was made for {self.dtype}: make it with dtype=\"{array.dtype}\", or convert the "
                            f"vector to {self.dtype}")
        if array.size != self.P:
            raise ValueError(f"the vector has {array.size} numbers; this feedback was made for {self.P}")
        sent = self._rounds.send(self._client(client), array, arguments.positive("step_size", step_size), not check)

        def decode(message: Message) -> Any:
            vectors = [np.empty(self.P, self.dtype) for _ in self.channels]
            for channel, out in enumerate(vectors):
                sent.write_vector(channel, out)
            decoded = [like(out.reshape(shape)) for out in vectors]
            return decoded[0] if len(decoded) == 1 else dict(zip(self.channels, decoded))

        return Message(self, sent, self.round, lambda: self._rounds.contract(0), decode)

    def discard(self, client: int) -> None:
        """Forgets the message of a client in this round, as if it had been lost: its state does not move, and it may send again."""
        self._rounds.discard(self._client(client))

    def receive(self, weights: Sequence[float] | None = None, *, out: np.ndarray | None = None) -> np.ndarray:
        """Returns the server's estimate [P] from the messages of this round, in float64, and closes the round.

        weights: of the clients that have sent, in ascending order of their numbers. By default they are their w_i, divided by their sum where
        not all clients have sent.  out: an array [P] of float64 for the estimate; a large one that is used again saves the time of fresh memory.
        """
        estimate = np.empty(self.P) if out is None else out
        if not isinstance(estimate, np.ndarray):
            raise TypeError(f"out is of type {type(estimate).__name__}; it must be an array of {self.P} float64")
        if estimate.dtype != np.float64 or estimate.shape != (self.P,) or not estimate.flags.c_contiguous or not estimate.flags.writeable:
            raise ValueError(f"out is an array of {estimate.dtype} with the shape {estimate.shape}; it has to be a contiguous array of {self.P} float64 that can be "
                             f"written to, as numpy.empty({self.P})")
        self._rounds.receive([] if weights is None else arguments.numbers("weights", weights), estimate)
        return estimate

    @property
    def round(self) -> int:
        """The round whose messages are sent next or are being sent, from 1."""
        return self._rounds.round

    @property
    def cohort(self) -> list[int]:
        """The clients that have sent in this round, in ascending order."""
        return self._rounds.cohort

    @property
    def unit(self) -> str:
        return self._rounds.unit

    def error(self, client: int) -> np.ndarray | None:
        """Returns a copy of the error memory of a client, or None if the method has none."""
        out = np.empty(self.P, self.dtype)
        return out if self._rounds.read_error(self._client(client), out) else None

    def state_dict(self) -> dict[str, Any]:
        """Returns everything that is kept between rounds, as bytes for load_state_dict() of an equal feedback, with a checksum. Raises Error within
        a round."""
        state = self._rounds.save()
        return {"kind": self.kind, "round": self.round, "state": state, "checksum": _checksum_of(self.kind, self.round, state)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises ValueError for the state of another kind and for one that has changed since it was saved, and Error for one of other sizes; the
        feedback is then as it was."""
        self._rounds = self._restored(state)

    def __getstate__(self) -> dict[str, Any]:
        """Raises Error within a round, whose messages are no part of the state."""
        return vars(self) | {"_rounds": self.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._rounds = self._restored(state["_rounds"])

    def _restored(self, state: Any) -> Any:
        """Returns new rounds with a state, or raises the reason why it is none of this feedback's."""
        arguments.table("the state", state, ("kind", "round", "state"))
        kind = arguments.text("the kind of this state", state["kind"])
        if not isinstance(state["state"], bytes):
            raise TypeError(f"the state's bytes are of type {type(state['state']).__name__}; state_dict() returns them")
        if kind != self.kind:
            raise ValueError(f"this is a state of {kind!r}, not of {self.kind!r}")
        if "checksum" not in state:
            raise ValueError("this state has no 'checksum': it is damaged" + OR_OLD)
        for name in state:
            if name not in ("kind", "round", "state", "checksum"):
                raise ValueError(f"a state of a feedback has no {arguments.shown(name)}; it has 'kind', 'round', 'state' and 'checksum'")
        round = arguments.whole("the round of this state", state["round"], 1, 2**32 - 1)
        if arguments.index("the checksum of this state", state["checksum"]) != _checksum_of(kind, round, state["state"]):
            raise ValueError("this state is damaged: it does not match its checksum")
        rounds = self._new_rounds()
        rounds.restore(state["state"])
        return rounds

    def _client(self, client: Any) -> int:
        return arguments.whole("client", client, 0, self.num_clients - 1)

    def _new_rounds(self) -> Any:
        operators = [(channel, one.kind, _plain(one._options), one.scope, one.bucket) for channel, one in self.compressors.items()]
        return _ROUNDS[self.dtype](self.kind, _plain(self._options), operators, [list(shape) or [1] for shape in self.shapes], self._weights,
                                   self._unit, self.seed)

    def _by_channel(self, compressor: Any) -> dict[str, Compressor]:
        given = dict(compressor) if isinstance(compressor, Mapping) else {"": compressor}
        for channel, one in given.items():
            if not isinstance(one, Compressor):
                raise TypeError(f"expected a compressor, as fedbits.TopK(ratio=0.01), got {type(one).__name__}")
            if channel and channel not in self.channels:
                raise ValueError(f"{self.kind} has no channel {channel!r}; it has {', '.join(map(repr, self.channels))}")
        missing = [channel for channel in self.channels if channel not in given]
        if missing and "" not in given:
            raise ValueError(f"{self.kind} needs a compressor for its channel {missing[0]!r}")
        return given

    def __repr__(self) -> str:
        operators = self.compressors[""] if list(self.compressors) == [""] else self.compressors
        words = [repr(operators), f"num_clients={self.num_clients}", f"P={self.P}"]
        return f"{type(self).__name__}({', '.join(words + [f'{name}={value!r}' for name, value in self._options.items()])})"


def _checksum_of(kind: str, round: int, state: bytes) -> int:
    return checksum_of(kind.encode(), str(round).encode(), state)


def _shapes_of(P: int | None, shapes: Sequence[Sequence[int]] | None) -> list[tuple[int, ...]]:
    if (P is None) == (shapes is None):
        raise ValueError("give P, the number of parameters, or the shapes of their tensors")
    found: list[tuple[int, ...]] = list(arguments.shapes("shapes", shapes)) if P is None else [(arguments.whole("P", P, 0, arguments.MOST_NUMBERS),)]
    if sum(map(math.prod, found)) < 1:
        raise ValueError("there are no parameters")
    return found


def _weights_of(weights: Sequence[float] | None, num_clients: int) -> list[float]:
    if weights is None:
        return [1 / num_clients] * num_clients
    given = arguments.numbers("weights", weights)
    if len(given) != num_clients:
        raise ValueError(f"there are {len(given)} weights for {num_clients} clients")
    if not all(weight > 0 for weight in given):
        raise ValueError("weights must be above 0 and finite")
    return [weight / sum(given) for weight in given]


_FIRST = [parameter for name, parameter in inspect.signature(Feedback.__init__).parameters.items() if name not in ("self", "options")]


def _class_of(kind: str) -> type[Feedback]:
    refused, _ = _core.feedback_facts(kind, {})
    return make_class("feedback", kind, Feedback, _FIRST[:1], _FIRST[1:], f"Not usable here: {refused}." if refused else "")


CLASSES = {class_name(kind): _class_of(kind) for kind in _core.names("feedback")}


def feedbacks() -> dict[str, str]:
    """Returns the feedbacks by class name, each with its summary in a line."""
    return summaries(CLASSES)
