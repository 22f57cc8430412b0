"""From what users pass to points: checked, centred, with the weights they have."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.machine.threads import allowed_threads, one_thread
from diffrac_cvx.points.checks import (
    Array,
    ArrayT,
    PointWeights,
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
from diffrac_cvx.points.factors import Factor
from diffrac_cvx.points.label_factors import FactorTable, StoredFactor
from diffrac_cvx.points.linear_algebra import EPS, LARGE_SIZE, inverse_or_one, row_blocks, times, whitener_of_gram
from diffrac_cvx.points.points import Points, squares_and_sum
from diffrac_cvx.points.sparse import SparseColumns, as_sparse_columns, rows_of
from diffrac_cvx.points.streamed import StreamedRows, checksum_block, uncentered


class Sample(NamedTuple):
    """Points of positive weight, and all points."""

    X: Points  # (m, d), centred by their weighted mean, with their shares and constraints
    X_all: Points  # (n, d), those of weight 0 too
    weights: PointWeights | None  # of all points

    @property
    def n_all(self) -> int:
        """How many points there are with those of weight 0."""
        return len(self.X_all)

    def with_weight(self, values: ArrayT) -> ArrayT:
        """Return the values of the points of positive weight, from those of all."""
        return rows_with_weight(values, self.weights)


def read_points(
    X: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None = None,
    *,
    constraints: Constraints | None = None,
    are_many: Callable[[int, int], bool] | None = None,
    by_columns: bool = False,
    warn: bool = False,
    depth: int = 4,
) -> Sample:
    """Return the points of positive weight of a table, checked and centred.

    With weights or constraints it is an array; a sparse matrix or a dask array with constraints is made one.  Any other table is
    read by `as_points`: by rows where its n points of d features ``are_many``, else by columns, if so asked.
    """
    weights = weights_for(X, sample_weight)
    if weights is None and constraints is None:
        shape = getattr(X, "shape", ())
        many = are_many is not None and len(shape) == 2 and are_many(*shape)
        points = as_points(X, by_rows=many, by_columns=by_columns and not many, warn=warn, depth=depth + 1)
        return Sample(points, points, None)
    if constraints is not None and (is_chunked(X) or hasattr(X, "toarray")):
        X = table_array(X)
    centered = centered_data(X, weights, warn=warn, depth=depth + 1)
    return Sample(weighted_points(centered, weights, constraints), array_points(centered.data), weights)


def as_points(
    X: Any,
    *,
    by_rows: bool = False,
    by_columns: bool = False,
    warn: bool = True,
    depth: int = 4,
) -> Points:
    """Return data, checked and centred: an array as a copy, others as `StreamedRows` or, sparse, as `SparseColumns`.

    X is an (n, d) array, memory map, sparse matrix or dask array, or what this function returned.  With `by_rows` an
    array or a memory map is read by parts too, and not copied; with `by_columns` a sparse matrix is kept by columns.
    Constant columns are warned of at the user's line, ``depth`` calls up.
    """
    if isinstance(X, SparseColumns) and not by_columns:
        return rows_of(X, X.used_columns().astype(np.float64))
    is_unweighted = isinstance(X, DensePoints) and X.weights is None and X.chunklets is None
    if is_unweighted and by_rows:  # its array is read as a table of many rows
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


def gram_of_products(X: Points, G: Factor) -> Array:
    """Return (X G)'(X G)/n, shape (r, r), without X G as a whole where X is read by parts."""
    if X.is_streamed:
        return np.asarray(G.T @ X.second_moment() @ G)
    XG = X @ G
    return times(XG.T, XG) / len(X)


def rank_of(X: Points) -> int:
    """Return the numerical rank of X, centred."""
    if X.in_memory:
        table = X.array()
        n, d = X.shape
        if (
            min(n, d) > LARGE_SIZE // 2
        ):  # where there is no doubt, a Gram matrix says so: n points have n - 1 differences
            rows = table[1:] - table[0] if n <= d else table
            if whitener_of_gram(times(rows, rows.T) if n <= d else times(rows.T, rows)) is not None:
                return int(min(n - 1, d))
        return int(np.linalg.matrix_rank(table))
    values = np.linalg.eigvalsh(X.scaled(inverse_or_one(np.sqrt(X.mean_squares()))).second_moment())
    return int(np.sum(values > max(len(X), len(values)) * EPS * max(values[-1], 0.0)))


# Tables that are read by parts


class Summary(NamedTuple):
    """The smallest and largest entries of columns, their sums, and what the table was: marks of its blocks or chunk."""

    smallest: Array
    largest: Array
    total: Array
    checksums: Any
    nonfinite: list[
        tuple[int, int, float, int]
    ]  # row, column and value of a block's first entry not finite; and how many


def part_summary(part: StreamedRows) -> Summary:
    d = part.table.shape[1]
    found = Summary(np.full(d, np.inf), np.full(d, -np.inf), np.zeros(d), {}, [])
    for start, block in part.raw_blocks() if len(part) else ():
        np.minimum(found.smallest, block.min(axis=0), out=found.smallest)
        np.maximum(found.largest, block.max(axis=0), out=found.largest)
        np.add(found.total, block.sum(axis=0, dtype=np.float64), out=found.total)
        found.checksums[part.first + start] = checksum_block(block)
        if not (np.isfinite(found.smallest).all() and np.isfinite(found.largest).all()):
            nonfinite = np.argwhere(~np.isfinite(block))
            if len(nonfinite):
                row, column = nonfinite[0].tolist()
                found.nonfinite.append((start + row, column, float(block[row, column]), len(nonfinite)))
    return found


def chunk_summary(part: StreamedRows) -> Summary:
    return part_summary(part)._replace(checksums=checksum_chunk(part.table))


def as_rows(X: npt.ArrayLike, *, threads: int = 1, warn: bool = True, depth: int = 4) -> StreamedRows:
    """Return a table of many rows, checked and centred as by `as_data`; it is read twice.

    A numeric array is not copied, whatever its type; a sparse matrix is brought to rows, without duplicates.  What is
    read later is compared with what was read first.
    """
    if is_chunked(X):
        table: Any = as_chunks(X)
    elif hasattr(X, "toarray"):
        table = as_sparse_table(X)
    else:
        table = as_table(X)
        if isinstance(X, np.memmap) and table.dtype == X.dtype:
            table = X  # which knows its file
    n = table.shape[0]
    require_two_points(n)
    rows = uncentered(table, threads)
    summaries = rows.map_parts(chunk_summary if not rows.is_local else part_summary)
    smallest = np.min([found.smallest for found in summaries], axis=0)
    largest = np.max([found.largest for found in summaries], axis=0)
    total = np.sum([found.total for found in summaries], axis=0)
    nonfinite = [
        (first, *entry) for (first, _), found in zip(rows.bounds(), summaries, strict=True) for entry in found.nonfinite
    ]
    if nonfinite:
        first, row, column, value, _ = nonfinite[0]
        raise not_finite_error("X", value, (first + row, column), sum(count for *_, count in nonfinite))
    size = np.maximum(np.abs(smallest), np.abs(largest))
    require_moderate_scale(size)
    checksums = [found.checksums for found in summaries]
    if isinstance(table, Chunks):
        rows = replace(rows, table=replace(table, checksums=tuple(checksums)), mean=total / n)
    else:
        rows = replace(
            rows, checksums={start: known for part in checksums for start, known in part.items()}, mean=total / n
        )
    gram, residual_mean = (found / n for found in rows.add(StreamedRows.centered_blocks, squares_and_sum))
    gram = gram - np.outer(residual_mean, residual_mean)
    # What is left is mostly the rounding of the mean; where it cannot be seen, it is not subtracted again.
    residual_mean = np.where(np.abs(residual_mean) <= 1e-14 * np.sqrt(np.diag(gram)), 0.0, residual_mean)
    constant = smallest == largest
    warn_constant(np.sqrt(np.diag(gram)) <= rounding_floor(rows.mean + residual_mean, n), warn, depth + 1)
    return replace(rows, residual_mean=residual_mean, units=np.where(constant, 0.0, 1.0), gram=gram)


# Tables as they are


def stored_factor(F: Any) -> FactorTable | None:
    """Return a factor that is in the chunks of a dask array as what reads it by parts; None elsewhere."""
    return StoredFactor(as_rows(F, warn=False)) if is_chunked(F) else None


def table_array(X: Any) -> Array:
    """Return a table as an array of doubles, where it fits in memory."""
    n, d = X.shape
    require_memory(8.0 * 2 * n * d, f"a table of {n} points and {d} features", "take two clusters, or fewer points")
    if is_chunked(X):
        return uncentered(as_rows(X, warn=False).table).array()
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def table_times(X: Any, W: Array) -> Array:
    """Return X W of a table that may be read by parts, shape (n,) or (n, k)."""
    if is_chunked(X):
        return uncentered(as_chunks(X)) @ W
    if isinstance(X, np.memmap):
        return np.concatenate([np.asarray(require_file(block), dtype=np.float64) @ W for block in row_blocks(X)])
    return np.asarray(X @ W)
