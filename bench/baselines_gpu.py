#!/usr/bin/env python3
"""Local SGD of many clients and sums of a server on one GPU by other means, for the table of bench/gpu_check.sh.

Microseconds per client and step:

  ceilings  PyTorch: TFLOP/s of a matrix product of 8192 x 8192 in float32, TF32 and BF16
  loop      PyTorch, one client after another
  vmap      torch.func.vmap over the clients' gradients, weights stacked
  compile   torch.compile of a step of the same
  jax       jax.vmap of the same, jitted, all steps in one call
  drjax     a whole round as DrJAX writes it (broadcast, map over the clients, mean), in JAX alone, jitted

Others:
  bmm       torch.bmm at the shapes of our products, a matrix per client, batches of 50: TFLOP/s, in float32, TF32 and BF16
  fused     PyTorch: the sum of 1,000 messages of 1M numbers, in one kernel (a matrix product; torch.compile) and in several: ms

Random images of 784 numbers in 10 classes, a minibatch of 32 for every client and step, already on the GPU: neither drawing nor gathering is
counted here, both are in ours.

  baselines_gpu.py [all | PART] [clients = 256] [steps = 5] [--json]      prints a row per model and baseline; what cannot run says why
"""
import json
import sys
import time

WORDS = [word for word in sys.argv[1:] if word != "--json"]
AS_JSON = "--json" in sys.argv
PART = WORDS.pop(0) if WORDS and not WORDS[0].isdigit() else "all"
CLIENTS = int(WORDS[0]) if WORDS else 256
STEPS = int(WORDS[1]) if len(WORDS) > 1 else 5
BATCH, RATE = 32, 0.01
UNIT = "us/client-step"


def median_seconds(work, wait, repeats=5):
    times = []
    for i in range(repeats + 1):
        wait()
        start = time.perf_counter()
        work()
        wait()
        if i:
            times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def say(name, value=None, unit=UNIT, why="", note=""):
    if AS_JSON:
        told = {"why": why} if value is None else {"value": value, "unit": unit}
        print(json.dumps({"name": name, **told, **({"note": note} if note else {})}), flush=True)
    else:
        print(f"{name:<44} " + (why if value is None else f"{value:12.2f} {unit}") + (f"  {note}" if note else ""), flush=True)


def say_failed(name, error):
    say(name, why=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"[:300])


def per_step(seconds, clients):
    return 1e6 * seconds / clients / STEPS


def torch_models(torch):
    nn = torch.nn
    return {
        "perceptron 784-200-10": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 10)),
        "softmax regression 784-10": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 10)),
        "CNN of McMahan, 1.66M": lambda: nn.Sequential(
            nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10)),
    }


def torch_place(torch):
    """Returns (device, a function that waits for it, a note)."""
    if torch.cuda.is_available():
        return "cuda", torch.cuda.synchronize, ""
    return "cpu", lambda: None, "on the CPU: PyTorch sees no GPU"


def ceilings():
    import torch

    device, wait, note = torch_place(torch)
    side = 8192 if device == "cuda" else 256
    for name, kind, tf32 in (("float32", torch.float32, False), ("TF32", torch.float32, True), ("BF16", torch.bfloat16, False)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        a, b = (torch.randn(side, side, device=device).to(kind) for _ in range(2))
        say(f"matrix product, {name}", 2e-12 * side**3 / median_seconds(lambda: a @ b, wait), "TFLOP/s", note=note)


def with_torch(baseline):
    import torch

    device, wait, note = torch_place(torch)
    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        for name, make in torch_models(torch).items():
            if tf32 and not name.startswith("CNN"):
                continue
            label = f"{baseline}: {name}" + (", tf32" if tf32 else "")
            try:
                say(label, torch_seconds(torch, baseline, make, device, wait), note=note)
            except Exception as error:  # the other models may do
                say_failed(label, error)


def torch_seconds(torch, baseline, make, device, wait):
    """Returns microseconds per client and step."""
    x = torch.randn(STEPS, CLIENTS, BATCH, 1, 28, 28, device=device)
    y = torch.randint(0, 10, (STEPS, CLIENTS, BATCH), device=device)
    model = make().to(device)
    loss = torch.nn.CrossEntropyLoss()
    if baseline == "loop":
        few = min(CLIENTS, 16)  # one after another: the time of a client does not depend on how many there are
        return per_step(median_seconds(lambda: torch_loop(torch, model, loss, x, y, few), wait), few)
    from torch.func import functional_call, grad, vmap

    start = {key: value.detach() for key, value in model.named_parameters()}
    gradient = vmap(grad(lambda w, a, b: loss(functional_call(model, w, (a,)), b)))

    def step(w, a, b):
        g = gradient(w, a, b)
        return {key: value - RATE * g[key] for key, value in w.items()}

    if baseline == "compile":
        step = torch.compile(step)

    def stacked():
        w = {key: value.expand(CLIENTS, *value.shape).clone() for key, value in start.items()}
        for t in range(STEPS):
            w = step(w, x[t], y[t])

    return per_step(median_seconds(stacked, wait), CLIENTS)


def products_of_clients():
    """torch.bmm of a matrix per client, at the shapes of the perceptron's first layer and of the CNN's second convolution, batches of 50."""
    import torch

    device, wait, note = torch_place(torch)
    batch, pixels, windows, filters = 50, 14 * 14, 5 * 5 * 32, 64
    shapes = {  # [m, d] x [d, n] for each client
        "dense 784-200, forward": (batch, 784, 200),
        "dense 784-200, by weights": (784, batch, 200),
        "convolution 5x5 of 32 to 64, forward": (batch * pixels, windows, filters),
        "convolution 5x5 of 32 to 64, by weights": (windows, batch * pixels, filters),
    }
    for kind, number, tf32 in (("float32", torch.float32, False), ("TF32", torch.float32, True), ("BF16", torch.bfloat16, False)):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        for name, (m, d, n) in shapes.items():
            label = f"bmm: {name}, {kind}"
            try:
                a, b = torch.randn(CLIENTS, m, d, device=device, dtype=number), torch.randn(CLIENTS, d, n, device=device, dtype=number)
                out = torch.empty(CLIENTS, m, n, device=device, dtype=number)
                seconds = median_seconds(lambda: torch.bmm(a, b, out=out), wait)
                shape = f"[{CLIENTS}, {m}, {d}] x [{CLIENTS}, {d}, {n}], {1e3 * seconds:.4g} ms"
                say(label, 2e-12 * CLIENTS * m * d * n / seconds, "TFLOP/s", note="; ".join(filter(None, (shape, note))))
            except Exception as error:  # the other shapes may do
                say_failed(label, error)
            a = b = out = None  # the windows of the convolution take 8 GB in float32


def sums_of_a_server():
    """The weighted sum of the clients' messages: one kernel that reads each number once is the best that a server can do."""
    import torch

    device, wait, note = torch_place(torch)
    clients, numbers, bucket = (1000, 1_000_000, 500) if device == "cuda" else (10, 10_000, 500)
    weights = torch.full((clients,), 1 / clients, device=device)
    values = torch.randn(clients, numbers, device=device)
    torch.backends.cuda.matmul.allow_tf32 = False

    def unpacked(levels, scales):
        return ((levels.view(clients, -1, bucket).float() * (scales * weights[:, None])[:, :, None]).sum(0)).view(-1)

    def timed(label, make):  # make: compiles, and returns what is timed
        try:
            work = make()
            seconds = median_seconds(work, wait)
            say(label, 1e3 * seconds, "ms", note="; ".join(filter(None, (f"{clients} clients x {numbers} numbers", note))))
        except Exception as error:  # the other sums may do
            say_failed(label, error)

    timed("fused: sum of all values, a matrix product", lambda: lambda: weights @ values)
    timed("fused: scale and sum of all values, two kernels", lambda: lambda: (weights[:, None] * values).sum(0))
    timed("fused: scale and sum of all values, torch.compile", lambda: torch.compile(lambda: (weights[:, None] * values).sum(0)))
    values = None
    levels = torch.randint(-127, 128, (clients, numbers), device=device, dtype=torch.int8)
    scales = torch.rand(clients, numbers // bucket, device=device)
    timed(f"fused: bytes in buckets of {bucket}, several kernels", lambda: lambda: unpacked(levels, scales))

    def compiled():
        one = torch.compile(unpacked)
        return lambda: one(levels, scales)

    timed(f"fused: bytes in buckets of {bucket}, torch.compile", compiled)


def torch_loop(torch, model, loss, x, y, clients):
    start = {key: value.clone() for key, value in model.state_dict().items()}
    for k in range(clients):
        model.load_state_dict(start)
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        for t in range(STEPS):
            optimizer.zero_grad(set_to_none=True)
            loss(model(x[t, k]), y[t, k]).backward()
            optimizer.step()


def jax_models(jax, jnp, key):
    """Returns {name: (forward, weights)}."""
    def dense(key, inputs, outputs):
        return [jax.random.normal(key, (inputs, outputs)) / inputs**0.5, jnp.zeros(outputs)]

    def conv(key, size, inputs, outputs):
        return [jax.random.normal(key, (size, size, inputs, outputs)) / (size * size * inputs) ** 0.5, jnp.zeros(outputs)]

    def convolved(a, w):
        a = jax.lax.conv_general_dilated(a, w[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + w[1]
        a = jax.nn.relu(a)
        return jax.lax.reduce_window(a, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def perceptron(w, a):
        return jax.nn.relu(a.reshape(BATCH, -1) @ w[0][0] + w[0][1]) @ w[1][0] + w[1][1]

    def softmax(w, a):
        return a.reshape(BATCH, -1) @ w[0][0] + w[0][1]

    def cnn(w, a):
        a = convolved(convolved(a, w[0]), w[1]).reshape(BATCH, -1)
        return jax.nn.relu(a @ w[2][0] + w[2][1]) @ w[3][0] + w[3][1]

    return {
        "perceptron 784-200-10": (perceptron, [dense(key, 784, 200), dense(key, 200, 10)]),
        "softmax regression 784-10": (softmax, [dense(key, 784, 10)]),
        "CNN of McMahan, 1.66M": (cnn, [conv(key, 5, 1, 32), conv(key, 5, 32, 64), dense(key, 3136, 512), dense(key, 512, 10)]),
    }


def stacked_clients(jax, jnp, gradient):
    """Returns a function that trains all clients in each step: the loop over steps is outside, vmap inside."""
    of_all = jax.vmap(gradient)

    def train(w, x, y):
        w = jax.tree_util.tree_map(lambda v: jnp.broadcast_to(v, (CLIENTS,) + v.shape), w)

        def step(w, batch):
            g = of_all(w, batch[0], batch[1])
            return jax.tree_util.tree_map(lambda v, d: v - RATE * d, w, g), None

        return jax.lax.scan(step, w, (x, y))[0]
    return train


def mapped_clients(jax, jnp, gradient):
    """Returns a round in the form of DrJAX: the model goes to the clients, a whole client is mapped over them, and the server takes the mean. The
    clients' axis has a name and lies on a mesh, which is one GPU here."""
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("clients",))
    placed = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("clients"))

    def client(w, x, y):
        def step(w, batch):
            g = gradient(w, batch[0], batch[1])
            return jax.tree_util.tree_map(lambda v, d: v - RATE * d, w, g), None

        return jax.lax.scan(step, w, (x, y))[0]

    def train(w, x, y):
        w = jax.tree_util.tree_map(lambda v: jax.lax.with_sharding_constraint(jnp.broadcast_to(v, (CLIENTS,) + v.shape), placed), w)
        w = jax.vmap(client, in_axes=(0, 1, 1), spmd_axis_name="clients")(w, x, y)
        return jax.tree_util.tree_map(lambda v: v.mean(0), w)
    return train


def with_jax(label, make_training):
    import jax
    import jax.numpy as jnp

    note = "" if jax.default_backend() == "gpu" else "on the CPU: JAX sees no GPU"
    key = jax.random.PRNGKey(0)
    x = jax.random.normal(key, (STEPS, CLIENTS, BATCH, 28, 28, 1))
    y = jax.random.randint(key, (STEPS, CLIENTS, BATCH), 0, 10)
    # JAX's own default on a GPU may be TF32.
    for products, suffix in (("float32", ""), ("tensorfloat32", ", tf32")):
        for name, (forward, weights) in jax_models(jax, jnp, key).items():
            if suffix and name.startswith("softmax"):
                continue

            def loss(w, a, b, forward=forward):
                z = jax.nn.log_softmax(forward(w, a))
                return -jnp.mean(jnp.take_along_axis(z, b[:, None], axis=1))

            try:
                with jax.default_matmul_precision(products):
                    train = jax.jit(make_training(jax, jnp, jax.grad(loss)))
                    result = []

                    def work():
                        result[:] = [train(weights, x, y)]

                    say(f"{label}: {name}{suffix}", per_step(median_seconds(work, lambda: jax.block_until_ready(result)), CLIENTS), note=note)
            except Exception as error:  # the other models may do
                say_failed(f"{label}: {name}{suffix}", error)


PARTS = {"ceilings": ceilings, "loop": lambda: with_torch("loop"), "vmap": lambda: with_torch("vmap"),
         "compile": lambda: with_torch("compile"), "bmm": products_of_clients, "fused": sums_of_a_server,
         "jax": lambda: with_jax("jax", stacked_clients), "drjax": lambda: with_jax("drjax", mapped_clients)}
if PART != "all" and PART not in PARTS:
    sys.exit(f"baselines_gpu.py: there is no part \"{PART}\"; all, {', '.join(PARTS)}")
for part, run in PARTS.items():
    if PART not in ("all", part):
        continue
    try:
        run()
    except ImportError as error:
        say(part, why=str(error))
