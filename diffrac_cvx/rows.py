"""Many rows: the user's table as it is, centred and scaled block by block when it is read, without a copy."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError
from diffrac_cvx.inputs import Array, as_table, find_constant, require_finite, require_moderate, warn_constant

BLOCK = 2000  # rows at a time, so that what is computed from them stays in the cache

Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Rows:
    """Hold the (n, D) matrix [(table - mean - rest) * units, offset] @ basis as the table and the change of it.

    Attributes
    ----------
    table : (n, d) array
        As the user gave it; it must not change while it is in use.
    mean, rest : (d,) arrays
        The mean of the columns, and the mean of what is left after it is subtracted.
    units : (d,) array
        Factors of the centred columns; 0 for constant columns.
    offset : float
        Entry of a last column of constants; 0 where there is no such column.
    basis : (d or d + 1, D) array, optional
        Change of coordinates; None for the identity.
    gram: (d, d) array, optional
        Mean of the squares and products of the centred columns, where it is known.
    threads : int
        How many may read the rows at the same time.
    """

    table: npt.NDArray[np.number]
    mean: Array
    rest: Array
    units: Array
    offset: float = 0.0
    basis: Array | None = None
    gram: Array | None = None
    threads: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        """(n, D)."""
        columns = self.table.shape[1] + int(self.offset > 0.0) if self.basis is None else self.basis.shape[1]
        return len(self.table), columns

    def __len__(self) -> int:
        return len(self.table)

    def centred_blocks(self) -> Iterator[Array]:
        """Yield the centred columns and, where there is an offset, ones, by blocks of rows; a block is overwritten.

        The matrix is these times ``transform``.
        """
        n, d = self.table.shape
        buffer = np.ones((min(BLOCK, n), d + int(self.offset > 0.0)))
        again = bool(self.rest.any())
        for start in range(0, n, BLOCK):
            block = buffer[: min(BLOCK, n - start)]
            features = block[:, :d]
            np.subtract(self.table[start : start + BLOCK], self.mean, out=features)
            if again:
                features -= self.rest
            yield block

    def parts(self) -> list["Rows"]:
        """Return the rows in as many parts as there are threads."""
        size = -(-len(self) // self.threads)
        return [replace(self, table=self.table[i : i + size], threads=1) for i in range(0, len(self), size)]

    @property
    def transform(self) -> Array:
        """From centred columns to the matrix, shape (d or d + 1, D)."""
        factors = np.append(self.units, self.offset) if self.offset > 0.0 else self.units
        return np.diag(factors) if self.basis is None else factors[:, None] * self.basis

    def blocks(self) -> Iterator[Array]:
        """Yield the matrix by blocks of rows."""
        factors = np.append(self.units, self.offset) if self.offset > 0.0 else self.units
        for block in self.centred_blocks():
            scaled = block * factors
            yield scaled if self.basis is None else scaled @ self.basis

    def take(self, chosen: Indices) -> Array:
        """Return the rows chosen, as an array."""
        part = replace(self, table=self.table[chosen])
        return np.concatenate(list(part.blocks()))

    def in_basis(self, basis: Array) -> "Rows":
        """Return the matrix times another basis, without computing it."""
        return replace(self, basis=basis if self.basis is None else self.basis @ basis)

    def __matmul__(self, U: Array) -> Array:
        """Return the matrix times U, shape (n, r)."""
        T = self.transform @ U
        found = np.empty((len(self), U.shape[1]))
        for start, block in zip(range(0, len(self), BLOCK), self.centred_blocks(), strict=True):
            np.matmul(block, T, out=found[start : start + BLOCK])
        return found

    def second_moment(self) -> Array:
        """Return X'X/n, shape (D, D)."""
        d = self.table.shape[1]
        gram = np.zeros((d, d)) if self.gram is None else self.gram
        if self.gram is None:
            for block in replace(self, offset=0.0).centred_blocks():
                gram += block.T @ block / len(self)
        if self.offset > 0.0:
            gram = np.pad(gram, (0, 1))
            gram[-1, -1] = 1.0
        T = self.transform
        return T.T @ gram @ T

    def zero_rows(self) -> Mask:
        """Return which rows are zero, shape (n,)."""
        if self.offset > 0.0:
            return np.zeros(len(self), dtype=bool)
        used = self.units > 0.0
        return np.concatenate([~block[:, used].any(axis=1) for block in self.centred_blocks()])

    def any(self) -> bool:
        """Whether any column is not constant."""
        return bool(self.units.any())

    def array(self) -> Array:
        """Return the matrix as an array, where a copy of its size is needed."""
        found = np.empty(self.shape)
        for start, block in zip(range(0, len(self), BLOCK), self.blocks(), strict=True):
            found[start : start + BLOCK] = block
        return found


def as_rows(X: npt.ArrayLike, *, threads: int = 1, warn: bool = True, depth: int = 4) -> Rows:
    """Return a table of many rows, checked and centred as by `as_data`; it is read twice.

    A numeric array is not copied, whatever its type.

    Raises
    ------
    DataError
        If the table is not usable; the message names the value and the remedy.
    """
    table = as_table(X)
    n, d = table.shape
    if n < 2:
        raise DataError("X has one row; clustering needs at least two points")
    smallest, largest, total = np.full(d, np.inf), np.full(d, -np.inf), np.zeros(d)
    for start in range(0, n, BLOCK):
        block = table[start : start + BLOCK]
        np.minimum(smallest, block.min(axis=0), out=smallest)
        np.maximum(largest, block.max(axis=0), out=largest)
        total += block.sum(axis=0, dtype=np.float64)
    if not (np.isfinite(smallest).all() and np.isfinite(largest).all()):
        require_finite(np.asarray(table), "X")
    size = np.maximum(np.abs(smallest), np.abs(largest))
    require_moderate(size)
    rows = Rows(table, mean=total / n, rest=np.zeros(d), units=np.ones(d), threads=threads)
    gram, rest = np.zeros((d, d)), np.zeros(d)
    for block in rows.centred_blocks():
        gram += block.T @ block
        rest += block.sum(axis=0)
    gram, rest = gram / n, rest / n
    gram -= np.outer(rest, rest)
    # What is left is mostly the rounding of the mean; where it cannot be seen, it is not subtracted again.
    rest[np.abs(rest) <= 1e-14 * np.sqrt(np.diag(gram))] = 0.0
    mean = rows.mean + rest
    constant = find_constant(np.maximum(largest - mean, mean - smallest), size, n)
    warn_constant(constant, warn, depth + 1)
    return replace(rows, rest=rest, units=np.where(constant, 0.0, 1.0), gram=gram)
