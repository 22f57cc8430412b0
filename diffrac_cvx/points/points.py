"""Interface of a matrix of points in any storage format: sums over rows, and bounds on their rounding errors.

Code outside this folder does not depend on the storage format.  Each format is one file with one class.  The methods
are documented here; the classes document only their special properties.
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
from diffrac_cvx.points.constraints import UNCONSTRAINED, Chunklets
from diffrac_cvx.points.factors import Factor, dense, order_columns, products
from diffrac_cvx.points.floating_point import WhiteningErrorBounds, round_up, whitening_error_bounds
from diffrac_cvx.points.linear_algebra import (
    BLOCK_ROWS,
    inverse_or_one,
    mean_of,
    power_of_two,
    psd_factor,
    row_products,
    scale_by_sqrt_weights,
    times,
    unit_rows,
)
from diffrac_cvx.points.proved_sums import RoundedDirection, RoundedFactor, block_sum_bounds, residual_bounds, row_norms

Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.signedinteger[Any]]
Indexer = Indices | Mask | slice
LazyFactor = Array | Callable[[], Array]  # factor of the labels' matrix, or a function that computes it
WeightedSums = tuple[Array, Array, float, float]  # see `Points.weighted_sums`
Of = TypeVar("Of")
Values = TypeVar("Values", bound=npt.NDArray[Any])


class Excluded(NamedTuple):
    """Columns that `exclude` set to zero, and the elimination of these columns from a matrix of directions."""

    columns: Indices  # (e,)
    elimination: Any  # (d, d) sparse matrix that maps a factor of V to the factor for points without these columns

    def eliminate(self, G: Factor) -> Factor:
        """Return a factor, (d, r) or with offset (d + 1, r), of equal products with X, without the excluded columns."""
        F = self.elimination
        F = F if F.shape[0] == G.shape[0] else scipy.sparse.block_diag([F, 1.0], format="csr")
        return cast(Factor, F @ G)


class Points(ABC):
    """Matrix X of points, (n, D), with centred columns, and sums over its rows."""

    in_memory = False  # whether `array` needs no computation
    is_streamed = False  # whether each sum reads the table again; arrays of n numbers are then neither stored nor sent
    is_local = True  # whether this process can hold the rows; False for the chunks of a dask array
    weights: Array | None = None  # (n,), normalised weights p_i in all means, with sum 1; None if all are equal
    chunklets: Chunklets = UNCONSTRAINED  # of constrained points, which `problem_rows` sums
    row_counts: Array | float = 1.0  # (n,), counts of the rows of `problem_rows`; the number 1 for points
    summed: Chunklets = UNCONSTRAINED  # chunklets whose points are summed in the rows of `problem_rows`
    rows_read: int = 0  # rows read so far, if each sum reads the table again

    excluded: Excluded | None = None  # columns set to zero by `exclude`

    @property
    def n_excluded(self) -> int:
        """Number of columns set to zero by `exclude`; all results refer to the points without them."""
        return 0 if self.excluded is None else len(self.excluded.columns)

    @property
    def means(self) -> Array:
        """Column means that were subtracted, in the units of the columns, shape (D,); 0 if unknown."""
        return np.zeros(self.shape[1])

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n, D)."""

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def stored_bytes(self) -> float:
        """Size of the array in bytes; 0 if the points are not stored as one."""
        return 0.0

    @property
    def unread_bytes(self) -> float:
        """Size in bytes of the array that `in_columns` reads into memory; 0 if the points are there."""
        return 0.0

    def fits(self, copies: float, available: float) -> bool:  # noqa: ARG002  # used by streamed points
        """Return whether the given number of dense copies fits in the available bytes; always True in memory."""
        return True

    @abstractmethod
    def row_blocks(self) -> Iterator[Array]:
        """Yield the rows in blocks; by default, all other results are computed from these blocks."""

    # Transformations

    def array(self) -> Array:
        """Return the matrix as an array, not copied if it is stored as one; otherwise it has to fit in memory."""
        return self.stack(np.asarray)

    def stored_array(self, refusal: Exception) -> Array:
        """Return the matrix if it is stored as an array, else raise this exception."""
        raise refusal

    def by_rows(self, U: Factor | None = None) -> "Points":  # noqa: ARG002  # used by sparse columns
        """Return the points in the format with fast products with dense matrices, or with this factor."""
        return self

    @abstractmethod
    def in_columns(self) -> "ColumnPoints":
        """Return the points in a format that supports column selection."""

    @abstractmethod
    def scaled(self, factors: Array) -> Self:
        """Return the points with columns multiplied by factors, shape (D,)."""

    def with_excluded(self, excluded: Excluded | None) -> Self:
        """Return the points with a record of the excluded columns, which are already zero."""
        self.excluded = excluded
        return self

    @abstractmethod
    def with_offset(self) -> Self:
        """Return the points with an additional last column of ones."""

    @abstractmethod
    def in_basis(self, basis: Array) -> "Points":
        """Return the matrix multiplied by a basis, shape (D, r)."""

    # Weights and constraints: n p_i is the count of a point

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

    def weighted_rows(self) -> "Points":
        """Return the points times roots of their counts, with equal weights: means of squares are weighted means."""
        return self

    def problem_rows(self) -> "Points":
        """Return the rows for means of norms, with equal weights: points times counts, signed sums over chunklets.

        The following methods relate these rows to the points.
        """
        return self

    @property
    def max_summed(self) -> int:
        """Largest number of points that are summed in a row; 0 if the rows are not sums."""
        return self.summed.max_size

    def values_of_points(self, u: Array) -> Array:
        """Return weights u of the points from those of the rows."""
        return self.summed.repeat(u * self.row_counts)

    def values_of_rows(self, u: Array) -> Array:
        """Return weights u of the rows from those of the points."""
        return self.summed.firsts(u) / self.row_counts

    def squares_per_count(self, q: Array) -> Array:
        """Return squared values of the rows, (n,), divided by the squares of their counts."""
        return np.asarray(q / self.row_counts**2)

    def squares_times_counts(self, q: float) -> Array | float:
        """Return a squared value times the squares of the counts of the rows."""
        return q * self.row_counts**2

    def largest_weight(self, u: Array) -> float:
        """Return the largest weight u of a row, times the count that scales the error of a point to its row."""
        top = float((u * self.row_counts).max(initial=0.0))
        return round_up(top, self.max_summed + 8) if self.max_summed else top

    # Sums over rows, with equal weights; the workers of a cluster must be able to import the functions

    def stack(self, function: Callable[..., Values], *aligned: Array) -> Values:
        """Return ``function(block, *aligned)`` of the row blocks, stacked."""
        return stack_blocks(self.row_blocks(), len(self), function, *aligned)

    def add(self, function: Callable[..., Any], *aligned: Array) -> tuple[Any, ...]:
        """Return the sums of the tuples ``function(block, *aligned)`` over the row blocks."""
        return add_blocks(self.row_blocks(), function, *aligned)

    def stack_products(self, function: Callable[..., Values], U: Factor, *aligned: Array) -> Values:
        """Return ``function(block, *aligned)`` of the row blocks of X U, stacked."""
        return self.stack(partial(of_products, function, U), *aligned)

    def add_products(self, function: Callable[..., Any], U: Factor, *aligned: Array) -> tuple[Any, ...]:
        """Return the sums of the tuples ``function(block, *aligned)`` over the row blocks of X U."""
        return self.add(partial(of_products, function, U), *aligned)

    def __matmul__(self, U: Factor) -> Array:
        """Return X U, shape (n,) or (n, r)."""
        if U.ndim == 1:
            return self.stack_products(np.asarray, dense(U)[:, None])[:, 0]
        return self.stack_products(np.asarray, U)

    def rmatvec(self, Y: Array) -> Array:
        """Return X'Y/n for Y of shape (n,) or (n, k), shape (D,) or (D, k)."""
        (total,) = self.add(products_of_rows, Y)
        return np.asarray(total / len(self))

    def quadratic_forms(self, U: Factor) -> Array:
        """Return q_i = x_i'UU'x_i, shape (n,), without forming an (n, n) matrix."""
        return self.stack_products(squared_norms, U)

    def mean_sqrt_and_mean(self, U: Factor) -> tuple[float, float]:
        """Return the means of sqrt(q_i) and of q_i."""
        q = self.quadratic_forms(U)
        return float(np.mean(np.sqrt(q))), float(np.mean(q))

    def root_mean_and_mean(self, U: Factor) -> tuple[float, float, Array]:
        """Return the means of sqrt(q_i) and of q_i, and q; streamed points return (0,) instead: q is not stored."""
        q = self.quadratic_forms(U)
        return float(np.mean(np.sqrt(q))), float(np.mean(q)), q

    def sqrt_sum_and_gradient(self, U: Array) -> tuple[float, Array]:
        """Return sum_i sqrt(q_i) and X' Diag(1/sqrt(q)) X U, in one pass."""
        total, gradient = self.add(partial(sqrt_sum_and_gradient, U))
        return total, gradient

    def weighted_gram(self, u: Array) -> Array:
        """Return M(u) = X' Diag(u) X / n, shape (D, D)."""
        (total,) = self.add(block_weighted_gram, u)
        return np.asarray(total / len(self))

    def squared_products(self, scale: Array) -> Callable[[Array], Array]:
        """Return the map from w to the sums over k of scale_i scale_k (x_i'x_k / 2n)^2 w_k, shape (n,)."""
        return lambda w: scale * self.quadratic_forms(psd_factor(self.weighted_gram(scale * w))) / (4 * len(self))

    def second_moment(self) -> Array:
        """Return X'X/n, shape (D, D)."""
        return self.weighted_gram(np.ones(len(self)))

    def second_moment_times(self, v: Array) -> Array:
        """Return X'X v / n, shape (D,), without forming X'X if it is not known."""
        return self.rmatvec(self @ v)

    def gram_of_products(self, G: Factor) -> Array:
        """Return (X G)'(X G)/n, shape (r, r), without forming X G if X'X is known."""
        XG = self @ G
        return times(XG.T, XG) / len(self)

    def columns(self, indexer: Indexer) -> "Points":
        """Return a subset of the columns, by default in memory."""
        return self.in_columns().columns(indexer)

    def mean_squares(self) -> Array:
        """Return the (weighted) means of the squared entries of the columns, shape (D,)."""
        (total,) = self.add(lambda block: (np.sum(block**2, axis=0),))
        return np.asarray(total / len(self))

    def zero_rows(self) -> Mask:
        """Return the mask of zero rows, shape (n,): they contribute only to the number of rows in means."""
        return self.stack(lambda block: ~block.any(axis=1))

    def certain_zero_rows(self) -> Mask:
        """Return the mask of zero rows, without those of sums, which may be zero up to rounding only."""
        return np.zeros(len(self), dtype=bool) if self.max_summed else self.zero_rows()

    def used_columns(self) -> Mask:
        """Return the mask of columns with a nonzero entry, shape (D,)."""
        return np.asarray(np.any([block.any(axis=0) for block in self.row_blocks()], axis=0))

    def binary_columns(self, rtol: float) -> tuple[Indices, Mask]:  # noqa: ARG002  # stored arrays are searched
        """Return the m binary columns, and where they have the larger value, (n, m); none unless stored as an array.

        Values are equal if they differ by at most rtol times the range of the column.
        """
        return np.zeros(0, dtype=np.intp), np.zeros((len(self), 0), dtype=bool)

    def any(self) -> bool:
        """Return whether any entry is nonzero."""
        return bool(self.used_columns().any())

    def labels_factor(self, U: Factor) -> LazyFactor:
        """Return F, or a function that computes it: the unit rows of X U; Y = FF' is optimal for V = UU' (App. C.2)."""
        return self.summed.expand(unit_rows(self @ order_columns(U, rtol=1e-16)))

    @property
    def accumulation_length(self) -> int:
        """Number of successive additions in a sum over all rows, which is computed in blocks."""
        return min(len(self), BLOCK_ROWS) + len(self) // BLOCK_ROWS

    @property
    def n_gram_terms(self) -> int:
        """Number of terms in an entry of a weighted Gram matrix, or of their roundings if it is summed and rotated."""
        return len(self)

    def absolute_sum_bound(self, squares: Array, weight: float, indexer: Indexer = slice(None)) -> Array:  # noqa: ARG002
        """Return bounds on the sums of the absolute values of the terms added in sum_i weights_i x_ij^2.

        `squares` are these sums for the indexed columns, and `weight` is the sum of the weights.  By default they are
        these sums themselves: no term is negative.
        """
        return squares

    def mean_of(self, values: Array) -> Array:
        """Return the (weighted) mean of the points' values over the first axis."""
        return mean_of(values, self.weights)

    def weighted_sums(self, U: Array, floors: Array) -> WeightedSums:
        """Return the sums of one pass over all rows for a factor, with u = 1/sqrt(max(q, floor)) for several floors.

        These are X'Diag(u)X and the sum of 1/u for each floor, and the sums of sqrt(q) and of q.  Zero rows count as
        1/u = 0, because X'Diag(u)X does not depend on their u.
        """
        q, zero = self.quadratic_forms(U), self.zero_rows()
        grams, inverse_sums = [], []
        for floor in floors:
            check_deadline()
            roots = np.sqrt(np.maximum(q, floor))
            grams.append(self.weighted_gram(1.0 / roots) * len(self))
            inverse_sums.append(float(np.sum(roots[~zero])))
        return np.stack(grams), np.array(inverse_sums), float(np.sum(np.sqrt(q))), float(np.sum(q))

    def take(self, indices: Indices) -> Array:
        """Return the rows at increasing indices as an array."""
        return self.in_columns().rows(indices).array()

    # Sums with error bounds, for the exactly centred data

    def sum_bounds(self, factor: RoundedFactor) -> tuple[float, float]:
        """Return n times a lower bound on the mean of sqrt(q_i), and n times an upper bound on the mean of q_i.

        The rounding errors of `accumulation_length` additions are not included.
        """
        sqrt_sum, total = self.add(partial(block_sum_bounds, factor))
        return sqrt_sum, total

    def residual_bound(self, target: Array, direction: RoundedDirection) -> float:
        """Return an upper bound on the mean of (target_i - x_i'v)^2, without rounding errors of the additions."""
        norms = self.stack(partial(row_norms, units=direction.units))
        return float(self.mean_of(residual_bounds(self @ direction.v, norms, target, direction)))

    def whitening_error_bounds(
        self, W: Array, whitened: "Points", diagonal: Array, outside: float = 0.0
    ) -> WhiteningErrorBounds:
        """Return bounds on the errors of the whitened points X W, and of W'(X'X/n + Diag(diagonal))W as the identity.

        `outside` is the norm of the part of the points outside the span of W.
        """
        return whitening_error_bounds(self.array(), W, whitened.array(), diagonal, outside)

    def column_scales(self) -> Array:
        """Return powers of two, shape (D,), that scale the columns to norm about one."""
        return power_of_two(inverse_or_one(np.sqrt(self.mean_squares())))


class ColumnPoints(Points):
    """Points in memory that support column selection and products of pairs of columns."""

    @abstractmethod
    def columns(self, indexer: Indexer) -> Self:
        """Return a subset of the columns."""

    @abstractmethod
    def as_dense(self) -> "ColumnPoints":
        """Return the points stored as an array, not copied if they are."""

    @abstractmethod
    def rows(self, indexer: Indexer) -> Self:
        """Return a subset of the rows."""

    @abstractmethod
    def hstack(self, F: Array) -> "ColumnPoints":
        """Return the points with the columns of an array appended."""

    @abstractmethod
    def squares(self) -> "ColumnPoints":
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


# Functions of blocks of rows, which the workers of a cluster can import


def zip_aligned(blocks: Iterable[Array], aligned: tuple[Array, ...]) -> Iterator[tuple[Array, ...]]:
    """Yield each block of rows with the corresponding entries of arrays aligned with the rows."""
    start = 0
    for block in blocks:
        yield block, *(values[start : start + len(block)] for values in aligned)
        start += len(block)


def stack_blocks(blocks: Iterable[Array], n: int, function: Callable[..., Values], *aligned: Array) -> Values:
    """Return ``function(block, *aligned)`` of all blocks, of n rows in total, stacked."""
    stacked, start = np.empty(0), 0
    for given in zip_aligned(blocks, aligned):
        found = function(*given)
        if start == 0:
            stacked = np.empty((n, *found.shape[1:]), dtype=found.dtype)
        stacked[start : start + len(found)] = found
        start += len(found)
    return cast(Values, stacked)


def add_blocks(blocks: Iterable[Array], function: Callable[..., Any], *aligned: Array) -> tuple[Any, ...]:
    """Return the sums of the tuples ``function(block, *aligned)`` over all blocks, at least one."""
    sums: list[Any] = []
    for given in zip_aligned(blocks, aligned):
        found = function(*given)
        sums = sums or [0.0] * len(found)
        for i, value in enumerate(found):
            sums[i] += value
    return tuple(sums)


def of_products(function: Callable[..., Of], U: Factor, block: Array, *aligned: Array) -> Of:
    """Return a function of the product of a block with a factor."""
    return function(products(block, U), *aligned)


def squared_norms(block: Array) -> Array:
    return row_products(block, block)


def are_zero(used: npt.NDArray[np.bool_], block: Array) -> npt.NDArray[np.bool_]:
    """Return the mask of rows that are zero in the used columns."""
    return np.asarray(~block[:, used].any(axis=1))


def norms_and_squares(block: Array) -> tuple[float, float]:
    """Return the sum of the norms of the rows, and the sum of their squares."""
    squares = squared_norms(block)
    return float(np.sqrt(squares).sum()), float(squares.sum())


def squares_and_sum(block: Array) -> tuple[Array, Array]:
    """Return the sum of x_i x_i' and the sum of x_i."""
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
    # At x_i'U = 0 the norm is not differentiable in U; 0 is one of its subgradients.
    XU /= np.where(roots > 0.0, roots, 1.0)[:, None]
    return float(roots.sum()), times(block.T, XU)
