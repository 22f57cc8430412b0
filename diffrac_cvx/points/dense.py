"""Points stored as a dense array."""

from collections.abc import Iterator
from typing import Self

import numpy as np

from diffrac_cvx.machine.work import count_work
from diffrac_cvx.points.checks import Array, Centered, PointWeights, rows_with_weight
from diffrac_cvx.points.constraints import Chunklets, Constraints
from diffrac_cvx.points.factors import Factor, products
from diffrac_cvx.points.linear_algebra import row_blocks, times
from diffrac_cvx.points.points import ColumnPoints, Indexer, Indices, Points
from diffrac_cvx.points.proved_sums import RoundedFactor, chunklet_sum_bounds, row_norms


class DensePoints(ColumnPoints):
    """Rows of an (n, D) array, not copied, with optional normalised weights, (n,), for all means, and chunklets."""

    in_memory = True

    def __init__(
        self,
        table: Array,
        weights: Array | None = None,
        chunklets: Chunklets | None = None,
        means: Array | None = None,
    ) -> None:
        self.table, self.weights, self.chunklets, self._means = table, weights, chunklets, means

    @property
    def means(self) -> Array:
        return super().means if self._means is None else self._means

    @property
    def shape(self) -> tuple[int, int]:
        n, D = self.table.shape
        return n, D

    def row_blocks(self) -> Iterator[Array]:
        return row_blocks(self.table)

    # Transformations

    def array(self) -> Array:
        return self.table

    def in_columns(self) -> Self:
        return self

    def scaled(self, factors: Array) -> Self:
        means = None if self._means is None else self._means * factors
        return type(self)(self.table * factors, self.weights, self.chunklets, means)

    def with_offset(self) -> Self:
        return self.with_table(np.column_stack([self.table, np.ones(len(self))]))

    def in_basis(self, basis: Array) -> Self:
        return self.with_table(times(self.table, basis))

    def columns(self, indexer: Indexer) -> Self:
        """Return a subset of the columns, as a view if the indexer is a slice."""
        return self.with_table(self.table[:, indexer])

    def rows(self, indexer: Indexer) -> Self:
        """Return a subset of the rows, with equal weights."""
        return type(self)(self.table[indexer])

    def hstack(self, F: Array) -> Self:
        return self.with_table(np.hstack([self.table, F]))

    def squares(self) -> Self:
        return self.with_table(np.square(self.table))

    def with_table(self, table: Array) -> Self:
        """Return other coordinates of the same points."""
        return type(self)(table, self.weights, self.chunklets)

    @property
    def row_counts(self) -> Array | None:
        if self.chunklets is None:
            return self.counts
        counts = np.ones(len(self)) if self.counts is None else self.counts
        return self.chunklets.sums(counts) * (self.chunklets.n_chunklets / len(self))

    def weighted_rows(self) -> Points:
        if self.counts is None:
            return self if self.chunklets is None else DensePoints(self.table)
        return DensePoints(self.table * np.sqrt(self.counts)[:, None])

    def problem_rows(self) -> Points:
        rows = self.table if self.counts is None else self.table * self.counts[:, None]
        if self.chunklets is None:
            return self if self.counts is None else DensePoints(rows)
        return DensePoints(self.chunklets.signed_sums(rows) * (self.chunklets.n_chunklets / len(self)))

    # Sums over rows

    def __matmul__(self, U: Factor) -> Array:
        return np.asarray(self.table @ U) if U.ndim == 1 else products(self.table, U)

    def rmatvec(self, Y: Array) -> Array:
        count_work(2.0 * len(self) * self.table.shape[1] * (Y.size / len(self)))
        return np.asarray(self.table.T @ Y) / len(self)

    def mean_squares(self) -> Array:
        return self.mean_of(self.table**2)

    def mean_abs(self) -> Array:
        return np.asarray(np.mean(np.abs(self.table), axis=0))

    def weighted_row_sum(self, weights: Array) -> Array:
        return np.asarray(weights @ self.table)

    def gram(self, weights: Array, left: Indexer = slice(None), right: Indexer = slice(None)) -> Array:
        found = np.asarray((self.table[:, left] * weights[:, None]).T @ self.table[:, right])
        count_work(2.0 * len(self) * found.size)
        return found

    def pair_sums(self, weights: Array, j: Indices, k: Indices) -> Array:
        """Return sum_i weights_i x_ij x_ik for pairs of columns, a few million entries at a time."""
        step = max(1, 2**22 // len(self))
        count_work(30.0 * len(self) * len(j))
        parts = [
            np.einsum("ip,i,ip->p", self.table[:, j[at : at + step]], weights, self.table[:, k[at : at + step]])
            for at in range(0, len(j), step)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    # Sums with error bounds

    def sum_bounds(self, factor: RoundedFactor) -> tuple[float, float]:
        if self.chunklets is None:
            return super().sum_bounds(factor)
        counts = np.ones(len(self)) if self.counts is None else self.counts
        products_with_features = np.asarray(self.table @ factor.features)
        return chunklet_sum_bounds(
            products_with_features, row_norms(self.table, factor.units), factor, counts, self.chunklets
        )

    def absolute_sum_bound(self, squares: Array, weight: float, indexer: Indexer = slice(None)) -> Array:  # noqa: ARG002
        """Return the sums themselves: no term is negative."""
        return squares


def array_points(table: Array, weights: Array | None = None, chunklets: Chunklets | None = None) -> ColumnPoints:
    """Return the rows of an (n, D) array as points, not copied, with optional weights, (n,) of sum 1, and chunklets."""
    return DensePoints(table, weights, chunklets)


def weighted_points(
    centered: Centered, weights: PointWeights | None = None, constraints: Constraints | None = None
) -> ColumnPoints:
    """Return the points of positive weight of centred data, with their normalised weights and chunklets."""
    data, chunklets = centered.data, None
    if constraints is not None:
        chunklets = constraints.chunklets_of(len(data))
        chunklets = chunklets if weights is None else chunklets.subset(weights.mask)
    point_weights = None if weights is None else weights.normalized
    return DensePoints(rows_with_weight(data, weights), point_weights, chunklets, centered.mean)
