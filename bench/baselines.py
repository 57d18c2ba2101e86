#!/usr/bin/env python3
"""The same iterations in numpy and scipy, in turn with round_bench: EF with Top-1, 20 workers, float64, one thread.

Usage: OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 taskset -c CORE python3 bench/baselines.py [ROUND_BENCH [REPEATS]]
FEDBITS_DATA names the folder with libsvm/. An iteration takes the faster of two forms: a loop over the workers, and all workers at once, which
for a full gradient is one product with the rows and one with a block-diagonal matrix of their transposes.
"""
import os
import re
import statistics
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sp

from baseline_turns import record

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

    def block_diagonal(self):
        margins = self.y * (self.A @ self.x)
        self.send_top1((self.blocks @ (-self.y / (1 + np.exp(margins)) / self.m)).reshape(self.n, -1))

    def join(self):
        """Makes the matrix whose product with a number for each row is the gradients of all workers, one below the other."""
        entries = self.A.tocoo()
        rows, width = len(self.y), self.A.shape[1]
        self.blocks = sp.csr_matrix((entries.data, (entries.row // self.m * width + entries.col, entries.row)), (self.n * width, rows))
        return self

    def cut(self):
        self.parts = [self.A[i * self.m : (i + 1) * self.m] for i in range(self.n)]
        return self


def forms():
    """Returns the forms of each iteration: {name: {form: (function, calls)}}."""
    labels, madelon = read("madelon", 2000, 500)
    dense = np.ascontiguousarray(madelon.toarray())
    result = {"madelon batch-1 EF-SGD, 20 clients": {"numpy, all workers": (Workers(labels, dense, 20, 1e-6, 1e-4).batch_one, 200),
                                                     "scipy, all workers": (Workers(labels, madelon, 20, 1e-6, 1e-4).batch_one, 200)}}
    for name, rows, features in (("a9a", 32560, 123), ("w8a", 49740, 300)):
        y, A = read(name, rows, features)
        result[name + " full gradient, 20 clients"] = {"scipy, a loop": (Workers(y, A, 20, 1e-3, 1e-4).cut().full, 5),
                                                       "scipy, one block-diagonal product": (Workers(y, A, 20, 1e-3, 1e-4).join().block_diagonal, 5)}
        result[name + " batch-1 EF-SGD, 20 clients"] = {"scipy, all workers": (Workers(y, A, 20, 5e-2, 1e-4).batch_one, 200)}
    return result


def ours(program):
    """Returns {name: (microseconds, share of the limit or None)}."""
    text = subprocess.run([program, "1"], capture_output=True, text=True, check=True).stdout
    found = re.finditer(r"^(.*?)\s+1 thread\s+([\d.]+) us(?:.*\bratio ([\d.]+))?", text, re.MULTILINE)
    return {one[1].strip(): (float(one[2]), one[3] and float(one[3])) for one in found}


def main():
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    baselines, times, own = forms(), {}, []
    for _ in range(repeats):
        if len(sys.argv) > 1:
            own.append(ours(sys.argv[1]))
        for name, by_form in baselines.items():
            for form, (run, calls) in by_form.items():
                times.setdefault(name, {}).setdefault(form, []).append(1e6 * time_of(run, calls))
    for name, by_form in times.items():
        medians = {form: statistics.median(values) for form, values in by_form.items()}
        best = min(medians, key=medians.get)
        print(f"{name:36s} {', '.join(f'{form} {us:.1f} us' for form, us in medians.items())}")
        if own:
            us = statistics.median(turn[name][0] for turn in own)
            ratio = statistics.median(their / turn[name][0] for their, turn in zip(by_form[best], own))
            shares = [turn[name][1] for turn in own if turn[name][1] is not None]
            share = statistics.median(shares) if shares else None
            print(f"{'':36s} fedbits {us:.1f} us, {ratio:.2f} times as fast as {best}" + (f", {share:.2f} of the limit" if share else ""))
            record("sparse", name=name, us=us, share=share, baseline=best, baseline_us=medians[best], times=ratio)


if __name__ == "__main__":
    main()
