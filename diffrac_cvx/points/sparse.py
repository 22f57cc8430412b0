"""Sparse tables with many columns, centred and scaled without becoming dense: a sparse matrix plus a constant row."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse

from diffrac_cvx.points.checks import (
    Array,
    as_sparse_table,
    not_finite_error,
    require_moderate_scale,
    require_two_points,
    rounding_floor,
    warn_constant,
)
from diffrac_cvx.points.dense import DenseRows
from diffrac_cvx.points.factors import Factor, FactorTable, Sparse, is_sparse, order_columns
from diffrac_cvx.points.floating_point import RoundedFactor, residual_bounds, row_bounds, sum_error
from diffrac_cvx.points.linear_algebra import BLOCK_ROWS, inverse_or_one, row_products, unit_rows
from diffrac_cvx.points.rows import ColumnRows, Indexer, LazyFactor, Mask, Rows
from diffrac_cvx.points.streamed import StreamedRows
from diffrac_cvx.points.table import Table


class SparseColumns(ColumnRows):
    """Matrix S + 1 r', (n, d): a sparse matrix S, stored by columns, plus a row r added to each of its rows."""

    def __init__(self, S: Sparse, r: Array) -> None:
        self.S: Any = scipy.sparse.csc_array(S)  # SciPy's types for indexing are too narrow
        self.r = r

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.S.shape[0]), int(self.S.shape[1])

    @cached_property
    def sparse_rows(self) -> Sparse:
        return scipy.sparse.csr_array(self.S)

    @property
    def row_at_entries(self) -> Array:
        """Value of the row r at each stored entry."""
        return np.asarray(self.r[np.repeat(np.arange(self.shape[1]), np.diff(self.S.indptr))])

    # Transformations

    def array(self) -> Array:
        return np.asarray(self.S.toarray() + self.r)

    def by_rows(self, U: Factor | None = None) -> Rows:
        return self if is_sparse(U) else rows_of(self, np.ones(self.shape[1]))

    def as_dense(self) -> DenseRows:
        return DenseRows(self.array())

    def scaled(self, factors: Array) -> Self:
        return type(self)(self.S @ scipy.sparse.diags_array(factors), self.r * factors)

    def in_basis(self, basis: Array) -> Rows:
        return DenseRows(self @ basis)

    def columns(self, indexer: Indexer) -> Self:
        return type(self)(self.S[:, indexer], self.r[indexer])

    def hstack(self, F: Array) -> Self:
        """Return the points with the columns of an array appended; constant columns need no memory."""
        constant = np.ptp(F, axis=0) == 0.0 if F.shape[1] else np.zeros(0, dtype=bool)
        S = scipy.sparse.hstack([self.S, scipy.sparse.csc_array(np.where(constant, 0.0, F))], format="csc")
        return type(self)(S, np.append(self.r, np.where(constant, F[0], 0.0)))

    def squares(self) -> Self:
        squares, at = self.S.copy(), self.row_at_entries
        squares.data = (self.S.data + at) ** 2 - at**2
        return type(self)(squares, self.r**2)

    # Sums over rows

    def __matmul__(self, U: Factor) -> Array:
        if is_sparse(U):
            return np.asarray((self.S @ U).toarray() + U.T @ self.r)
        return np.asarray(self.S @ U + self.r @ U)

    def rmatvec(self, Y: Array) -> Array:
        return np.asarray(self.S.T @ Y + np.multiply.outer(self.r, Y.sum(axis=0))) / len(self)

    def quadratic_forms(self, U: Factor) -> Array:
        if not is_sparse(U):
            return np.concatenate([row_products(XU, XU) for XU in (block @ U for block in self.sparse_blocks())])
        return np.maximum(self.times_sparse(U).squares() @ np.ones(U.shape[1]), 0.0)

    def times_sparse(self, U: Factor, offset: Array | float = 0.0) -> "SparseColumns":
        """Return X U for a sparse factor, plus an offset, (r,), in each row."""
        return SparseColumns(self.S @ U, self.r @ U + offset)

    def row_blocks(self) -> Iterator[Array]:
        return (block.array() for block in self.sparse_blocks())

    def sparse_blocks(self) -> list[Self]:
        starts = range(0, len(self), BLOCK_ROWS)
        return [type(self)(self.sparse_rows[start : start + BLOCK_ROWS], self.r) for start in starts]

    def weighted_gram(self, u: Array) -> Array:
        return self.gram(u) / len(self)

    def mean_squares(self) -> Array:
        return self.mean_of_entries(np.square)

    def mean_abs(self) -> Array:
        return self.mean_of_entries(np.abs)

    def mean_of_entries(self, function: Callable[[Array], Array]) -> Array:
        """Return the means of a function of the entries, shape (d,)."""
        counts, d = np.diff(self.S.indptr), self.shape[1]
        sums = np.bincount(np.repeat(np.arange(d), counts), function(self.S.data + self.row_at_entries), d)
        return np.asarray((sums + (len(self) - counts) * function(self.r)) / len(self))

    def zero_rows(self) -> Mask:
        at, n = self.row_at_entries, len(self)
        stored, used = (np.bincount(self.S.indices, mask, n) for mask in (at != 0.0, self.S.data + at != 0.0))
        return np.asarray((stored == np.count_nonzero(self.r)) & (used == 0))  # other entries equal those of r

    def used_columns(self) -> Mask:
        return self.mean_of_entries(lambda x: (x != 0.0).astype(np.float64)) > 0.0

    def labels_factor(self, U: Factor) -> LazyFactor:
        XU = self.times_sparse(order_columns(scipy.sparse.csc_array(U), rtol=1e-16))
        return SparseLabelsFactor(XU.S, XU.r, np.sqrt(np.maximum(XU.squares() @ np.ones(len(XU.r)), 0.0)))

    def weighted_row_sum(self, weights: Array) -> Array:
        return np.asarray(weights @ self.S + weights.sum() * self.r)

    def gram(self, weights: Array, left: Indexer = slice(None), right: Indexer = slice(None)) -> Array:
        weighted = scipy.sparse.csc_array(scipy.sparse.diags_array(weights) @ self.S[:, left])
        sums = weights @ self.S[:, right]
        found = (weighted.T @ self.S[:, right]).toarray()
        found += np.outer(self.r[left], sums + weights.sum() * self.r[right])
        found += np.outer(weighted.sum(axis=0), self.r[right])
        return np.asarray(found)

    # Sums with error bounds

    def absolute_sum_bound(self, squares: Array, weight: float) -> Array:
        """Return the bound for the expanded square of S + 1 r': (|s| + |r|)^2 <= 2 (s + r)^2 + 8 r^2."""
        return np.asarray(2.0 * squares + 8.0 * weight * self.r**2)

    def row_norms(self, units: Array) -> Array:
        """Return upper bounds on |s| + |r|, the norm of each sparse row plus that of r, with columns times units."""
        squares = np.maximum(self.squares() @ units**2, 0.0)
        return np.asarray(np.sqrt(squares) + 3.0 * np.linalg.norm(self.r * units))  # |s| + |r| <= |s + r| + 2 |r|

    def sum_bounds(self, factor: RoundedFactor, *counts: Array) -> tuple[float, float]:
        assert not counts  # tables with weights are stored as arrays
        sqrt_sum = total = 0.0
        for block in self.sparse_blocks():
            if is_sparse(factor.features):
                lower, upper = block.quadratic_form_bounds(factor)
                roots = np.sqrt(lower)
            else:
                roots, upper = row_bounds(block @ factor.features, block.row_norms(factor.units), factor)
            sqrt_sum += float(np.sum(roots))
            total += float(np.sum(upper))
        return sqrt_sum, total

    def quadratic_form_bounds(self, factor: RoundedFactor) -> tuple[Array, Array]:
        """Return lower and upper bounds on q_i for a sparse factor, without a dense product.

        X G is s + r in each row: q_i is the sum of (s + r)^2 - r^2 over the stored entries, plus |r|^2.  Its rounding
        error is proportional to |s + r|^2 + 2 |r|^2, in addition to the errors of the products themselves.
        """
        r = factor.features.shape[1]
        XG = self.times_sparse(factor.features, factor.offset)
        q = np.maximum(XG.squares() @ np.ones(r), 0.0)
        row = float(XG.r @ XG.r)
        products = factor.errors(self.row_norms(factor.units))
        off = sum_error(2 * r + 16) * (3.0 * q + 4.0 * row) + 2.0 * np.sqrt(q) * products + products**2
        return np.maximum(q - off, 0.0), q + off

    def residual_bounds(self, target: Array, v: Array, units: Array, target_roundings: float = 4.0) -> Array:
        return residual_bounds(self @ v, self.row_norms(units), target, v / units, len(self), target_roundings)


class SparseLabelsFactor(FactorTable):
    """Unit-norm rows of S + 1 r', which are those of X U for sparse columns and a sparse factor."""

    def __init__(self, S: Sparse, r: Array, norms: Array) -> None:
        zero, n = norms == 0.0, len(norms)  # such rows become the first unit vector
        self.shape, self.r = (n, len(r)), r
        self.inverse = np.where(zero, 0.0, inverse_or_one(norms))
        first = (np.flatnonzero(zero), np.zeros(zero.sum(), dtype=int))
        units = scipy.sparse.csr_array((np.ones(zero.sum()), first), self.shape)
        self.S = scipy.sparse.csr_array(scipy.sparse.diags_array(self.inverse) @ S + units)

    def __call__(self) -> Array:
        return unit_rows(super().__call__())

    def __matmul__(self, W: Array) -> Array:
        return np.asarray(self.S @ W + np.multiply.outer(self.inverse, self.r @ W))

    def rmatvec(self, y: Array) -> Array:
        return np.asarray(self.S.T @ y + self.r * float(self.inverse @ y))

    def gram(self) -> Array:
        cross = np.outer(self.S.T @ self.inverse, self.r)
        found = (self.S.T @ self.S).toarray() + cross + cross.T
        return np.asarray(found + np.outer(self.r, self.r) * float(self.inverse @ self.inverse)) / len(self)


def as_sparse_columns(X: Any, *, warn: bool = True) -> Table:
    """Return the table of a sparse matrix, validated and centred as by `as_data`, without making it dense."""
    table = scipy.sparse.csc_array(as_sparse_table(X), dtype=np.float64)
    n, d = table.shape
    require_two_points(n)
    counts = np.diff(table.indptr)
    columns, bad = np.repeat(np.arange(d), counts), np.flatnonzero(~np.isfinite(table.data))
    if len(bad):
        raise not_finite_error("X", table.data[bad[0]], (table.indices[bad[0]], columns[bad[0]]), len(bad))
    low, high = (extreme(axis=0).toarray().ravel() for extreme in (table.min, table.max))
    require_moderate_scale(np.maximum(np.abs(low), np.abs(high)))
    constant = low == high
    mean = np.asarray(table.sum(axis=0)).ravel() / n
    residual_mean = (np.bincount(columns, table.data - mean[columns], d) - (n - counts) * mean) / n
    # A column without zeros may be far from zero, so its entries are centred directly.  The mean of any other column is
    # at most n**0.5 times its standard deviation, so that adding a row loses little accuracy.
    full = counts == n
    at = full[columns]
    table.data[at] = (table.data[at] - mean[columns[at]]) - residual_mean[columns[at]]
    mean += residual_mean
    table.data[at] -= np.bincount(columns[at], table.data[at], d)[columns[at]] / n
    r = np.where(full, 0.0, -mean)
    keep = scipy.sparse.diags_array((~constant).astype(np.float64))
    table = scipy.sparse.csc_array(table @ keep)
    table.eliminate_zeros()
    found = SparseColumns(table, np.where(constant, 0.0, r))
    warn_constant(np.sqrt(found.mean_squares()) <= rounding_floor(mean, n), warn)
    return Table(found, means=mean)


def rows_of(X: SparseColumns, units: Array) -> StreamedRows:
    """Return sparse columns as streamed rows; their errors are those of second moments summed in blocks."""
    rows = StreamedRows(X.sparse_rows, mean=-X.r, residual_mean=np.zeros(X.shape[1]), units=units)
    return replace(rows, gram=replace(rows, units=np.ones(X.shape[1])).second_moment())
