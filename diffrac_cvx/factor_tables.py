"""The factor F of Y = FF' where n is large: its rows are made, or read, by blocks, and never kept all at once."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from diffrac_cvx.errors import DataError
from diffrac_cvx.factors import Factor, order_columns
from diffrac_cvx.inputs import Array
from diffrac_cvx.linalg import one_thread, row_products, unit_rows
from diffrac_cvx.memory import require_memory
from diffrac_cvx.rows import BLOCK, Poll, Rows, do_nothing
from diffrac_cvx.shifted import Shifted

CHANGED = "X has changed since this result was found, and F is made of it when first read; keep X"
FEWER = "the roundings take F without making it: pass them the result's `factor`"


class FactorTable(ABC):
    """A factor F, shape (n, r), of which sums over the rows and products with small matrices can be asked for."""

    shape: tuple[int, int]

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def sums(self) -> tuple[Array, Array]:
        """Return the mean of the rows, shape (r,), and F'F/n."""

    @abstractmethod
    def times(self, W: Array) -> Array:
        """Return F W, shape (n,) or (n, k)."""

    @abstractmethod
    def products_with(self, y: Array) -> Array:
        """Return F'y, shape (r,)."""

    @cached_property
    def mean(self) -> Array:
        """Mean of the rows, shape (r,)."""
        return self.sums()[0]

    @cached_property
    def gram(self) -> Array:
        """F'F/n, shape (r, r)."""
        return self.sums()[1]


class StoredFactor(FactorTable):
    """A factor in a table that is read by parts."""

    def __init__(self, rows: Rows) -> None:
        # The rows are centred when they are read: what is taken off is added again.
        self.rows, self.taken = rows, rows.mean + rows.rest
        self.shape = (len(rows), rows.shape[1])

    def sums(self) -> tuple[Array, Array]:
        """Return the mean of the rows, shape (r,), and F'F/n."""
        return self.taken, self.rows.in_centred.second_moment() + np.outer(self.taken, self.taken)

    def times(self, W: Array) -> Array:
        """Return F W, shape (n,) or (n, k)."""
        return np.asarray(self.rows.in_centred @ W + self.taken @ W)

    def products_with(self, y: Array) -> Array:
        """Return F'y, shape (r,)."""
        return self.rows.in_centred.products_with(y) * len(y) + self.taken * float(y.sum())


class LabelsFactor(FactorTable):
    """The rows of X U at unit norm: the optimal labels' factor for V = UU' (appendix C.2).

    Parameters
    ----------
    X : Rows or Shifted
        The data, in the coordinates of U.
    U : (D, r) array or sparse array
        Factor of V, at its best scale.
    gain : float
        mean sqrt(x_i'UU'x_i), by which it is seen whether X has changed.
    """

    def __init__(self, X: Any, U: Factor, gain: float) -> None:
        self.X, self.U, self.gain = X, order_columns(U, rtol=1e-16), gain
        self.shape = (len(X), int(self.U.shape[1]))

    def __call__(self) -> Array:
        """Return F as an array.

        Raises
        ------
        DataError
            If the user's table has changed since the point was found.
        ResourceError
            If F does not fit in memory.
        """
        require_memory(8.0 * 2 * len(self) * self.shape[1], f"a factor of {self.shape[1]} columns", FEWER)
        return self.times(np.eye(self.shape[1]))

    def sums(self) -> tuple[Array, Array]:
        """Return the mean of the rows, shape (r,), and F'F/n."""
        gain, total, gram = self.over_rows(factor_sums)
        self.check(gain)
        return total / len(self), gram / len(self)

    def times(self, W: Array) -> Array:
        """Return F W, shape (n,) or (n, k)."""
        found = self.each(factor_times, W if W.ndim == 2 else W[:, None])
        self.check(sum(gain for gain, _ in found))
        FW = np.concatenate([part for _, part in found])
        return FW if W.ndim == 2 else FW[:, 0]

    def products_with(self, y: Array) -> Array:
        """Return F'y, shape (r,)."""
        _, total = self.over_rows(factor_products, aligned=(y,))
        return np.asarray(total)

    def check(self, gain: float) -> None:
        """Raise DataError where the data are not those of which the factor was found."""
        if abs(gain / len(self) - self.gain) > 1e-9:
            raise DataError(CHANGED)

    def each(self, function: Any, *arguments: Any, aligned: tuple[Array, ...] = ()) -> list[Any]:
        """Return what a function gives of the parts of X U."""
        with one_thread():  # this runs after the solver has returned
            if isinstance(self.X, Shifted):
                return [function(ShiftedPart(self.X), do_nothing, self.U, *arguments, *aligned)]
            return self.X.in_centred.each(
                function, self.X.transform @ self.U, *arguments, aligned=aligned, poll=do_nothing
            )

    def over_rows(self, function: Any, *arguments: Any, aligned: tuple[Array, ...] = ()) -> tuple[Any, ...]:
        """Return the sums of what a function gives of the parts of X U."""
        if isinstance(self.X, Shifted):
            return tuple(self.each(function, *arguments, aligned=aligned)[0])
        with one_thread():
            T = self.X.transform @ self.U
            return tuple(self.X.in_centred.total(function, T, *arguments, aligned=aligned, poll=do_nothing))


class ShiftedPart:
    """Sparse columns as the only part of themselves."""

    def __init__(self, X: Shifted) -> None:
        self.X = X

    def __len__(self) -> int:
        return len(self.X)

    def centred_blocks(self) -> Any:
        """Yield blocks of rows."""
        for start in range(0, len(self.X), BLOCK):
            yield self.X[start : start + BLOCK]


def factor_sums(part: Any, poll: Poll, T: Factor) -> tuple[float, Array, Array]:
    """Return the sums of the norms of the rows of X T, of these at unit norm, and of the products of the latter."""
    r = T.shape[1]
    gain, total, gram = 0.0, np.zeros(r), np.zeros((r, r))
    for block in part.centred_blocks():
        poll()
        XT = np.asarray(block @ T)
        gain += float(np.sqrt(row_products(XT, XT)).sum())
        F = unit_rows(XT)
        total += F.sum(axis=0)
        gram += F.T @ F
    return gain, total, gram


def factor_times(part: Any, poll: Poll, T: Factor, W: Array) -> tuple[float, Array]:
    """Return the sum of the norms of the rows of X T, and these rows at unit norm times W."""
    gain, found, start = 0.0, np.empty((len(part), W.shape[1])), 0
    for block in part.centred_blocks():
        poll()
        XT = np.asarray(block @ T)
        gain += float(np.sqrt(row_products(XT, XT)).sum())
        np.matmul(unit_rows(XT), W, out=found[start : start + len(XT)])
        start += len(XT)
    return gain, found


def factor_products(part: Any, poll: Poll, T: Factor, y: Array) -> tuple[float, Array]:
    """Return nothing, and the sum of the rows of X T at unit norm times y_i."""
    total, start = np.zeros(T.shape[1]), 0
    for block in part.centred_blocks():
        poll()
        F = unit_rows(np.asarray(block @ T))
        total += F.T @ y[start : start + len(F)]
        start += len(F)
    return 0.0, total
