"""Data that are read several times: whether they are what they were when they were read first."""

import mmap
import zlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.errors import DataError

WORDS = 512  # of eight bytes, that are added at a time
HIGH = 2000  # rows of a chunk that are added at a time
DOUBLE = float(np.finfo(float).eps)


def mark(block: npt.NDArray[Any]) -> int:
    """Return a number that is another one where any entry of a block is, but for a chance of one in 2^32.

    Its words are added as whole numbers modulo 2^64, exact in any order and on any machine: a pass takes a few percent
    longer.  Neighbours that change places, within 4 kB, are not seen; no bound depends on the order of the rows.
    """
    content = np.ascontiguousarray(block).reshape(-1).view(np.uint8)
    whole = len(content) // (8 * WORDS) * 8 * WORDS
    sums = content[:whole].view(np.uint64).reshape(-1, WORDS).sum(axis=1)
    return zlib.crc32(content[whole:].tobytes(), zlib.crc32(sums.tobytes()))


class ChunkMark(NamedTuple):
    """Weighted sums of the columns of a chunk, and the norms of the columns.

    A chunk is computed whenever it is read, perhaps on another machine: it is the same where the sums differ by no more
    than rounding in the type of its entries.
    """

    sums: npt.NDArray[np.float64]  # over its rows, with weights that alternate, (d,)
    norms: npt.NDArray[np.float64]  # (d,), to which the rounding of the sums is in proportion
    eps: float  # the distance of 1 to the next number of the type

    def agrees_with(self, table: Any) -> bool:
        """Whether a chunk that was read again is the same."""
        off = np.abs(weighted_sums(table) - self.sums)
        return bool(np.all(off <= max(32.0 * self.eps, 256.0 * DOUBLE) * self.norms))


def mark_chunk(table: Any) -> ChunkMark:
    """Return what tells whether a chunk is the same when it is read again."""
    if hasattr(table, "toarray"):
        squares = table.astype(np.float64).power(2).sum(axis=0)
    else:
        parts = (np.asarray(table[i : i + HIGH], dtype=np.float64) for i in range(0, len(table), HIGH))
        squares = sum(np.einsum("ij,ij->j", part, part) for part in parts)
    eps = float(np.finfo(table.dtype).eps) if table.dtype.kind == "f" else 0.0
    return ChunkMark(weighted_sums(table), np.sqrt(np.asarray(squares)).ravel(), eps)


def weighted_sums(table: Any) -> npt.NDArray[np.float64]:
    """Return the sums of the columns with weights sin(1), sin(2), ...: rows that change places change them."""
    n, d = table.shape
    weights = np.sin(np.arange(1.0, n + 1.0))
    if scipy.sparse.issparse(table):
        return np.asarray(weights @ table)
    total = np.zeros(d)
    for i in range(0, n, HIGH):
        total += weights[i : i + HIGH] @ np.asarray(table[i : i + HIGH], dtype=np.float64)
    return total


def changed_rows(first: int, stop: int) -> DataError:
    """Return the error that says which rows are not what they were."""
    return DataError(
        f"X changed while it was read: rows {first} to {stop - 1} are not what they were when they were read first; "
        "keep it as it is until all is computed"
    )


# Memory maps


def require_file(table: Any, name: str = "X") -> Any:
    """Return a table; raise DataError where it is, or views, a memory map longer than its file.

    To read it would give zeros, or end the process.  So would a file that is cut off between this look and the reading,
    which therefore follows at once, a block of rows at a time.
    """
    file: Any = table
    while isinstance(file, np.ndarray) and getattr(file, "_mmap", None) is None:
        file = file.base
    if not hasattr(file, "_mmap"):
        return table
    needed = file.offset - file.offset % mmap.ALLOCATIONGRANULARITY + len(file._mmap)
    try:
        size = file._mmap.size()  # of the file itself, whatever its name stands for now
    except (OSError, ValueError):
        return table
    if size < needed:
        raise DataError(
            f"{name} is a map of {file.filename}, which has {size} bytes where {needed} are needed: it was cut off"
        )
    return table
