"""What the rounding of double precision can change: bounds on sums, and positive semidefinite matrices by Cholesky.

The standard model: a sum of k products is computed up to sum_error(k) times the sum of their absolute values, in any
order (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1).  A Cholesky factorisation that
succeeds on a computed matrix proves it positive semidefinite up to sum_error(k + 1) times its trace (Rump, Verification
of positive definiteness, BIT 46, 2006); underflow is left out, for the entries are scaled.
"""

from typing import NamedTuple

import numpy as np

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import BLOCK, RidgeWhitener, cholesky, moment, times
from diffrac_cvx.points.ranges import are_finite

UNIT = 2.0**-53
LARGEST = 1e100  # t beyond proves nothing
TRIES = 4  # of larger multiples, where a factorisation fails


class Whitening(NamedTuple):
    """How exact whitened coordinates are.

    Attributes
    ----------
    data_error : float
        Bound on the Frobenius norm of what the computed data are off, over sqrt(n).
    right_error : float
        Bound on the spectral norm of W'(A + Diag(c)^2)W - I.
    """

    data_error: float
    right_error: float


def sum_error(k: float) -> float:
    """Return the bound on the relative error of a sum of k products."""
    return k * UNIT / (1.0 - k * UNIT)


def round_up(x: float, k: float = 4) -> float:
    """Return a number that is not smaller than x, for a nonnegative x that was computed by k operations."""
    return x * (1.0 + sum_error(k + 2))


class Pencil(NamedTuple):
    """Two symmetric matrices and how far, in the spectral norm, they may be from those that are meant.

    Attributes
    ----------
    M, right : (r, r) array
        The statement to be proved is M <= t right.
    off_M, right_error : float
        The distances.
    """

    M: Array
    right: Array
    off_M: float
    right_error: float


def proved_ratio(pencil: Pencil, t: float, least: float) -> float:
    """Return a t for which M <= t right is proved, a little above the t given, by a Cholesky factorisation.

    Parameters
    ----------
    pencil : Pencil
        The matrices.
    t : float
        About the largest generalised eigenvalue.
    least : float
        About the smallest eigenvalue of the right side.

    Returns
    -------
    float
        Infinity where rounding hides the right side's smallest eigenvalue, or no factorisation succeeds.
    """
    size = len(pencil.M)
    if size == 0:
        return 0.0
    if not np.isfinite(t) or t > LARGEST:
        return float("inf")
    trace_M, trace_right = float(np.abs(np.diag(pencil.M)).sum()), float(np.abs(np.diag(pencil.right)).sum())
    norm_M, norm_right = float(np.linalg.norm(pencil.M)), float(np.linalg.norm(pencil.right))
    for attempt in range(TRIES):
        formed = sum_error(4) * (t * norm_right + norm_M)
        slack = round_up(
            t * pencil.right_error + pencil.off_M + formed + sum_error(2 * size + 8) * (t * trace_right + trace_M)
        )
        usable = least - pencil.right_error
        if not usable > 0.0:
            return float("inf")
        larger = t + 2.0 ** (attempt + 1) * slack / usable
        needed = round_up(slack * (larger / t if t > 0.0 else 1.0))
        S = larger * pencil.right - pencil.M
        S[np.diag_indices(size)] -= needed
        # Outside the span of whitened coordinates the matrices are larger times the identity and 0, up to the slack.
        if larger >= needed and succeeds(S):
            return float(larger)
    return float("inf")


def proved_shift(rest: Array, A: Array, off_rest: float, off_A: float, theta: float) -> float:
    """Return a number, a little above theta, at which rest + theta A is proved positive semidefinite; inf if none is.

    The matrices may be off by off_rest and off_A, in the spectral norm; A has eigenvalues up to 1.
    """
    size = len(A)
    if not np.isfinite(theta):
        return float("inf")
    traces = float(np.abs(np.diag(rest)).sum() + abs(theta) * np.abs(np.diag(A)).sum() + size * off_rest)
    slack = round_up(off_rest + (abs(theta) + 1.0) * off_A + sum_error(2 * size + 16) * (traces + 1.0))
    for attempt in range(3 * TRIES):
        larger = theta + 2.0 ** (attempt + 1) * slack
        if succeeds(rest + larger * A - round_up(slack + (larger - theta) * off_A) * np.eye(size)):
            return float(larger)
    return float("inf")


def succeeds(S: Array) -> bool:
    """Whether the Cholesky factorisation of a symmetric matrix does not break down; LAPACK's may go on with NaN."""
    if not are_finite(S):
        return False
    try:
        return are_finite(cholesky(S))
    except np.linalg.LinAlgError:
        return False


def rounding_of_whitening(X: Array, W: Array, Z: Array, diagonal: Array, outside: float = 0.0) -> Whitening:
    """Return how far computed whitened data Z are from X W, and W'(X'X/n + Diag(diagonal))W from the identity.

    X may be off by the rounding of its centring: each entry by a few units in its last place, each column by that of
    its mean.  What the data have outside the span of W counts as off too: there the right side is at least the ridge,
    in whose metric it is measured.
    """
    n, D = X.shape
    data_error = data_rounding(X, W, outside)
    residual = moment(Z, np.ones(n)) + times(W.T * diagonal, W) - np.eye(len(W.T))
    trace = float(np.sum(np.square(Z)) / n + np.sum(diagonal @ np.square(W)))
    formed = sum_error(summands(n) + D + 8) * trace
    right_error = round_up(float(np.linalg.norm(residual)) + formed + (2.0 * trace**0.5 + data_error) * data_error)
    return Whitening(data_error, right_error)


def data_rounding(X: Array, W: Array, outside: float = 0.0) -> float:
    """Return how far computed products X W may be from those of exactly centred data, over sqrt(n)."""
    n, D = X.shape
    size = float(np.sqrt(np.sum(np.square(X)) / n) * np.linalg.norm(W))
    return round_up(sum_error(D + n + 16) * size + outside)


def outside_of(found: RidgeWhitener, n: int) -> float:
    """Return a bound on what n centred rows have outside the span of their whitener, over sqrt(n)."""
    return round_up(found.outside + sum_error(len(found.W) + n + 16) * n**0.5 * found.size, len(found.W) + n)


def summands(n: int) -> int:
    """Return how many terms the sums over n rows have in a row, which are summed by blocks."""
    return min(n, BLOCK) + n // BLOCK + 1
