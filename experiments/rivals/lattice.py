"""Lattice reduction: labels of noiseless data with about as many points as dimensions."""

from math import ceil

import numpy as np
import numpy.typing as npt
import scipy.linalg

from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.linear_algebra import column_basis
from diffrac_cvx.typing import Array

Integers = npt.NDArray[np.object_]
DELTA = 0.99  # parameter of the Lovasz condition; 3/4 in the source gives longer vectors


def lattice(X: npt.ArrayLike, *, bits: int = 40) -> Array | None:
    r"""Return labels that are an exact affine function of the data, y = X w + c, by lattice reduction, or None.

    Let the data have rank r.  A vector orthogonal to 1 and to the columns of X is orthogonal to the indicator of each
    cluster; r + 2 points have one such vector, and each further point adds one.  Rounded to the given number of bits,
    these vectors define a lattice whose shortest vectors are the indicators, and the algorithm of Lenstra, Lenstra and
    Lovasz finds them.  r + 2 points suffice if r is less than about bits/2 (one more than in the source, where c = 0);
    otherwise a few more are used.  All points are checked: the labels are exact.  Fewer points fit any labels.

    O(n d^2) plus the reduction, a few seconds in 40 dimensions.

    Source: Zadik, Song, Wein and Bruna, "Lattice-based methods surpass sum-of-squares in clustering", COLT 2022.
    """
    Q = column_basis(as_data(X))
    n, r = Q.shape
    if n < r + 2:
        return None
    affine = np.column_stack([np.full(n, n**-0.5), Q])
    for labels in candidates(affine, bits):
        error = labels - affine @ (affine.T @ labels)
        if np.sqrt(np.mean(error**2)) <= n * 2.0**-bits:
            return np.asarray(labels * labels[0])
    return None


def candidates(affine: Array, bits: int) -> list[Array]:
    """Return candidate labels of all points, one for each two-valued row of the reduced basis of selected points."""
    n, size = affine.shape  # (n, r + 1), with orthonormal columns
    order = scipy.linalg.qr(affine.T, mode="economic", pivoting=True)[2]
    # The reduction loses a factor of about 1.02^m to the shortest vector; this many bits separate the indicators.
    more = min(n - size, ceil(size * (2 + size / 32) / bits))
    chosen = order[: size + more]
    relations = scipy.linalg.null_space(affine[chosen].T)[:, -more:]
    rounded = np.vectorize(int, otypes=[object])(np.rint(2.0**bits * relations))
    basis = np.hstack([np.eye(len(rounded), dtype=int).astype(object), rounded])  # z, and the scaled errors of z'b = 0
    short = reduced_basis(basis)[:, : len(chosen)].astype(float)
    two_valued = [row for row in short if len(np.unique(row)) == 2]
    signs = [np.where(row == row.max(), 1.0, -1.0) for row in two_valued]
    first = affine[chosen[:size]]  # determine the affine function
    return [np.where(affine @ np.linalg.solve(first, y[:size]) >= 0.0, 1.0, -1.0) for y in signs]


def reduced_basis(basis: Integers) -> Integers:
    """Return an LLL-reduced basis of the lattice of the rows, (m, c) and linearly independent, as a new array.

    Python integers keep the lattice exact; the orthogonal vectors are in floating point and recomputed from the
    integers at each step (Schnorr and Euchner).  A step, a size reduction and at most one exchange of rows, is O(m c).

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
    """Subtract multiples of earlier rows from row k until all |mu_kj| <= 1/2, and update its orthogonal vector."""
    changed = True
    while changed:
        residual, weights = rows[k].astype(float), np.zeros(k)
        for _ in range(2):  # the second pass removes the rounding error of the first
            step = (orthogonal[:k] @ residual) / squares[:k]
            residual, weights = residual - step @ orthogonal[:k], weights + step
        mu[k, :k] = weights  # a copy
        orthogonal[k], squares[k] = residual, residual @ residual
        changed = False
        while len(large := np.flatnonzero(np.abs(weights) > 0.51)):  # not 1/2: rounding of a tie would loop forever
            j = int(large[-1])
            multiple = round(float(weights[j]))
            rows[k] -= multiple * rows[j]
            weights[: j + 1] -= multiple * mu[j, : j + 1]
            changed = True
