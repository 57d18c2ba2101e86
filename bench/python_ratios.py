#!/usr/bin/env python3
"""fedbits in Python beside the same call in C++ and beside operators of PyTorch as published implementations write them.

    OMP_NUM_THREADS=1 taskset -c CORE PYTHON bench/python_ratios.py build/bench [REPEATS]

PYTHON has fedbits, and PyTorch for the rows that need it. 10 million float32 with a memory of the error, one thread, the processor's clock, one
process: C++ and Python get the same vector. Each repeat times all of them one after another; printed are medians, and of every form the ratio to a
call in C++ with the same guarantee:

    NumPy, torch   compress() as it is by default, beside the vector read once, the operator, and the message read once. A NaN is refused
                   before the memory moves.
    trusted        compress(check=False), beside the operator alone.
    published      PyTorch, beside the operator alone.
"""
import ctypes
import statistics
import subprocess
import sys
import time

import numpy as np

import fedbits
from fedbits.compressors import _aligned_zeros

try:
    import torch

    torch.set_num_threads(1)
except ImportError:
    torch = None

SIZE, K = 10_000_000, 100_000
START, GRADIENT = (np.float32(0.2) * np.random.default_rng(1).standard_normal((2, SIZE), np.float32))
# The compressor in Python, and its kind, its option and its bucket in C++.
OPERATORS = {"top_k 1%": (fedbits.TopK(ratio=0.01), "top_k", "ratio=0.01", 0),
             "qsgd 127, whole": (fedbits.QSGD(scaled=False), "qsgd", "scaled=false", 0),
             "qsgd 127, buckets of 512": (fedbits.QSGD(scope="bucket", bucket=512), "qsgd", "", 512),
             "natural, stochastic": (fedbits.Natural(), "natural", "", 0),
             "ef_sign, whole": (fedbits.EFSign(), "ef_sign", "", 0)}
CHECKS = {"alone": 0, "checked": 2}  # of a call in C++


def library(folder):
    calls = ctypes.CDLL(f"{folder}/liboperator_call.so")
    calls.operator_open.restype = ctypes.c_void_p
    calls.operator_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t]
    calls.operator_compress.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_uint32, ctypes.c_int]
    return calls


class InCpp:
    """The same call in C++, which ctypes adds a microsecond to."""

    def __init__(self, calls, kind, option, bucket, checks):
        self.calls, self.checks, self.round = calls, checks, 0
        self.operator = calls.operator_open(kind.encode(), option.encode(), bucket, SIZE)
        self.error = _aligned_zeros(SIZE, START.dtype)

    def restore(self):
        np.copyto(self.error, START)

    def __call__(self):
        self.round += 1
        if not self.calls.operator_compress(self.operator, GRADIENT.ctypes.data, self.error.ctypes.data, self.round, self.checks):
            sys.exit("a number is not finite")


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


def seconds_of(work):
    begin = time.process_time()
    work()
    return time.process_time() - begin


def contenders(calls):
    """Returns the calls by operator and form."""
    forms = {}
    for name, (compressor, kind, option, bucket) in OPERATORS.items():
        own = forms[name] = {form: InCpp(calls, kind, option, bucket, checks) for form, checks in CHECKS.items()}
        own |= {"NumPy": InPython(compressor, GRADIENT), "trusted": InPython(compressor, GRADIENT, check=False)}
        if torch is not None:
            own["torch"] = InPython(compressor, torch.from_numpy(GRADIENT))
    if torch is not None:
        forms["top_k 1%"]["published"] = Published(top_k, scattered)
        forms["qsgd 127, whole"]["published"] = Published(qsgd, scaled_back)
    return forms


def seconds_in_turn(works, repeats):
    """Returns the seconds of every form. The first turn only warms up."""
    times = {form: [] for form in works}
    for _ in range(repeats + 1):
        for form, work in works.items():
            work.restore()
            times[form].append(seconds_of(work))
    return {form: seconds[1:] for form, seconds in times.items()}


def import_seconds():
    code = "import time; t = time.perf_counter(); import numpy; n = time.perf_counter(); import fedbits; print(n - t, time.perf_counter() - t)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() for _ in range(9)]
    return [statistics.median(float(run[i]) for run in runs) for i in range(2)]


def main():
    calls, repeats = library(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 9
    print(f"{'operator':28s} {'form':10s} {'ms':>8s} {'C++ ms':>8s} {'ratio':>7s}")
    for name, works in contenders(calls).items():
        times = seconds_in_turn(works, repeats)
        for form, seconds in times.items():
            floor = times["checked" if form in ("NumPy", "torch") else "alone"]
            ratio = statistics.median(own / least for own, least in zip(seconds, floor))
            print(f"{name:28s} {form:10s} {1e3 * statistics.median(seconds):8.2f} {1e3 * statistics.median(floor):8.2f} {ratio:7.3f}", flush=True)
    of_numpy, of_all = import_seconds()
    print(f"import fedbits: {1e3 * of_all:.0f} ms, of which NumPy takes {1e3 * of_numpy:.0f} ms")


if __name__ == "__main__":
    main()
