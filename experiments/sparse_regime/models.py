"""Boundaries of recovery obtained from searches, their growth with the sparsity, and a bound from theory."""

from collections.abc import Mapping
from functools import cache

import numpy as np
import pandas as pd
import scipy.optimize
import scipy.stats

from diffrac_cvx.typing import Array
from experiments.harness.boundary import MIN_DIMENSION, Boundary, boundary_at, collect, fit_power
from experiments.harness.intervals import DRAWS, UNKNOWN, Interval
from experiments.theory.unique_solution import statistical_dimension

LINEAR, LOGARITHM, FASTER, OPEN = "linear", "d log d", "faster", "open"
NEAR = 0.1  # distance of an exponent from that of a law that counts as equal


def boundary_of(searches: pd.DataFrame) -> Boundary:
    """Return the boundary of searches, the median of their n for each d, with bootstrap intervals over replications.

    A search that ends outside its grid counts as infinite, or as 0.
    """
    rng = np.random.default_rng([2017, 51, 0])
    found = []
    for d, part in searches.groupby("d"):
        points = part["points"].to_numpy(float)
        open_ended = np.where(part["outside"] == 1, np.inf, np.where(part["outside"] == -1, 0.0, points))
        at = float(np.median(open_ended))
        draws = np.median(open_ended[rng.integers(len(points), size=(DRAWS, len(points)))], axis=1)
        draws[~np.isfinite(draws) | (draws == 0.0)] = np.nan
        side = 0 if 0.0 < at < np.inf else 1 if at > 0.0 else -1
        n50 = at if side == 0 else float(points.max() if side == 1 else points.min())
        found.append(boundary_at(float(str(d)), n50, side, draws, points, len(points)))
    return collect(found)


def growth_in_sparsity(boundaries: Mapping[int, Boundary], d: float) -> Interval:
    """Return the exponent of n50 in l at one d, from at least four l; otherwise undetermined."""
    at = {l: found.d == d for l, found in boundaries.items() if np.any(found.d == d)}
    by_l = [Boundary(np.array([l]), *(column[..., at[l]] for column in boundaries[l][1:])) for l in at]
    return fit_power(collect(by_l), from_d=0).exponent if by_l else UNKNOWN


def law_exponent(sparsity: int, d: Array) -> float:
    """Return the exponent of the law 1 + delta fitted at some dimensions, at least two."""
    return float(np.polyfit(np.log(d), np.log([1.0 + dimension_bound(sparsity, at) for at in d]), 1)[0])


def growth_of(found: Boundary, sparsity: int) -> tuple[Interval, str]:
    """Return the exponent of d in a boundary, and what it is consistent with.

    `LINEAR`: the interval reaches down to 1 + `NEAR` and excludes 2.  `LOGARITHM`: it excludes 2 and reaches down to
    the exponent of the law 1 + delta at the same dimensions, of order d log d, plus `NEAR`.  `FASTER`: it lies above
    both, or the boundary is above the grid and above the points needed without a penalty.  `OPEN`: anything else.
    """
    exponent = Interval(*np.round(fit_power(found, MIN_DIMENSION).exponent, 9) + 0.0)
    above = found.outside == 1
    if np.any(found.n50[above] > statistical_dimension(found.d[above])):
        return exponent, FASTER
    if not np.isfinite(exponent.high):
        return exponent, OPEN
    if exponent.low > max(1.0, law_exponent(sparsity, found.d[found.inside & (found.d >= MIN_DIMENSION)])) + NEAR:
        return exponent, FASTER
    if exponent.high >= 2.0 or above.any():
        return exponent, OPEN
    return exponent, LINEAR if exponent.low <= 1.0 + NEAR else LOGARITHM


@cache
def dimension_bound(sparsity: int, d: float) -> float:
    r"""Return a closed-form upper bound of the statistical dimension of the cone that decides a vanishing penalty.

    As lambda falls to 0 the solution has the smallest |V|_1 among all V with x_i'Vx_i = 1.  It is vv' if and only if no
    direction of the tangent cone of the semidefinite matrices at vv' has x_i' Delta x_i = 0 for all i and a directional
    derivative of |.|_1 at most 0.  If random points behaved as Gaussian measurements, which is a conjecture, 1 + delta
    points would be needed, delta the statistical dimension of the directions with such a derivative (Amelunxen, Lotz,
    McCoy and Tropp, 2014).  It is the mean squared distance of a Gaussian matrix to the polar cone.  A point of that
    cone, the matrix clipped at any t, gives

    .. math:: \delta \le (l-1) + \tfrac{l(l-1)}2 + (l-1) l^2 t^2 + (d-l) (1 + (l-1)^2 t^2)
              + \big((d-l)(d-l-1) + 2 l (d-l)\big)\, \mathbb{E} \big(|g| / \sqrt2 - t\big)_+^2 ,

    of order (l-1)^2 d log(d / (l-1)^2) at the best t.  Without the derivative it is d - 1 + d(d-1)/4.
    """
    l, rest = sparsity, d - sparsity
    pairs = rest * (rest - 1) + 2 * l * rest

    def bound(t: float) -> float:
        z = t * 2.0**0.5
        tail = (1.0 + z**2) * scipy.stats.norm.sf(z) - z * scipy.stats.norm.pdf(z)  # E (|g| - z)_+^2 / 2
        fixed = (l - 1) + l * (l - 1) / 2 + (l - 1) * (l * t) ** 2
        return float(fixed + rest * (1.0 + ((l - 1) * t) ** 2) + pairs * tail)

    found = scipy.optimize.minimize_scalar(bound, bounds=(1e-3, 12.0), method="bounded")
    return min(float(found.fun), d - 1 + d * (d - 1) / 4)
