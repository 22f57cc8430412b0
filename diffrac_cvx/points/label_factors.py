"""The factor F of Y = FF' where n is large: its rows are made, or read, by blocks, and never kept all at once."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse.linalg

from diffrac_cvx.machine import time_budget
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, dense, order_columns
from diffrac_cvx.points.linear_algebra import inverse_or_one, unit_rows

Poll = Callable[[], None]
DENSE = 400  # columns from which on a few eigenvectors are computed, and not all
FEWER = "the roundings take F without making it: pass them the result's `factor`"


class Part(Protocol):
    """Rows of a table that are read by parts, or one of the parts: what is asked of them here."""

    def __len__(self) -> int:
        """How many rows there are."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n, D)."""

    @property
    def transform(self) -> Array:
        """From centred columns to the matrix."""

    @property
    def in_centred(self) -> "Part":
        """The rows in their centred columns."""

    @property
    def taken(self) -> Array:
        """What was taken off the columns."""

    def centred_blocks(self) -> Iterator[Array]:
        """Yield the centred rows by blocks."""

    def map_parts(self, function: Any, *arguments: Any, aligned: tuple[Array, ...] = (), poll: Poll) -> list[Any]:
        """Return what a function gives of the parts."""

    def sum_parts(self, function: Any, *arguments: Any, aligned: tuple[Array, ...] = (), poll: Poll) -> Any:
        """Return the sum of what a function gives of the parts."""

    def second_moment(self) -> Array:
        """Return X'X/n."""

    def products_with(self, Y: Array) -> Array:
        """Return X'Y/n."""

    def __matmul__(self, U: Array) -> Array:
        """Return X U."""


class Products(Protocol):
    """Products X U of points with a sparse factor: what is asked of them here."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n, r)."""

    def squares(self) -> "Products":
        """Return the squared entries."""

    def __matmul__(self, U: Array) -> Array:
        """Return the products times U."""

    def products_with(self, Y: Array) -> Array:
        """Return their transpose times Y, over n."""

    def gram(self, weights: Array) -> Array:
        """Return the weighted sum of the squares and products of their columns."""


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

    def __matmul__(self, W: Array) -> Array:
        return self.times(W)

    @abstractmethod
    def products_with(self, y: Array) -> Array:
        """Return F'y, shape (r,)."""

    def leading(self, k: int, *, centred: bool = False) -> tuple[Array, Array]:
        """Return the k largest eigenvalues of F'F/n, or of the rows less their mean, and their vectors, (k, r)."""
        values, vectors = np.linalg.eigh(self.gram - np.outer(self.mean, self.mean) if centred else self.gram)
        return values[::-1][:k], np.asarray(vectors[:, ::-1][:, :k].T)

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

    def __init__(self, rows: Part) -> None:
        # The rows are centred when they are read: what is taken off is added again.
        self.rows, self.taken = rows, rows.taken
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
    X : Part
        The data, in the coordinates of U.
    U : (D, r) array
        Factor of V.
    """

    def __init__(self, X: Part, U: Factor) -> None:
        self.X, self.U = X, order_columns(dense(U), rtol=1e-16)
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
        total, gram = self.over_rows(factor_sums)
        return total / len(self), gram / len(self)

    def times(self, W: Array) -> Array:
        """Return F W, shape (n,) or (n, k)."""
        FW = np.concatenate(self.each(factor_times, W if W.ndim == 2 else W[:, None]))
        return FW if W.ndim == 2 else FW[:, 0]

    def products_with(self, y: Array) -> Array:
        """Return F'y, shape (r,)."""
        (total,) = self.over_rows(factor_products, aligned=(y,))
        return np.asarray(total)

    def each(self, function: Any, *arguments: Any, aligned: tuple[Array, ...] = ()) -> list[Any]:
        """Return what a function gives of the parts of X U."""
        with one_thread():  # this runs after the solver has returned
            return self.X.in_centred.map_parts(
                function, self.X.transform @ self.U, *arguments, aligned=aligned, poll=time_budget.poll
            )

    def over_rows(self, function: Any, *arguments: Any, aligned: tuple[Array, ...] = ()) -> tuple[Any, ...]:
        """Return the sums of what a function gives of the parts of X U."""
        with one_thread():
            T = self.X.transform @ self.U
            return tuple(self.X.in_centred.sum_parts(function, T, *arguments, aligned=aligned, poll=time_budget.poll))


class SparseLabelsFactor(FactorTable):
    """The same of sparse columns and a sparse factor, which may have thousands of columns: X U is sparse but for a row.

    Parameters
    ----------
    XU : Products
        The products.
    """

    def __init__(self, XU: Products) -> None:
        self.XU, self.shape = XU, XU.shape
        norms = np.sqrt(np.maximum(XU.squares() @ np.ones(self.shape[1]), 0.0))
        self.zero = norms == 0.0  # such a row is the first unit vector
        self.inverse = np.where(self.zero, 0.0, inverse_or_one(norms))

    def __call__(self) -> Array:
        """Return F as an array.

        Raises
        ------
        ResourceError
            If it does not fit in memory.
        """
        require_memory(8.0 * 2 * len(self) * self.shape[1], f"a factor of {self.shape[1]} columns", FEWER)
        return unit_rows(self.times(np.eye(self.shape[1])))

    def times(self, W: Array) -> Array:
        """Return F W, shape (n,) or (n, k)."""
        inverse = self.inverse if W.ndim == 1 else self.inverse[:, None]
        return np.asarray(inverse * (self.XU @ W) + np.multiply.outer(self.zero.astype(np.float64), W[0]))

    def products_with(self, y: Array) -> Array:
        """Return F'y, shape (r,)."""
        found = self.XU.products_with(self.inverse * y) * len(self)
        found[0] += float(y[self.zero].sum())
        return np.asarray(found)

    def sums(self) -> tuple[Array, Array]:
        """Return the mean of the rows, shape (r,), and F'F/n."""
        gram = self.XU.gram(self.inverse**2)
        gram[0, 0] += float(self.zero.sum())
        return self.products_with(np.ones(len(self))) / len(self), gram / len(self)

    def leading(self, k: int, *, centred: bool = False) -> tuple[Array, Array]:
        """Return the k largest eigenvalues of F'F/n and their vectors, (k, r), by Lanczos steps where r is large."""
        r = self.shape[1]
        if r <= DENSE:
            return super().leading(k, centred=centred)
        mean = self.products_with(np.ones(len(self))) / len(self) if centred else np.zeros(r)

        def apply(w: Array) -> Array:
            w = w.ravel()
            return self.products_with(self.times(w)) / len(self) - mean * float(mean @ w)

        operator = scipy.sparse.linalg.LinearOperator((r, r), matvec=apply, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(r)
        values, vectors = scipy.sparse.linalg.eigsh(operator, k=k, which="LA", v0=start)
        return values[::-1], np.asarray(vectors[:, ::-1].T)


def factor_sums(part: Part, poll: Poll, T: Factor) -> tuple[Array, Array]:
    """Return the sums of the rows of X T at unit norm, and of their products."""
    r = T.shape[1]
    total, gram = np.zeros(r), np.zeros((r, r))
    for block in part.centred_blocks():
        poll()
        F = unit_rows(np.asarray(block @ T))
        total += F.sum(axis=0)
        gram += F.T @ F
    return total, gram


def factor_times(part: Part, poll: Poll, T: Factor, W: Array) -> Array:
    """Return the rows of X T at unit norm times W."""
    found, start = np.empty((len(part), W.shape[1])), 0
    for block in part.centred_blocks():
        poll()
        np.matmul(unit_rows(np.asarray(block @ T)), W, out=found[start : start + len(block)])
        start += len(block)
    return found


def factor_products(part: Part, poll: Poll, T: Factor, y: Array) -> tuple[Array]:
    """Return the sum of the rows of X T at unit norm times y_i."""
    total, start = np.zeros(T.shape[1]), 0
    for block in part.centred_blocks():
        poll()
        F = unit_rows(np.asarray(block @ T))
        total += F.T @ y[start : start + len(F)]
        start += len(F)
    return (total,)
