"""Interface of the rows of a matrix in any storage format, one file each: sums, and bounds on their errors."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial, reduce
from typing import Any, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, dense, order_columns, products
from diffrac_cvx.points.floating_point import (
    RoundedFactor,
    WhiteningErrorBounds,
    block_sum_bounds,
    residual_bounds,
    row_norms,
    whitening_error_bounds,
)
from diffrac_cvx.points.linear_algebra import (
    BLOCK_ROWS,
    row_products,
    times,
    unit_rows,
)

Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.signedinteger[Any]]
Indexer = Indices | Mask | slice
LazyFactor = Array | Callable[[], Array]  # factor of the labels' matrix, or a function that computes it
WeightedSums = tuple[Array, Array, float, float]  # see `Rows.weighted_sums`
Of = TypeVar("Of")
Values = TypeVar("Values", bound=npt.NDArray[Any])


class Rows(ABC):
    """Rows of a matrix, (n, D), and sums over them, without weights and constraints."""

    in_memory = False  # whether `array` needs no computation
    is_streamed = False  # whether each sum reads the rows again; arrays of n numbers are then neither stored nor sent
    is_distributed = False  # whether the rows stay on other machines, and are not read into memory
    rows_read: int = 0  # rows read so far, if each sum reads the rows again

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n, D)."""

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def stored_bytes(self) -> float:
        """Size in bytes of the array that holds the rows, which solvers copy; 0 if they are stored otherwise."""
        n, D = self.shape
        return 8.0 * n * D * self.in_memory

    @property
    def unread_bytes(self) -> float:
        """Size in bytes of the array that `in_columns` reads into memory; 0 if the rows are there."""
        return 0.0

    @property
    def max_sample(self) -> int:
        """Largest number of rows that a sample may have."""
        return len(self) // 2

    def fits(self, copies: float, available: float) -> bool:  # noqa: ARG002  # used by streamed points
        """Return whether the given number of dense copies fits in the available bytes; always True in memory."""
        return True

    @abstractmethod
    def row_blocks(self) -> Iterator[Array]:
        """Yield the rows in blocks; by default, all other results are computed from these blocks."""

    # Transformations

    def array(self) -> Array:
        """Return the matrix as an array, not copied if it is stored as one; otherwise it has to fit in memory."""
        return self.stack(np.array)  # blocks may share their memory

    def by_rows(self, U: Factor | None = None) -> "Rows":  # noqa: ARG002  # used by sparse columns
        """Return the rows in the format with fast products with dense matrices, or with this factor."""
        return self

    @abstractmethod
    def in_columns(self) -> "ColumnRows":
        """Return the rows in a format that supports column selection."""

    @abstractmethod
    def scaled(self, factors: Array) -> Self:
        """Return the rows with columns multiplied by factors, shape (D,)."""

    @abstractmethod
    def with_offset(self) -> Self:
        """Return the rows with an additional last column of ones."""

    @abstractmethod
    def in_basis(self, basis: Array) -> "Rows":
        """Return the matrix multiplied by a basis, shape (D, r)."""

    # Sums over rows

    def stack(self, function: Callable[..., Values], *aligned: Array) -> Values:
        """Return ``function(block, *aligned)`` of the row blocks, stacked."""
        return cast(Values, np.concatenate(list(of_blocks(self.row_blocks(), function, aligned))))

    def add(self, function: Callable[..., Any], *aligned: Array) -> tuple[Any, ...]:
        """Return the sums of the tuples ``function(block, *aligned)`` over the row blocks."""
        return reduce(add_tuples, of_blocks(self.row_blocks(), function, aligned))

    def stack_products(self, function: Callable[..., Values], U: Factor, *aligned: Array) -> Values:
        """Return ``function(block, *aligned)`` of the row blocks of X U, stacked."""
        return self.stack(partial(of_products, function, U), *aligned)

    def __matmul__(self, U: Factor) -> Array:
        """Return X U, shape (n,) or (n, r)."""
        if U.ndim == 1:
            return self.stack_products(np.asarray, dense(U)[:, None])[:, 0]
        return self.stack_products(np.asarray, U)

    def rmatvec(self, Y: Array) -> Array:
        """Return X'Y/n for Y of shape (n,) or (n, k), shape (D,) or (D, k)."""
        (total,) = self.add(lambda block, Y: (block.T @ Y,), Y)
        return np.asarray(total / len(self))

    def quadratic_forms(self, U: Factor) -> Array:
        """Return q_i = x_i'UU'x_i, shape (n,), without forming an (n, n) matrix."""
        return self.stack_products(squared_norms, U)

    def root_mean_and_mean(self, U: Factor) -> tuple[float, float, Array]:
        """Return the means of sqrt(q_i) and of q_i, and q; streamed points return (0,) instead: q is not stored."""
        q = self.quadratic_forms(U)
        return float(np.mean(np.sqrt(q))), float(np.mean(q)), q

    def sqrt_sum_and_gradient(self, U: Array) -> tuple[float, Array]:
        """Return sum_i sqrt(q_i) and X' Diag(1/sqrt(q)) X U, in one pass."""

        def of_block(block: Array) -> tuple[float, Array]:
            XU = times(block, U)
            roots = np.sqrt(squared_norms(XU))
            # At x_i'U = 0 the norm is not differentiable in U; 0 is one of its subgradients.
            XU /= np.where(roots > 0.0, roots, 1.0)[:, None]
            return float(roots.sum()), times(block.T, XU)

        total, gradient = self.add(of_block)
        return total, gradient

    def weighted_gram(self, u: Array) -> Array:
        """Return M(u) = X' Diag(u) X / n, shape (D, D)."""
        (total,) = self.add(lambda block, u: (times(block.T, u[:, None] * block),), u)
        return np.asarray(total / len(self))

    def squared_products(self, scale: Array) -> Callable[[Array], Array]:
        """Return the map from w to sum_k scale_i scale_k (x_i'x_k / 2n)^2 w_k, shape (n,)."""

        def product(w: Array) -> Array:
            M = self.weighted_gram(scale * w)
            return scale * self.stack(lambda block: row_products(times(block, M), block)) / (4 * len(self))

        return product

    def second_moment(self) -> Array:
        """Return X'X/n, shape (D, D)."""
        return self.weighted_gram(np.ones(len(self)))

    def gram_of_products(self, G: Factor) -> Array:
        """Return (X G)'(X G)/n, shape (r, r), without forming X G if X'X is known."""
        XG = self @ G
        return times(XG.T, XG) / len(self)

    @abstractmethod
    def columns(self, indexer: Indexer) -> Self:
        """Return a subset of the columns."""

    @abstractmethod
    def mean_squares(self) -> Array:
        """Return the means of the squared entries of the columns, shape (D,)."""

    def zero_rows(self) -> Mask:
        """Return the mask of zero rows, shape (n,): they contribute only to the number of rows in means."""
        return self.stack(lambda block: ~block.any(axis=1))

    def used_columns(self) -> Mask:
        """Return the mask of columns with a nonzero entry, shape (D,)."""
        return np.asarray(np.any([block.any(axis=0) for block in self.row_blocks()], axis=0))

    def labels_factor(self, U: Factor) -> LazyFactor:
        """Return F, or a function that computes it: the unit rows of X U; Y = FF' is optimal for V = UU' (App. C.2)."""
        return unit_rows(self @ order_columns(U, rtol=1e-16))

    @property
    def accumulation_length(self) -> int:
        """Number of successive additions in a sum over all rows, which is computed in blocks."""
        return min(len(self), BLOCK_ROWS) + len(self) // BLOCK_ROWS

    @property
    def n_gram_terms(self) -> int:
        """Number of terms in an entry of a weighted Gram matrix; of its roundings if it is summed and then rotated."""
        return len(self)

    def absolute_sum_bound(self, squares: Array, weight: float) -> Array:  # noqa: ARG002  # used by sparse columns
        """Return bounds on sums of absolute terms, given the columns' sums of squares and the sum of the weights."""
        return squares  # no term is negative

    def weighted_sums(self, U: Array, floors: Array) -> WeightedSums:
        """Return the sums of one pass over all rows for a factor, with u = 1/sqrt(max(q, floor)) for several floors.

        These are X'Diag(u)X and the sum of 1/u for each floor, and the sums of sqrt(q) and of q.  Zero rows count as
        1/u = 0, because X'Diag(u)X does not depend on their u.
        """

        def of_block(block: Array) -> WeightedSums:
            q = squared_norms(block @ U)
            roots, small = np.sqrt(q), q < floors[-1]  # the few rows with small q are added for each floor
            safe = np.where(small, 1.0, roots)
            gram, small_rows = block.T @ (block * np.where(small, 0.0, 1.0 / safe)[:, None]), block[small]
            floored_roots = np.sqrt(np.maximum(q[small], floors[:, None]))  # (floors, small rows)
            grams = np.stack([gram + small_rows.T @ (small_rows / below[:, None]) for below in floored_roots])
            inverse_sums = np.sum(np.where(small, 0.0, roots)) + floored_roots @ small_rows.any(axis=1)
            return grams, inverse_sums, float(roots.sum()), float(q.sum())

        return cast(WeightedSums, self.add(of_block))

    def take(self, indices: Indices) -> Array:
        """Return the rows at increasing indices as an array."""
        return np.asarray(self.array()[indices])

    # Sums with error bounds, for the exactly centred data

    def sum_bounds(self, factor: RoundedFactor, *counts: Array) -> tuple[float, float]:
        """Return a lower bound on sum sqrt(q_i) and an upper one on sum q_i, apart from the errors of the additions.

        Both are sums of the terms times the counts of the rows, (n,), if these are given.
        """
        sqrt_sum, total = self.add(partial(block_sum_bounds, factor), *counts)
        return sqrt_sum, total

    def residual_bounds(self, target: Array, v: Array, units: Array, target_roundings: float = 4.0) -> Array:
        """Return upper bounds on (target_i - x_i'v)^2, shape (n,), from columns scaled by units."""

        n = len(self)

        def of_block(block: Array, target: Array) -> Array:  # it does not refer to `self`, so it can be sent
            bounds = row_norms(block, units), target, v / units, n, target_roundings
            return residual_bounds(block @ v, *bounds)

        return self.stack(of_block, target)

    def whitening_error_bounds(
        self, W: Array, whitened: "Rows", diagonal: Array, outside: float = 0.0
    ) -> WhiteningErrorBounds:
        """Return bounds on the errors of X W, and of W'(X'X/n + Diag(diagonal))W = I, given X's norm outside W."""
        return whitening_error_bounds(self.array(), W, whitened.array(), diagonal, outside)


class ColumnRows(Rows):
    """Rows in memory that support column selection and products of pairs of columns."""

    def in_columns(self) -> Self:
        return self

    def with_offset(self) -> Self:
        return self.hstack(np.ones((len(self), 1)))

    @abstractmethod
    def as_dense(self) -> "ColumnRows":
        """Return the rows stored as an array, not copied if they are."""

    @abstractmethod
    def hstack(self, F: Array) -> Self:
        """Return the rows with the columns of an array appended."""

    @abstractmethod
    def squares(self) -> "ColumnRows":
        """Return the squared entries."""

    @abstractmethod
    def weighted_row_sum(self, weights: Array) -> Array:
        """Return sum_i weights_i x_i, shape (D,)."""

    @abstractmethod
    def gram(self, weights: Array, left: Indexer = slice(None), right: Indexer = slice(None)) -> Array:
        """Return sum_i weights_i x_i x_i' between two sets of columns."""

    def in_single_precision(self, factors: Array) -> npt.NDArray[np.float32] | None:  # noqa: ARG002
        """Return the columns times factors for fast products in single precision; None if sparse ones are faster."""
        return None

    @abstractmethod
    def mean_abs(self) -> Array:
        """Return the column means of the absolute values of the entries, shape (D,)."""


# Functions of blocks of rows


def of_blocks(blocks: Iterable[Array], function: Callable[..., Of], aligned: tuple[Array, ...]) -> Iterator[Of]:
    """Yield the function of each block of rows and of the matching rows of aligned arrays."""
    start = 0
    for block in blocks:
        yield function(block, *(values[start : start + len(block)] for values in aligned))
        start += len(block)


def add_tuples(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a + b for a, b in zip(first, second, strict=True))


def of_products(function: Callable[..., Of], U: Factor, block: Array, *aligned: Array) -> Of:
    """Return a function of the product of a block with a factor."""
    return function(products(block, U), *aligned)


def squared_norms(block: Array) -> Array:
    return row_products(block, block)
