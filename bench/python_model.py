#!/usr/bin/env python3
"""A round of McMahan's 2NN as fedbits.torch.Model in a scenario, beside a plain loop of PyTorch that takes the same steps.

    OMP_NUM_THREADS=1 taskset -c CORE PYTHON bench/python_model.py [REPEATS]

PYTHON has fedbits and PyTorch. 10 clients of 600 rows each take one epoch in batches of 10: 600 steps a round. The time of a round is the
difference between a run of three rounds and one of one round, divided by two, by the processor's clock; both forms take turns, and medians are
printed. The loop draws its batches with randperm, and its clients start from the mean of the last round.
"""
import statistics
import sys
import tempfile
import time

import numpy as np
import torch

import fedbits
import fedbits.torch

CLIENTS, ROWS, BATCH, RATE = 10, 600, 10, 0.05
RANDOM = np.random.default_rng(1)
FEATURES = RANDOM.standard_normal((CLIENTS * ROWS, 784)).astype(np.float32)
LABELS = RANDOM.integers(0, 10, CLIENTS * ROWS)


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(784, 200), torch.nn.ReLU(), torch.nn.Linear(200, 200), torch.nn.ReLU(), torch.nn.Linear(200, 10))


def scenario(rounds):
    return {"name": "bench", "rounds": rounds, "data": {"kind": "bench_rows"}, "partition": {"kind": "contiguous", "clients": CLIENTS},
            "model": {"kind": "torch"}, "local": {"kind": "sgd", "epochs": 1, "batch": BATCH, "learning_rate": RATE},
            "compressor": {"up": {"kind": "identity"}}, "evaluate": {"every": 1000, "train_loss": False, "gradient": "never", "optimum": False}}


def run(rounds):
    with tempfile.TemporaryDirectory() as folder:
        begin = time.process_time()
        fedbits.run(scenario(rounds), out=folder, progress=False, threads=1)
        return time.process_time() - begin


def plain_round(module, features, labels):
    start = [parameter.detach().clone() for parameter in module.parameters()]
    total = [torch.zeros_like(parameter) for parameter in start]
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    for client in range(CLIENTS):
        with torch.no_grad():
            for parameter, first in zip(module.parameters(), start):
                parameter.copy_(first)
        order = torch.randperm(ROWS) + client * ROWS
        for first in range(0, ROWS, BATCH):
            rows = order[first:first + BATCH]
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(module(features[rows]), labels[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            for one, parameter in zip(total, module.parameters()):
                one += parameter / CLIENTS
    with torch.no_grad():
        for parameter, mean in zip(module.parameters(), total):
            parameter.copy_(mean)


def main():
    torch.set_num_threads(1)
    fedbits.Dataset("bench_rows", FEATURES, LABELS)
    fedbits.torch.Model(network())
    module, features, labels = network(), torch.from_numpy(FEATURES), torch.from_numpy(LABELS)
    own, plain = [], []
    for repeat in range(-1, int(sys.argv[1]) if len(sys.argv) > 1 else 7):
        ours = (run(3) - run(1)) / 2
        begin = time.process_time()
        for _ in range(2):
            plain_round(module, features, labels)
        theirs = (time.process_time() - begin) / 2
        if repeat >= 0:
            own.append(ours)
            plain.append(theirs)
    ratio = statistics.median(one / other for one, other in zip(own, plain))
    print(f"fedbits {1e3 * statistics.median(own):.1f} ms, plain loop {1e3 * statistics.median(plain):.1f} ms a round, ratio {ratio:.3f}")


if __name__ == "__main__":
    main()
