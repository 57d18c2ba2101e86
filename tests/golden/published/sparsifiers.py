"""Operators that send some entries.
"""

import math
from types import SimpleNamespace

import numpy as np

from published.shared import at, draws, largest, number_kept, of_segment, sgn
from published.words import EVERYONE, Stream, Words


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


def perm_k(x, o, c, s):
    # The places of the entries in a random order, dealt out from the start again and again until every client has ceil(d/n) of them.
    d, n = len(x), o.clients
    words = Words(Stream(c.key, c.client // n, c.round, layer=s.index))
    place, taker = words.shuffled(d), words.shuffled(n)
    each = -(-d // n)
    takers = [[taker[slot // each] for slot in range(place[j], n * each, d)] for j in range(d)]
    return np.array([x[j] * n / len(takers[j]) if c.client % n in takers[j] else 0.0 for j in range(d)])


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
    """X [K,P] of all clients: the mean of their p_i on H. Bit 0 of word j of layer r is the sign (set: +), the other bits the column."""
    mean = np.mean(X, axis=0)
    words = np.array([[Stream(c.key, EVERYONE, 0, 0, r).word(j) for j in range(len(mean))] for r in range(o.rows)])
    h, signs = (words >> 1) * o.columns >> 31, np.where(words & 1, 1.0, -1.0)
    S = np.zeros((o.rows, o.columns))
    for r in range(o.rows):
        np.add.at(S[r], h[r], signs[r] * mean)
    e = np.median([signs[r] * S[r, h[r]] for r in range(o.rows)], axis=0)
    return at(mean, largest(e, number_kept(o, len(mean))))
