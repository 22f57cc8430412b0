r"""Exact test of uniqueness of the planted labels in a noiseless relaxation, and its expected threshold.

The optimal value is 0, and the solutions are the S >= 0 with b_i' S b_i = 1 for every point, where b_i contains the
planted coordinates first (y at nu = 1; 1 and the labels at nu = 0) and then the noise.  Every solution is supported by
the planted coordinates if and only if no direction Delta of the tangent cone at a planted solution has

.. math:: b_i^\top \Delta b_i = 0 \ \text{for all } i, \qquad \Delta_{\perp\perp} \succeq 0, \quad
          \mathrm{tr}\, \Delta_{\perp\perp} = 1

(up to directions only in the closure of the feasible ones, which random points have with probability 0).
"""

from bisect import bisect_left
from typing import TypeVar

import cvxpy as cp
import numpy as np

from diffrac_cvx.typing import Array

Size = TypeVar("Size", float, Array)
UNIQUE = 1e-7  # smallest mean of (b_i' Delta b_i)^2 above which no such Delta exists


def quadratic_forms(B: Array) -> Array:
    """Return the matrix that maps the upper triangle of Delta, in orthonormal coordinates, to b_i' Delta b_i."""
    rows, columns = np.triu_indices(B.shape[1])
    return np.asarray(B[:, rows] * B[:, columns] * np.where(rows == columns, 1.0, 2**0.5))


def least_diagonal_change(B: Array, planted: int) -> float:
    """Return the smallest mean of (b_i' Delta b_i)^2, over Delta as above except for the first condition.

    It is 0 if and only if there is another solution.

    Parameters
    ----------
    B : (n, D) array
        Table, the planted coordinates first.
    planted : int
        Number of planted coordinates, below D.
    """
    n, D = B.shape
    rows, _ = np.triu_indices(D)
    phi = quadratic_forms(B) / n**0.5
    free, inner = phi[:, rows < planted], phi[:, rows >= planted]
    U, s, _ = np.linalg.svd(free, full_matrices=False)
    U = U[:, s > 1e-10 * s[0]]
    R = np.linalg.qr(inner - U @ (U.T @ inner), mode="r")  # min over the free entries of Delta
    side = D - planted
    C = cp.Variable((side, side), PSD=True)
    entries = [C[a, b] * (1.0 if a == b else 2**0.5) for a, b in zip(*np.triu_indices(side), strict=True)]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(R @ cp.hstack(entries))), [cp.trace(C) == 1])
    problem.solve(solver="CLARABEL")
    return float(problem.value)


def is_unique(B: Array, planted: int) -> bool:
    """Return whether every solution is supported by the planted coordinates."""
    n, D = B.shape
    if D == planted:
        return True
    return n > statistical_dimension(D, planted) / 3 and least_diagonal_change(B, planted) > UNIQUE


def points_for_uniqueness(B: Array, planted: int) -> int:
    """Return the smallest n for which the first n points have a unique solution; more points only help.

    If even all points of B are not enough, return their number plus one.
    """
    numbers = range(planted + 1, len(B) + 1)
    return planted + 1 + bisect_left(numbers, True, key=lambda n: is_unique(B[:n], planted))


def statistical_dimension(D: Size, planted: int = 1) -> Size:
    """Return the statistical dimension of these directions minus the planted ones: threshold for random points.

    The tangent cone at a matrix of rank r among the D x D positive semidefinite ones has dimension
    D(D+1)/2 - (D-r)(D-r+1)/4; r - 1 of its directions stay among the planted solutions.  At r = 1 this is D + D(D-1)/4.
    """
    rest = D - planted
    return D * (D + 1) / 2 - rest * (rest + 1) / 4 - (planted - 1)
