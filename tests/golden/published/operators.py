"""Operators around operators, hybrids, and the list of all.

An operator is C(x, o, c, s): x [n] the numbers of a segment, o its options, c what it knows of the round (key, client, round, scope,
memory), s the segment (index, begin, rows, cols). Few see more at once: OF_ALL_SEGMENTS x [P], OF_ALL_CLIENTS the inputs [K,P] of the
cohort.
"""

import math
from types import SimpleNamespace

import numpy as np

from published.low_rank import absolute_low_rank, atomo, gradzip, powersgd, rank_r_svd
from published.quantisers import (absolute_rounding, adaqs, dettmers8, dqsgd, drive, eden, ef_sign, fp8, identity, inceptionn, lpc, natural,
                                  natural_dithering, one_bit, qsgd, scaled_integer, sign, sketchml, stochastic_rounding, sz, terngrad,
                                  three_lc, vqsgd, zfp)
from published.sparsifiers import (aji_dropping, dgc_sampled, dryden, hard_threshold, perm_k, random_k, sidco, sketched_sgd, strom, top_k,
                                   variance_based, wangni)
from published.shared import at, draws, largest, number_kept, random_levels
from published.words import hash64


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
    """The operator inside another one, whose random words are those of another key."""
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
    # Each segment is a message of its own: the operator inside sees it as its first.
    return inner(o.critical if m.critical else o.otherwise, x, c, segment(0, s.begin, s.rows, s.cols), s.index + 1)


def lgreco(X, o, c, scope):
    """X [P] of one client. A value costs 64 bits and its position fewer: the shortest message is the one of fewest values."""
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
    absolute_low_rank, absolute_rounding, accordion, adaqs, aji_dropping, atomo, dettmers8, dgc_sampled, dqsgd, drive, dryden, eden,
    ef_sign, fp8, gradzip, hard_threshold, identity, inceptionn, induced, lgreco, lpc, natural, natural_dithering, one_bit, powersgd, qsgd,
    perm_k, qsparse, random_k, rank_r_svd, scaled_integer, schedule, sidco, sign, sketched_sgd, sketchml, stc, stochastic_rounding, strom, sz,
    terngrad, three_lc, top_k, variance_based, vqsgd, wangni, zfp)}  # fmt: skip
OF_ALL_SEGMENTS, OF_ALL_CLIENTS = (lgreco,), (sketched_sgd, powersgd)
OF_MATRICES = (powersgd, gradzip, rank_r_svd, absolute_low_rank)

# Values that the equations need and a case does not set: the defaults that `fedbits list compressors` prints.
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
    "sz": {"predictor": "previous"},
    "terngrad": {"scaled": False},
    "three_lc": {"sparsity": 1.0},
    "top_k": {"ties": "lowest_index"},
    "vqsgd": {"scaled": False},
    "wangni": {"scaled": False, "corrections": 100},
    "zfp": {"block": "line"},
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
