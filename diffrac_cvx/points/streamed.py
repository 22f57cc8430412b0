"""Streamed tables with many rows: each block is centred and scaled when it is read, without a copy of the table.

The table is an array, a memory map, a sparse matrix or a table that supports only slicing.
"""

import mmap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, Self, cast

import numpy as np
import scipy.sparse

from diffrac_cvx.errors import DataError
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.machine.threads import in_threads, one_thread
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.dense import DenseRows
from diffrac_cvx.points.factors import Factor, FactorTable, dense, order_columns
from diffrac_cvx.points.floating_point import WhiteningErrorBounds, round_up, sum_error
from diffrac_cvx.points.linear_algebra import BLOCK_ROWS, unit_rows
from diffrac_cvx.points.rows import (
    ColumnRows,
    Indexer,
    Indices,
    LazyFactor,
    Mask,
    Rows,
    Values,
    WeightedSums,
    add_tuples,
    of_products,
    squared_norms,
)
from diffrac_cvx.points.sliced import SlicedTable, take_rows

MAX_BLOCK_ENTRIES = 2_000_000  # entries of a block, if the table has many columns


@dataclass(frozen=True, eq=False)
class StreamedRows(Rows):
    """Matrix [(table - mean - residual_mean) * units, offset] @ basis, (n, D), stored as table and transformation.

    Results over all rows are computed by parts, one per thread.  A pass over a table that has changed since the first
    pass raises DataError.
    """

    table: Any  # (n, d) array, memory map, CSR array or `SlicedTable`; not copied
    mean: Array  # (d,), of the columns
    residual_mean: Array  # (d,), mean of the columns after this subtraction
    units: Array  # (d,), factors of the centred columns; 0 for constant columns
    offset: float = 0.0  # value of a constant last column; 0 without such a column
    basis: Array | None = None  # (d or d + 1, D), basis of new coordinates; None for the identity
    gram: Array | None = None  # (d, d), second moments of the centred columns, if known
    threads: int = 1  # number of threads that read the rows concurrently
    first: int = 0  # index of the first row in the complete table, if this is a part of it
    checksums: list[Array] = field(default_factory=list)  # of the blocks of a part, or of the passes over the table
    checksum_error: Array | float = np.inf  # rounding errors of a checksum, see `checksum`

    is_streamed = True

    @property
    def shape(self) -> tuple[int, int]:
        columns = self.table.shape[1] + int(self.offset > 0.0) if self.basis is None else self.basis.shape[1]
        return int(self.table.shape[0]), columns

    @property
    def rows_read(self) -> int:  # type: ignore[override]
        return len(self) * len(self.checksums)

    @property
    def unread_bytes(self) -> float:
        n, D = self.shape
        return 8.0 * n * D

    def fits(self, copies: float, available: float) -> bool:
        """Return whether the rows are dense, and the given number of copies fits in the available bytes."""
        return not scipy.sparse.issparse(self.table) and copies * self.unread_bytes <= available

    # Parts

    def map_parts(self, function: Callable[..., Any], *aligned: Array) -> Iterator[Any]:
        """Yield ``function(part, *aligned)`` for all parts of the rows, in order, and at the end check the table.

        A part is `StreamedRows` of a table in memory.  Aligned arrays have one entry per row; the function receives
        those of the part.
        """
        total: Any = 0.0
        for found, part_sum in self.run_parts(function, aligned):
            total = total + part_sum
            yield found
        first = self.checksums[0] if self.checksums else total
        if self.checksums and not np.all(np.abs(total - first) <= self.checksum_error):
            raise DataError("X changed while it was being read. Do not modify X until the solver returns.")
        self.checksums.append(first)

    def run_parts(self, function: Callable[..., Any], aligned: tuple[Array, ...]) -> Iterable[tuple[Any, Array]]:
        """Return ``function(part, *aligned)`` and the checksum of each part, in order."""
        calls = [
            partial(run_part, function, self.part(i, j), *(values[i:j] for values in aligned)) for i, j in self.bounds()
        ]
        return in_threads(calls, self.threads) if len(calls) > 1 else [calls[0]()]

    def part(self, i: int, j: int) -> "StreamedRows":
        """Return the rows i to j."""
        is_sliced = isinstance(self.table, SlicedTable)
        return self.with_table(self.table.part(i, j) if is_sliced else self.table[i:j], i)

    def with_table(self, table: Any, first: int = 0) -> "StreamedRows":
        """Return the same transformation of another table, or of a part from row `first` on, read by one thread."""
        return StreamedRows(table, self.mean, self.residual_mean, self.units, self.offset, self.basis, first=first)

    def stack(self, function: Callable[..., Values], *aligned: Array) -> Values:
        found = self.map_parts(lambda part, *own: Rows.stack(part, function, *own), *aligned)
        return cast(Values, np.concatenate(list(found)))

    def add(self, function: Callable[..., Any], *aligned: Array) -> tuple[Any, ...]:
        return reduce(add_tuples, self.map_parts(lambda part, *own: Rows.add(part, function, *own), *aligned))

    def bounds(self) -> list[tuple[int, int]]:
        """Return the row ranges of the parts, about one per thread, each made of complete blocks."""
        size = -(-len(self) // (self.threads * self.block)) * self.block
        return [(i, min(i + size, len(self))) for i in range(0, len(self), size)]

    # Blocks of a part, whose table is in memory or a memory map

    def row_blocks(self) -> Iterator[Array]:
        """Yield the rows in blocks, and store the checksums of the table; a block may overwrite its predecessor."""
        factors, basis = self.factors, self.basis
        has_units = bool(np.all(factors == 1.0))
        n, d = self.table.shape
        buffer = np.ones((min(self.block, n), d + int(self.offset > 0.0)))
        again = bool(self.residual_mean.any())
        for start in range(0, len(self), self.block):
            check_deadline()
            table = self.table[start : start + self.block]
            rows = table.toarray() if hasattr(table, "toarray") else table
            self.checksums.append(checksum(rows, self.first + start))
            block = buffer[: len(rows)]
            features = block[:, :d]
            features[...] = rows  # nearly twice as fast as mixed-type subtraction if the table is in single precision
            features -= self.mean
            if again:
                features -= self.residual_mean
            scaled = block if has_units else block * factors
            yield scaled if basis is None else scaled @ basis
            release_pages(table)

    @property
    def block(self) -> int:
        """Number of rows of a block: its intermediate results fit in the cache, or are at least not large."""
        return int(min(BLOCK_ROWS, max(MAX_BLOCK_ENTRIES // max(self.table.shape[1], 1), 16)))

    @property
    def accumulation_length(self) -> int:
        return min(len(self), self.block) + len(self) // self.block + len(self.bounds()) + 1

    @property
    def n_gram_terms(self) -> int:
        return self.accumulation_length + 100 * self.shape[1]

    @property
    def transform(self) -> Array:
        """Map from the centred columns to the matrix, shape (d or d + 1, D)."""
        return np.diag(self.factors) if self.basis is None else self.factors[:, None] * self.basis

    @property
    def factors(self) -> Array:
        """Factors of the centred columns and of the column of ones, if there is an offset, shape (d or d + 1,)."""
        return np.append(self.units, self.offset) if self.offset > 0.0 else self.units

    def transform_gram(self, gram: Array) -> Array:
        """Return a Gram matrix of the columns, (D, D), from that of the centred columns."""
        scaled = gram * np.outer(self.factors, self.factors)
        return scaled if self.basis is None else np.asarray(self.basis.T @ scaled @ self.basis)

    # Results over all rows

    def take(self, indices: Indices) -> Array:
        """Return the rows at increasing indices; those of a memory map are read a few pages at a time."""
        if isinstance(self.table, SlicedTable):
            return self.with_table(take_rows(self.table, indices)).array()
        selected = []
        for start in range(0, len(indices), BLOCK_ROWS):
            some = indices[start : start + BLOCK_ROWS]
            selected.append(self.table[some])
            release_pages(self.table[some[0] : some[-1] + 1])
        stack = scipy.sparse.vstack if scipy.sparse.issparse(self.table) else np.concatenate
        return self.with_table(stack(selected)).array()

    def in_columns(self) -> ColumnRows:
        table = self.array()
        if self.basis is None and not self.offset:  # the subtracted means have rounding errors, so centre again
            table -= table.mean(axis=0)
        return DenseRows(table)

    def scaled(self, factors: Array) -> Self:
        if self.basis is not None:
            return replace(self, basis=self.basis * factors)
        units, offset = self.units * factors[: len(self.units)], self.offset
        return replace(self, units=units, offset=offset * float(factors[-1]) if offset > 0.0 else offset)

    def with_offset(self) -> Self:
        return replace(self, offset=1.0)

    def in_basis(self, basis: Array) -> Self:
        return replace(self, basis=basis if self.basis is None else self.basis @ basis)

    @property
    def centered(self) -> "StreamedRows":
        """Centred columns and the column of ones, before ``transform``: it is cheaper to transform sums."""
        offset = 1.0 if self.offset > 0.0 else 0.0
        return replace(self, basis=None, units=np.ones_like(self.units), offset=offset, gram=None)

    def stack_products(self, function: Callable[..., Values], U: Factor, *aligned: Array) -> Values:
        return self.centered.stack(partial(of_products, function, self.transform @ dense(U)), *aligned)

    def add_products(self, function: Callable[..., Any], U: Factor, *aligned: Array) -> tuple[Any, ...]:
        """Return the sums of the tuples ``function(block, *aligned)`` over the row blocks of X U."""
        return self.centered.add(partial(of_products, function, self.transform @ dense(U)), *aligned)

    def root_mean_and_mean(self, U: Factor) -> tuple[float, float, Array]:
        sqrt_sum, square_sum = self.add_products(
            lambda XU: (np.sqrt(squared_norms(XU)).sum(), squared_norms(XU).sum()), U
        )
        return float(sqrt_sum) / len(self), float(square_sum) / len(self), np.zeros(0)

    def weighted_gram(self, u: Array) -> Array:
        return self.transform_gram(Rows.weighted_gram(self.centered, u))

    def second_moment(self) -> Array:
        gram = self.gram
        if gram is None:
            (total,) = replace(self, offset=0.0).centered.add(lambda block: (block.T @ block,))
            gram = total / len(self)
        if self.offset > 0.0:
            gram = np.pad(gram, (0, 1))
            gram[-1, -1] = 1.0
        return self.transform_gram(gram)

    def gram_of_products(self, G: Factor) -> Array:
        return np.asarray(G.T @ self.second_moment() @ G)

    def columns(self, indexer: Indexer) -> Self:
        return self.in_basis(np.eye(self.shape[1])[:, indexer])

    def rmatvec(self, Y: Array) -> Array:
        return np.asarray(self.transform.T @ Rows.rmatvec(self.centered, Y))

    def sqrt_sum_and_gradient(self, U: Array) -> tuple[float, Array]:
        T = self.transform
        total, gradient = Rows.sqrt_sum_and_gradient(self.centered, T @ U)
        return total, np.asarray(T.T @ gradient)

    def weighted_sums(self, U: Array, floors: Array) -> WeightedSums:
        grams, *sums = cast(Any, Rows.weighted_sums(self.centered, self.transform @ U, floors))
        return cast(WeightedSums, (np.stack([self.transform_gram(gram) for gram in grams]), *sums))

    def mean_squares(self) -> Array:
        return np.maximum(np.diag(self.second_moment()), 0.0)

    def labels_factor(self, U: Factor) -> LazyFactor:
        return LabelsFactor(self, U)

    def whitening_error_bounds(
        self,
        W: Array,
        whitened: Rows,  # noqa: ARG002  # only sums over the rows are whitened
        diagonal: Array,
        outside: float = 0.0,
    ) -> WhiteningErrorBounds:
        """Return error bounds if A and the weighted Gram matrices are summed over the rows before they are whitened."""
        B = self.second_moment() + np.diag(diagonal)
        size, residual = float(np.trace(B) * np.sum(W**2)), float(np.linalg.norm(W.T @ B @ W - np.eye(len(W.T))))
        right_error = residual + sum_error(self.accumulation_length + 100 * len(W)) * size
        data_error = sum_error(self.accumulation_length + len(W) + 16) * size**0.5 + outside
        return WhiteningErrorBounds(round_up(data_error), round_up(right_error), round_up(size))

    def used_columns(self) -> Mask:
        return np.asarray(self.units > 0.0)


class LabelsFactor(FactorTable):
    """Rows of X U scaled to unit norm: the factor of the optimal labels' matrix for V = UU' (appendix C.2).

    X has the coordinates of U.  One thread reads it again after the solver has returned; X must not have changed.
    """

    def __init__(self, X: StreamedRows, U: Factor) -> None:
        self.X, self.U = X, order_columns(dense(U), rtol=1e-16)
        self.shape = (len(X), int(self.U.shape[1]))

    def __matmul__(self, W: Array) -> Array:
        with one_thread():
            return self.X.stack_products(lambda XU: unit_rows(XU) @ W, self.U)

    def rmatvec(self, y: Array) -> Array:
        with one_thread():
            (total,) = self.X.add_products(lambda XU, y: (unit_rows(XU).T @ y,), self.U, y)
        return np.asarray(total)

    def gram(self) -> Array:
        with one_thread():
            (total,) = self.X.add_products(lambda XU: (unit_rows(XU).T @ unit_rows(XU),), self.U)
        return np.asarray(total) / len(self)


# Functions of parts


def run_part(function: Callable[..., Any], part: StreamedRows, *aligned: Array) -> tuple[Any, Array]:
    """Return the result of a part, and its checksum."""
    found = function(part, *aligned)
    return found, np.asarray(sum(part.checksums))


def checksum(block: Array, first: int) -> Array:
    """Return weighted sums of the columns, (d,); the weights depend on the row numbers and nearly sum to zero.

    A change of the values or positions of entries almost surely changes these sums.
    """
    golden = (5.0**0.5 - 1.0) / 2.0  # multiples of this number are spread most evenly in [0, 1] modulo 1
    return np.asarray((golden * np.arange(first, first + len(block)) % 1.0 - 0.5) @ block)


def release_pages(block: Any) -> None:
    """Release the pages of a block of a memory map, which would count as memory of this process."""
    pages = getattr(block, "_mmap", None)
    if pages is None or not hasattr(mmap, "MADV_DONTNEED") or block.mode == "c" or not block.flags.c_contiguous:
        return
    start = block.ctypes.data - np.frombuffer(pages, dtype=np.uint8).ctypes.data
    first, last = -(-start // mmap.PAGESIZE), (start + block.nbytes) // mmap.PAGESIZE
    if last > first:
        pages.madvise(mmap.MADV_DONTNEED, first * mmap.PAGESIZE, (last - first) * mmap.PAGESIZE)
