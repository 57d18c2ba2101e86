"""Modules of PyTorch as client models."""
from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="TORCH MISSING: install PyTorch to run the tests of fedbits.torch")

import fedbits  # noqa: E402
import fedbits.torch  # noqa: E402

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
