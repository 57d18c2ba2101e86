#!/usr/bin/env python3
"""Local SGD of many clients on one GPU by other means, for the table of bench/gpu_check.sh: microseconds per client and step.

  loop    PyTorch, one client after another
  vmap    torch.func.vmap over the clients' gradients, weights stacked
  jax     jax.vmap of the same, jitted, all steps in one call

Random images of 784 numbers in 10 classes, a minibatch of 32 for every client and step, already on the GPU: neither drawing nor gathering is
counted here, both are in ours. Also the rates that a matrix product of 8192 x 8192 reaches, in float32 and TF32.

  rivals_gpu.py [clients = 256] [steps = 5]      prints one line per model and rival; what cannot run says why
"""
import sys
import time

CLIENTS = int(sys.argv[1]) if len(sys.argv) > 1 else 256
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
BATCH, RATE = 32, 0.01


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


def say(model, rival, seconds, clients):
    print(f"{model:<28} {rival:<6} {1e6 * seconds / clients / STEPS:12.2f} us/client-step", flush=True)


def torch_models(torch):
    nn = torch.nn
    return {
        "perceptron 784-200-10": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 10)),
        "softmax regression 784-10": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 10)),
        "CNN of McMahan, 1.66M": lambda: nn.Sequential(
            nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10)),
    }


def with_torch():
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    if device == "cuda":
        side = 8192
        a, b = torch.randn(side, side, device=device), torch.randn(side, side, device=device)
        for name, tf32 in (("float32", False), ("TF32", True)):
            torch.backends.cuda.matmul.allow_tf32 = tf32
            print(f"matrix product, {name}: {2e-12 * side**3 / median_seconds(lambda: a @ b, wait):.1f} TFLOP/s", flush=True)
    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        for name, make in torch_models(torch).items():
            if tf32 and not name.startswith("CNN"):
                continue
            torch_model(torch, name + (", TF32" if tf32 else ""), make, device, wait)


def torch_model(torch, name, make, device, wait):
    few = min(CLIENTS, 16)  # one after another: the time of a client does not depend on how many there are
    x = torch.randn(STEPS, CLIENTS, BATCH, 1, 28, 28, device=device)
    y = torch.randint(0, 10, (STEPS, CLIENTS, BATCH), device=device)
    model = make().to(device)
    start = {key: value.clone() for key, value in model.state_dict().items()}
    loss = torch.nn.CrossEntropyLoss()

    def loop():
        for k in range(few):
            model.load_state_dict(start)
            optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
            for step in range(STEPS):
                optimizer.zero_grad(set_to_none=True)
                loss(model(x[step, k]), y[step, k]).backward()
                optimizer.step()

    say(name, "loop", median_seconds(loop, wait), few)
    try:
        from torch.func import functional_call, grad, vmap
    except ImportError:
        print(f"{name:<28} vmap   torch.func is missing in {torch.__version__}")
        return
    weights = {key: value.detach() for key, value in model.named_parameters()}
    gradient = vmap(grad(lambda w, a, b: loss(functional_call(model, w, (a,)), b)))

    def stacked():
        w = {key: value.expand(CLIENTS, *value.shape).clone() for key, value in weights.items()}
        for step in range(STEPS):
            g = gradient(w, x[step], y[step])
            w = {key: value - RATE * g[key] for key, value in w.items()}

    try:
        say(name, "vmap", median_seconds(stacked, wait), CLIENTS)
    except RuntimeError as error:
        print(f"{name:<28} vmap   {str(error).splitlines()[0]}")


def with_jax():
    import jax
    import jax.numpy as jnp

    key = jax.random.PRNGKey(0)
    x = jax.random.normal(key, (STEPS, CLIENTS, BATCH, 28, 28, 1))
    y = jax.random.randint(key, (STEPS, CLIENTS, BATCH), 0, 10)

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

    models = {
        "perceptron 784-200-10": (perceptron, [dense(key, 784, 200), dense(key, 200, 10)]),
        "softmax regression 784-10": (softmax, [dense(key, 784, 10)]),
        "CNN of McMahan, 1.66M": (cnn, [conv(key, 5, 1, 32), conv(key, 5, 32, 64), dense(key, 3136, 512), dense(key, 512, 10)]),
    }
    for name, (forward, weights) in models.items():
        def loss(w, a, b, forward=forward):
            z = jax.nn.log_softmax(forward(w, a))
            return -jnp.mean(jnp.take_along_axis(z, b[:, None], axis=1))

        gradient = jax.vmap(jax.grad(loss))

        @jax.jit
        def train(w, gradient=gradient):
            w = jax.tree_util.tree_map(lambda v: jnp.broadcast_to(v, (CLIENTS,) + v.shape), w)

            def step(w, batch):
                g = gradient(w, batch[0], batch[1])
                return jax.tree_util.tree_map(lambda v, d: v - RATE * d, w, g), None

            return jax.lax.scan(step, w, (x, y))[0]

        result = []

        def work():
            result[:] = [train(weights)]

        def wait():
            jax.block_until_ready(result)

        say(name, "jax", median_seconds(work, wait), CLIENTS)


for run in (with_torch, with_jax):
    try:
        run()
    except ImportError as error:
        print(f"{run.__name__}: {error}")
