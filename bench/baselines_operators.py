#!/usr/bin/env python3
"""NumPy, Numba and PyTorch doing the same compensate, compress and new memory as operator_bench, in turn with it.

Usage: OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 taskset -c CORE python3 bench/baselines_operators.py build/bench [REPEATS [NAME]]
10 million float32, one thread, the processor's clock. Every form updates its memory in place and allocates what it returns and no other vector:
kept values with their 64-bit indices, or one byte per level. The fastest form of each operator is the baseline. PyTorch's plain form, as
published implementations have it, is timed beside it. Numba compiles the loops that a C programmer would write, with random numbers from a hash of
the index; a library that is missing is said to be.
"""
import sys

import numpy as np

from baseline_turns import Ours, best_forms, in_turn, record

SIZE, ROWS, RATE = 10_000_000, 3200, np.float32(0.1)
RANDOM = np.random.default_rng(1)
START, GRADIENT = (np.float32(0.2) * RANDOM.standard_normal(SIZE, np.float32) for _ in range(2))
FIRST = START + RATE * GRADIENT  # the vector that is compressed first

try:
    import torch

    torch.set_num_threads(1)
except ImportError:
    torch = None
try:
    import numba
except ImportError:
    numba = None


class InNumpy:
    """e += 0.1 g with one vector of scratch; `compress` leaves the new memory in e."""

    def __init__(self, compress):
        self.compress, self.e, self.scratch = compress, START.copy(), np.empty(SIZE, np.float32)

    def __call__(self):
        np.multiply(GRADIENT, RATE, out=self.scratch)
        self.e += self.scratch
        self.compress(self.e, self.scratch)


class InTorch:
    def __init__(self, compress):
        self.compress, self.e, self.scratch = compress, torch.from_numpy(START.copy()), torch.empty(SIZE)
        self.gradient = torch.from_numpy(GRADIENT)

    def __call__(self):
        self.e.add_(self.gradient, alpha=float(RATE))
        self.compress(self.e, self.scratch)


class Published:
    """p = e + 0.1 g; e = p - D(C(p)), as implementations in PyTorch write it."""

    def __init__(self, compress, decompress):
        self.compress, self.decompress = compress, decompress
        self.e, self.gradient = torch.from_numpy(START.copy()), torch.from_numpy(GRADIENT)

    def __call__(self):
        p = self.e + float(RATE) * self.gradient
        self.e = p - self.decompress(self.compress(p))


def scattered(message):
    values, indices = message
    return torch.zeros(SIZE).scatter_(0, indices, values)


def keep_in_torch(e, indices):
    """Returns the entries at indices and clears them."""
    values = e[indices]
    e.index_fill_(0, indices, 0)
    return values, indices


def keep_in_numpy(e, indices):
    values = e[indices]
    e[indices] = 0
    return values, indices


# ---- loops for Numba


def compiled_loops():
    """Returns the operators as compiled loops over (e, g, ...), by name."""
    compiled = numba.njit(fastmath=True, error_model="numpy")

    @compiled
    def uniform(i, seed):
        x = np.uint32(i) * np.uint32(0x9E3779B9) + np.uint32(seed)
        x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
        x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
        return np.float32((x ^ (x >> np.uint32(16))) >> np.uint32(8)) * np.float32(2.0**-24)

    @compiled
    def threshold(e, g, bound, values, indices):
        count = 0
        for i in range(e.size):
            p = e[i] + np.float32(0.1) * g[i]
            if abs(p) >= bound:
                values[count], indices[count] = p, i
                count += 1
                p = np.float32(0)
            e[i] = p
        return count

    @compiled
    def qsgd(e, g, bucket, seed, norms, levels):
        for b in range((e.size + bucket - 1) // bucket):
            first, last = b * bucket, min((b + 1) * bucket, e.size)
            squares = np.float32(0)
            for i in range(first, last):
                e[i] += np.float32(0.1) * g[i]
                squares += e[i] * e[i]
            norm = np.sqrt(squares)
            norms[b] = norm
            scale = np.float32(127) / norm if norm > 0 else np.float32(0)
            back = norm / np.float32(127)
            for i in range(first, last):
                level = np.floor(abs(e[i]) * scale + uniform(i, seed))
                signed = np.copysign(level, e[i])
                levels[i] = np.int8(signed)
                e[i] -= signed * back

    @compiled
    def ef_sign(e, g, bucket, means, signs):
        for b in range((e.size + bucket - 1) // bucket):
            first, last = b * bucket, min((b + 1) * bucket, e.size)
            total = np.float32(0)
            for i in range(first, last):
                e[i] += np.float32(0.1) * g[i]
                total += abs(e[i])
            mean = total / np.float32(last - first)
            means[b] = mean
            for i in range(first, last):
                signs[i] = np.uint8(e[i] >= 0)
                e[i] -= np.copysign(mean, e[i])

    @compiled
    def natural(e, bits, g, seed, power_bits, powers, exponents):
        """`bits` are those of e, and `power_bits` those of powers. A random carry out of the mantissa rounds to a power of two."""
        for i in range(e.size):
            e[i] += np.float32(0.1) * g[i]
        for i in range(e.size):
            x = np.uint32(i) * np.uint32(0x9E3779B9) + np.uint32(seed)
            x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
            x ^= x >> np.uint32(15)
            power = np.uint32(bits[i] + (x >> np.uint32(9))) >> np.uint32(23)
            exponents[i] = np.uint16(power)
            power_bits[i] = power << np.uint32(23)
        for i in range(e.size):
            e[i] -= powers[i]

    return threshold, qsgd, ef_sign, natural


class InNumba:
    """A compiled loop over e, with the arguments that follow it."""

    def __init__(self, loop, *arguments, seeded=False):
        self.loop, self.arguments, self.e, self.seed = loop, arguments, START.copy(), 1 if seeded else None

    def __call__(self):
        if self.seed is None:
            return self.loop(self.e, GRADIENT, *self.arguments)
        self.seed += 1
        bucket, *rest = self.arguments
        return self.loop(self.e, GRADIENT, bucket, self.seed, *rest)


class NaturalInNumba:
    def __init__(self, loop):
        self.loop, self.e, self.seed = loop, START.copy(), 1
        self.powers, self.exponents = np.empty(SIZE, np.float32), np.empty(SIZE, np.uint16)

    def __call__(self):
        self.seed += 1
        self.loop(self.e, self.e.view(np.uint32), GRADIENT, self.seed, self.powers.view(np.uint32), self.powers, self.exponents)


LOOPS = compiled_loops() if numba else ()

# ---- operators: {form: a function that makes it}


def top_k(k):
    def by_partition(e, scratch):
        np.abs(e, out=scratch)
        return keep_in_numpy(e, np.argpartition(scratch, SIZE - k)[SIZE - k:])

    def by_topk(e, scratch):
        return keep_in_torch(e, torch.topk(torch.abs(e, out=scratch), k, sorted=False).indices)

    def published(p):
        indices = torch.topk(p.abs(), k, sorted=False).indices
        return torch.gather(p, 0, indices), indices

    return {"numpy": lambda: InNumpy(by_partition), "torch": lambda: InTorch(by_topk), "published": lambda: Published(published, scattered)}


def hard_threshold(k):
    bound = np.partition(np.abs(FIRST), SIZE - k)[SIZE - k]

    def in_numpy(e, scratch):
        np.abs(e, out=scratch)
        return keep_in_numpy(e, np.flatnonzero(scratch >= bound))

    def in_torch(e, scratch):
        return keep_in_torch(e, torch.nonzero(torch.abs(e, out=scratch) >= float(bound)).flatten())

    def published(p):
        (indices,) = torch.where(p.abs() >= float(bound))
        return p[indices], indices

    return {"numpy": lambda: InNumpy(in_numpy), "torch": lambda: InTorch(in_torch),
            "numba": lambda: InNumba(LOOPS[0], bound, np.empty(SIZE, np.float32), np.empty(SIZE, np.int64)),
            "published": lambda: Published(published, scattered)}


def random_k(k):
    def in_numpy(e, _):
        return keep_in_numpy(e, RANDOM.choice(SIZE, k, replace=False, shuffle=False))

    def in_torch(e, _):
        return keep_in_torch(e, torch.from_numpy(RANDOM.choice(SIZE, k, replace=False, shuffle=False)))

    def published(p):
        indices = torch.randperm(SIZE)[:k]
        return p[indices], indices

    return {"numpy": lambda: InNumpy(in_numpy), "torch": lambda: InTorch(in_torch), "published": lambda: Published(published, scattered)}


def qsgd(bucket):
    levels = 127

    def in_torch(e, scratch):
        rows, steps = e.view(-1, bucket), scratch.view(-1, bucket)
        norms = rows.norm(dim=1, keepdim=True)
        scratch.uniform_()
        steps.addcdiv_(rows.abs(), norms, value=levels).floor_().copysign_(rows)
        message = scratch.to(torch.int8), norms
        rows.addcmul_(steps, norms, value=-1 / levels)
        return message

    def in_numpy(e, scratch):
        rows, steps = e.reshape(-1, bucket), scratch.reshape(-1, bucket)
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
        RANDOM.random(SIZE, np.float32, out=scratch)
        steps += np.abs(rows) * (levels / norms)
        np.floor(scratch, out=scratch)
        np.copysign(scratch, e, out=scratch)
        message = scratch.astype(np.int8), norms
        steps *= norms / levels
        e -= scratch
        return message

    def compress(p):
        norm = p.norm()
        level = levels / norm * p.abs()
        whole = level.floor()
        whole += (torch.rand(SIZE) < level - whole).float()
        return (whole * p.sign()).to(torch.int8), norm

    def decompress(message):
        quantised, norm = message
        return norm / levels * quantised.float()

    buckets = SIZE // bucket
    return {"numpy": lambda: InNumpy(in_numpy), "torch": lambda: InTorch(in_torch),
            "numba": lambda: InNumba(LOOPS[1], bucket, np.empty(buckets, np.float32), np.empty(SIZE, np.int8), seeded=True),
            "published": lambda: Published(compress, decompress)}


def ef_sign(bucket):
    whole = SIZE // bucket * bucket  # a last bucket that is not full is left out of the forms that reshape

    def in_torch(e, scratch):
        rows = e[:whole].view(-1, bucket)
        means = torch.abs(e, out=scratch)[:whole].view(-1, bucket).mean(1, keepdim=True)
        signs = e >= 0
        rows.sub_(torch.copysign(means, rows, out=scratch[:whole].view(-1, bucket)))
        return signs, means

    def in_numpy(e, scratch):
        rows, out = e[:whole].reshape(-1, bucket), scratch[:whole].reshape(-1, bucket)
        np.abs(rows, out=out)
        means = out.mean(1, keepdims=True)
        signs = e >= 0
        np.copysign(means, rows, out=out)
        rows -= out
        return signs, means

    def compress(p):
        return (p >= 0).to(torch.uint8), p.abs().mean()

    def decompress(message):
        signs, mean = message
        return mean * (signs.float() * 2 - 1)

    buckets = -(-SIZE // bucket)
    return {"numpy": lambda: InNumpy(in_numpy), "torch": lambda: InTorch(in_torch),
            "numba": lambda: InNumba(LOOPS[2], bucket, np.empty(buckets, np.float32), np.empty(SIZE, np.uint8)),
            "published": lambda: Published(compress, decompress)}


def natural():
    def in_numpy(e, scratch):
        bits = scratch.view(np.uint32)
        np.copyto(bits, RANDOM.integers(0, 1 << 23, SIZE, np.uint32))
        bits += e.view(np.uint32)
        bits &= np.uint32(0xFF800000)
        exponents = (bits >> np.uint32(23)).astype(np.uint16)
        e -= scratch
        return exponents

    def in_torch(e, scratch):
        bits = scratch.view(torch.int32)
        bits.random_(0, 1 << 23)
        bits.add_(e.view(torch.int32)).bitwise_and_(-(1 << 23))
        exponents = (bits >> 23).to(torch.int16)
        e.sub_(scratch)
        return exponents

    def compress(p):
        mantissa, exponent = torch.frexp(p.abs())
        up = torch.rand(SIZE) < mantissa * 2 - 1
        return (exponent - 1 + up.int()).clamp(-127, 127).to(torch.int8), p >= 0

    def decompress(message):
        exponent, positive = message
        return torch.ldexp(torch.ones(SIZE), exponent) * (positive.float() * 2 - 1)

    return {"numpy": lambda: InNumpy(in_numpy), "torch": lambda: InTorch(in_torch), "numba": lambda: NaturalInNumba(LOOPS[3]),
            "published": lambda: Published(compress, decompress)}


def powersgd(rank):
    def in_numpy(factor):
        def compress(e, scratch):
            matrix = e.reshape(ROWS, -1)
            left, _ = np.linalg.qr(matrix @ factor)
            right = matrix.T @ left
            np.matmul(left, right.T, out=scratch.reshape(ROWS, -1))
            e -= scratch
            return left, right

        return compress

    def in_torch(factor):
        def compress(e, _):
            matrix = e.view(ROWS, -1)
            left, _ = torch.linalg.qr(matrix @ factor)
            right = matrix.t() @ left
            matrix.addmm_(left, right.t(), alpha=-1)
            return left, right

        return compress

    def published(factor):
        def compress(p):
            left, _ = torch.linalg.qr(p.view(ROWS, -1) @ factor)
            return left, p.view(ROWS, -1).t() @ left

        return compress, lambda message: (message[0] @ message[1].t()).view(-1)

    factor = RANDOM.standard_normal((SIZE // ROWS, rank), np.float32)
    return {"numpy": lambda: InNumpy(in_numpy(factor)), "torch": lambda: InTorch(in_torch(torch.from_numpy(factor))),
            "published": lambda: Published(*published(torch.from_numpy(factor)))}


# Names as operator_bench has them.
OPERATORS = {
    "top_k 1%": lambda: top_k(SIZE // 100),
    "top_k 0.1%": lambda: top_k(SIZE // 1000),
    "hard_threshold 1%": lambda: hard_threshold(SIZE // 100),
    "random_k 1%": lambda: random_k(SIZE // 100),
    "qsgd 127, buckets of 512": lambda: qsgd(500),  # a bucket that divides 10 million
    "qsgd 127, whole": lambda: qsgd(SIZE),
    "ef_sign, buckets of 2048": lambda: ef_sign(2048),
    "ef_sign, whole": lambda: ef_sign(SIZE),
    "natural, stochastic": natural,
    "powersgd rank 4": lambda: powersgd(4),
}


def available(forms):
    libraries = {"torch": torch, "published": torch, "numba": numba}
    return {name: lambda make=make: (make(), 1) for name, make in forms.items() if libraries.get(name, np) is not None}


def compare(ours, name, repeats):
    operator, add = name.replace(" ", "_"), "in-place_add"
    ours.seconds(operator)
    forms = best_forms(available(OPERATORS[name]()), always=("published",))
    own, theirs, ratio, to_add = in_turn(lambda: ours.seconds(operator)[0], forms, repeats, beside=lambda: ours.seconds(add)[0])
    best = min(theirs, key=theirs.get)
    print(f"{name:26s} ours {1e3 * own:8.2f} ms, {to_add:.2f} of the add  {best} {1e3 * theirs[best]:8.1f} ms  {ratio[best]:5.1f} times", flush=True)
    record("operators", name=name, ms=1e3 * own, share=to_add, baseline=best, baseline_ms=1e3 * theirs[best], times=ratio[best],
           published_ms=1e3 * theirs.get("published", float("nan")), published_times=ratio.get("published", float("nan")))


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "build/bench"
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    for name, library in (("PyTorch", torch), ("Numba", numba)):
        if library is None:
            print(f"{name} is missing: its forms are left out")
    ours = Ours(folder + "/operator_bench")
    for name in OPERATORS:
        if len(sys.argv) <= 3 or sys.argv[3] in name:
            compare(ours, name, repeats)


if __name__ == "__main__":
    main()
