"""What the operators share: positions, signs, random rounding, and which word is whose.
"""

import math

import numpy as np

from published.words import Stream


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


def random_levels(x, scale, s, u):
    return scale * sgn(x) * round_up_at_random(np.minimum(s * np.abs(x) / scale, s), u) / s
