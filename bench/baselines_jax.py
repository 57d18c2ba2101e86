#!/usr/bin/env python3
"""JAX doing the same local steps and rounds as neural_bench and federated_bench, and a whole run, in turn with ours.

Usage: taskset -c CORE python3 bench/baselines_jax.py build/bench [REPEATS [NAME | round | softmax]]
FEDBITS_DATA names the folder with fashion-mnist/ and mnist/. A step takes the best of several forms: one jitted step per call, ten steps in one call
(scan), four clients at once (vmap, per client and step), each with images as {channels, height, width} and with channels last. XLA uses one
thread; time is the processor's, which leaves out other programs.
"""
import gzip
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from baseline_turns import STEPS, Ours, best_forms, in_turn, record, seconds_of, steps_in_turn

SCANNED, CLIENTS, RATE = 10, 4, 1e-3


class Weights:
    """Draws weights as PyTorch's modules do."""

    def __init__(self):
        self.random = np.random.default_rng(1)

    def uniform(self, fan_in, *shape):
        return jnp.asarray(self.random.uniform(-(fan_in**-0.5), fan_in**-0.5, shape), jnp.float32)

    def dense(self, i, o):
        return {"w": self.uniform(i, i, o), "b": self.uniform(i, o)}

    def conv(self, i, o, k, last, bias=True):
        shape = (k, k, i, o) if last else (o, i, k, k)
        w = {"w": self.uniform(i * k * k, *shape)}
        return w | {"b": self.uniform(i * k * k, o)} if bias else w


def dense(w, x):
    return x @ w["w"] + w["b"]


def conv(w, x, last, padding=0, stride=1):
    numbers = ("NHWC", "HWIO", "NHWC") if last else ("NCHW", "OIHW", "NCHW")
    y = lax.conv_general_dilated(x, w["w"], (stride, stride), [(padding, padding)] * 2, dimension_numbers=numbers)
    return y if "b" not in w else y + (w["b"] if last else w["b"][:, None, None])


def pool(x, last):
    window = (1, 2, 2, 1) if last else (1, 1, 2, 2)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")


def flat(x):
    return x.reshape(x.shape[0], -1)


def mlp(draw, sizes, last):
    weights = [draw.dense(i, o) for i, o in zip(sizes, sizes[1:])]

    def network(w, x):
        x = flat(x)
        for layer in w[:-1]:
            x = jax.nn.relu(dense(layer, x))
        return dense(w[-1], x)

    return weights, network


def pooled(draw, convs, denses, last):
    weights = [draw.conv(i, o, 5, last) for i, o, _ in convs], [draw.dense(i, o) for i, o in zip(denses, denses[1:])]

    def network(w, x):
        for layer, (_, _, padding) in zip(w[0], convs):
            x = pool(jax.nn.relu(conv(layer, x, last, padding)), last)
        x = flat(x)
        for layer in w[1][:-1]:
            x = jax.nn.relu(dense(layer, x))
        return dense(w[1][-1], x)

    return weights, network


def lstm(draw, _):
    units = 256
    layers = [{"w": draw.uniform(units, i, 4 * units), "h": draw.uniform(units, units, 4 * units), "b": draw.uniform(units, 4 * units)} for i in (8, units)]
    weights = {"embedding": draw.uniform(1, 90, 8), "layers": layers, "out": draw.dense(units, 90)}

    def network(w, x):
        x = w["embedding"][x].transpose(1, 0, 2)
        for layer in w["layers"]:
            sums = x @ layer["w"] + layer["b"]

            def step(state, row, recurrent=layer["h"]):
                h, c = state
                i, f, g, o = jnp.split(row + h @ recurrent, 4, axis=-1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (h, c), h

            zero = jnp.zeros((x.shape[1], units))
            x = lax.scan(step, (zero, zero), sums)[1]
        return dense(w["out"], x[-1])

    return weights, network


def group_norm(w, x, last, groups=2):
    shape = x.shape
    y = x.reshape(*shape[:-1], groups, -1) if last else x.reshape(shape[0], groups, -1)
    axes = (1, 2, 4) if last else (2,)
    mean, variance = y.mean(axes, keepdims=True), y.var(axes, keepdims=True)
    y = ((y - mean) * lax.rsqrt(variance + 1e-5)).reshape(shape)
    return y * w["w"] + w["b"] if last else y * w["w"][:, None, None] + w["b"][:, None, None]


def resnet18(draw, last):
    def normed(i, o, k):
        return {"conv": draw.conv(i, o, k, last, bias=False), "norm": {"w": jnp.ones(o), "b": jnp.zeros(o)}}

    weights, strides, before = {"stem": normed(3, 64, 3), "blocks": [], "out": draw.dense(512, 10)}, [], 64
    for width in (64, 128, 256, 512):
        for stride in (2 if width > 64 else 1, 1):
            block = {"first": normed(before, width, 3), "second": normed(width, width, 3)}
            weights["blocks"].append(block | ({"beside": normed(before, width, 1)} if stride > 1 else {}))
            strides.append(stride)
            before = width

    def apply(w, x, padding, stride=1):
        return group_norm(w["norm"], conv(w["conv"], x, last, padding, stride), last)

    def network(w, x):
        x = jax.nn.relu(apply(w["stem"], x, 1))
        for block, stride in zip(w["blocks"], strides):
            y = apply(block["second"], jax.nn.relu(apply(block["first"], x, 1, stride)), 1)
            x = jax.nn.relu(y + (apply(block["beside"], x, 0, stride) if stride > 1 else x))
        return dense(w["out"], x.mean((1, 2) if last else (2, 3)))

    return weights, network


VGG = ((64, 1), (128, 1), (256, 0), (256, 1), (512, 0), (512, 1), (512, 0), (512, 1))


def vgg11(draw, last):
    widths = [3] + [width for width, _ in VGG]
    weights = [draw.conv(i, o, 3, last) for i, o in zip(widths, widths[1:])], draw.dense(512, 10)

    def network(w, x):
        for layer, (_, halves) in zip(w[0], VGG):
            x = jax.nn.relu(conv(layer, x, last, 1))
            x = pool(x, last) if halves else x
        return dense(w[1], flat(x))

    return weights, network


NETWORKS = {
    "MLP": lambda draw, last: mlp(draw, (784, 200, 10), last),
    "2NN": lambda draw, last: mlp(draw, (784, 200, 200, 10), last),
    "LeNet": lambda draw, last: pooled(draw, ((1, 6, 2), (6, 16, 0)), (400, 120, 84, 10), last),
    "CNN": lambda draw, last: pooled(draw, ((1, 32, 2), (32, 64, 2)), (3136, 512, 10), last),
    "LSTM": lstm,
    "ResNet-18": resnet18,
    "VGG-11": vgg11,
}


def inputs_of(name, batch, last):
    random = np.random.default_rng(2)
    if name == "LSTM":
        return jnp.asarray(random.integers(0, 90, (batch, 80))), jnp.asarray(random.integers(0, 90, batch))
    shape = (3, 32, 32) if name in ("ResNet-18", "VGG-11") else (1, 28, 28)
    images = random.random((batch, *shape), np.float32)
    return jnp.asarray(images.transpose(0, 2, 3, 1) if last else images), jnp.asarray(random.integers(0, 10, batch))


def steps_of(name, form, last):
    """Returns (run, steps per call): y -= rate * gradient, `form` being jit, scan or vmap."""
    batch, count = STEPS[name]
    weights, network = NETWORKS[name](Weights(), last)
    x, y = inputs_of(name, batch, last)

    def loss(w, x, y):
        z = jax.nn.log_softmax(network(w, x))
        return -jnp.take_along_axis(z, y[:, None], 1).mean()

    def step(w, x, y):
        return jax.tree.map(lambda a, g: a - RATE * g, w, jax.grad(loss)(w, x, y))

    def scanned(w, x, y):
        return lax.scan(lambda a, row: (step(a, *row), None), w, (x, y))[0]

    inner = {"jit": 1, "scan": SCANNED, "vmap": CLIENTS}[form]
    if form != "jit":
        x, y = jnp.stack([x] * inner), jnp.stack([y] * inner)
    if form == "vmap":
        weights = jax.tree.map(lambda a: jnp.stack([a] * inner), weights)
    call = jax.jit({"jit": step, "scan": scanned, "vmap": jax.vmap(step)}[form], donate_argnums=0)
    state, calls = [jax.block_until_ready(weights)], max(1, count // inner)

    def run():
        for _ in range(calls):
            state[0] = call(state[0], x, y)
        jax.block_until_ready(state[0])

    return run, calls * inner


def forms_of(name):
    layouts = {"": False} if name in ("MLP", "2NN", "LSTM") else {"": False, ", channels last": True}
    inner = ("jit", "scan", "vmap") if name in ("MLP", "2NN", "LeNet", "CNN") else ("jit",)
    return {form + suffix: lambda form=form, last=last: steps_of(name, form, last) for form in inner for suffix, last in layouts.items()}


def round_of_2nn():
    """FedAvg of ten clients as one compiled call: their minibatches in a scan, the clients side by side, the mean of their weights."""
    clients, rows, batch = 10, 600, 10
    weights, network = mlp(Weights(), (784, 200, 200, 10), False)
    images, labels = inputs_of("2NN", clients * rows, False)
    images, labels = images.reshape(clients, rows, 784), labels.reshape(clients, rows)

    def loss(w, x, y):
        return -jnp.take_along_axis(jax.nn.log_softmax(network(w, x)), y[:, None], 1).mean()

    def local(w, x, y, order):
        step = lambda a, part: (jax.tree.map(lambda p, g: p - 0.01 * g, a, jax.grad(loss)(a, x[part], y[part])), None)
        return lax.scan(step, w, order.reshape(-1, batch))[0]

    def play(w, key):
        order = jax.vmap(lambda one: jax.random.permutation(one, rows))(jax.random.split(key, clients))
        moved = jax.vmap(local, (None, 0, 0, 0))(w, images, labels, order)
        return jax.tree.map(lambda a: a.mean(0), moved)

    def in_turn_of(w, key):  # one client after another, compiled all the same
        order = jax.vmap(lambda one: jax.random.permutation(one, rows))(jax.random.split(key, clients))
        moved = lax.map(lambda own: local(w, *own), (images, labels, order))
        return jax.tree.map(lambda a: a.mean(0), moved)

    def made(function):
        call, state, key = jax.jit(function, donate_argnums=0), [jax.block_until_ready(jax.tree.map(jnp.copy, weights))], jax.random.key(1)

        def run():
            state[0] = jax.block_until_ready(call(state[0], key))

        return run, 1

    return {"vmap over clients": lambda: made(play), "clients in a scan": lambda: made(in_turn_of)}


def compare_rounds(folder, repeats):
    ours = Ours(folder + "/federated_bench")
    ours.seconds("2NN")
    forms = best_forms(round_of_2nn())
    own, theirs, ratio, _ = in_turn(lambda: ours.seconds("2NN")[0], forms, repeats)
    best = min(theirs, key=theirs.get)
    print(f"round 2NN   1 thread   ours {1e3 * own:9.3f} ms  JAX {1e3 * theirs[best]:9.3f} ms ({best})   {ratio[best]:.2f} times", flush=True)
    record("rounds", name="2NN", threads=1, baseline="JAX", form=best, ms=1e3 * own, baseline_ms=1e3 * theirs[best], times=ratio[best])


# ---- softmax regression on MNIST, as scenarios/library/flute-lr-mnist.toml


def softmax_on_mnist():
    """Returns a function that plays 100 rounds of 10 of 1,000 clients with an evaluation every 10 rounds; a round is one compiled call."""
    clients, rows, batch, per_round = 1000, 60, 10, 10

    def read(kind, count):
        folder = pathlib.Path(os.environ["FEDBITS_DATA"]) / "mnist"
        content = []
        for name, head in ((f"{kind}-images-idx3-ubyte", 16), (f"{kind}-labels-idx1-ubyte", 8)):
            plain = folder / name
            raw = plain.read_bytes() if plain.exists() else gzip.open(folder / (name + ".gz")).read()
            content.append(np.frombuffer(raw, np.uint8, offset=head))
        return jnp.asarray((content[0].reshape(count, 784) / 255 - 0.1307) / 0.3081, jnp.float32), jnp.asarray(content[1], jnp.int32)

    images, labels = read("train", 60000)
    order = np.random.default_rng(1).permutation(60000)
    images, labels = images[order].reshape(clients, rows, 784), labels[order].reshape(clients, rows)
    tests = read("t10k", 10000)

    def loss(w, x, y):
        return -jnp.take_along_axis(jax.nn.log_softmax(dense(w, x)), y[:, None], 1).mean()

    def local(w, x, y, order):
        step = lambda a, part: (jax.tree.map(lambda p, g: p - 0.03 * g, a, jax.grad(loss)(a, x[part], y[part])), None)
        return lax.scan(step, w, order.reshape(-1, batch))[0]

    @jax.jit
    def play(w, key):
        chosen = jax.random.choice(key, clients, (per_round,), replace=False)
        order = jax.vmap(lambda one: jax.random.permutation(one, rows))(jax.random.split(key, per_round))
        moved = jax.vmap(local, (None, 0, 0, 0))(w, images[chosen], labels[chosen], order)
        return jax.tree.map(lambda a: a.mean(0), moved)

    @jax.jit
    def evaluate(w):
        x, y = tests
        return loss(w, x, y), (dense(w, x).argmax(1) == y).mean()

    def run():
        w = {"w": jnp.zeros((784, 10)), "b": jnp.zeros(10)}
        for number in range(1, 101):
            w = play(w, jax.random.key(number))
            if number % 10 == 0:
                result = evaluate(w)
        return jax.block_until_ready(result)

    return run


def compare_softmax(folder, repeats):
    """Our loop with its evaluations is the time of the rounds that `run -v` tells."""
    program, root = pathlib.Path(folder).parent / "fedbits", pathlib.Path(__file__).resolve().parent.parent
    theirs_run = softmax_on_mnist()
    accuracy = float(theirs_run()[1])
    own, whole, theirs = [], [], []
    with tempfile.TemporaryDirectory() as out:
        for _ in range(repeats):
            begin = time.perf_counter()
            said = subprocess.run([program, "run", root / "scenarios/library/flute-lr-mnist.toml", "--threads", "1", "--again", "--out", out, "-v"],
                                  capture_output=True, text=True, check=True)
            whole.append(time.perf_counter() - begin)
            own.append(float(re.search(r"rounds in ([\d.]+) s", said.stdout + said.stderr)[1]))
            theirs.append(seconds_of(theirs_run))
    own, whole, theirs = map(statistics.median, (own, whole, theirs))
    print(f"softmax regression on MNIST: ours {own:.3f} s, {whole:.3f} s with loading and the store; JAX {theirs:.3f} s ({accuracy:.3f})"
          f"   {theirs / own:.2f} times", flush=True)
    record("softmax", seconds=own, whole=whole, baseline_s=theirs, times=theirs / own)


def main():
    folder, repeats = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9
    only = sys.argv[3] if len(sys.argv) > 3 else ""
    ours = Ours(folder + "/neural_bench")
    for name in STEPS:
        if only in ("", name):
            steps_in_turn(ours, "JAX", name, forms_of(name), repeats)
    if only in ("", "round"):
        compare_rounds(folder, repeats)
    if only in ("", "softmax"):
        compare_softmax(folder, repeats)


if __name__ == "__main__":
    main()
