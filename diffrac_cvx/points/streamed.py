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

from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.machine.time_budget import poll
from diffrac_cvx.points.checks import Array, require_file
from diffrac_cvx.points.chunks import Chunks, add, changed_rows, join_rows
from diffrac_cvx.points.dense import DensePoints
from diffrac_cvx.points.factors import Factor, dense
from diffrac_cvx.points.label_factors import LabelsFactor
from diffrac_cvx.points.linear_algebra import BLOCK, row_products
from diffrac_cvx.points.points import (
    Columns,
    Excluded,
    Indices,
    Mask,
    Points,
    SumsAt,
    Values,
    add_blocks,
    are_zero,
    norms_and_squares,
    products_of_rows,
    roots_and_pull,
    squares_and_sum,
    stack_blocks,
    weighted_squares,
)
from diffrac_cvx.points.points import LabelsFactor as MadeFactor
from diffrac_cvx.points.proved_sums import RoundedDirection, RoundedFactor, bounds_of_block, misfit_of_block

PATIENCE = 0.2  # seconds between looks at the clock while other threads read
WORDS, REMAINDERS = 512, 509  # of eight bytes, that are added in a row, and whose remainders are added
PICKED = 1000  # rows of a memory map that are picked at a time: each brings some pages of its own
ENTRIES = 2_000_000  # of a block, where the table has many columns


class Meter:
    """Count the rows that are read, by several threads."""

    def __init__(self) -> None:
        self.rows, self.lock = 0, threading.Lock()

    def add(self, rows: int) -> None:
        with self.lock:
            self.rows += rows

    def __reduce__(self) -> tuple[type["Meter"], tuple[()]]:
        return Meter, ()  # whoever gets a copy counts its own


Rows = Callable[["StreamedRows"], Iterator[Array]]  # which rows of a part, by blocks


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
    rest: Array  # the mean of what is left after it is subtracted
    units: Array  # factors of the centred columns, (d,); 0 for constant columns
    offset: float = 0.0  # entry of a last column of constants; 0 where there is no such column
    basis: Array | None = None  # (d or d + 1, D), change of coordinates; None for the identity
    gram: Array | None = None  # (d, d), mean of the squares and products of the centred columns, where it is known
    threads: int = 1  # how many may read the rows at the same time
    meter: Meter = field(default_factory=Meter)  # how many rows were read
    # From the first rows of the blocks to what `mark` gave of them when they were read first; empty where it is not
    # known, and for chunks, which know it themselves.
    marks: dict[int, int] = field(default_factory=dict)
    first: int = 0  # where the first row is in the whole, of which this may be a part
    excluded: Excluded | None = None

    in_passes = True

    @property
    def shape(self) -> tuple[int, int]:
        columns = self.table.shape[1] + int(self.offset > 0.0) if self.basis is None else self.basis.shape[1]
        return int(self.table.shape[0]), columns

    @property
    def is_here(self) -> bool:  # type: ignore[override]
        return not isinstance(self.table, Chunks)

    @property
    def means(self) -> Array:
        units = np.where(self.units == 0.0, 1.0, self.units)
        return (self.mean + self.rest) * units if self.basis is None and not self.offset else super().means

    @property
    def rows_read(self) -> int:  # type: ignore[override]
        return self.meter.rows

    def fits(self, copies: float, available: float) -> bool:
        """Whether the rows are here, not sparse, and so many copies of them take no more than so many bytes."""
        n, D = self.shape
        return self.is_here and not scipy.sparse.issparse(self.table) and 8.0 * copies * n * D <= available

    # Parts

    def map_parts(self, function: Callable[..., Any], *aligned: Array) -> list[Any]:
        """Return ``function(part, *aligned)`` for all parts of the rows, in their order.

        The function is importable by the workers of a cluster; a part is `StreamedRows` of a table in memory.  Arrays
        that are aligned have an entry for each row; those of the part are passed.
        """
        slices = self.cut(aligned)
        if isinstance(self.table, Chunks):
            found = self.table.map_parts(run_part, (function, self.without_table), slices)
            self.meter.add(len(self))
            return found
        parts = self.parts()
        if len(parts) == 1:
            return [function(self, *aligned)]
        with ThreadPoolExecutor(len(parts)) as pool:
            tasks = [  # each with the caller's budget of time
                pool.submit(copy_context().run, function, part, *own) for part, own in zip(parts, slices, strict=True)
            ]
            while wait(tasks, timeout=PATIENCE).not_done:
                poll()
            return [task.result() for task in tasks]

    def sum_parts(self, function: Callable[..., Any], *aligned: Array) -> Any:
        """Return the sum of the tuples of numbers or arrays that `map_parts` gives; it is made where the rows are."""
        if isinstance(self.table, Chunks):
            found = self.table.sum_parts(run_part, (function, self.without_table), self.cut(aligned))
            self.meter.add(len(self))
            return found
        return reduce(add, self.map_parts(function, *aligned))

    def stack(self, rows: Rows, function: Callable[..., Values], *aligned: Array) -> Values:
        """Return ``function(block, *aligned)`` of the blocks of all parts, one below the other."""
        return cast(Values, join_rows(self.map_parts(partial(stack_part, rows, function), *aligned)))

    def add(self, rows: Rows, function: Callable[..., Any], *aligned: Array) -> tuple[Any, ...]:
        """Return the sums of the tuples ``function(block, *aligned)`` of the blocks of all parts."""
        return tuple(self.sum_parts(partial(add_part, rows, function), *aligned))

    @property
    def without_table(self) -> "StreamedRows":
        """What a worker needs to know beside its rows."""
        return replace(self, table=None, gram=None, threads=1, meter=Meter())  # who asks counts the rows

    def bounds(self) -> list[tuple[int, int]]:
        """Return where the parts begin and end: the chunks, or about as many parts as threads, of whole blocks.

        So the blocks are the same with any number of threads.
        """
        if isinstance(self.table, Chunks):
            return self.table.bounds
        size = -(-len(self) // (self.threads * self.block)) * self.block
        return [(i, min(i + size, len(self))) for i in range(0, len(self), size)]

    def cut(self, aligned: tuple[Array, ...]) -> list[tuple[Array, ...]]:
        """Return the entries for the rows of each part."""
        return [tuple(values[i:j] for values in aligned) for i, j in self.bounds()]

    def parts(self) -> list["StreamedRows"]:
        """Return the rows in as many parts as there are threads."""
        if len(self.bounds()) == 1:
            return [self]
        return [replace(self, table=self.table[i:j], threads=1, first=self.first + i) for i, j in self.bounds()]

    # Blocks of a part, whose table is in memory or a memory map

    def given_blocks(self) -> Iterator[tuple[int, Any]]:
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
            expected = self.marks.get(self.first + start)
            if expected is not None and mark(block) != expected:
                raise changed_rows(self.first + start, self.first + start + len(block))
            self.meter.add(len(block))
            poll()
            yield start, block
            release(self.table, start, start + len(block))

    def centred_blocks(self) -> Iterator[Array]:
        """Yield the centred columns and, where there is an offset, ones, by blocks of rows; a block is overwritten.

        The matrix is these times ``transform``.
        """
        n, d = self.table.shape
        buffer = np.ones((min(self.block, n), d + int(self.offset > 0.0)))
        again = bool(self.rest.any())
        for _, given in self.given_blocks():
            block = buffer[: len(given)]
            features = block[:, :d]
            features[...] = given  # nearly twice as quick, of single precision, as the difference of two types
            features -= self.mean
            if again:
                features -= self.rest
            yield block

    @property
    def block(self) -> int:
        """How many rows a block has: what is computed from it stays in the cache, or at least is not large."""
        return int(min(BLOCK, max(ENTRIES // max(self.table.shape[1], 1), 16)))

    @property
    def summands(self) -> int:
        """How many terms the sums over all rows have in a row: they are made by blocks, and by parts."""
        return min(len(self), self.block) + len(self) // self.block + len(self.bounds()) + 1

    @property
    def transform(self) -> Array:
        """From centred columns to the matrix, shape (d or d + 1, D)."""
        factors = np.append(self.units, self.offset) if self.offset > 0.0 else self.units
        return np.diag(factors) if self.basis is None else factors[:, None] * self.basis

    def row_blocks(self) -> Iterator[Array]:
        factors = np.append(self.units, self.offset) if self.offset > 0.0 else self.units
        for block in self.centred_blocks():
            scaled = block * factors
            yield scaled if self.basis is None else scaled @ self.basis

    # What is computed of all rows

    def take(self, chosen: Indices) -> Array:
        if isinstance(self.table, Chunks):
            picked = self.table.take(chosen)
            self.meter.add(len(self))
        else:
            picked = pick_rows(self.table, chosen)
        return replace(self, table=picked, meter=Meter(), marks={}, threads=1).array()

    def in_columns(self) -> Columns:
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

    def excluding(self, excluded: Excluded | None) -> Self:
        return replace(self, excluded=excluded)

    def with_offset(self) -> Self:
        return replace(self, offset=1.0)

    def in_basis(self, basis: Array) -> Self:
        return replace(self, basis=basis if self.basis is None else self.basis @ basis)

    @property
    def in_centred(self) -> "StreamedRows":
        """The rows in their centred columns, and ones."""
        return replace(self, basis=None, units=np.ones_like(self.units), gram=None)

    def stack_products(self, function: Callable[..., Array], U: Factor, *aligned: Array) -> Array:
        return self.in_centred.stack(partial(centred_products, self.transform @ dense(U)), function, *aligned)

    def add_products(self, function: Callable[..., Any], U: Factor, *aligned: Array) -> tuple[Any, ...]:
        return self.in_centred.add(partial(centred_products, self.transform @ dense(U)), function, *aligned)

    def add_centred(self, function: Callable[..., Any], *aligned: Array) -> tuple[Any, ...]:
        """Return the sums of the tuples ``function(block, *aligned)`` of the blocks of centred rows."""
        return self.in_centred.add(StreamedRows.centred_blocks, function, *aligned)

    def __matmul__(self, U: Factor) -> Array:
        found = self.stack_products(np.asarray, dense(U)[:, None] if U.ndim == 1 else U)
        return found[:, 0] if U.ndim == 1 else found

    def gain_and_energy(self, U: Factor) -> tuple[float, float]:
        """Return the means of sqrt(q_i) and of q_i, q_i = x_i'UU'x_i: what travels does not depend on n."""
        roots, squares = self.add_products(norms_and_squares, U)
        return float(roots) / len(self), float(squares) / len(self)

    def moment(self, u: Array) -> Array:
        T = self.transform
        (total,) = self.add_centred(weighted_squares, u)
        return np.asarray(T.T @ total @ T) / len(self)

    def second_moment(self) -> Array:
        gram = self.gram
        if gram is None:
            total, _ = replace(self, offset=0.0).add_centred(squares_and_sum)
            gram = total / len(self)
        if self.offset > 0.0:
            gram = np.pad(gram, (0, 1))
            gram[-1, -1] = 1.0
        T = self.transform
        return np.asarray(T.T @ gram @ T)

    def products_with(self, Y: Array) -> Array:
        (total,) = self.add_centred(products_of_rows, Y)
        return np.asarray(self.transform.T @ total) / len(self)

    def roots_and_pull(self, U: Array) -> tuple[float, Array]:
        """Return sum_i sqrt(q_i) and X' Diag(1/sqrt(q)) X U; a change of coordinates is cheaper for U than for X."""
        T = self.transform
        total, pull = self.add_centred(partial(roots_and_pull, T @ U))
        return total, np.asarray(T.T @ pull)

    def sums_at(self, U: Array, floors: Array) -> SumsAt:
        """Return what one pass over all rows gives.

        Parts of the rows are read by threads of their own, each with products of one thread: that is quicker by nearly
        the number of threads, where products of several threads gain little on blocks that fit the cache, and lose very
        much where another process has the core.
        """
        T = self.transform
        sums = SumsAt(*self.in_centred.sum_parts(partial(part_sums_at, TU=T @ U, floors=floors)))
        return sums._replace(moments=np.stack([T.T @ M @ T for M in sums.moments]))

    def mean_squares(self) -> Array:
        return np.maximum(np.diag(self.second_moment()), 0.0)

    def labels_factor(self, U: Factor) -> MadeFactor:
        return LabelsFactor(self, U)

    def energy_sums(self, factor: RoundedFactor) -> tuple[float, float]:
        gain, energy = self.add(StreamedRows.row_blocks, partial(bounds_of_block, factor))
        return gain, energy

    def misfit(self, target: Array, direction: RoundedDirection) -> float:
        (total,) = self.add(StreamedRows.row_blocks, partial(misfit_of_block, direction), target)
        return float(total) / len(self)

    def zero_rows(self) -> Mask:
        """Return which rows are zero, shape (n,), in the columns that are not constant."""
        if self.offset > 0.0:
            return np.zeros(len(self), dtype=bool)
        return self.in_centred.stack(StreamedRows.centred_blocks, partial(are_zero, self.units > 0.0))

    def used_columns(self) -> Mask:
        return np.asarray(self.units > 0.0)

    def array(self) -> Array:
        return self.stack(StreamedRows.row_blocks, np.asarray)


def uncentred(table: Any, threads: int = 1) -> StreamedRows:
    """Return the rows of a table as they are."""
    d = table.shape[1]
    return StreamedRows(table, mean=np.zeros(d), rest=np.zeros(d), units=np.ones(d), threads=threads)


# Of a part; the functions are importable by the workers of a cluster


def run_part(table: Any, task: tuple[Callable[..., Any], StreamedRows], aligned: tuple[Array, ...]) -> Any:
    """Return what a function gives of a part, on a worker; the linear algebra has one thread."""
    function, frame = task
    with one_thread():
        return function(replace(frame, table=table), *aligned)


def centred_products(T: Array, part: StreamedRows) -> Iterator[Array]:
    """Yield the centred rows times T, by blocks."""
    return (block @ T for block in part.centred_blocks())


def stack_part(rows: Rows, function: Callable[..., Values], part: StreamedRows, *aligned: Array) -> Values:
    return stack_blocks(rows(part), len(part), function, *aligned)


def add_part(rows: Rows, function: Callable[..., Any], part: StreamedRows, *aligned: Array) -> Any:
    return add_blocks(rows(part), function, *aligned)


def part_sums_at(part: StreamedRows, TU: Array, floors: Array) -> SumsAt:
    """Return the sums over the centred rows of a part; rows with small energies, a few, are added for each floor."""
    size, small_at = len(TU), floors[-1]
    moments, inverses, every_root, every_square = np.zeros((len(floors), size, size)), np.zeros(len(floors)), 0.0, 0.0
    for block in part.centred_blocks():
        XU = block @ TU
        q = row_products(XU, XU)
        small = q < small_at
        roots = np.sqrt(q)
        every_root += float(roots.sum())
        every_square += float(q.sum())
        roots[small] = 1.0
        moments += block.T @ (block * np.where(small, 0.0, 1.0 / roots)[:, None])
        inverses += np.sum(np.where(small, 0.0, roots))
        if not small.any():
            continue
        few, low = block[small], q[small]
        nonzero = few.any(axis=1)
        for i, floor in enumerate(floors):
            roots = np.sqrt(np.maximum(low, floor))
            moments[i] += few.T @ (few / roots[:, None])
            inverses[i] += np.sum(roots[nonzero])
    return SumsAt(moments, inverses, every_root, every_square)


def mark(block: np.ndarray) -> int:
    """Return a number that is another one where entries of a block change, or their places.

    Words of eight bytes are added as whole numbers modulo 2^64, exact on any machine: those that are neighbours, and
    those at the same place modulo a prime number.  What changes no sum of either kind changes four entries or more in
    a way that fits both, which no accident does.
    """
    content = np.ascontiguousarray(block).reshape(-1).view(np.uint8)
    count = len(content) // 8
    words, rows, columns = (
        content[: 8 * count].view(np.uint64),
        count // WORDS * WORDS,
        count // REMAINDERS * REMAINDERS,
    )
    found = zlib.crc32(content[8 * min(rows, columns) :].tobytes())
    found = zlib.crc32(words[:rows].reshape(-1, WORDS).sum(axis=1).tobytes(), found)
    return zlib.crc32(words[:columns].reshape(-1, REMAINDERS).sum(axis=0).tobytes(), found)


def pick_rows(table: Any, chosen: Indices) -> Any:
    """Return the rows chosen, in increasing order; of a memory map a few pages at a time."""
    if not isinstance(table, np.memmap):
        return table[chosen]
    pieces = []
    for start in range(0, len(chosen), PICKED):
        piece = chosen[start : start + PICKED]
        require_file(table)
        pieces.append(np.array(table[piece]))
        release(table, int(piece[0]), int(piece[-1]) + 1)
    return np.concatenate(pieces)


def release(table: Any, start: int, stop: int) -> None:
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
