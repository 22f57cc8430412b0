"""Many rows: a table as it is, centred and scaled block by block when it is read, without a copy of its size."""

import mmap
import threading
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
from diffrac_cvx.points.chunks import Chunks, add_tuples, changed_rows_error, concatenate_rows
from diffrac_cvx.points.dense import DensePoints
from diffrac_cvx.points.factors import Factor, dense
from diffrac_cvx.points.label_factors import LabelsFactor
from diffrac_cvx.points.linear_algebra import BLOCK_ROWS, row_products
from diffrac_cvx.points.points import (
    ColumnPoints,
    Excluded,
    Indices,
    Mask,
    Points,
    Values,
    WeightedSums,
    add_blocks,
    are_zero,
    block_weighted_gram,
    norms_and_squares,
    products_of_rows,
    sqrt_sum_and_gradient,
    squares_and_sum,
    stack_blocks,
)
from diffrac_cvx.points.points import LazyFactor as LazyFactor
from diffrac_cvx.points.proved_sums import RoundedDirection, RoundedFactor, block_residual_bound, block_sum_bounds

CLOCK_POLL_SECONDS = 0.2  # seconds between looks at the clock while other threads read
CHECKSUM_WORDS, CHECKSUM_PRIME = 512, 509  # of eight bytes, that are added in a row, and whose remainders are added
ROWS_PER_PICK = 1000  # rows of a memory map that are picked at a time: each brings some pages of its own
MAX_BLOCK_ENTRIES = 2_000_000  # of a block, where the table has many columns


class RowCounter:
    """Count the rows that are read, by several threads."""

    def __init__(self) -> None:
        self.rows, self.lock = 0, threading.Lock()

    def add(self, rows: int) -> None:
        with self.lock:
            self.rows += rows

    def __reduce__(self) -> tuple[type["RowCounter"], tuple[()]]:
        return RowCounter, ()  # whoever gets a copy counts its own


BlockReader = Callable[["StreamedRows"], Iterator[Array]]  # which rows of a part, by blocks


@dataclass(frozen=True, eq=False)
class StreamedRows(Points):
    """Hold the (n, D) matrix [(table - mean - rest) * units, offset] @ basis as the table and the change of it.

    What is computed of all rows is computed by parts, `map_parts` and `sum_parts`: by threads where the table is an
    array, a memory map or a sparse matrix, by dask where it is a dask array, on the workers of a cluster where there is
    one.  The table is an (n, d) array, memory map, sparse array (by rows), or `Chunks`, as the user gave it; whoever
    reads it after it has changed gets an error.
    """

    table: Any
    mean: Array  # of the columns, (d,)
    residual_mean: Array  # the mean of what is left after it is subtracted
    units: Array  # factors of the centred columns, (d,); 0 for constant columns
    offset: float = 0.0  # entry of a last column of constants; 0 where there is no such column
    basis: Array | None = None  # (d or d + 1, D), change of coordinates; None for the identity
    gram: Array | None = None  # (d, d), mean of the squares and products of the centred columns, where it is known
    threads: int = 1  # how many may read the rows at the same time
    row_counter: RowCounter = field(default_factory=RowCounter)  # how many rows were read
    # From the first rows of the blocks to what `mark` gave of them when they were read first; empty where it is not
    # known, and for chunks, which know it themselves.
    checksums: dict[int, int] = field(default_factory=dict)
    first: int = 0  # where the first row is in the whole, of which this may be a part
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
        return self.row_counter.rows

    def fits(self, copies: float, available: float) -> bool:
        """Whether the rows are here, not sparse, and so many copies of them take no more than so many bytes."""
        n, D = self.shape
        return self.is_local and not scipy.sparse.issparse(self.table) and 8.0 * copies * n * D <= available

    # Parts

    def map_parts(self, function: Callable[..., Any], *aligned: Array) -> list[Any]:
        """Return ``function(part, *aligned)`` for all parts of the rows, in their order.

        The function is importable by the workers of a cluster; a part is `StreamedRows` of a table in memory.  Arrays
        that are aligned have an entry for each row; those of the part are passed.
        """
        slices = self.split_aligned(aligned)
        if isinstance(self.table, Chunks):
            found = self.table.map_parts(run_part, (function, self.without_table), slices)
            self.row_counter.add(len(self))
            return found
        parts = self.parts()
        if len(parts) == 1:
            return [function(self, *aligned)]
        with ThreadPoolExecutor(len(parts)) as pool:
            tasks = [  # each with the caller's budget of time
                pool.submit(copy_context().run, function, part, *own) for part, own in zip(parts, slices, strict=True)
            ]
            while wait(tasks, timeout=CLOCK_POLL_SECONDS).not_done:
                check_deadline()
            return [task.result() for task in tasks]

    def sum_parts(self, function: Callable[..., Any], *aligned: Array) -> Any:
        """Return the sum of the tuples of numbers or arrays that `map_parts` gives; it is made where the rows are."""
        if isinstance(self.table, Chunks):
            found = self.table.sum_parts(run_part, (function, self.without_table), self.split_aligned(aligned))
            self.row_counter.add(len(self))
            return found
        return reduce(add_tuples, self.map_parts(function, *aligned))

    def stack(self, rows: BlockReader, function: Callable[..., Values], *aligned: Array) -> Values:
        """Return ``function(block, *aligned)`` of the blocks of all parts, one below the other."""
        return cast(Values, concatenate_rows(self.map_parts(partial(stack_part, rows, function), *aligned)))

    def add(self, rows: BlockReader, function: Callable[..., Any], *aligned: Array) -> tuple[Any, ...]:
        """Return the sums of the tuples ``function(block, *aligned)`` of the blocks of all parts."""
        return tuple(self.sum_parts(partial(add_part, rows, function), *aligned))

    @property
    def without_table(self) -> "StreamedRows":
        """What a worker needs to know beside its rows."""
        return replace(self, table=None, gram=None, threads=1, row_counter=RowCounter())  # who asks counts the rows

    def bounds(self) -> list[tuple[int, int]]:
        """Return where the parts begin and end: the chunks, or about as many parts as threads, of whole blocks.

        So the blocks are the same with any number of threads.
        """
        if isinstance(self.table, Chunks):
            return self.table.bounds
        size = -(-len(self) // (self.threads * self.block)) * self.block
        return [(i, min(i + size, len(self))) for i in range(0, len(self), size)]

    def split_aligned(self, aligned: tuple[Array, ...]) -> list[tuple[Array, ...]]:
        """Return the entries for the rows of each part."""
        return [tuple(values[i:j] for values in aligned) for i, j in self.bounds()]

    def parts(self) -> list["StreamedRows"]:
        """Return the rows in as many parts as there are threads."""
        if len(self.bounds()) == 1:
            return [self]
        return [replace(self, table=self.table[i:j], threads=1, first=self.first + i) for i, j in self.bounds()]

    # Blocks of a part, whose table is in memory or a memory map

    def raw_blocks(self) -> Iterator[tuple[int, Any]]:
        """Yield the blocks of rows as they are in the table, copied, after the first row of each; one is overwritten.

        What is copied is compared with what was read first, so that all that is computed is of the same data.
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
            self.row_counter.add(len(block))
            check_deadline()
            yield start, block
            release_pages(self.table, start, start + len(block))

    def centered_blocks(self) -> Iterator[Array]:
        """Yield the centred columns and, where there is an offset, ones, by blocks of rows; a block is overwritten.

        The matrix is these times ``transform``.
        """
        n, d = self.table.shape
        buffer = np.ones((min(self.block, n), d + int(self.offset > 0.0)))
        again = bool(self.residual_mean.any())
        for _, given in self.raw_blocks():
            block = buffer[: len(given)]
            features = block[:, :d]
            features[...] = given  # nearly twice as quick, of single precision, as the difference of two types
            features -= self.mean
            if again:
                features -= self.residual_mean
            yield block

    @property
    def block(self) -> int:
        """How many rows a block has: what is computed from it stays in the cache, or at least is not large."""
        return int(min(BLOCK_ROWS, max(MAX_BLOCK_ENTRIES // max(self.table.shape[1], 1), 16)))

    @property
    def accumulation_length(self) -> int:
        """How many terms the sums over all rows have in a row: they are made by blocks, and by parts."""
        return min(len(self), self.block) + len(self) // self.block + len(self.bounds()) + 1

    @property
    def transform(self) -> Array:
        """From centred columns to the matrix, shape (d or d + 1, D)."""
        factors = np.append(self.units, self.offset) if self.offset > 0.0 else self.units
        return np.diag(factors) if self.basis is None else factors[:, None] * self.basis

    def row_blocks(self) -> Iterator[Array]:
        factors = np.append(self.units, self.offset) if self.offset > 0.0 else self.units
        for block in self.centered_blocks():
            scaled = block * factors
            yield scaled if self.basis is None else scaled @ self.basis

    # What is computed of all rows

    def take(self, indices: Indices) -> Array:
        if isinstance(self.table, Chunks):
            picked = self.table.take(indices)
            self.row_counter.add(len(self))
        else:
            picked = pick_rows(self.table, indices)
        return replace(self, table=picked, row_counter=RowCounter(), checksums={}, threads=1).array()

    def in_columns(self) -> ColumnPoints:
        table = self.array()
        if self.basis is None and not self.offset:  # the means of the blocks are rounded as numbers of their size are
            table -= table.mean(axis=0)
        made = DensePoints(table, means=self.means)
        made.excluded = self.excluded
        return made

    def scaled(self, factors: Array) -> Self:
        """Return the columns times factors, without computing them."""
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
    def in_centered_coordinates(self) -> "StreamedRows":
        """The rows in their centred columns, and ones."""
        return replace(self, basis=None, units=np.ones_like(self.units), gram=None)

    def stack_products(self, function: Callable[..., Array], U: Factor, *aligned: Array) -> Array:
        return self.in_centered_coordinates.stack(
            partial(centered_products, self.transform @ dense(U)), function, *aligned
        )

    def add_products(self, function: Callable[..., Any], U: Factor, *aligned: Array) -> tuple[Any, ...]:
        return self.in_centered_coordinates.add(
            partial(centered_products, self.transform @ dense(U)), function, *aligned
        )

    def add_centered(self, function: Callable[..., Any], *aligned: Array) -> tuple[Any, ...]:
        """Return the sums of the tuples ``function(block, *aligned)`` of the blocks of centred rows."""
        return self.in_centered_coordinates.add(StreamedRows.centered_blocks, function, *aligned)

    def __matmul__(self, U: Factor) -> Array:
        found = self.stack_products(np.asarray, dense(U)[:, None] if U.ndim == 1 else U)
        return found[:, 0] if U.ndim == 1 else found

    def mean_sqrt_and_mean(self, U: Factor) -> tuple[float, float]:
        """Return the means of sqrt(q_i) and of q_i, q_i = x_i'UU'x_i: what travels does not depend on n."""
        sqrt_sum, square_sum = self.add_products(norms_and_squares, U)
        return float(sqrt_sum) / len(self), float(square_sum) / len(self)

    def weighted_gram(self, u: Array) -> Array:
        T = self.transform
        (total,) = self.add_centered(block_weighted_gram, u)
        return np.asarray(T.T @ total @ T) / len(self)

    def second_moment(self) -> Array:
        gram = self.gram
        if gram is None:
            total, _ = replace(self, offset=0.0).add_centered(squares_and_sum)
            gram = total / len(self)
        if self.offset > 0.0:
            gram = np.pad(gram, (0, 1))
            gram[-1, -1] = 1.0
        T = self.transform
        return np.asarray(T.T @ gram @ T)

    def rmatvec(self, Y: Array) -> Array:
        (total,) = self.add_centered(products_of_rows, Y)
        return np.asarray(self.transform.T @ total) / len(self)

    def sqrt_sum_and_gradient(self, U: Array) -> tuple[float, Array]:
        """Return sum_i sqrt(q_i) and X' Diag(1/sqrt(q)) X U; a change of coordinates is cheaper for U than for X."""
        T = self.transform
        total, gradient = self.add_centered(partial(sqrt_sum_and_gradient, T @ U))
        return total, np.asarray(T.T @ gradient)

    def weighted_sums(self, U: Array, floors: Array) -> WeightedSums:
        """Return what one pass over all rows gives.

        Parts of the rows are read by threads of their own, each with products of one thread: that is quicker by nearly
        the number of threads, where products of several threads gain little on blocks that fit the cache, and lose very
        much where another process has the core.
        """
        T = self.transform
        sums = WeightedSums(
            *self.in_centered_coordinates.sum_parts(partial(part_weighted_sums, TU=T @ U, floors=floors))
        )
        return sums._replace(grams=np.stack([T.T @ M @ T for M in sums.grams]))

    def mean_squares(self) -> Array:
        return np.maximum(np.diag(self.second_moment()), 0.0)

    def labels_factor(self, U: Factor) -> LazyFactor:
        return LabelsFactor(self, U)

    def sum_bounds(self, factor: RoundedFactor) -> tuple[float, float]:
        sqrt_sum, total = self.add(StreamedRows.row_blocks, partial(block_sum_bounds, factor))
        return sqrt_sum, total

    def residual_bound(self, target: Array, direction: RoundedDirection) -> float:
        (total,) = self.add(StreamedRows.row_blocks, partial(block_residual_bound, direction), target)
        return float(total) / len(self)

    def zero_rows(self) -> Mask:
        """Return which rows are zero, shape (n,), in the columns that are not constant."""
        if self.offset > 0.0:
            return np.zeros(len(self), dtype=bool)
        return self.in_centered_coordinates.stack(StreamedRows.centered_blocks, partial(are_zero, self.units > 0.0))

    def used_columns(self) -> Mask:
        return np.asarray(self.units > 0.0)

    def array(self) -> Array:
        return self.stack(StreamedRows.row_blocks, np.asarray)


def uncentered(table: Any, threads: int = 1) -> StreamedRows:
    """Return the rows of a table as they are."""
    d = table.shape[1]
    return StreamedRows(table, mean=np.zeros(d), residual_mean=np.zeros(d), units=np.ones(d), threads=threads)


# Of a part; the functions are importable by the workers of a cluster


def run_part(table: Any, task: tuple[Callable[..., Any], StreamedRows], aligned: tuple[Array, ...]) -> Any:
    """Return what a function gives of a part, on a worker; the linear algebra has one thread."""
    function, frame = task
    with one_thread():
        return function(replace(frame, table=table), *aligned)


def centered_products(T: Array, part: StreamedRows) -> Iterator[Array]:
    """Yield the centred rows times T, by blocks."""
    return (block @ T for block in part.centered_blocks())


def stack_part(rows: BlockReader, function: Callable[..., Values], part: StreamedRows, *aligned: Array) -> Values:
    return stack_blocks(rows(part), len(part), function, *aligned)


def add_part(rows: BlockReader, function: Callable[..., Any], part: StreamedRows, *aligned: Array) -> Any:
    return add_blocks(rows(part), function, *aligned)


def part_weighted_sums(part: StreamedRows, TU: Array, floors: Array) -> WeightedSums:
    """Return the sums over the centred rows of a part; rows with small energies, a few, are added for each floor."""
    size, small_at = len(TU), floors[-1]
    grams, inverse_sums, sqrt_sum, square_sum = np.zeros((len(floors), size, size)), np.zeros(len(floors)), 0.0, 0.0
    for block in part.centered_blocks():
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
    return WeightedSums(grams, inverse_sums, sqrt_sum, square_sum)


def checksum_block(block: np.ndarray) -> int:
    """Return a number that is another one where entries of a block change, or their places.

    Words of eight bytes are added as whole numbers modulo 2^64, exact on any machine: those that are neighbours, and
    those at the same place modulo a prime number.  What changes no sum of either kind changes four entries or more in
    a way that fits both, which no accident does.
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
    """Return the rows chosen, in increasing order; of a memory map a few pages at a time."""
    if not isinstance(table, np.memmap):
        return table[indices]
    pieces = []
    for start in range(0, len(indices), ROWS_PER_PICK):
        piece = indices[start : start + ROWS_PER_PICK]
        require_file(table)
        pieces.append(np.array(table[piece]))
        release_pages(table, int(piece[0]), int(piece[-1]) + 1)
    return np.concatenate(pieces)


def release_pages(table: Any, start: int, stop: int) -> None:
    """Let go of the pages of rows of a memory map that were read: they would count as this process's memory.

    They stay in the system's cache of the file while it has room.  Of a map that is copied when it is written to
    nothing is let go.
    """
    pages = getattr(table, "_mmap", None)
    if pages is None or not hasattr(mmap, "MADV_DONTNEED") or table.mode == "c" or not table.flags.c_contiguous:
        return
    low, high = np.lib.array_utils.byte_bounds(table[start:stop])
    base = np.frombuffer(pages, dtype=np.uint8).__array_interface__["data"][0]
    first, last = -(-(low - base) // mmap.PAGESIZE), (high - base) // mmap.PAGESIZE
    if last > first:
        pages.madvise(mmap.MADV_DONTNEED, first * mmap.PAGESIZE, (last - first) * mmap.PAGESIZE)
