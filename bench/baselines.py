#!/usr/bin/env python3
"""The same iterations in numpy and scipy, for comparison with round_bench: EF with Top-1, 20 workers, float64, one thread.

Usage: OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python3 bench/baselines.py [ROUND_BENCH]
FEDBITS_DATA names the folder with libsvm/. With the path of round_bench both run in turn, and the ratios are printed.
Needs Debian's python3-numpy and python3-scipy.
"""
import os
import re
import statistics
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sp

DATA = os.environ["FEDBITS_DATA"] + "/libsvm/"


def read(name, rows, features):
    """Labels (+-1) [rows] and CSR features [rows, features] of a LIBSVM file."""
    labels, indptr, indices, values = [], [0], [], []
    with open(DATA + name) as file:
        for line in file:
            parts = line.split()
            labels.append(1.0 if float(parts[0]) > 0 else -1.0)
            for part in parts[1:]:
                index, value = part.split(":")
                indices.append(int(index) - 1)
                values.append(float(value))
            indptr.append(len(indices))
            if len(labels) == rows:
                break
    return np.array(labels), sp.csr_matrix((values, indices, indptr), (len(labels), features))


def time_of(iterate, count, repeats=15):
    """Median seconds of one iteration."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(count):
            iterate()
        times.append((time.perf_counter() - start) / count)
    return statistics.median(times)


class Workers:
    """n workers with error memory e [n, d] and the model x [d]."""

    def __init__(self, labels, features, n, gamma, l2):
        self.y, self.A, self.n, self.gamma, self.l2 = labels, features, n, gamma, l2
        self.m = len(labels) // n
        self.x = np.zeros(features.shape[1])
        self.e = np.zeros((n, features.shape[1]))
        self.random = np.random.default_rng(1)

    def send_top1(self, gradient):
        """EF with Top-1 for all workers at once; gradient [n, d]."""
        self.e += self.gamma * (gradient + self.l2 * self.x)
        best = np.abs(self.e).argmax(axis=1)
        worker = np.arange(self.n)
        kept = self.e[worker, best]
        np.subtract.at(self.x, best, kept / self.n)
        self.e[worker, best] = 0

    def batch_one(self):
        rows = self.random.integers(0, self.m, self.n) + np.arange(self.n) * self.m
        a, y = self.A[rows], self.y[rows]
        scale = (-y / (1 + np.exp(y * (a @ self.x))))[:, None]
        self.send_top1(a.multiply(scale).toarray() if sp.issparse(a) else scale * a)

    def full(self):
        gradient = np.empty_like(self.e)
        for i in range(self.n):
            part, y = self.parts[i], self.y[i * self.m : (i + 1) * self.m]
            gradient[i] = part.T @ (-y / (1 + np.exp(y * (part @ self.x)))) / self.m
        self.send_top1(gradient)

    def cut(self):
        self.parts = [self.A[i * self.m : (i + 1) * self.m] for i in range(self.n)]
        return self


def main():
    labels, madelon = read("madelon", 2000, 500)
    dense = np.ascontiguousarray(madelon.toarray())
    baseline = {"madelon batch-1 EF-SGD, 20 clients": time_of(Workers(labels, dense, 20, 1e-6, 1e-4).batch_one, 200)}
    for name, rows, features in (("a9a", 32560, 123), ("w8a", 49740, 300)):
        y, A = read(name, rows, features)
        baseline[name + " full gradient, 20 clients"] = time_of(Workers(y, A, 20, 1e-3, 1e-4).cut().full, 5)
        baseline[name + " batch-1 EF-SGD, 20 clients"] = time_of(Workers(y, A, 20, 5e-2, 1e-4).batch_one, 200)
    for name, seconds in baseline.items():
        print(f"{name:36s} numpy/scipy {seconds * 1e6:9.1f} us")
    csr = time_of(Workers(labels, madelon, 20, 1e-6, 1e-4).batch_one, 200)
    print(f"madelon batch-1 with rows in CSR     numpy/scipy {csr * 1e6:9.1f} us")
    if len(sys.argv) > 1:
        ours = subprocess.run([sys.argv[1], "1"], capture_output=True, text=True, check=True).stdout
        for line in ours.splitlines():
            found = re.match(r"(.*?)\s+1 thread\s+([\d.]+) us", line)
            if found and found.group(1).strip() in baseline:
                name, us = found.group(1).strip(), float(found.group(2))
                print(f"{name:36s} fedbits     {us:9.1f} us   {baseline[name] * 1e6 / us:.1f} times as fast")


if __name__ == "__main__":
    main()
