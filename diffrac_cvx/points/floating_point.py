"""Rounding errors in double precision: bounds for sums, and verification of semidefiniteness by Cholesky.

Standard model: the error of a computed sum of k products, in any order, is at most sum_error(k) times the sum of their
absolute values (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1).  If the Cholesky
factorisation of a computed matrix succeeds, the matrix is positive semidefinite up to sum_error(k + 1) times its trace
(Rump, Verification of positive definiteness, BIT 46, 2006).  Underflow is neglected because the entries are scaled.

A product of a row with a factor or a direction has two errors: the rounding of a sum with one term per column, and the
error of the centring of X, which comes from the means.  Both are bounded by the norm of the row, with columns in
comparable units, times the norm of the factor.
"""

from typing import NamedTuple

import numpy as np

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.constraints import Chunklets
from diffrac_cvx.points.factors import Factor
from diffrac_cvx.points.linear_algebra import BLOCK_ROWS, EPS, RidgeWhitener, times, weighted_gram

UNIT_ROUNDOFF = EPS / 2


class WhiteningErrorBounds(NamedTuple):
    """Error bounds of whitened coordinates."""

    data_error: float  # bound on the Frobenius norm of the error of the computed data, divided by sqrt(n)
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
    """Return a bound on the norm of n centred rows outside the span of their whitener, divided by sqrt(n)."""
    W, outside, size = whitening
    return round_up(outside + sum_error(len(W) + n + 16) * n**0.5 * size, len(W) + n)


def accumulation_length(n: int) -> int:
    """Return the number of successive additions in a blockwise sum over n rows."""
    return min(n, BLOCK_ROWS) + n // BLOCK_ROWS + 1


# Sums over rows of products with a factor or a direction


class RoundedFactor(NamedTuple):
    """Factor of V in the user's units, and the quantities that determine the rounding errors of its products."""

    features: Factor  # (d, r), rows of the features
    offset: Array  # (r,), row of the offset
    units: Array  # (d,), factors that make the columns comparable
    norm: float  # norm of the factor in these units
    n: int  # number of points

    def errors(self, norms: Array) -> Array:
        """Return bounds on the Euclidean norms of the errors of products with rows of these norms."""
        d, r = self.features.shape
        centering = 4.0 * sum_error(self.n) * self.norm * len(self.units) ** 0.5
        return np.asarray(sum_error(d + r + 8) * (norms + 1.0) * self.norm + centering)


def row_norms(X: Array, units: Array) -> Array:
    """Return the norms of rows whose columns are multiplied by the units."""
    return np.asarray(np.sqrt(np.sum((X * units) ** 2, axis=1)))


def row_bounds(XG: Array, norms: Array, factor: RoundedFactor) -> tuple[Array, Array]:
    """Return lower bounds on sqrt(q_i) and upper bounds on q_i from products with the features and row norms."""
    r = factor.features.shape[1]
    length = np.sqrt(np.sum((XG + factor.offset) ** 2, axis=1))
    off = factor.errors(norms)
    roots = np.maximum(length * (1.0 - sum_error(r + 8)) - off, 0.0)
    return roots, (length * (1.0 + sum_error(r + 8)) + off) ** 2


def block_sum_bounds(factor: RoundedFactor, block: Array, counts: Array | float = 1.0) -> tuple[float, float]:
    """Return a lower bound on the sum of sqrt(q_i) and an upper bound on that of q_i over rows with optional counts."""
    roots, q_upper = row_bounds(np.asarray(block @ factor.features), row_norms(block, factor.units), factor)
    return float(np.sum(roots * counts)), float(np.sum(q_upper * counts))


def chunklet_sum_bounds(
    XG: Array, norms: Array, factor: RoundedFactor, counts: Array, chunklets: Chunklets
) -> tuple[float, float]:
    """Return the bounds of `block_sum_bounds` with one row per chunklet: the norm of its signed sum replaces sqrt(q_i).

    The error of a sum of k rows is at most the sum of their errors, plus sum_error(k) times their lengths.
    """
    r, k = factor.features.shape[1], chunklets.max_size
    q_upper = row_bounds(XG, norms, factor)[1]
    rows = (XG + factor.offset) * counts[:, None]
    lengths = np.sqrt(np.sum(rows**2, axis=1))
    off = chunklets.sums(counts * factor.errors(norms) + sum_error(k + r + 12) * lengths)
    roots = np.sqrt(np.sum(chunklets.signed_sums(rows) ** 2, axis=1)) * (1.0 - sum_error(r + 8)) - off * (
        1.0 + sum_error(k + 8)
    )
    return float(np.sum(np.maximum(roots, 0.0))), float(np.sum(q_upper * counts))


def residual_bounds(
    products: Array, norms: Array, target: Array, v_scaled: Array, n: int, target_roundings: float = 4.0
) -> Array:
    """Return upper bounds on (target_i - x_i'v)^2 of some rows among n, from the products x_i'v and the row norms.

    v is scaled to the units of these norms.  The error of a target is at most `target_roundings` roundings of a number
    of size one.
    """
    d = len(v_scaled)
    off = (sum_error(d + 16) * norms + 4.0 * sum_error(n) * d**0.5) * float(np.linalg.norm(v_scaled))
    residual = np.abs(target - products)
    return np.asarray((residual + off + target_roundings * UNIT_ROUNDOFF * (1.0 + residual)) ** 2)
