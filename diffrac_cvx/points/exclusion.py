"""Exclusion of unpenalised columns that are, up to rounding, linear combinations of the others.

A large coefficient of such a column has no penalty, so rounding alone could determine the optimum.  Columns are
excluded here, once, and all later results and bounds refer to the table without them.  A penalised column is never
excluded.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from diffrac_cvx.points.checks import Array, rounding_floor
from diffrac_cvx.points.linear_algebra import EPS, RANK_FACTOR, whitener_of_gram
from diffrac_cvx.points.rows import Indices, Mask
from diffrac_cvx.points.table import Excluded, Table

NO_COLUMNS, NO_COEFFICIENTS = np.zeros(0, dtype=np.intp), np.zeros((0, 0))


def exclude(points: Table, penalized: Mask) -> Table:
    """Return centred points with zeros in the columns that are neither penalised, (d,) booleans, nor independent.

    A column is excluded if, scaled to norm one, its residual after projection on the others does not exceed rounding
    errors; for a column far from zero, these are the rounding errors of its entries.  A QR factorisation with pivoting
    selects the columns in O(n f^2) for f unpenalised columns.  `Table.excluded` lists them.
    """
    free = np.zeros(0, dtype=np.intp) if penalized.all() else np.flatnonzero(points.used_columns() & ~penalized)
    if len(free) == 0:
        return points
    if points.rows.is_streamed:  # finding collinear columns takes rows in memory; streamed solvers reject such columns
        found = np.flatnonzero(is_rounding_noise(points) & ~penalized)
        return exclude_columns(points, make_excluded(points.shape[1], found)) if len(found) else points
    sizes = np.maximum(np.sqrt(points.mean_squares()), np.abs(points.means) / len(points) ** 0.5)
    units = 1.0 / sizes[free]
    F = points.weighted_rows().in_columns().columns(free).array() * (units / len(points) ** 0.5)
    if len(F) >= len(free) and whitener_of_gram(F.T @ F) is not None:  # clearly independent
        return points
    R, order = scipy.linalg.qr(np.linalg.qr(F, mode="r"), mode="r", pivoting=True, check_finite=False)
    rank = int(np.sum(np.abs(np.diag(R)) > RANK_FACTOR * max(F.shape) * EPS))
    if rank == len(free):
        return points
    independent, dependent = order[:rank], order[rank:]
    combination = scipy.linalg.solve_triangular(R[:rank, :rank], R[:rank, rank:], check_finite=False)
    combination *= units[independent, None] / units[dependent]
    return exclude_columns(points, make_excluded(points.shape[1], free[dependent], free[independent], combination))


def is_rounding_noise(points: Table) -> Mask:
    """Return the mask of columns that vary, but by no more than the rounding of their entries."""
    deviations = np.sqrt(points.mean_squares())
    return np.asarray((deviations > 0.0) & (deviations <= rounding_floor(points.means, len(points))))


def make_excluded(
    d: int, columns: Indices, independent: Indices = NO_COLUMNS, combination: Array = NO_COEFFICIENTS
) -> Excluded:
    """Return the exclusion of columns that are nearly combinations, (r, e), of r others; of constant ones if r = 0."""
    keep = np.ones(d)
    keep[columns] = 0.0
    places = (np.repeat(independent, len(columns)), np.tile(columns, len(independent)))
    F: Any = scipy.sparse.diags_array(keep, format="csr")
    return Excluded(np.sort(columns), F + scipy.sparse.csr_array((combination.ravel(), places), shape=(d, d)))


def exclude_columns(points: Table, excluded: Excluded | None) -> Table:
    """Return the points with zeros in the excluded columns, in addition to those excluded before."""
    if excluded is None:
        return points
    factors, previous = np.ones(points.shape[1]), points.excluded
    factors[excluded.columns] = 0.0
    if previous is not None and previous is not excluded:
        columns = np.union1d(previous.columns, excluded.columns)
        excluded = Excluded(columns, excluded.elimination @ previous.elimination)
    return replace(points.scaled(factors), excluded=excluded)
