"""Rounding errors in double precision: bounds for sums, and verification of semidefiniteness by Cholesky.

Standard model: the error of a computed sum of k products, in any order, is at most sum_error(k) times the sum of their
absolute values (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1).  If the Cholesky
factorisation of a computed matrix succeeds, the matrix is positive semidefinite up to sum_error(k + 1) times its trace
(Rump, Verification of positive definiteness, BIT 46, 2006).  Underflow is neglected because the entries are scaled.
"""

from typing import NamedTuple

import numpy as np

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import BLOCK_ROWS, EPS, RidgeWhitener, times, weighted_gram

UNIT_ROUNDOFF = EPS / 2


class WhiteningErrorBounds(NamedTuple):
    """Error bounds of whitened coordinates."""

    data_error: float  # bound on the Frobenius norm of the error of the computed data, over sqrt(n)
    right_error: float  # bound on the spectral norm of W'(A + Diag(c)^2)W - I
    gram_factor: float = 1.0  # factor of the rounding of weighted Gram matrices that are summed before whitening


def sum_error(k: float) -> float:
    """Return the bound k u / (1 - k u) on the relative error of a sum of k products."""
    return k * UNIT_ROUNDOFF / (1.0 - k * UNIT_ROUNDOFF)


def round_up(x: float, k: float = 4) -> float:
    """Return an upper bound on the exact value of a nonnegative x that was computed by k operations."""
    return x * (1.0 + sum_error(k + 2))


def whitening_error_bounds(X: Array, W: Array, Z: Array, diagonal: Array, outside: float = 0.0) -> WhiteningErrorBounds:
    """Return bounds on the distances of computed data Z from X W, and of W'(X'X/n + Diag(diagonal))W from the identity.

    X may have rounding errors from its centring: a few units in the last place of each entry, and the error of the mean
    of each column.  The part of the data outside the span of W counts as an error too: there the right-hand side is at
    least the ridge, in whose metric this part is measured.
    """
    n, D = X.shape
    size = float(np.sqrt(np.sum(np.square(X)) / n) * np.linalg.norm(W))
    data_error = round_up(sum_error(D + n + 16) * size + outside)
    residual = weighted_gram(Z, np.ones(n)) + times(W.T * diagonal, W) - np.eye(len(W.T))
    trace = float(np.sum(np.square(Z)) / n + np.sum(diagonal @ np.square(W)))
    formed = sum_error(accumulation_length(n) + D + 8) * trace
    right_error = round_up(float(np.linalg.norm(residual)) + formed + (2.0 * trace**0.5 + data_error) * data_error)
    return WhiteningErrorBounds(data_error, right_error)


def outside_norm_bound(whitening: RidgeWhitener, n: int) -> float:
    """Return a bound on the norm of the part of n centred rows outside the span of their whitener, over sqrt(n)."""
    W, outside, size = whitening
    return round_up(outside + sum_error(len(W) + n + 16) * n**0.5 * size, len(W) + n)


def accumulation_length(n: int) -> int:
    """Return the number of successive additions in a blockwise sum over n rows."""
    return min(n, BLOCK_ROWS) + n // BLOCK_ROWS + 1
