"""Error feedback in Python: the rounds of the simulator, the state of clients and server, and errors of wrong arguments."""
import csv
import os
import re
import subprocess

import numpy as np
import pytest

import fedbits

CLIENTS, P, ROUNDS = 4, 17, 4
TOP_K, RANDOM_K = fedbits.TopK(k=4), fedbits.RandomK(k=4, scaled=True)

# Feedback, its options, the operators of its channels, and the unit of the vectors.
USES = [
    ("NoFeedback", {}, TOP_K, "gradient"),
    ("EF14", {}, TOP_K, "gradient"),
    ("EF14", {}, TOP_K, "step"),
    ("EF14", {}, fedbits.AdaQS(scaled=True, double_every=2), "step"),
    ("EF21", {}, TOP_K, "gradient"),
    ("EF21", {"momentum": 0.5}, TOP_K, "gradient"),
    ("EF21SGDM", {"momentum": 0.5}, TOP_K, "gradient"),
    ("EF21Plus", {}, TOP_K, "gradient"),
    ("EF21Normalised", {}, TOP_K, "gradient"),
    ("EFBV", {}, TOP_K, "gradient"),
    ("EControl", {"eta": 0.25}, TOP_K, "gradient"),
    ("EControl", {"init": "dense"}, TOP_K, "gradient"),
    ("DIANA", {"alpha": 0.125}, RANDOM_K, "gradient"),
    ("DASHA", {"a": 0.0625, "init": "dense"}, RANDOM_K, "gradient"),
    ("ECDIANA", {"alpha": 0.125}, {"shift": RANDOM_K, "model": TOP_K}, "step"),
    ("CAFe", {}, TOP_K, "step"),
    ("Clip21", {}, TOP_K, "gradient"),
    ("MomentumCorrection", {"momentum": 0.5}, TOP_K, "step"),
    ("PowerEF", {"steps": 2}, TOP_K, "step"),
    ("Signum", {"momentum": 0.5}, fedbits.Sign(), "gradient"),
    ("ThreePC", {}, TOP_K, "gradient"),
]

ROUNDED = {"Clip21", "EF21Normalised"}  # they divide by norms, as AdaQS does, so that later gradients are rounded, and by each NumPy in its way


def name_of(use) -> str:
    return f"{use[0]}-{use[1]}-{use[3]}"


def operators_of(use):
    return use[2] if isinstance(use[2], dict) else {"": use[2]}


def make(use, **others):
    return getattr(fedbits, use[0])(use[2], num_clients=CLIENTS, P=P, unit=use[3], seed=5, **{"dtype": np.float64, **use[1], **others})


def vectors_of(number: int, dtype=np.float64) -> np.ndarray:
    return np.random.default_rng(number).standard_normal((CLIENTS, P)).astype(dtype)


def play(feedback, number: int, clients=range(CLIENTS), dtype=np.float64):
    messages = [feedback.send(client, vectors_of(number, dtype)[client], step_size=0.5) for client in clients]
    return [bytes(message) for message in messages], feedback.receive()


# ---- the simulator plays the same rounds: numbers are chosen so that no gradient is rounded ------------------------------------------------


def data_of(folder) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    features, targets = random.integers(-1, 2, (8 * CLIENTS, P - 1)).astype(float), random.integers(-3, 4, 8 * CLIENTS).astype(float)
    folder.mkdir()
    np.save(folder / "features.npy", features)
    np.save(folder / "labels.npy", targets)
    return np.hstack([features, np.ones((len(features), 1))]), targets


def value_text(value) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def table_text(kind: str, options: dict) -> str:
    return ", ".join([f'kind = "{kind}"'] + [f"{name} = {value_text(value)}" for name, value in options.items()])


def scenario_of(use, learning_rate: float) -> str:
    feedback, operators = getattr(fedbits, use[0]), operators_of(use)
    first = operators.get("", next(iter(operators.values())))
    channels = [f"{channel} = {{ {table_text(one.kind, one.options)} }}" for channel, one in operators.items() if channel]
    lines = ['name = "rounds"', f"rounds = {ROUNDS}", 'precision = "float64"', "seeds.compressor = 5", 'start.kind = "zero"',
             'data = { path = "data", labels = "target", test = "none" }', f'partition = {{ kind = "contiguous", clients = {CLIENTS} }}',
             'model = { kind = "linear_regression" }', f'local = {{ kind = "gradient", learning_rate = {learning_rate} }}',
             f"feedback.up = {{ {table_text(feedback.kind, use[1])} }}", "evaluate = { every = 1, optimum = false }",
             f"compressor.up = {{ {', '.join([table_text(first.kind, first.options), f'unit = {use[3]!r}', *channels])} }}"]
    return "\n".join(lines)


def run_of(use, learning_rate: float, folder) -> tuple[np.ndarray, int]:
    """Returns the model after the rounds of the command line, and the bits that went up."""
    program = os.environ["FEDBITS"]
    (folder / "study.toml").write_text(scenario_of(use, learning_rate))
    subprocess.run([program, "run", folder / "study.toml", "--out", folder / "out", "--save-model", folder / "models", "--model-format", "npy",
                    "--quiet"], check=True)
    subprocess.run([program, "export", folder / "out", "--runs", folder / "runs.csv"], check=True, stdout=subprocess.DEVNULL)
    with open(folder / "runs.csv", newline="") as file:
        bits = int(next(csv.DictReader(file))["bits_up"])
    return np.load(next((folder / "models").glob("*.npy"))).ravel(), bits


@pytest.mark.skipif("FEDBITS" not in os.environ, reason="TOOL MISSING: FEDBITS names no program, so feedbacks were NOT COMPARED with its rounds")
@pytest.mark.parametrize("use", USES, ids=name_of)
def test_rounds_are_those_of_a_run(use, tmp_path):
    features, targets = data_of(tmp_path / "data")
    learning_rate = 2.0**-4
    feedback, model, bits = make(use), np.zeros(P), 0
    for _ in range(ROUNDS):
        for client in range(CLIENTS):
            rows = slice(8 * client, 8 * client + 8)
            gradient = features[rows].T @ (features[rows] @ model - targets[rows]) / 8
            bits += feedback.send(client, gradient, step_size=learning_rate).bits
        model -= (learning_rate if use[3] == "gradient" else 1.0) * feedback.receive()
    expected, expected_bits = run_of(use, learning_rate, tmp_path)
    if use[0] in ROUNDED or isinstance(use[2], fedbits.AdaQS):
        np.testing.assert_allclose(model, expected, rtol=1e-12)
    else:
        np.testing.assert_array_equal(model, expected)
    assert bits == expected_bits


# ---- state -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("use", USES, ids=name_of)
def test_a_restored_feedback_goes_on_with_the_same_bytes(use):
    one, two = make(use), make(use)
    for number in range(2):
        play(one, number)
    two.load_state_dict(one.state_dict())
    assert two.round == 3
    for number in range(2, 4):
        (bytes_one, estimate_one), (bytes_two, estimate_two) = play(one, number), play(two, number)
        assert bytes_one == bytes_two
        np.testing.assert_array_equal(estimate_one, estimate_two)


@pytest.mark.parametrize("use", USES, ids=name_of)
def test_the_order_of_sending_does_not_matter(use):
    one, two = make(use), make(use)
    for number in range(3):
        messages, estimate = play(one, number)
        turned, other = play(two, number, reversed(range(CLIENTS)))
        assert messages == turned[::-1]
        np.testing.assert_array_equal(estimate, other)


@pytest.mark.parametrize("use", USES, ids=name_of)
def test_vectors_are_not_changed_and_may_be_freed(use):
    one, two = make(use), make(use)
    for number in range(3):
        kept = vectors_of(number)
        kept.flags.writeable = False
        for client in range(CLIENTS):
            one.send(client, kept[client], step_size=0.5)
            passing = vectors_of(number)[client].copy()
            two.send(client, passing, step_size=0.5)
            passing[:] = np.nan
        np.testing.assert_array_equal(kept, vectors_of(number))
        np.testing.assert_array_equal(one.receive(), two.receive())


@pytest.mark.parametrize("use", USES, ids=name_of)
def test_a_vector_that_is_not_finite_leaves_everything(use):
    one, two = make(use), make(use)
    play(one, 0), play(two, 0)
    for place in (0, P // 2, P - 1):
        for number in (np.nan, np.inf, -np.inf):
            wrong = vectors_of(1)[0].copy()
            wrong[place] = number
            with pytest.raises(fedbits.Error, match=f"^the vector is not finite at place {place}$"):
                one.send(0, wrong, step_size=0.5)
    assert one.cohort == []
    for number in range(1, 3):
        assert play(one, number)[0] == play(two, number)[0]


def test_absent_clients_keep_their_state():
    feedback = make(USES[1])
    play(feedback, 0)
    error = feedback.error(3)
    play(feedback, 1, clients=[0, 2])
    np.testing.assert_array_equal(feedback.error(3), error)
    assert feedback.round == 3


def test_the_error_is_what_was_not_sent():
    feedback = fedbits.EF14(fedbits.TopK(k=2), num_clients=1, P=5, dtype=np.float64)
    vector = np.array([5.0, -4.0, 3.0, 2.0, 1.0])
    sent = feedback.send(0, vector).decode()
    np.testing.assert_array_equal(sent, [5, -4, 0, 0, 0])
    assert not feedback.error(0).any(), "state moves when the round is closed"
    np.testing.assert_array_equal(feedback.receive(), sent)
    np.testing.assert_array_equal(feedback.error(0), vector - sent)


@pytest.mark.parametrize("use", USES, ids=name_of)
def test_discarded_messages_move_nothing(use):
    one, two = make(use), make(use)
    for _ in range(3 * CLIENTS):
        one.send(0, vectors_of(9)[0], step_size=0.25)
        one.discard(0)
    assert one.cohort == []
    one.state_dict()
    for number in range(2):
        assert play(one, number)[0] == play(two, number)[0]


def test_weights_are_those_of_the_clients_that_sent():
    feedback = fedbits.NoFeedback(fedbits.Identity(), num_clients=3, P=2, weights=[1, 1, 2], dtype=np.float64)
    feedback.send(2, np.array([4.0, 0.0]))
    feedback.send(0, np.array([0.0, 3.0]))
    np.testing.assert_allclose(feedback.receive(), [8 / 3, 1])
    feedback.send(1, np.array([1.0, 0.0]))
    np.testing.assert_array_equal(feedback.receive(weights=[3.0]), [3, 0])


def test_an_estimate_may_have_its_array():
    one, two, out = make(USES[4]), make(USES[4]), np.full(P, np.nan)
    for number in range(2):
        for feedback in (one, two):
            for client in range(CLIENTS):
                feedback.send(client, vectors_of(number)[client])
        assert one.receive(out=out) is out
        np.testing.assert_array_equal(out, two.receive())
    with pytest.raises(ValueError, match="contiguous array of 17 float64"):
        one.receive(out=np.zeros(P, np.float32))


def test_a_message_has_the_contract_of_its_vector():
    feedback = fedbits.EF21(fedbits.TopK(k=1), num_clients=1, P=4)
    assert feedback.send(0, np.ones(4, np.float32)).contract.delta == 0.25
    assert fedbits.TopK(k=1).compress(np.ones((2, 4), np.float32)).contract.delta == 0.125


def test_tensors_of_a_scope_are_compressed_one_by_one():
    feedback = fedbits.EF14(fedbits.TopK(k=1, scope="tensor"), num_clients=1, shapes=[(2, 2), (3,)])
    sent = feedback.send(0, np.array([1, 2, 3, 4, 0.1, 0.2, 0.3], np.float32)).decode()
    np.testing.assert_array_equal(np.flatnonzero(sent), [3, 6])


def test_tensors_of_pytorch_are_vectors():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: its tensors were NOT TESTED")
    feedback = fedbits.EF21(fedbits.TopK(k=2), num_clients=1, P=6)
    sent = feedback.send(0, torch.arange(6.0).reshape(2, 3)).decode()
    assert isinstance(sent, torch.Tensor) and sent.shape == (2, 3)


# ---- every feedback, and wrong arguments ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(fedbits.feedbacks()))
def test_every_feedback_is_used_or_refused_with_a_sentence(name):
    if name in {use[0] for use in USES} | {"FedPAQ"}:
        return
    with pytest.raises(fedbits.ConfigError, match="works in the simulator alone: (its|it) "):
        getattr(fedbits, name)(TOP_K, num_clients=2, P=P)
    assert "Not usable here" in getattr(fedbits, name).__doc__


@pytest.mark.parametrize("wrong, error, text", [
    (lambda: fedbits.EF21(TOP_K, num_clients=2), ValueError, "give P"),
    (lambda: fedbits.EF21(TOP_K, num_clients=0, P=3), ValueError, "num_clients is 0"),
    (lambda: fedbits.EF21("top_k", num_clients=2, P=P), TypeError, "expected a compressor"),
    (lambda: fedbits.EF21(TOP_K, num_clients=2, P=P, momentm=0.5), fedbits.ConfigError, "did you mean 'momentum'"),
    (lambda: fedbits.EF21(TOP_K, num_clients=2, P=P, unit="step"), fedbits.ConfigError, "unit must be"),
    (lambda: fedbits.EF21(TOP_K, num_clients=2, P=3), fedbits.ConfigError, "more than the 3 parameters"),
    (lambda: fedbits.DIANA(TOP_K, num_clients=2, P=P), fedbits.ConfigError, "needs an unbiased operator"),
    (lambda: fedbits.EF14(fedbits.HardThreshold(threshold=0.1, rule="lambda"), num_clients=2, P=P), fedbits.ConfigError, "the input is a gradient"),
    (lambda: fedbits.EF14(fedbits.SZ(error_bound=0.1, rule="gamma"), num_clients=2, P=P, unit="step"), fedbits.ConfigError, 'rule = "lambda"'),
    (lambda: fedbits.EF14(fedbits.DQSGD(rule="gamma_steps"), num_clients=2, P=P, unit="update"), fedbits.ConfigError, "only the simulator knows"),
    (lambda: fedbits.EF14(fedbits.PowerSGD(rank=1), num_clients=2, shapes=[(4, 4)]), fedbits.ConfigError, "sends in phases"),
    (lambda: fedbits.ECDIANA({"shift": RANDOM_K}, num_clients=2, P=P), ValueError, "compressor for its channel 'model'"),
    (lambda: fedbits.EF21({"up": TOP_K}, num_clients=2, P=P), ValueError, "has no channel 'up'"),
    (lambda: fedbits.EF21(TOP_K, num_clients=2, P=P, weights=[1]), ValueError, "1 weights for 2 clients"),
    (lambda: make(USES[4]).send(9, vectors_of(0)[0]), ValueError, "client is 9"),
    (lambda: make(USES[4]).send(0, vectors_of(0)[0].astype(np.float32)), TypeError,
     'the vector has float32; this feedback was made for float64: make it with dtype="float32", or convert the vector to float64'),
    (lambda: fedbits.EF21(fedbits.TopK(k=2), num_clients=1, P=4).send(0, np.ones(4)), TypeError, 'make it with dtype="float64"'),
    (lambda: make(USES[4]).receive(out=np.empty(17, np.float32)), ValueError, "out is an array of float32 with the shape (17,)"),
    (lambda: make(USES[4]).send(0, np.zeros(3)), ValueError, "made for 17"),
    (lambda: make(USES[4]).receive(), fedbits.Error, "no client has sent in round 1"),
    (lambda: make(USES[4]).discard(1), fedbits.Error, "has not sent"),
    (lambda: make(USES[4]).load_state_dict(make(USES[1]).state_dict()), ValueError, "a state of 'ef14', not of 'ef21'"),
    (lambda: make(USES[4]).load_state_dict(make(USES[4]).state_dict() | {"state": b"nonsense"}), ValueError, "does not match its checksum"),
    (lambda: fedbits.Feedback(TOP_K, num_clients=1, P=1), TypeError, "base of all kinds"),
    (lambda: fedbits.EF21(TOP_K, num_clients=2.5, P=P), TypeError, "num_clients is 2.5; it must be a whole number"),
    (lambda: fedbits.EF21(TOP_K, num_clients=2, P="10"), TypeError, "P is '10'; it must be a whole number"),
    (lambda: fedbits.EF21(TOP_K, num_clients=2, shapes=[10]), TypeError, "must be the shape of a tensor"),
    (lambda: fedbits.EF21(TOP_K, num_clients=2, P=P, seed=-1), ValueError, "seed is -1; it must be from 0"),
    (lambda: fedbits.EF21(TOP_K, num_clients=2, P=P, weights=1), TypeError, "weights is 1; it must be a list of numbers"),
    (lambda: fedbits.EF21(TOP_K, num_clients=2, P=P, dtype="float16"), TypeError, "dtype is float16; it must be float32 or float64"),
    (lambda: make(USES[4]).send("0", vectors_of(0)[0]), TypeError, "client is '0'; it must be a whole number"),
    (lambda: make(USES[4]).send(0, vectors_of(0)[0], step_size=-1), ValueError, "step_size is -1.0; it must be above 0 and finite"),
    (lambda: make(USES[4]).error(9), ValueError, "client is 9; it must be from 0 to 3"),
    (lambda: make(USES[4]).discard("a"), TypeError, "client is 'a'; it must be a whole number"),
    (lambda: make(USES[4]).receive([1.0, np.nan]), ValueError, "weights[1] is nan; it must be finite"),
    (lambda: make(USES[4]).receive(out=[0.0] * P), TypeError, "out is of type list"),
    (lambda: make(USES[4]).load_state_dict({}), ValueError, "must be a dict of state_dict()"),
    (lambda: make(USES[4]).load_state_dict({"kind": "ef21", "round": 1, "state": "text"}), TypeError, "the state's bytes are of type str"),
])
def test_wrong_arguments_are_named(wrong, error, text):
    with pytest.raises(error, match=re.escape(text)):
        wrong()


def test_a_client_sends_once_a_round():
    feedback = make(USES[4])
    feedback.send(1, vectors_of(0)[1])
    with pytest.raises(fedbits.Error, match="client 1 has sent in round 1"):
        feedback.send(1, vectors_of(0)[1])
    with pytest.raises(fedbits.Error, match="the step size changes"):
        feedback.send(2, vectors_of(0)[2], step_size=0.25)
    with pytest.raises(fedbits.Error, match="round 1 is open"):
        feedback.state_dict()
    assert feedback.cohort == [1]


def test_a_method_that_needs_every_client_says_so():
    feedback = make(next(use for use in USES if use[0] == "DASHA"))
    feedback.send(1, vectors_of(0)[1])
    with pytest.raises(fedbits.Error, match="dasha needs a message of every client in every round; 1 of 4"):
        feedback.receive()


def test_a_threshold_that_follows_gamma_is_one_of_the_update():
    def sent(step_size, **options):
        feedback = fedbits.EF14(fedbits.HardThreshold(**options), num_clients=1, P=P, unit="update", dtype=np.float64)
        return feedback.send(0, np.linspace(-1, 1, P), step_size=step_size).decode()
    followed = sent(0.25, threshold=2.0, rule="gamma")
    assert np.array_equal(followed, sent(0.25, threshold=0.5)) and not np.array_equal(followed, sent(0.125, threshold=2.0, rule="gamma"))
