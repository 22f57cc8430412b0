"""Sparse tables of many columns: centred and scaled without being made dense, as a sparse matrix plus a row."""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array, as_sparse_table, find_constant, require_moderate, warn_constant
from diffrac_cvx.points.streamed import StreamedRows

Mask = npt.NDArray[np.bool_]
Points = Any  # an Array or a `SparseColumns`; both are multiplied by arrays with @


class SparseColumns:
    """The (n, d) matrix S + 1 r': a sparse matrix, and a row that is added to each of its rows.

    Centred columns, their powers, and columns of constants have this form.  It is multiplied by arrays with @, from
    both sides, and its columns and rows are chosen as those of an array.

    Parameters
    ----------
    S : (n, d) sparse array
        Kept by columns.
    r : (d,) array
        The row.
    mean : (d,) array, optional
        What was subtracted from the user's columns; -r by default.
    """

    __array_ufunc__ = None  # an array times this is computed here

    def __init__(self, S: Any, r: Array, mean: Array | None = None) -> None:
        self.S, self.r, self.mean = scipy.sparse.csc_array(S), r, -r if mean is None else mean

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return int(self.S.shape[0]), int(self.S.shape[1])

    def __len__(self) -> int:
        return int(self.S.shape[0])

    @cached_property
    def by_rows(self) -> Any:
        """S by rows."""
        return scipy.sparse.csr_array(self.S)

    def __matmul__(self, U: Any) -> Array:
        if hasattr(U, "toarray"):
            return np.asarray((self.S @ U).toarray() + U.T @ self.r)
        return np.asarray(self.S @ U + self.r @ U)

    def __rmatmul__(self, U: Array) -> Array:
        return np.asarray(U @ self.S + np.multiply.outer(U.sum(axis=-1), self.r))

    @property
    def T(self) -> "Transposed":  # as an array's
        """The transpose."""
        return Transposed(self)

    def __mul__(self, factors: Array) -> "SparseColumns":
        """Return the columns times factors, shape (d,)."""
        return SparseColumns(self.S @ scipy.sparse.diags_array(factors), self.r * factors)

    def __getitem__(self, key: Any) -> "SparseColumns":
        """Return some of the rows, or some of the columns: X[rows] or X[:, columns]."""
        if isinstance(key, tuple):
            _, columns = key
            return SparseColumns(self.S[:, columns], self.r[columns])
        return SparseColumns(self.by_rows[key], self.r)

    def toarray(self) -> Array:
        """Return it as a dense array."""
        return np.asarray(self.S.toarray() + self.r)

    def power(self, p: int) -> "SparseColumns":
        """Return the powers of the entries."""
        powers = self.S.copy()
        at = self.r[np.repeat(np.arange(self.shape[1]), np.diff(self.S.indptr))]
        powers.data = (self.S.data + at) ** p - at**p
        return SparseColumns(powers, self.r**p)

    def mean_squares(self) -> Array:
        """Return the means of the squared entries of the columns, shape (d,), as a sum of positive numbers."""
        counts = np.diff(self.S.indptr)
        at = self.r[np.repeat(np.arange(self.shape[1]), counts)]
        sums = np.zeros(self.shape[1])
        np.add.at(sums, np.repeat(np.arange(self.shape[1]), counts), (self.S.data + at) ** 2)
        return (sums + (len(self) - counts) * self.r**2) / len(self)

    def any(self, axis: int | None = None) -> Mask:
        """Return which columns (axis 0) or rows (axis 1) have an entry that is not zero, or whether there is one."""
        if axis is None:
            return np.asarray(self.any(axis=0).any())
        at = self.r[np.repeat(np.arange(self.shape[1]), np.diff(self.S.indptr))]
        values = self.S.copy()
        values.data = (self.S.data + at != 0.0).astype(np.float64)
        if axis == 0:
            elsewhere = (np.diff(self.S.indptr) < len(self)) & (self.r != 0.0)
            return np.asarray(elsewhere | (values.sum(axis=0) > 0.0))
        stored = self.S.copy()
        stored.data = (at != 0.0).astype(np.float64)
        missing = stored.sum(axis=1) < np.count_nonzero(self.r)  # an entry that is not stored is that of the row
        return np.asarray(missing | (values.sum(axis=1) > 0.0))

    def gram(self, weights: Array, first: Any = slice(None), rest: Any = slice(None)) -> Array:
        """Return sum_i weights_i x_i x_i' between two ranges of columns."""
        weighted = scipy.sparse.csc_array(scipy.sparse.diags_array(weights) @ self.S[:, first])
        sums = weights @ self.S[:, rest]
        found = (weighted.T @ self.S[:, rest]).toarray()
        found += np.outer(self.r[first], sums + weights.sum() * self.r[rest])
        found += np.outer(weighted.sum(axis=0), self.r[rest])
        return np.asarray(found)

    def pair_sums(self, weights: Array, j: Any, k: Any) -> Array:
        """Return sum_i weights_i x_ij x_ik for pairs of columns."""
        left, right = self.S[:, j], self.S[:, k]
        weighted = scipy.sparse.csc_array(scipy.sparse.diags_array(weights) @ left)
        sums = weights @ self.S
        found = np.asarray(weighted.multiply(right).sum(axis=0)).ravel()
        return np.asarray(found + self.r[j] * sums[k] + self.r[k] * (sums[j] + weights.sum() * self.r[j]))

    def beside(self, F: Array) -> "SparseColumns":
        """Return it with the columns of an array to the right; constant ones take no memory."""
        constant = np.ptp(F, axis=0) == 0.0 if F.shape[1] else np.zeros(0, dtype=bool)
        S = scipy.sparse.hstack([self.S, scipy.sparse.csc_array(np.where(constant, 0.0, F))], format="csc")
        return SparseColumns(S, np.append(self.r, np.where(constant, F[0], 0.0)))


class Transposed:
    """The transpose of a `SparseColumns`, to be multiplied by arrays."""

    __array_ufunc__ = None

    def __init__(self, matrix: SparseColumns) -> None:
        self.matrix = matrix

    def __matmul__(self, Y: Array) -> Array:
        return np.asarray(self.matrix.S.T @ Y + np.multiply.outer(self.matrix.r, Y.sum(axis=0)))


def as_shifted(X: Any, *, warn: bool = True, depth: int = 4) -> SparseColumns:
    """Return a sparse matrix, checked and centred as by `as_data`; it is not made dense.

    Raises
    ------
    DataError
        If the table is not usable; the message names the value and the remedy.
    """
    table = scipy.sparse.csc_array(as_sparse_table(X), dtype=np.float64)
    n, d = table.shape
    if n < 2:
        raise DataError("X has one row; clustering needs at least two points")
    bad = ~np.isfinite(table.data)
    if bad.any():
        place = int(np.argmax(bad))
        column = int(np.searchsorted(table.indptr, place, side="right")) - 1
        more = f" (and {int(bad.sum()) - 1} more)" if bad.sum() > 1 else ""
        raise DataError(
            f"X is {table.data[place]} at row {table.indices[place]}, column {column}{more}, counting from 0; "
            "drop or impute such entries"
        )
    counts = np.diff(table.indptr)
    columns = np.repeat(np.arange(d), counts)
    largest = np.zeros(d)
    np.maximum.at(largest, columns, np.abs(table.data))
    require_moderate(largest)
    mean = np.asarray(table.sum(axis=0)).ravel() / n
    rest = np.zeros(d)
    np.add.at(rest, columns, table.data - mean[columns])
    rest = (rest - (n - counts) * mean) / n
    # A column without zeros may be far from them: it is centred itself.  The mean of any other is at most n**0.5 times
    # its standard deviation, so that little is lost where a row is added.
    full = counts == n
    at = full[columns]
    table.data[at] = (table.data[at] - mean[columns[at]]) - rest[columns[at]]
    mean += rest
    r = np.where(full, 0.0, -mean)
    centred = np.abs(r)
    np.maximum.at(centred, columns, np.abs(table.data + r[columns]))
    constant = find_constant(centred, largest, n)
    warn_constant(constant, warn, depth + 1)
    kept = scipy.sparse.diags_array((~constant).astype(np.float64))
    table = scipy.sparse.csc_array(table @ kept)
    table.eliminate_zeros()
    return SparseColumns(table, np.where(constant, 0.0, r), mean)


def with_ones(X: SparseColumns) -> SparseColumns:
    """Return it with a last column of ones."""
    return SparseColumns(
        scipy.sparse.hstack([X.S, scipy.sparse.csc_array((len(X), 1))], format="csc"), np.append(X.r, 1.0)
    )


def sparse_rows(X: SparseColumns, units: Array) -> StreamedRows:
    """Return sparse columns as rows that are read by parts, with their second moments.

    These are summed by blocks of rows, for the rounding of sparse products is not that which `StreamedRows` counts on.
    """
    rows = StreamedRows(X.by_rows, mean=-X.r, rest=np.zeros(X.shape[1]), units=units)
    return replace(rows, gram=replace(rows, units=np.ones(X.shape[1])).second_moment())


def dense_columns(X: Points, columns: Any) -> Array:
    """Return some of the columns as a dense array."""
    chosen = X[:, columns]
    return chosen.toarray() if isinstance(chosen, SparseColumns) else np.asarray(chosen)


def weighted_gram(X: Points, weights: Array) -> Array:
    """Return X' Diag(weights) X."""
    return X.gram(weights) if isinstance(X, SparseColumns) else np.asarray(X.T @ (weights[:, None] * X))


def squared_entries(X: Points) -> Points:
    """Return the squares of the entries."""
    return X.power(2) if isinstance(X, SparseColumns) else np.square(X)


def mean_squares(X: Points) -> Array:
    """Return the means of the squares of the columns' entries, shape (d,)."""
    return X.mean_squares() if isinstance(X, SparseColumns) else np.asarray(np.mean(X**2, axis=0))


def row_of(X: Points) -> Array:
    """Return the row that is added to a sparse matrix; zeros for an array.  Rounding is proportional to it."""
    return X.r if isinstance(X, SparseColumns) else np.zeros(X.shape[1])


def row_sizes(X: Points, units: Array) -> Array:
    """Return what the norms of the rows, columns times units, are not above: in their sparse part and the row alone."""
    if not isinstance(X, SparseColumns):
        return np.asarray(np.sqrt(np.sum((X * units) ** 2, axis=1)))
    squares = np.maximum(X.power(2) @ units**2, 0.0)
    return np.asarray(np.sqrt(squares) + 3.0 * np.linalg.norm(X.r * units))  # |s| + |r| <= |s + r| + 2 |r|


def gram_between(X: Points, weights: Array, first: Any, rest: Any) -> Array:
    """Return sum_i weights_i x_i x_i' between two ranges of columns."""
    if isinstance(X, SparseColumns):
        return X.gram(weights, first, rest)
    return np.asarray(X[:, first].T @ (weights[:, None] * X[:, rest]))
