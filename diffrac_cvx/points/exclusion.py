"""Which columns are excluded: those without a penalty that rounding does not tell from a combination of the others.

Nothing penalises a large coefficient of such a column, so that its rounding alone could decide on the optimum.  The
decision is made here, once, and everything that is stated afterwards is about the table without these columns.  A
column with a penalty is never excluded.
"""

from typing import Any, TypeVar

import numpy as np
import scipy.linalg
import scipy.sparse

from diffrac_cvx.points.checks import Array, rounding_floor
from diffrac_cvx.points.linear_algebra import EPS, LARGE_SIZE, times, whitener_of_gram
from diffrac_cvx.points.points import Excluded, Indices, Mask, Points

PointsKind = TypeVar("PointsKind", bound=Points)
COLLINEARITY_FACTOR = 8.0  # times the larger size and the precision: what of a column of norm one is rounding


def exclude(points: PointsKind, penalized: Mask) -> PointsKind:
    """Return centred points whose columns are zero if they are not penalised, (d,) booleans, and not independent.

    A column is excluded if, in units in which it has norm one, less is left of it than rounding may leave once the
    others are subtracted; a column far from zero is measured by the rounding of its entries.  The columns are chosen by
    a QR factorisation with pivots, O(n f^2) for f columns without a penalty.  `Points.excluded` says which they are.
    """
    free = np.zeros(0, dtype=np.intp) if penalized.all() else np.flatnonzero(points.used_columns() & ~penalized)
    if len(free) == 0:
        return points
    if points.is_streamed:  # collinear ones need the rows in memory; who sums over passes refuses them
        found = np.flatnonzero(is_rounding_noise(points) & ~penalized)
        return exclude_columns(points, make_excluded(points.shape[1], found)) if len(found) else points
    deviations = np.sqrt(points.mean_squares()[free])
    units = 1.0 / np.maximum(deviations, np.abs(points.means[free]) / len(points) ** 0.5)
    F = points.weighted_rows().in_columns().dense_columns(free) * (units / len(points) ** 0.5)
    if are_clearly_independent(F):
        return points
    R, order = scipy.linalg.qr(np.linalg.qr(F, mode="r"), mode="r", pivoting=True, check_finite=False)
    rank = int(np.sum(np.abs(np.diag(R)) > COLLINEARITY_FACTOR * max(F.shape) * EPS))
    if rank == len(free):
        return points
    independent, dependent = order[:rank], order[rank:]
    combination = scipy.linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:], check_finite=False)
    combination *= units[independent, None] / units[dependent]
    return exclude_columns(points, make_excluded(points.shape[1], free[dependent], free[independent], combination))


def is_rounding_noise(points: Points) -> Mask:
    """Return which columns vary, but by no more than the rounding of their entries may."""
    deviations = np.sqrt(points.mean_squares())
    return np.asarray((deviations > 0.0) & (deviations <= rounding_floor(points.means, len(points))))


def are_clearly_independent(F: Array) -> bool:
    """Whether a Gram matrix shows that many columns are far from collinear, in less time than a factorisation takes."""
    return LARGE_SIZE // 2 < F.shape[1] <= len(F) and whitener_of_gram(times(F.T, F)) is not None


def make_excluded(
    d: int, columns: Indices, independent: Indices | None = None, combination: Array | None = None
) -> Excluded:
    """Return the exclusion of columns that are combinations, (r, e), of those kept, or constant up to rounding."""
    keep = np.ones(d)
    keep[columns] = 0.0
    F: Any = scipy.sparse.diags_array(keep, format="csr")
    if independent is not None and combination is not None:
        places = (np.repeat(independent, len(columns)), np.tile(columns, len(independent)))
        F = F + scipy.sparse.csr_array((combination.ravel(), places), shape=(d, d))
    return Excluded(np.sort(columns), F)


def exclude_columns(points: PointsKind, excluded: Excluded | None) -> PointsKind:
    """Return the points with zeros in the excluded columns, beside those that were excluded before."""
    if excluded is None:
        return points
    factors, previous = np.ones(points.shape[1]), points.excluded
    factors[excluded.columns] = 0.0
    if previous is not None and previous is not excluded:
        columns = np.union1d(previous.columns, excluded.columns)
        excluded = Excluded(columns, excluded.elimination @ previous.elimination)
    return points.scaled(factors).with_excluded(excluded)
