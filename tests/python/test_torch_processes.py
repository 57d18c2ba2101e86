"""The optimizer and the hook in two and in four processes, in all that loops of PyTorch do to gradients and parameters.

The processes of one size play every case one after another, which starts them once; the tests look at what the cases return.
"""
from __future__ import annotations

import contextlib
import functools
import pathlib
import sys
import traceback

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="TORCH MISSING: install PyTorch to run the tests of fedbits.torch")

import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as multiprocessing  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import fedbits  # noqa: E402
import fedbits.torch  # noqa: E402

nn = torch.nn
RATE = 0.25
CASES: dict[str, object] = {}


def case(function):
    CASES[function.__name__] = function
    return function


# ---- models and steps


class Parts(nn.Module):
    """It has three layers, and a call may leave out the middle one."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.middle, self.last = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor, uses_middle: bool = True) -> torch.Tensor:
        hidden = torch.tanh(self.first(x))
        return self.last(torch.tanh(self.middle(hidden)) if uses_middle else hidden)


class Words(nn.Module):
    def __init__(self, is_sparse: bool) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.words, self.last = nn.Embedding(10, 4, sparse=is_sparse), nn.Linear(4, 3)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.last(self.words(words))


def rows(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(8, 6, generator=generator), torch.randint(0, 3, (8,), generator=generator)


def loss_of(model: nn.Module, step: int, rank: int, **options) -> torch.Tensor:
    features, labels = rows(step, rank)
    return nn.functional.cross_entropy(model(features.to(next(model.parameters()).dtype), **options), labels)


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=RATE)


class Loop:
    """A model that trains with the hook or with the optimizer."""

    def __init__(self, way: str, model: nn.Module, compressor=None, optimizer=sgd, group=None, seed: int = 1, **options):
        compressor = compressor or fedbits.TopK(ratio=0.2)
        if way == "optimizer":
            self.model = self.inner = model
            self.sender = self.optimizer = fedbits.torch.Compressed(optimizer(model), compressor, group=group, seed=seed)
            return
        own = {name: options.pop(name) for name in ("loss_scale",) if name in options}
        self.inner = model
        if options.pop("has_small_buckets", False):  # of a kilobyte at most, so that the model has several
            options["bucket_cap_mb"] = 0.0001
        self.model = DistributedDataParallel(model, process_group=group, **options)
        self.sender = fedbits.torch.ddp_hook(compressor, seed=seed, per_bucket=way == "bucket", **own).register(self.model)
        self.optimizer = optimizer(model)

    def step(self, step: int, rank: int, loss=loss_of, factor: float = 1, **options) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        (factor * loss(self.model, step, rank, **options)).backward()
        self.optimizer.step()


def flat(model: nn.Module) -> np.ndarray:
    return torch.cat([one.detach().reshape(-1).float() for one in model.parameters()]).numpy().copy()


def are_equal(model: nn.Module, group=None) -> bool:
    """Whether the replicas of a model are equal."""
    own = torch.from_numpy(flat(model))
    all_of = [torch.zeros_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(all_of, own, group=group)
    return all(torch.equal(one, all_of[0]) for one in all_of)


def plain(model: nn.Module, steps, ranks, loss=loss_of, **options) -> np.ndarray:
    """Returns the parameters after steps along the mean of the gradients of all processes."""
    optimizer = sgd(model)
    for step in steps:
        optimizer.zero_grad()
        (sum(loss(model, step, rank, **options) for rank in ranks) / len(ranks)).backward()
        optimizer.step()
    return flat(model)


def error_of(call) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


# ---- cases: each returns what its test looks at


@case
def mean(way, rank, size):
    loop = Loop(way, Parts(), fedbits.Identity())
    for step in range(3):
        loop.step(step, rank)
    return flat(loop.inner), plain(Parts(), range(3), range(size)), loop.sender.rounds


@case
def sparse(way, rank, size):
    def loss(model, step, rank):
        words = torch.tensor([1, 2, 3 + rank, 1])
        return nn.functional.cross_entropy(model(words), torch.tensor([0, 1, 2, step % 3]))

    exact, kept = Loop(way, Words(True), fedbits.Identity()), Loop(way, Words(True), fedbits.TopK(ratio=0.2))
    for step in range(3):
        exact.step(step, rank, loss)
        kept.step(step, rank, loss)
    return {"exact": flat(exact.inner), "reference": plain(Words(False), range(3), range(size), loss), "equal": are_equal(kept.inner),
            "is_sparse": exact.inner.words.weight.grad.is_sparse, "bits": kept.sender.bits}


@case
def group(way, rank, size):
    pair = dist.new_group([0, 1])
    if rank > 1:
        return None
    loop = Loop(way, Parts(), fedbits.Identity(), group=pair)
    for step in range(3):
        loop.step(step, rank)
    return flat(loop.inner), plain(Parts(), range(3), range(2))


@case
def scale(way, rank, size):
    """A loss scale that doubles, and one that is too large in one process once."""
    now = [8.0]
    options = {} if way == "optimizer" else {"loss_scale": lambda: now[0]}
    scaled, unscaled = Loop(way, Parts(), has_small_buckets=True, **options), Loop(way, Parts(), has_small_buckets=True)
    scaler = getattr(torch.amp, "GradScaler", None) if hasattr(torch, "amp") else None
    if way == "optimizer" and scaler is None:
        return "no GradScaler for the CPU"
    scaler = scaler("cpu", init_scale=8.0, growth_interval=2) if way == "optimizer" else None
    found = []
    for step in range(5):
        factor = scaler.get_scale() if scaler else now[0]
        before = flat(scaled.inner)
        scaled.optimizer.zero_grad()
        loss = loss_of(scaled.model, step, rank)
        bad = step == 3 and rank == size - 1
        if bad:  # in the layer whose gradient comes last, and its bucket
            loss = loss + float("inf") * scaled.inner.first.weight.sum()
        (scaler.scale(loss) if scaler else factor * loss).backward()
        if scaler:
            scaler.step(scaled.optimizer)
            scaler.update()
        else:
            finite = all(bool(torch.isfinite(one.grad).all()) for one in scaled.inner.parameters())
            if finite:
                for one in scaled.inner.parameters():
                    one.grad /= factor
                scaled.optimizer.step()
            now[0] = 2 * factor if finite else factor / 2
        if step == 3:
            found.append(bool((flat(scaled.inner) == before).all()))
        else:
            unscaled.step(step, rank)
    return {"left out": found, "scaled": flat(scaled.inner), "unscaled": flat(unscaled.inner), "equal": are_equal(scaled.inner),
            "rounds": (scaled.sender.rounds, unscaled.sender.rounds)}


@case
def hidden_scale(way, rank, size):
    """One process has a GradScaler that the hook was not given."""
    if not hasattr(getattr(torch, "amp", None), "GradScaler"):
        return "no GradScaler for the CPU"
    if way == "optimizer":
        return ["", ""]
    scaler = torch.amp.GradScaler("cpu") if rank == size - 1 else None
    found = [error_of(lambda: Loop(way, Parts()).step(0, rank)), error_of(lambda: Loop(way, Parts(), loss_scale=1).step(0, rank))]
    del scaler
    return found


@case
def unused(way, rank, size):
    """The middle layer is used in the first step, and then not in two, and then in one process alone."""
    adam = functools.partial(lambda model: torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.5))
    loop = Loop(way, Parts(), optimizer=adam, find_unused_parameters=True)
    loop.step(0, rank)
    name = next(name for name in loop.sender.errors if name in ("middle.weight", "2"))
    before, error = loop.inner.middle.weight.detach().clone(), loop.sender.errors[name]
    for step in (1, 2):
        loop.step(step, rank, uses_middle=False)
    stays = torch.equal(before, loop.inner.middle.weight), np.array_equal(error, loop.sender.errors[name]), loop.inner.middle.weight.grad is None
    loop.step(3, rank, uses_middle=rank == 0)
    return {"stays": stays, "moves": not torch.equal(before, loop.inner.middle.weight), "equal": are_equal(loop.inner), "has error": bool(error.any())}


@case
def frozen(way, rank, size):
    loop = Loop(way, Parts(), find_unused_parameters=True)
    loop.step(0, rank)
    name = next(name for name in loop.sender.errors if name in ("first.weight", "0"))
    loop.inner.first.requires_grad_(False)
    before, error = loop.inner.first.weight.detach().clone(), loop.sender.errors[name]
    for step in (1, 2):
        loop.step(step, rank)
    stays = torch.equal(before, loop.inner.first.weight), np.array_equal(error, loop.sender.errors[name])
    loop.inner.first.requires_grad_(True)
    loop.step(3, rank)
    return {"stays": stays, "moves": not torch.equal(before, loop.inner.first.weight), "equal": are_equal(loop.inner)}


@case
def new_group(way, rank, size):
    """A layer more: a new parameter group of the optimizer, or a new DistributedDataParallel whose hook gets the state of the one before."""
    inner = Parts()
    loop = Loop(way, inner)
    for step in range(2):
        loop.step(step, rank)
    before = loop.sender.errors
    torch.manual_seed(5)
    more = nn.Linear(3, 3)
    longer = nn.ModuleDict({"inner": inner, "more": more})

    def loss(model, step, rank):
        module = getattr(model, "module", model)
        return nn.functional.cross_entropy(module.more(module.inner(rows(step, rank)[0])), rows(step, rank)[1])

    if way == "optimizer":
        loop.optimizer.add_param_group({"params": list(more.parameters()), "lr": RATE})
        loop.model = longer
        loop.step(2, rank, loss)
        kept = list(before)
    else:
        class Longer(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.middle, self.last, self.more = inner.first, inner.middle, inner.last, more

            def forward(self, x):
                return self.more(self.last(torch.tanh(self.middle(torch.tanh(self.first(x))))))

        state = loop.sender.state_dict()
        loop = Loop(way, Longer())
        loop.sender.load_state_dict(state)
        kept = [name for name, error in loop.sender.errors.items() if np.array_equal(error, before[name])]
        loop.step(2, rank)
    return {"kept": kept == list(before), "new": len(loop.sender.errors) - len(before), "equal": are_equal(longer)}


@case
def two_models(way, rank, size):
    one, two = Loop(way, Parts(1)), Loop(way, Parts(2))
    for step in range(2):
        one.step(step, rank)
        two.step(step, rank)
    found = are_equal(one.inner) and are_equal(two.inner)
    if way == "optimizer":
        return found, ""
    return found, error_of(lambda: one.sender.register(two.model))


@case
def not_finite(way, rank, size):
    loop = Loop(way, Parts(), has_small_buckets=True)
    loop.step(0, rank)
    before, errors = flat(loop.inner), loop.sender.errors

    def loss(model, step, rank):
        found = loss_of(model, step, rank)
        return found + float("nan") * loop.inner.first.weight.sum() if rank == size - 1 else found

    text = error_of(lambda: loop.step(1, rank, loss))
    kept = all(np.array_equal(error, loop.sender.errors[name]) for name, error in errors.items())
    stays = np.array_equal(before, flat(loop.inner))
    loop.step(2, rank)
    return {"text": text, "kept": kept and stays, "equal": are_equal(loop.inner), "rounds": loop.sender.rounds}


@case
def other_start(way, rank, size):
    loop = Loop(way, Parts())
    with torch.no_grad():
        loop.inner.last.bias[1] += rank
    return error_of(lambda: loop.step(0, rank))


@case
def other_order(way, rank, size):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            layers = {"a": nn.Linear(6, 6), "b": nn.Linear(6, 6)}
            for name in reversed(layers) if rank == 1 else layers:
                setattr(self, name, layers[name])
            self.last = nn.Linear(6, 3)

        def forward(self, x):
            return self.last(self.b(self.a(x)))

    return error_of(lambda: Loop(way, Two()).step(0, rank))


@case
def other_options(way, rank, size):
    return [error_of(lambda: Loop(way, Parts(), fedbits.TopK(ratio=0.1 if rank == 1 else 0.2)).step(0, rank)),
            error_of(lambda: Loop(way, Parts(), seed=7 + rank).step(0, rank))]


@case
def other_checkpoint(way, rank, size):
    loop = Loop(way, Parts())
    states = []
    for step in range(3):
        loop.step(step, rank)
        states.append((loop.sender.state_dict(), {name: one.clone() for name, one in loop.inner.state_dict().items()}))
    box = [states[2][0]]
    dist.broadcast_object_list(box, 0)
    of_another = error_of(lambda: loop.sender.load_state_dict(box[0]))
    loop.step(3, rank)
    undisturbed = flat(loop.inner)

    again = Loop(way, Parts())
    again.sender.load_state_dict(states[2][0])
    again.inner.load_state_dict(states[2][1])
    again.step(3, rank)
    older = Loop(way, Parts())
    older.sender.load_state_dict(states[1 if rank == 1 else 2][0])
    older.inner.load_state_dict(states[1 if rank == 1 else 2][1])
    return {"of process 0": of_another, "resumed": np.array_equal(flat(again.inner), undisturbed), "older": error_of(lambda: older.step(3, rank))}


@case
def narrow(way, rank, size):
    """Parameters of bfloat16, whose errors are kept in float32."""
    if torch.__version__ < "2" and way != "optimizer":
        return "DistributedDataParallel of this version cannot hold bfloat16"
    loop = Loop(way, Parts().to(torch.bfloat16))
    for step in range(3):
        loop.step(step, rank)
    return {"equal": are_equal(loop.inner), "types": {str(error.dtype) for error in loop.sender.errors.values()}}


@case
def low_rank(way, rank, size):
    """PowerSGD of full rank sends the mean of the gradients; of rank 1 it keeps what is missing."""
    full, one = (Loop(way, Parts(), fedbits.PowerSGD(rank=number, scope="tensor")) for number in (6, 1))
    for step in range(4):
        full.step(step, rank)
        one.step(step, rank)
    return {"full": flat(full.inner), "reference": plain(Parts(), range(4), range(size)), "equal": are_equal(one.inner),
            "kept": bool(np.any(one.sender.error))}


SIMULATED = {"top-k": fedbits.TopK(ratio=0.2), "qsgd": fedbits.QSGD(levels=4, scaled=True), "powersgd": fedbits.PowerSGD(rank=1, scope="tensor")}
ROWS = 12  # of a client


def simulated_rows(num_clients: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(4)
    return random.standard_normal((ROWS * num_clients, 6)), random.integers(0, 3, ROWS * num_clients)


@case
def simulated(way, rank, size):
    """Steps along whole gradients of a client's rows, as in a run of the simulator with a client for each process."""
    features, labels = (torch.from_numpy(one[ROWS * rank:ROWS * (rank + 1)]) for one in simulated_rows(size))

    def loss(model, step, rank):
        return nn.functional.cross_entropy(model(features), labels)

    found = {}
    for name, compressor in SIMULATED.items():
        loop = Loop(way, Parts().double(), compressor, seed=5)
        for step in range(5):
            loop.step(step, rank, loss)
        found[name] = torch.cat([one.detach().reshape(-1) for one in loop.inner.parameters()]).numpy(), loop.sender.bits
    return found


def ways_of_ddp(way: str, rank: int, kind: str) -> tuple[bool, float]:
    """Returns whether the replicas are equal after a few steps, and how far they are from DistributedDataParallel without a hook."""
    models = []
    for hooked in (True, False):
        options = {"gradient_as_bucket_view": True} if kind == "views" else {"static_graph": True} if kind == "static graph" else {}
        inner = Parts()
        model = DistributedDataParallel(inner, bucket_cap_mb=0.0002, **options)
        if hooked:
            fedbits.torch.ddp_hook(fedbits.Identity(), per_bucket=way == "bucket").register(model)
        optimizer = sgd(model)
        steps = range(6 if rank == 0 else 4) if kind == "uneven" else range(4)
        with model.join() if kind == "uneven" else contextlib.nullcontext():
            for step in steps:
                if kind == "accumulated" and step % 2 == 0:
                    with model.no_sync():
                        loss_of(model, step, rank).backward()
                    continue
                loss_of(model, step, rank).backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
        models.append(inner)
    return are_equal(models[0]), float(np.abs(flat(models[0]) - flat(models[1])).max())


@case
def kinds_of_ddp(way, rank, size):
    if way == "optimizer":
        return {}
    return {kind: ways_of_ddp(way, rank, kind) for kind in ("buckets", "views", "static graph", "accumulated", "uneven")}


# ---- the processes


def _play(rank: int, size: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size)
    results = {}
    for name, function in CASES.items():
        for way in ("hook", "optimizer", "bucket"):
            try:
                results[name, way] = function(way, rank, size)
            except Exception:
                results[name, way] = traceback.format_exc()
                print(name, way, rank, results[name, way], file=sys.stderr)
    torch.save(results, f"{folder}/results.{rank}")
    dist.barrier()
    dist.destroy_process_group()


@pytest.fixture(scope="module", params=[2, 4])
def played(request, tmp_path_factory):
    """Returns a function that gives the results of a case in all processes."""
    folder: pathlib.Path = tmp_path_factory.mktemp("processes")
    multiprocessing.spawn(_play, args=(request.param, str(folder)), nprocs=request.param)
    results = [torch.load(folder / f"results.{rank}", weights_only=False) for rank in range(request.param)]

    def of(name: str, way: str) -> list:
        found = [one[name, way] for one in results]
        assert not any(isinstance(one, str) and one.startswith("Traceback") for one in found), found
        return found

    return of


WAYS = pytest.mark.parametrize("way", ["hook", "optimizer", "bucket"])


@WAYS
def test_identity_steps_along_the_mean(played, way) -> None:
    for got, expected, rounds in played("mean", way):
        np.testing.assert_allclose(got, expected, atol=1e-6)
        assert rounds == 3


@WAYS
def test_sparse_gradients_are_sent_and_stay_sparse(played, way) -> None:
    for found in played("sparse", way):
        np.testing.assert_allclose(found["exact"], found["reference"], atol=1e-6)
        assert found["equal"] and found["is_sparse"] and found["bits"] > 0


@WAYS
def test_the_mean_is_that_of_the_group(played, way) -> None:
    for got, expected in [one for one in played("group", way) if one is not None]:
        np.testing.assert_allclose(got, expected, atol=1e-6)


@WAYS
def test_a_scaled_loss_takes_the_steps_of_one_that_is_not(played, way) -> None:
    for found in played("scale", way):
        if isinstance(found, str):
            pytest.skip(f"SCALER: {found}")
        np.testing.assert_allclose(found["scaled"], found["unscaled"], atol=1e-6)
        assert found["left out"] == [True] and found["equal"] and found["rounds"] == (4, 4)


@pytest.mark.parametrize("way", ["hook", "bucket"])
def test_a_scale_that_the_hook_is_not_told_is_the_same_error_in_all(played, way) -> None:
    for found in played("hidden_scale", way):
        if isinstance(found, str):
            pytest.skip(f"SCALER: {found}")
        assert "a GradScaler scales losses in this process" in found[0] and found[1] == ""


@WAYS
def test_what_is_kept_of_an_unused_layer_waits(played, way) -> None:
    for found in played("unused", way):
        assert found == {"stays": (True, True, True), "moves": True, "equal": True, "has error": True}


@WAYS
def test_what_is_kept_of_a_frozen_layer_waits(played, way) -> None:
    for found in played("frozen", way):
        assert found == {"stays": (True, True), "moves": True, "equal": True}


@WAYS
def test_new_parameters_begin_with_no_error_and_the_others_keep_theirs(played, way) -> None:
    for found in played("new_group", way):
        assert found == {"kept": True, "new": 2, "equal": True}


@WAYS
def test_two_models_have_a_sender_each(played, way) -> None:
    for found, text in played("two_models", way):
        assert found
        assert way == "optimizer" or "make a hook for each model" in text


@WAYS
def test_one_gradient_that_is_not_finite_is_the_same_error_in_all(played, way) -> None:
    found = played("not_finite", way)
    assert len({one["text"].split("\n")[0] for one in found}) == 1
    for one in found:
        assert f"is not finite in process {len(found) - 1} of {len(found)}" in one["text"]
        assert one["kept"] and one["equal"] and one["rounds"] == 2


@WAYS
def test_another_start_is_the_same_error_in_all(played, way) -> None:
    for text in played("other_start", way):
        assert "has other values in process 1 than in process 0" in text


@WAYS
def test_another_order_is_the_same_error_in_all(played, way) -> None:
    for text in played("other_order", way):
        assert "where process 0 has the parameter" in text or "has other values in process 1" in text


@WAYS
def test_other_options_are_the_same_error_in_all(played, way) -> None:
    for texts in played("other_options", way):
        assert "process 0 has compressor TopK(ratio=0.2" in texts[0] and "process 1 has TopK(ratio=0.1" in texts[0]
        assert "process 0 has seed 7, and process 1 has 8" in texts[1]


@WAYS
def test_a_process_takes_its_own_checkpoint_alone(played, way) -> None:
    for rank, found in enumerate(played("other_checkpoint", way)):
        assert (f"here is process {rank} of" in found["of process 0"]) == (rank > 0)
        assert found["resumed"]
        assert "process 0 has steps before 3, and process 1 has 2" in found["older"]


@WAYS
def test_narrow_gradients_are_sent_as_float32(played, way) -> None:
    for found in played("narrow", way):
        if isinstance(found, str):
            pytest.skip(f"BFLOAT16: {found}")
        assert found == {"equal": True, "types": {"float32"}}


@WAYS
def test_an_operator_of_several_phases_works_in_several_processes(played, way) -> None:
    for found in played("low_rank", way):
        np.testing.assert_allclose(found["full"], found["reference"], atol=1e-5)
        assert found["equal"] and found["kept"]


@pytest.mark.parametrize("way", ["hook", "bucket"])
def test_identity_is_distributed_data_parallel_in_all_its_kinds(played, way) -> None:
    for found in played("kinds_of_ddp", way):
        assert {kind for kind, (are_equal, distance) in found.items() if not are_equal or distance > 1e-6} == set(), found


@pytest.mark.parametrize("name", SIMULATED)
@pytest.mark.parametrize("way", ["hook", "optimizer"])
def test_processes_take_the_rounds_of_the_simulator_s_clients(played, way, name, tmp_path) -> None:
    found = [one[name] for one in played("simulated", way)]
    fedbits.Dataset("rows_of_processes", *simulated_rows(len(found)))
    fedbits.torch.Model(Parts(), kind="parts")
    study = {"name": "processes", "rounds": 5, "precision": "float64", "data": {"kind": "rows_of_processes"}, "model": {"kind": "parts"},
             "partition": {"kind": "contiguous", "clients": len(found)}, "local": {"kind": "sgd", "steps": 1, "batch": 0, "learning_rate": RATE},
             "seeds": {"compressor": 5}, "compressor": {"up": SIMULATED[name].as_table()}, "feedback": {"up": {"kind": "ef14"}}}
    store = fedbits.run(study, out=tmp_path / "out", save_model=str(tmp_path / "models"), model_format="npy", progress=False)
    expected = np.load(next((tmp_path / "models").glob("*.npy"))).ravel()
    for parameters, _ in found:
        np.testing.assert_allclose(parameters, expected, rtol=0, atol=1e-12)
    assert sum(bits for _, bits in found) == store.columns("runs")["bits_up"][0]
