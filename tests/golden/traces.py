#!/usr/bin/env python3
"""Goldens of every operator and feedback method, from their published equations in NumPy: three rounds each on a small example.

    python3 tests/golden/traces.py > tests/golden/traces.txt          numpy_traces_test.cpp holds the library against the numbers

Written from the equations, not from the library's code; the numbers of a random operator come from a Philox of our own (Salmon, Moraes, Dror,
Shaw, SC 2011). What no publication says, and is taken from the library, is which random word serves which draw: the layout of
fl_core/random.hpp, and the index of the word, which the functions below name. Every trace of one input differs from every other: differ()
says where two methods cannot be told apart, and then the example has to change.

Lines of the output, by their first word:
    input NAME; x ROUND CLIENT numbers..                      the vectors that operators are given
    operator NAME LABEL; scope; options; c ROUND CLIENT numbers..
                                                              C(x); of an operator of several phases "mean ROUND": the clients' mean C(x)
    feedback NAME LABEL; toml LINE..; model ROUND numbers..; client SLOT ROUND CLIENT numbers..; shared SLOT ROUND numbers..
"""

import math
import sys
from types import SimpleNamespace

import numpy as np

# ---------------------------------------------------------------------------------------------------------------------- random numbers

MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1


def philox(counter, key):
    """Philox4x32-10: four words of a counter of four and a key of two."""
    c, (k0, k1) = list(counter), key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & MASK32, (p0 >> 32) ^ c[3] ^ k1, p0 & MASK32]
        k0, k1 = (k0 + 0x9E3779B9) & MASK32, (k1 + 0xBB67AE85) & MASK32
    return c


# Known answers that the authors publish with their library.
assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox([MASK32] * 4, [MASK32] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
assert philox([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0]) == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def hash64(seed, salt):
    """SplitMix64's finaliser over (seed, purpose)."""
    z = (seed * 0x9E3779B97F4A7C15 + (salt + 1) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK64
    return z ^ (z >> 31)


MINIBATCH, COMPRESSOR, COIN = 4, 5, 7  # purposes
EVERYONE = MASK32  # the client of what all share


class Stream:
    """Words of one (key, client, round, step, layer), by index."""

    def __init__(self, key, client, round_, step=0, layer=0):
        self.key, self.tail = (key & MASK32, key >> 32), [client, round_, step << 16 | layer]

    def quad(self, i):
        return philox([i] + self.tail, self.key)

    def word(self, i):
        return self.quad(i // 4)[i % 4]

    def uniform(self, i):
        return self.word(i) * 2.0**-32

    def below(self, i, n):
        return self.word(i) * n >> 32

    def uniforms(self, first, n):
        return np.array([self.uniform(i) for i in range(first, first + n)])


def normals(stream, n):
    """Box-Muller; each of 53-bit uniforms from two words, one after another."""
    words = [stream.word(i) for i in range(4 * n)]
    u = [((a >> 5) << 26 | b >> 6) * 2.0**-53 for a, b in zip(words[::2], words[1::2])]
    return np.array([math.sqrt(-2 * math.log1p(-a)) * math.cos(2 * math.pi * b) for a, b in zip(u[::2], u[1::2])])


# ------------------------------------------------------------------------------------------------------------------------- operators
#
# C(x, o, c, s): x [n] the numbers of a segment, o its options, c what it knows of the round (key, client, round, scope, memory), s the segment
# (index, begin, rows, cols).


def of_client(c):
    """Word j is that of parameter j."""
    return Stream(c.key, c.client, c.round)


def of_segment(c, s):
    """Draw i is word i."""
    return Stream(c.key, c.client, c.round, s.index >> 16, s.index & 0xFFFF)


def draws(c, s, n):
    return of_client(c).uniforms(s.begin, n)


def largest_segment(c):
    return max(s.rows * s.cols for s in c.scope)


def number_kept(o, n):
    return o.k if "k" in vars(o) else max(1, math.floor(o.ratio * n))


def largest(x, k):
    """Positions of the k largest magnitudes, ties to the lowest index."""
    return np.argsort(-np.abs(x), kind="stable")[:k]


def at(x, positions):
    kept = np.zeros_like(x)
    kept[positions] = x[positions]
    return kept


def sgn(x):
    return np.where(x >= 0, 1.0, -1.0)


def round_up_at_random(a, u):
    return np.floor(a) + (u < a - np.floor(a))


# ---- number formats


def to_significant(x, bits):
    m, e = np.frexp(x)
    return np.ldexp(np.round(np.ldexp(m, bits)), e - bits)  # np.round takes ties to even


def identity(x, o, c, s):
    if o.format == "fp16":
        return x.astype(np.float16).astype(float)
    return to_significant(x, 8) if o.format == "bf16" else x


def fp8(x, o, c, s):
    top, bits, smallest = (448, 4, 2.0**-6) if o.format == "e4m3" else (57344, 3, 2.0**-14)
    scale = np.max(np.abs(x)) / top if o.scaled else 1.0
    y = np.clip(x / scale, -top, top)
    step = smallest * 2.0 ** (1 - bits)  # of the subnormal numbers
    return scale * np.where(np.abs(y) < smallest, np.round(y / step) * step, to_significant(y, bits))


# ---- sparsifiers


def top_k(x, o, c, s):
    k = number_kept(o, len(x))
    if o.ties == "all":
        return np.where(np.abs(x) >= np.abs(x)[largest(x, k)[-1]], x, 0)
    return at(x, largest(x, k))


def random_k(x, o, c, s):
    # Floyd's algorithm, for the entries left out where they are fewer. A number below m is floor(w m / 2^64), w of two words.
    n, k, stream = len(x), number_kept(o, len(x)), of_segment(c, s)
    drawn = min(k, n - k) if k > n // 2 else k
    chosen = set()
    for i, j in enumerate(range(n - drawn, n)):
        t = (stream.word(2 * i) << 32 | stream.word(2 * i + 1)) * (j + 1) >> 64
        chosen.add(j if t in chosen else t)
    if k > n // 2:
        chosen = set(range(n)) - chosen
    return at(x, sorted(chosen)) * (n / k if o.scaled else 1)


def hard_threshold(x, o, c, s):
    return np.where(np.abs(x) >= o.threshold, x, 0)


def strom(x, o, c, s):
    return np.where(np.abs(x) > o.tau, o.tau * sgn(x), 0)


def sampled(x, o, c, s):
    stream = of_segment(c, s)
    return np.array([abs(x[stream.below(i, len(x))]) for i in range(max(1, math.floor(o.sample * len(x))))])


def ranked(magnitudes, rank):
    """The rank-th largest."""
    return np.sort(magnitudes)[len(magnitudes) - rank]


def aji_dropping(x, o, c, s):
    k, n = number_kept(o, len(x)), len(x)
    magnitudes = np.abs(x) if o.exact else sampled(x, o, c, s)
    t = ranked(magnitudes, k if o.exact else max(1, math.floor(k / n * len(magnitudes))))
    return np.where((np.abs(x) >= t) & (x != 0), x, 0)


def dgc_sampled(x, o, c, s):
    n, stage = len(x), (c.round - 1) // o.warmup_rounds if o.warmup_rounds else len(o.warmup)
    r = o.warmup[stage] if stage < len(o.warmup) else o.ratio
    sample = sampled(x, o, c, s)
    t = ranked(sample, max(1, math.floor(r * len(sample))))
    for _ in range(o.rounds):
        sent = np.sum(np.abs(x) >= t)
        if sent > (1 + o.tolerance) * r * n:
            t = min((1 + o.tolerance) * t, np.max(np.abs(x)))
        elif sent < (1 - o.tolerance) * r * n:
            t = (1 - o.tolerance) * t
        else:
            break
    return np.where((np.abs(x) >= t) & (x != 0), x, 0)


def dryden(x, o, c, s):
    sent = np.zeros_like(x)
    for sign in (1, -1):
        side = x[sign * x > 0] * sign
        if len(side) > 0:
            kept = sign * x >= ranked(side, max(1, math.floor(o.ratio * len(side))))
            sent[kept] = sign * np.mean(sign * x[kept])
    return sent


def regularised_gamma(a, x):
    """P(a, x) = x^a e^-x sum_n x^n / Gamma(a + n + 1)."""
    term = math.exp(a * math.log(x) - x - math.lgamma(a + 1))
    total, n = 0.0, 1
    while term > 1e-18 * total:
        total, term, n = total + term, term * x / (a + n), n + 1
    return total


def inverse_gamma(a, p):
    low, high = 1e-300, a + 1
    while regularised_gamma(a, high) < p:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if regularised_gamma(a, middle) < p else (low, middle)
    return (low + high) / 2


def sidco_quantile(a, fit, rho):
    mean = np.mean(a)
    if fit == "exponential":
        return -mean * math.log(rho)
    if fit == "pareto":
        shape = mean**2 / np.var(a, ddof=1)
        alpha, q = mean * (shape + 1) / 2, (shape - 1) / 2
        return alpha * (1 - rho**q) / q
    d = math.log(mean) - np.mean(np.log(a))
    alpha = (3 - d + math.sqrt((d - 3) ** 2 + 24 * d)) / (12 * d)
    return mean / alpha * inverse_gamma(alpha, 1 - rho)


def sidco(x, o, c, s):
    m = c.memory.setdefault(("sidco", s.index), SimpleNamespace(stages=o.stages or 1, sum=0.0, rounds=0))
    a, M = np.abs(x) / np.linalg.norm(x), 1 if o.ratio >= o.first_ratio else m.stages
    t = sidco_quantile(a, o.fit, o.ratio if M == 1 else o.first_ratio)
    for _ in range(M - 1):
        above = a[a > t]
        if len(set(above)) < 2:
            break
        rho, least = (o.ratio / o.first_ratio) ** (1 / (M - 1)), np.min(above)
        t = least + sidco_quantile(above - least, "exponential" if o.fit == "exponential" else "pareto", rho)
    if o.stages == 0:
        m.sum, m.rounds = m.sum + np.sum(a > t) / (o.ratio * len(x)), m.rounds + 1
        if m.rounds == o.update_every:
            fewer, more = m.sum / m.rounds > 1.2, m.sum / m.rounds < 0.8
            m.stages = min(max(m.stages - fewer + more, 1), math.ceil(math.log(o.ratio, 0.5)))
            m.sum, m.rounds = 0.0, 0
    return np.where(a > t, x, 0)


def wangni(x, o, c, s):
    k, d = number_kept(o, len(x)), len(x)
    p = np.minimum(1, k * np.abs(x) / np.sum(np.abs(x)))
    for _ in range(o.corrections):
        inside = p < 1
        scale = (k - d + np.sum(inside)) / np.sum(p[inside])
        if scale <= 1 + 1e-12:
            break
        p[inside] = np.minimum(1, scale * p[inside])
    c_x = np.where(draws(c, s, d) < p, x / np.where(p > 0, p, 1), 0)
    return c_x * (k / d if o.scaled else 1)


def variance_based(x, o, c, s):
    # Our reading of "e the nearest exponent": the nearer of the two powers of two, in value.
    m = c.memory.setdefault(("variance", s.index), SimpleNamespace(r=np.zeros(len(x)), v=np.zeros(len(x))))
    m.r, m.v = m.r + x, m.v + x**2
    ready = m.r**2 > o.alpha * m.v
    size = np.where(m.r == 0, 1, np.abs(m.r))
    E = math.floor(math.log2(np.max(size[ready]))) if ready.any() else 0
    low = np.floor(np.log2(size))
    e = np.minimum(np.where(size - 2**low > 2 ** (low + 1) - size, low + 1, low), E)
    sent = ready & (E - e <= 6)
    c_x = np.where(sent, sgn(m.r) * 2.0**e, 0)
    m.r, m.v = np.where(sent, 0, m.r), np.where(sent, 0, o.zeta * m.v)
    return c_x


def sketched_sgd(X, o, c, scope):
    """X [K,P], one message after another: the mean of all clients' C(x)."""
    P = X.shape[1]
    words = [[Stream(c.key, EVERYONE, 0, 0, r).word(j) for j in range(P)] for r in range(o.rows)]  # bit 0: the sign, set is +; the rest: the column
    S = np.zeros((o.rows, o.columns))
    for r in range(o.rows):
        for j in range(P):
            S[r, (words[r][j] >> 1) * o.columns >> 31] += (1 if words[r][j] & 1 else -1) * np.mean(X[:, j])
    e = np.array([np.median([(1 if words[r][j] & 1 else -1) * S[r, (words[r][j] >> 1) * o.columns >> 31] for r in range(o.rows)]) for j in range(P)])
    return at(np.mean(X, axis=0), largest(e, number_kept(o, P)))


# ---- quantisers


def omega_l2(d, s):
    return min(d / s**2, math.sqrt(d) / s)


def omega_max(d, s):
    return min((d - 1) / (4 * s**2), math.sqrt(d - 1) / (2 * s))


def random_levels(x, scale, s, u):
    return scale * sgn(x) * round_up_at_random(np.minimum(s * np.abs(x) / scale, s), u) / s


def qsgd(x, o, c, s):
    scale = np.linalg.norm(x) if o.norm == "l2" else np.max(np.abs(x))
    omega = (omega_l2 if o.norm == "l2" else omega_max)(largest_segment(c), o.levels) if o.scaled else 0
    return random_levels(x, scale, o.levels, draws(c, s, len(x))) / (1 + omega)


def adaqs(x, o, c, s):
    levels = min(o.levels * 2 ** ((c.round - 1) // o.double_every), o.max_levels)
    omega = omega_l2(largest_segment(c), levels) if o.scaled else 0
    return random_levels(x, np.linalg.norm(x), levels, draws(c, s, len(x))) / (1 + omega)


def dqsgd(x, o, c, s):
    norm = np.linalg.norm(x)
    return random_levels(x, norm, max(1, math.ceil(o.levels_per_unit * norm)), draws(c, s, len(x)))


def terngrad(x, o, c, s):
    if o.clip > 0:
        x = np.clip(x, -o.clip * np.std(x), o.clip * np.std(x))
    omega = (math.sqrt(largest_segment(c)) - 1) / 2 if o.scaled else 0
    m = np.max(np.abs(x))
    return np.where(draws(c, s, len(x)) < np.abs(x) / m, m * sgn(x), 0) / (1 + omega)


def one_bit(x, o, c, s):
    mean = lambda group: np.mean(group) if len(group) else 0.0
    return np.where(x < 0, mean(x[x < 0]), mean(x[x >= 0]))


def sign(x, o, c, s):
    return sgn(x)


def ef_sign(x, o, c, s):
    return np.mean(np.abs(x)) * sgn(x)


def natural(x, o, c, s):
    m, e = np.frexp(np.abs(x))
    m, low = 2 * m, np.ldexp(0.5, e)  # |x| = m 2^(e-1), 1 <= m < 2
    up = m >= 1.5 if o.rounding == "nearest" else draws(c, s, len(x)) < m - 1
    return np.where(x == 0, 0, sgn(x) * np.where(up, 2 * low, low))


def natural_dithering(x, o, c, s):
    scale = {"l2": np.linalg.norm(x), "l1": np.sum(np.abs(x)), "max": np.max(np.abs(x))}[o.norm]
    d, h = largest_segment(c), 2.0 ** (o.levels - 1)
    root = d ** (1 / min({"l2": 2, "l1": 1, "max": math.inf}[o.norm], 2)) / h
    omega = 1 / 8 + root * min(1, root) if o.scaled else 0
    levels = np.concatenate([[0], 2.0 ** np.arange(1 - o.levels, 1)])
    t = np.abs(x) / scale
    below = np.minimum(np.searchsorted(levels, t, side="right") - 1, o.levels - 1)
    l, h = levels[below], levels[below + 1]
    return scale * sgn(x) * np.where(draws(c, s, len(x)) < (t - l) / (h - l), h, l) / (1 + omega)


def dettmers8(x, o, c, s):
    # 2^i equal cells in the decade 10^(i-7) .. 10^(i-6), each meant by its middle; and zero
    tree = np.concatenate([[0]] + [10.0 ** (i - 6) * (0.1 + 0.9 * (np.arange(2**i) + 0.5) / 2**i) for i in range(7)])
    scale = np.max(np.abs(x))
    nearest = np.argmin(np.abs(np.abs(x)[:, None] / scale - tree[None, :]), axis=1)
    return scale * sgn(x) * tree[nearest]


def stochastic_rounding(x, o, c, s):
    eps, half = 2.0**-o.fraction_bits, 2.0 ** (o.integer_bits - 1)
    q = np.round(x / eps) if o.rounding == "nearest" else round_up_at_random(x / eps, draws(c, s, len(x)))
    return np.clip(eps * q, -half, half - eps)


def absolute_rounding(x, o, c, s):
    a = np.abs(x) / o.step
    q = np.round(a) if o.rounding == "nearest" else round_up_at_random(a, draws(c, s, len(x)))
    return np.where(a < o.deadzone, 0, o.step * sgn(x) * q)


def scaled_integer(x, o, c, s):
    # "stochastic" is Gupta et al.'s: towards minus infinity, or one above it.
    q = np.round(o.alpha * x) if o.rounding == "nearest" else round_up_at_random(o.alpha * x, draws(c, s, len(x)))
    top = 2.0 ** (o.bits - 1) - 1
    return np.clip(q, -top, top) / o.alpha


def lpc(x, o, c, s):
    half = 2.0 ** (o.bits - 1)
    step = o.clip * np.max(np.abs(x)) / (half - 1)
    omega = omega_max(largest_segment(c), half - 1) if o.scaled else 0
    return step * round_up_at_random(np.clip(x / step, -half, half - 1), draws(c, s, len(x))) / (1 + omega)


def vqsgd(x, o, c, s):
    # Draw r is quad r: word 0 takes the part of the distribution that is proportional to |u_j| or the uniform one, words 1 and 2 (53 bits)
    # where in it; of the uniform one +e_1, -e_1, +e_2, ..
    d, norm, stream = len(x), np.linalg.norm(x), of_segment(c, s)
    share = np.sum(np.abs(x)) / norm / math.sqrt(d)
    omega = (largest_segment(c) - 1) / o.repetitions if o.scaled else 0
    c_x = np.zeros(d)
    for r in range(o.repetitions):
        w = stream.quad(r)
        where = (w[1] * 2.0**21 + (w[2] >> 11)) * 2.0**-53
        if w[0] * 2.0**-32 < share:
            j = int(np.searchsorted(np.cumsum(np.abs(x)), where * np.sum(np.abs(x)), side="right"))
            c_x[j] += sgn(x)[j]
        else:
            vertex = int(where * 2 * d)
            c_x[vertex // 2] += -1 if vertex % 2 else 1
    return c_x * math.sqrt(d) * norm / o.repetitions / (1 + omega)


def sketchml(x, o, c, s):
    b = np.sort(x)[[i * len(x) // o.buckets for i in range(1, o.buckets)]]
    bucket = np.sum(b[None, :] <= x[:, None], axis=1)
    return np.array([np.mean(x[bucket == i]) for i in bucket])


def three_lc(x, o, c, s):
    M = o.sparsity * np.max(np.abs(x))
    return np.where(np.abs(x) >= M / 2, M * sgn(x), 0)


def inceptionn(x, o, c, s):
    a, b = np.abs(x), o.error_bits
    cut = lambda places: np.floor(a * 2.0**places) / 2.0**places
    return sgn(x) * np.where(a < 2.0**-b, 0, np.where(a < 2.0 ** -(b // 2), cut(7), cut(15)))


# ---- rotations


def hadamard(n):
    return np.ones((1, 1)) if n == 1 else np.kron(np.array([[1, 1], [1, -1]]), hadamard(n // 2))


def rotation(n, c, s):
    """R of compressors/rotation.hpp as a matrix: sign i of parameter j is bit i of word j, set is -1."""
    words = [of_client(c).word(s.begin + j) for j in range(n)]
    signs = lambda bit: np.array([-1.0 if w >> bit & 1 else 1.0 for w in words])
    N = 2 ** (n.bit_length() - 1)
    H = hadamard(N) / math.sqrt(N)
    first, last = np.eye(n), np.eye(n)
    first[:N, :N], last[-N:, -N:] = H, H
    D0, D1 = np.eye(n), np.eye(n)
    D0[range(N), range(N)], D1[range(n - N, n), range(n - N, n)] = signs(0)[:N], signs(1)[-N:]
    if n == N:
        return first @ D0
    B = np.eye(n)
    for i in range(n // 2):
        j = i + (n + 1) // 2
        B[i, i] = B[i, j] = B[j, i] = math.sqrt(0.5)
        B[j, j] = -math.sqrt(0.5)
    return last @ D1 @ first @ D0 @ B @ np.diag(signs(2))


def drive(x, o, c, s):
    R = rotation(len(x), c, s)
    z = R @ x
    S = x @ x / np.sum(np.abs(z)) if o.scale == "unbiased" else np.sum(np.abs(z)) / len(x)
    return S * (R.T @ sgn(z))


def normal_centroids(bits):
    """Lloyd-Max for N(0,1): c_i = E[z | its cell], cells halfway between centroids."""
    phi = lambda z: math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    tail = lambda z: math.erfc(z / math.sqrt(2)) / 2
    c = np.linspace(-2, 2, 2**bits)
    for _ in range(3000):
        edges = [-math.inf, *(c[1:] + c[:-1]) / 2, math.inf]
        c = np.array([(phi(l) - phi(u)) / (tail(l) - tail(u)) for l, u in zip(edges, edges[1:])])
    return c


def eden(x, o, c, s):
    R, levels = rotation(len(x), c, s), normal_centroids(o.bits)
    z = R @ x
    y = math.sqrt(len(x)) * z / np.linalg.norm(x)
    Q = levels[np.argmin(np.abs(y[:, None] - levels[None, :]), axis=1)]
    S = x @ x / (z @ Q) if o.scale == "unbiased" else (z @ Q) / (Q @ Q)
    return S * (R.T @ Q)


# ---- low rank: tensors without a matrix shape travel as they are


def powersgd(X, o, c, scope):
    """X [K,P] of all clients: the mean of their C(M_i) = P^ Q_i^T."""
    estimate, first = np.mean(X, axis=0), 0
    for s in scope:
        if s.cols == 1:
            continue
        r, part = min(o.rank, s.rows, s.cols), slice(s.begin, s.begin + s.rows * s.cols)
        stream = Stream(c.key, EVERYONE, 0 if o.warm_start else c.round)
        start = 2 * stream.uniforms(first, s.cols * r).reshape(s.cols, r) - 1
        Q = c.memory.get((s.index, "Q"), start) if o.warm_start else start
        M = X[:, part].reshape(-1, s.rows, s.cols)
        P, _ = np.linalg.qr(np.mean([m @ Q for m in M], axis=0))
        Q = np.mean([m.T @ P for m in M], axis=0)
        c.memory[(s.index, "Q")] = Q
        estimate[part] = (P @ Q.T).ravel()
        first += s.cols * r
    return estimate


def gradzip(x, o, c, s):
    r, M = min(o.rank, s.rows, s.cols), x.reshape(s.rows, s.cols)
    solve = lambda A, F: A @ F @ np.linalg.inv(F.T @ F + o.ridge * np.trace(F.T @ F) / r * np.eye(r))
    Q = c.memory.get((s.index, "Q"))
    if Q is None:
        Q = 2 * of_segment(c, s).uniforms(0, s.cols * r).reshape(s.cols, r) - 1
    L = solve(M, Q)
    R = solve(M.T, L)
    c.memory[(s.index, "Q")] = R
    return (L @ R.T).ravel()


def triplets(x, s, weight):
    U, S, V = np.linalg.svd(x.reshape(s.rows, s.cols), full_matrices=False)
    return (U * weight(S) @ V).ravel()


def rank_r_svd(x, o, c, s):
    return triplets(x, s, lambda S: np.where(np.arange(len(S)) < o.rank, S, 0))


def absolute_low_rank(x, o, c, s):
    return triplets(x, s, lambda S: np.where(S > o.threshold, S, 0))


def atomo_probabilities(size, budget):
    order, p = np.argsort(-size), np.zeros(len(size))
    while budget > 0 and len(order) > 0 and size[order[0]] * budget > np.sum(size[order]):
        p[order[0]], order, budget = 1, order[1:], budget - 1
    if np.sum(size[order]) > 0:
        p[order] = size[order] * budget / np.sum(size[order])
    return p


def atomo(x, o, c, s):
    def kept(size, budget, u):
        p = atomo_probabilities(size, budget)
        return np.where(u < p, size / np.where(p > 0, p, 1), 0) / (len(size) / budget if o.scaled else 1)

    if o.atoms == "entries":
        return sgn(x) * kept(np.abs(x), number_kept(o, len(x)), draws(c, s, len(x)))
    return triplets(x, s, lambda S: kept(S, o.rank, of_segment(c, s).uniforms(0, len(S))))


# ---- hybrids, and operators around operators


def qsparse(x, o, c, s):
    k = number_kept(o, len(x))
    kept = at(x, largest(x, k))
    if o.quantizer == "sign":
        return np.sum(np.abs(kept)) / k * np.sign(kept)
    beta = min(k / o.levels**2, math.sqrt(k) / o.levels) if o.scaled else 0
    return random_levels(kept, np.linalg.norm(kept), o.levels, draws(c, s, len(x))) / (1 + beta)


def stc(x, o, c, s):
    k = number_kept(o, len(x))
    kept = at(x, largest(x, k))
    return np.sum(np.abs(kept)) / k * np.sign(kept)


def inner(part, x, c, s, salt=None):
    o = options(part)
    own = c if salt is None else SimpleNamespace(**{**vars(c), "key": hash64(c.key, salt)})
    return OPERATORS[o.kind](x, o, own, s)


def induced(x, o, c, s):
    first = inner(o.biased, x, c, s, 1)
    return first + inner(o.unbiased, x - first, c, s, 2)


def schedule(x, o, c, s):
    return inner(o.stages[max(i for i, start in enumerate(getattr(o, "from")) if start <= c.round)], x, c, s)


def accordion(x, o, c, s):
    m = c.memory.setdefault(("accordion", s.index), SimpleNamespace(norm=None, rounds=0, critical=True))
    if m.rounds % o.window == 0:
        now = np.linalg.norm(x)
        m.critical = m.norm is None or abs(m.norm - now) / m.norm >= o.eta
        m.norm = now
    m.rounds += 1
    return inner(o.critical if m.critical else o.otherwise, x, c, s, s.index + 1)


def lgreco(X, o, c, scope):
    """x [P] of one client. A message of k raw values costs 64 k bits and less for the positions: the choice is the one that sends fewest."""
    parts = [X[s.begin : s.begin + s.rows * s.cols] for s in scope]
    all_ = [o.reference] + o.candidates
    sent = [[inner(part, x, c, s) for part in all_] for x, s in zip(parts, scope)]
    m = c.memory.setdefault("lgreco", SimpleNamespace(choice=None, rounds=0))
    if m.rounds % o.adjust_every == 0:
        error = [[np.sum((a - x) ** 2) for a in row] for x, row in zip(parts, sent)]
        cost = [[np.count_nonzero(a) for a in row] for row in sent]
        budget = o.alpha * sum(row[0] for row in error)
        fit = {}
        for choice in np.ndindex(*[len(all_)] * len(scope)):
            spent = sum(row[i] for row, i in zip(error, choice))
            assert abs(spent - budget) > len(scope) * budget / o.steps or not any(choice), "the example depends on how errors are rounded"
            if spent <= budget:
                fit.setdefault(sum(row[i] for row, i in zip(cost, choice)), []).append(choice)
        shortest = fit[min(fit)]
        assert len({tuple(row[i].tobytes() for row, i in zip(sent, choice)) for choice in shortest}) == 1, "several shortest messages"
        m.choice = shortest[0]
    m.rounds += 1
    return np.concatenate([row[i] for row, i in zip(sent, m.choice)])


OPERATORS = {f.__name__: f for f in (
    absolute_low_rank, absolute_rounding, accordion, adaqs, aji_dropping, atomo, dettmers8, dgc_sampled, dqsgd, drive, dryden, eden, ef_sign, fp8,
    gradzip, hard_threshold, identity, inceptionn, induced, lgreco, lpc, natural, natural_dithering, one_bit, powersgd, qsgd, qsparse, random_k,
    rank_r_svd, scaled_integer, schedule, sidco, sign, sketched_sgd, sketchml, stc, stochastic_rounding, strom, terngrad, three_lc, top_k,
    variance_based, vqsgd, wangni)}  # fmt: skip
OF_ALL_SEGMENTS, OF_ALL_CLIENTS = (lgreco,), (sketched_sgd, powersgd)
OF_MATRICES = (powersgd, gradzip, rank_r_svd, absolute_low_rank)

# What the equations need and a case does not say: the defaults that `fedbits list compressors` prints.
DEFAULTS = {
    "absolute_rounding": {"rounding": "stochastic", "deadzone": 0.0},
    "adaqs": {"scaled": False},
    "aji_dropping": {"exact": False},
    "atomo": {"atoms": "entries", "scaled": False},
    "dgc_sampled": {"rounds": 10, "tolerance": 0.3, "warmup": [], "warmup_rounds": 0},
    "drive": {"scale": "unbiased"},
    "eden": {"scale": "unbiased", "bits": 2},
    "fp8": {"format": "e4m3", "scaled": True},
    "gradzip": {"ridge": 0.001},
    "identity": {"format": "native"},
    "inceptionn": {"error_bits": 10},
    "lgreco": {"alpha": 1.0, "steps": 1000},
    "lpc": {"clip": 1.0, "scaled": False},
    "natural": {"rounding": "stochastic"},
    "natural_dithering": {"norm": "l2", "scaled": False},
    "powersgd": {"warm_start": True},
    "qsgd": {"norm": "l2", "scaled": False},
    "qsparse": {"quantizer": "qsgd", "scaled": True},
    "random_k": {"scaled": False},
    "scaled_integer": {"rounding": "nearest"},
    "sidco": {"fit": "exponential", "stages": 0, "first_ratio": 0.25, "update_every": 5},
    "stochastic_rounding": {"rounding": "stochastic"},
    "terngrad": {"scaled": False},
    "three_lc": {"sparsity": 1.0},
    "top_k": {"ties": "lowest_index"},
    "vqsgd": {"scaled": False},
    "wangni": {"scaled": False, "corrections": 100},
}


def options(part):
    return SimpleNamespace(**{**DEFAULTS.get(part["kind"], {}), **part})


def segment(index, begin, rows, cols):
    return SimpleNamespace(index=index, begin=begin, rows=rows, cols=cols)


def compress(part, x, c):
    """C(x) of one client."""
    o = options(part)
    f = OPERATORS[o.kind]
    if f in OF_ALL_SEGMENTS:
        return f(x, o, c, c.scope)
    c_x, has_matrices = x.copy(), f in OF_MATRICES or getattr(o, "atoms", "") == "singular"
    for s in c.scope:
        if not has_matrices or s.cols > 1:
            c_x[s.begin : s.begin + s.rows * s.cols] = f(x[s.begin : s.begin + s.rows * s.cols], o, c, s)
    return c_x


# ------------------------------------------------------------------------------------------------------------------------- feedbacks
#
# Three clients of 3, 3 and 2 rows of least squares in six dimensions: f_i = mean over its rows of (<a,x> - t)^2 / 2, + l2 |x|^2 / 2. A method
# is a generator: after every round it yields the model, what each client remembers and what the server shares.

ROWS = np.array([
    [1.0, 0.5, -0.2, 0.0, 0.3, 2.0, 1.5],
    [-0.4, 1.2, 0.0, 0.7, 0.0, 0.6, -2.0],
    [0.3, 0.0, 0.9, -1.1, 0.2, 0.0, 0.8],
    [0.0, -0.8, 0.4, 1.3, -0.6, 0.1, 1.1],
    [1.4, 0.2, 0.0, -0.3, 0.5, 0.9, -0.7],
    [-0.6, 0.0, 1.1, 0.4, 0.8, -0.2, 2.4],
    [0.7, -0.9, 0.1, 0.0, 1.6, 0.3, -1.2],
    [0.0, 0.4, -1.3, 0.6, -0.1, 1.0, 0.9],
])  # fmt: skip  (the last column is t)
SHARDS = [range(0, 3), range(3, 6), range(6, 8)]
L2, GAMMA, SEED = 0.05, 0.2, 1
N, P = len(SHARDS), ROWS.shape[1] - 1
WEIGHTS = np.array([len(rows) for rows in SHARDS]) / len(ROWS)


class Run:
    """One run: gradients, cohorts, step sizes and compressed messages."""

    def __init__(self, case):
        self.case, self.o, self.x0 = case, SimpleNamespace(**case["feedback"]), np.full(P, 0.5)
        self.local = SimpleNamespace(**{"steps": 1, "batch": 0, **case["local"]})
        self.memory, self.seen = {}, {}

    def rounds(self):
        return range(1, 4)

    def either(self, what, condition):
        """The condition; an example in which it is not true at times and false at others shows too little."""
        self.seen.setdefault(what, set()).add(bool(condition))
        return condition

    def gamma(self, r):
        return self.local.learning_rate * min(1, r / getattr(self.local, "warmup_rounds", 1))

    def cohort(self, r):
        """Clients by number, going round, `clients` of them at a time."""
        M = self.case.get("participation", {}).get("clients", N)
        return sorted(place % N for place in range((r - 1) * M, r * M))

    def weight(self, i, r):
        return WEIGHTS[i] / sum(WEIGHTS[j] for j in self.cohort(r))

    def mean(self, r, vectors):
        """Of the cohort's vectors {i: v}."""
        return sum(self.weight(i, r) * v for i, v in vectors.items())

    def zeros(self):
        return np.zeros((N, P))

    def gradient(self, i, x, rows=None):
        a, t = ROWS[rows or SHARDS[i], :-1], ROWS[rows or SHARDS[i], -1]
        return a.T @ (a @ x - t) / len(t) + L2 * x

    def sample(self, i, r):
        """The round's minibatch, with replacement: row b is floor(word b * n / 2^32)."""
        stream = Stream(hash64(SEED, MINIBATCH), i, r)
        return [SHARDS[i][stream.below(b, len(SHARDS[i]))] for b in range(self.local.batch)]

    def steps(self, i, start, r, direction=lambda g, y: g):
        """y after local steps y <- y - gamma direction(grad f_i(y), y), and the sum of the gradients on the way."""
        y, G = start.copy(), np.zeros(P)
        for _ in range(self.local.steps):
            g = self.gradient(i, y)
            y, G = y - self.gamma(r) * direction(g, y), G + g
        return y, G

    def C(self, i, v, r, channel="model", index=0):
        """The message of a channel; `index` is its place among the method's channels, which its random numbers depend on."""
        part = self.case.get("channels", {}).get(channel, self.case["up"])
        key = hash64(hash64(SEED, COMPRESSOR), index)
        memory = self.memory.setdefault((channel, i), {})
        return compress(part, v, SimpleNamespace(key=key, client=i, round=r, memory=memory, scope=[segment(0, 0, P, 1)]))

    def down(self, v):
        return compress(self.case["down"], v, SimpleNamespace(scope=[segment(0, 0, P, 1)]))


def none(run):
    x = run.x0
    for r in run.rounds():
        x = x - run.gamma(r) * run.mean(r, {i: run.C(i, run.gradient(i, x), r) for i in run.cohort(r)})
        yield x, {}, {}


def error_memory(run, gradient):
    """p = e + u g, c = C(p), e <- p - c: u = gamma in a step; else the server multiplies by it."""
    x, e, is_step = run.x0, run.zeros(), run.case["up"].get("unit") == "step"
    for r in run.rounds():
        c = {}
        for i in run.cohort(r):
            p = e[i] + (run.gamma(r) if is_step else 1) * gradient(i, x, r)
            c[i] = run.C(i, p, r)
            e[i] = p - c[i]
        x = x - (1 if is_step else run.gamma(r)) * run.mean(r, c)
        yield x, {"error": e}, {}


def ef14(run):
    return error_memory(run, lambda i, x, r: run.gradient(i, x))


def ec_gd_star(run):
    a, t = ROWS[:, :-1], ROWS[:, -1]
    optimum = np.linalg.solve(a.T @ a / len(t) + L2 * np.eye(P), a.T @ t / len(t))
    return error_memory(run, lambda i, x, r: run.gradient(i, x) - run.gradient(i, optimum))


def ec_lsvrg(run):
    points = np.tile(run.x0, (N, 1))

    def gradient(i, x, r):
        rows = run.sample(i, r)
        g = run.gradient(i, x, rows) - run.gradient(i, points[i], rows) + run.gradient(i, points[i])
        if run.either("renewed", Stream(hash64(SEED, COIN), i, r, 2).uniform(0) < run.local.p):  # after the step, at the x before it; step 2 of the coin's stream
            points[i] = x
        return g

    for x, clients, shared in error_memory(run, gradient):
        yield x, {**clients, "reference_point": points}, shared


def momentum_correction(run):
    x, u, v = run.x0, run.zeros(), run.zeros()
    for r in run.rounds():
        c = {}
        for i in run.cohort(r):
            u[i] = run.o.momentum * u[i] + run.gradient(i, x)
            v[i] = v[i] + u[i]
            c[i] = run.C(i, v[i], r)
            if run.o.masking:
                u[i], v[i] = np.where(c[i] != 0, 0, u[i]), np.where(c[i] != 0, 0, v[i])
            else:
                v[i] = v[i] - c[i]
        x = x - run.gamma(r) * run.mean(r, c)
        yield x, {"momentum": u, "accumulated": v}, {}


def power_ef(run):
    x, e = run.x0, run.zeros()
    for r in run.rounds():
        xi = run.o.perturbation / math.sqrt(P) * normals(Stream(hash64(SEED, COIN), 0, r, 1), P)  # step 1 of the coin's stream
        c = {}
        for i in run.cohort(r):
            e[i], c[i] = e[i] + run.gradient(i, x) + xi, np.zeros(P)
            for s in range(run.o.steps):
                sent = run.C(i, e[i], r, "model" if s == 0 else f"power{s + 1}", s)
                e[i], c[i] = e[i] - sent, c[i] + sent
        x = x - run.gamma(r) * run.mean(r, c)
        yield x, {"error": e}, {}


def sa_pef(run):
    x, e, alpha = run.x0, run.zeros(), run.o.alpha
    for r in run.rounds():
        c = {}
        for i in run.cohort(r):
            y, _ = run.steps(i, x - alpha * e[i], r)
            p = (1 - alpha) * e[i] + x - y
            c[i] = run.C(i, p, r)
            e[i] = p - c[i]
        x = x - run.mean(r, c)
        yield x, {"error": e}, {}


def cser(run):
    # As published: an own model x_i and an error e_i, PSync(v, C) = mean C(v) + (v - C(v)). The library keeps m_i = -e_i, and its model is
    # x_i - e_i, the same for all i.
    X, e = np.tile(run.x0, (N, 1)), run.zeros()

    def psync(v, r, channel, index):
        c = np.array([run.C(i, v[i], r, channel, index) for i in range(N)])
        return WEIGHTS @ c + v - c, v - c

    for r in run.rounds():
        g, residual = psync(run.gamma(r) * np.array([run.gradient(i, X[i]) for i in range(N)]), r, "model", 0)
        X, e = X - g, e - residual
        if r % run.o.reset_every == 0:
            mean, residual = psync(e, r, "reset", 1)
            X, e = X + mean - e, residual
        assert np.allclose(X - e, (X - e)[0], rtol=0, atol=1e-14)
        yield (X - e)[0], {"error": -e}, {}


def cafe(run):
    x, a = run.x0, np.zeros(P)
    for r in run.rounds():
        a = a + run.mean(r, {i: run.C(i, run.gradient(i, x) - a, r) for i in run.cohort(r)})
        x = x - run.gamma(r) * a
        yield x, {}, {"aggregate": a}


def shifts(run, lambda_=1.0, nu=1.0, message=None, at_model=lambda x, r: x, direction=lambda s: s):
    """d_i = C(g - h_i), h_i <- h_i + lambda d_i, step along mean of all h_i + nu mean d_i."""
    x, h = run.x0, run.zeros()
    message = message or (lambda i, g, h, r: run.C(i, g - h, r))
    for r in run.rounds():
        w, d, h_mean = at_model(x, r), {}, WEIGHTS @ h
        for i in run.cohort(r):
            d[i] = message(i, run.gradient(i, w), h[i], r)
            h[i] = h[i] + lambda_ * d[i]
        x = x - run.gamma(r) * direction(h_mean + nu * run.mean(r, d))
        yield x, {"shift": h}, {}


def diana(run):
    return shifts(run, run.o.alpha)


def ef_bv(run):
    return shifts(run, getattr(run.o, "lambda"), run.o.nu)


def ef21(run):
    is_dense = getattr(run.o, "init", "compressed") == "dense"
    return shifts(run, message=lambda i, g, h, r: g if is_dense and r == 1 else run.C(i, g - h, r))


def with_momentum(run, eta):
    """v <- (1 - eta) v + eta g, a client's first v its first g; d = C(v - h)."""
    v = {}

    def message(i, g, h, r):
        v[i] = (1 - eta) * v[i] + eta * g if i in v else g
        return run.C(i, v[i] - h, r)

    return v, message


def ef21_sgdm(run):
    v, message = with_momentum(run, run.o.momentum)
    for x, clients, shared in shifts(run, message=message):
        yield x, {**clients, "momentum": np.array([v.get(i, np.zeros(P)) for i in range(N)])}, shared


def ef21_normalised(run):
    _, message = with_momentum(run, run.o.momentum)
    return shifts(run, message=message, direction=lambda s: s / np.linalg.norm(s))


def clip21(run):
    clip = lambda v: run.o.tau / np.linalg.norm(v) * v if run.either("clipped", np.linalg.norm(v) > run.o.tau) else v
    return shifts(run, message=lambda i, g, h, r: run.C(i, clip(g - h), r))


def ef21_plus(run):
    def message(i, g, h, r):
        b, m = run.C(i, g, r), h + run.C(i, g - h, r)
        return (b if run.either("restarted", np.sum((b - g) ** 2) <= np.sum((m - g) ** 2)) else m) - h

    return shifts(run, message=message)


def ef21_p(run):
    w = None

    def at_model(x, r):
        nonlocal w
        w = x if r == 1 else w + run.down(x - w)
        return w

    return shifts(run, run.o.alpha, at_model=at_model)


def econtrol(run):
    x, e, h = run.x0, run.zeros(), run.zeros()
    for r in run.rounds():
        c, h_mean = {}, WEIGHTS @ h
        for i in run.cohort(r):
            ahead = run.gradient(i, x) - h[i]
            c[i] = run.C(i, run.o.eta * e[i] + ahead, r)
            e[i], h[i] = e[i] + ahead - c[i], h[i] + c[i]
        x = x - run.gamma(r) * (h_mean + run.mean(r, c))
        yield x, {"error": e, "shift": h}, {}


def ec_diana(run):
    x, e, h = run.x0, run.zeros(), run.zeros()
    for r in run.rounds():
        v, h_mean = {}, WEIGHTS @ h
        for i in run.cohort(r):
            g = run.gradient(i, x)
            p = e[i] + run.gamma(r) * (g - h[i] + h_mean)
            v[i] = run.C(i, p, r, "model", 1)
            e[i], h[i] = p - v[i], h[i] + run.o.alpha * run.C(i, g - h[i], r, "shift", 0)
        x = x - run.mean(r, v)
        yield x, {"error": e, "shift": h}, {"shift_mean": WEIGHTS @ h}


def marina(run):
    x, previous, g = run.x0, None, None
    for r in run.rounds():
        if r == 1 or run.either("sent in full", Stream(hash64(SEED, COIN), 0, r).uniform(0) < run.o.p):
            g = WEIGHTS @ [run.gradient(i, x) for i in range(N)]
        else:
            rows = [run.sample(i, r) for i in range(N)]
            g = g + WEIGHTS @ [run.C(i, run.gradient(i, x, rows[i]) - run.gradient(i, previous, rows[i]), r) for i in range(N)]
        previous, x = x, x - run.gamma(r) * g
        yield x, {}, {}


def dasha(run):
    x, t, h, previous = run.x0, run.zeros(), run.zeros(), None
    for r in run.rounds():
        for i in range(N):
            if run.local.batch == 0 or r == 1:
                t_new = run.gradient(i, x)
            else:
                rows = run.sample(i, r)
                t_new = run.gradient(i, x, rows) + (1 - run.local.momentum) * (t[i] - run.gradient(i, previous, rows))
            h[i] = t_new if r == 1 and run.o.init == "dense" else h[i] + run.C(i, t_new - t[i] - run.o.a * (h[i] - t[i]), r)
            t[i] = t_new
        previous, x = x, x - run.gamma(r) * (WEIGHTS @ h)
        yield x, {"tracker": t, "shift": h}, {}


def lag(run):
    x, last, models = run.x0, run.zeros(), []
    for r in run.rounds():
        models.append(x)
        moved = sum(np.sum((models[-d] - models[-d - 1]) ** 2) for d in range(1, run.o.memory + 1) if d + 1 <= len(models))
        for i in range(N):
            d = run.gradient(i, x) - last[i]
            if run.either("sent", np.sum(d**2) > run.o.xi / (run.gamma(r) * N) ** 2 * moved):
                last[i] = last[i] + run.C(i, d, r)
        x = x - run.gamma(r) * (WEIGHTS @ last)
        yield x, {"last_sent": last}, {}


def three_pc(run):
    x, h, y = run.x0, run.zeros(), run.zeros()
    o = run.o

    def point(i, h, y, g, r):
        C = lambda v, channel="model", index=0: run.C(i, v, r, channel, index)
        far, near = np.sum((g - h) ** 2), getattr(o, "zeta", 0) * np.sum((g - y) ** 2)
        if o.variant in ("lag", "clag", "adacgd") and run.either("silent", r > 1 and far <= near):
            return h
        if o.variant in ("ef21", "clag"):
            return h + C(g - h)
        if o.variant == "lag":
            return g
        if o.variant == "v2":
            b = h + C(g - y, "drift", 0)
            return b + C(g - b, "model", 1)
        if o.variant == "v4":
            b = h + C(g - h, "first", 0)
            return b + C(g - b, "model", 1)
        if o.variant == "v5":
            is_full = r == 1 or run.either("sent in full", Stream(hash64(SEED, COIN), 0, r).uniform(0) < o.p)
            return g if is_full else h + C(g - y)
        for level in range(1, o.levels):
            new = h + C(g - h, f"level{level}", level - 1)
            if run.either(f"level {level}", np.sum((new - g) ** 2) <= near):
                return new
        return h + C(g - h, "model", o.levels - 1)

    for r in run.rounds():
        for i in range(N):
            g = run.gradient(i, x)
            h[i], y[i] = point(i, h[i], y[i], g, r), g
        x = x - run.gamma(r) * (WEIGHTS @ h)
        yield x, {"shift": h, "last_gradient": y}, {}


def signum(run):
    x, m, beta = run.x0, run.zeros(), run.o.momentum
    server = run.case.get("server", {})
    for r in run.rounds():
        c = {}
        for i in run.cohort(r):
            m[i] = beta * m[i] + (1 - beta) * run.gradient(i, x)
            c[i] = run.C(i, m[i], r)
        estimate = run.mean(r, c)
        x = x - run.gamma(r) * (server["learning_rate"] * sgn(estimate) if server.get("kind") == "sign_sgd" else estimate)
        yield x, {"momentum": m}, {}


def fedpaq(run):
    x = run.x0
    for r in run.rounds():
        x = x - run.mean(r, {i: run.C(i, x - run.steps(i, x, r)[0], r) for i in run.cohort(r)})
        yield x, {}, {}


def scaffold(run):
    x, ci, H = run.x0, run.zeros(), run.local.steps
    for r in run.rounds():
        c, sent = WEIGHTS @ ci, {}
        for i in run.cohort(r):
            y, _ = run.steps(i, x, r, lambda g, y: g - ci[i] + c)
            sent[i] = run.C(i, x - y, r, "model", 0)
            ci[i] = ci[i] + run.C(i, (x - y) / (H * run.gamma(r)) - c, r, "control", 1)
        x = x - run.mean(r, sent)
        yield x, {"control": ci}, {"control_mean": WEIGHTS @ ci}


def scallion(run):
    """With `alpha` SCALLION, with `momentum` SCAFCOM."""
    x, ci, H, alpha, v = run.x0, run.zeros(), run.local.steps, getattr(run.o, "alpha", 1.0), {}
    for r in run.rounds():
        c, d = WEIGHTS @ ci, {}
        for i in run.cohort(r):
            _, G = run.steps(i, x, r, lambda g, y: g - (ci[i] - c) / H)
            if "momentum" in vars(run.o):
                G = v[i] = (1 - run.o.momentum) * v[i] + run.o.momentum * G if i in v else G
            d[i] = run.C(i, alpha * (G - ci[i]), r)
            ci[i] = ci[i] + d[i]
        x = x - run.gamma(r) * (run.mean(r, d) / alpha + c)
        yield x, {"control": ci}, {"control_mean": WEIGHTS @ ci}


def scafcom(run):
    return scallion(run)


def fedcomgate(run):
    x, t, H = run.x0, run.zeros(), run.local.steps
    for r in run.rounds():
        c = {}
        for i in run.cohort(r):
            y, _ = run.steps(i, x, r, lambda g, y: g - t[i] / H)
            c[i] = run.C(i, (x - y) / run.gamma(r), r)
        mean = run.mean(r, c)
        for i in run.cohort(r):
            t[i] = t[i] + c[i] - mean
        x = x - run.gamma(r) * mean
        yield x, {"tracker": t}, {}


def feddyn(run):
    # The source's h_i and h are alpha s_i and alpha s.
    x, s, total, alpha = run.x0, run.zeros(), np.zeros(P), run.local.alpha
    for r in run.rounds():
        d = {}
        for i in run.cohort(r):
            y, _ = run.steps(i, x, r, lambda g, y: g - alpha * s[i] + alpha * (y - x))
            d[i] = run.C(i, x - y, r)
            s[i] = s[i] + d[i]
            total = total + WEIGHTS[i] * d[i]
        x = x - (run.mean(r, d) + total)
        yield x, {"moved": s}, {}


def mime_lite(run):
    x, m, beta = run.x0, np.zeros(P), run.local.momentum
    for r in run.rounds():
        d, dm = {}, {}
        for i in run.cohort(r):
            d[i] = run.C(i, x - run.steps(i, x, r, lambda g, y: (1 - beta) * g + beta * m)[0], r, "model", 0)
            dm[i] = run.C(i, (1 - beta) * (run.gradient(i, x) - m), r, "momentum", 1)
        x, m = x - run.mean(r, d), m + run.mean(r, dm)
        yield x, {}, {"momentum": m}


FEEDBACKS = {f.__name__: f for f in (
    cafe, clip21, cser, dasha, diana, ec_diana, ec_gd_star, ec_lsvrg, econtrol, ef14, ef21, ef21_normalised, ef21_p, ef21_plus, ef21_sgdm, ef_bv,
    fedcomgate, feddyn, fedpaq, lag, marina, mime_lite, momentum_correction, none, power_ef, sa_pef, scafcom, scaffold, scallion, signum, three_pc)}
# fmt: skip

# ------------------------------------------------------------------------------------------------------------------------------ cases

# Numbers of two clients over three rounds; what is 4 x 3 of them and three more, to those who look at tensors. "mixed" has ties, zeros, a
# number below 2^-10 and entries of exactly 0.5; "plain" has none of these, and its first tensor changes its norm by half from round 1 to 2.
CLIENTS, KEY = (3, 7), hash64(hash64(SEED, COMPRESSOR), 0)
INPUTS = {
    "mixed": [
        [[0.75, -1.5, 0.25, -0.25, 0.0, 3.0, -3.0, 0.0007, 0.5, -0.1, 1.2, -0.02, 2.0, -0.6, 0.3],
         [-0.5, 0.9, 0.0, 1.6, -2.25, 0.4, 0.05, -0.7, 1.1, 0.0004, -0.9, 0.35, -0.15, 0.8, 0.0]],
        [[0.6, 1.3, -0.25, 0.45, -0.5, 1.0, -2.0, 0.004, 0.0, 0.7, -1.1, 0.03, 2.0, 0.55, -0.35],
         [0.85, 0.9, -0.3, -1.7, 0.5, 0.65, -0.04, 0.2, -1.2, 0.0009, 1.9, 0.0, -0.45, 0.8, 0.1]],
        [[-0.8, 0.5, 0.15, -0.65, 0.02, 0.95, 1.75, -0.0003, 0.4, 0.0, -1.4, 0.5, -2.5, 0.3, 0.9],
         [0.0, -1.25, 0.6, 0.0, 1.05, -0.55, 0.5, 2.2, -0.07, 0.33, -1.25, 0.0006, 0.75, -0.2, 1.45]],
    ],
    "plain": [
        [[1.31, -0.42, 0.77, 2.05, 0.13, -1.64, 0.58, -0.91, 0.36, -2.38, 1.02, 0.21, 0.84, -0.49, 1.17],
         [-0.65, 1.88, 0.29, -1.23, 0.54, 0.97, -2.71, 0.11, 1.46, -0.38, 0.72, -1.05, 0.33, 1.59, -0.81]],
        [[0.47, 0.62, -0.35, 0.88, -0.19, 0.53, 0.74, -0.28, 0.96, 0.41, -0.67, 0.15, 0.79, -0.52, 1.24],
         [0.92, -1.37, 0.44, 1.71, 0.83, -0.26, 1.15, -2.02, 0.57, 1.98, -0.73, 0.31, -0.87, 0.16, 1.42]],
        [[-0.56, 0.69, 0.38, 1.09, -0.82, 0.24, 0.45, 1.33, -0.17, 0.61, 0.94, -0.71, -0.12, 2.66, 0.99],
         [0.18, -0.95, 1.28, 0.59, -1.76, 0.34, 0.86, 0.51, -1.44, 0.27, -0.63, 2.11, 1.07, 0.43, -0.22]],
    ],
}  # fmt: skip
SCOPES = {"model": [segment(0, 0, 15, 1)], "tensor": [segment(0, 0, 4, 3), segment(1, 12, 3, 1)]}


def op(kind, label="default", input_="mixed", scope="model", **o):
    return {"label": label, "input": input_, "scope": scope, "part": {"kind": kind, **o}}


TOP2, TOP4 = {"kind": "top_k", "k": 2}, {"kind": "top_k", "k": 4}
OPERATOR_CASES = [
    op("absolute_low_rank", scope="tensor", threshold=1.2),
    op("absolute_rounding", step=0.3),
    op("absolute_rounding", "nearest_with_deadzone", step=0.3, rounding="nearest", deadzone=0.8),
    op("accordion", input_="plain", scope="tensor", critical={"kind": "top_k", "k": 2}, otherwise={"kind": "top_k", "k": 1}, eta=0.5, window=1),
    op("adaqs", levels=1, double_every=1, max_levels=3),
    op("aji_dropping", ratio=0.4, sample=0.4),
    op("aji_dropping", "exact", ratio=0.2, exact=True),
    op("atomo", k=7),
    op("atomo", "singular", scope="tensor", atoms="singular", rank=1),
    op("dettmers8"),
    op("dgc_sampled", ratio=0.4, sample=0.4),
    op("dgc_sampled", "warm_up", ratio=0.2, sample=0.4, rounds=1, tolerance=0.1, warmup=[0.6, 0.4], warmup_rounds=1),
    op("dqsgd", levels_per_unit=0.7),
    op("drive"),
    op("drive", "min_error", scale="min_error"),
    op("drive", "tensors", scope="tensor"),
    op("dryden", ratio=0.4),
    op("eden", bits=2),
    op("eden", "min_error", bits=3, scale="min_error"),
    op("ef_sign"),
    op("ef_sign", "tensors", scope="tensor"),
    op("fp8"),
    op("fp8", "e5m2", format="e5m2"),
    op("fp8", "unscaled", scaled=False),
    op("gradzip", scope="tensor", rank=1, ridge=0.1),
    op("hard_threshold", threshold=0.5),
    op("identity"),
    op("identity", "fp16", format="fp16"),
    op("identity", "bf16", format="bf16"),
    op("inceptionn"),
    op("inceptionn", "coarse", error_bits=5),
    op("induced", biased=TOP2, unbiased={"kind": "natural"}),
    op("lgreco", input_="plain", scope="tensor", reference={"kind": "top_k", "ratio": 0.5},
       candidates=[{"kind": "top_k", "ratio": ratio} for ratio in (0.34, 0.67, 1.0)], alpha=1.7, adjust_every=2),
    op("lpc", bits=3),
    op("lpc", "clipped", bits=3, clip=0.6),
    op("natural"),
    op("natural", "nearest", rounding="nearest"),
    op("natural_dithering", levels=3),
    op("natural_dithering", "l1_scaled", levels=4, norm="l1", scaled=True),
    op("natural_dithering", "max", levels=3, norm="max"),
    op("one_bit"),
    op("powersgd", scope="tensor", rank=1),
    op("powersgd", "rank_two", scope="tensor", rank=2),
    op("powersgd", "cold", scope="tensor", rank=1, warm_start=False),
    op("qsgd", levels=4),
    op("qsgd", "max", levels=4, norm="max"),
    op("qsgd", "scaled", levels=4, scaled=True),
    op("qsgd", "tensors", scope="tensor", levels=4),
    op("qsparse", k=4, levels=3),
    op("qsparse", "unscaled", k=4, levels=3, scaled=False),
    op("qsparse", "sign", k=5, quantizer="sign"),
    op("random_k", k=4),
    op("random_k", "scaled", k=4, scaled=True),
    op("random_k", "most", k=11),
    op("rank_r_svd", scope="tensor", rank=1),
    op("scaled_integer", alpha=4.0, bits=8),
    op("scaled_integer", "stochastic", alpha=64.0, bits=8, rounding="stochastic"),
    op("schedule", stages=[{"kind": "top_k", "k": 6}, {"kind": "ef_sign"}, {"kind": "three_lc", "sparsity": 1.25}], **{"from": [1, 2, 3]}),
    op("sidco", ratio=0.1, update_every=1),
    op("sidco", "pareto", ratio=0.4, fit="pareto", stages=1),
    op("sidco", "gamma_pareto", "plain", ratio=0.15, fit="gamma_pareto", stages=2),
    op("sidco", "exponential", ratio=0.15, stages=2),
    op("sign"),
    op("sketched_sgd", k=4, rows=3, columns=5),
    op("sketchml", buckets=4),
    op("stc", k=4),
    op("stochastic_rounding", integer_bits=2, fraction_bits=3),
    op("stochastic_rounding", "nearest", integer_bits=3, fraction_bits=1, rounding="nearest"),
    op("strom", tau=0.5),
    op("terngrad", clip=0.0),
    op("terngrad", "clipped", clip=1.2),
    op("terngrad", "scaled", clip=0.0, scaled=True),
    op("three_lc"),
    op("three_lc", "sparser", sparsity=1.5),
    op("top_k", k=4),
    op("top_k", "all_ties", k=4, ties="all"),
    op("variance_based", alpha=1.2, zeta=0.9),
    op("vqsgd", repetitions=6),
    op("vqsgd", "scaled", repetitions=3, scaled=True),
    op("wangni", k=6),
    op("wangni", "one_correction", k=7, corrections=1),
    op("wangni", "scaled", k=6, scaled=True),
]

QSGD, QSGD8 = {"kind": "qsgd", "levels": 4}, {"kind": "qsgd", "levels": 8}
TWO_OF_THREE = {"kind": "cyclic", "clients": 2}


def fb(kind, label="default", up=TOP2, local=None, **case):
    """case: o (the method's options), channels, participation, down, server."""
    return {"label": label, "feedback": {"kind": kind, **case.pop("o", {})}, "local": {"kind": "gradient", "learning_rate": GAMMA, **(local or {})}, "up": up, **case}


def sgd(kind="sgd", **o):
    return {"kind": kind, "steps": 2, **o}


FEEDBACK_CASES = [
    fb("none"),
    fb("none", "cohorts", participation=TWO_OF_THREE),
    fb("ef14", "gradient", {**TOP2, "unit": "gradient"}, {"warmup_rounds": 2}),
    fb("ef14", "step", {**TOP2, "unit": "step"}, {"warmup_rounds": 2}),
    fb("ef14", "cohorts", participation=TWO_OF_THREE),
    fb("cafe", participation=TWO_OF_THREE),
    fb("clip21", o={"tau": 0.8}),
    fb("cser", up={**TOP2, "unit": "step"}, channels={"reset": {"kind": "top_k", "k": 3, "unit": "step"}}, o={"reset_every": 2}),
    fb("dasha", up=QSGD, o={"a": 0.3, "init": "compressed"}),
    fb("dasha", "mvr_dense", QSGD, {"kind": "mvr", "batch": 2, "momentum": 0.4}, o={"a": 0.3, "init": "dense"}),
    fb("diana", up=QSGD, o={"alpha": 0.5}),
    fb("diana", "cohorts", QSGD, o={"alpha": 0.5}, participation=TWO_OF_THREE),
    fb("ec_diana", up={**TOP2, "unit": "step"}, channels={"shift": {**QSGD, "unit": "step"}}, o={"alpha": 0.4}),
    fb("ec_gd_star", up={**TOP2, "unit": "step"}, local={"kind": "gradient", "subtract": "optimum"}),
    fb("ec_lsvrg", up={**TOP2, "unit": "step"}, local={"kind": "lsvrg", "batch": 1, "p": 0.5}),
    fb("econtrol", o={"eta": 0.3}),
    fb("ef21"),
    fb("ef21", "long_steps", TOP4, {"learning_rate": 0.6}),
    fb("ef21", "dense", o={"init": "dense"}),
    fb("ef21", "cohorts", participation=TWO_OF_THREE),
    fb("ef21_normalised", o={"momentum": 1.0}),
    fb("ef21_normalised", "momentum", o={"momentum": 0.4}),
    fb("ef21_p", up=QSGD, o={"alpha": 0.0}, down={"kind": "top_k", "k": 3}),
    fb("ef21_p", "diana", QSGD, o={"alpha": 0.5}, down={"kind": "top_k", "k": 3}),
    fb("ef21_plus", up=TOP4, local={"learning_rate": 0.6}),
    fb("ef21_sgdm", o={"momentum": 0.3}),
    fb("ef_bv", o={"lambda": 0.6, "nu": 0.8}),
    fb("ef_bv", "unbiased", QSGD, o={"lambda": 0.5, "nu": 0.8}),
    fb("fedcomgate", up=QSGD, local=sgd("fedcomgate")),
    fb("feddyn", local=sgd("feddyn", alpha=0.3), participation=TWO_OF_THREE),
    fb("fedpaq", up=QSGD, local=sgd()),
    fb("lag", up={"kind": "identity"}, o={"xi": 1.0, "memory": 2}),
    fb("lag", "compressed", o={"xi": 2.0, "memory": 1}),
    fb("marina", up=QSGD, local={"kind": "gradient_difference", "batch": 2}, o={"p": 0.7}),
    fb("mime_lite", local=sgd("mime_lite", momentum=0.8), channels={"momentum": {"kind": "top_k", "k": 3}}, participation=TWO_OF_THREE),
    fb("momentum_correction", o={"momentum": 0.7, "masking": True}),
    fb("momentum_correction", "no_masking", o={"momentum": 0.7, "masking": False}),
    fb("power_ef", channels={"power2": {"kind": "ef_sign"}}, o={"steps": 2, "perturbation": 0.1}),
    fb("sa_pef", local=sgd(), o={"alpha": 0.6}),
    fb("scafcom", local=sgd("scallion"), o={"momentum": 0.4}, participation=TWO_OF_THREE),
    fb("scaffold", local=sgd("scaffold"), channels={"control": {"kind": "top_k", "k": 3}}, participation=TWO_OF_THREE),
    fb("scallion", up=QSGD, local=sgd("scallion"), o={"alpha": 0.6}, participation=TWO_OF_THREE),
    fb("signum", o={"momentum": 0.6}),
    fb("signum", "vote", {"kind": "sign"}, o={"momentum": 0.6}, server={"kind": "sign_sgd", "learning_rate": 0.5}),
    fb("three_pc", "ef21_of_four", TOP4, o={"variant": "ef21"}),
    fb("three_pc", "lag", {"kind": "identity"}, o={"variant": "lag", "zeta": 2.5}),
    fb("three_pc", "clag", o={"variant": "clag", "zeta": 2.0}),
    fb("three_pc", "v2", channels={"drift": QSGD}, o={"variant": "v2"}),
    fb("three_pc", "v4", channels={"first": {"kind": "top_k", "k": 1}}, o={"variant": "v4"}),
    fb("three_pc", "v5", o={"variant": "v5", "p": 0.7}),
    fb("three_pc", "adacgd", TOP4, channels={"level1": {"kind": "top_k", "k": 1}, "level2": {"kind": "top_k", "k": 3}},
       o={"variant": "adacgd", "zeta": 2.0, "levels": 3}),
]

# ----------------------------------------------------------------------------------------------------------------------------- output


def toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml(v) for v in value) + "]"
    return repr(value)


def scenario(case):
    """The lines of a scenario but for data.path, which the test adds."""
    lines = ['name = "trace"', "rounds = 3", f"seed = {SEED}", 'precision = "float64"', f'partition = {{ kind = "contiguous", clients = {N} }}']
    lines += [f"model = {toml({'kind': 'linear_regression', 'bias': False, 'l2': L2})}", 'start = { kind = "zero", shift = 0.5 }']
    lines += [f"local = {toml(case['local'])}", f"feedback.up = {toml(case['feedback'])}"]
    lines += [f"compressor.up = {toml({**case['up'], **case.get('channels', {})})}"]
    lines += [f"compressor.down = {toml(case['down'])}"] if "down" in case else []
    return lines + [f"{key} = {toml(case[key])}" for key in ("participation", "server") if key in case]


def numbers(values):
    return " ".join(format(float(v) + 0.0, ".17g") for v in np.ravel(values))  # + 0.0: no -0


def operator_trace(case):
    """[(first words of a line, numbers)] of three rounds."""
    scope, o, rows = SCOPES[case["scope"]], options(case["part"]), []
    memory = {client: {} for client in (*CLIENTS, EVERYONE)}
    for r, vectors in enumerate(INPUTS[case["input"]], start=1):
        context = lambda client: SimpleNamespace(key=KEY, client=client, round=r, scope=scope, memory=memory[client])
        X = np.array(vectors)
        if OPERATORS[o.kind] in OF_ALL_CLIENTS:
            rows.append((f"mean {r}", OPERATORS[o.kind](X, o, context(EVERYONE), scope)))
        else:
            rows += [(f"c {r} {client}", compress(case["part"], x, context(client))) for client, x in zip(CLIENTS, X)]
    return rows


def feedback_trace(case):
    run, rows = Run(case), []
    for r, (x, clients, shared) in enumerate(FEEDBACKS[case["feedback"]["kind"]](run), start=1):
        rows.append((f"model {r}", x))
        rows += [(f"client {slot} {r} {i}", v[i].copy()) for slot, v in clients.items() for i in range(N)]
        rows += [(f"shared {slot} {r}", v) for slot, v in shared.items()]
    one_sided = [what for what, seen in run.seen.items() if len(seen) == 1]
    if one_sided:
        sys.exit(f"traces.py: feedback {case['feedback']['kind']} {case['label']}: always or never {', '.join(one_sided)}: change the example")
    return rows


def differ(names, traces):
    """No two cases have the same numbers: the examples tell every method from every other."""
    flat = [np.concatenate([np.ravel(values) for words, values in rows if words.split()[0] != "client"]) for rows in traces]
    for a in range(len(flat)):
        for b in range(a):
            if len(flat[a]) == len(flat[b]) and np.max(np.abs(flat[a] - flat[b])) < 1e-6:
                sys.exit(f"traces.py: {names[a]} and {names[b]} have the same trace: change one of the examples")


def main():
    traces = [operator_trace(case) for case in OPERATOR_CASES]
    names = [f"{case['part']['kind']} {case['label']}" for case in OPERATOR_CASES]
    for input_ in INPUTS:
        chosen = [i for i, case in enumerate(OPERATOR_CASES) if case["input"] == input_]
        differ([names[i] for i in chosen], [traces[i] for i in chosen])
    feedback_traces = [feedback_trace(case) for case in FEEDBACK_CASES]
    feedback_names = [f"{case['feedback']['kind']} {case['label']}" for case in FEEDBACK_CASES]
    differ(feedback_names, feedback_traces)

    print("# Written by tests/golden/traces.py; what the lines mean is said there.")
    print(f"key {KEY}")
    for name, rounds in INPUTS.items():
        print(f"input {name}")
        for r, vectors in enumerate(rounds, start=1):
            for client, x in zip(CLIENTS, vectors):
                print(f"x {r} {client} {numbers(x)}")
    for name, case, rows in zip(names, OPERATOR_CASES, traces):
        print(f"operator {name}\nof {case['input']} {case['scope']}\noptions {toml(case['part'])}")
        for words, values in rows:
            print(words, numbers(values))
    for row in ROWS:
        print("data", format(row[-1], "g"), " ".join(f"{j}:{v:g}" for j, v in enumerate(row[:-1], start=1)))
    for name, case, rows in zip(feedback_names, FEEDBACK_CASES, feedback_traces):
        print(f"feedback {name}")
        for line in scenario(case):
            print("toml", line)
        for words, values in rows:
            print(words, numbers(values))


if __name__ == "__main__":
    main()
