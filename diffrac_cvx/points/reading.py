"""What the solvers and certificates take for X: an array, or a table that is read by parts."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.machine import time_budget
from diffrac_cvx.machine.threads import allowed_threads, one_thread
from diffrac_cvx.points.checks import Array, as_data
from diffrac_cvx.points.chunks import is_chunked
from diffrac_cvx.points.factors import Factor, dense
from diffrac_cvx.points.linear_algebra import EPS, LARGE, inverse_or_one, row_blocks, times, whitener_of_gram
from diffrac_cvx.points.sparse import Points, SparseColumns, as_shifted, mean_squares, sparse_rows
from diffrac_cvx.points.streamed import Poll, StreamedRows, as_rows
from diffrac_cvx.points.weights import PointWeights, as_weighted_data, points_with_weight, shares_of, weights_for


def read_by_parts(X: Any) -> bool:
    """Whether a table is kept as it is, whatever its size: a dask array, or a sparse matrix."""
    return is_chunked(X) or hasattr(X, "toarray")


def as_points(
    X: Any,
    *,
    by_rows: bool = False,
    by_columns: bool = False,
    warn: bool = True,
    depth: int = 4,
    poll: Poll = time_budget.poll,
) -> Points:
    """Return data, checked and centred: an array as a copy, others as `StreamedRows` or, sparse, as `SparseColumns`.

    Parameters
    ----------
    X : (n, d) array, memory map, sparse matrix or dask array, or what this function returned
        Data.
    by_rows : bool
        Whether an array or a memory map is read by parts too, and not copied.
    by_columns : bool
        Whether a sparse matrix is kept by columns.
    warn, depth : bool, int
        Whether constant columns are warned of, at the user's line, so many calls up.
    poll : callable
        Called while a table is read by parts; it may raise to leave.

    Raises
    ------
    DataError
        If the table is not usable; the message names the value and the remedy.
    """
    if isinstance(X, StreamedRows):
        return X
    if isinstance(X, SparseColumns):
        return X if by_columns else rows_of_shifted(X)
    if by_columns and hasattr(X, "toarray"):
        return as_shifted(X, warn=warn, depth=depth + 1)
    if not by_rows and not read_by_parts(X):
        return as_data(X, warn=warn, depth=depth + 1)
    threads = allowed_threads()
    with one_thread():
        return as_rows(X, threads=threads, warn=warn, depth=depth + 1, poll=poll)


def rows_of_shifted(X: SparseColumns) -> StreamedRows:
    """Return sparse columns as rows that are read by parts."""
    return sparse_rows(X, X.any(axis=0).astype(np.float64))


def second_moment(X: Points) -> Array:
    """Return X'X/n, shape (d, d)."""
    if isinstance(X, StreamedRows):
        return X.second_moment()
    if isinstance(X, SparseColumns):
        return X.gram(np.ones(len(X))) / len(X)
    return np.asarray(X.T @ X) / len(X)


def root_mean_squares(X: Points) -> Array:
    """Return the root mean squares of the columns, shape (d,): their standard deviations, for they are centred."""
    if isinstance(X, StreamedRows):
        return np.sqrt(np.maximum(np.diag(X.second_moment()), 0.0))
    return np.sqrt(mean_squares(X))


def scale_columns(X: Points, factors: Array) -> Points:
    """Return the columns times factors, shape (d,)."""
    return replace(X, units=X.units * factors) if isinstance(X, StreamedRows) else X * factors


def products_with(X: Points, Y: Array) -> Array:
    """Return X'Y/n for Y with an entry or a row for each row, shape (d,) or (d, k)."""
    return X.products_with(Y) if isinstance(X, StreamedRows) else np.asarray(X.T @ Y) / len(X)


def moment_of_products(X: Points, G: Factor) -> Array:
    """Return (X G)'(X G)/n, shape (r, r), without X G as a whole."""
    if isinstance(X, StreamedRows):
        return np.asarray(dense(G).T @ X.second_moment() @ dense(G))
    total = np.zeros((G.shape[1], G.shape[1]))
    for block in row_blocks(X):
        XG = np.asarray(block @ G)
        total += XG.T @ XG
    return total / len(X)


def rank_of(X: Points) -> int:
    """Return the numerical rank of X, centred."""
    if not isinstance(X, StreamedRows | SparseColumns):
        n, d = X.shape
        if min(n, d) > LARGE // 2:  # where there is no doubt, a Gram matrix says so: n points have n - 1 differences
            rows = X[1:] - X[0] if n <= d else X
            if whitener_of_gram(times(rows, rows.T) if n <= d else times(rows.T, rows)) is not None:
                return int(min(n - 1, d))
        return int(np.linalg.matrix_rank(X))
    values = np.linalg.eigvalsh(second_moment(scale_columns(X, inverse_or_one(root_mean_squares(X)))))
    return int(np.sum(values > max(len(X), len(values)) * EPS * max(values[-1], 0.0)))


# Points with weights


class WeighedPoints(NamedTuple):
    """Points of positive weight.

    Attributes
    ----------
    X : (m, d) array, StreamedRows or SparseColumns
        Centred by their weighted mean.
    shares : (m,) array, or None
        Their shares of the total weight; None where all are equal.
    weights : PointWeights or None
        The weights of all points.
    given : int
        How many points there are with those of weight 0.
    """

    X: Points
    shares: Array | None
    weights: PointWeights | None
    given: int


def read_points(X: npt.ArrayLike, sample_weight: npt.ArrayLike | None, *, by_columns: bool = False) -> WeighedPoints:
    """Return the points of positive weight of a table, checked and centred, without warnings.

    A table that is read by parts is kept as it is; a sparse one by columns, if so asked.
    """
    weights = weights_for(X, sample_weight)
    if weights is None:
        data = as_points(X, by_columns=by_columns, warn=False)
    else:
        data = as_weighted_data(X, weights, warn=False)
    return WeighedPoints(points_with_weight(data, weights), shares_of(weights), weights, len(data))


def deviations_of(X: Points, shares: Array | None) -> Array:
    """Return the standard deviations of the columns, shape (d,)."""
    if isinstance(X, StreamedRows | SparseColumns):
        return root_mean_squares(X)
    return np.asarray(X.std(axis=0) if shares is None else np.sqrt(shares @ (X - shares @ X) ** 2))
