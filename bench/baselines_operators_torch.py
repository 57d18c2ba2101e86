#!/usr/bin/env python3
"""Plain PyTorch doing the same compensate, compress, decompress and new residual as operator_bench, in turn with it.

Usage: OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python3 bench/baselines_operators_torch.py build/bench [REPEATS [NAME]]
10 million float32, one thread, the processor's clock. Residuals are whole tensors, kept values (value, int64 index) pairs, levels and signs
one byte each: what PyTorch implementations of these operators hand to the network.
"""
import statistics
import subprocess
import sys
import time

import torch

SIZE = 10_000_000
ROWS = 3200


class Memory:
    """p = e + 0.1 g; e = p - C(p)."""

    def __init__(self):
        torch.manual_seed(1)
        self.error, self.gradient = torch.randn(SIZE) * 0.2, torch.randn(SIZE) * 0.2
        self.start = self.error.clone()

    def round(self, compress, decompress):
        p = self.error + 0.1 * self.gradient
        self.error = p - decompress(compress(p))


def scattered(message):
    values, indices = message
    return torch.zeros(SIZE).scatter_(0, indices, values)


def top_k(k):
    def compress(p):
        _, indices = torch.topk(p.abs(), k, sorted=False)
        return torch.gather(p, 0, indices), indices

    return compress, scattered


def threshold(bound):
    def compress(p):
        (indices,) = torch.where(p.abs() >= bound)
        return p[indices], indices

    return compress, scattered


def random_k(k):
    def compress(p):
        indices = torch.randperm(SIZE)[:k]
        return p[indices], indices

    return compress, scattered


def qsgd(levels):
    def compress(p):
        norm = p.norm()
        level = levels / norm * p.abs()
        whole = level.floor()
        whole += (torch.rand(SIZE) < level - whole).float()
        return (whole * p.sign()).to(torch.int8), norm

    def decompress(message):
        quantised, norm = message
        return norm / levels * quantised.float()

    return compress, decompress


def ef_sign():
    def compress(p):
        return (p >= 0).to(torch.uint8), p.abs().mean()

    def decompress(message):
        signs, mean = message
        return mean * (signs.float() * 2 - 1)

    return compress, decompress


def natural():
    def compress(p):
        mantissa, exponent = torch.frexp(p.abs())
        up = torch.rand(SIZE) < mantissa * 2 - 1
        return (exponent - 1 + up.int()).clamp(-127, 127).to(torch.int8), p >= 0

    def decompress(message):
        exponent, positive = message
        return torch.ldexp(torch.ones(SIZE), exponent) * (positive.float() * 2 - 1)

    return compress, decompress


def powersgd(rank):
    factor = torch.randn(SIZE // ROWS, rank)

    def compress(p):
        left, _ = torch.linalg.qr(p.view(ROWS, -1) @ factor)
        return left, p.view(ROWS, -1).t() @ left

    def decompress(message):
        left, right = message
        return (left @ right.t()).view(-1)

    return compress, decompress


# Names as operator_bench has them.
OPERATORS = {
    "top_k 1%": lambda p: top_k(SIZE // 100),
    "top_k 0.1%": lambda p: top_k(SIZE // 1000),
    "hard_threshold 1%": lambda p: threshold(p.abs().kthvalue(SIZE - SIZE // 100).values),
    "random_k 1%": lambda p: random_k(SIZE // 100),
    "qsgd 127, buckets of 512": lambda p: qsgd(127),
    "qsgd 127, whole": lambda p: qsgd(127),
    "ef_sign, whole": lambda p: ef_sign(),
    "ef_sign, buckets of 2048": lambda p: ef_sign(),
    "natural, stochastic": lambda p: natural(),
    "powersgd rank 4": lambda p: powersgd(4),
}


class Ours:
    def __init__(self, program):
        self.process = subprocess.Popen([program, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def seconds(self, name):
        print(name.replace(" ", "_"), 1, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().split()
        if not answer:
            sys.exit(f"{self.process.args[0]} ended")
        return float(answer[1])


def compare(ours, memory, name, repeats):
    memory.error = memory.start.clone()
    compress, decompress = OPERATORS[name](memory.error + 0.1 * memory.gradient)
    memory.round(compress, decompress)
    own, theirs = [], []
    for _ in range(repeats):
        own.append(ours.seconds(name))
        memory.error = memory.start.clone()
        begin = time.process_time()
        memory.round(compress, decompress)
        theirs.append(time.process_time() - begin)
    own, theirs = statistics.median(own), statistics.median(theirs)
    print(f"{name:26s} ours {1e3 * own:8.2f} ms  PyTorch {1e3 * theirs:8.1f} ms  {theirs / own:6.1f} times", flush=True)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "build/bench"
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    torch.set_num_threads(1)
    ours, memory = Ours(folder + "/operator_bench"), Memory()
    for name in OPERATORS:
        if len(sys.argv) <= 3 or sys.argv[3] in name:
            compare(ours, memory, name, repeats)


if __name__ == "__main__":
    main()
