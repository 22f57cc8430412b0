"""What the rounding of double precision can change: bounds on sums, and positive semidefinite matrices by Cholesky.

The standard model: a sum of k products is computed up to sum_error(k) times the sum of their absolute values, in any
order (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1).  A Cholesky factorisation that
succeeds on a computed matrix proves it positive semidefinite up to sum_error(k + 1) times its trace (Rump, Verification
of positive definiteness, BIT 46, 2006); underflow is left out, for the entries are scaled.
"""

from typing import NamedTuple

import numpy as np

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import BLOCK_ROWS, RidgeWhitener, times, weighted_gram

UNIT_ROUNDOFF = 2.0**-53


class WhiteningErrorBounds(NamedTuple):
    """How exact whitened coordinates are."""

    data_error: float  # bound on the Frobenius norm of what the computed data are off, over sqrt(n)
    right_error: float  # bound on the spectral norm of W'(A + Diag(c)^2)W - I


def sum_error(k: float) -> float:
    """Return the bound on the relative error of a sum of k products."""
    return k * UNIT_ROUNDOFF / (1.0 - k * UNIT_ROUNDOFF)


def round_up(x: float, k: float = 4) -> float:
    """Return a number that is not smaller than x, for a nonnegative x that was computed by k operations."""
    return x * (1.0 + sum_error(k + 2))


def whitening_error_bounds(X: Array, W: Array, Z: Array, diagonal: Array, outside: float = 0.0) -> WhiteningErrorBounds:
    """Return how far computed whitened data Z are from X W, and W'(X'X/n + Diag(diagonal))W from the identity.

    X may be off by the rounding of its centring: each entry by a few units in its last place, each column by that of
    its mean.  What the data have outside the span of W counts as off too: there the right side is at least the ridge,
    in whose metric it is measured.
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
    """Return a bound on what n centred rows have outside the span of their whitener, over sqrt(n)."""
    return round_up(
        whitening.outside + sum_error(len(whitening.W) + n + 16) * n**0.5 * whitening.size, len(whitening.W) + n
    )


def accumulation_length(n: int) -> int:
    """Return how many terms the sums over n rows have in a row, which are summed by blocks."""
    return min(n, BLOCK_ROWS) + n // BLOCK_ROWS + 1
