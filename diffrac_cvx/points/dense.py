"""Points in an array."""

from collections.abc import Iterator
from typing import Self

import numpy as np

from diffrac_cvx.points.checks import Array, Centred, PointWeights, points_with_weight
from diffrac_cvx.points.factors import Factor, products
from diffrac_cvx.points.linear_algebra import row_blocks, times
from diffrac_cvx.points.links import Groups, Links
from diffrac_cvx.points.points import Chosen, Columns, Indices, Points
from diffrac_cvx.points.proved_sums import RoundedFactor, bounds_of_groups, row_norms


class DensePoints(Columns):
    """The rows of an (n, D) array, as they are, not copied; they may have shares, (n,), in all means, and links."""

    in_memory = True

    def __init__(
        self,
        table: Array,
        shares: Array | None = None,
        groups: Groups | None = None,
        means: Array | None = None,
    ) -> None:
        self.table, self.shares, self.groups, self._means = table, shares, groups, means

    @property
    def means(self) -> Array:
        return super().means if self._means is None else self._means

    @property
    def shape(self) -> tuple[int, int]:
        n, D = self.table.shape
        return n, D

    def row_blocks(self) -> Iterator[Array]:
        return row_blocks(self.table)

    # Other forms of it

    def array(self) -> Array:
        return self.table

    def in_columns(self) -> Self:
        return self

    def scaled(self, factors: Array) -> Self:
        means = None if self._means is None else self._means * factors
        return type(self)(self.table * factors, self.shares, self.groups, means)

    def with_offset(self) -> Self:
        return self.like(np.column_stack([self.table, np.ones(len(self))]))

    def in_basis(self, basis: Array) -> Self:
        return self.like(times(self.table, basis))

    def columns(self, chosen: Chosen) -> Self:
        """Return some of the columns; a range of them is a view."""
        return self.like(self.table[:, chosen])

    def rows(self, chosen: Chosen) -> Self:
        """Return some of the rows, with equal shares."""
        return type(self)(self.table[chosen])

    def beside(self, F: Array) -> Self:
        return self.like(np.hstack([self.table, F]))

    def squares(self) -> Self:
        return self.like(np.square(self.table))

    def like(self, table: Array) -> Self:
        """Return other coordinates of the same points."""
        return type(self)(table, self.shares, self.groups)

    @property
    def row_counts(self) -> Array | None:
        if self.groups is None:
            return self.counts
        counts = np.ones(len(self)) if self.counts is None else self.counts
        return self.groups.sizes(counts) * (self.groups.n_groups / len(self))

    def weighed(self) -> Points:
        if self.counts is None:
            return self if self.groups is None else DensePoints(self.table)
        return DensePoints(self.table * np.sqrt(self.counts)[:, None])

    def counted(self) -> Points:
        rows = self.table if self.counts is None else self.table * self.counts[:, None]
        if self.groups is None:
            return self if self.counts is None else DensePoints(rows)
        return DensePoints(self.groups.add(rows) * (self.groups.n_groups / len(self)))

    # Sums over rows

    def __matmul__(self, U: Factor) -> Array:
        return np.asarray(self.table @ U) if U.ndim == 1 else products(self.table, U)

    def products_with(self, Y: Array) -> Array:
        return np.asarray(self.table.T @ Y) / len(self)

    def mean_squares(self) -> Array:
        return self.mean_of(self.table**2)

    def mean_sizes(self) -> Array:
        return np.asarray(np.mean(np.abs(self.table), axis=0))

    def row_sums(self, weights: Array) -> Array:
        return np.asarray(weights @ self.table)

    def gram(self, weights: Array, first: Chosen = slice(None), rest: Chosen = slice(None)) -> Array:
        return np.asarray((self.table[:, first] * weights[:, None]).T @ self.table[:, rest])

    def pair_sums(self, weights: Array, j: Indices, k: Indices) -> Array:
        """Return sum_i weights_i x_ij x_ik for pairs of columns, a few million entries at a time."""
        step = max(1, 2**22 // len(self))
        parts = [
            np.einsum("ip,i,ip->p", self.table[:, j[at : at + step]], weights, self.table[:, k[at : at + step]])
            for at in range(0, len(j), step)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    # Sums with their error

    def energy_sums(self, factor: RoundedFactor) -> tuple[float, float]:
        if self.groups is None:
            return super().energy_sums(factor)
        counts = np.ones(len(self)) if self.counts is None else self.counts
        products_with_features = np.asarray(self.table @ factor.features)
        return bounds_of_groups(
            products_with_features, row_norms(self.table, factor.units), factor, counts, self.groups
        )

    def terms(self, squares: Array, weight: float, chosen: Chosen = slice(None)) -> Array:  # noqa: ARG002
        """Return the sums themselves: all terms are positive."""
        return squares


def array_points(table: Array, shares: Array | None = None, groups: Groups | None = None) -> Columns:
    """Return the rows of an array, (n, D), as points, not copied; they may have shares, (n,) of sum 1, and links."""
    return DensePoints(table, shares, groups)


def weighted_points(centred: Centred, weights: PointWeights | None = None, links: Links | None = None) -> Columns:
    """Return the points of positive weight of centred data, with their shares and links."""
    data, groups = centred.data, None
    if links is not None:
        groups = links.groups_of(len(data))
        groups = groups if weights is None else groups.within(weights.kept)
    shares = None if weights is None else weights.shares
    return DensePoints(points_with_weight(data, weights), shares, groups, centred.mean)
