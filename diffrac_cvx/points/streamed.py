"""Streamed tables with many rows: each block is centred and scaled when it is read, without a copy of the table."""

import mmap
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, Self, cast

import numpy as np
import scipy.sparse

from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.points.checks import Array, require_file
from diffrac_cvx.points.chunks import POLL_SECONDS, Chunks, add_tuples, changed_rows_error, concatenate_rows
from diffrac_cvx.points.dense import DensePoints
from diffrac_cvx.points.factors import Factor, dense
from diffrac_cvx.points.floating_point import WhiteningErrorBounds, round_up, sum_error
from diffrac_cvx.points.label_factors import LabelsFactor
from diffrac_cvx.points.linear_algebra import BLOCK_ROWS, row_products
from diffrac_cvx.points.points import (
    ColumnPoints,
    Excluded,
    Indexer,
    Indices,
    Mask,
    Points,
    Values,
    WeightedSums,
    add_blocks,
    are_zero,
    block_weighted_gram,
    norms_and_squares,
    of_products,
    products_of_rows,
    sqrt_sum_and_gradient,
    squares_and_sum,
    stack_blocks,
)
from diffrac_cvx.points.points import LazyFactor as LazyFactor
from diffrac_cvx.points.proved_sums import RoundedDirection, block_residual_bound

CHECKSUM_WORDS, CHECKSUM_PRIME = 512, 509  # words of eight bytes: summed in runs, and by residue classes
MAX_BLOCK_ENTRIES = 2_000_000  # entries of a block, if the table has many columns


@dataclass(frozen=True, eq=False)
class StreamedRows(Points):
    """Matrix [(table - mean - residual_mean) * units, offset] @ basis, (n, D), stored as table and transformation.

    `map_parts` and `sum_parts` compute results over all rows by parts: with threads for an array, a memory map or a
    sparse matrix; with dask for a dask array, on the workers of a cluster if there is one.  The table is the user's
    (n, d) array, memory map, sparse array (CSR), or `Chunks`; reading it after it has changed raises DataError.
    """

    table: Any
    mean: Array  # (d,), of the columns
    residual_mean: Array  # (d,), mean of the columns after this subtraction
    units: Array  # (d,), factors of the centred columns; 0 for constant columns
    offset: float = 0.0  # value of a constant last column; 0 without such a column
    basis: Array | None = None  # (d or d + 1, D), basis of new coordinates; None for the identity
    gram: Array | None = None  # (d, d), second moments of the centred columns, if known
    threads: int = 1  # number of threads that read the rows concurrently
    reads: list[int] = field(default_factory=list)  # numbers of rows that were read, by all threads
    # Checksums of blocks in the first pass, by their first rows; empty before it, and for `Chunks` (with their own).
    checksums: dict[int, int] = field(default_factory=dict)
    first: int = 0  # index of the first row in the complete table, of which this may be a part
    excluded: Excluded | None = None

    is_streamed = True

    @property
    def shape(self) -> tuple[int, int]:
        columns = self.table.shape[1] + int(self.offset > 0.0) if self.basis is None else self.basis.shape[1]
        return int(self.table.shape[0]), columns

    @property
    def is_local(self) -> bool:  # type: ignore[override]
        return not isinstance(self.table, Chunks)

    @property
    def means(self) -> Array:
        units = np.where(self.units == 0.0, 1.0, self.units)
        return (self.mean + self.residual_mean) * units if self.basis is None and not self.offset else super().means

    @property
    def rows_read(self) -> int:  # type: ignore[override]
        return sum(self.reads)

    @property
    def unread_bytes(self) -> float:
        n, D = self.shape
        return 8.0 * n * D

    def fits(self, copies: float, available: float) -> bool:
        """Return whether the rows are local and dense, and the given number of copies fits in the available bytes."""
        n, D = self.shape
        return self.is_local and not scipy.sparse.issparse(self.table) and 8.0 * copies * n * D <= available

    # Parts

    def map_parts(self, function: Callable[..., Any], *aligned: Array) -> list[Any]:
        """Return ``function(part, *aligned)`` for all parts of the rows, in order.

        The workers of a cluster must be able to import the function; a part is `StreamedRows` of a table in memory.
        Aligned arrays have one entry per row; the function receives those of the part.
        """
        slices = self.split_aligned(aligned)
        if isinstance(self.table, Chunks):
            found = self.table.map_parts(run_part, (function, self.without_table), slices)
            self.reads.append(len(self))
            return found
        parts = self.parts()
        if len(parts) == 1:
            return [function(self, *aligned)]
        with ThreadPoolExecutor(len(parts)) as pool:
            tasks = [  # each with the caller's deadline
                pool.submit(copy_context().run, function, part, *own) for part, own in zip(parts, slices, strict=True)
            ]
            while wait(tasks, timeout=POLL_SECONDS).not_done:
                check_deadline()
            return [task.result() for task in tasks]

    def sum_parts(self, function: Callable[..., Any], *aligned: Array) -> Any:
        """Return the sum of the tuples of numbers or arrays that `map_parts` returns, computed where the rows are."""
        if isinstance(self.table, Chunks):
            found = self.table.sum_parts(run_part, (function, self.without_table), self.split_aligned(aligned))
            self.reads.append(len(self))
            return found
        return reduce(add_tuples, self.map_parts(function, *aligned))

    def stack(self, function: Callable[..., Values], *aligned: Array) -> Values:
        return cast(Values, concatenate_rows(self.map_parts(partial(stack_part, function), *aligned)))

    def add(self, function: Callable[..., Any], *aligned: Array) -> tuple[Any, ...]:
        return tuple(self.sum_parts(partial(add_part, function), *aligned))

    @property
    def without_table(self) -> "StreamedRows":
        """Transformation that a worker needs in addition to its rows."""
        return replace(self, table=None, gram=None, threads=1, reads=[])  # the caller counts the rows

    def bounds(self) -> list[tuple[int, int]]:
        """Return the row ranges of the parts: the chunks, or about one part of complete blocks per thread.

        The blocks are therefore the same for any number of threads.
        """
        if isinstance(self.table, Chunks):
            return self.table.bounds
        size = -(-len(self) // (self.threads * self.block)) * self.block
        return [(i, min(i + size, len(self))) for i in range(0, len(self), size)]

    def split_aligned(self, aligned: tuple[Array, ...]) -> list[tuple[Array, ...]]:
        """Return the entries of aligned arrays for each part."""
        return [tuple(values[i:j] for values in aligned) for i, j in self.bounds()]

    def parts(self) -> list["StreamedRows"]:
        """Return the parts, about one per thread."""
        if len(self.bounds()) == 1:
            return [self]
        return [replace(self, table=self.table[i:j], threads=1, first=self.first + i) for i, j in self.bounds()]

    # Blocks of a part, whose table is in memory or a memory map

    def raw_blocks(self) -> Iterator[tuple[int, Any]]:
        """Yield the first row and an unmodified copy of each block of the table; the next block overwrites it.

        The checksum of each copy is compared with that of the first pass, so that all results refer to the same data.
        """
        n, d = self.table.shape
        size = self.block
        buffer = None if hasattr(self.table, "toarray") else np.empty((min(size, n), d), dtype=self.table.dtype)
        for start in range(0, max(n, 1), size):  # a chunk without rows is one block
            require_file(self.table)
            given = self.table[start : start + size]
            if buffer is None:
                block = given.toarray()
            else:
                block = buffer[: len(given)]
                np.copyto(block, given)
            expected = self.checksums.get(self.first + start)
            if expected is not None and checksum_block(block) != expected:
                raise changed_rows_error(self.first + start, self.first + start + len(block))
            self.reads.append(len(block))
            check_deadline()
            yield start, block
            release_pages(self.table, start, start + len(block))

    def row_blocks(self) -> Iterator[Array]:
        """Yield the rows in blocks; the next block may overwrite the last."""
        factors, basis = self.factors, self.basis
        has_units = bool(np.all(factors == 1.0))
        n, d = self.table.shape
        buffer = np.ones((min(self.block, n), d + int(self.offset > 0.0)))
        again = bool(self.residual_mean.any())
        for _, given in self.raw_blocks():
            block = buffer[: len(given)]
            features = block[:, :d]
            features[...] = given  # for single precision nearly twice as fast as a subtraction with mixed types
            features -= self.mean
            if again:
                features -= self.residual_mean
            scaled = block if has_units else block * factors
            yield scaled if basis is None else scaled @ basis

    @property
    def block(self) -> int:
        """Number of rows of a block, such that its intermediate results stay in the cache or are at least not large."""
        return int(min(BLOCK_ROWS, max(MAX_BLOCK_ENTRIES // max(self.table.shape[1], 1), 16)))

    @property
    def accumulation_length(self) -> int:
        """Number of successive additions in a sum over all rows, which is computed by blocks and by parts."""
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
        if isinstance(self.table, Chunks):
            picked = self.table.take(indices)
            self.reads.append(len(self))
        else:
            picked = pick_rows(self.table, indices)
        return replace(self, table=picked, reads=[], checksums={}, threads=1).array()

    def in_columns(self) -> ColumnPoints:
        table = self.array()
        if self.basis is None and not self.offset:  # the subtracted means are rounded relative to their size
            table -= table.mean(axis=0)
        made = DensePoints(table, means=self.means)
        made.excluded = self.excluded
        return made

    def scaled(self, factors: Array) -> Self:
        """Return the points with columns multiplied by factors, without reading them."""
        if self.basis is not None:
            return replace(self, basis=self.basis * factors)
        units, offset = self.units * factors[: len(self.units)], self.offset
        return replace(self, units=units, offset=offset * float(factors[-1]) if offset > 0.0 else offset)

    def with_excluded(self, excluded: Excluded | None) -> Self:
        return replace(self, excluded=excluded)

    def with_offset(self) -> Self:
        return replace(self, offset=1.0)

    def in_basis(self, basis: Array) -> Self:
        return replace(self, basis=basis if self.basis is None else self.basis @ basis)

    @property
    def centered(self) -> "StreamedRows":
        """Centred columns and the column of ones: the matrix is their product with ``transform``.

        Factors and sums are transformed instead of the rows, which is cheaper.
        """
        offset = 1.0 if self.offset > 0.0 else 0.0
        return replace(self, basis=None, units=np.ones_like(self.units), offset=offset, gram=None)

    def stack_products(self, function: Callable[..., Values], U: Factor, *aligned: Array) -> Values:
        return self.centered.stack(partial(of_products, function, self.transform @ dense(U)), *aligned)

    def add_products(self, function: Callable[..., Any], U: Factor, *aligned: Array) -> tuple[Any, ...]:
        return self.centered.add(partial(of_products, function, self.transform @ dense(U)), *aligned)

    def mean_sqrt_and_mean(self, U: Factor) -> tuple[float, float]:
        """Return the means of sqrt(q_i) and of q_i, q_i = x_i'UU'x_i, with communication independent of n."""
        sqrt_sum, square_sum = self.add_products(norms_and_squares, U)
        return float(sqrt_sum) / len(self), float(square_sum) / len(self)

    def root_mean_and_mean(self, U: Factor) -> tuple[float, float, Array]:
        return *self.mean_sqrt_and_mean(U), np.zeros(0)

    def weighted_gram(self, u: Array) -> Array:
        (total,) = self.centered.add(block_weighted_gram, u)
        return self.transform_gram(total) / len(self)

    def second_moment(self) -> Array:
        gram = self.gram
        if gram is None:
            total, _ = replace(self, offset=0.0).centered.add(squares_and_sum)
            gram = total / len(self)
        if self.offset > 0.0:
            gram = np.pad(gram, (0, 1))
            gram[-1, -1] = 1.0
        return self.transform_gram(gram)

    def second_moment_times(self, v: Array) -> Array:
        return self.second_moment() @ v

    def gram_of_products(self, G: Factor) -> Array:
        return np.asarray(G.T @ self.second_moment() @ G)

    def columns(self, indexer: Indexer) -> Self:
        """Return a subset of the columns, as new coordinates: the table is not copied."""
        return self.in_basis(np.eye(self.shape[1])[:, indexer]).with_excluded(None)

    def rmatvec(self, Y: Array) -> Array:
        (total,) = self.centered.add(products_of_rows, Y)
        return np.asarray(self.transform.T @ total) / len(self)

    def sqrt_sum_and_gradient(self, U: Array) -> tuple[float, Array]:
        T = self.transform
        total, gradient = self.centered.add(partial(sqrt_sum_and_gradient, T @ U))
        return total, np.asarray(T.T @ gradient)

    def weighted_sums(self, U: Array, floors: Array) -> WeightedSums:
        """Return the sums of one pass over all rows.

        Each part of the rows is read by its own thread with single-threaded products, for a speed-up of nearly the
        number of threads.  Multi-threaded products gain little on blocks that fit in the cache, and lose much if other
        processes occupy a core.
        """
        of_part = partial(part_weighted_sums, TU=self.transform @ U, floors=floors)
        grams, inverse_sums, sqrt_sum, square_sum = self.centered.sum_parts(of_part)
        return np.stack([self.transform_gram(gram) for gram in grams]), inverse_sums, sqrt_sum, square_sum

    def mean_squares(self) -> Array:
        return np.maximum(np.diag(self.second_moment()), 0.0)

    def labels_factor(self, U: Factor) -> LazyFactor:
        return LabelsFactor(self, U)

    def residual_bound(self, target: Array, direction: RoundedDirection) -> float:
        (total,) = self.add(partial(block_residual_bound, direction), target)
        return float(total) / len(self)

    def whitening_error_bounds(
        self,
        W: Array,
        whitened: Points,  # noqa: ARG002  # only sums over the rows are whitened
        diagonal: Array,
        outside: float = 0.0,
    ) -> WhiteningErrorBounds:
        """Return error bounds if A and the weighted Gram matrices are summed over the rows before they are whitened."""
        B = self.second_moment() + np.diag(diagonal)
        size, residual = float(np.trace(B) * np.sum(W**2)), float(np.linalg.norm(W.T @ B @ W - np.eye(len(W.T))))
        right_error = residual + sum_error(self.accumulation_length + 100 * len(W)) * size
        data_error = sum_error(self.accumulation_length + len(W) + 16) * size**0.5 + outside
        return WhiteningErrorBounds(round_up(data_error), round_up(right_error), round_up(size))

    def zero_rows(self) -> Mask:
        """Return the mask of rows that are zero in all columns that are not constant, shape (n,)."""
        if self.offset > 0.0:
            return np.zeros(len(self), dtype=bool)
        return self.centered.stack(partial(are_zero, self.units > 0.0))

    def used_columns(self) -> Mask:
        return np.asarray(self.units > 0.0)


def uncentered(table: Any, threads: int = 1) -> StreamedRows:
    """Return the rows of a table without centring or scaling."""
    d = table.shape[1]
    return StreamedRows(table, mean=np.zeros(d), residual_mean=np.zeros(d), units=np.ones(d), threads=threads)


# Functions of parts, which the workers of a cluster can import


def run_part(table: Any, task: tuple[Callable[..., Any], StreamedRows], aligned: tuple[Array, ...]) -> Any:
    """Return the value of a function at a part, on a worker, with single-threaded linear algebra."""
    function, frame = task
    with one_thread():
        return function(replace(frame, table=table), *aligned)


def stack_part(function: Callable[..., Values], part: StreamedRows, *aligned: Array) -> Values:
    return stack_blocks(part.row_blocks(), len(part), function, *aligned)


def add_part(function: Callable[..., Any], part: StreamedRows, *aligned: Array) -> Any:
    return add_blocks(part.row_blocks(), function, *aligned)


def part_weighted_sums(part: StreamedRows, TU: Array, floors: Array) -> WeightedSums:
    """Return the sums over the centred rows of a part; the few rows with small q_i are added for each floor."""
    size, small_at = len(TU), floors[-1]
    grams, inverse_sums, sqrt_sum, square_sum = np.zeros((len(floors), size, size)), np.zeros(len(floors)), 0.0, 0.0
    for block in part.row_blocks():
        XU = block @ TU
        q = row_products(XU, XU)
        small = q < small_at
        roots = np.sqrt(q)
        sqrt_sum += float(roots.sum())
        square_sum += float(q.sum())
        roots[small] = 1.0
        grams += block.T @ (block * np.where(small, 0.0, 1.0 / roots)[:, None])
        inverse_sums += np.sum(np.where(small, 0.0, roots))
        if not small.any():
            continue
        few, low = block[small], q[small]
        nonzero = few.any(axis=1)
        for i, floor in enumerate(floors):
            roots = np.sqrt(np.maximum(low, floor))
            grams[i] += few.T @ (few / roots[:, None])
            inverse_sums[i] += np.sum(roots[nonzero])
    return grams, inverse_sums, sqrt_sum, square_sum


def checksum_block(block: np.ndarray) -> int:
    """Return a checksum that detects changed or moved entries of a block.

    Words of eight bytes are added as integers modulo 2^64, exactly on all machines: runs of neighbours, and words at
    equal positions modulo a prime.  A change that preserves all sums of both kinds alters at least four entries in a
    consistent way, which does not happen by accident.
    """
    content = np.ascontiguousarray(block).reshape(-1).view(np.uint8)
    count = len(content) // 8
    words, rows, columns = (
        content[: 8 * count].view(np.uint64),
        count // CHECKSUM_WORDS * CHECKSUM_WORDS,
        count // CHECKSUM_PRIME * CHECKSUM_PRIME,
    )
    found = zlib.crc32(content[8 * min(rows, columns) :].tobytes())
    found = zlib.crc32(words[:rows].reshape(-1, CHECKSUM_WORDS).sum(axis=1).tobytes(), found)
    return zlib.crc32(words[:columns].reshape(-1, CHECKSUM_PRIME).sum(axis=0).tobytes(), found)


def pick_rows(table: Any, indices: Indices) -> Any:
    """Return the rows at increasing indices; those of a memory map are read a few pages at a time."""
    if not isinstance(table, np.memmap):
        return table[indices]
    pieces = []
    for start in range(0, len(indices), BLOCK_ROWS):
        piece = indices[start : start + BLOCK_ROWS]
        require_file(table)
        pieces.append(np.array(table[piece]))
        release_pages(table, int(piece[0]), int(piece[-1]) + 1)
    return np.concatenate(pieces)


def release_pages(table: Any, start: int, stop: int) -> None:
    """Release the pages of rows of a memory map that were read, which would count as memory of this process.

    They stay in the file cache of the system while it has room.  Pages of a copy-on-write map are not released.
    """
    pages = getattr(table, "_mmap", None)
    if pages is None or not hasattr(mmap, "MADV_DONTNEED") or table.mode == "c" or not table.flags.c_contiguous:
        return
    low, high = np.lib.array_utils.byte_bounds(table[start:stop])
    base = np.frombuffer(pages, dtype=np.uint8).__array_interface__["data"][0]
    first, last = -(-(low - base) // mmap.PAGESIZE), (high - base) // mmap.PAGESIZE
    if last > first:
        pages.madvise(mmap.MADV_DONTNEED, first * mmap.PAGESIZE, (last - first) * mmap.PAGESIZE)
