"""A table of centred points with their weights, constraints on their labels, and excluded columns."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self, cast

import numpy as np
import scipy.sparse

from diffrac_cvx.points.checks import Array, PointWeights, rows_with_weight
from diffrac_cvx.points.constraints import UNCONSTRAINED, Chunklets, Constraints, chunklets_of
from diffrac_cvx.points.dense import DenseRows
from diffrac_cvx.points.factors import Factor
from diffrac_cvx.points.floating_point import RoundedFactor, chunklet_sum_bounds, round_up, row_norms
from diffrac_cvx.points.linear_algebra import (
    inverse_or_one,
    mean_of,
    power_of_two,
    renormalize_weights,
    scale_by_sqrt_weights,
)
from diffrac_cvx.points.rows import Indexer, Indices, LazyFactor, Mask, Rows


class Excluded(NamedTuple):
    """Columns that `exclude` set to zero, and the elimination of these columns from a matrix of directions."""

    columns: Indices  # (e,)
    elimination: Any  # (d, d) sparse matrix that maps a factor of V to the factor for points without these columns

    def eliminate(self, G: Factor) -> Factor:
        """Return a factor, (d, r) or (d + 1, r) with offset, with the same products with X, 0 at excluded columns."""
        F = self.elimination
        F = F if F.shape[0] == G.shape[0] else scipy.sparse.block_diag([F, 1.0], format="csr")
        return cast(Factor, F @ G)


class RowSums(NamedTuple):
    """Map from the points to the rows of `Table.problem_rows`: signed sums over chunklets, times counts."""

    chunklets: Chunklets = UNCONSTRAINED
    counts: Array | float = 1.0  # (n,), of the rows

    @property
    def max_size(self) -> int:
        """Largest number of points summed in a row; 0 if the rows are not sums."""
        return self.chunklets.max_size

    def largest_weight(self, u: Array) -> float:
        """Return the largest weight u of a row, times the count that scales the error of a point to its row."""
        top = float((u * self.counts).max(initial=0.0))
        return round_up(top, self.max_size + 8) if self.max_size else top

    def expand(self, F: LazyFactor) -> LazyFactor:
        """Return the factor of the labels of the points from that of the rows."""
        return self.chunklets.expand(np.asarray(F)) if self.max_size else F


NO_SUMS = RowSums()


@dataclass(frozen=True, eq=False)
class Table:
    """Centred points, (n, d), in any storage, with their weights, constraints and excluded columns.

    Sums over points are sums over `problem_rows` or `weighted_rows`, in which weights and constraints are included.
    """

    rows: Rows
    weights: Array | None = None  # (n,), normalised weights p_i in all means, with sum 1; None if all are equal
    chunklets: Chunklets = UNCONSTRAINED  # points whose labels are linked
    means: Array = field(default_factory=lambda: np.zeros(1))  # (d,), subtracted from the columns; (1,), 0 if unknown
    excluded: Excluded | None = None  # columns set to zero by `exclude`

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.shape

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_excluded(self) -> int:
        """Number of excluded columns; all results refer to the points without them."""
        return 0 if self.excluded is None else len(self.excluded.columns)

    def array(self) -> Array:
        """Return the points as an array, not copied if they are stored as one."""
        return self.rows.array()

    @property
    def has_known_labels(self) -> bool:
        return self.chunklets.has_known_labels

    @property
    def is_constrained(self) -> bool:
        return self.chunklets.max_size > 0

    @property
    def allows_one_cluster(self) -> bool:
        """Whether labels that are all equal satisfy the constraints."""
        return self.chunklets.allows_one_cluster

    @property
    def is_plain(self) -> bool:
        """Whether the points have neither weights nor constraints, so that they are the rows of the problem."""
        return self.weights is None and not self.is_constrained

    def assign_labels(self, values: Array) -> Array:
        """Return labels, (n,), that satisfy the constraints, by the (weighted) sums of values over linked points."""
        return self.chunklets.assign_labels(values, self.weights)

    def chunklet_means(self, values: Array) -> tuple[Array, Array | None]:
        """Return (weighted) means of the points' values over linked points, and the total weights of these points."""
        return self.chunklets.means(values, self.weights)

    # Transformations

    def with_array(self, values: Array) -> Self:
        """Return other values of the same points, with all columns."""
        return type(self)(DenseRows(values), self.weights, self.chunklets)

    def subset(self, mask: Mask) -> Self:
        """Return some of the points, with their weights and constraints."""
        weights = renormalize_weights(self.weights, mask)
        return type(self)(DenseRows(self.array()[mask]), weights, self.chunklets.subset(mask))

    def scaled(self, factors: Array) -> Self:
        """Return the points with columns multiplied by factors, shape (d,)."""
        return replace(self, rows=self.rows.scaled(factors), means=self.means * factors)

    def columns(self, indexer: Indexer) -> Self:
        """Return a subset of the columns."""
        return type(self)(self.rows.columns(indexer), self.weights, self.chunklets)

    def in_columns(self) -> Self:
        """Return the points in memory, in a format that supports column selection."""
        return replace(self, rows=self.rows.in_columns())

    def with_offset(self) -> Self:
        """Return the points with an additional last column of ones."""
        return type(self)(self.rows.with_offset(), self.weights, self.chunklets)

    def weighted_rows(self) -> Rows:
        """Return the points times the square roots of their counts, so that their mean squares are weighted means."""
        return self.rows if self.is_plain else DenseRows(self.times_root_counts(self.array()))

    def problem_rows(self) -> tuple[Rows, RowSums]:
        """Return the rows whose norms are averaged: points times counts, summed over chunklets; and the `RowSums`.

        A count is n p_i.
        """
        if self.is_plain:
            return self.rows, NO_SUMS
        rows = self.chunklets.signed_sums(self.times_counts(self.array()))
        counts, ratio = self.chunklets.sums(self.times_counts(np.ones(len(self)))), len(rows) / len(self)
        return DenseRows(rows * ratio if self.is_constrained else rows), RowSums(self.chunklets, counts * ratio)

    # Weights: n p_i is the count of a point

    @property
    def normalized_weights(self) -> Array:
        """Normalised weights p_i, shape (n,)."""
        return np.full(len(self), 1.0 / len(self)) if self.weights is None else self.weights

    def times_counts(self, values: Array) -> Array:
        """Return the values of the points, (n,) or (n, k), times their counts; not copied if all are 1."""
        if self.weights is None:
            return values
        counts = len(self) * self.weights
        return np.asarray(values * (counts if values.ndim == 1 else counts[:, None]))

    def times_root_counts(self, values: Array) -> Array:
        """Return the values of the points, (n,) or (n, k), times the roots of their counts; not copied if all are 1."""
        return scale_by_sqrt_weights(values, self.weights)

    def mean_of(self, values: Array) -> Array:
        """Return the (weighted) mean of the points' values over the first axis."""
        return mean_of(values, self.weights)

    # Sums over points

    def __matmul__(self, U: Factor) -> Array:
        """Return X U, shape (n,) or (n, r)."""
        return self.rows @ U

    def rmatvec(self, Y: Array) -> Array:
        """Return X'Y/n for Y of shape (n,) or (n, k), without weights, shape (d,) or (d, k)."""
        return self.rows.rmatvec(Y)

    def mean_squares(self) -> Array:
        """Return the (weighted) means of the squared entries of the columns, shape (d,)."""
        return self.rows.mean_squares() if self.weights is None else mean_of(self.array() ** 2, self.weights)

    def used_columns(self) -> Mask:
        """Return the mask of columns with a nonzero entry, shape (d,)."""
        return self.rows.used_columns()

    # Sums with error bounds, for the exactly centred data

    def column_scales(self) -> Array:
        """Return powers of two, shape (d,), that scale the columns to norm about one."""
        return power_of_two(inverse_or_one(np.sqrt(self.mean_squares())))

    def sum_bounds(self, factor: RoundedFactor) -> tuple[float, float]:
        """Return a lower bound on sum sqrt(q_i) over `problem_rows`, and an upper one on the weighted sum of q_i."""
        if self.is_constrained:
            table, counts = self.array(), self.times_counts(np.ones(len(self)))
            XG, norms = np.asarray(table @ factor.features), row_norms(table, factor.units)
            return chunklet_sum_bounds(XG, norms, factor, counts, self.chunklets)
        return self.rows.sum_bounds(factor, *(() if self.weights is None else (len(self) * self.weights,)))

    def residual_bound(self, target: Array, v: Array, target_roundings: float = 4.0) -> float:
        """Return an upper bound on the mean of (target_i - x_i'v)^2, apart from rounding errors of the additions."""
        bounds = self.rows.residual_bounds(target, v, self.column_scales(), target_roundings)
        return float(np.mean(self.times_counts(bounds)))


def array_table(values: Array, weights: Array | None = None, chunklets: Chunklets = UNCONSTRAINED) -> Table:
    """Return the table of an array of centred points."""
    return Table(DenseRows(values), weights, chunklets)


def centered_table(
    centered: tuple[Array, Array],
    weights: PointWeights | None = None,
    constraints: Constraints | Chunklets | None = None,
) -> Table:
    """Return the points of positive weight of centred data and their means, with weights and constraints."""
    data, mean = centered
    chunklets = chunklets_of(constraints, len(data))
    chunklets = chunklets if weights is None else chunklets.subset(weights.mask)
    point_weights = None if weights is None else weights.normalized
    return Table(DenseRows(rows_with_weight(data, weights)), point_weights, chunklets, mean)
