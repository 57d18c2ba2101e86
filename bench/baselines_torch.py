#!/usr/bin/env python3
"""Plain PyTorch doing the same local steps and rounds as neural_bench and federated_bench, in turn with them.

Usage: OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python3 bench/baselines_torch.py build/bench [REPEATS [steps|rounds [NAME]]]
FEDBITS_DATA names the folder with fashion-mnist/. One thread is timed by the processor's clock, which leaves out other programs; two
threads by the wall's, which needs a quiet machine. PyTorch's images are random numbers. Debian's PyTorch is a weak reference: its products
are OpenBLAS's and its own kernels AVX2's.
"""
import statistics
import subprocess
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


def conv(i, o, padding):
    return [nn.Conv2d(i, o, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2)]


class CharLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.out = nn.Embedding(90, 8), nn.LSTM(8, 256, 2, batch_first=True), nn.Linear(256, 90)

    def forward(self, x):
        return self.out(self.lstm(self.embedding(x))[0][:, -1])


NETWORKS = {
    "MLP": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 10)),
    "2NN": lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10)),
    "LeNet": lambda: nn.Sequential(
        *conv(1, 6, 2), *conv(6, 16, 0), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)
    ),
    "CNN": lambda: nn.Sequential(*conv(1, 32, 2), *conv(32, 64, 2), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10)),
    "LSTM": CharLstm,
}
STEPS = {"MLP": (32, 200), "2NN": (10, 200), "LeNet": (32, 20), "CNN": (32, 3), "LSTM": (32, 1)}  # batch, steps per measurement
ROUNDS = {"2NN": (600, 10), "LeNet": (600, 32), "CNN": (100, 10)}  # rows of a client, batch; ten clients, one epoch
CLIENTS = 10


def seconds_of(work, threads):
    clock = time.process_time if threads == 1 else time.perf_counter
    begin = clock()
    work()
    return clock() - begin


class Ours:
    """One of our programs, waiting for requests."""

    def __init__(self, program):
        self.process = subprocess.Popen([program, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, name, threads):
        """Seconds, and the operations done in them where the program knows."""
        print(name, threads, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().split()
        if not answer:
            sys.exit(f"{self.process.args[0]} ended")
        wall, processor, operations = map(float, answer)
        return (processor if threads == 1 else wall), operations


def steps_of(name):
    """Local steps of one network: zero_grad, forward, backward, plain SGD."""
    batch, count = STEPS[name]
    model, loss = NETWORKS[name](), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, y = (torch.randint(90, (batch, 80)), torch.randint(90, (batch,))) if name == "LSTM" else (torch.rand(batch, 1, 28, 28), torch.randint(10, (batch,)))

    def run():
        for _ in range(count):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()

    return run, count


def round_of(name):
    """FedAvg: one shared model, its state copied in, an optimizer and a loader per client, the mean of the states."""
    rows, batch = ROUNDS[name]
    data = TensorDataset(torch.rand(CLIENTS * rows, 1, 28, 28), torch.randint(10, (CLIENTS * rows,)))
    clients = [Subset(data, range(k * rows, (k + 1) * rows)) for k in range(CLIENTS)]
    model, loss = NETWORKS[name](), nn.CrossEntropyLoss()
    state = {key: value.clone() for key, value in model.state_dict().items()}

    def run():
        total = {key: torch.zeros_like(value) for key, value in state.items()}
        for client in clients:
            model.load_state_dict(state)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            for x, y in DataLoader(client, batch_size=batch, shuffle=True):
                optimizer.zero_grad()
                loss(model(x), y).backward()
                optimizer.step()
            for key, value in model.state_dict().items():
                total[key] += value / CLIENTS
        state.update(total)

    return run


def compare(ours, kind, name, threads, repeats):
    run, count = steps_of(name) if kind == "steps" else (round_of(name), 1)
    # Of steps ours takes one per thread at a time, PyTorch one on all threads: seconds per step.
    shared = threads if kind == "steps" else 1
    torch.set_num_threads(threads)
    run()
    own, theirs, peak, share = [], [], [], []
    for _ in range(repeats):
        seconds, operations = ours.seconds(name, threads)
        own.append(seconds / shared)
        theirs.append(seconds_of(run, threads) / count)
        peak_seconds, peak_operations = ours.seconds("peak", threads)
        if operations:
            share.append(operations / seconds / (peak_operations / peak_seconds))
    own, theirs = statistics.median(own), statistics.median(theirs)
    of_peak = f"   {statistics.median(share):.2f} of the peak" if share else ""
    print(f"{kind:6s} {name:5s} {threads} thread{'s' if threads > 1 else ' '}  ours {1e3 * own:9.3f} ms  PyTorch {1e3 * theirs:9.3f} ms"
          f"   {theirs / own:.2f} times{of_peak}", flush=True)


def main():
    folder, repeats = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9
    kinds = [sys.argv[3]] if len(sys.argv) > 3 else ["steps", "rounds"]
    for kind in kinds:
        ours = Ours(folder + ("/neural_bench" if kind == "steps" else "/federated_bench"))
        for name in STEPS if kind == "steps" else ROUNDS:
            for threads in (1, 2):
                if len(sys.argv) <= 4 or sys.argv[4] == name:
                    compare(ours, kind, name, threads, repeats)


if __name__ == "__main__":
    main()
