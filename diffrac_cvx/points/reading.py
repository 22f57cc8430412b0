"""Conversion of user input to points: validated, centred and weighted."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.machine.threads import allowed_threads, one_thread
from diffrac_cvx.points.checks import (
    Array,
    ArrayT,
    PointWeights,
    as_matrix,
    as_real,
    as_sparse_table,
    as_table,
    centered_data,
    format_indices,
    require_moderate_scale,
    require_table,
    require_two_points,
    rounding_floor,
    rows_with_weight,
    warn_constant,
    weights_for,
)
from diffrac_cvx.points.chunks import is_dask
from diffrac_cvx.points.constraints import Chunklets, Constraints
from diffrac_cvx.points.dask_rows import DaskRows
from diffrac_cvx.points.dense import DenseRows
from diffrac_cvx.points.linear_algebra import EPS, row_blocks
from diffrac_cvx.points.rows import Indices, Rows
from diffrac_cvx.points.sliced import in_memory, is_read_by_blocks, opened, take_rows
from diffrac_cvx.points.sparse import SparseColumns, as_sparse_columns, rows_of
from diffrac_cvx.points.streamed import StreamedRows
from diffrac_cvx.points.table import Table, array_table, centered_table

MIN_ROWS = 40_000  # of a table that is streamed
ROWS_PER_SQUARE = 8  # rows of the first sample over D^2
GROWTH = 2.5  # ratio of successive sample sizes; the largest sample has half of all rows


class Sample(NamedTuple):
    """Points of positive weight, all points, and their weights."""

    X: Table  # (m, d), centred by their weighted mean, with normalised weights and chunklets
    X_all: Table  # (n, d), including those of weight 0
    weights: PointWeights | None  # weights of all points

    @property
    def n_all(self) -> int:
        """Number of points, including those of weight 0."""
        return len(self.X_all)

    def expand(self, values: ArrayT) -> ArrayT:
        """Return values of all points from those of the points of positive weight, with zeros for the others."""
        if self.weights is None:
            return values
        expanded = np.zeros((self.n_all, *values.shape[1:]), dtype=values.dtype)
        expanded[self.weights.mask] = values
        return cast(ArrayT, expanded)

    def with_weight(self, values: ArrayT) -> ArrayT:
        """Return the values of the points of positive weight, given those of all points."""
        return rows_with_weight(values, self.weights)


def read_points(
    X: Any,
    sample_weight: npt.ArrayLike | PointWeights | None = None,
    *,
    constraints: Constraints | Chunklets | None = None,
    are_many: Callable[[int, int], bool] | None = None,
    by_columns: bool = False,
    warn: bool = False,
) -> Sample:
    """Return the points of positive weight of a table, validated and centred; weights may be validated already.

    X is an (n, d) array, a sparse matrix, a `Table`, or a table that `is_out_of_core`.  With weights or constraints the
    points are stored as an array, to which sparse matrices with constraints are converted.  Otherwise tables are
    streamed, without a copy, if ``are_many(n, d)``; by default, if they are out of core and have many rows.  A sparse
    matrix is stored by columns on request, and otherwise streamed.
    """
    if isinstance(X, Table) and not (sample_weight is None and constraints is None):
        raise ParameterError("X is a Table, which holds its weights and constraints. Pass an array with these two.")
    X = as_stored(X)
    weights = sample_weight if isinstance(sample_weight, PointWeights) else weights_for(X, sample_weight)
    if weights is not None or constraints is not None:
        if constraints is not None and hasattr(X, "toarray"):
            X = table_array(X)
        centered = centered_data(X, weights, warn=warn)
        return Sample(centered_table(centered, weights, constraints), array_table(centered[0]), weights)
    shape = getattr(X, "shape", ())
    are_many = many_rows if are_many is None and is_out_of_core(X) else are_many
    many = are_many is not None and len(shape) == 2 and are_many(*shape)
    by_columns = by_columns and not many
    if isinstance(X, Table):
        rows: Rows = X.rows
        if isinstance(rows, DenseRows) and many and X.is_plain:
            rows = streamed(rows.table, warn=False).rows
        elif isinstance(rows, SparseColumns) and not by_columns:
            rows = rows_of(rows, X.used_columns().astype(np.float64))
        points = replace(X, rows=rows)
    elif by_columns and hasattr(X, "toarray"):
        points = as_sparse_columns(X, warn=warn)
    elif many or hasattr(X, "toarray"):
        points = streamed(X, warn=warn)
    else:
        points = centered_table(centered_data(X, warn=warn))
    return Sample(points, points, None)


def many_rows(n: int, d: int) -> bool:
    """Return whether a table has enough rows to be streamed, and to be solved first on samples of its rows."""
    return n >= MIN_ROWS and GROWTH * ROWS_PER_SQUARE * d**2 <= n / 2


def is_out_of_core(X: Any) -> bool:
    """Return whether a table is not held in memory: a memory map, a dask array, or one that supports only slicing."""
    return isinstance(X, np.memmap) or is_read_by_blocks(X)


def as_stored(X: Any) -> Any:
    """Return a sparse or out-of-core table unchanged, and any other form as an array of real numbers."""
    if isinstance(X, Table):
        return X
    if is_out_of_core(X) or hasattr(X, "toarray"):
        require_table(X)
        return X
    return as_real(X, "X")


# Streamed tables


def streamed(X: npt.ArrayLike, *, warn: bool) -> Table:
    """Return a table that is streamed by as many threads as are allowed."""
    threads = allowed_threads()
    with one_thread():
        return as_rows(X, threads=threads, warn=warn)


def as_rows(X: npt.ArrayLike, *, threads: int = 1, warn: bool = True) -> Table:
    """Return a table that is streamed, validated and centred as by `as_data`, in two passes.

    A numeric array of any type is not copied; a sparse matrix is converted to CSR, without duplicates.
    """
    rows_class = DaskRows if is_dask(X) else StreamedRows
    if is_read_by_blocks(X):
        require_table(X)
        table: Any = opened(X)
    elif hasattr(X, "toarray"):
        table = as_sparse_table(X)
    else:
        table = as_table(X)
        if isinstance(X, np.memmap) and table.dtype == X.dtype:
            table = X  # the memory map keeps the name of its file
    n = table.shape[0]
    require_two_points(n)
    zeros = np.zeros(table.shape[1])
    rows = rows_class(table, mean=zeros, residual_mean=zeros, units=zeros + 1.0, threads=threads)
    summaries = rows.stack(lambda block: np.stack([block.min(axis=0), block.max(axis=0), block.sum(axis=0)])[None])
    low, high, total = summaries.swapaxes(0, 1)
    smallest, largest = low.min(axis=0), high.max(axis=0)
    size = np.maximum(np.abs(smallest), np.abs(largest))
    if not np.isfinite(size).all():
        columns = format_indices(~np.isfinite(size))
        raise DataError(f"X has entries that are NaN or infinite, in columns {columns}. Drop or impute them.")
    require_moderate_scale(size)
    rows = replace(rows, mean=total.sum(axis=0) / n, checksum_error=256.0 * EPS * n**0.5 * size)
    gram, residual_mean = (found / n for found in rows.add(lambda block: (block.T @ block, block.sum(axis=0))))
    gram = gram - np.outer(residual_mean, residual_mean)
    # The residual mean is mostly the rounding error of the mean; it is not subtracted if it is negligible.
    residual_mean = np.where(np.abs(residual_mean) <= 1e-14 * np.sqrt(np.diag(gram)), 0.0, residual_mean)
    means = rows.mean + residual_mean
    warn_constant(np.sqrt(np.diag(gram)) <= rounding_floor(means, n), warn)
    units = np.where(smallest == largest, 0.0, 1.0)
    return Table(replace(rows, residual_mean=residual_mean, units=units, gram=gram), means=means)


# Uncentred tables


def table_array(X: Any) -> Array:
    """Return a table as an array of doubles; raise ResourceError if it does not fit in memory."""
    n, d = X.shape
    require_memory(8.0 * 2 * n * d, f"a table of {n} points and {d} features", "use two clusters or fewer points")
    if is_read_by_blocks(X):
        return np.asarray(in_memory(X), dtype=np.float64)
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def raw_table(X: Any) -> Array:
    """Return any table as an array of doubles, as given; a `Table` is centred."""
    if isinstance(X, Table):
        return X.array()
    return table_array(X) if hasattr(X, "toarray") else as_matrix(X)


def table_rows(X: Any, indices: Indices) -> Any:
    """Return the rows at increasing indices of any table, as they are stored."""
    if is_read_by_blocks(X):
        return take_rows(X, indices)
    return X.iloc[indices] if hasattr(X, "iloc") else X[indices]


def table_times(X: Any, W: Array) -> Array:
    """Return X W, shape (n,) or (n, k), for a table that may be streamed."""

    def of_block(block: Any) -> Array:
        rows = np.asarray(block, dtype=np.float64)
        if not np.isfinite(rows).all():
            raise DataError("X has entries that are NaN or infinite. Drop or impute them.")
        return np.asarray(rows @ W)

    if is_read_by_blocks(X):
        return np.concatenate(list(opened(X).map(of_block)))
    if isinstance(X, np.memmap):
        return np.concatenate([of_block(block) for block in row_blocks(X)])
    return np.asarray(X @ W)
