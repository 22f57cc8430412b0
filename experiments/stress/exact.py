"""Objectives of (7), (8), (9) and (15) in 60-digit arithmetic, for the stored floating-point numbers.

A double is exactly a decimal number, so nothing is rounded before the sixtieth digit.
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
RESIDUAL_DIGITS = 160  # for rounding the residuals of labels, which are computed as fractions
SINGULAR = Decimal(10) ** -100  # relative square of a product of two columns that counts as zero
ORTHOGONAL = Decimal(10) ** -50  # cosine of two columns that counts as zero
SWEEPS = 60  # of rotations over all pairs of columns; a few are enough
Exact = npt.NDArray[np.object_]  # of Decimal


def exact(values: npt.ArrayLike, number: type[Decimal | Fraction] = Decimal) -> Exact:
    """Return numbers as decimals or fractions, exactly."""
    array = np.asarray(values, dtype=float)
    return np.array([number(float(value)) for value in array.ravel()], dtype=object).reshape(array.shape)


def point_weights_of(X: Array, w: Array | None) -> Exact:
    """Return the normalised sample weights."""
    weights = exact(np.ones(len(X)) if w is None else w)
    return np.asarray(weights / weights.sum())


def centered(X: Array, w: Array | None = None) -> Exact:
    """Return the centred columns; points may have weights."""
    rows = exact(X)
    return np.asarray(rows - point_weights_of(X, w) @ rows)


def root(values: Exact) -> Exact:
    """Return square roots, entry by entry."""
    return np.array([value.sqrt() for value in values.ravel()], dtype=object).reshape(values.shape)


def direction_value(
    X: Array, nu: float, a: Array, c: Array, G: Array, w: Array | None = None, groups: Any = None
) -> Decimal:
    """Return the objective of (15) at V = GG', with the offset as last row if nu < 1; columns may be grouped."""
    with localcontext() as context:
        context.prec = DIGITS
        used = np.flatnonzero(G[: X.shape[1]].any(axis=1) | (np.arange(X.shape[1]) == 0))  # V is 0 elsewhere
        G = np.vstack([G[used], G[X.shape[1] :]])
        X, a, c = X[:, used], np.asarray(a)[used], np.asarray(c)[used]
        data, factor, d, point_weights = centered(X, w), exact(G), X.shape[1], point_weights_of(X, w)
        scores = data @ factor[:d]
        offset = factor[d:]
        if len(offset):
            scores = scores + offset
        quadratic_forms = (scores * scores).sum(axis=1)
        V = factor[:d] @ factor[:d].T
        ridge, weights = exact(a), exact(c)
        pair_penalty = (np.outer(weights, weights) * np.abs(V)).sum()
        if groups is not None:
            pair_penalty = group_penalty(V, weights, groups[used])
        cost = point_weights @ quadratic_forms + (ridge * ridge * np.diag(V)).sum() + pair_penalty
        if nu < 1.0 and len(offset):
            cost += Decimal(nu) / (1 - Decimal(nu)) * (offset * offset).sum()
        return Decimal(1 - 2 * (point_weights @ root(quadratic_forms)) + cost)


def labels_value(
    X: Array,
    nu: float,
    a: Array,
    c: Array,
    y: Array,
    v: Array,
    w: Array | None = None,
    groups: Any = None,
    Q: Exact | None = None,
) -> Decimal:
    """Return the objective of (9) at labels and a direction; columns may be grouped.

    With the residual matrix Q of other columns, the direction in those is optimal.
    """
    with localcontext() as context:
        context.prec = DIGITS
        data, labels, direction, point_weights = centered(X, w), exact(y), exact(v), point_weights_of(X, w)
        mean = point_weights @ labels
        residual = labels - mean - data @ direction
        weighted_direction = exact(c) * direction
        l1 = np.abs(weighted_direction).sum()
        if groups is not None:
            l1 = sum(((weighted_direction[groups == g] ** 2).sum().sqrt() for g in np.unique(groups)), Decimal(0))
        ridge = (exact(a) * direction) ** 2
        squares = point_weights @ (residual * residual) if Q is None else residual @ (Q @ residual)
        return Decimal(squares + Decimal(nu) * mean * mean + ridge.sum() + l1 * l1)


def is_allowed(G: Array, nonnegative: Any) -> bool:
    """Return whether V = GG' is nonnegative, without rounding, at all pairs of columns known to be nonnegative."""
    if nonnegative is None:
        return True
    rows = exact(G[: len(nonnegative)][nonnegative], Fraction)
    return len(rows) == 0 or bool(np.all(rows @ rows.T >= 0))


def labels_values(
    X: Array, nu: float, a: Array, w: Array | None = None, labelings: Iterable[Array] | None = None
) -> list[Decimal]:
    """Return the values of (9) at labellings, by default all, with optimal directions and without an l1 penalty."""
    Q = residual_matrix(X, a, w)
    with localcontext() as context:
        context.prec = RESIDUAL_DIGITS
        point_weights, values = point_weights_of(X, w), []
        for labels in all_labels(len(X)) if labelings is None else labelings:
            y = exact(labels)
            mean = point_weights @ y
            values.append(Decimal((y - mean) @ (Q @ (y - mean)) + Decimal(nu) * mean * mean))
        return values


def all_labels(n: int) -> Iterator[Array]:
    """Yield all labellings of n points, up to a global sign."""
    return (np.array([1.0, *rest]) for rest in product((1.0, -1.0), repeat=n - 1))


def labels_matrix(X: Array, a: Array) -> Exact:
    """Return K with tr KY the objective of (7) at Y."""
    Q = residual_matrix(X, a)
    with localcontext() as context:
        context.prec = RESIDUAL_DIGITS
        centering = np.diag(point_weights_of(X, None) * len(X)) - np.full(Q.shape, 1 / Decimal(len(X)))
        return np.asarray(centering @ Q @ centering)


def imbalance_and_value(K: Exact, F: Array) -> tuple[Decimal, Decimal]:
    """Return 1'Y1/n^2 and tr KY for Y = FF', with the rows of F normalised."""
    with localcontext() as context:
        context.prec = DIGITS
        rows = exact(F)
        rows = rows / root((rows * rows).sum(axis=1))[:, None]
        mean = rows.sum(axis=0) / len(rows)
        return Decimal((mean * mean).sum()), Decimal((rows * (K @ rows)).sum())


def dual_value(K: Exact, mu: Array, weight: float, shift: float, alpha: float) -> Decimal | None:
    """Return the lower bound of (7) given by multipliers, if K + weight 11'/n^2 - Diag(mu) + shift I >= 0."""
    with localcontext() as context:
        context.prec = DIGITS
        n = len(K)
        S = K + Decimal(weight) / n**2 - np.diag(exact(mu)) + np.diag(exact(np.full(n, shift)))
        if not is_positive(S):
            return None
        return Decimal(exact(mu).sum() - Decimal(weight) * Decimal(alpha) - n * Decimal(shift))


def is_positive(S: Exact) -> bool:
    """Return whether all pivots of a symmetric matrix are positive."""
    S = S.copy()
    for j in range(len(S)):
        if not S[j, j] > 0:
            return False
        S[j + 1 :, j:] -= np.outer(S[j + 1 :, j] / S[j, j], S[j, j:])
    return True


def residual_matrix(X: Array, a: Array, w: Array | None = None) -> Exact:
    """Return Q, with y'Qy the minimum of sum_i p_i (y_i - x_i'v)^2 + sum_j a_j^2 v_j^2 over v, for centred y.

    Column by column, in fractions: a column without a ridge that depends linearly on earlier ones changes nothing.
    """
    rows, weights = exact(X, Fraction), exact(np.ones(len(X)) if w is None else w, Fraction)
    point_weights = weights / weights.sum()
    Q = np.diag(point_weights)
    for x, ridge in zip((rows - point_weights @ rows).T, exact(a, Fraction), strict=True):
        image = Q @ x
        size = x @ image + ridge * ridge
        if size:
            Q = Q - np.outer(image / size, image)
    with localcontext() as context:
        context.prec = RESIDUAL_DIGITS
        quotients = [Decimal(entry.numerator) / Decimal(entry.denominator) for entry in Q.ravel()]
    return np.array(quotients, dtype=object).reshape(Q.shape)


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
