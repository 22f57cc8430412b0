"""Lattice reduction for noiseless data: labels from about as many points as dimensions."""

from math import ceil

import numpy as np
import numpy.typing as npt
import scipy.linalg

from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array, as_data, positive_int
from diffrac_cvx.points.linear_algebra import column_basis

Integers = npt.NDArray[np.object_]
MAX_DIMENSIONS = 64  # beyond, the reduction in Python takes minutes
DELTA = 0.99  # how much shorter the next orthogonal vector may be, squared; 3/4 in the source, and longer vectors


def lattice(X: npt.ArrayLike, *, bits: int = 40) -> Array:
    r"""Return labels that are an affine function of the data, y = X w + c, found by lattice reduction.

    The points have r dimensions.  A vector orthogonal to 1 and to the columns of X is orthogonal to the indicator of
    each cluster; r + 2 points have one such vector, and each other point gives one more.  Rounded to those bits they
    make a lattice in which the indicators are the shortest vectors, and the reduction of Lenstra, Lenstra and Lovasz
    finds them.  r + 2 points are enough while r is less than about bits/2 (one more than in the source, where c = 0);
    beyond, a few more are used.  All points are checked, so the labels are exact or an error is raised, even where the
    noise is in the last digits.

    O(n d^2) and the reduction, a few seconds in 40 dimensions.

    Source: Zadik, Song, Wein and Bruna, "Lattice-based methods surpass sum-of-squares in clustering", COLT 2022.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    bits : int
        Accuracy of the data in bits; numbers in double precision that were computed have 40 or more.

    Raises
    ------
    DataError
        If X cannot be used as given, has more than 64 dimensions, or fewer than r + 2 points, which any labels fit; if
        no labels are found, because the data are noisy, or too few.
    ParameterError
        If bits is not a whole number >= 1.
    """
    Q, bits = column_basis(as_data(X)), positive_int(bits, "bits")
    n, r = Q.shape
    if r == 0:  # all points are equal
        return np.ones(n)
    if r > MAX_DIMENSIONS:
        raise DataError(f"X has {r} dimensions; the lattice is reduced in Python, for up to {MAX_DIMENSIONS}")
    if n < r + 2:
        raise DataError(f"X has {n} points in {r} dimensions, where any labels fit; at least {r + 2} are needed")
    affine = np.column_stack([np.full(n, n**-0.5), Q])
    for labels in candidates(affine, bits):
        error = labels - affine @ (affine.T @ labels)
        if np.sqrt(np.mean(error**2)) <= n * 2.0**-bits:
            return np.asarray(labels * labels[0])
    raise DataError(f"no labels found that are an affine function of X to {bits} bits: noisy data, or too few points")


def candidates(affine: Array, bits: int) -> list[Array]:
    """Return the labels of all points, for each row of the reduced basis that takes two values on the chosen points."""
    n, size = affine.shape  # (n, r + 1), with orthonormal columns
    order = scipy.linalg.qr(affine.T, mode="economic", pivoting=True)[2]
    # The reduction loses a factor of about 1.02^m to the shortest vector: so many bits set the indicators apart.
    more = min(n - size, ceil(size * (2 + size / 32) / bits))
    chosen = order[: size + more]
    relations = scipy.linalg.null_space(affine[chosen].T)[:, -more:]
    short = reduced_basis(lattice_basis(relations, bits))[:, : len(chosen)].astype(float)
    two_valued = [row for row in short if len(np.unique(row)) == 2]
    signs = [np.where(row == row.max(), 1.0, -1.0) for row in two_valued]
    first = affine[chosen[:size]]  # which determine the affine function
    return [np.where(affine @ np.linalg.solve(first, y[:size]) >= 0.0, 1.0, -1.0) for y in signs]


def lattice_basis(relations: Array, bits: int) -> Integers:
    """Return the basis (I, 2^bits relations), rounded, of the integers z with the errors of the relations z'b = 0."""
    rounded = np.vectorize(int, otypes=[object])(np.rint(2.0**bits * relations))
    return np.hstack([np.eye(len(rounded), dtype=int).astype(object), rounded])


def reduced_basis(basis: Integers) -> Integers:
    """Return an LLL-reduced basis of the lattice of the rows, (m, c) and linearly independent, in a new array.

    The integers are Python's, so the lattice is kept exactly; the orthogonal vectors are floating-point numbers,
    computed again from the integers at each step (Schnorr and Euchner).  A step, one size reduction and at most one
    exchange of rows, costs O(m c).

    Source: Lenstra, Lenstra and Lovasz, "Factoring polynomials with rational coefficients", Mathematische Annalen 1982;
    Schnorr and Euchner, "Lattice basis reduction", Mathematical Programming 1994.
    """
    rows = basis.copy()
    m, c = rows.shape
    orthogonal, squares, mu = np.zeros((m, c)), np.zeros(m), np.eye(m)
    k = 0
    while k < m:
        reduce_row(rows, k, orthogonal, squares, mu)
        if k > 0 and squares[k] < (DELTA - mu[k, k - 1] ** 2) * squares[k - 1]:
            rows[[k - 1, k]] = rows[[k, k - 1]]
            k -= 1
        else:
            k += 1
    return rows


def reduce_row(rows: Integers, k: int, orthogonal: Array, squares: Array, mu: Array) -> None:
    """Subtract multiples of the rows before it from row k until all |mu_kj| <= 1/2, and renew its orthogonal vector."""
    while True:
        vector = rows[k].astype(float)
        residual, weights = vector, np.zeros(k)
        for _ in range(2):  # the second pass removes the rounding error of the first
            step = (orthogonal[:k] @ residual) / squares[:k]
            residual, weights = residual - step @ orthogonal[:k], weights + step
        mu[k, :k] = weights
        orthogonal[k], squares[k] = residual, residual @ residual
        if not subtract_multiples(rows, k, mu):
            return


def subtract_multiples(rows: Integers, k: int, mu: Array) -> bool:
    """Reduce row k by the nearest multiples of the rows before it, the last first; return whether anything changed."""
    weights, changed = mu[k, :k].copy(), False
    while True:
        large = np.flatnonzero(np.abs(weights) > 0.51)  # rounding must not make a tie go on for ever
        if not len(large):
            return changed
        j = int(large[-1])
        multiple = round(float(weights[j]))
        rows[k] -= multiple * rows[j]
        weights[: j + 1] -= multiple * mu[j, : j + 1]
        changed = True
