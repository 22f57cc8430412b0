"""What the rounding of double precision can change: bounds on sums, and positive semidefinite matrices by Cholesky.

The standard model: a sum of k products is computed up to gamma(k) times the sum of their absolute values, in any order
(Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1).  A Cholesky factorisation that succeeds on
a computed matrix proves it positive semidefinite up to gamma(k + 1) times its trace (Rump, Verification of positive
definiteness, BIT 46, 2006); underflow is left out, for the entries are scaled.
"""

from typing import NamedTuple

import numpy as np

from diffrac_cvx.inputs import Array

UNIT = 2.0**-53
LARGEST = 1e100  # t beyond proves nothing
TRIES = 4  # of larger multiples, where a factorisation fails


def gamma(k: float) -> float:
    """Return the bound on the relative error of a sum of k products."""
    return k * UNIT / (1.0 - k * UNIT)


def up(x: float, k: float = 4) -> float:
    """Return a number that is not smaller than x, for a nonnegative x that was computed by k operations."""
    return x * (1.0 + gamma(k + 2))


class Pencil(NamedTuple):
    """Two symmetric matrices and how far, in the spectral norm, they may be from those that are meant.

    Attributes
    ----------
    M, right : (r, r) array
        The statement to be proved is M <= t right.
    off_M, off_right : float
        The distances.
    """

    M: Array
    right: Array
    off_M: float
    off_right: float


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
        formed = gamma(4) * (t * norm_right + norm_M)
        slack = up(t * pencil.off_right + pencil.off_M + formed + gamma(2 * size + 8) * (t * trace_right + trace_M))
        usable = least - pencil.off_right
        if usable <= 0.0:
            return float("inf")
        larger = t + 2.0 ** (attempt + 1) * slack / usable
        S = larger * pencil.right - pencil.M
        S[np.diag_indices(size)] -= up(slack * (larger / t if t > 0.0 else 1.0))
        if succeeds(S):
            return float(larger)
    return float("inf")


def succeeds(S: Array) -> bool:
    """Whether the Cholesky factorisation of a symmetric matrix does not break down."""
    try:
        np.linalg.cholesky(S)
    except np.linalg.LinAlgError:
        return False
    return True
