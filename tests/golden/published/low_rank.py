"""Operators of matrices. Tensors without a matrix shape travel as they are.
"""

import numpy as np

from published.shared import draws, number_kept, of_segment, sgn
from published.words import EVERYONE, Stream


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
