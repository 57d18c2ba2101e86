"""Servers that step along messages as they arrive (FedBuff, FedAsync), against plain loops in NumPy over 200 events."""
import csv
import heapq
import os
import subprocess

import numpy as np
import pytest

CLIENTS, ROWS, P, EVENTS, LEARNING_RATE = 5, 8, 9, 200, 2.0**-5

pytestmark = pytest.mark.skipif("FEDBITS" not in os.environ, reason="TOOL MISSING: FEDBITS names no program, so its servers were NOT COMPARED")


def data_of(folder):
    """Returns the rows of each client, which it also writes: features [ROWS, P] and targets [ROWS]."""
    random = np.random.default_rng(11)
    features, targets = random.standard_normal((ROWS * CLIENTS, P - 1)), random.standard_normal(ROWS * CLIENTS)
    folder.mkdir()
    np.save(folder / "features.npy", features)
    np.save(folder / "labels.npy", targets)
    with_bias = np.hstack([features, np.ones((len(features), 1))])
    return with_bias.reshape(CLIENTS, ROWS, P), targets.reshape(CLIENTS, ROWS)


# A client needs so many operations for each of its rows that nothing else takes time, and devices differ, so that messages arrive in no regular order.
SECONDS = np.array([1.0, 2**0.5, 7**0.5, 0.5 * (5**0.5 - 1), 3**0.5])  # whose multiples never meet

SCENARIO = f"""
name = "events"
rounds = {{rounds}}
precision = "float64"
start.kind = "zero"
data = {{{{ path = "data", labels = "target", test = "none" }}}}
partition = {{{{ kind = "contiguous", clients = {CLIENTS} }}}}
model = {{{{ kind = "linear_regression" }}}}
local = {{{{ kind = "gradient", learning_rate = {LEARNING_RATE} }}}}
compressor.up = {{{{ kind = "top_k", k = {{k}}, unit = "gradient" }}}}
feedback.up.kind = "{{feedback}}"
evaluate = {{{{ every = 1000, optimum = false }}}}
devices = {{{{ kind = "csv", path = "devices.csv" }}}}
costs = {{{{ model_flops = 1e15, model_bytes = 0, local_flops = 0, local_bytes = 0, compressor_passes = 0, compressor_operations = 0, feedback_passes = 0, feedback_operations = 0 }}}}
asynchronous = {{{{ {{rule}} }}}}
"""


def run_of(folder, **values):
    """Returns the model after the events of the program, and the simulated times of the server's steps."""
    program = os.environ["FEDBITS"]
    lines = ["client,flops,bandwidth"] + [f"{client},{1e15 * ROWS / seconds:.17g},1e24" for client, seconds in enumerate(SECONDS)]
    (folder / "devices.csv").write_text("\n".join(lines) + "\n")
    (folder / "study.toml").write_text(SCENARIO.format(**values))
    subprocess.run([program, "run", folder / "study.toml", "--out", folder / "out", "--save-model", folder / "models", "--model-format", "npy",
                    "--quiet"], check=True)
    subprocess.run([program, "export", folder / "out", "--rounds", folder / "rounds.csv"], check=True, stdout=subprocess.DEVNULL)
    with open(folder / "rounds.csv", newline="") as file:
        times = [float(row["simulated_s"]) for row in csv.DictReader(file)]
    return np.load(next((folder / "models").glob("*.npy"))).ravel(), np.array(times)


def top_k(vector, k):
    kept = np.zeros_like(vector)
    places = np.argsort(-np.abs(vector), kind="stable")[:k]
    kept[places] = vector[places]
    return kept


class Clients:
    """Clients with an error memory, which moves when the server has taken their messages."""

    def __init__(self, folder, k, keeps_error):
        (self.features, self.targets), self.k, self.keeps_error = data_of(folder), k, keeps_error
        self.error, self.next_error = np.zeros((CLIENTS, P)), np.zeros((CLIENTS, P))

    def message(self, client, model):
        rows, targets = self.features[client], self.targets[client]
        vector = self.error[client] + rows.T @ (rows @ model - targets) / ROWS
        message = top_k(vector, self.k)
        self.next_error[client] = vector - message if self.keeps_error else 0
        return message

    def acknowledge(self, client):
        self.error[client] = self.next_error[client]


def play(clients, buffer_size, step):
    """Returns the model after EVENTS messages, and the times of the steps. step(x, [(message, model at its beginning, tau)]) is the server's."""
    x, version, times, buffer = np.zeros(P), 0, [0.0], []
    begun = {client: (x, 0) for client in range(CLIENTS)}
    events = [(SECONDS[client], client) for client in range(CLIENTS)]
    heapq.heapify(events)
    for _ in range(EVENTS):
        now, client = heapq.heappop(events)
        model, at = begun[client]
        buffer.append((client, clients.message(client, model), model, version - at))
        if len(buffer) < buffer_size:
            continue
        buffer.sort(key=lambda one: one[0])
        x, version = step(x, [one[1:] for one in buffer]), version + 1
        times.append(now)
        for other, *_ in buffer:
            clients.acknowledge(other)
            begun[other] = (x, version)
            heapq.heappush(events, (now + SECONDS[other], other))
        buffer.clear()
    return x, np.array(times)


FUNCTIONS = {"constant": lambda tau: 1.0, "polynomial": lambda tau: (1 + tau)**-0.5, "hinge": lambda tau: 1.0 if tau <= 4 else 1 / (10 * (tau - 4) + 1)}


@pytest.mark.parametrize("staleness", FUNCTIONS)
@pytest.mark.parametrize("buffer_size", [1, 2, 4])
@pytest.mark.parametrize("feedback, k", [("none", P), ("none", 3), ("ef14", 3)])
def test_fedbuff_is_the_plain_loop(tmp_path, staleness, buffer_size, feedback, k):
    def step(x, messages):
        return x - LEARNING_RATE * sum(FUNCTIONS[staleness](tau) * message for message, _, tau in messages) / buffer_size

    expected, times = play(Clients(tmp_path / "data", k, feedback == "ef14"), buffer_size, step)
    model, seconds = run_of(tmp_path, rounds=EVENTS // buffer_size, k=k, feedback=feedback,
                            rule=f'kind = "fedbuff", buffer = {buffer_size}, staleness = "{staleness}"')
    np.testing.assert_allclose(model, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(seconds, times, rtol=1e-10)


@pytest.mark.parametrize("staleness", FUNCTIONS)
@pytest.mark.parametrize("feedback, k", [("none", P), ("ef14", 3)])
def test_fedasync_is_the_plain_loop(tmp_path, staleness, feedback, k):
    def step(x, messages):
        (message, model, tau), = messages
        share = 0.6 * FUNCTIONS[staleness](tau)
        return (1 - share) * x + share * (model - LEARNING_RATE * message)

    expected, times = play(Clients(tmp_path / "data", k, feedback == "ef14"), 1, step)
    model, seconds = run_of(tmp_path, rounds=EVENTS, k=k, feedback=feedback, rule=f'kind = "fedasync", mixing = 0.6, staleness = "{staleness}"')
    np.testing.assert_allclose(model, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(seconds, times, rtol=1e-10)
