"""Points in an array."""

from collections.abc import Iterator
from typing import Self

import numpy as np

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, products
from diffrac_cvx.points.linear_algebra import row_blocks, times
from diffrac_cvx.points.points import Chosen, Columns, Indices, Points


class DensePoints(Columns):
    """The rows of an (n, D) array, as they are, not copied; they may have shares, (n,), in all means."""

    in_memory = True

    def __init__(self, table: Array, shares: Array | None = None) -> None:
        self.table, self.shares = table, shares

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
        return self.like(self.table * factors)

    def with_offset(self) -> Self:
        return self.like(np.column_stack([self.table, np.ones(len(self))]))

    def in_basis(self, basis: Array) -> Self:
        return self.like(times(self.table, basis))

    def columns(self, chosen: Chosen) -> Self:
        """Return some of the columns; a range of them is a view."""
        return self.like(self.table[:, chosen])

    def dense_columns(self, chosen: Chosen) -> Array:
        return np.asarray(self.table[:, chosen])

    def rows(self, chosen: Chosen) -> Self:
        """Return some of the rows, with equal shares."""
        return type(self)(self.table[chosen])

    def beside(self, F: Array) -> Self:
        return self.like(np.hstack([self.table, F]))

    def squares(self) -> Self:
        return self.like(np.square(self.table))

    def like(self, table: Array) -> Self:
        """Return other coordinates of the same points."""
        return type(self)(table, self.shares)

    def weighed(self) -> Points:
        return self if self.counts is None else DensePoints(self.table * np.sqrt(self.counts)[:, None])

    def counted(self) -> Points:
        return self if self.counts is None else DensePoints(self.table * self.counts[:, None])

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

    def terms(self, squares: Array, weight: float, chosen: Chosen = slice(None)) -> Array:  # noqa: ARG002
        """Return the sums themselves: all terms are positive."""
        return squares


def array_points(table: Array, shares: Array | None = None) -> Columns:
    """Return the rows of an array, (n, D), as points, not copied; they may have shares, (n,) of sum 1."""
    return DensePoints(table, shares)
