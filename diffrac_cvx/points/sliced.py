"""Tables that are not arrays and are read in blocks of rows: dask arrays, and tables that support only slicing.

A table that supports only slicing, for example of h5py or zarr, has a shape, a NumPy dtype, and row slices that are
arrays.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.chunks import Chunks, as_block, is_dask

READ_ENTRIES = 250_000  # entries that are read at once, unless the chunks of the table are larger
MAX_READ_ENTRIES = 16_000_000  # entries that are read at once from a larger chunk

Values = npt.NDArray[Any]


def is_sliced(X: Any) -> bool:
    """Return whether a table has shape, NumPy dtype and slices, but is not an array, sparse matrix or data frame."""
    if isinstance(X, np.ndarray | np.generic) or hasattr(X, "toarray") or hasattr(X, "iloc") or hasattr(X, "dask"):
        return False
    has_rows = isinstance(getattr(X, "shape", None), tuple) and hasattr(X, "__getitem__")
    return has_rows and isinstance(getattr(X, "dtype", None), np.dtype)


def is_read_by_blocks(X: Any) -> bool:
    """Return whether a table is a dask array or supports only slicing."""
    return is_dask(X) or is_sliced(X)


class SlicedTable:
    """Rows of a table that supports only slicing, read a few chunks at a time; the rows read last are cached."""

    def __init__(self, table: Any, rows: range | None = None, lock: AbstractContextManager[Any] | None = None) -> None:
        self.table, self.dtype = table, table.dtype
        self.rows = range(table.shape[0]) if rows is None else rows
        self.shape = len(self.rows), int(table.shape[1])
        self.lock = threading.Lock() if lock is None else lock  # few formats can be read by several threads at once
        self.last: tuple[int, Values] = 0, np.zeros((0, self.shape[1]))

    def __len__(self) -> int:
        return len(self.rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.table, self.rows)

    def part(self, i: int, j: int) -> "SlicedTable":
        """Return the rows i to j of these, to be read by another thread."""
        return SlicedTable(self.table, self.rows[i:j], self.lock)

    def __getitem__(self, rows: slice) -> Values:
        """Return a slice of these rows as an array."""
        asked = self.rows[rows]
        row, pieces = asked.start, []
        while row < asked.stop:
            first, block = self.read(row)
            pieces.append(block[row - first : asked.stop - first])
            row = first + len(block)
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def read(self, row: int) -> tuple[int, Values]:
        """Return the block of the table that contains a row, and the index of its first row."""
        first, block = self.last
        if not first <= row < first + len(block):
            step = block_rows(self.table)
            first = row - row % step
            stop = min(first + step, self.table.shape[0])
            try:
                with self.lock:
                    block = as_block(self.table[first:stop])
            except OSError as error:
                raise DataError(f"rows {first} to {stop} of X cannot be read ({error}). Check the file.") from error
            if block.shape != (stop - first, self.shape[1]):
                raise DataError(f"rows {first} to {stop} of X have shape {block.shape}. Its shape is {self.shape}.")
            self.last = first, block
        return first, block

    def map(self, function: Callable[..., Any], *aligned: Values) -> Iterator[Any]:
        """Yield ``function(block, *aligned)`` for blocks of the rows, with the matching rows of aligned arrays."""
        step = block_rows(self.table)
        for start in range(0, len(self), step):
            check_deadline()
            rows = slice(start, start + step)
            yield function(self[rows], *(values[rows] for values in aligned))


def block_rows(X: Any) -> int:
    """Return the number of rows to read at once: whole chunks of the table, if these are not too large."""
    n, d = X.shape
    chunks = getattr(X, "chunks", None)
    rows = chunks[0] if isinstance(chunks, tuple) and chunks and isinstance(chunks[0], int) else 1
    step = rows * -(-max(READ_ENTRIES // d, 1) // rows)
    return int(np.clip(min(step, MAX_READ_ENTRIES // d), 1, n))


def opened(X: Any) -> SlicedTable | Chunks:
    """Return the reader of a table that is read by blocks."""
    if isinstance(X, SlicedTable | Chunks):
        return X
    return Chunks(X) if is_dask(X) else SlicedTable(X)


def in_memory(X: Any) -> Values:
    """Read a table by blocks into an array of the same dtype, if it fits in memory."""
    table = opened(X)
    n, d = table.shape
    require_memory(float(table.dtype.itemsize) * n * d, f"a table of {n} points and {d} features", "use fewer points")
    array, start = np.empty(table.shape, table.dtype), 0
    for block in table.map(as_block):
        array[start : start + len(block)] = block
        start += len(block)
    return array


def take_rows(X: Any, indices: Values) -> Values:
    """Return the rows at increasing indices of a table that is read by blocks, as an array."""
    table = opened(X)
    mask = np.zeros(len(table), dtype=bool)
    mask[indices] = True
    return np.concatenate(list(table.map(masked_rows, mask)))


def masked_rows(block: Any, mask: Values) -> Values:
    """Return some rows of a block, which may lie on a worker."""
    return as_block(block)[mask]
