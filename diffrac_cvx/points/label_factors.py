"""Factors F of Y = FF' for large n: their rows are computed, or read, in blocks and never stored all at once."""

from abc import ABC, abstractmethod

import numpy as np
import scipy.sparse

from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, Sparse, dense, order_columns
from diffrac_cvx.points.linear_algebra import LARGE_SIZE, inverse_or_one, lanczos, unit_rows
from diffrac_cvx.points.points import Points


class FactorTable(ABC):
    """Factor F, (n, r), accessible through its products with vectors and small matrices."""

    shape: tuple[int, int]

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def __matmul__(self, W: Array) -> Array:
        """Return F W, shape (n,) or (n, k)."""

    @abstractmethod
    def rmatvec(self, y: Array) -> Array:
        """Return F'y, shape (r,)."""

    @abstractmethod
    def gram(self) -> Array:
        """Return F'F/n, shape (r, r)."""

    def __call__(self) -> Array:
        """Return F as an array; raise ResourceError if it does not fit in memory."""
        remedy = "pass the result's `factor` to the rounding functions, which do not form F"
        require_memory(8.0 * 2 * len(self) * self.shape[1], f"a factor of {self.shape[1]} columns", remedy)
        return self @ np.eye(self.shape[1])

    def leading(self, k: int, *, centered: bool = False) -> tuple[Array, Array]:
        """Return the k largest eigenvalues of F'F/n, or of the covariance of the rows, and their vectors, (k, r)."""
        r = self.shape[1]
        mean = self.rmatvec(np.ones(len(self))) / len(self) if centered else np.zeros(r)
        if r <= LARGE_SIZE:
            values, vectors = np.linalg.eigh(self.gram() - np.outer(mean, mean))
        else:
            values, vectors = lanczos(
                lambda w: self.rmatvec(self @ w) / len(self) - mean * float(mean @ w), r, k, "LA", tol=0.0
            )
        return values[::-1][:k], np.asarray(vectors[:, ::-1][:, :k].T)


class LabelsFactor(FactorTable):
    """Rows of X U scaled to unit norm: the factor of the optimal labels' matrix for V = UU' (appendix C.2).

    X has the coordinates of U.  One thread reads it again after the solver has returned; X must not have changed.
    """

    def __init__(self, X: Points, U: Factor) -> None:
        self.X, self.U = X, order_columns(dense(U), rtol=1e-16)
        self.shape = (len(X), int(self.U.shape[1]))

    def __matmul__(self, W: Array) -> Array:
        with one_thread():
            return self.X.stack_products(lambda XU: unit_rows(XU) @ W, self.U)

    def rmatvec(self, y: Array) -> Array:
        with one_thread():
            (total,) = self.X.add_products(lambda XU, y: (unit_rows(XU).T @ y,), self.U, y)
        return np.asarray(total)

    def gram(self) -> Array:
        with one_thread():
            (total,) = self.X.add_products(lambda XU: (unit_rows(XU).T @ unit_rows(XU),), self.U)
        return np.asarray(total) / len(self)


class SparseLabelsFactor(FactorTable):
    """Unit-norm rows of S + 1 r', which are those of X U for sparse columns and a sparse factor."""

    def __init__(self, S: Sparse, r: Array, norms: Array) -> None:
        zero, n = norms == 0.0, len(norms)  # such rows become the first unit vector
        self.shape, self.r = (n, len(r)), r
        self.inverse = np.where(zero, 0.0, inverse_or_one(norms))
        first = (np.flatnonzero(zero), np.zeros(zero.sum(), dtype=int))
        units = scipy.sparse.csr_array((np.ones(zero.sum()), first), self.shape)
        self.S = scipy.sparse.csr_array(scipy.sparse.diags_array(self.inverse) @ S + units)

    def __call__(self) -> Array:
        return unit_rows(super().__call__())

    def __matmul__(self, W: Array) -> Array:
        return np.asarray(self.S @ W + np.multiply.outer(self.inverse, self.r @ W))

    def rmatvec(self, y: Array) -> Array:
        return np.asarray(self.S.T @ y + self.r * float(self.inverse @ y))

    def gram(self) -> Array:
        cross = np.outer(self.S.T @ self.inverse, self.r)
        found = (self.S.T @ self.S).toarray() + cross + cross.T
        return np.asarray(found + np.outer(self.r, self.r) * float(self.inverse @ self.inverse)) / len(self)
