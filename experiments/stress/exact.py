"""Values in sixty digits: objectives of (7), (8), (9) and (15) for the numbers that are in the computer.

A double is a decimal number exactly, so nothing is rounded before the sixtieth digit.
"""

from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import numpy.typing as npt

from diffrac_cvx.inputs import Array

DIGITS = 60
SYSTEM_DIGITS = 160  # where the normal equations are solved, whose condition number is the square of that of the data
SINGULAR = Decimal(10) ** -100  # a pivot, over the largest, that is taken for zero
Exact = npt.NDArray[np.object_]  # of Decimal


def exact(values: npt.ArrayLike) -> Exact:
    """Return numbers as decimals, exactly."""
    array = np.asarray(values, dtype=float)
    return np.array([Decimal(float(value)) for value in array.ravel()], dtype=object).reshape(array.shape)


def centred(X: Array) -> Exact:
    """Return the centred columns."""
    rows = exact(X)
    return np.asarray(rows - rows.sum(axis=0) / Decimal(len(rows)))


def root(values: Exact) -> Exact:
    """Return square roots, entry by entry."""
    return np.array([value.sqrt() for value in values.ravel()], dtype=object).reshape(values.shape)


def direction_value(X: Array, nu: float, a: Array, c: Array, G: Array) -> Decimal:
    """Return the objective of (15) at V = GG', the offset's row last where nu < 1."""
    with localcontext() as context:
        context.prec = DIGITS
        data, factor, d = centred(X), exact(G), X.shape[1]
        n = Decimal(len(X))
        scores = data @ factor[:d]
        offset = factor[d:]
        if len(offset):
            scores = scores + offset
        energies = (scores * scores).sum(axis=1)
        V = factor[:d] @ factor[:d].T
        ridge, weights = exact(a), exact(c)
        cost = energies.sum() / n + (ridge * ridge * np.diag(V)).sum() + (np.outer(weights, weights) * np.abs(V)).sum()
        if nu < 1.0 and len(offset):
            share = Decimal(nu) / (1 - Decimal(nu))
            cost += share * (offset * offset).sum()
        return Decimal(1 - 2 * root(energies).sum() / n + cost)


def labels_value(X: Array, nu: float, a: Array, c: Array, y: Array, v: Array) -> Decimal:
    """Return the objective of (9) at labels and a direction."""
    with localcontext() as context:
        context.prec = DIGITS
        data, labels, direction = centred(X), exact(y), exact(v)
        n = Decimal(len(X))
        mean = labels.sum() / n
        residual = labels - mean - data @ direction
        l1 = (exact(c) * np.abs(direction)).sum()
        ridge = (exact(a) * direction) ** 2
        return Decimal((residual * residual).sum() / n + Decimal(nu) * mean * mean + ridge.sum() + l1 * l1)


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


def best_labels_value(X: Array, nu: float, a: Array) -> Decimal | None:
    """Return the least value of (9) over all labels without an l1 part; None if the directions are not determined."""
    with localcontext() as context:
        context.prec = SYSTEM_DIGITS
        data, ridge, n = centred(X), exact(a), Decimal(len(X))
        A = data.T @ data / n + np.diag(ridge * ridge)
        used = np.flatnonzero([entry != 0 for entry in np.diag(A)])
        data, A = data[:, used], A[np.ix_(used, used)]
        columns = [solve(A, row) for row in data]
        if any(column is None for column in columns):
            return None
        H = data @ np.array(columns, dtype=object).T / n if len(used) else np.zeros((len(X), len(X)), dtype=object)
        best = None
        for rest in product((1, -1), repeat=len(X) - 1):
            y = np.array([Decimal(1), *map(Decimal, rest)], dtype=object)
            mean = y.sum() / n
            value = 1 - mean * mean - (y @ (H @ y)) / n + Decimal(nu) * mean * mean
            best = value if best is None or value < best else best
        return best
