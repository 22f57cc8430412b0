"""The four proofs of one inequality that `certificates.proof` replaced, as oracles: each says yes or no at one t.

They are trimmed to small tables: all pairs are computed, in double precision.  Their error terms are those of before.
"""

import numpy as np
import scipy.linalg

from diffrac_cvx.certificates.block_problem import join_labels
from diffrac_cvx.certificates.proof import cholesky_or_none, project_dual
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.floating_point import (
    UNIT_ROUNDOFF,
    accumulation_length,
    round_up,
    sum_error,
    whitening_error_bounds,
)
from diffrac_cvx.points.linear_algebra import symmetric, weighted_gram, whitener
from diffrac_cvx.problem.direction_problem import with_chunklet_error


def is_positive(S, error):
    shift = round_up(error + sum_error(2 * len(S) + 8) * float(np.abs(np.diag(S)).sum()))
    return cholesky_or_none(S - shift * np.eye(len(S))) is not None


def gram_error(n, mass, top, data_error, terms=None):
    row_error = top**0.5 * data_error
    return round_up(sum_error(terms or accumulation_length(n) + 8) * mass + (2.0 * mass**0.5 + row_error) * row_error)


def proves_dense(problem, u, C, t):
    """All coordinates at once, whitened; C = None is C = 0."""
    W, rounding = problem.W, problem.whitening_error
    M = symmetric(problem.Z.weighted_gram(u))
    M_error = gram_error(len(problem.X), float(np.trace(M)), problem.largest_weight(u), rounding.data_error)
    right, right_error = np.eye(len(M)), rounding.right_error
    if C is not None:
        C = project_dual(problem, C)
        right = right + symmetric(W.T @ C @ W)
        right_error += sum_error(2 * len(C) + 8) * float(np.sum(W**2) * np.linalg.norm(C))
    factorized = sum_error(2 * len(M) + 8)
    sizes = [sum_error(4) * np.linalg.norm(S) + factorized * float(np.abs(np.diag(S)).sum()) for S in (M, right)]
    error = round_up(t * right_error + M_error + t * sizes[1] + sizes[0], 8)
    return t >= error and cholesky_or_none(t * right - M - error * np.eye(len(M))) is not None


class Columns:
    """Columns of a problem on N, with those on E whitened, and what they are off."""

    def __init__(self, problem, E, *, whitened):
        self.problem, self.E, self.N = problem, E, np.setdiff1d(np.arange(len(problem.c)), E)
        X, Y = problem.X.array(), problem.Y.array()
        self.n, self.a, self.c = max(len(X), len(Y)) + problem.X.max_summed, problem.a[self.N], problem.c[self.N]
        self.X, self.Y, self.same = X[:, self.N], Y[:, self.N], problem.Y is problem.X
        self.rows = self.X if self.same else np.vstack([self.X, self.Y])
        if whitened:
            root = np.vstack([Y[:, E] / len(Y) ** 0.5, np.diag(problem.a[E])])
            W = whitener(root) if len(E) else np.zeros((0, 0))
            found = whitening_error_bounds(Y[:, E], W, Y[:, E] @ W, problem.a[E] ** 2)
            self.off = with_chunklet_error(found, problem.X.max_summed, array_points(Y[:, E]), W)
            self.F, self.FY = X[:, E] @ W, Y[:, E] @ W
            self.F_rows = self.F if self.same else np.vstack([self.F, self.FY])
        self.diagonal = np.mean(self.Y**2, axis=0) + self.a**2 + self.c**2
        self.data_error = sum_error(self.n + 16) * np.sqrt(self.diagonal)

    def weights(self, u, t):
        if self.same:
            return (u - t) / len(u)
        return np.append(u / len(u), np.full(len(self.Y), -t / len(self.Y)))


def proves_blocks(problem, u, blocks, t):
    """Coordinates without an l1 weight are eliminated; blocks are pairs of places among the others and C there."""
    at, top = Columns(problem, np.flatnonzero(problem.c == 0.0), whitened=True), problem.largest_weight(u)
    m, f, w = len(at.N), at.F.shape[1], at.weights(u, t)
    labels = np.arange(m)
    for place, _ in blocks:
        labels[place] = labels[place[0]]
    alone = [(np.array([j]), np.zeros((1, 1))) for j in range(m) if np.sum(labels == labels[j]) == 1]
    for place, C in [*blocks, *alone]:  # each with E, before anything is eliminated
        both, both_Y = np.hstack([at.X[:, place], at.F]), np.hstack([at.Y[:, place], at.FY])
        M, right, s = weighted_gram(both, u), weighted_gram(both_Y, np.ones(len(both_Y))), len(place)
        right[:s, :s] += np.diag(at.a[place] ** 2 + at.c[place] ** 2)
        right[s:, s:] = np.eye(f)
        off = float(np.linalg.norm(at.data_error[place])) + at.off.data_error
        error = gram_error(0, float(np.trace(M)), top, off, at.n + 8)
        error += t * (gram_error(0, float(np.trace(right)), 1.0, off, at.n + 8) + at.off.right_error)
        right[:s, :s] += C
        if not is_positive(symmetric(t * right - M), error):
            return False
    values, vectors = np.linalg.eigh(t * np.eye(f) - at.F.T @ (u[:, None] * at.F) / len(u))
    least = float(values.min(initial=np.inf))
    error = t * at.off.right_error + 4 * (t * top) ** 0.5 * at.off.data_error
    if least <= 64 * f * sum_error(len(u) + 32) * t + 4 * error:
        return False
    condition = 1.0 + 32 * f * t / least
    K = (vectors / np.sqrt(values)).T @ (at.F_rows.T @ (w[:, None] * at.rows))
    eliminated = np.sum(K**2, axis=0)
    relative = sum_error(len(w) + f + 32) + at.off.right_error
    relative += (1.0 + 2.0 * (top / t) ** 0.5) * at.off.data_error if f else 0.0
    size = np.abs(w) @ at.rows**2 + condition * eliminated
    centering = 2.0 * (t + top) * at.data_error * np.sqrt(at.diagonal)
    entry_error = round_up(float(np.max((relative * size + centering) / at.c**2, initial=0.0)))
    G, side = at.rows.T @ (w[:, None] * at.rows) + K.T @ K, (t - entry_error) * np.outer(at.c, at.c)
    j, k = np.nonzero(np.triu(~(np.abs(G) <= side), 1) & (labels[:, None] != labels))
    joined = join_labels(np.unique(labels, return_inverse=True)[1], j, k)
    M = u @ at.X**2 / len(u)
    mass = 4.0 * relative * (t * at.diagonal + M + condition * eliminated)
    S = -np.sign(G) * np.maximum(np.abs(G) - side, 0.0)
    S[np.diag_indices(m)] = t * at.diagonal - M - eliminated
    for place, C in blocks:
        S[np.ix_(place, place)] = t * C - G[np.ix_(place, place)]
        S[place, place] += t * (at.a[place] ** 2 + at.c[place] ** 2)
    for label in np.unique(joined[j]):
        members = np.flatnonzero(joined == label)
        if not is_positive(symmetric(S[np.ix_(members, members)]), float(mass[members].sum())):
            return False
    return True


def proves_working_set(problem, u, E, C, between, t):
    """The working set E is eliminated in its given coordinates; the others are alone, or in feature groups."""
    at, pair_penalty = Columns(problem, E, whitened=False), problem.pair_penalty
    w, m = at.weights(u, t), len(at.N)
    C = pair_penalty.restrict(E).project_safe(symmetric(C))
    X, Y = problem.X.array()[:, E], problem.Y.array()[:, E]
    E_rows = X if at.same else np.vstack([X, Y])
    penalties = problem.a[E] ** 2 + problem.c[E] ** 2
    P = symmetric(t * (C + np.diag(penalties)) - E_rows.T @ (w[:, None] * E_rows))
    squares = float(np.mean(problem.Y.array() ** 2, axis=0).sum())
    all_penalties = float(np.sum(problem.a**2) + 2.0 * np.sum(problem.c**2))
    h = 2.0 * (float(u @ np.sum(problem.X.array() ** 2, axis=1)) / len(u) + t * (squares + all_penalties))
    o = (problem.largest_weight(u) + t) * (squares + all_penalties) * sum_error(at.n + 16) ** 2
    error = round_up(sum_error(len(w) + len(E) + 40) * h + 2.0 * (h * o) ** 0.5 + o)
    trace = float(np.abs(np.diag(P)).sum())
    lift = 4.0 * round_up(error + sum_error(2 * len(E) + 8) * trace)
    L = cholesky_or_none(P - lift * np.eye(len(E)))
    if L is None:
        return False
    R = between - E_rows.T @ (w[:, None] * at.rows)
    K = scipy.linalg.solve_triangular(L, R, lower=True) if len(E) else R
    eliminated = np.sum(K**2, axis=0)
    residual = float(np.linalg.norm(R - L @ K)) + sum_error(len(E) + 4) * float(np.linalg.norm(L) * np.linalg.norm(K))
    error = round_up(error + sum_error(len(w) + len(E) + 40) * float(eliminated.sum()))
    margin = lift - error - sum_error(2 * len(E) + 8) * trace
    if not margin > 0.0:
        return False
    slack = round_up(error + residual**2 / margin)
    diagonal = t * at.diagonal - u @ at.X**2 / len(u) - eliminated
    G = at.rows.T @ (w[:, None] * at.rows) + K.T @ K
    if not pair_penalty.is_box:
        return groups_outside(pair_penalty.restrict(at.N), at.c, G, diagonal, t, slack)
    side = t * np.outer(at.c, at.c)
    excess = np.where(np.eye(m, dtype=bool), 0.0, np.sign(G) * np.maximum(np.abs(G) - side, 0.0))
    left, rows = diagonal - slack, np.abs(excess).sum(axis=1)
    if np.all(left > rows * round_up(1.0, m)):
        return True
    weak = ~(left > 2.0 * rows)
    margins = (left - round_up(1.0, m) * np.abs(excess[:, ~weak]).sum(axis=1))[~weak]
    if not np.all(margins > 0.0):
        return False
    S = np.diag(left[weak]) - excess[np.ix_(weak, weak)]
    S = S - excess[np.ix_(weak, ~weak)] @ np.diag(1.0 / margins) @ excess[np.ix_(~weak, weak)]
    mass = float(np.abs(np.diag(S)).sum() + left[weak].sum())
    shift = round_up(sum_error(2 * len(S) + m + 16) * mass)
    return cholesky_or_none(symmetric(S) - shift * np.eye(len(S))) is not None


def groups_outside(pair_penalty, c, G, diagonal, t, slack):
    """Each group alone, and all coupled groups together."""
    m, groups = len(c), pair_penalty.groups
    labels = np.empty(m, dtype=int)
    for g, group in enumerate(groups):
        labels[group] = g
    same = labels[:, None] == labels
    penalty = pair_penalty.with_weights(c * (t * (1.0 - 16.0 * UNIT_ROUNDOFF)) ** 0.5)
    off_blocks = np.where(same, 0.0, G)
    excess = off_blocks - penalty.project_safe(off_blocks)
    norms = np.array([[np.linalg.norm(excess[np.ix_(p, q)]) for q in groups] for p in groups])
    violated = norms > 1e-10 * float(np.abs(diagonal).max(initial=0.0))
    error = slack + float(np.linalg.norm(norms[~violated])) + sum_error(8) * float(np.linalg.norm(norms))
    S = np.where(same, -G, np.where(violated[np.ix_(labels, labels)], -excess, 0.0))
    S[np.diag_indices(m)] = diagonal
    coupled = violated.any(axis=0)
    parts = [group for group, some in zip(groups, coupled, strict=True) if not some]
    parts += [np.flatnonzero(coupled[labels])] if coupled.any() else []
    return all(is_positive(symmetric(S[np.ix_(part, part)]), error) for part in parts)
