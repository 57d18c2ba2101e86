#!/usr/bin/env python3
"""fedbits in Python beside the same call in C++ and beside operators of PyTorch as published implementations write them.

    OMP_NUM_THREADS=1 taskset -c CORE PYTHON bench/python_ratios.py build/bench [REPEATS]

PYTHON has fedbits, and PyTorch for the rows that need it. 10 million float32 with a memory of the error, one thread, the processor's clock. Each
repeat times all of them one after another; printed are medians, and ratios to operator_bench, which has the operator alone. By default the call in
Python reads the vector once more, so that a NaN is refused before the memory moves; "check" is that pass alone. "trusted" is check=False.
"""
import statistics
import subprocess
import sys
import time

import numpy as np

import fedbits
from fedbits import _core
from baseline_turns import Ours

try:
    import torch

    torch.set_num_threads(1)
except ImportError:
    torch = None

SIZE, K = 10_000_000, 100_000
START, GRADIENT = (np.float32(0.2) * np.random.default_rng(1).standard_normal((2, SIZE), np.float32))
# Our name in operator_bench, the compressor, and the operators of PyTorch.
OPERATORS = {"top_k 1%": fedbits.TopK(ratio=0.01), "qsgd 127, whole": fedbits.QSGD(scaled=False), "qsgd 127, buckets of 512": fedbits.QSGD(scope="bucket", bucket=512),
             "natural, stochastic": fedbits.Natural(), "ef_sign, whole": fedbits.EFSign()}


class InPython:
    """compress() with a memory, as users call it."""

    def __init__(self, compressor, vector, check=True):
        self.compressor, self.vector, self.check, self.memory, self.round = compressor, vector, check, fedbits.Memory(), 0
        self.memory.load_state_dict({"error": START})

    def restore(self):
        np.copyto(self.memory._arrays["error"], START)

    def __call__(self):
        self.round += 1
        self.compressor.compress(self.vector, round=self.round, memory=self.memory, check=self.check)


class Published:
    """p = e + g; e = p - D(C(p)) in PyTorch."""

    def __init__(self, compress, decompress):
        self.compress, self.decompress = compress, decompress
        self.e, self.gradient = torch.from_numpy(START.copy()), torch.from_numpy(GRADIENT)

    def restore(self):
        self.e = torch.from_numpy(START.copy())

    def __call__(self):
        p = self.e + self.gradient
        self.e = p - self.decompress(self.compress(p))


def top_k(p):
    indices = torch.topk(p.abs(), K, sorted=False).indices
    return torch.gather(p, 0, indices), indices


def scattered(message):
    values, indices = message
    return torch.zeros(SIZE).scatter_(0, indices, values)


def qsgd(p):
    norm = p.norm()
    levels = 127 / norm * p.abs()
    below = levels.floor()
    rounded = below + (torch.rand(SIZE) < levels - below)
    return norm, (rounded * p.sign()).to(torch.int8)


def scaled_back(message):
    norm, levels = message
    return norm / 127 * levels.float()


class Check:
    """The pass that refuses a NaN, alone."""

    def __call__(self):
        _core.require_finite32(GRADIENT)


def seconds_of(work):
    begin = time.process_time()
    work()
    return time.process_time() - begin


def contenders():
    """Returns the calls by operator and form."""
    forms = {name: {"NumPy": InPython(operator, GRADIENT), "trusted": InPython(operator, GRADIENT, check=False)} for name, operator in OPERATORS.items()}
    if torch is not None:
        for name, operator in OPERATORS.items():
            forms[name]["torch"] = InPython(operator, torch.from_numpy(GRADIENT))
        forms["top_k 1%"]["published"] = Published(top_k, scattered)
        forms["qsgd 127, whole"]["published"] = Published(qsgd, scaled_back)
    return forms


def import_seconds():
    code = "import time; t = time.perf_counter(); import numpy; n = time.perf_counter(); import fedbits; print(n - t, time.perf_counter() - t)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() for _ in range(9)]
    return [statistics.median(float(run[i]) for run in runs) for i in range(2)]


def main():
    ours, repeats = Ours(f"{sys.argv[1]}/operator_bench"), int(sys.argv[2]) if len(sys.argv) > 2 else 9
    forms = contenders()
    print(f"{'operator':28s} {'form':10s} {'ms':>8s} {'C++ ms':>8s} {'ratio':>7s}")
    for name, works in forms.items():
        times = {form: [] for form in works}
        alone, check = [], []
        for repeat in range(-1, repeats):
            alone.append(ours.seconds(name.replace(" ", "_"))[0])
            check.append(seconds_of(Check()))
            for form, work in works.items():
                work.restore()
                times[form].append(seconds_of(work))
        alone, check = alone[1:], statistics.median(check[1:])
        for form, seconds in times.items():
            ratio = statistics.median(own / floor for own, floor in zip(seconds[1:], alone))
            print(f"{name:28s} {form:10s} {1e3 * statistics.median(seconds[1:]):8.2f} {1e3 * statistics.median(alone):8.2f} {ratio:7.3f}", flush=True)
        print(f"{name:28s} {'check':10s} {1e3 * check:8.2f}")
    of_numpy, of_all = import_seconds()
    print(f"import fedbits: {1e3 * of_all:.0f} ms, of which NumPy takes {1e3 * of_numpy:.0f} ms")


if __name__ == "__main__":
    main()
