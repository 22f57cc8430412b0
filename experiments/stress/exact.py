"""Values in sixty digits: objectives of (7), (8), (9) and (15) for the numbers that are in the computer.

A double is a decimal number exactly, so nothing is rounded before the sixtieth digit.
"""

from collections.abc import Iterable, Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.typing import Array

DIGITS = 60
SYSTEM_DIGITS = 160  # where the normal equations are solved, whose condition number is the square of that of the data
SINGULAR = Decimal(10) ** -100  # a pivot, over the largest, that is taken for zero
ORTHOGONAL = Decimal(10) ** -50  # product of two columns, over their norms, that is taken for zero
SWEEPS = 60  # of rotations over all pairs of columns; a few are enough
Exact = npt.NDArray[np.object_]  # of Decimal


def exact(values: npt.ArrayLike) -> Exact:
    """Return numbers as decimals, exactly."""
    array = np.asarray(values, dtype=float)
    return np.array([Decimal(float(value)) for value in array.ravel()], dtype=object).reshape(array.shape)


def shares_of(X: Array, w: Array | None) -> Exact:
    """Return the shares of the points in all means."""
    weights = exact(np.ones(len(X)) if w is None else w)
    return np.asarray(weights / weights.sum())


def centred(X: Array, w: Array | None = None) -> Exact:
    """Return the centred columns; points may have weights."""
    rows = exact(X)
    return np.asarray(rows - shares_of(X, w) @ rows)


def root(values: Exact) -> Exact:
    """Return square roots, entry by entry."""
    return np.array([value.sqrt() for value in values.ravel()], dtype=object).reshape(values.shape)


def direction_value(
    X: Array, nu: float, a: Array, c: Array, G: Array, w: Array | None = None, groups: Any = None
) -> Decimal:
    """Return the objective of (15) at V = GG', the offset's row last where nu < 1; columns may be in groups."""
    with localcontext() as context:
        context.prec = DIGITS
        used = np.flatnonzero(G[: X.shape[1]].any(axis=1) | (np.arange(X.shape[1]) == 0))  # V is 0 elsewhere
        G = np.vstack([G[used], G[X.shape[1] :]])
        X, a, c = X[:, used], np.asarray(a)[used], np.asarray(c)[used]
        data, factor, d, shares = centred(X, w), exact(G), X.shape[1], shares_of(X, w)
        scores = data @ factor[:d]
        offset = factor[d:]
        if len(offset):
            scores = scores + offset
        energies = (scores * scores).sum(axis=1)
        V = factor[:d] @ factor[:d].T
        ridge, weights = exact(a), exact(c)
        coupled = (np.outer(weights, weights) * np.abs(V)).sum()
        if groups is not None:
            coupled = group_penalty(V, weights, groups[used])
        cost = shares @ energies + (ridge * ridge * np.diag(V)).sum() + coupled
        if nu < 1.0 and len(offset):
            cost += Decimal(nu) / (1 - Decimal(nu)) * (offset * offset).sum()
        return Decimal(1 - 2 * (shares @ root(energies)) + cost)


def labels_value(
    X: Array,
    nu: float,
    a: Array,
    c: Array,
    y: Array,
    v: Array,
    w: Array | None = None,
    groups: Any = None,
) -> Decimal:
    """Return the objective of (9) at labels and a direction; columns may be in groups."""
    with localcontext() as context:
        context.prec = DIGITS
        data, labels, direction, shares = centred(X, w), exact(y), exact(v), shares_of(X, w)
        mean = shares @ labels
        residual = labels - mean - data @ direction
        weighed = exact(c) * direction
        l1 = np.abs(weighed).sum()
        if groups is not None:
            l1 = sum(((weighed[groups == g] ** 2).sum().sqrt() for g in np.unique(groups)), Decimal(0))
        ridge = (exact(a) * direction) ** 2
        return Decimal(shares @ (residual * residual) + Decimal(nu) * mean * mean + ridge.sum() + l1 * l1)


def is_allowed(G: Array, nonnegative: Any) -> bool:
    """Whether V = GG' is nowhere negative for pairs of columns known to be nonnegative, without any rounding."""
    if nonnegative is None:
        return True
    rows = np.array([[Fraction(float(entry)) for entry in row] for row in G[: len(nonnegative)][nonnegative]])
    return len(rows) == 0 or bool(np.all(rows @ rows.T >= 0))


def solve(A: Exact, b: Exact) -> Exact | None:
    """Return the solution of a symmetric system by elimination; None if a pivot is zero to a hundred digits."""
    A, b = A.copy(), b.copy()
    size = len(A)
    largest = max((abs(entry) for entry in np.diag(A)), default=Decimal(0))
    for j in range(size):
        if abs(A[j, j]) <= largest * SINGULAR:
            return None
        for i in range(j + 1, size):
            factor = A[i, j] / A[j, j]
            A[i, j:] -= factor * A[j, j:]
            b[i] -= factor * b[j]
    x = np.array([Decimal(0)] * size, dtype=object)
    for j in reversed(range(size)):
        x[j] = (b[j] - (A[j, j + 1 :] * x[j + 1 :]).sum()) / A[j, j]
    return x


def best_labels_value(
    X: Array, nu: float, a: Array, w: Array | None = None, labellings: Iterable[Array] | None = None
) -> Decimal | None:
    """Return the least value of (9) over labels, by default all, without an l1 part.

    None if the directions are not determined.
    """
    with localcontext() as context:
        context.prec = SYSTEM_DIGITS
        data, ridge, shares = centred(X, w), exact(a), shares_of(X, w)
        misfit = misfit_by_rows(data, ridge, shares) if np.all(a > 0.0) else misfit_by_columns(data, ridge, shares)
        if misfit is None:
            return None
        best = None
        for labels in all_labels(len(X)) if labellings is None else labellings:
            y = exact(labels)
            mean = shares @ y
            value = (y - mean) @ (misfit @ (y - mean)) + Decimal(nu) * mean * mean
            best = value if best is None or value < best else best
        return best


def all_labels(n: int) -> Iterator[Array]:
    """Yield all labellings of n points, up to the sign of all."""
    return (np.array([1.0, *rest]) for rest in product((1.0, -1.0), repeat=n - 1))


def labels_matrix(X: Array, a: Array) -> Exact | None:
    """Return K with tr KY the objective of (7) at Y; None if the directions are not determined."""
    with localcontext() as context:
        context.prec = SYSTEM_DIGITS
        data, ridge, shares = centred(X), exact(a), shares_of(X, None)
        misfit = misfit_by_rows(data, ridge, shares) if np.all(a > 0.0) else misfit_by_columns(data, ridge, shares)
        if misfit is None:
            return None
        centring = np.diag(shares * len(X)) - np.full(misfit.shape, 1 / Decimal(len(X)))
        return np.asarray(centring @ misfit @ centring)


def imbalance_and_value(K: Exact, F: Array) -> tuple[Decimal, Decimal]:
    """Return 1'Y1/n^2 and tr KY for Y = FF', the rows of F made of norm one."""
    with localcontext() as context:
        context.prec = DIGITS
        rows = exact(F)
        rows = rows / root((rows * rows).sum(axis=1))[:, None]
        mean = rows.sum(axis=0) / len(rows)
        return Decimal((mean * mean).sum()), Decimal((rows * (K @ rows)).sum())


def dual_value(K: Exact, mu: Array, weight: float, shift: float, alpha: float) -> Decimal | None:
    """Return the lower bound of (7) that multipliers prove, if K + weight 11'/n^2 - Diag(mu) + shift I >= 0."""
    with localcontext() as context:
        context.prec = DIGITS
        n = len(K)
        S = K + Decimal(weight) / n**2 - np.diag(exact(mu)) + np.diag(exact(np.full(n, shift)))
        if not is_positive(S):
            return None
        return Decimal(exact(mu).sum() - Decimal(weight) * Decimal(alpha) - n * Decimal(shift))


def is_positive(S: Exact) -> bool:
    """Whether all pivots of a symmetric matrix are positive."""
    S = S.copy()
    for j in range(len(S)):
        if not S[j, j] > 0:
            return False
        S[j + 1 :, j:] -= np.outer(S[j + 1 :, j] / S[j, j], S[j, j:])
    return True


def misfit_by_rows(data: Exact, ridge: Exact, shares: Exact) -> Exact | None:
    """Return Q = (Diag(p)^-1 + X Diag(a)^-2 X')^-1, the least misfit of y being y'Qy: for a ridge on every column."""
    scaled = data / ridge
    return inverse(np.diag(1 / shares) + scaled @ scaled.T)


def misfit_by_columns(data: Exact, ridge: Exact, shares: Exact) -> Exact | None:
    """Return the same by the normal equations; None if they are singular."""
    weighted = shares[:, None] * data
    A = data.T @ weighted + np.diag(ridge * ridge)
    used = np.flatnonzero([entry != 0 for entry in np.diag(A)])
    if not len(used):
        return np.diag(shares)
    inverted = inverse(A[np.ix_(used, used)])
    return None if inverted is None else np.diag(shares) - weighted[:, used] @ inverted @ weighted[:, used].T


def inverse(A: Exact) -> Exact | None:
    """Return the inverse of a symmetric matrix; None if it is singular."""
    identity = np.array([[Decimal(int(i == j)) for j in range(len(A))] for i in range(len(A))], dtype=object)
    columns = [solve(A, column) for column in identity]
    return None if any(column is None for column in columns) else np.array(columns, dtype=object)


def singular_values(B: Exact) -> Exact:
    """Return the singular values of a matrix, by rotations of pairs of its columns until these are orthogonal."""
    columns = list((B if B.shape[0] >= B.shape[1] else B.T).T)
    largest = max((column @ column for column in columns), default=Decimal(0))
    for _ in range(SWEEPS):
        rotated = False
        for i, j in combinations(range(len(columns)), 2):
            x, y = columns[i], columns[j]
            xx, yy, xy = x @ x, y @ y, x @ y
            if xy * xy <= ORTHOGONAL * ORTHOGONAL * max(xx * yy, largest * largest * SINGULAR):
                continue
            rotated, zeta = True, (yy - xx) / (2 * xy)
            tangent = (1 if zeta >= 0 else -1) / (abs(zeta) + (1 + zeta * zeta).sqrt())
            cosine = 1 / (1 + tangent * tangent).sqrt()
            columns[i], columns[j] = cosine * (x - tangent * y), cosine * (tangent * x + y)
        if not rotated:
            break
    return np.array([(column @ column).sqrt() for column in columns], dtype=object)


def group_penalty(V: Exact, c: Exact, groups: Array) -> Decimal:
    """Return sum_gh w_g w_h |V_gh|_*, on the diagonal w_g^2 tr V_gg."""
    total, places = (c * c * np.diag(V)).sum(), [np.flatnonzero(groups == g) for g in np.unique(groups)]
    for g, h in combinations(places, 2):
        total += 2 * c[g[0]] * c[h[0]] * singular_values(V[np.ix_(g, h)]).sum()
    return Decimal(total)
