"""A communication hook of DistributedDataParallel whose gradients are compressed."""
# DistributedDataParallel reads the annotations of a hook as types, so they are not postponed here.
import concurrent.futures
import gc
import weakref
from typing import Any, Callable, Sequence

import numpy as np
import torch
import torch.distributed as dist

from fedbits import arguments
from fedbits.compressors import Compressor, checksum_of
from fedbits.torch_processes import Processes
from fedbits.torch_sender import Gradient, Sender


class DdpHook(Sender):
    """A communication hook of DistributedDataParallel; see ddp_hook().

    DistributedDataParallel hands over the gradients in buckets, whose contents change after the first step. The hook waits for the last one and
    sends one message for the whole model, in the order of model.parameters(), as the simulator does; with per_bucket it sends a message for each.
    """

    def __init__(self, compressor: Compressor, feedback: bool, seed: int, group: Any, loss_scale: Any, per_bucket: bool):
        super().__init__(compressor, feedback, seed, group)
        self.__name__ = self.__qualname__ = "fedbits"  # DistributedDataParallel logs the name of a hook
        self._scale_of = _function_of(loss_scale)
        self.per_bucket = bool(per_bucket)
        if per_bucket:
            _require_buckets(compressor)
        self._model: Any = None  # a weak reference to the model
        self._has_begun = False  # its first step
        self._names: dict[int, str] = {}
        self._used: set[int] | None = None  # numbers of the parameters that the loss has used since the last step; None: all of them
        self._waiting: list[tuple[Any, Any]] = []
        self._thread: Any = None
        self._failure: Exception | None = None  # of this step, alike in all processes
        self._is_left_out = False  # this step, because a loss was scaled too far
        self._errors_before: dict[str, np.ndarray | None] = {}  # of this step's buckets
        self._shared_before: list[tuple[np.ndarray, np.ndarray]] = []  # what the operator shares, and copies of it

    def register(self, model: torch.nn.Module) -> "DdpHook":
        """Makes this the hook of a DistributedDataParallel, and returns it. Raises TypeError or ValueError for a model that it cannot serve. All processes
        call it together."""
        self._begin(model)
        model.register_comm_hook(model, self)  # type: ignore[operator]
        return self

    def __call__(self, state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        self._begin(state)
        if bucket.index() == 0:
            self._waiting.clear()  # of a step that an error has ended
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        if self.per_bucket:
            self._send_bucket(bucket, future)
            return future
        self._waiting.append((bucket, future))
        if bucket.is_last():
            self._send_model()
        return future

    # ---- the model

    def _begin(self, model: Any) -> None:
        """Notes the model, in the first call."""
        if self._model is not None and self._model() is model:
            return
        if not isinstance(model, torch.nn.parallel.DistributedDataParallel):
            raise TypeError("the hook needs the model as its state: model.register_comm_hook(model, hook), with a DistributedDataParallel")
        if self._model is not None:
            raise ValueError("this hook serves another model already, whose errors it keeps; make a hook for each model")
        own = model.process_group
        if self.group is not None and _members(self.group) != _members(own):
            raise ValueError(f"the group of the hook has the processes {_members(self.group)}, and that of the model {_members(own)}; leave out group, which is "
                             "the model's by default")
        self.group = own
        self._names = {id(one): name.removeprefix("module.") for name, one in model.named_parameters()}
        self._model = weakref.ref(model)
        if getattr(model, "find_unused_parameters", False) or getattr(model, "static_graph", False):
            self._watch(model)

    def _watch(self, model: torch.nn.Module) -> None:
        """Notes which parameters get gradients: a bucket has zeros for those that the loss does not use. In a first step that has begun, those that have
        a gradient already are used."""
        watched = [one for one in model.parameters() if one.requires_grad]
        used = {id(one) for one in watched if one.grad is not None}
        for one in watched:
            one.register_hook(_noting(used, id(one)))
        self._used = used

    def _new_processes(self) -> Processes:
        return Processes(self.group, apart=self.per_bucket)

    def _require_right(self, gradients: Sequence[Gradient], dtype: np.dtype) -> None:
        is_first, self._has_begun = not self._has_begun, True
        if is_first and self._scale_of is None and _has_scaler():
            self._has_begun = False
            raise ValueError("a GradScaler scales losses in this process, and gradients do not tell by which factor: give loss_scale=scaler, or loss_scale=1 if "
                             "it does not scale the loss of this model")
        super()._require_right(gradients, dtype)

    def _known_names(self, names: tuple[str, ...]) -> Sequence[str]:
        return list(self._names.values())

    def _names_in_order(self) -> list[str]:
        return list(self._names.values()) or super()._names_in_order()

    def _gradients_of(self, bucket: Any) -> list[Gradient]:
        """Returns the gradients of a bucket, whose values are views of it."""
        buffer = bucket.buffer()
        parameters = bucket.parameters()
        values = [buffer] if buffer.is_sparse else bucket.gradients()
        return [Gradient(self._names[id(one)], one, value if self._used is None or id(one) in self._used else None)
                for one, value in zip(parameters, values)]

    def _scale(self) -> float | None:
        return None if self._scale_of is None else arguments.positive("the scale of the loss", self._scale_of())

    # ---- one message for the model

    def _send_model(self) -> None:
        buckets = [(bucket, future, self._gradients_of(bucket)) for bucket, future in self._waiting]
        self._waiting.clear()
        places = {name: place for place, name in enumerate(self._names.values())}
        gradients = sorted((one for _, _, found in buckets for one in found), key=lambda one: places[one.name])
        try:
            scale = self._scale()
            means = self._mean_of(gradients, scale)
        except Exception as error:  # raised here, it would leave the model in the middle of a step
            for _, future, _ in buckets:
                future.set_exception(error)
            return self._end_step(False)
        by_name = None if means is None else {one.name: mean for one, mean in zip(gradients, means)}
        for bucket, future, found in buckets:
            future.set_result(_written(bucket, found, by_name, scale))
        self._end_step(means is not None)

    def _end_step(self, was_sent: bool) -> None:
        self.rounds += was_sent
        if self._used is not None:
            self._used.clear()

    # ---- a message for each bucket

    def _send_bucket(self, bucket: Any, future: Any) -> None:
        """Gives a bucket to the thread that sends, while the backward pass goes on."""
        self._require_processes()
        if self._thread is None:
            self._thread = concurrent.futures.ThreadPoolExecutor(1, "fedbits")
        gradients = [Gradient(one.name, one.parameter, _on_cpu(one.value)) for one in self._gradients_of(bucket)]
        self._thread.submit(self._exchange_bucket, bucket, future, gradients, self._scale())

    def _exchange_bucket(self, bucket: Any, future: Any, gradients: list[Gradient], scale: float | None) -> None:
        try:
            if bucket.index() == 0:
                self._failure, self._is_left_out = None, False
                self._forget_before()
            if self._failure is not None:
                raise self._failure
            means = None if self._is_left_out else self._means_of_bucket(gradients, scale)
            by_name = None if means is None else {one.name: mean for one, mean in zip(gradients, means)}
            found = _written(bucket, gradients, by_name, scale)
            if bucket.buffer().is_cuda:
                torch.cuda.current_stream(bucket.buffer().device).synchronize()
            if bucket.is_last():
                self._end_step(not self._is_left_out)
            future.set_result(found)
        except Exception as error:
            if self._failure is None:
                self._failure = error
                self._restore()
            if bucket.is_last():
                self._end_step(False)
            future.set_exception(error)

    def _means_of_bucket(self, gradients: list[Gradient], scale: float | None) -> list[torch.Tensor | None] | None:
        """Sends the message of a bucket. If its gradient is scaled too far in one process, the whole step is left out: the errors of the buckets before
        become what they were."""
        self._note_before(gradients)
        seed = checksum_of(str(self.seed).encode(), gradients[0].name.encode()) % 2**64
        means = self._mean_of(gradients, scale, seed, moves_state=True)
        if means is None:
            self._is_left_out = True
            self._restore()
        return means

    def _note_before(self, gradients: list[Gradient]) -> None:
        """Keeps copies of what is kept of a bucket, for a step that fails with a later one: errors by parameter, because the first step's buckets are
        others than those of the second, and what the operator shares by vector."""
        for one in gradients:
            error = self._memory.error_of(one.name)
            self._errors_before[one.name] = None if error is None else error.copy()
        names = {one.name for one in gradients}
        for vector in self._memory.vectors():
            if not names.isdisjoint(vector.names):
                self._shared_before += [(array, array.copy()) for name, array in vector.memory._arrays.items() if name != "error"]

    def _forget_before(self) -> None:
        self._errors_before.clear()
        self._shared_before.clear()

    def _restore(self) -> None:
        for name, before in self._errors_before.items():
            error = self._memory.error_of(name)
            if error is not None:
                error[:] = 0 if before is None else before
        for array, shared in self._shared_before:
            array[:] = shared
        self._forget_before()

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_thread": None, "_model": None, "_names": {}, "_used": None, "_waiting": [], "_errors_before": {},
                                         "_shared_before": []}


def ddp_hook(compressor: Compressor, feedback: bool = True, *, seed: int = 1, group: Any = None, loss_scale: Any = None, per_bucket: bool = False
             ) -> DdpHook:
    """Returns a communication hook for a DistributedDataParallel: hook.register(model), or model.register_comm_hook(model, hook).

    Every process sends its message to all others (all-gather, through gloo), and all use the mean. Errors are kept by parameter. The hook has `bits`,
    `rounds`, `errors` by the names of parameters, `error`, forget(), state_dict() and load_state_dict(); every process saves a state of its own.

    feedback, seed: as of Compressed.  group: by default the model's; it must have the same processes.
    loss_scale: the factor by which the loss is multiplied: a GradScaler, a function, or a number. Errors are kept without it. With a scale, a gradient
    that is not finite in one process makes all gradients not finite in all of them, so that scalers leave the step out alike, and nothing is sent. The
    first step is a ValueError if the process has a GradScaler that the hook was not given; loss_scale=1 says that it is not this model's.
    per_bucket: one message for each bucket, made and sent in a thread of its own while the backward pass goes on; by default one for the model.
    """
    return DdpHook(compressor, feedback, seed, group, loss_scale, per_bucket)


def _function_of(loss_scale: Any) -> Callable[[], float] | None:
    """Returns a function that tells the factor of the loss."""
    if loss_scale is None or hasattr(loss_scale, "get_scale"):
        return None if loss_scale is None else loss_scale.get_scale
    if callable(loss_scale):
        return loss_scale
    number = arguments.positive("loss_scale", loss_scale)
    return lambda: number


def _has_scaler() -> bool:
    """Whether the process has a GradScaler that is enabled."""
    root = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)
    return any(isinstance(one, root) and one.is_enabled() for one in gc.get_referrers(*_with_subclasses(root)))


def _with_subclasses(cls: type) -> list[type]:
    return [cls, *(one for subclass in cls.__subclasses__() for one in _with_subclasses(subclass))]


def _require_buckets(compressor: Compressor) -> None:
    """Raises ValueError for an operator that keeps a state of each client, which cannot follow the parameters into other buckets."""
    operator = compressor._operator(np.dtype(np.float32), ((16, 16),), is_a_trial=True)
    if operator is not None and operator.state_size > 0:
        raise ValueError(f"{compressor!r} keeps a state of its own for the whole model; leave out per_bucket")


def _members(group: Any) -> list[int]:
    """Returns the numbers of a group's processes among all."""
    if hasattr(dist, "get_process_group_ranks"):
        return sorted(dist.get_process_group_ranks(group))
    found = getattr(dist.distributed_c10d, "_pg_group_ranks", {}).get(group)
    return sorted(found) if found else list(range(dist.get_world_size(group)))


def _noting(used: set[int], number: int) -> Callable[[torch.Tensor], None]:
    def note(_: torch.Tensor) -> None:
        used.add(number)
    return note


def _on_cpu(value: torch.Tensor | None) -> torch.Tensor | None:
    return value if value is None or value.device.type == "cpu" else value.cpu()


def _written(bucket: Any, gradients: Sequence[Gradient], means: dict[str, Any] | None, scale: float | None) -> torch.Tensor:
    """Writes the means into a bucket, multiplied by the scale again, and returns its contents. means: None if nothing was sent; every gradient is then
    not finite."""
    buffer = bucket.buffer()
    if buffer.is_sparse:
        return _sparse_of(buffer, gradients[0], means, scale)
    for one, place in zip(gradients, bucket.gradients()):
        mean = None if means is None else means[one.name]
        if means is None:
            place.fill_(torch.nan)
        elif mean is None:
            place.zero_()
        else:
            place.copy_((mean if scale is None else mean * scale).view(place.shape))
    return buffer


def _sparse_of(buffer: torch.Tensor, gradient: Gradient, means: dict[str, Any] | None, scale: float | None) -> torch.Tensor:
    mean = torch.full(gradient.shape, torch.nan) if means is None else means[gradient.name]
    if mean is None:
        mean = torch.zeros(gradient.shape)
    dense = (mean if scale is None else mean * scale).view(buffer.shape).to(buffer.device, buffer.dtype)
    return dense.to_sparse(buffer.sparse_dim())
