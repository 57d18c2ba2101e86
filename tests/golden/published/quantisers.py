"""Operators that send every entry in few bits: number formats, levels, signs, and levels of a rotated vector.
"""

import math

import numpy as np

from published.shared import draws, largest_segment, of_client, of_segment, random_levels, round_up_at_random, sgn


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


# ---- quantisers


def omega_l2(d, s):
    return min(d / s**2, math.sqrt(d) / s)


def omega_max(d, s):
    return min((d - 1) / (4 * s**2), math.sqrt(d - 1) / (2 * s))


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


# ---- a bound for the error of each entry; steps are shorter by 2^-16, which leaves room for rounding


def sz(x, o, c, s):
    t, is_plane = 2 * o.error_bound * (1 - 2.0**-16), o.predictor == "plane" and s.cols > 1
    q = np.round(x / t).reshape((s.rows, s.cols) if is_plane else (1, -1))
    if o.predictor == "none":
        return t * q.ravel()
    near = np.pad(q, ((1, 0), (1, 0)))  # of one row, the row above is zero
    d = q - (near[:-1, 1:] + near[1:, :-1] - near[:-1, :-1])
    return t * np.cumsum(np.cumsum(d, axis=0), axis=1).ravel()


def cosines(n):
    """The orthonormal DCT-II of length n."""
    k, i = np.arange(n)[:, None], np.arange(n)[None, :]
    return np.sqrt(np.where(k == 0, 1, 2) / n) * np.cos(math.pi * (2 * i + 1) * k / (2 * n))


def zfp(x, o, c, s):
    is_square = o.block == "square" and s.cols > 1
    X = x.reshape(s.rows, s.cols) if is_square else x.reshape(1, -1)
    height, gain = (4, (1 + math.cos(math.pi / 8)) ** 2) if is_square else (1, 1 + math.cos(math.pi / 8))
    h = 2 * o.error_bound * (1 - 2.0**-16) / gain
    C = np.zeros_like(X)
    for i in range(0, X.shape[0], height):
        for j in range(0, X.shape[1], 4):
            block = X[i : i + height, j : j + 4]
            A, B = cosines(block.shape[0]), cosines(block.shape[1])
            C[i : i + height, j : j + 4] = A.T @ (h * np.round(A @ block @ B.T / h)) @ B
    return C.ravel()


# ---- rotations


def hadamard(n):
    return np.ones((1, 1)) if n == 1 else np.kron(np.array([[1, 1], [1, -1]]), hadamard(n // 2))


def rotation(n, c, s):
    """R of compressors/support/rotation.hpp as a matrix: sign i of parameter j is bit i of word j, set is -1."""
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
