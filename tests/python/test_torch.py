"""The optimizer and the communication hook for PyTorch, in one process and in two."""
from __future__ import annotations

import copy
import pathlib
import threading
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="TORCH MISSING: install PyTorch to run the tests of fedbits.torch")

import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as multiprocessing  # noqa: E402

import fedbits  # noqa: E402
import fedbits.torch  # noqa: E402
from fedbits import torch_processes  # noqa: E402


def model_of(seed: int = 1, dtype: torch.dtype = torch.float32) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(12, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).to(dtype)


def batch_of(step: int, rank: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(16, 12, generator=generator), torch.randint(0, 3, (16,), generator=generator)


def loss_of(model: torch.nn.Module, step: int, rank: int = 0) -> torch.Tensor:
    samples, labels = batch_of(step, rank)
    return torch.nn.functional.cross_entropy(model(samples.to(next(model.parameters()).dtype)), labels)


def flat(tensors) -> np.ndarray:
    return np.concatenate([one.detach().numpy().reshape(-1) for one in tensors])


def shapes_of(model: torch.nn.Module) -> list[tuple[int, ...]]:
    return [tuple(one.shape) for one in model.parameters()]


def gradient_of(model: torch.nn.Module, step: int, rank: int = 0) -> np.ndarray:
    return flat(torch.autograd.grad(loss_of(model, step, rank), list(model.parameters())))


def take_step(model: torch.nn.Module, optimizer, step: int, rank: int = 0) -> None:
    optimizer.zero_grad()
    loss_of(model, step, rank).backward()
    optimizer.step()


def sgd(model: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.25)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("feedback", [True, False])
def test_a_step_is_that_of_the_decoded_message(feedback: bool, dtype: torch.dtype) -> None:
    model, reference = model_of(dtype=dtype), model_of(dtype=dtype)
    operator = fedbits.QSGD(levels=4)
    optimizer = fedbits.torch.Compressed(sgd(model), operator, feedback=feedback, seed=5)
    memory, bits = fedbits.Memory(), 0
    for step in range(1, 6):
        take_step(model, optimizer, step)
        message = operator.compress(gradient_of(reference, step), seed=5, round=step, shapes=shapes_of(reference),
                                    memory=memory if feedback else None)
        bits += message.bits
        with torch.no_grad():
            for parameter, piece in zip(reference.parameters(),
                                        torch.from_numpy(message.decode()).split([one.numel() for one in reference.parameters()])):
                parameter -= 0.25 * piece.reshape(parameter.shape)
        np.testing.assert_array_equal(flat(model.parameters()), flat(reference.parameters()))
    assert (optimizer.bits, optimizer.rounds) == (bits, 5)
    if feedback:
        np.testing.assert_array_equal(optimizer.error, memory.error)
    else:
        assert optimizer.error is None


def test_a_resumed_optimizer_goes_on_with_the_same_bits(tmp_path: pathlib.Path) -> None:
    def new(model):
        return fedbits.torch.Compressed(torch.optim.Adam(model.parameters(), lr=0.01), fedbits.RandomK(ratio=0.2))

    whole, first, second = model_of(), model_of(), model_of(seed=2)
    optimizer, before, after = new(whole), new(first), new(second)
    for step in range(6):
        take_step(whole, optimizer, step)
    for step in range(3):
        take_step(first, before, step)
    torch.save({"model": first.state_dict(), "optimizer": before.state_dict()}, tmp_path / "checkpoint")
    checkpoint = torch.load(tmp_path / "checkpoint")
    second.load_state_dict(checkpoint["model"])
    after.load_state_dict(checkpoint["optimizer"])
    for step in range(3, 6):
        take_step(second, after, step)
    np.testing.assert_array_equal(flat(second.parameters()), flat(whole.parameters()))
    np.testing.assert_array_equal(after.error, optimizer.error)
    assert (after.bits, after.rounds) == (optimizer.bits, optimizer.rounds)


def test_a_scheduler_sets_the_step_size() -> None:
    model = model_of()
    optimizer = fedbits.torch.Compressed(sgd(model), fedbits.TopK(ratio=0.1))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer.optimizer, 1, gamma=0.1)
    take_step(model, optimizer, 1)
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.025)


def test_a_parameter_without_a_gradient_keeps_none_and_stays() -> None:
    model = model_of()
    unused = torch.nn.Parameter(torch.ones(4))
    adam = torch.optim.AdamW([*model.parameters(), unused], lr=0.25, weight_decay=0.5)
    optimizer = fedbits.torch.Compressed(adam, fedbits.Identity())
    take_step(model, optimizer, 1)
    assert unused.grad is None and torch.equal(unused, torch.ones(4))


def test_a_closure_is_called_with_gradients_on() -> None:
    model = model_of()
    optimizer = fedbits.torch.Compressed(sgd(model), fedbits.TopK(ratio=0.1))

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of(model, 1)
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() > 0
    assert optimizer.rounds == 1


def test_a_gradient_with_nan_is_refused_and_nothing_moves() -> None:
    model = model_of()
    optimizer = fedbits.torch.Compressed(sgd(model), fedbits.TopK(ratio=0.1))
    take_step(model, optimizer, 1)
    before, error = flat(model.parameters()), optimizer.error.copy()
    loss_of(model, 2).backward()
    next(model.parameters()).grad[0, 0] = float("nan")
    with pytest.raises(fedbits.Error):
        optimizer.step()
    np.testing.assert_array_equal(flat(model.parameters()), before)
    np.testing.assert_array_equal(optimizer.error, error)
    assert optimizer.rounds == 1


def test_what_is_no_compressor_or_no_optimizer_is_refused() -> None:
    with pytest.raises(TypeError, match="optimizer is of type Sequential; it must be an optimizer of PyTorch, as torch.optim.SGD"):
        fedbits.torch.Compressed(model_of(), fedbits.TopK(k=1))
    with pytest.raises(TypeError, match="expected a compressor"):
        fedbits.torch.ddp_hook("top_k")


@pytest.mark.parametrize("operator", [fedbits.TopK(ratio=0.2), fedbits.QSGD(levels=4), fedbits.HardThreshold(threshold=0.05)], ids=repr)
def test_bytes_of_another_sender_decode_as_the_message_does(operator: fedbits.Compressor) -> None:
    vector = gradient_of(model_of(), 1)
    message = operator.compress(vector, seed=3, client=4, round=7, shapes=shapes_of(model_of()))
    received = operator.decode(bytes(message), vector.size, seed=3, client=4, round=7, shapes=shapes_of(model_of()))
    np.testing.assert_array_equal(received, message.decode())


def test_bytes_that_are_no_message_are_refused() -> None:
    with pytest.raises(fedbits.Error):
        fedbits.TopK(ratio=0.2).decode(b"", 100)
    with pytest.raises(ValueError, match="messages of all senders"):
        fedbits.PowerSGD(rank=1).decode(b"", (4, 4))


# ---- two processes -----------------------------------------------------------------------------------------------------------------------


def run_two(function, folder: pathlib.Path) -> list[dict]:
    """Runs function(rank, results) in two processes that are joined over gloo, and returns the results of each."""
    multiprocessing.spawn(_joined, args=(function, str(folder)), nprocs=2)
    return [torch.load(folder / f"results.{rank}", weights_only=False) for rank in range(2)]


def _joined(rank: int, function, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    results: dict = {}
    function(rank, results)
    torch.save(results, f"{folder}/results.{rank}")
    dist.barrier()
    dist.destroy_process_group()


def _with_hook(rank: int, results: dict) -> None:
    # Buckets of one kilobyte at most, so that the model has several.
    model = torch.nn.parallel.DistributedDataParallel(model_of(), bucket_cap_mb=0.0003)
    hook = fedbits.torch.ddp_hook(fedbits.QSGD(levels=4), seed=9)
    model.register_comm_hook(model, hook)
    optimizer = sgd(model)
    for step in range(1, 5):
        take_step(model, optimizer, step, rank)
    results.update(parameters=flat(model.parameters()), error=hook.error, bits=hook.bits, rounds=hook.rounds)


def _with_optimizer(rank: int, results: dict) -> None:
    model = model_of()
    optimizer = fedbits.torch.Compressed(sgd(model), fedbits.QSGD(levels=4), seed=9)
    for step in range(1, 5):
        take_step(model, optimizer, step, rank)
    results.update(parameters=flat(model.parameters()), error=optimizer.error, bits=optimizer.bits, rounds=optimizer.rounds)


@pytest.mark.parametrize("function", [_with_hook, _with_optimizer])
def test_two_processes_step_with_the_mean_of_their_messages(function, tmp_path: pathlib.Path) -> None:
    model, operator = model_of(), fedbits.QSGD(levels=4)
    memories, bits = [fedbits.Memory(), fedbits.Memory()], [0, 0]
    for step in range(1, 5):
        total = torch.zeros(sum(one.numel() for one in model.parameters()))
        for rank in range(2):
            message = operator.compress(gradient_of(model, step, rank), seed=9, client=rank, round=step, shapes=shapes_of(model),
                                        memory=memories[rank])
            total += torch.from_numpy(message.decode())
            bits[rank] += message.bits
        with torch.no_grad():
            for parameter, piece in zip(model.parameters(), (total / 2).split([one.numel() for one in model.parameters()])):
                parameter -= 0.25 * piece.reshape(parameter.shape)
    for rank, results in enumerate(run_two(function, tmp_path)):
        np.testing.assert_array_equal(results["parameters"], flat(model.parameters()))
        np.testing.assert_array_equal(results["error"], memories[rank].error)
        assert (results["bits"], results["rounds"]) == (bits[rank], 4)


def test_the_end_of_a_program_waits_for_tensors_that_threads_of_pytorch_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_processes, "_lent", [])
    held = [torch.zeros(1)]
    torch_processes._lend([held[0], torch.zeros(1)])
    holder = threading.Timer(0.2, held.clear)
    holder.start()
    torch_processes._wait_for_lent_tensors()
    assert not held
    kept = torch.zeros(1)
    torch_processes._lend([kept])
    assert len(torch_processes._lent) == 1  # those of earlier collectives are forgotten once they were let go
    torch_processes._wait_for_lent_tensors(longest_s=0.01)
    assert torch_processes._lent[0]() is kept


def _gathered(rank: int, results: dict) -> None:
    messages = torch_processes.Processes().gather_bytes(np.arange(rank + 1, dtype=np.uint8), [1, 2])
    results["messages"] = [bytes(one) for one in messages]
    del messages
    results["noted"] = len(torch_processes._lent)
    torch_processes._wait_for_lent_tensors()
    results["held"] = sum(one() is not None for one in torch_processes._lent)


def test_all_tensors_of_a_collective_are_waited_for(tmp_path: pathlib.Path) -> None:
    for results in run_two(_gathered, tmp_path):
        assert results == {"messages": [bytes([0]), bytes([0, 1])], "noted": 2, "held": 0}


def _without_the_model(rank: int, results: dict) -> None:
    model = torch.nn.parallel.DistributedDataParallel(model_of())
    model.register_comm_hook(None, fedbits.torch.ddp_hook(fedbits.TopK(ratio=0.1)))
    with pytest.raises((TypeError, RuntimeError), match="register_comm_hook"):
        take_step(model, sgd(model), 1, rank)
    results["rounds"] = 0


def test_a_hook_without_the_model_is_named(tmp_path: pathlib.Path) -> None:
    assert [results["rounds"] for results in run_two(_without_the_model, tmp_path)] == [0, 0]


def test_an_optimizer_that_needs_a_closure_is_refused() -> None:
    with pytest.raises(ValueError, match="LBFGS evaluates the loss several times"):
        fedbits.torch.Compressed(torch.optim.LBFGS(model_of().parameters()), fedbits.TopK(ratio=0.1))
    with pytest.raises(TypeError, match="compressed already"):
        fedbits.torch.Compressed(fedbits.torch.Compressed(sgd(model_of()), fedbits.TopK(k=1)), fedbits.TopK(k=1))


@pytest.mark.parametrize("make", [
    lambda one: torch.optim.lr_scheduler.StepLR(one, 1, gamma=0.1),
    lambda one: torch.optim.lr_scheduler.ExponentialLR(one, gamma=0.1),
    lambda one: torch.optim.lr_scheduler.LambdaLR(one, lambda step: 0.1**step),
    lambda one: torch.optim.lr_scheduler.OneCycleLR(one, max_lr=0.25, total_steps=4),
    lambda one: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(one, 2),
], ids=["step", "exponential", "lambda", "one cycle", "cosine"])
def test_a_scheduler_takes_a_compressed_optimizer(make) -> None:
    """The steps are those of the scheduler on the optimizer alone, without a warning of a step that was missed."""
    (plain, alone), (model, wrapped) = ((one, torch.optim.SGD(one.parameters(), lr=0.25, momentum=0.9)) for one in (model_of(), model_of()))
    wrapped = fedbits.torch.Compressed(wrapped, fedbits.Identity())
    assert isinstance(wrapped, torch.optim.Optimizer)
    schedulers = make(alone), make(wrapped)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(3):
            take_step(plain, alone, step)
            take_step(model, wrapped, step)
            for scheduler in schedulers:
                scheduler.step()
    assert alone.param_groups[0]["lr"] == wrapped.param_groups[0]["lr"] != 0.25
    np.testing.assert_allclose(flat(model.parameters()), flat(plain.parameters()), atol=1e-6)


def test_a_group_of_parameters_that_is_added_begins_with_no_error() -> None:
    model, more = model_of(), torch.nn.Linear(3, 3)
    optimizer = fedbits.torch.Compressed(sgd(model), fedbits.TopK(ratio=0.1))
    take_step(model, optimizer, 1)
    before = optimizer.errors
    optimizer.add_param_group({"params": list(more.parameters()), "lr": 0.5})
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.5] and len(optimizer.optimizer.param_groups) == 2
    take_step(torch.nn.Sequential(model, more), optimizer, 2)
    assert list(optimizer.errors) == [*before, "4", "5"]


def test_an_operator_with_a_state_of_its_own_says_that_parameters_were_added() -> None:
    model, more = model_of(), torch.nn.Linear(3, 3)
    optimizer = fedbits.torch.Compressed(sgd(model), fedbits.PowerSGD(rank=1, scope="tensor"))
    take_step(model, optimizer, 1)
    optimizer.add_param_group({"params": list(more.parameters())})
    whole = torch.nn.Sequential(model, more)
    with pytest.raises(ValueError, match=r"forget\(\) begins anew"):
        take_step(whole, optimizer, 2)
    optimizer.forget()
    take_step(whole, optimizer, 3)
    assert optimizer.rounds == 2


def test_an_operator_with_a_state_of_its_own_keeps_the_error_of_unused_parameters() -> None:
    model, unused = model_of(), torch.nn.Parameter(torch.ones(4))
    optimizer = fedbits.torch.Compressed(torch.optim.SGD([*model.parameters(), unused], lr=0.25), fedbits.PowerSGD(rank=1, scope="tensor"))
    unused.grad = torch.arange(4.0)
    take_step(model, optimizer, 1)
    moved, kept = unused.detach().clone(), optimizer.errors["4"]
    for step in (2, 3):
        take_step(model, optimizer, step)
    assert torch.equal(unused, moved) and unused.grad is None and np.array_equal(optimizer.errors["4"], kept)


def test_the_names_of_parameters_are_those_of_the_optimizer() -> None:
    model = model_of()
    try:
        optimizer = torch.optim.SGD(model.named_parameters(), lr=0.25)
    except TypeError:
        pytest.skip("NAMES: optimizers of this version of PyTorch take no names")
    optimizer = fedbits.torch.Compressed(optimizer, fedbits.TopK(ratio=0.1))
    take_step(model, optimizer, 1)
    assert list(optimizer.errors) == [name for name, _ in model.named_parameters()]


def test_a_compressed_optimizer_is_copied_with_its_model():
    model = model_of()
    optimizer = fedbits.torch.Compressed(sgd(model), fedbits.TopK(ratio=0.1))
    take_step(model, optimizer, 0)
    assert "TopK(ratio=0.1)" in repr(optimizer) and "1 message" in repr(optimizer)
    theirs, their_optimizer = copy.deepcopy((model, optimizer))
    for step in (1, 2):
        take_step(model, optimizer, step)
        take_step(theirs, their_optimizer, step)
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), theirs.parameters()))
    assert their_optimizer.bits == optimizer.bits and np.array_equal(their_optimizer.error, optimizer.error)


def write_bytes(rank, compressor, folder):
    (folder / str(rank)).write_bytes(bytes(compressor.compress(torch.arange(16.0), client=rank)))


def test_a_compressor_goes_to_spawned_processes(tmp_path):
    compressor = fedbits.RandomK(k=2)
    torch.multiprocessing.spawn(write_bytes, (compressor, tmp_path), nprocs=2)
    for rank in range(2):
        assert (tmp_path / str(rank)).read_bytes() == bytes(compressor.compress(torch.arange(16.0), client=rank))


def test_no_damaged_state_of_a_sender_is_taken():
    def new(seed):
        model = model_of(seed=seed)
        return model, fedbits.torch.Compressed(torch.optim.SGD(model.parameters(), lr=0.1), fedbits.TopK(ratio=0.1))

    (model, one), (_, two) = new(1), new(2)
    take_step(model, one, 0)
    state = one.state_dict()
    sender, before = state["sender"], two.state_dict()
    vector = sender["vectors"][0]
    memory, error = vector["memory"], vector["memory"]["error"].clone()
    error[3] += 1
    of_vector = [{"names": vector["names"][:-1]}, {"names": [*vector["names"][:-1], "0"]}, {"sizes": [1, *vector["sizes"][1:]]}, {"memory": {}},
                 {"memory": memory | {"error": error}}, {"memory": memory | {"round": torch.tensor([9])}}]
    for damage in ({"rounds": 2}, {"bits": sender["bits"] ^ 1}, {"checksum": sender["checksum"] ^ 1}, {"rounds": -1}, {"rounds": 2**70}, {"more": 1},
                   {"process": 1}, {"processes": 2}, *({"vectors": [vector | one]} for one in of_vector)):
        with pytest.raises(ValueError, match="state"):
            two.load_state_dict(state | {"sender": sender | damage})
    for name in sender:
        with pytest.raises(ValueError, match="state"):
            two.load_state_dict(state | {"sender": {other: sender[other] for other in sender if other != name}})
    assert two.state_dict() == before and two.error is None
    two.load_state_dict(state)
    assert (two.rounds, two.bits) == (one.rounds, one.bits) and np.array_equal(two.error, one.error)


@pytest.mark.parametrize("seed", [2**70, -1])
def test_a_seed_that_is_none_is_refused_at_once(seed):
    with pytest.raises(ValueError, match="^seed is "):
        fedbits.torch.ddp_hook(fedbits.TopK(k=2), seed=seed)


def test_a_saved_memory_is_read_without_pickles(tmp_path):
    memory = fedbits.Memory()
    fedbits.TopK(k=2).compress(torch.arange(16.0), memory=memory)
    torch.save({name: torch.from_numpy(array) for name, array in memory.state_dict().items()}, tmp_path / "memory.pt")
    restored = fedbits.Memory()
    restored.load_state_dict(torch.load(tmp_path / "memory.pt", weights_only=True))
    assert np.array_equal(restored.error, memory.error)
