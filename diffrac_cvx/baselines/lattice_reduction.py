"""Short vectors of a lattice of integers: the reduction of Lenstra, Lenstra and Lovasz."""

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import Array

Integers = npt.NDArray[np.object_]
DELTA = 0.99  # how much shorter the next orthogonal vector may be, squared; 3/4 in the source, and longer vectors


def reduced_basis(basis: Integers) -> Integers:
    """Return an LLL-reduced basis of the lattice that the rows of a matrix span, in a new array.

    The integers are Python's, so the lattice is kept exactly; the orthogonal vectors are floating-point numbers,
    computed again from the integers at each step (Schnorr and Euchner).  A step, one size reduction and at most one
    exchange of rows, costs O(m c).

    Source: Lenstra, Lenstra and Lovasz, "Factoring polynomials with rational coefficients", Mathematische Annalen 1982;
    Schnorr and Euchner, "Lattice basis reduction", Mathematical Programming 1994.

    Parameters
    ----------
    basis : (m, c) array of Python integers
        Linearly independent rows.
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
        rest, weights = vector, np.zeros(k)
        for _ in range(2):  # the second pass removes the rounding error of the first
            step = (orthogonal[:k] @ rest) / squares[:k]
            rest, weights = rest - step @ orthogonal[:k], weights + step
        mu[k, :k] = weights
        orthogonal[k], squares[k] = rest, rest @ rest
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
