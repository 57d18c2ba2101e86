#!/usr/bin/env python3
"""PyTorch doing the same local steps and rounds as neural_bench and federated_bench, in turn with them.

Usage: OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 taskset -c CORE python3 bench/baselines_torch.py build/bench [REPEATS [steps|rounds [NAME]]]
FEDBITS_DATA names the folder with fashion-mnist/. A step takes the best of several forms of PyTorch: plain, images with channels last, the
optimizer's foreach and fused loops, and compiled. One thread is timed by the processor's clock, which leaves out other programs; two
threads (rounds alone) by the wall's, which needs a quiet machine. PyTorch's images are random numbers. The wheel of PyPI multiplies with MKL
and oneDNN; Debian's package is a weaker reference.
"""
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

from baseline_turns import STEPS, Ours, best_forms, in_turn, record, steps_in_turn


def conv(i, o, padding):
    return [nn.Conv2d(i, o, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2)]


class CharLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.out = nn.Embedding(90, 8), nn.LSTM(8, 256, 2, batch_first=True), nn.Linear(256, 90)

    def forward(self, x):
        return self.out(self.lstm(self.embedding(x))[0][:, -1])


class Residual(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.GroupNorm(2, o)
        self.conv2, self.norm2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.GroupNorm(2, o)
        self.beside = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.GroupNorm(2, o)) if stride > 1 else nn.Identity()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.norm2(self.conv2(self.relu(self.norm1(self.conv1(x)))))
        return self.relu(y + self.beside(x))


def resnet18():
    layers, before = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.GroupNorm(2, 64), nn.ReLU(inplace=True)], 64
    for width in (64, 128, 256, 512):
        layers += [Residual(before, width, 2 if width > 64 else 1), Residual(width, width, 1)]
        before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def vgg11():
    layers, before = [], 3
    for width, halves in ((64, 1), (128, 1), (256, 0), (256, 1), (512, 0), (512, 1), (512, 0), (512, 1)):
        layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU(inplace=True)] + [nn.MaxPool2d(2)] * halves
        before = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 10))


NETWORKS = {
    "MLP": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 10)),
    "2NN": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10)),
    "LeNet": lambda: nn.Sequential(
        *conv(1, 6, 2), *conv(6, 16, 0), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)
    ),
    "CNN": lambda: nn.Sequential(*conv(1, 32, 2), *conv(32, 64, 2), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10)),
    "LSTM": CharLstm,
    "ResNet-18": resnet18,
    "VGG-11": vgg11,
}
ROUNDS = {"2NN": (600, 10), "LeNet": (600, 32), "CNN": (100, 10)}  # rows of a client, batch; ten clients, one epoch
CLIENTS = 10


def inputs_of(name, batch):
    if name == "LSTM":
        return torch.randint(90, (batch, 80)), torch.randint(90, (batch,))
    shape = (3, 32, 32) if name in ("ResNet-18", "VGG-11") else (1, 28, 28)
    return torch.rand(batch, *shape), torch.randint(10, (batch,))


def steps_of(name, channels_last=False, compiled=False, **loops):
    """Local steps of one network: zero_grad, forward, backward, plain SGD."""
    batch, count = STEPS[name]
    torch.manual_seed(1)
    model, loss = NETWORKS[name](), nn.CrossEntropyLoss()
    x, y = inputs_of(name, batch)
    if channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, **loops)
    called = torch.compile(model) if compiled else model

    def run():
        for _ in range(count):
            optimizer.zero_grad()
            loss(called(x), y).backward()
            optimizer.step()

    return run, count


def forms_of(name):
    forms = {"plain": {}, "foreach": {"foreach": True}, "fused": {"fused": True}, "compiled": {"compiled": True, "fused": True}}
    if name not in ("MLP", "2NN", "LSTM"):
        forms |= {"channels last": {"channels_last": True, "fused": True}}
        forms |= {"channels last, compiled": {"channels_last": True, "compiled": True, "fused": True}}
    return {form: lambda settings=settings: steps_of(name, **settings) for form, settings in forms.items()}


def data_of(name):
    rows, _ = ROUNDS[name]
    return torch.rand(CLIENTS * rows, 1, 28, 28), torch.randint(10, (CLIENTS * rows,))


def loop_of(name, with_loader):
    """FedAvg, one client after another: one shared model, its state copied in, an optimizer per client, the mean of the states."""
    rows, batch = ROUNDS[name]
    images, labels = data_of(name)
    data = TensorDataset(images, labels)
    clients = [Subset(data, range(k * rows, (k + 1) * rows)) for k in range(CLIENTS)]
    model, loss = NETWORKS[name](), nn.CrossEntropyLoss()
    state = {key: value.clone() for key, value in model.state_dict().items()}

    def batches(k):
        if with_loader:
            return DataLoader(clients[k], batch_size=batch, shuffle=True)
        return ((images[part], labels[part]) for part in (k * rows + torch.randperm(rows)).split(batch))

    def run():
        total = {key: torch.zeros_like(value) for key, value in state.items()}
        for k in range(CLIENTS):
            model.load_state_dict(state)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=not with_loader)
            for x, y in batches(k):
                optimizer.zero_grad()
                loss(model(x), y).backward()
                optimizer.step()
            for key, value in model.state_dict().items():
                total[key].add_(value, alpha=1 / CLIENTS)
        state.update(total)

    return run, 1


def batched_2nn():
    """FedAvg with the layers of all clients in one baddbmm, and one step for all of them."""
    rows, batch = ROUNDS["2NN"]
    images, labels = data_of("2NN")
    images, labels = images.view(CLIENTS, rows, -1), labels.view(CLIENTS, rows)
    sizes = (784, 200, 200, 10)
    model = [tensor for i, o in zip(sizes, sizes[1:]) for tensor in ((torch.rand(i, o) * 2 - 1) / i**0.5, torch.zeros(1, o))]

    def network(w, x):
        for layer in range(0, len(w), 2):
            x = torch.baddbmm(w[layer + 1], x, w[layer])
            x = x.relu() if layer + 2 < len(w) else x
        return x

    def run():
        weights = [tensor.expand(CLIENTS, *tensor.shape).clone().requires_grad_() for tensor in model]
        order = torch.stack([torch.randperm(rows) for _ in range(CLIENTS)])
        clients = torch.arange(CLIENTS)[:, None]
        for part in order.split(batch, 1):
            z = network(weights, images[clients, part])
            loss = nn.functional.cross_entropy(z.reshape(-1, 10), labels[clients, part].reshape(-1), reduction="sum") / batch
            with torch.no_grad():
                torch._foreach_add_(weights, torch.autograd.grad(loss, weights), alpha=-0.01)
        for tensor, own in zip(model, weights):
            tensor.copy_(own.detach().mean(0))

    return run, 1


def compare_rounds(ours, name, threads, repeats):
    torch.set_num_threads(threads)
    forms = {"a loop with loaders": lambda: loop_of(name, True), "a loop, rows by index": lambda: loop_of(name, False)}
    if name == "2NN":
        forms["all clients in one baddbmm"] = batched_2nn
    forms = best_forms(forms, threads=threads)
    ours.seconds(name, threads)
    own, theirs, ratio, _ = in_turn(lambda: ours.seconds(name, threads)[0], forms, repeats, threads=threads)
    best = min(theirs, key=theirs.get)
    print(f"round {name:5s} {threads} thread{'s' if threads > 1 else ' '}  ours {1e3 * own:9.3f} ms  PyTorch {1e3 * theirs[best]:9.3f} ms ({best})"
          f"   {ratio[best]:.2f} times", flush=True)
    record("rounds", name=name, threads=threads, baseline="PyTorch", form=best, ms=1e3 * own, baseline_ms=1e3 * theirs[best], times=ratio[best])


def main():
    folder, repeats = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9
    kinds = [sys.argv[3]] if len(sys.argv) > 3 else ["steps", "rounds"]
    torch.set_num_threads(1)
    for kind in kinds:
        ours = Ours(folder + ("/neural_bench" if kind == "steps" else "/federated_bench"))
        for name in STEPS if kind == "steps" else ROUNDS:
            if len(sys.argv) > 4 and sys.argv[4] != name:
                continue
            if kind == "steps":
                steps_in_turn(ours, "PyTorch", name, forms_of(name), repeats)
            else:
                for threads in (1, 2):
                    compare_rounds(ours, name, threads, repeats)


if __name__ == "__main__":
    main()
