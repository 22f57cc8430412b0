"""Matrices of fractions: what sums, products, means and the matrices of proofs are without rounding."""

from fractions import Fraction

import numpy as np

from diffrac_cvx.problem.penalties.group import project_spectral_ball


def fractions(M):
    """The entries as fractions, exactly."""
    M = np.asarray(M, dtype=float)
    return np.array([Fraction(float(entry)) for entry in M.ravel()], dtype=object).reshape(M.shape)


def centered(X):
    """The columns less their means."""
    X = fractions(X)
    return X - X.sum(axis=0) / len(X)


def gram(X, u, Y=None):
    """X' Diag(u) Y / n of fractions; Y = X by default."""
    return X.T @ (u[:, None] * (X if Y is None else Y)) / len(X)


def size(M):
    """The square root of the sum of squares of fractions, nearly."""
    return float(sum(entry**2 for entry in np.ravel(M))) ** 0.5


def schur(S, order):
    """What is left of a matrix of fractions after its first coordinates are eliminated; None if it is indefinite."""
    S = np.array(S, dtype=object)
    for j in range(order):
        if S[j, j] < 0 or (S[j, j] == 0 and np.any(S[j, j:] != 0)):
            return None
        if S[j, j] > 0:
            S[j + 1 :, j:] = S[j + 1 :, j:] - np.outer(S[j + 1 :, j] / S[j, j], S[j, j:])
    return S[order:, order:]


def is_semidefinite(S):
    """Whether a matrix of fractions is positive semidefinite, by elimination without rounding."""
    return schur(S, len(S)) is not None


def lossy_columns(n, d=2):
    """Columns of mean 0 whose squares are summed badly: after 1 + 1 each of the others is less than half a unit."""
    X = np.empty((n, d))
    X[:2] = np.array([1.0, -1.0])[:, None]
    X[2:] = 0.99 * 2.0**-26 * np.where(np.arange(n - 2) % 2, -1.0, 1.0)[:, None]
    X[:, 1::2] *= -1.0
    return X


def badly_centered_column(n):
    """A column of mean 0 to the computer, though not to a mathematician: small entries are lost between large ones."""
    x = np.zeros(n)
    large = n // 3
    x[:large], x[n - large :] = 1.0, -1.0
    x[large : n - large] = 0.99 * np.spacing(float(large)) / 2
    return x


def opposite_columns(n):
    """Two columns of opposite signs whose centring loses as much as it may."""
    x = badly_centered_column(n)
    return np.column_stack([x, -x])


# The judge of `instances.ProofInstance`, which shares no code with the proof


def exact_rows(it):
    """The rows of M, and A, from the user's table, in the units of the problem."""
    w = fractions(np.ones(len(it.X)) if it.weights is None else it.weights)
    X, w = fractions(it.X)[w > 0], w[w > 0]
    n, p = len(X), w / w.sum()
    coordinates = it.unit.coordinates
    Z = np.hstack([X - p @ X, np.full((n, int(coordinates.has_offset)), Fraction(1))]) * fractions(coordinates.factors)
    R, A = n * p[:, None] * Z, Z.T @ (p[:, None] * Z)
    if it.constraints is not None:
        chunklets = it.constraints.chunklets_of(n)
        rows = np.full((chunklets.n_chunklets, Z.shape[1]), Fraction(0))
        np.add.at(rows, chunklets.membership, fractions(chunklets.sign)[:, None] * R)
        R = rows * Fraction(len(rows), n)
    return R, A


def exact_S(it, found):
    """S with the multiplier that a proof claims, without rounding, and whether that is in its dual set."""
    R, A = exact_rows(it)
    t, c, E, N = Fraction(found.t), fractions(it.unit.c), it.problem.free, it.problem.penalized
    S = t * (A + np.diag(fractions(it.unit.a) ** 2 + c**2)) - gram(R, fractions(it.u))
    if it.problem.problem.basis is not None:
        return S, True
    penalty, tC, own = it.unit.pair_penalty, 0 * A, -np.arange(1, len(N) + 1)
    tC[np.ix_(E, E)] = 0 if it.C is None else t * fractions(it.C)
    tC[np.ix_(E, N)] = fractions(found.tC)
    tC[np.ix_(N, E)] = fractions(found.tC).T
    for b, (place, C) in enumerate(it.blocks):
        own[place] = b
        tC[np.ix_(N[place], N[place])] = t * fractions(C)
    r = fractions(penalty.r) if it.kind == "pairs" else 1
    side, signed, S = t * r * np.outer(c, c), np.outer(penalty.nonnegative, penalty.nonnegative), S + tC
    order, corner = np.append(E, N), np.ix_(N, N)
    left = schur(S[np.ix_(order, order)], len(E))
    if left is None:
        return S, False
    Z = fractions(found.Z)
    G = (Z @ Z.T if Z.size else 0) - left
    if penalty.is_box:
        inside = np.minimum(G, side[corner])
        inside = np.where(signed[corner], inside, np.maximum(inside, -side[corner]))
        S[corner] = S[corner] + np.where(own[:, None] != own, inside, 0)
        return S, bool(np.all((tC <= side) & ((tC >= -side) | signed)))
    pairs, fine = [(p, q) for i, p in enumerate(penalty.groups) for q in penalty.groups[:i]], True
    for p, q in pairs:
        places, radius = np.ix_(p, q), side[p[0], q[0]]
        if np.isin(p, N).all() and np.isin(q, N).all():
            block, float_radius = G[np.ix_(np.searchsorted(N, p), np.searchsorted(N, q))], float(radius)
            if np.linalg.norm(block.astype(float), 2) > float_radius * (1.0 - 1e-9):
                sides = np.array([float_radius * (1 - 1e-15)])
                block = fractions(project_spectral_ball(block.astype(float)[None], sides)[0])
                fine &= is_in_ball(block, radius)
            S[places] = S[places] + block
            S[np.ix_(q, p)] = S[places].T
        fine &= is_in_ball(tC[places], radius) and not tC[np.ix_(p, p)].any()
    return S, bool(fine)


def is_in_ball(C, radius):
    """Whether the spectral norm of a matrix of fractions is at most a number."""
    return is_semidefinite(radius**2 * np.eye(len(C), dtype=int) - C @ C.T)
