"""What a matrix of points is, however it is stored: its sums, and what rounding may change of them.

Nothing outside this folder asks how a table is stored.  A form of storage is one file with one class; what its methods
give is said here, and there only what is particular to it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.constraints import Chunklets
from diffrac_cvx.points.factors import Factor, order_columns, products
from diffrac_cvx.points.linear_algebra import (
    BLOCK_ROWS,
    inverse_or_one,
    mean_of,
    power_of_two,
    row_products,
    times,
    unit_rows,
)
from diffrac_cvx.points.proved_sums import RoundedDirection, RoundedFactor, block_sum_bounds, residual_bounds, row_norms

Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.signedinteger[Any]]
Indexer = Indices | Mask | slice
LazyFactor = Array | Callable[[], Array]  # a factor of the labels' matrix, or what makes it
Values = TypeVar("Values", bound=npt.NDArray[Any])


class Excluded(NamedTuple):
    """Columns that were set to zero, and how a matrix of directions does without them, see `exclude`."""

    columns: Indices  # (e,)
    elimination: Any  # (d, d) sparse matrix: the rows of a factor of V for the points without these columns

    def eliminate(self, G: Factor) -> Factor:
        """Return the factor with which the points have the same products, (d, r), or (d + 1, r) with the offset."""
        F = self.elimination
        F = F if F.shape[0] == G.shape[0] else scipy.sparse.block_diag([F, 1.0], format="csr")
        return cast(Factor, F @ G)


class Points(ABC):
    """Hold an (n, D) matrix X of points, its columns centred, and sum over its rows."""

    in_memory = False  # whether `array` costs nothing
    is_streamed = False  # whether each sum reads a table again, so that what has n numbers is neither kept nor sent
    is_local = True  # whether this process can hold it: not where the rows are in the chunks of a dask array
    weights: Array | None = None  # p_i of the points in all means, (n,), of sum 1; None where all are equal
    chunklets: Chunklets | None = None  # which points are linked, so that `counted` adds them up
    rows_read: int = 0  # until now, where each sum reads a table again

    excluded: Excluded | None = None  # which columns were set to zero, see `exclude`

    @property
    def n_excluded(self) -> int:
        """How many columns were set to zero, see `exclude`: what is stated is about the points without them."""
        return 0 if self.excluded is None else len(self.excluded.columns)

    @property
    def means(self) -> Array:
        """What was subtracted from the columns to centre them, in their units, shape (D,); 0 where it is not known."""
        return np.zeros(self.shape[1])

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n, D)."""

    def __len__(self) -> int:
        return self.shape[0]

    def fits(self, copies: float, available: float) -> bool:  # noqa: ARG002  # for what is read by parts
        """Whether so many copies of it as an array take no more than so many bytes, where it can be held at all."""
        return True

    @abstractmethod
    def row_blocks(self) -> Iterator[Array]:
        """Yield the rows, a block at a time; what is not said otherwise below is computed from them."""

    # Other forms of it

    @abstractmethod
    def array(self) -> Array:
        """Return the matrix as an array: where it is one it is not copied, elsewhere it has to fit in memory."""

    def by_rows(self) -> "Points":
        """Return it in the form in which products with a dense matrix are quick."""
        return self

    @abstractmethod
    def in_columns(self) -> "ColumnPoints":
        """Return it in a form of which columns can be chosen."""

    @abstractmethod
    def scaled(self, factors: Array) -> Self:
        """Return the columns times factors, shape (D,)."""

    def with_excluded(self, excluded: Excluded | None) -> Self:
        """Return it with the mark that these columns, which are zero, were excluded."""
        self.excluded = excluded
        return self

    @abstractmethod
    def with_offset(self) -> Self:
        """Return it with a last column of ones."""

    @abstractmethod
    def in_basis(self, basis: Array) -> "Points":
        """Return the matrix times a basis, shape (D, r)."""

    @property
    def counts(self) -> Array | None:
        """n times the shares of the points, shape (n,); None where all are equal."""
        return None if self.weights is None else len(self) * self.weights

    @property
    def row_counts(self) -> Array | None:
        """What the points, or the groups of linked ones, are multiplied by in `counted`; None where all are 1."""
        return self.counts

    def weighted_rows(self) -> "Points":
        """Return the points times roots of their counts, with equal shares: means of their squares are weighted."""
        return self

    def problem_rows(self) -> "Points":
        """Return the points times their counts, linked ones as a signed sum, with equal shares: for means of norms."""
        return self

    # Sums over rows, with equal weights

    def stack_products(self, function: Callable[..., Array], U: Factor, *aligned: Array) -> Array:
        """Return ``function(block, *aligned)`` of the blocks of rows of X U, one below the other."""
        return stack_blocks((products(block, U) for block in self.row_blocks()), len(self), function, *aligned)

    def add_products(self, function: Callable[..., Any], U: Factor, *aligned: Array) -> tuple[Any, ...]:
        """Return the sums of the tuples ``function(block, *aligned)`` of the blocks of rows of X U."""
        return add_blocks((products(block, U) for block in self.row_blocks()), function, *aligned)

    def __matmul__(self, U: Factor) -> Array:
        """Return X U, shape (n,) or (n, r)."""
        return stack_blocks(self.row_blocks(), len(self), lambda block: np.asarray(block @ U))

    def rmatvec(self, Y: Array) -> Array:
        """Return X'Y/n for Y with an entry or a row for each row, shape (D,) or (D, k)."""
        (total,) = add_blocks(self.row_blocks(), products_of_rows, Y)
        return np.asarray(total / len(self))

    def quadratic_forms(self, U: Factor) -> Array:
        """Return q_i = x_i'UU'x_i, shape (n,), without a matrix of n rows and columns."""
        return self.stack_products(squared_norms, U)

    def mean_sqrt_and_mean(self, U: Factor) -> tuple[float, float]:
        """Return the means of sqrt(q_i) and of q_i."""
        q = self.quadratic_forms(U)
        return float(np.mean(np.sqrt(q))), float(np.mean(q))

    def sqrt_sum_and_gradient(self, U: Array) -> tuple[float, Array]:
        """Return sum_i sqrt(q_i) and X' Diag(1/sqrt(q)) X U, in one pass."""
        total, gradient = add_blocks(self.row_blocks(), partial(sqrt_sum_and_gradient, U))
        return total, gradient

    def weighted_gram(self, u: Array) -> Array:
        """Return M(u) = X' Diag(u) X / n, shape (D, D)."""
        (total,) = add_blocks(self.row_blocks(), block_weighted_gram, u)
        return np.asarray(total / len(self))

    def second_moment(self) -> Array:
        """Return X'X/n, shape (D, D)."""
        return self.weighted_gram(np.ones(len(self)))

    def mean_squares(self) -> Array:
        """Return the means of the squared entries of the columns, weighted where points have shares, shape (D,)."""
        (total,) = add_blocks(self.row_blocks(), lambda block: (np.sum(block**2, axis=0),))
        return np.asarray(total / len(self))

    def zero_rows(self) -> Mask:
        """Return which rows are zero, shape (n,): they count in the means and nowhere else."""
        return stack_blocks(self.row_blocks(), len(self), lambda block: ~block.any(axis=1))

    def used_columns(self) -> Mask:
        """Return which columns have an entry that is not zero, shape (D,)."""
        return np.asarray(np.any([block.any(axis=0) for block in self.row_blocks()], axis=0))

    def any(self) -> bool:
        """Whether any entry is not zero."""
        return bool(self.used_columns().any())

    def labels_factor(self, U: Factor) -> LazyFactor:
        """Return the rows of X U at unit norm, with Y = FF' optimal for V = UU' (appendix C.2), or what makes them."""
        return unit_rows(self @ order_columns(U, rtol=1e-16))

    @property
    def accumulation_length(self) -> int:
        """How many terms the sums over all rows have in a row: they are made by blocks."""
        return min(len(self), BLOCK_ROWS) + len(self) // BLOCK_ROWS

    def mean_of(self, values: Array) -> Array:
        """Return the mean of values of the points over the first axis, weighted where points have shares."""
        return mean_of(values, self.weights)

    def weighted_sums(self, U: Array, floors: Array) -> "WeightedSums":
        """Return what a pass over all rows gives at a factor, for u = 1/sqrt(max(q, floor)) at several floors."""
        q, zero = self.quadratic_forms(U), self.zero_rows()
        grams, inverse_sums = [], []
        for floor in floors:
            check_deadline()
            roots = np.sqrt(np.maximum(q, floor))
            grams.append(self.weighted_gram(1.0 / roots) * len(self))
            inverse_sums.append(float(np.sum(roots[~zero])))
        return WeightedSums(np.stack(grams), np.array(inverse_sums), float(np.sum(np.sqrt(q))), float(np.sum(q)))

    def take(self, indices: Indices) -> Array:
        """Return the rows chosen, in increasing order, as an array."""
        return self.in_columns().rows(indices).array()

    # Sums with their error, for the exactly centred data

    def sum_bounds(self, factor: RoundedFactor) -> tuple[float, float]:
        """Return n times a lower bound of the mean of sqrt(q_i), and n times an upper bound of that of q_i.

        What `accumulation_length` additions round is not in it.
        """
        counts = () if self.counts is None else (self.counts,)
        sqrt_sum, total = add_blocks(self.row_blocks(), partial(block_sum_bounds, factor), *counts)
        return sqrt_sum, total

    def residual_bound(self, target: Array, direction: RoundedDirection) -> float:
        """Return an upper bound of the mean of (target_i - x_i'v)^2, but for what `accumulation_length` additions round."""
        norms = stack_blocks(self.row_blocks(), len(self), partial(row_norms, units=direction.units))
        return float(self.mean_of(residual_bounds(self @ direction.v, norms, target, direction)))

    def column_scales(self) -> Array:
        """Return powers of two, shape (D,), that bring the columns to norm about one."""
        return power_of_two(inverse_or_one(np.sqrt(self.mean_squares())))


class WeightedSums(NamedTuple):
    """Sums over rows, for u = 1/sqrt(max(q, floor)) at several floors: X'Diag(u)X and 1/u; and of sqrt(q), and q.

    Rows of zeros have 1/u = 0: X'Diag(u)X does not depend on their u.
    """

    grams: Array
    inverse_sums: Array
    sqrt_sum: float
    square_sum: float


class ColumnPoints(Points):
    """Points in memory, of which columns can be chosen, and which have products of pairs of columns."""

    @abstractmethod
    def columns(self, indexer: Indexer) -> Self:
        """Return some of the columns."""

    def dense_columns(self, indexer: Indexer) -> Array:
        return self.columns(indexer).array()

    @abstractmethod
    def rows(self, indexer: Indexer) -> Self:
        """Return some of the rows."""

    @abstractmethod
    def hstack(self, F: Array) -> "ColumnPoints":
        """Return it with the columns of an array to the right."""

    @abstractmethod
    def squares(self) -> "ColumnPoints":
        """Return the squared entries."""

    @abstractmethod
    def weighted_row_sum(self, weights: Array) -> Array:
        """Return sum_i weights_i x_i, shape (D,)."""

    @abstractmethod
    def gram(self, weights: Array, left: Indexer = slice(None), right: Indexer = slice(None)) -> Array:
        """Return sum_i weights_i x_i x_i' between two sets of columns."""

    @abstractmethod
    def pair_sums(self, weights: Array, j: Indices, k: Indices) -> Array:
        """Return sum_i weights_i x_ij x_ik for pairs of columns."""

    @abstractmethod
    def mean_abs(self) -> Array:
        """Return the means of the absolute values of the columns' entries, shape (D,)."""

    @abstractmethod
    def absolute_sum_bound(self, squares: Array, weight: float, indexer: Indexer = slice(None)) -> Array:
        """Return a bound on the sums of the absolute values of what is added in sum_i weights_i x_ij^2.

        Given are these sums of the columns chosen, and the sum of the weights.
        """


# Of rows that come a block at a time; the functions of a block are importable by the workers of a cluster


def zip_aligned(blocks: Iterable[Array], aligned: tuple[Array, ...]) -> Iterator[tuple[Array, ...]]:
    """Yield each block of rows with the entries, for its rows, of arrays that have one for each row."""
    start = 0
    for block in blocks:
        yield block, *(values[start : start + len(block)] for values in aligned)
        start += len(block)


def stack_blocks(blocks: Iterable[Array], n: int, function: Callable[..., Values], *aligned: Array) -> Values:
    """Return ``function(block, *aligned)`` of all blocks, of n rows, one below the other."""
    stacked, start = np.empty(0), 0
    for given in zip_aligned(blocks, aligned):
        found = function(*given)
        if start == 0:
            stacked = np.empty((n, *found.shape[1:]), dtype=found.dtype)
        stacked[start : start + len(found)] = found
        start += len(found)
    return cast(Values, stacked)


def add_blocks(blocks: Iterable[Array], function: Callable[..., Any], *aligned: Array) -> tuple[Any, ...]:
    """Return the sums of the tuples ``function(block, *aligned)`` of all blocks; there is at least one."""
    sums: list[Any] = []
    for given in zip_aligned(blocks, aligned):
        found = function(*given)
        sums = sums or [0.0] * len(found)
        for i, value in enumerate(found):
            sums[i] += value
    return tuple(sums)


def squared_norms(block: Array) -> Array:
    return row_products(block, block)


def are_zero(used: npt.NDArray[np.bool_], block: Array) -> npt.NDArray[np.bool_]:
    """Return which rows are zero in the columns in use."""
    return np.asarray(~block[:, used].any(axis=1))


def norms_and_squares(block: Array) -> tuple[float, float]:
    """Return the sums of the norms of the rows, and of their squares."""
    squares = squared_norms(block)
    return float(np.sqrt(squares).sum()), float(squares.sum())


def squares_and_sum(block: Array) -> tuple[Array, Array]:
    """Return the sums of x_i x_i' and of x_i."""
    return block.T @ block, block.sum(axis=0)


def block_weighted_gram(block: Array, u: Array) -> tuple[Array]:
    """Return the sum of u_i x_i x_i'."""
    return (times(block.T, u[:, None] * block),)


def products_of_rows(block: Array, Y: Array) -> tuple[Array]:
    """Return the sum of x_i y_i'."""
    return (block.T @ Y,)


def sqrt_sum_and_gradient(U: Array, block: Array) -> tuple[float, Array]:
    """Return sum_i sqrt(q_i) and X' Diag(1/sqrt(q)) X U."""
    XU = times(block, U)
    roots = np.sqrt(row_products(XU, XU))
    # At x_i'U = 0 the root has no gradient; 0 is in the limit of its subgradients along symmetric directions.
    XU /= np.where(roots > 0.0, roots, 1.0)[:, None]
    return float(roots.sum()), times(block.T, XU)
