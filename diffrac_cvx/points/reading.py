"""Conversion of user input to points: validated, centred and weighted."""

from collections import ChainMap
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.machine.threads import allowed_threads, one_thread
from diffrac_cvx.points.checks import (
    Array,
    ArrayT,
    PointWeights,
    as_matrix,
    as_sparse_table,
    as_table,
    centered_data,
    not_finite_error,
    require_file,
    require_moderate_scale,
    require_two_points,
    rounding_floor,
    rows_with_weight,
    warn_constant,
    weights_for,
)
from diffrac_cvx.points.chunks import Chunks, as_chunks, checksum_chunk, is_chunked
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.dense import DensePoints, array_points, weighted_points
from diffrac_cvx.points.label_factors import FactorTable, StoredFactor
from diffrac_cvx.points.linear_algebra import EPS, LARGE_SIZE, inverse_or_one, row_blocks, times, whitener_of_gram
from diffrac_cvx.points.points import Points, squares_and_sum
from diffrac_cvx.points.sparse import SparseColumns, as_sparse_columns, rows_of
from diffrac_cvx.points.streamed import StreamedRows, checksum_block, uncentered


class Sample(NamedTuple):
    """Points of positive weight, all points, and their weights."""

    X: Points  # (m, d), centred by their weighted mean, with normalised weights and chunklets
    X_all: Points  # (n, d), including those of weight 0
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
    constraints: Constraints | None = None,
    are_many: Callable[[int, int], bool] | None = None,
    by_columns: bool = False,
    warn: bool = False,
    depth: int = 4,
) -> Sample:
    """Return the points of positive weight of a table, validated and centred; weights may be checked before.

    With weights or constraints they are stored as an array, to which sparse matrices and dask arrays with constraints
    are converted.  Any other table is read by `as_points`: by rows if ``are_many(n, d)``, else by columns on request.
    """
    weights = sample_weight if isinstance(sample_weight, PointWeights) else weights_for(X, sample_weight)
    if weights is None and constraints is None:
        shape = getattr(X, "shape", ())
        many = are_many is not None and len(shape) == 2 and are_many(*shape)
        points = as_points(X, by_rows=many, by_columns=by_columns and not many, warn=warn, depth=depth + 1)
        return Sample(points, points, None)
    if constraints is not None and (is_chunked(X) or hasattr(X, "toarray")):
        X = table_array(X)
    centered = centered_data(X, weights, warn=warn, depth=depth + 1)
    return Sample(weighted_points(centered, weights, constraints), array_points(centered[0]), weights)


def as_points(
    X: Any,
    *,
    by_rows: bool = False,
    by_columns: bool = False,
    warn: bool = True,
    depth: int = 4,
) -> Points:
    """Return validated, centred data: arrays as a copy, others as `StreamedRows` or, if sparse, as `SparseColumns`.

    X is an (n, d) array, memory map, sparse matrix, dask array, or a result of this function.  With `by_rows`, arrays
    and memory maps are streamed too, without a copy; with `by_columns`, a sparse matrix is stored by columns.  Warnings
    about constant columns point at the user's line, ``depth`` calls up.
    """
    if isinstance(X, SparseColumns) and not by_columns:
        return rows_of(X, X.used_columns().astype(np.float64))
    is_unweighted = isinstance(X, DensePoints) and X.weights is None and not X.chunklets.max_size
    if is_unweighted and by_rows:  # stream its array
        X, warn = X.array(), False
    if isinstance(X, Points):
        return X
    if by_columns and hasattr(X, "toarray"):
        return as_sparse_columns(X, warn=warn, depth=depth + 1)
    if not (by_rows or is_chunked(X) or hasattr(X, "toarray")):
        return weighted_points(centered_data(X, warn=warn, depth=depth + 1))
    threads = allowed_threads()
    with one_thread():
        return as_rows(X, threads=threads, warn=warn, depth=depth + 1)


def rank_of(X: Points) -> int:
    """Return the numerical rank of centred points X."""
    if X.in_memory:
        table = X.array()
        n, d = X.shape
        if (
            min(n, d) > LARGE_SIZE // 2
        ):  # a well-conditioned Gram matrix certifies full rank; n points have n - 1 differences
            rows = table[1:] - table[0] if n <= d else table
            if whitener_of_gram(times(rows, rows.T) if n <= d else times(rows.T, rows)) is not None:
                return int(min(n - 1, d))
        return int(np.linalg.matrix_rank(table))
    values = np.linalg.eigvalsh(X.scaled(inverse_or_one(np.sqrt(X.mean_squares()))).second_moment())
    return int(np.sum(values > max(len(X), len(values)) * EPS * max(values[-1], 0.0)))


# Streamed tables

Summary = tuple[Array, Array, Array, Any, list[tuple[int, int, float, int]]]  # see `part_summary`


def part_summary(part: StreamedRows, is_chunk: bool) -> Summary:
    """Return column minima, maxima and sums, checksums of the blocks or the chunk, and the entries that are not finite.

    Of these, each block has the row, column and value of the first, and their number.
    """
    d = part.table.shape[1]
    smallest, largest, total = np.full(d, np.inf), np.full(d, -np.inf), np.zeros(d)
    checksums, infinite = {}, []
    for start, block in part.raw_blocks() if len(part) else ():
        np.minimum(smallest, block.min(axis=0), out=smallest)
        np.maximum(largest, block.max(axis=0), out=largest)
        np.add(total, block.sum(axis=0, dtype=np.float64), out=total)
        if not is_chunk:
            checksums[part.first + start] = checksum_block(block)
        if not (np.isfinite(smallest).all() and np.isfinite(largest).all()):
            nonfinite = np.argwhere(~np.isfinite(block))
            if len(nonfinite):
                row, column = nonfinite[0].tolist()
                infinite.append((start + row, column, float(block[row, column]), len(nonfinite)))
    return smallest, largest, total, checksum_chunk(part.table) if is_chunk else checksums, infinite


def as_rows(X: npt.ArrayLike, *, threads: int = 1, warn: bool = True, depth: int = 4) -> StreamedRows:
    """Return a table as streamed rows, validated and centred as by `as_data`, in two passes.

    A numeric array of any type is not copied; a sparse matrix is converted to CSR, without duplicates.  Checksums of
    the first pass are compared with those of later passes.
    """
    if is_chunked(X):
        table: Any = as_chunks(X)
    elif hasattr(X, "toarray"):
        table = as_sparse_table(X)
    else:
        table = as_table(X)
        if isinstance(X, np.memmap) and table.dtype == X.dtype:
            table = X  # the memory map knows its file
    n = table.shape[0]
    require_two_points(n)
    rows = uncentered(table, threads)
    parts = rows.map_parts(partial(part_summary, is_chunk=isinstance(table, Chunks)))
    low, high, sums, checksums, infinite = zip(*parts, strict=True)
    smallest, largest, total = np.min(low, axis=0), np.max(high, axis=0), np.sum(sums, axis=0)
    nonfinite = [(first, *entry) for (first, _), found in zip(rows.bounds(), infinite, strict=True) for entry in found]
    if nonfinite:
        first, row, column, value, _ = nonfinite[0]
        raise not_finite_error("X", value, (first + row, column), sum(count for *_, count in nonfinite))
    size = np.maximum(np.abs(smallest), np.abs(largest))
    require_moderate_scale(size)
    if isinstance(table, Chunks):
        rows = replace(rows, table=replace(table, checksums=checksums), mean=total / n)
    else:
        rows = replace(rows, checksums=dict(ChainMap(*checksums)), mean=total / n)
    gram, residual_mean = (found / n for found in rows.add(squares_and_sum))
    gram = gram - np.outer(residual_mean, residual_mean)
    # The residual mean is mostly the rounding error of the mean; it is not subtracted if it is negligible.
    residual_mean = np.where(np.abs(residual_mean) <= 1e-14 * np.sqrt(np.diag(gram)), 0.0, residual_mean)
    constant = smallest == largest
    warn_constant(np.sqrt(np.diag(gram)) <= rounding_floor(rows.mean + residual_mean, n), warn, depth + 1)
    return replace(rows, residual_mean=residual_mean, units=np.where(constant, 0.0, 1.0), gram=gram)


# Uncentred tables


def stored_factor(F: Any) -> FactorTable | None:
    """Return a streamed factor if F is a dask array; otherwise None."""
    return StoredFactor(as_rows(F, warn=False)) if is_chunked(F) else None


def table_array(X: Any) -> Array:
    """Return a table as an array of doubles; raise ResourceError if it does not fit in memory."""
    n, d = X.shape
    require_memory(8.0 * 2 * n * d, f"a table of {n} points and {d} features", "use two clusters or fewer points")
    if is_chunked(X):
        return uncentered(as_rows(X, warn=False).table).array()
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def raw_table(X: Any) -> Array:
    """Return any table as an array of doubles, as given; `Points` are centred."""
    if isinstance(X, Points):
        return X.array()
    return table_array(X) if is_chunked(X) or hasattr(X, "toarray") else as_matrix(X)


def table_times(X: Any, W: Array) -> Array:
    """Return X W, shape (n,) or (n, k), for a table that may be streamed."""
    if is_chunked(X):
        return uncentered(as_chunks(X)) @ W
    if isinstance(X, np.memmap):
        return np.concatenate([np.asarray(require_file(block), dtype=np.float64) @ W for block in row_blocks(X)])
    return np.asarray(X @ W)
