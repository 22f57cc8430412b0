"""Points stored as a dense array."""

from collections.abc import Iterator
from typing import Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.machine.work import count_work
from diffrac_cvx.points.checks import Array, PointWeights, rows_with_weight
from diffrac_cvx.points.constraints import UNCONSTRAINED, Chunklets, Constraints, chunklets_of
from diffrac_cvx.points.factors import Factor, products
from diffrac_cvx.points.floating_point import RoundedFactor, chunklet_sum_bounds, row_norms
from diffrac_cvx.points.linear_algebra import row_blocks, times
from diffrac_cvx.points.points import ColumnPoints, Indexer, Points


class DensePoints(ColumnPoints):
    """Rows of an (n, D) array, not copied, with optional normalised weights, (n,), for all means, and chunklets."""

    in_memory = True

    def __init__(
        self,
        table: Array,
        weights: Array | None = None,
        chunklets: Chunklets = UNCONSTRAINED,
        means: Array | None = None,
    ) -> None:
        self.table, self.weights, self.chunklets, self._means = table, weights, chunklets, means

    @property
    def shape(self) -> tuple[int, int]:
        n, D = self.table.shape
        return n, D

    def row_blocks(self) -> Iterator[Array]:
        return row_blocks(self.table)

    # Transformations

    def array(self) -> Array:
        return self.table

    def as_dense(self) -> Self:
        return self

    def scaled(self, factors: Array) -> Self:
        scaled = self.with_table(self.table * factors)
        scaled._means = None if self._means is None else self._means * factors
        return scaled

    def in_basis(self, basis: Array) -> Self:
        return self.with_table(times(self.table, basis))

    def columns(self, indexer: Indexer) -> Self:
        """Return a subset of the columns, as a view if the indexer is a slice."""
        return self.with_table(self.table[:, indexer])

    def hstack(self, F: Array) -> Self:
        return self.with_table(np.hstack([self.table, F]))

    def squares(self) -> Self:
        return self.with_table(np.square(self.table))

    def with_table(self, table: Array) -> Self:
        """Return other coordinates of the same points."""
        made = type(self)(table, self.weights, self.chunklets)
        made.row_counts, made.summed = self.row_counts, self.summed
        return made

    def weighted_rows(self) -> Points:
        if self.weights is None and not self.chunklets.max_size:
            return self
        return DensePoints(self.times_root_counts(self.table))

    def problem_rows(self) -> Points:
        if self.weights is None and not self.chunklets.max_size:
            return self
        rows = self.chunklets.signed_sums(self.times_counts(self.table))
        counts, ratio = self.chunklets.sums(self.times_counts(np.ones(len(self)))), len(rows) / len(self)
        made = DensePoints(rows * ratio if self.chunklets.max_size else rows)
        made.row_counts, made.summed = counts * ratio, self.chunklets
        return made

    # Sums over rows

    def __matmul__(self, U: Factor) -> Array:
        return np.asarray(self.table @ U) if U.ndim == 1 else products(self.table, U)

    def rmatvec(self, Y: Array) -> Array:
        count_work(2.0 * len(self) * self.table.shape[1] * (Y.size / len(self)))
        return np.asarray(self.table.T @ Y) / len(self)

    def mean_squares(self) -> Array:
        return self.mean_of(self.table**2)

    def in_single_precision(self, factors: Array) -> npt.NDArray[np.float32]:
        return (self.table * factors).astype(np.float32)

    def mean_abs(self) -> Array:
        return np.asarray(np.mean(np.abs(self.table), axis=0))

    def weighted_row_sum(self, weights: Array) -> Array:
        return np.asarray(weights @ self.table)

    def gram(self, weights: Array, left: Indexer = slice(None), right: Indexer = slice(None)) -> Array:
        found = np.asarray((self.table[:, left] * weights[:, None]).T @ self.table[:, right])
        count_work(2.0 * len(self) * found.size)
        return found

    # Sums with error bounds

    def sum_bounds(self, factor: RoundedFactor) -> tuple[float, float]:
        if not self.chunklets.max_size:
            return super().sum_bounds(factor)
        XG, norms = np.asarray(self.table @ factor.features), row_norms(self.table, factor.units)
        return chunklet_sum_bounds(XG, norms, factor, self.times_counts(np.ones(len(self))), self.chunklets)


array_points = DensePoints


def weighted_points(
    centered: tuple[Array, Array],
    weights: PointWeights | None = None,
    constraints: Constraints | Chunklets | None = None,
) -> ColumnPoints:
    """Return the points of positive weight of centred data, with their normalised weights and chunklets."""
    data, mean = centered
    chunklets = chunklets_of(constraints, len(data))
    chunklets = chunklets if weights is None else chunklets.subset(weights.mask)
    point_weights = None if weights is None else weights.normalized
    return DensePoints(rows_with_weight(data, weights), point_weights, chunklets, mean)
