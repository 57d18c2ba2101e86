#!/usr/bin/env python3
"""Plain PyTorch doing the same local steps as bench/neural_bench.cpp, on one thread and on two.

Usage: OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python3 bench/rivals_torch.py [REPEATS]
Prints milliseconds per step (forward, backward, plain SGD) of each network on random images. Debian's PyTorch is a weak reference: its
products are OpenBLAS's and its own kernels AVX2's.
"""
import statistics
import sys
import time

import torch
from torch import nn

REPEATS = int(sys.argv[1]) if len(sys.argv) > 1 else 9


def conv(i, o, padding):
    return [nn.Conv2d(i, o, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2)]


NETWORKS = {
    "MLP 784-200-10, batch 32": (32, 200, [nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 10)]),
    "2NN 784-200-200-10, batch 10": (10, 200, [nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 200), nn.ReLU(), nn.Linear(200, 10)]),
    "LeNet-5, batch 32": (32, 20, conv(1, 6, 2) + conv(6, 16, 0) + [nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]),
    "CNN of McMahan, batch 32": (32, 3, conv(1, 32, 2) + conv(32, 64, 2) + [nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10)]),
}


class CharLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.out = nn.Embedding(90, 8), nn.LSTM(8, 256, 2, batch_first=True), nn.Linear(256, 90)

    def forward(self, x):
        return self.out(self.lstm(self.embedding(x))[0][:, -1])


def milliseconds(model, x, y, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loss = nn.CrossEntropyLoss()

    def run():
        begin = time.perf_counter()
        for _ in range(steps):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
        return 1e3 * (time.perf_counter() - begin) / steps

    run()
    return statistics.median(run() for _ in range(REPEATS))


for threads in (1, 2):
    torch.set_num_threads(threads)
    for label, (batch, steps, layers) in NETWORKS.items():
        x, y = torch.rand(batch, 1, 28, 28), torch.randint(10, (batch,))
        print(f"{label:30s} {threads} threads {milliseconds(nn.Sequential(*layers), x, y, steps):8.3f} ms", flush=True)
    x, y = torch.randint(90, (32, 80)), torch.randint(90, (32,))
    print(f"{'char LSTM 2x256x80, batch 32':30s} {threads} threads {milliseconds(CharLstm(), x, y, 1):8.3f} ms", flush=True)
