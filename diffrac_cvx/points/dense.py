"""Rows stored as a dense array."""

from collections.abc import Iterator
from typing import Self

import numpy as np
import numpy.typing as npt

from diffrac_cvx.machine.work import count_work
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, products
from diffrac_cvx.points.linear_algebra import row_blocks, times
from diffrac_cvx.points.rows import ColumnRows, Indexer


class DenseRows(ColumnRows):
    """Rows of an (n, D) array, which is not copied."""

    in_memory = True

    def __init__(self, table: Array) -> None:
        self.table = table

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
        return type(self)(self.table * factors)

    def in_basis(self, basis: Array) -> Self:
        return type(self)(times(self.table, basis))

    def columns(self, indexer: Indexer) -> Self:
        """Return a subset of the columns, as a view if the indexer is a slice."""
        return type(self)(self.table[:, indexer])

    def hstack(self, F: Array) -> Self:
        return type(self)(np.hstack([self.table, F]))

    def squares(self) -> Self:
        return type(self)(np.square(self.table))

    # Sums over rows

    def __matmul__(self, U: Factor) -> Array:
        return np.asarray(self.table @ U) if U.ndim == 1 else products(self.table, U)

    def rmatvec(self, Y: Array) -> Array:
        count_work(2.0 * len(self) * self.table.shape[1] * (Y.size / len(self)))
        return np.asarray(self.table.T @ Y) / len(self)

    def mean_squares(self) -> Array:
        return np.asarray(np.mean(self.table**2, axis=0))

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


array_rows = DenseRows
