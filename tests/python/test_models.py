"""Client models, partitioners and data sets in Python: the same results as those of the simulator, and errors of wrong ones."""
import contextlib
import pathlib
import re
import textwrap
import threading

import numpy as np
import pytest

import fedbits
from fedbits import registration

CLIENTS = 5


class Softmax(fedbits.Model, kind="python_softmax"):
    """Linear classifier with the softmax cross entropy, as logistic_regression of the simulator for two classes."""

    scale = 1.0

    def shapes(self, data):
        return {"weight": (data.num_features,), "bias": ()}

    def loss_and_gradient(self, x, rows):
        signs = 2.0 * rows.labels - 1
        margins = signs * self._scores(x, rows)
        slopes = -signs / (1 + np.exp(margins)) / len(rows)
        gradient = np.append(rows.features.T @ slopes, slopes.sum())
        return np.logaddexp(0, -margins).mean(), (self.scale * gradient).astype(x.dtype)

    def predict(self, x, rows):
        return (self._scores(x, rows) > 0).astype(int)

    def _scores(self, x, rows):
        return rows.features.astype(float) @ x[:-1] + x[-1]


def scenario(**changes):
    return {"name": "models", "rounds": 5, "precision": "float64", "data": {"name": "mushrooms", "rows": 400, "test_fraction": 0.25, "test": "none"},
            "partition": {"kind": "shuffled", "clients": CLIENTS}, "model": {"kind": "python_softmax", "l2": 0.01},
            "local": {"kind": "sgd", "steps": 3, "batch": 8, "learning_rate": 0.25}, "compressor": {"up": {"kind": "random_k", "ratio": 0.3}},
            "feedback": {"up": {"kind": "ef14"}}, "evaluate": {"every": 1, "optimum": False}} | changes


def rounds_of(study, folder, **settings):
    return fedbits.run(study, out=folder, progress=False, **settings).columns("rounds")


def test_a_model_of_python_has_the_rounds_of_the_same_model_in_the_simulator(tmp_path):
    own = rounds_of(scenario(), tmp_path / "own")
    theirs = rounds_of(scenario(model={"kind": "logistic_regression", "l2": 0.01}), tmp_path / "theirs")
    for name in ("train_loss", "test_loss", "test_accuracy", "zeta_sq"):
        np.testing.assert_allclose(own[name].astype(float), theirs[name].astype(float), rtol=1e-9, err_msg=name)
    np.testing.assert_array_equal(own["bits_up"], theirs["bits_up"])


def test_results_do_not_depend_on_the_number_of_threads(tmp_path):
    one, four = (rounds_of(scenario(), tmp_path / str(threads), threads=threads) for threads in (1, 4))
    np.testing.assert_array_equal(one["train_loss"].astype(float), four["train_loss"].astype(float))


def test_options_are_attributes(tmp_path):
    seen = rounds_of(scenario(model={"kind": "python_softmax", "scale": 0.0, "l2": 0.0}), tmp_path)
    assert len(set(seen["train_loss"].astype(float))) == 1, "a scale of 0 leaves the model where it is"
    with pytest.raises(fedbits.ConfigError, match="did you mean 'scale'|did you mean \"scale\""):
        fedbits.run(scenario(model={"kind": "python_softmax", "scael": 0.0}), out=tmp_path / "wrong", progress=False)


def test_runs_of_other_code_are_not_taken_for_those_of_this_one(tmp_path):
    study = scenario(model={"kind": "python_changing"})

    class Changing(Softmax, kind="python_changing"):
        pass

    one = fedbits.run(study, out=tmp_path, progress=False)
    assert len(fedbits.run(study, out=tmp_path, progress=False).columns("runs")["run"]) == 1

    class Changing(Softmax, kind="python_changing"):
        def loss(self, x, rows):
            return 2 * super().loss(x, rows)

    other = fedbits.run(study, out=tmp_path, progress=False)
    assert len({*one.columns("runs")["run"], *other.columns("runs")["run"]}) == 2
    code = one.columns("runs")["configuration"][0]["model"]["code"]
    with pytest.raises(fedbits.ConfigError, match=f"the scenario is of code {code}.*define the class again as it was"):
        fedbits.run(study, model__code=code, out=tmp_path / "old", progress=False)


def test_attributes_and_captured_variables_that_change_make_other_runs(tmp_path):
    factors = [1.0]

    class Scaled(Softmax, kind="python_scaled"):
        table = {"factor": 1.0}
        number = 1.0

        def loss(self, x, rows):
            return factors[0] * self.table["factor"] * self.number * super().loss(x, rows)

    def losses():
        """Returns the loss at the start in each stored run; the last run may be new."""
        fedbits.run(scenario(model={"kind": "python_scaled"}, rounds=1), out=tmp_path, progress=False)
        rounds = fedbits.Store(tmp_path).columns("rounds", all_results=True)
        return sorted(rounds["train_loss"].astype(float)[np.asarray(rounds["round"]) == 0] / np.log(2))

    assert losses() == losses() == pytest.approx([1])
    factors[0] = 2.0
    assert losses() == losses() == pytest.approx([1, 2])
    Scaled.table["factor"] = 2.0
    assert losses() == losses() == pytest.approx([1, 2, 4])
    Scaled.number = 2.0
    assert losses() == losses() == pytest.approx([1, 2, 4, 8])


def test_a_part_that_has_no_digest_any_more_is_refused_where_it_is_used(tmp_path):
    class Logging(Softmax, kind="python_logging"):
        settings = {}

    study = scenario(model={"kind": "python_logging"}, rounds=1)
    rounds_of(study, tmp_path)
    with open(tmp_path / "log", "w") as Logging.settings["log"]:
        rounds_of(scenario(rounds=1), tmp_path / "other")
        with pytest.raises(TypeError, match=r"Logging.settings\['log'\] is of type _io.TextIOWrapper"):
            rounds_of(study, tmp_path)
    del Logging.settings["log"]
    assert "done" in fedbits.run(study, out=tmp_path, progress=False).columns("runs")["status"]


def test_a_sweep_plays_runs_of_a_model_at_the_same_time(tmp_path):
    study = scenario(rounds=3, sweep={"seeds": 4})
    one = fedbits.sweep(study, out=tmp_path / "one", jobs=1, progress=False).columns("rounds")
    two = fedbits.sweep(study, out=tmp_path / "two", jobs=2, progress=False).columns("rounds")
    assert sorted(one["train_loss"].astype(float)) == sorted(two["train_loss"].astype(float))


@pytest.mark.parametrize("kind", ["python_softmax", "python_alternating"])
def test_parts_of_python_keep_the_promises_that_are_checked(kind):
    assert [check.name for check in fedbits.check(kind) if check.findings] == []


def test_a_wrong_gradient_is_found():
    class Doubled(Softmax, kind="python_doubled"):
        def loss_and_gradient(self, x, rows):
            loss, gradient = super().loss_and_gradient(x, rows)
            return loss, 2 * gradient

    assert "gradient" in [check.name for check in fedbits.check("python_doubled") if check.findings]


# ---- wrong models ------------------------------------------------------------------------------------------------------------------------


def model_that(kind, answer):
    """Defines a model whose gradient after the first round is answer(x, rows)."""
    class Wrong(fedbits.Model, kind=kind):
        def shapes(self, data):
            return [(data.num_features,)]

        def loss_and_gradient(self, x, rows):
            return answer(x, rows) if x.any() else (1.0, np.ones_like(x))

    return Wrong


@pytest.mark.parametrize("kind, answer, error, text", [
    ("wrong_type", lambda x, rows: (0.0, list(x)), TypeError, "the gradient has to be an array of NumPy, and is list"),
    ("wrong_dtype", lambda x, rows: (0.0, x.astype(np.float32)), TypeError, r"the gradient has float32; this run computes in float64: convert it, as gradient.astype\(.float64.\), or set precision"),
    ("wrong_size", lambda x, rows: (0.0, x[1:].copy()), ValueError, r"the gradient has \d+ numbers; shapes\(\) has \d+"),
    ("wrong_steps", lambda x, rows: (0.0, np.stack([x, x], 1)[:, 0]), ValueError, "not contiguous"),
    ("wrong_nan", lambda x, rows: (0.0, x * np.nan), ValueError, "the gradient is not finite at place 0, and the loss is 0"),
    ("wrong_answer", lambda x, rows: x, TypeError, "has to return the loss and the gradient"),
    ("wrong_none", lambda x, rows: None, TypeError, r"Wrong.loss_and_gradient\(\) has to return the loss and the gradient, and returned None"),
    ("wrong_loss", lambda x, rows: (x, x), TypeError, r"the loss that Wrong.loss_and_gradient\(\) returned is array.*has to be a number"),
    ("wrong_index", lambda x, rows: rows.labels[10**9], IndexError, "out of bounds"),
])
def test_what_a_model_raises_comes_out_with_client_and_round(kind, answer, error, text, tmp_path):
    model_that(kind, answer)
    with pytest.raises(error, match=text) as raised:
        fedbits.run(scenario(model={"kind": kind}), out=tmp_path, progress=False)
    assert any("client " in note and ("round " in note or "evaluation" in note) for note in raised.value.__notes__)
    runs = fedbits.Store(tmp_path).columns("runs")
    assert list(runs["status"]) == ["failed"]


def test_an_exception_is_the_object_that_was_raised(tmp_path):
    own = LookupError("mine")

    def fail(x, rows):
        raise own

    model_that("raises", fail)
    with pytest.raises(LookupError) as raised:
        fedbits.run(scenario(model={"kind": "raises"}), out=tmp_path, progress=False)
    assert raised.value is own
    fedbits.run(scenario(), out=tmp_path / "next", progress=False)


@pytest.mark.parametrize("passed_on", [0, 1])
def test_of_two_failures_the_one_that_the_core_passes_on_is_raised(passed_on):
    errors = [LookupError("first"), LookupError("second")]
    numbers = [registration.keep_failure(error) for error in errors]
    registration.note_failure(numbers[passed_on], "client 7, round 2")
    with pytest.raises(LookupError) as raised:
        registration.raise_failure()
    assert raised.value is errors[passed_on]
    assert raised.value.__notes__ == ["client 7, round 2"]
    assert not hasattr(errors[1 - passed_on], "__notes__")
    registration.raise_failure()  # none is left


def test_clients_that_raise_at_the_same_time_keep_their_names(tmp_path):
    together = threading.Barrier(2)

    def fail(x, rows):
        with contextlib.suppress(threading.BrokenBarrierError):  # a thread that finds no other one goes on alone
            together.wait(timeout=0.2)
        raise LookupError(f"of {len(rows)} rows")

    model_that("raises_together", fail)
    for attempt in range(5):
        together.reset()
        with pytest.raises(LookupError, match="of 8 rows") as raised:
            fedbits.run(scenario(model={"kind": "raises_together"}), out=tmp_path / str(attempt), progress=False, threads=2)
        assert any(re.fullmatch(r"client \d, round 1", note) for note in raised.value.__notes__)


def test_a_loss_that_is_not_finite_is_divergence(tmp_path):
    model_that("diverges", lambda x, rows: (np.inf, x * np.inf))
    with pytest.warns(fedbits.StudyWarning, match="diverged"):
        store = fedbits.run(scenario(model={"kind": "diverges"}), out=tmp_path, progress=False)
    assert list(store.columns("runs")["status"]) == ["diverged"]


@pytest.mark.parametrize("shapes, error, text", [
    (lambda data: [], ValueError, "returns no tensors"),
    (lambda data: {"a": (0, 3)}, ValueError, "every size must be at least 1"),
    (lambda data: 1 / 0, ZeroDivisionError, "division"),
    (lambda data: (data.num_features,), TypeError, r"Shapeless.shapes\(\) returned \(112,\); it has to return the shapes of the tensors by name"),
    (lambda data: 112, TypeError, "returned 112; it has to return the shapes"),
    (lambda data: None, TypeError, "returned None; it has to return the shapes"),
    (lambda data: {"a": 3}, TypeError, "it has to return the shapes"),
    (lambda data: {"a": (0.5,)}, TypeError, "it has to return the shapes"),
])
def test_wrong_shapes_are_named(shapes, error, text, tmp_path):
    class Shapeless(fedbits.Model, kind="python_shapeless"):
        def shapes(self, data):
            return shapes(data)

    with pytest.raises(error, match=text) as raised:
        fedbits.run(scenario(model={"kind": "python_shapeless"}), out=tmp_path, progress=False)
    assert "Shapeless.shapes(), called before the run" in raised.value.__notes__


@pytest.mark.parametrize("method, answer, error, text", [
    ("predict", lambda x, rows: np.zeros(len(rows) - 1), ValueError, r"Odd.predict\(\) returned an array of the shape \(\d+,\).*of each of the \d+ rows"),
    ("predict", lambda x, rows: np.zeros((len(rows), 1)), ValueError, r"in the shape \(\d+,\)"),
    ("predict", lambda x, rows: None, TypeError, r"Odd.predict\(\) returned None; it has to return the class number of each row"),
    ("predict", lambda x, rows: 1 / 0, ZeroDivisionError, "division"),
    ("loss", lambda x, rows: None, TypeError, r"the loss that Odd.loss\(\) returned is None; it has to be a number"),
    ("loss", lambda x, rows: 1 / 0, ZeroDivisionError, "division"),
    ("initial", lambda seed: [0.0], TypeError, r"initial\(\) has to be an array of NumPy, and is list"),
])
def test_what_is_wrong_outside_of_training_tells_what_was_called(method, answer, error, text, tmp_path):
    type("Odd", (Softmax,), {method: lambda self, *given: answer(*given)}, kind="python_odd")
    with pytest.raises(error, match=text) as raised:
        fedbits.run(scenario(model={"kind": "python_odd"}), out=tmp_path, progress=False)
    when = "before the first round" if method == "initial" else r"in the evaluation of \d+ rows"
    assert any(re.fullmatch(rf"Odd\.{method}\(\), called {when}", note) for note in raised.value.__notes__)


def test_kinds_are_checked():
    with pytest.raises(ValueError, match="has a model 'logistic_regression' already"):
        class Taken(fedbits.Model, kind="logistic_regression"):
            pass
    with pytest.raises(ValueError, match="small letters"):
        class Odd(fedbits.Model, kind="No Kind"):
            pass


def test_a_model_without_functions_says_what_it_needs(tmp_path):
    class Empty(fedbits.Model, kind="python_empty"):
        pass

    with pytest.raises(NotImplementedError, match=r"Empty needs shapes\(self, data\)"):
        fedbits.run(scenario(model={"kind": "python_empty"}), out=tmp_path, progress=False)


# ---- partitioners ------------------------------------------------------------------------------------------------------------------------


class Alternating(fedbits.Partitioner, kind="python_alternating"):
    """Deals rows in turn."""

    draws = False

    def split(self, request):
        return [np.arange(client, request.num_rows, request.num_clients) for client in range(request.num_clients)]


def test_a_partitioner_of_python_splits(tmp_path):
    seen = []

    class Watching(Softmax, kind="python_watching"):
        def loss_and_gradient(self, x, rows):
            seen.append(set(rows.numbers))
            return super().loss_and_gradient(x, rows)

    study = scenario(partition={"kind": "python_alternating", "clients": CLIENTS}, model={"kind": "python_watching"}, rounds=1,
                     local={"kind": "gradient", "learning_rate": 0.1}, data={"name": "mushrooms", "rows": 100, "test": "none"})
    rounds_of(study, tmp_path)
    assert {frozenset(rows) for rows in seen} == {frozenset(range(client, 100, CLIENTS)) for client in range(CLIENTS)}


@pytest.mark.parametrize("split, error, text", [
    (lambda request: [[0]] * request.num_clients, fedbits.ConfigError, "gives row 0 twice"),
    (lambda request: [range(request.num_rows)], fedbits.ConfigError, "makes 1 clients, not 5"),
    (lambda request: [[client] for client in range(request.num_clients)], fedbits.ConfigError, "gives row 5 to no client"),
    (lambda request: [range(request.num_rows), [], range(0), [], []], fedbits.ConfigError, "gives client 1 no row"),
    (lambda request: [[request.num_rows]] * request.num_clients, fedbits.ConfigError, "gives row 300 to client 0; there are 300"),
    (lambda request: request.missing, AttributeError, "missing"),
    (lambda request: None, TypeError, r"Splitting.split\(\) returned None; it has to return the row numbers of each client"),
    (lambda request: [0.5] * request.num_clients, TypeError, "gives client 0 0.5; the rows of a client have to be a list of whole numbers"),
])
def test_wrong_splits_are_named(split, error, text, tmp_path):
    class Splitting(fedbits.Partitioner, kind="python_splitting"):
        def split(self, request):
            return split(request)

    with pytest.raises(error, match=text) as raised:
        fedbits.run(scenario(partition={"kind": "python_splitting", "clients": CLIENTS}), out=tmp_path, progress=False)
    if not issubclass(error, fedbits.Error):  # the core's own say what is wrong with the split
        assert "Splitting.split(), called before the run" in raised.value.__notes__


# ---- data sets ---------------------------------------------------------------------------------------------------------------------------


def two_classes(rows, seed=1):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, rows)
    return random.standard_normal((rows, 6)) + labels[:, None], labels


def test_arrays_are_the_data_of_a_scenario(tmp_path):
    fedbits.Dataset("python_arrays", *two_classes(200), test_features=two_classes(50, 2)[0], test_labels=two_classes(50, 2)[1])
    folder = tmp_path / "set"
    folder.mkdir()
    for name, array in zip(("features", "labels", "test_features", "test_labels"), (*two_classes(200), *two_classes(50, 2))):
        np.save(folder / f"{name}.npy", array)
    model = {"kind": "logistic_regression", "l2": 0.01}
    own = rounds_of(scenario(data={"kind": "python_arrays"}, model=model), tmp_path / "own")
    theirs = rounds_of(scenario(data={"path": str(folder)}, model=model), tmp_path / "theirs")
    for name in ("train_loss", "test_loss", "test_accuracy"):
        np.testing.assert_array_equal(own[name].astype(float), theirs[name].astype(float))


def test_arrays_that_change_make_other_runs(tmp_path):
    features, labels = two_classes(100)
    fedbits.Dataset("python_moving", features, labels)
    study = scenario(data={"kind": "python_moving"}, model={"kind": "logistic_regression"}, rounds=1)

    def num_runs():
        fedbits.run(study, out=tmp_path, progress=False)
        return len(fedbits.Store(tmp_path).columns("runs", all_results=True)["run"])

    assert num_runs() == num_runs() == 1
    features *= 10
    assert num_runs() == 2
    labels[:30] = 0
    assert num_runs() == 3
    losses = fedbits.Store(tmp_path).columns("rounds", all_results=True)
    assert len(set(losses["train_loss"].astype(float)[np.asarray(losses["round"]) == 1])) == 3
    features[2, 1] = np.nan
    with pytest.raises(ValueError, match="features has a number that is not finite, in row 2"):
        num_runs()


def test_bytes_are_images(tmp_path):
    random = np.random.default_rng(1)
    fedbits.Dataset("python_images", random.integers(0, 256, (64, 4, 4), np.uint8), np.array(["cat", "dog"])[random.integers(0, 2, 64)])
    seen = []

    class Looking(fedbits.Model, kind="python_looking"):
        def shapes(self, data):
            seen.append((data.shape, data.num_classes))
            return [(data.num_features,)]

        def loss_and_gradient(self, x, rows):
            assert 0 <= rows.features.min() and rows.features.max() <= 1
            return 0.0, np.zeros_like(x)

    rounds_of(scenario(data={"kind": "python_images"}, model={"kind": "python_looking"}, rounds=1), tmp_path)
    assert seen[0] == ((1, 4, 4), 2)


def shape_of_rows(features, **options):
    arrays = fedbits.Dataset("python_layout", features, np.arange(len(features)) % 2, **options)._arrays("train", "float64")
    return arrays.shape, arrays.features


def test_axes_of_images_are_recognised_or_asked_for():
    """A channel is for images of bytes only, channels that come last are moved, and axes that may be either are asked for."""
    pictures = np.random.default_rng(1).integers(0, 256, (6, 8, 5, 3), np.uint8)
    shape, rows = shape_of_rows(pictures)
    assert shape == (3, 8, 5)
    np.testing.assert_array_equal(rows.reshape(6, *shape), pictures.transpose(0, 3, 1, 2))
    assert shape_of_rows(pictures.astype(float) / 255)[0] == (3, 8, 5)
    assert shape_of_rows(pictures.transpose(0, 3, 1, 2))[0] == (3, 8, 5)
    assert shape_of_rows(np.zeros((6, 16, 8, 8)))[0] == (16, 8, 8)
    assert shape_of_rows(np.zeros((6, 8, 5), np.uint8))[0] == (1, 8, 5)
    assert shape_of_rows(np.zeros((6, 8, 5)))[0] == (8, 5)
    assert shape_of_rows(np.zeros((6, 8, 5)), layout="channels_first")[0] == (1, 8, 5)
    assert shape_of_rows(np.zeros((6, 1, 3, 3)))[0] == (1, 3, 3) and shape_of_rows(np.zeros((6, 3, 3, 1)))[0] == (1, 3, 3)
    with pytest.raises(ValueError, match="say which axis has the channels"):
        shape_of_rows(np.zeros((6, 3, 5, 3), np.uint8))
    assert shape_of_rows(np.zeros((6, 3, 5, 4), np.uint8), layout="channels_last")[0] == (4, 3, 5)
    assert shape_of_rows(np.zeros((6, 3, 5, 4), np.uint8), layout="channels_first")[0] == (3, 5, 4)
    with pytest.raises(ValueError, match="it is for images"):
        shape_of_rows(np.zeros((6, 3)), layout="channels_last")
    with pytest.raises(ValueError, match="it must be 'channels_first'"):
        shape_of_rows(pictures, layout="NHWC")


def test_whole_targets_are_told_apart_from_classes():
    with pytest.warns(UserWarning, match=r"targets and no classes; for classes give labels.astype\(int\)"):
        fedbits.Dataset("python_whole", np.zeros((4, 2)), [0.0, 1.0, 1.0, 0.0])
    assert fedbits.Dataset("python_tokens", np.array([[1, 2], [3, 4]]), [0, 1]).has_integers
    large = fedbits.Dataset("python_tokens", np.array([[1, 2**24 + 1], [3, 4]]), [0, 1])
    with pytest.raises(ValueError, match="above 2\\^24"):
        large._arrays("train", "float32")
    assert large._arrays("train", "float64").features[0, 1] == 2**24 + 1


def test_floating_point_labels_are_targets(tmp_path):
    features, _ = two_classes(60)
    fedbits.Dataset("python_targets", features, features.sum(axis=1))
    own = rounds_of(scenario(data={"kind": "python_targets"}, model={"kind": "linear_regression"},
                             local={"kind": "gradient", "learning_rate": 0.05}, rounds=50), tmp_path)
    assert float(own["train_loss"][-1]) < 0.3 * float(own["train_loss"][0])


@pytest.mark.parametrize("make, error, text", [
    (lambda: fedbits.Dataset("python_wrong", np.zeros(3), np.zeros(3, int)), ValueError, "rows of at least one number"),
    (lambda: fedbits.Dataset("python_wrong", np.zeros((3, 2)), np.zeros(2, int)), ValueError, r"labels has the shape \(2,\); features has 3 rows"),
    (lambda: fedbits.Dataset("python_wrong", np.full((3, 2), np.nan), np.zeros(3, int)), ValueError, "not finite, in row 0"),
    (lambda: fedbits.Dataset("python_wrong", np.array([["a"], ["b"]]), np.zeros(2, int)), TypeError, "numbers are needed, and features.astype.float. makes"),
    (lambda: fedbits.Dataset("python_wrong", np.zeros((2, 2)), [0, 1], test_features=np.zeros((1, 2)), test_labels=[7]), ValueError,
     "7, which is no class of the training rows"),
    (lambda: fedbits.Dataset("python_wrong", np.zeros((2, 2)), [0, 1], test_features=np.zeros((1, 2))), ValueError, "features and labels"),
    (lambda: fedbits.Dataset("quadratics", np.zeros((2, 2)), [0, 1]), ValueError, "already"),
])
def test_wrong_arrays_are_named(make, error, text):
    with pytest.raises(error, match=text):
        make()


class Table:
    """What the package asks of a table of pandas."""

    def __init__(self, **columns):
        self.columns, self.dtypes = list(columns), [np.asarray(one).dtype for one in columns.values()]
        self._values = np.array(list(columns.values()), dtype=object).T

    def __array__(self, dtype=None, copy=None):
        return self._values if dtype is None else self._values.astype(dtype)


def test_columns_that_are_no_numbers_are_named():
    table = Table(age=[1.0, 2.0], day=np.array(["2026-01-01", "2026-01-02"], "datetime64[ns]"), name=["a", "b"])
    with pytest.raises(TypeError, match=r"no numbers: 'day' \(datetime64\[ns\]\), 'name'"):
        fedbits.Dataset("python_table", table, [0, 1])


class Columns:
    """What the package asks of a data set of Hugging Face."""

    def __init__(self, columns):
        self.columns, self.column_names = columns, list(columns)

    def with_format(self, library):
        assert library == "numpy"
        return self

    def __getitem__(self, rows):
        return {name: np.asarray(column)[rows] for name, column in self.columns.items()}


def test_columns_are_features():
    columns = Columns({"age": [1.0, 2.0], "size": [3.0, 4.0], "label": [0, 1]})
    data = fedbits.Dataset.from_huggingface("python_columns", columns, features=["age", "size"], label="label", test=columns)
    np.testing.assert_array_equal(data._checked("test")[0], [[1, 3], [2, 4]])
    with pytest.raises(ValueError, match="no column 'sex'; it has 'age', 'size', 'label'"):
        fedbits.Dataset.from_huggingface("python_columns", columns, features="sex", label="label")


def test_a_data_set_of_hugging_face(tmp_path):
    datasets = pytest.importorskip("datasets", reason="Hugging Face datasets is not installed: its data sets were NOT TESTED")
    features, labels = two_classes(40)
    file = tmp_path / "rows.csv"
    file.write_text("a,b,label\n" + "\n".join(f"{row[0]},{row[1]},{label}" for row, label in zip(features, labels)))
    table = datasets.load_dataset("csv", data_files=str(file), split="train", cache_dir=str(tmp_path / "cache"))
    data = fedbits.Dataset.from_huggingface("python_hub", table, features=["a", "b"], label="label")
    np.testing.assert_allclose(data._checked("train")[0], features[:, :2])


def test_a_study_in_another_thread_uses_parts_of_python(tmp_path):
    results = []
    thread = threading.Thread(target=lambda: results.append(rounds_of(scenario(), tmp_path)))
    thread.start()
    thread.join()
    assert len(results[0]["train_loss"]) == 6


def examples_of_the_documents(begin, end):
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
    section = page[page.index("## Client models"):]
    return textwrap.dedent(section[section.index(begin):section.index(end)])


def test_the_examples_of_the_documents_run_and_keep_their_promises(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"fedbits": fedbits}
    exec(examples_of_the_documents("    class Mean", "A class with a `kind` is"), names)
    assert list(fedbits.Store("fedbits-out/mean").columns("runs")["status"]) == ["done"]
    exec(examples_of_the_documents("    class Alternating", "    fedbits.torch.dataset(")
         .replace("test_features=..., test_labels=...", "test_features=features, test_labels=labels"),
         names | dict(zip(("features", "labels"), two_classes(60))))
    store = fedbits.run(scenario(data={"kind": "mine"}, partition={"kind": "alternating", "clients": CLIENTS}, model={"kind": "mean"}, rounds=1),
                        out="own", progress=False)
    assert list(store.columns("runs")["status"]) == ["done"]
    for kind in ("mean", "alternating"):
        assert [(check.name, check.findings) for check in fedbits.check(kind) if check.findings] == []
    with pytest.raises(fedbits.ConfigError, match="mine"):  # data sets have no checks
        fedbits.check("mine")
