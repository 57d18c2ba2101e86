"""Modules of PyTorch as client models."""
from __future__ import annotations

import functools
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="TORCH MISSING: install PyTorch to run the tests of fedbits.torch")

import torch.nn.functional as F  # noqa: E402

import fedbits  # noqa: E402
import fedbits.torch  # noqa: E402
from fedbits.digest import digest_of  # noqa: E402

CLIENTS = 5


def network(*more: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(112, 20), torch.nn.ReLU(), *more, torch.nn.Linear(20, 20), torch.nn.ReLU(), torch.nn.Linear(20, 2))


def scenario(**changes):
    return {"name": "modules", "rounds": 3, "data": {"name": "mushrooms", "rows": 400, "test_fraction": 0.25, "test": "none"},
            "partition": {"kind": "shuffled", "clients": CLIENTS}, "model": {"kind": "torch"},
            "local": {"kind": "sgd", "steps": 4, "batch": 8, "learning_rate": 0.1}, "compressor": {"up": {"kind": "random_k", "ratio": 0.3}},
            "feedback": {"up": {"kind": "ef14"}}, "evaluate": {"every": 1, "optimum": False, "gradient": "every"}} | changes


def run(study, folder, **settings):
    return fedbits.run(study, out=folder, progress=False, **settings)


def model_of(store_folder) -> np.ndarray:
    return np.load(next(store_folder.glob("*.npy"))).ravel()


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_module_has_the_rounds_of_the_same_network_in_the_simulator(precision: str, tmp_path) -> None:
    module = network()
    fedbits.torch.Model(module)
    np.save(tmp_path / "start.npy", np.concatenate([one.detach().numpy().ravel() for one in module.parameters()]).astype(precision))
    changes = {"precision": precision, "start": {"kind": "file", "path": str(tmp_path / "start.npy")}}
    ways = {"own": {"kind": "torch"}, "theirs": {"kind": "mlp", "hidden": [20, 20]}}
    rounds = {way: run(scenario(model=model, **changes), tmp_path / way, save_model=str(tmp_path / way / "models"), model_format="npy").columns("rounds")
              for way, model in ways.items()}
    own, theirs = (model_of(tmp_path / way / "models") for way in ways)
    tolerance = 1e-5 if precision == "float32" else 1e-12
    np.testing.assert_allclose(own, theirs, atol=tolerance)
    for name in ("train_loss", "test_loss", "zeta_sq"):
        np.testing.assert_allclose(rounds["own"][name].astype(float), rounds["theirs"][name].astype(float), rtol=100 * tolerance, err_msg=name)
    np.testing.assert_array_equal(rounds["own"]["bits_up"], rounds["theirs"]["bits_up"])


def test_a_round_is_the_mean_of_plain_loops(tmp_path) -> None:
    module = network().double()
    fedbits.torch.Model(module)
    drawn: list[np.ndarray] = []

    def loss(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(outputs, labels)

    fedbits.torch.Model(module, loss, kind="torch_plain")
    changes = {"precision": "float64", "rounds": 1, "compressor": {"up": {"kind": "identity"}}, "feedback": {"up": {"kind": "none"}},
               "local": {"kind": "sgd", "steps": 2, "learning_rate": 0.1}}
    run(scenario(model={"kind": "torch_plain"}, **changes), tmp_path / "a", save_model=str(tmp_path / "models"), model_format="npy")

    class Keeping(fedbits.Model, kind="torch_rows"):
        def shapes(self, data):
            return [(1,)]

        def loss_and_gradient(self, x, rows):
            if rows.seed is not None:  # else it is an evaluation
                drawn.append((rows.features, rows.labels, rows.numbers))
            return 0.0, np.zeros_like(x)

    run(scenario(model={"kind": "torch_rows"}, **changes | {"evaluate": {"every": 1, "optimum": False, "gradient": "never", "train_loss": False}}),
        tmp_path / "b", threads=1)
    starts = [one.detach().clone() for one in module.parameters()]
    clients = {tuple(numbers): (features, labels) for features, labels, numbers in drawn}
    assert len(clients) == CLIENTS
    total = np.zeros(sum(one.numel() for one in starts))
    for features, labels in clients.values():
        with torch.no_grad():
            for parameter, start in zip(module.parameters(), starts):
                parameter.copy_(start)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            loss(module(torch.from_numpy(features)), torch.from_numpy(labels)).backward()
            optimizer.step()
        total += len(labels) * np.concatenate([one.detach().numpy().ravel() for one in module.parameters()])
    np.testing.assert_allclose(model_of(tmp_path / "models"), total / sum(len(labels) for _, labels in clients.values()), atol=1e-12)


def test_running_statistics_move_and_are_averaged_as_those_of_the_simulator(tmp_path) -> None:
    torch.manual_seed(3)
    module = torch.nn.Sequential(torch.nn.Linear(112, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    fedbits.torch.Model(module, kind="torch_normalised")
    saved = {"save_model": str(tmp_path / "models"), "model_format": "npy"}
    run(scenario(model={"kind": "torch_normalised"}), tmp_path / "own", **saved)
    moved = model_of(tmp_path / "models")
    means, variances = moved[-16:-8], moved[-8:]
    assert np.abs(means).max() > 1e-3 and np.abs(variances - 1).max() > 1e-3 and (variances > 0).all()


def test_dropout_draws_the_same_numbers_for_any_number_of_threads(tmp_path) -> None:
    fedbits.torch.Model(network(torch.nn.Dropout(0.5)), kind="torch_dropout")
    one, three = (run(scenario(model={"kind": "torch_dropout"}), tmp_path / str(threads), threads=threads).columns("rounds") for threads in (1, 3))
    np.testing.assert_array_equal(one["train_loss"].astype(float), three["train_loss"].astype(float))


def test_a_start_may_be_drawn(tmp_path) -> None:
    fedbits.torch.Model(network(), kind="torch_drawn", initial="reset")
    losses = [run(scenario(model={"kind": "torch_drawn"}, seeds={"init": seed}, rounds=1), tmp_path / str(seed)).columns("rounds")["train_loss"][0]
              for seed in (1, 2)]
    assert losses[0] != losses[1]


def test_the_module_is_copied(tmp_path) -> None:
    module = network()
    before = [one.detach().clone() for one in module.parameters()]
    fedbits.torch.Model(module, kind="torch_copied")
    run(scenario(model={"kind": "torch_copied"}), tmp_path)
    assert all(torch.equal(one, other) for one, other in zip(before, module.parameters()))


@pytest.mark.parametrize("make, error, text", [
    (lambda: fedbits.torch.Model("module"), TypeError, "expected a module"),
    (lambda: fedbits.torch.Model(torch.nn.ReLU()), ValueError, "no parameter that requires a gradient"),
    (lambda: fedbits.torch.Model(torch.nn.Linear(2, 2).to("meta")), TypeError, "lies on meta"),
])
def test_wrong_modules_are_named(make, error, text) -> None:
    with pytest.raises(error, match=text):
        make()


# ---- what makes other runs


def code_of(module: torch.nn.Module, loss=None, **options) -> str:
    return fedbits.torch.Model(module, loss, kind="torch_coded", **options)._code()


class Options(torch.nn.Module):
    """Keeps what it is given in an attribute."""

    def __init__(self, value) -> None:
        super().__init__()
        self.linear, self.value = torch.nn.Linear(3, 2), value
        with torch.no_grad():
            self.linear.weight.fill_(1)
            self.linear.bias.fill_(0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def weighted(weight):
    def loss(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return weight * torch.nn.functional.cross_entropy(outputs, labels)

    return loss


def wrapped(weight):
    return functools.wraps(F.cross_entropy)(weighted(weight))


@pytest.mark.parametrize("one, other", [
    (torch.nn.CrossEntropyLoss(), torch.nn.CrossEntropyLoss(label_smoothing=0.3)), (wrapped(1.0), wrapped(2.0)),
    (torch.no_grad()(weighted(1.0)), torch.no_grad()(weighted(2.0))), (F.cross_entropy, F.multi_margin_loss), (None, F.multi_margin_loss),
    (torch.nn.CrossEntropyLoss(), torch.nn.CrossEntropyLoss(reduction="sum")),
    (torch.nn.CrossEntropyLoss(weight=torch.ones(2)), torch.nn.CrossEntropyLoss(weight=torch.full((2,), 2.0))),
    (weighted(1.0), weighted(2.0)), (weighted(torch.ones(1)), weighted(torch.zeros(1))),
    (lambda o, y, scale=1.0: o, lambda o, y, scale=2.0: o), (lambda o, y: F.relu(o), lambda o, y: F.gelu(o)),
])
def test_losses_that_differ_make_other_runs(one, other) -> None:
    assert code_of(Options(0), one) == code_of(Options(0), one) != code_of(Options(0), other)


@pytest.mark.parametrize("one, other", [
    (1.0, 2.0), ({"depth": 1}, {"depth": 2}), ([1, [2]], [1, [3]]), (torch.relu, torch.tanh), (F.relu, F.gelu), (lambda x: x, lambda x: 2 * x),
    (torch.float32, torch.float64), (torch.zeros(2), torch.ones(2)), (torch.zeros(2), torch.zeros(2, 1)), (None, "text"), ({1, 2}, {1, 3}),
    (torch.zeros(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.bfloat16)), (torch.nn.ReLU, torch.nn.GELU), (torch.nn.ReLU(), torch.nn.GELU()),
    (torch.nn.Dropout(0.1), torch.nn.Dropout(0.2)), ([torch.nn.Dropout(0.1)], [torch.nn.Dropout(0.2)]),
])
def test_attributes_that_differ_make_other_runs(one, other) -> None:
    assert code_of(Options(one)) == code_of(Options(one)) != code_of(Options(other))


def test_what_has_no_meaning_makes_no_other_run() -> None:
    module = Options(1)
    before = code_of(module)
    module.eval()
    module.register_forward_hook(lambda module, inputs, outputs: None).remove()
    module.register_state_dict_pre_hook(lambda *given: None) if hasattr(module, "register_state_dict_pre_hook") else None
    assert code_of(module) == before
    module.register_forward_hook(lambda module, inputs, outputs: 2 * outputs)
    assert code_of(module) != before


def test_parameters_that_are_one_differ_from_equal_ones() -> None:
    tied, untied = Options(1), Options(1)
    tied.other, untied.other = tied.linear, Options(1).linear
    assert code_of(tied) != code_of(untied)


def test_a_module_whose_attribute_cannot_be_read_is_refused() -> None:
    with pytest.raises(TypeError, match="loss.rows is of type generator, whose value cannot be read"):
        rows = (i for i in range(3))
        code_of(Options(1), lambda outputs, labels: rows)


def test_a_changed_loss_does_not_get_the_stored_result(tmp_path) -> None:
    losses = []
    for smoothing in (0.0, 0.5, 0.0):
        fedbits.torch.Model(network(), torch.nn.CrossEntropyLoss(label_smoothing=smoothing), kind="torch_smoothed")
        losses.append(run(scenario(model={"kind": "torch_smoothed"}, rounds=1), tmp_path).columns("rounds")["train_loss"].astype(float)[-1])
    assert losses[0] == losses[2] != losses[1]


def modules_of_pytorch() -> list[torch.nn.Module]:
    """Modules that keep more than parameters and numbers."""
    torch.manual_seed(1)
    nn = torch.nn
    return [nn.LSTM(2, 3), nn.MultiheadAttention(4, 2), nn.TransformerEncoderLayer(4, 2), nn.ParameterList([nn.Parameter(torch.zeros(2))]), nn.GRU(2, 2),
            nn.utils.weight_norm(nn.Linear(2, 2)), nn.utils.parametrizations.orthogonal(nn.Linear(2, 2)), torch.jit.script(nn.Linear(2, 2)),
            torch.compile(nn.Linear(2, 2)) if hasattr(torch, "compile") else nn.Linear(2, 2)]


@pytest.mark.parametrize("place", range(len(modules_of_pytorch())))
def test_a_parameter_of_any_module_makes_another_run(place) -> None:
    one, same, other = (modules_of_pytorch()[place] for _ in range(3))
    with torch.no_grad():
        next(other.parameters()).view(-1)[-1] += 1
    assert digest_of(module=one) == digest_of(module=same) != digest_of(module=other)


PROGRAM = """
import sys
sys.path.insert(0, {here!r})
import test_torch_model as tests, torch
for module in tests.modules_of_pytorch():
    print(tests.digest_of(module=module))
print(tests.code_of(tests.network(torch.nn.BatchNorm1d(20), torch.nn.Dropout(0.5)), torch.nn.CrossEntropyLoss(weight=torch.ones(2)), initial="reset"))
print(tests.code_of(tests.Options({{"a": {{"x", "y", "z"}}, "f": torch.relu}}), tests.weighted(torch.float32), predict=lambda x: x in {{"x", "y", "z"}}))
"""


def test_another_process_has_the_same_digest() -> None:
    here = str(pathlib.Path(__file__).resolve().parent)
    printed = {subprocess.run([sys.executable, "-c", PROGRAM.format(here=here)], capture_output=True, text=True, check=True,
                              env=os.environ | {"PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")}
    assert len(printed) == 1 and len(printed.pop().split()) == 2 + len(modules_of_pytorch())


# ---- wrong modules and data


class Failing(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(112, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            raise ArithmeticError("out of numbers")
        return self.linear(x)


def test_what_a_module_raises_comes_out(tmp_path) -> None:
    fedbits.torch.Model(Failing(), kind="torch_failing")
    for threads in (1, 2, 2, 2):  # clients of several threads raise at about the same time
        with pytest.raises(ArithmeticError, match="out of numbers") as raised:
            run(scenario(model={"kind": "torch_failing"}), tmp_path, threads=threads)
        assert any("client " in note and "round 1" in note for note in raised.value.__notes__)
    assert set(fedbits.Store(tmp_path).columns("runs")["status"]) == {"failed"}


class Changing(torch.nn.Module):
    """Changes its parameters in training, as `change` does."""

    def __init__(self, change) -> None:
        super().__init__()
        self.linear, self.change = torch.nn.Linear(112, 2), change

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.change(self)
        return self.linear(x)


@pytest.mark.parametrize("change, text", [
    (lambda module: setattr(module, "more", torch.nn.Linear(1, 1)), "has 4 parameters that require a gradient, and had 2"),
    (lambda module: setattr(module.linear, "weight", torch.nn.Parameter(module.linear.weight.detach().clone())), "has replaced its parameter 'linear.weight'"),
    (lambda module: setattr(module, "linear", torch.nn.Linear(112, 2, bias=False)), "has 1 parameters that require a gradient, and had 2"),
])
def test_a_module_that_changes_its_parameters_is_refused(change, text, tmp_path) -> None:
    fedbits.torch.Model(Changing(change), kind="torch_changing")
    with pytest.raises(ValueError, match=text):
        run(scenario(model={"kind": "torch_changing"}), tmp_path)
    assert list(fedbits.Store(tmp_path).columns("runs")["status"]) == ["failed"]


def test_a_loss_of_many_numbers_is_refused(tmp_path) -> None:
    fedbits.torch.Model(network(), lambda outputs, labels: outputs, kind="torch_losses")
    with pytest.raises(TypeError, match="a tensor of one number"):
        run(scenario(model={"kind": "torch_losses"}), tmp_path)


def test_a_data_set_of_pytorch_is_data_of_a_scenario(tmp_path) -> None:
    random = torch.Generator().manual_seed(1)
    samples, labels = torch.randn(80, 1, 3, 3, generator=random), torch.randint(0, 2, (80,), generator=random)
    fedbits.torch.dataset("torch_data", torch.utils.data.TensorDataset(samples, labels))
    fedbits.torch.Model(torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten(), torch.nn.Linear(2, 2)), kind="torch_images")
    store = run(scenario(model={"kind": "torch_images"}, data={"kind": "torch_data"}), tmp_path)
    assert list(store.columns("runs")["status"]) == ["done"]


def samples(*tensors):
    return torch.utils.data.TensorDataset(*tensors)


@pytest.mark.parametrize("data, error, text", [
    (samples(torch.zeros(4, 2), torch.zeros(4), torch.zeros(4)), TypeError, "item 0 of the data set is a tuple of 3; every item must be a pair"),
    (samples(torch.zeros(4, 2)), TypeError, "item 0 of the data set is a tuple of 1; every item must be a pair"),
    (torch.zeros(4, 2), TypeError, "item 0 of the data set is a Tensor; every item must be a pair"),
    (torch.utils.data.DataLoader(samples(torch.zeros(4, 2), torch.zeros(4))), TypeError, "data is of type DataLoader.*give the Dataset that it reads"),
    (iter([]), TypeError, "data is of type list_iterator; it must be a Dataset of PyTorch"),
    (samples(torch.zeros(4, 2), torch.zeros(4, 2)), TypeError, r"the label of item 0 has the shape \(2,\)"),
    ([(torch.zeros(2), 0), (torch.zeros(3), 0)], ValueError, r"items have the shapes \(2,\) and \(3,\)"),
    ([], ValueError, "no items"),
])
def test_wrong_data_sets_are_named(data, error, text) -> None:
    with pytest.raises(error, match=text):
        fedbits.torch.dataset("torch_wrong", data)


@pytest.mark.parametrize("options, error, text, note", [
    ({"predict": lambda outputs: outputs}, TypeError, r"predict returned a tensor of the shape \(\d+, 2\); it has to return", "predict"),
    ({"predict": lambda outputs: 1 / 0}, ZeroDivisionError, "division", "predict"),
    ({"loss": lambda outputs, labels: None}, TypeError, "loss returned NoneType; the loss has to be a tensor of one number", "loss"),
])
def test_what_is_wrong_in_an_evaluation_tells_what_was_called(options, error, text, note, tmp_path) -> None:
    fedbits.torch.Model(network(), kind="torch_odd", **options)
    with pytest.raises(error, match=text) as raised:
        run(scenario(model={"kind": "torch_odd"}), tmp_path)
    assert any(one.startswith(f"the model 'torch_odd'.{note}(), called in the evaluation of ") for one in raised.value.__notes__)


def test_rows_keep_their_axes_and_whole_numbers_their_type(tmp_path):
    """Sequences [m,steps,values] reach an LSTM and a Conv1d as they are, tokens an Embedding as integers, pictures [m,H,W,3] with channels first."""
    random = np.random.default_rng(4)
    seen = []

    class Probe(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            seen.append((tuple(x.shape[1:]), x.dtype))
            return self.inner(x)

    class Last(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cells, self.out = torch.nn.LSTM(3, 5, batch_first=True), torch.nn.Linear(5, 2)

        def forward(self, x):
            return self.out(self.cells(x)[0][:, -1])

    flat = torch.nn.Flatten()
    cases = {"sequences": (random.standard_normal((40, 7, 3)), Last(), ((7, 3), torch.float32)),
             "signals": (random.standard_normal((40, 3, 12)), torch.nn.Sequential(torch.nn.Conv1d(3, 4, 3), flat, torch.nn.Linear(40, 2)), ((3, 12), torch.float32)),
             "tokens": (random.integers(0, 20, (40, 7)), torch.nn.Sequential(torch.nn.Embedding(20, 4), flat, torch.nn.Linear(28, 2)), ((7,), torch.int64)),
             "pictures": (random.integers(0, 256, (40, 8, 8, 3), np.uint8), torch.nn.Sequential(torch.nn.Conv2d(3, 2, 8), flat, torch.nn.Linear(2, 2)),
                          ((3, 8, 8), torch.float32))}
    for name, (features, inner, expected) in cases.items():
        seen.clear()
        fedbits.Dataset("torch_axes", features, np.arange(40) % 2)
        fedbits.torch.Model(Probe(inner))
        run(scenario(rounds=1, data={"kind": "torch_axes"}), tmp_path / name)
        assert set(seen) == {expected}, name


# ---- what calls may change


class Moving(torch.nn.Module):
    """Changes a buffer, an attribute, a list or nothing in a call."""

    def __init__(self, change=None) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.linear, self.change, self.count, self.seen = torch.nn.Linear(112, 2), change, 0, []
        self.register_buffer("mean", torch.zeros(112))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training and self.change is not None:
            self.change(self, x)
        return self.linear(x - self.mean) * (1 + 0.01 * self.count + 0.01 * len(self.seen))


def move_mean(module, x):
    module.mean.mul_(0.9).add_(0.1 * x.mean(0).detach())


def replace_mean(module, x):
    module.mean = 0.9 * module.mean + 0.1 * x.mean(0).detach()


def move_data(module, x):
    module.mean.data += 0.1 * x.mean(0).detach()


def count(module, x):
    module.count += 1


def append(module, x):
    module.seen.append(1)


def remember(module, x):
    module.last = x


MOVES = [(move_mean, "buffer 'mean'", "mean"), (replace_mean, "buffer 'mean'", "mean"), (move_data, "buffer 'mean'", "me*"),
         (count, "attribute 'count'", "count"), (append, "attribute 'seen'", "seen")]


@pytest.mark.parametrize("change, what, name", [*MOVES, (remember, "attribute 'last'", None)])
def test_what_a_call_changes_is_named(change, what, name, tmp_path) -> None:
    fedbits.torch.Model(Moving(change), kind="torch_moving")
    with pytest.raises(ValueError, match=f"changes the {what} of the module"):
        run(scenario(model={"kind": "torch_moving"}), tmp_path)
    found = [text for check in fedbits.check("torch_moving") for text in check.findings]
    assert any(what in text for text in found), found


@pytest.mark.parametrize("change, what, name", MOVES)
def test_what_is_restored_gives_one_result(change, what, name, tmp_path) -> None:
    """For any number of threads, and for a study that goes on."""
    fedbits.torch.Model(Moving(change), kind="torch_restored", restored=[name])
    study = scenario(model={"kind": "torch_restored"})
    found = {run(study, tmp_path / str(threads), threads=threads).columns("runs")["checksum"][0] for threads in (1, 4)}
    assert len(found) == 1
    assert not [check for check in fedbits.check("torch_restored", only=["steady"]) if check.findings]


def test_a_name_that_is_nowhere_cannot_be_restored() -> None:
    with pytest.raises(ValueError, match="restored has 'median', which is no buffer and no attribute"):
        fedbits.torch.Model(Moving(), kind="torch_restored", restored=["median"])


def layers_with_buffers() -> dict[str, tuple]:
    """Every module of torch.nn that keeps buffers or draws, in a network of images [1, 8, 14]; and whether it has to be refused."""
    def images(*more):
        return torch.nn.Sequential(torch.nn.Unflatten(1, (1, 8, 14)), torch.nn.Conv2d(1, 4, 3), *more, torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2),
                                   torch.nn.Flatten(), torch.nn.Linear(16, 2))

    nn, old, new = torch.nn, torch.nn.utils, torch.nn.utils.parametrizations
    return {
        "batch norm": (lambda: images(nn.BatchNorm2d(4)), ""),
        "batch norm of rows": (lambda: network(nn.BatchNorm1d(20)), ""),
        "batch norm without statistics": (lambda: images(nn.BatchNorm2d(4, track_running_stats=False)), ""),
        "a mean over all steps": (lambda: images(nn.BatchNorm2d(4, momentum=None)), "momentum=None"),
        "batch norm over processes": (lambda: images(nn.SyncBatchNorm(4)), "on GPU" if torch.__version__ < "2" else ""),
        "instance norm": (lambda: images(nn.InstanceNorm2d(4)), ""),
        "instance norm with statistics": (lambda: images(nn.InstanceNorm2d(4, track_running_stats=True)), ""),
        "group norm": (lambda: images(nn.GroupNorm(2, 4)), ""),
        "spectral norm": (lambda: network(new.spectral_norm(nn.Linear(20, 20))), "_u' and the buffer"),
        "spectral norm, old": (lambda: network(old.spectral_norm(nn.Linear(20, 20))), "weight_u' and the buffer"),
        "weight norm, old": (lambda: network(old.weight_norm(nn.Linear(20, 20))), "cannot be copied"),
        "fractional pooling": (lambda: images(nn.FractionalMaxPool2d(2, output_size=(3, 6))), ""),
        "random slopes": (lambda: network(nn.RReLU()), ""),
        "dropout of features": (lambda: network(nn.AlphaDropout(0.2)), ""),
        "dropout after batch norm": (lambda: network(nn.BatchNorm1d(20), nn.Dropout(0.2)), ""),
        "attention": (lambda: nn.Sequential(nn.Unflatten(1, (8, 14)), nn.TransformerEncoderLayer(14, 2, 8, batch_first=True), nn.Flatten(),
                                            nn.Linear(112, 2)), ""),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", layers_with_buffers())
def test_every_layer_gives_one_result_for_any_number_of_threads(name, tmp_path) -> None:
    make, refused = layers_with_buffers()[name]

    def checksum(threads: int) -> str:
        torch.manual_seed(2)
        fedbits.torch.Model(make(), kind="torch_layer")
        study = scenario(model={"kind": "torch_layer"}, rounds=2)
        return run(study, tmp_path / str(threads), threads=threads).columns("runs")["checksum"][0]

    if refused:
        with pytest.raises(ValueError, match=refused):
            checksum(1)
    else:
        assert checksum(1) == checksum(4)


class Noise(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.linear = torch.nn.Linear(112, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x + 0.1 * torch.randn_like(x))


def test_a_module_that_draws_without_a_layer_of_dropout_gets_its_minibatch_s_numbers(tmp_path) -> None:
    fedbits.torch.Model(Noise(), kind="torch_noise")
    found = {run(scenario(model={"kind": "torch_noise"}), tmp_path / str(threads), threads=threads).columns("runs")["checksum"][0]
             for threads in (1, 2, 4)}
    assert len(found) == 1


def test_a_normalisation_of_one_row_is_refused_before_the_run(tmp_path) -> None:
    fedbits.torch.Model(network(torch.nn.BatchNorm1d(20)), kind="torch_one_row")
    study = scenario(model={"kind": "torch_one_row"}, local={"kind": "sgd", "steps": 2, "batch": 1, "learning_rate": 0.1})
    with pytest.raises(fedbits.ConfigError, match="local.batch.*one value per channel.*no variance; it needs 2"):
        run(study, tmp_path)


@pytest.mark.parametrize("module, options", [
    (lambda: torch.nn.Linear(6, 2), {}),
    (lambda: torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.Tanh(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(),
                                 torch.nn.Linear(16, 3)), {}),
    (lambda: torch.nn.Sequential(torch.nn.Embedding(20, 4), torch.nn.Flatten(), torch.nn.Linear(28, 2)), {}),
    (lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2)), {"example": np.zeros((1, 3, 4), np.float32)}),
    (lambda: network(torch.nn.BatchNorm1d(20), torch.nn.Dropout(0.1)), {}),
], ids=["rows", "images", "tokens", "an example", "statistics"])
def test_the_checks_take_the_shape_that_the_module_takes(module, options) -> None:
    torch.manual_seed(4)
    fedbits.torch.Model(module(), kind="torch_shaped", **options)
    assert [(check.name, check.findings) for check in fedbits.check("torch_shaped") if check.findings] == []
