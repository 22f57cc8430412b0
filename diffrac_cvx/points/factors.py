"""Factors U of V = UU', dense or sparse with few nonzeros per column, and factors F of Y = FF' for large n.

The rows of such an F are computed or read in blocks and never all stored at once.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import LARGE_SIZE, lanczos, principal_columns, row_blocks, times

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Sparse = scipy.sparse.csc_array | scipy.sparse.csr_array
Factor = Array | Sparse

GRAM_BLOCK_ROWS = 512  # rows of UU' that are formed at a time


def is_sparse(U: object) -> "TypeIs[Sparse]":
    return bool(scipy.sparse.issparse(U))


def as_sparse(U: Factor) -> Sparse:
    return U if is_sparse(U) else scipy.sparse.csc_array(U)


def dense(U: Factor) -> Array:
    return np.asarray(U.toarray() if is_sparse(U) else U)


def scale_rows(U: Factor, s: Array) -> Factor:
    """Return Diag(s) U."""
    if is_sparse(U):
        columns = scipy.sparse.csc_array(U)
        return scipy.sparse.csc_array((s[columns.indices] * columns.data, columns.indices, columns.indptr), U.shape)
    return np.asarray(s[:, None] * U)


def scale_both(C: Factor, s: Array) -> Factor:
    """Return Diag(s) C Diag(s) for a symmetric matrix."""
    return scale_rows(scale_rows(C, s).T, s)


def squared_norm(U: Factor) -> float:
    """Return the sum of the squared entries, tr UU'."""
    entries = U.data if is_sparse(U) else U
    return float(np.sum(np.square(entries)))


def diagonal(U: Factor) -> Array:
    """Return the diagonal of UU' without forming UU'."""
    return np.asarray(U.multiply(U).sum(axis=1) if is_sparse(U) else np.sum(np.square(U), axis=1)).ravel()


def row_sums(E: Factor) -> Array:
    """Return the sums of the absolute values of the rows."""
    return np.asarray((abs(E) if is_sparse(E) else np.abs(E)) @ np.ones(E.shape[1]))


def products(X: Array, U: Factor) -> Array:
    """Return X U, shape (n, r)."""
    if not is_sparse(U):
        return times(X, U)
    return np.concatenate([np.asarray(block @ U) for block in row_blocks(X)])


def abs_gram_sum(U: Factor) -> float:
    """Return sum_ij |UU'|_ij without forming a dense UU'."""
    if is_sparse(U):
        return float(abs(U @ U.T).sum())
    U = U[U.any(axis=1)]
    if U.shape[1] == 1:
        return float(np.abs(U).sum()) ** 2
    return float(
        sum(np.abs(times(U[start : start + GRAM_BLOCK_ROWS], U.T)).sum() for start in range(0, len(U), GRAM_BLOCK_ROWS))
    )


def order_columns(U: Factor, rtol: float = 0.0) -> Factor:
    """Return a factor of the same UU' with columns in order of decreasing norm; orthogonal if dense and not large.

    Columns whose squared norm is below rtol times the largest are dropped, except the first.
    """
    if not is_sparse(U) and min(U.shape) <= LARGE_SIZE:
        return principal_columns(U, rtol)
    size = np.asarray(U.multiply(U).sum(axis=0)).ravel() if is_sparse(U) else np.sum(U**2, axis=0)
    order = np.argsort(-size, kind="stable")
    return U[:, order[: max(int(np.sum(size > rtol * size.max(initial=0.0))), 1)]]


def outer_product(G: Factor) -> Array:
    """Return GG' as a dense array; raise ResourceError if it does not fit in memory."""
    size = G.shape[0]
    require_memory(8.0 * size**2, f"a dense {size} x {size} matrix", "use the factor G of the result, V = GG'")
    return np.asarray((G @ G.T).toarray() if is_sparse(G) else G @ G.T)


# Factors of labels


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
