"""Linear algebra shared by the whole package."""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

from diffrac_cvx.machine.deadlines import FLOPS_PER_SECOND, check_deadline, is_late
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.machine.work import count_work
from diffrac_cvx.points.checks import Array, rounding_floor

BLOCK_ROWS = 2000  # rows of a block, so that its intermediate results stay in the cache
RANK_FACTOR = 8.0  # times the size and eps: relative singular values below are zero
SMALL_RIDGE = 1e-4  # a_j relative to the norm of (X_j, a_j), below which the ridge is small
RidgeWhitener = tuple[Array, float, float]  # see `whitener_with_ridge`
End = Literal["LA", "SA"]  # largest or smallest eigenvalues
GESVD_SIZE = 100  # columns up to which the driver gesvd, which does not fail, computes singular vectors
LARGE_SIZE = 1000  # rows of a square matrix; above it, a decomposition takes a second or more
ROUGH_RTOL = 1e-3  # relative error of singular values after the deadline
EPS = float(np.finfo(float).eps)


def row_blocks(X: Array) -> Iterator[Array]:
    """Yield a matrix in blocks of rows, without a copy, and check the deadline before each."""
    for start in range(0, len(X), BLOCK_ROWS):
        check_deadline()
        yield X[start : start + BLOCK_ROWS]


def weighted_gram(X: Array, u: Array) -> Array:
    """Return M(u) = X' Diag(u) X / n."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for block, weights in zip(row_blocks(X), row_blocks(u), strict=True):
        total += times(block.T, weights[:, None] * block)
    return total / len(X)


def row_products(X: Array, Y: Array) -> Array:
    """Return x_i'y_i of all rows, shape (n,)."""
    return np.asarray(np.einsum("ij,ij->i", X, Y))


def symmetric(M: Array) -> Array:
    return (M + M.T) / 2


def times(A: Array, B: Array) -> Array:
    """Return A B, in blocks of rows that take a second at most if the product is large."""
    size = max(int(FLOPS_PER_SECOND / (2.0 * A.shape[1] * max(B.shape[1], 1) + 1.0)), 16)
    count_work(2.0 * len(A) * B.size)
    if len(A) <= size or scipy.sparse.issparse(B):
        check_deadline()
        return np.asarray(A @ B)
    product = np.empty((len(A), B.shape[1]))
    for start in range(0, len(A), size):
        check_deadline()
        np.matmul(A[start : start + size], B, out=product[start : start + size])
    return product


def upper_gram(F: Array) -> Array:
    """Return F F' on and above the diagonal, and zeros below, where a copy can take longer than the product."""
    return np.asarray(scipy.linalg.blas.dsyrk(1.0, F.T, trans=1, lower=1).T)


def mirrored_times(T: Array, F: Array) -> Array:
    """Return (T + T') F for upper triangular T, of which no mirror image is formed."""
    product = scipy.linalg.blas.dsymm(1.0, T.T, F.T, side=1, lower=1).T
    return np.asarray(product + T.diagonal()[:, None] * F)


def psd_factor(M: Array, rtol: float = 0.0) -> Array:
    """Return U with U U' the projection of M onto the cone of positive semidefinite matrices.

    Columns are in order of decreasing eigenvalue; those below rtol times the largest are dropped, except the first.  If
    M is large and positive semidefinite, U is a pivoted Cholesky factor; if it is large and indefinite, U has only the
    principal columns when time is short.
    """
    M = symmetric(M)
    if len(M) > LARGE_SIZE:
        U = pivoted_factor(M)
        if U is not None:
            return U
        if is_late(10.0 * float(len(M)) ** 3):
            values, vectors = lanczos(M.dot, len(M), 60, "LA", ROUGH_RTOL)  # a full decomposition would take too long
            return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1])
    values, vectors = eigh(M)
    keep = values > max(rtol * values[-1], 0.0)
    keep[-1] = True
    return np.asarray((vectors[:, keep] * np.sqrt(np.maximum(values[keep], 0.0)))[:, ::-1])


def pivoted_factor(M: Array) -> Array | None:
    """Return U with U U' = M up to rounding, by Cholesky's method with pivoting; None if M is indefinite."""
    check_deadline()
    rounding = len(M) * EPS * max(float(np.diag(M).max()), 0.0)
    L, order, rank, _ = scipy.linalg.lapack.dpstrf(M, tol=rounding, lower=1)
    count_work(float(len(M)) * rank**2)
    U = np.zeros((len(M), rank))
    U[order - 1] = np.tril(L)[:, :rank]
    blocks = zip(row_blocks(M), row_blocks(U), strict=True)
    return U if rank and all(np.abs(rows - part @ U.T).max() <= 8 * rounding for rows, part in blocks) else None


def eigh(M: Array) -> tuple[Array, Array]:
    """Return eigenvalues, increasing, and eigenvectors in one call, started only if enough time is left."""
    count_work(25.0 * float(len(M)) ** 3)
    if len(M) > LARGE_SIZE:
        check_deadline(10.0 * float(len(M)) ** 3)
    values, vectors = np.linalg.eigh(M)
    return values, vectors


def eigvalsh(M: Array) -> Array:
    """Return the eigenvalues, increasing, of a symmetric matrix."""
    count_work(8.0 * float(len(M)) ** 3)
    return np.asarray(np.linalg.eigvalsh(M))


def lanczos(product: Callable[[Array], Array], size: int, k: int, which: End, tol: float) -> tuple[Array, Array]:
    """Return the k eigenpairs of a symmetric operator that converge in the Lanczos method, in increasing order."""

    def checked_product(x: Array) -> Array:
        check_deadline()
        count_work(2.0 * float(size) ** 2)
        return product(x)

    operator = scipy.sparse.linalg.LinearOperator((size, size), matvec=checked_product, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    try:
        values, vectors = scipy.sparse.linalg.eigsh(operator, k=min(k, size - 1), which=which, v0=start, tol=tol)
    except scipy.sparse.linalg.ArpackNoConvergence as failure:
        values, vectors = np.asarray(failure.eigenvalues, float), np.asarray(failure.eigenvectors, float)
    except scipy.sparse.linalg.ArpackError:  # zero matrix: all vectors are eigenvectors
        values, vectors = np.zeros(0), np.zeros((size, 0))
    if not len(values):
        unit = start / np.linalg.norm(start)
        return np.array([unit @ product(unit)]), unit[:, None]
    order = np.argsort(values)
    return np.asarray(values[order]), np.asarray(vectors[:, order])


def cholesky(M: Array) -> Array:
    """Return lower triangular L with L L' = M; raise LinAlgError if M is not definite."""
    check_deadline(float(len(M)) ** 3 / 3.0)
    count_work(float(len(M)) ** 3)
    return np.asarray(np.linalg.cholesky(M))


def solve_lower(L: Array, B: Array, *, transposed: bool = False) -> Array:
    """Return L^-1 B, or L'^-1 B, for a lower triangular matrix."""
    count_work(1.5 * len(L) * B.size)
    return np.asarray(
        scipy.linalg.solve_triangular(L, B, lower=True, trans="T" if transposed else "N", check_finite=False)
    )


def inverse_triangular(L: Array) -> Array:
    """Return the inverse of a lower triangular matrix."""
    check_deadline(float(len(L)) ** 3)
    return solve_lower(L, np.eye(len(L)))


def inverse_of_positive(M: Array) -> Array:
    """Return the inverse of a positive definite matrix."""
    check_deadline(2.0 * float(len(M)) ** 3)
    count_work(3.0 * float(len(M)) ** 3)
    return np.asarray(scipy.linalg.inv(M, check_finite=False))


def principal_columns(U: Array, rtol: float = 0.0) -> Array:
    """Return a factor with the same U U' and orthogonal columns, largest first.

    Columns whose squared norm is below rtol times the largest are dropped, except the first.
    """
    if U.size == 0:
        return np.zeros((len(U), 1))
    left, singular = left_singular(U)
    keep = singular**2 > rtol * singular[0] ** 2
    keep[0] = True
    return np.asarray(left[:, keep] * singular[keep])


def left_singular(U: Array) -> tuple[Array, Array]:
    """Return the left singular vectors and the singular values, largest first."""
    count_work(30.0 * max(U.shape) * float(min(U.shape)) ** 2)
    check_deadline(20.0 * max(U.shape) * float(min(U.shape)) ** 2 if min(U.shape) > LARGE_SIZE else 0.0)
    if min(U.shape) > GESVD_SIZE:
        # Divide and conquer (gesdd): 20 times faster at 1500 columns, and it releases the interpreter lock.
        with contextlib.suppress(np.linalg.LinAlgError):
            left, singular, _ = np.linalg.svd(U, full_matrices=False)
            return left, singular
    left, singular, _ = scipy.linalg.svd(U, full_matrices=False, lapack_driver="gesvd")
    return left, singular


def leading_right_vectors(F: Array, k: int) -> Array:
    """Return the k leading right singular vectors of a large matrix as rows, by the Lanczos method; 0 if F = 0."""
    r = F.shape[1]
    vectors = lanczos(lambda x: F.T @ (F @ x), r, k, "LA", ROUGH_RTOL if is_late() else 0.0)[1]
    basis = np.linalg.qr(vectors)[0]  # if the rank is below k, the remaining vectors are not orthogonal
    found = np.linalg.svd(F @ basis, full_matrices=False)[2] @ basis.T
    return np.vstack([found, np.zeros((k - len(found), r))])


def triangular_root(M: Array) -> Array:
    """Return upper triangular R with R'R = M'M, shape (d, d) even if M has fewer rows than columns."""
    d = M.shape[1]
    square = np.zeros((d, d))
    if M.size:  # SciPy returns a square Q for a matrix without columns
        (R,) = scipy.linalg.qr(M, mode="r", overwrite_a=False, check_finite=False)
        square[: min(len(R), d)] = R[:d]
    return square


def whitener(M: Array, *, full_rank: bool = True) -> Array:
    """Return W, shape (D, r), with (M W)'(M W) = I, for M with columns of comparable norm.

    If M is large and well conditioned, W is the inverse of a Cholesky factor.  Otherwise r is the numerical rank of M
    or, for ``full_rank``, the number of its nonzero columns, all of which are used: if M is so ill conditioned that
    rounding dominates W, the error bounds of W are large too.
    """
    W = whitener_of_gram(times(M.T, M)) if LARGE_SIZE // 2 < M.shape[1] <= len(M) else None
    if W is not None:
        return W
    nonzero = M.any(axis=0)
    used = M[:, nonzero]
    left, singular = left_singular(used.T if len(used) < used.shape[1] else triangular_root(used).T)
    keep = np.ones(len(singular), dtype=bool) if full_rank else is_above_rounding(singular, used.shape)
    floor = EPS / 8 * max(singular.max(initial=0.0), np.finfo(float).tiny)
    W = np.zeros((M.shape[1], int(keep.sum())))
    W[nonzero] = left[:, keep] / np.maximum(singular[keep], floor)
    return W


def whitener_of_gram(B: Array) -> Array | None:
    """Return upper triangular W with W'BW = I from a Cholesky factor; None if B is not well conditioned."""
    try:
        L = cholesky(B)
    except np.linalg.LinAlgError:
        return None
    rcond, _ = scipy.linalg.lapack.dtrcon(L, uplo="L")
    return inverse_triangular(L).T if rcond > 1e-5 else None  # L loses at most five digits


def is_above_rounding(singular: Array, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Return the mask of singular values of a matrix of this shape that exceed rounding errors."""
    return np.asarray(singular > RANK_FACTOR * max(shape) * EPS * max(singular.max(initial=0.0), np.finfo(float).tiny))


def whitener_with_ridge(X: Array, a: Array) -> RidgeWhitener:
    """Return W, shape (D, r), with W'(X'X + Diag(a)^2)W = I, for columns (X_j, a_j) of norm about one.

    The second value is the norm, in the metric of the ridge, of the part of the computed data outside the span of W
    along directions with a ridge.  It is infinite if unknown, and otherwise exact up to rounding errors relative to the
    third value, the norm of the data in this metric.

    With n rows, fewer than columns, and a ridge on every column, X V X' depends only on the part of V in the span of
    (X'X + Diag(a)^2)^-1 X', of dimension n; the rest of V only increases the objective.  Columns whose ridge is not
    small are compressed to n dimensions.  Columns with a very small ridge stay uncompressed if they are few: in the
    metric of their ridge, the other columns would be lost to rounding.
    """
    n, D = X.shape
    uncompressed = a < SMALL_RIDGE
    if np.count_nonzero(uncompressed) + n > max(2 * n, LARGE_SIZE):
        uncompressed[:] = False
    if n < D - np.count_nonzero(uncompressed) and np.all(a > 0.0):
        return compressing_whitener(X, a, uncompressed)
    rows = n + np.count_nonzero(a)
    require_memory(
        8.0 * (4 * rows * D + 4 * min(rows, D) * D), f"whitening {D} features", "set c > 0, or use fewer features"
    )
    M = with_ridge_rows(X, a)
    W = whitener(M, full_rank=False)  # directions whose ridge is below rounding are lost
    return W, 0.0 if W.shape[1] == np.count_nonzero(M.any(axis=0)) else np.inf, 0.0


def compressing_whitener(X: Array, a: Array, uncompressed: npt.NDArray[np.bool_]) -> RidgeWhitener:
    """Return `whitener_with_ridge` with the masked columns uncompressed; the others, all with a ridge, exceed n."""
    compressed, others = np.flatnonzero(~uncompressed), np.flatnonzero(uncompressed)
    T = X[:, compressed] / a[compressed]
    span, singular = left_singular(T.T)
    keep = is_above_rounding(singular, T.shape)
    span, singular = span[:, keep], singular[keep]
    G, r = T @ span, len(singular)
    outside, size = float(np.linalg.norm(T - G @ span.T)), float(np.linalg.norm(T))
    W = np.zeros((len(a), r + len(others)))
    W[compressed, :r] = span / a[compressed, None]
    if len(others) == 0:
        return W / np.sqrt(singular**2 + 1.0), outside, size
    W[others, r + np.arange(len(others))] = 1.0
    data, ridge = np.hstack([G, X[:, others]]), np.append(np.ones(r), a[others])
    units = 1.0 / np.sqrt(np.sum(data**2, axis=0) + ridge**2)
    inner, lost, _ = whitener_with_ridge(data * units, ridge * units)
    return W @ (units[:, None] * inner), outside + lost, size


def with_ridge_rows(X: Array, a: Array) -> Array:
    """Return M with M'M = X'X + Diag(a)^2: X above the nonzero rows of Diag(a)."""
    ridge = np.flatnonzero(a)
    rows = np.zeros((len(ridge), X.shape[1]))
    rows[np.arange(len(ridge)), ridge] = a[ridge]
    return np.vstack([X, rows])


def unit_rows(F: Array) -> Array:
    """Return F with rows of norm one; a zero row becomes the first unit vector."""
    norms = np.sqrt(row_products(F, F))
    zero = norms == 0.0
    unit = F / np.where(zero, 1.0, norms)[:, None]
    unit[zero, 0] = 1.0
    return unit


def column_basis(X: Array, ridge: Array | None = None) -> Array:
    """Return Q, shape (n, r), with Q Q' = X (X'X + n Diag(ridge)^2)^+ X'; orthonormal columns without a ridge.

    For methods without certified bounds: directions that are zero up to rounding are omitted.
    """
    X, _, (W, _, _) = scale_to_whiten(X, ridge)
    return np.asarray(X @ (W / len(X) ** 0.5))


def scale_to_whiten(X: Array, ridge: Array | None = None) -> tuple[Array, Array, RidgeWhitener]:
    """Return scaled columns X, their ridge, and W with W'(X'X/n + Diag(ridge)^2)W = I, see `whitener_with_ridge`.

    The scaling affects only the accuracy of X W, not its value.
    """
    ridge = np.zeros(X.shape[1]) if ridge is None else ridge
    scale = power_of_two(inverse_or_one(np.sqrt(np.mean(X**2, axis=0) + ridge**2)))
    X, ridge = X * scale, ridge * scale
    return X, ridge, whitener_with_ridge(X / len(X) ** 0.5, ridge)


def inverse_or_one(x: Array) -> Array:
    """Return 1/x entrywise, and 1 where x is 0."""
    return 1.0 / np.where(x == 0.0, 1.0, x)


def power_of_two(x: Array) -> Array:
    """Return the powers of two nearest to positive numbers; multiplication by them is exact."""
    return np.asarray(np.exp2(np.round(np.log2(x))))


def mean_of(values: Array, weights: Array | None) -> Array:
    """Return sum_i p_i values_i over the first axis; the unweighted mean if the weights are None."""
    return np.asarray(values.mean(axis=0) if weights is None else weights @ values)


def scale_by_sqrt_weights(X: Array, weights: Array | None) -> Array:
    """Return the rows times sqrt(m p_i), so that their mean squares are weighted means; X if the weights are None."""
    if weights is None:
        return X
    s = np.sqrt(len(weights) * weights)
    return np.asarray(X * (s if X.ndim == 1 else s[:, None]))


def scale_by_weights(values: Array, weights: Array | None) -> Array:
    """Return values of the points, (..., n), times their weights; unchanged if the weights are None."""
    return values if weights is None else np.asarray(values * weights)


def renormalize_weights(weights: Array | None, chosen: npt.NDArray[Any]) -> Array | None:
    """Return the weights of a subset of the points, given by a mask or indices, normalised to sum 1."""
    return None if weights is None else weights[chosen] / math.fsum(weights[chosen])


def center_columns(X: Array) -> Array:
    """Return centred columns; columns that are constant up to rounding become 0."""
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    return np.where(deviation <= rounding_floor(mean, len(X)), 0.0, X - mean)


def column_units(centered: Array) -> Array:
    """Return the factors that give centred columns unit variance; 1 for zero columns."""
    return inverse_or_one(np.sqrt(np.mean(centered**2, axis=0)))


def standardize_columns(X: Array) -> Array:
    """Return centred columns of unit variance; columns that are constant up to rounding become 0."""
    centered = center_columns(X)
    return np.asarray(centered * column_units(centered))


def momentum(t: float) -> tuple[float, float]:
    """Return the next term of Nesterov's sequence and the extrapolation weight."""
    following = (1 + (1 + 4 * t**2) ** 0.5) / 2
    return following, (t - 1) / following
