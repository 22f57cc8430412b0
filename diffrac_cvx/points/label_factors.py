"""Factors F of Y = FF' for large n: their rows are computed, or read, in blocks and never stored all at once."""

from abc import ABC, abstractmethod
from functools import cached_property, partial

import numpy as np

from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, dense, order_columns
from diffrac_cvx.points.linear_algebra import LARGE_SIZE, inverse_or_one, lanczos, unit_rows
from diffrac_cvx.points.points import ColumnPoints, Points

FACTOR_REMEDY = "pass the result's `factor` to the rounding functions, which do not form F"


class FactorTable(ABC):
    """Factor F, (n, r), accessible through sums over its rows and products with small matrices."""

    shape: tuple[int, int]

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def mean_and_gram(self) -> tuple[Array, Array]:
        """Return the mean of the rows, shape (r,), and F'F/n."""

    @abstractmethod
    def times(self, W: Array) -> Array:
        """Return F W, shape (n,) or (n, k)."""

    def __matmul__(self, W: Array) -> Array:
        return self.times(W)

    @abstractmethod
    def rmatvec(self, y: Array) -> Array:
        """Return F'y, shape (r,)."""

    def __call__(self) -> Array:
        """Return F as an array; raise ResourceError if it does not fit in memory."""
        require_memory(8.0 * 2 * len(self) * self.shape[1], f"a factor of {self.shape[1]} columns", FACTOR_REMEDY)
        return self.times(np.eye(self.shape[1]))

    def leading(self, k: int, *, centered: bool = False) -> tuple[Array, Array]:
        """Return the k largest eigenvalues of F'F/n, or of the covariance of the rows, and their vectors, (k, r)."""
        values, vectors = np.linalg.eigh(self.gram - np.outer(self.mean, self.mean) if centered else self.gram)
        return values[::-1][:k], np.asarray(vectors[:, ::-1][:, :k].T)

    @cached_property
    def mean(self) -> Array:
        """Mean of the rows, shape (r,)."""
        return self.mean_and_gram()[0]

    @cached_property
    def gram(self) -> Array:
        """F'F/n, shape (r, r)."""
        return self.mean_and_gram()[1]


class StoredFactor(FactorTable):
    """Factor stored in a streamed table."""

    def __init__(self, rows: Points) -> None:
        # The rows are centred when they are read, so their means are added again.
        self.rows, self.means, self.shape = rows, rows.means, rows.shape

    def mean_and_gram(self) -> tuple[Array, Array]:
        return self.means, self.rows.second_moment() + np.outer(self.means, self.means)

    def times(self, W: Array) -> Array:
        return np.asarray(self.rows @ W + self.means @ W)

    def rmatvec(self, y: Array) -> Array:
        return self.rows.rmatvec(y) * len(y) + self.means * float(y.sum())


class LabelsFactor(FactorTable):
    """Rows of X U scaled to unit norm: the factor of the optimal labels' matrix for V = UU' (appendix C.2).

    X has the coordinates of U.  One thread reads it again after the solver has returned; X must not have changed.
    """

    def __init__(self, X: Points, U: Factor) -> None:
        self.X, self.U = X, order_columns(dense(U), rtol=1e-16)
        self.shape = (len(X), int(self.U.shape[1]))

    def mean_and_gram(self) -> tuple[Array, Array]:
        with one_thread():
            total, gram = self.X.add_products(sums_of_unit_rows, self.U)
        return total / len(self), gram / len(self)

    def times(self, W: Array) -> Array:
        with one_thread():
            return self.X.stack_products(partial(unit_rows_times, W), self.U)

    def rmatvec(self, y: Array) -> Array:
        with one_thread():
            (total,) = self.X.add_products(products_of_unit_rows, self.U, y)
        return np.asarray(total)


class SparseLabelsFactor(FactorTable):
    """Unit-norm rows of X U for sparse columns and a sparse factor, so that X U is sparse plus a constant row."""

    def __init__(self, XU: ColumnPoints) -> None:
        self.XU, self.shape = XU, XU.shape
        norms = np.sqrt(np.maximum(XU.squares() @ np.ones(self.shape[1]), 0.0))
        self.zero = norms == 0.0  # such rows become the first unit vector
        self.inverse = np.where(self.zero, 0.0, inverse_or_one(norms))

    def __call__(self) -> Array:
        return unit_rows(super().__call__())

    def times(self, W: Array) -> Array:
        inverse = self.inverse if W.ndim == 1 else self.inverse[:, None]
        return np.asarray(inverse * (self.XU @ W) + np.multiply.outer(self.zero.astype(np.float64), W[0]))

    def rmatvec(self, y: Array) -> Array:
        found = self.XU.rmatvec(self.inverse * y) * len(self)
        found[0] += float(y[self.zero].sum())
        return np.asarray(found)

    def mean_and_gram(self) -> tuple[Array, Array]:
        gram = self.XU.gram(self.inverse**2)
        gram[0, 0] += float(self.zero.sum())
        return self.rmatvec(np.ones(len(self))) / len(self), gram / len(self)

    def leading(self, k: int, *, centered: bool = False) -> tuple[Array, Array]:
        """Return the k largest eigenvalues of F'F/n and their vectors, (k, r), by the Lanczos method if r is large."""
        r = self.shape[1]
        if r <= LARGE_SIZE:
            return super().leading(k, centered=centered)
        mean = self.rmatvec(np.ones(len(self))) / len(self) if centered else np.zeros(r)

        def apply(w: Array) -> Array:
            w = w.ravel()
            return self.rmatvec(self.times(w)) / len(self) - mean * float(mean @ w)

        values, vectors = lanczos(apply, r, k, "LA", tol=0.0)
        return values[::-1], np.asarray(vectors[:, ::-1].T)


def sums_of_unit_rows(XU: Array) -> tuple[Array, Array]:
    """Return the sum and the Gram matrix of the rows scaled to unit norm."""
    F = unit_rows(XU)
    return F.sum(axis=0), F.T @ F


def unit_rows_times(W: Array, XU: Array) -> Array:
    return unit_rows(XU) @ W


def products_of_unit_rows(XU: Array, y: Array) -> tuple[Array]:
    return (unit_rows(XU).T @ y,)
