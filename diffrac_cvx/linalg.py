"""Linear algebra that the rest of the package uses."""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse

from diffrac_cvx.inputs import Array
from diffrac_cvx.memory import require_memory
from diffrac_cvx.point_weights import mean_of
from diffrac_cvx.rows import BLOCK, Rows
from diffrac_cvx.shifted import Points, Shifted

RANK = 8.0  # times the size and the precision: singular values below, over the largest, are zero
SMALL_RIDGE = 1e-4  # a_j, over the norm of its column and itself, below which it is small
FEW = 1000  # columns with a small ridge that are never too many to stay as they are
SMALL = 100  # columns up to which singular vectors are computed by the method that never fails
EPS = float(np.finfo(float).eps)


def row_blocks(X: Points | Rows) -> Iterator[Any]:
    """Yield a matrix by blocks of rows: X is read once, and no copy of its size is made."""
    if isinstance(X, Rows):
        yield from X.blocks()
        return
    for start in range(0, len(X), BLOCK):
        yield X[start : start + BLOCK]


def row_energies(X: Array | Rows | Shifted, U: Array) -> Array:
    """Return q_i = x_i' U U' x_i, shape (n,), without forming an n x n matrix."""
    if isinstance(X, Rows):
        return X.energies(U)
    if isinstance(X, Shifted) and scipy.sparse.issparse(U):  # the products are sparse too, but for one row
        return np.maximum(Shifted(X.S @ U, X.r @ U).power(2) @ np.ones(U.shape[1]), 0.0)
    return np.concatenate([row_products(XU, XU) for XU in (block @ U for block in row_blocks(X))])


def moment(X: Array | Rows | Shifted, u: Array) -> Array:
    """Return M(u) = X' Diag(u) X / n."""
    if isinstance(X, Shifted):
        return X.gram(u) / len(X)
    if isinstance(X, Rows):
        return X.moment(u)
    total = np.zeros((X.shape[1], X.shape[1]))
    for block, weights in zip(row_blocks(X), row_blocks(u), strict=True):
        total += block.T @ (weights[:, None] * block)
    return total / len(X)


def row_products(X: Array, Y: Array) -> Array:
    """Return x_i'y_i for all rows, shape (n,)."""
    return np.asarray(np.einsum("ij,ij->i", X, Y))


def symmetric(M: Array) -> Array:
    """Return the symmetric part of a square matrix."""
    return (M + M.T) / 2


def psd_factor(M: Array, rtol: float = 0.0) -> Array:
    """Return U with U U' the projection of M on the cone of positive semidefinite matrices.

    Columns come by decreasing eigenvalue; those below rtol times the largest are dropped (one is always kept).
    """
    values, vectors = np.linalg.eigh(symmetric(M))
    keep = values > max(rtol * values[-1], 0.0)
    keep[-1] = True
    return np.asarray((vectors[:, keep] * np.sqrt(np.maximum(values[keep], 0.0)))[:, ::-1])


def principal_columns(U: Array, rtol: float = 0.0) -> Array:
    """Rotate a factor so that its columns are orthogonal, largest first; the product U U' is unchanged.

    Columns whose squared norm is below rtol times the largest are dropped (one is always kept).
    """
    if U.size == 0:
        return np.zeros((len(U), 1))
    left, singular = left_singular(U)
    keep = singular**2 > rtol * singular[0] ** 2
    keep[0] = True
    return np.asarray(left[:, keep] * singular[keep])


def left_singular(U: Array) -> tuple[Array, Array]:
    """Return the left singular vectors and the singular values, largest first."""
    if min(U.shape) > SMALL:
        # By divide and conquer, 20 times quicker at 1500 columns, and without the interpreter's lock.
        with contextlib.suppress(np.linalg.LinAlgError):
            left, singular, _ = np.linalg.svd(U, full_matrices=False)
            return left, singular
    left, singular, _ = scipy.linalg.svd(U, full_matrices=False, lapack_driver="gesvd")
    return left, singular


def triangular_root(M: Array) -> Array:
    """Return upper triangular R with R'R = M'M, shape (d, d) even where M has fewer rows than columns."""
    (R,) = scipy.linalg.qr(M, mode="r", overwrite_a=False, check_finite=False)
    d = M.shape[1]
    square = np.zeros((d, d))
    square[: min(len(R), d)] = R[:d]
    return square


def whitener(M: Array, penalised: npt.NDArray[np.bool_] | None = None) -> Array:
    """Return W, shape (d, r), with (M W)'(M W) = I and r the numerical rank of M.

    M should have columns of comparable norm, so that the rank does not depend on their units.  Columns that are
    penalised, (d,) booleans, have their penalty among the rows of M: rank is decided among the others alone, and no
    direction with a penalised part is left out, however small M is along it.
    """
    if penalised is None or not penalised.any():
        singular, right = right_singular(M)
        keep = is_above_rounding(singular, M.shape)
        return np.asarray(right[keep].T / singular[keep])
    basis = without_constant_directions(M, penalised)
    singular, right = right_singular(M @ basis)
    # What is below is rounding; the bounds on the rounding of W, which is large there, are too.
    return np.asarray(
        basis @ (right.T / np.maximum(singular, EPS / 8 * max(singular.max(initial=0.0), np.finfo(float).tiny)))
    )


def without_constant_directions(M: Array, penalised: npt.NDArray[np.bool_]) -> Array:
    """Return an orthonormal basis of all directions but those, of columns not penalised, along which M is zero."""
    free, others = np.flatnonzero(~penalised), np.flatnonzero(penalised)
    independent = independent_directions(M[:, free]) if len(free) else np.zeros((0, 0))
    rank = independent.shape[1]
    basis = np.zeros((M.shape[1], rank + len(others)))
    basis[free, :rank] = independent
    basis[others, rank + np.arange(len(others))] = 1.0
    return basis


def is_above_rounding(singular: Array, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Return which singular values, largest first, of a matrix of this shape are not zero up to rounding."""
    return np.asarray(singular > RANK * max(shape) * EPS * max(singular.max(initial=0.0), np.finfo(float).tiny))


def right_singular(M: Array) -> tuple[Array, Array]:
    """Return the singular values, largest first, and the right singular vectors as rows."""
    left, singular = left_singular(M.T if len(M) < M.shape[1] else triangular_root(M).T)
    return singular, left.T


def independent_directions(F: Array) -> Array:
    """Return an orthonormal basis of the directions along which columns of comparable norm vary, shape (f, r)."""
    singular, right = right_singular(F)
    return np.asarray(right[is_above_rounding(singular, F.shape)].T)


def constant_directions(F: Array) -> int:
    """Return along how many directions, columns of zeros apart, columns of comparable norm hardly vary."""
    return int(F.any(axis=0).sum()) - (independent_directions(F).shape[1] if F.size else 0)


class RidgeWhitener(NamedTuple):
    """W with W'(X'X + Diag(a)^2)W = I.

    Attributes
    ----------
    W : (D, r) array
        The whitener.
    left_out : int
        How many directions without a ridge are outside its span: the data hardly vary along them.
    outside : float
        Norm of what the data, as computed, have outside its span along directions with a ridge, in the metric of the
        ridge; infinite where nothing is known of it.
    size : float
        Norm of the data in this metric, where it was used, else 0: what is outside is known up to a rounding of this.
    """

    W: Array
    left_out: int = 0
    outside: float = 0.0
    size: float = 0.0


def whitener_with_ridge(X: Array, a: Array) -> RidgeWhitener:
    """Return W, shape (D, r), with W'(X'X + Diag(a)^2)W = I, for columns X_j, a_j of norm about one.

    With fewer rows than columns and a ridge on every column, X V X' and the cost of V are those of its part in the span
    of (X'X + Diag(a)^2)^-1 X', of as many dimensions as there are rows; the rest of V only costs.  The columns whose
    ridge is not small are compressed to that many; those with a very small one, in the metric of which the others would
    be rounding, stay as they are, where they are few.
    """
    n, D = X.shape
    heavy = a < SMALL_RIDGE
    if np.count_nonzero(heavy) + n > max(2 * n, FEW):
        heavy[:] = False
    if n < D - np.count_nonzero(heavy) and np.all(a > 0.0):
        return compressing_whitener(X, a, heavy)
    rows = n + np.count_nonzero(a)
    require_memory(
        8.0 * (4 * rows * D + 4 * min(rows, D) * D), f"whitening {D} features", "give c > 0, or fewer features"
    )
    return whitener_with_ridge_rows(X, a)


def whitener_with_ridge_rows(X: Array, a: Array) -> RidgeWhitener:
    """Return `whitener_with_ridge`, all columns kept."""
    free, M = a == 0.0, with_ridge_rows(X, a)
    basis = without_constant_directions(M, ~free)
    singular, right = right_singular(M @ basis)
    keep = is_above_rounding(singular, M.shape)
    left_out = constant_directions(X[:, free]) if free.any() else 0
    return RidgeWhitener(basis @ (right[keep].T / singular[keep]), left_out, 0.0 if keep.all() else np.inf)


def compressing_whitener(X: Array, a: Array, heavy: npt.NDArray[np.bool_]) -> RidgeWhitener:
    """Return `whitener_with_ridge`, the columns that are not heavy compressed: more than rows, a ridge on each."""
    light, others = np.flatnonzero(~heavy), np.flatnonzero(heavy)
    T = X[:, light] / a[light]
    span, singular = left_singular(T.T)
    keep = is_above_rounding(singular, T.shape)
    span, singular = span[:, keep], singular[keep]
    G, r = T @ span, len(singular)
    outside, size = float(np.linalg.norm(T - G @ span.T)), float(np.linalg.norm(T))
    W = np.zeros((len(a), r + len(others)))
    W[light, :r] = span / a[light, None]
    if len(others) == 0:
        return RidgeWhitener(W / np.sqrt(singular**2 + 1.0), 0, outside, size)
    W[others, r + np.arange(len(others))] = 1.0
    data, ridge = np.hstack([G, X[:, others]]), np.append(np.ones(r), a[others])
    units = 1.0 / np.sqrt(np.sum(data**2, axis=0) + ridge**2)
    inner = whitener_with_ridge_rows(data * units, ridge * units)
    return RidgeWhitener(W @ (units[:, None] * inner.W), 0, outside + inner.outside, size)


def with_ridge_rows(X: Array, a: Array) -> Array:
    """Return X with the rows of Diag(a) that are not zero below it: M with M'M = X'X + Diag(a)^2."""
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
    """Return Q, shape (n, r), with Q Q' = X (X'X + n Diag(ridge)^2)^+ X'; orthonormal columns without a ridge."""
    scaled = scale_to_whiten(X, ridge)
    return np.asarray(scaled.X @ scaled.found.W / len(X) ** 0.5)


class Whitened(NamedTuple):
    """Data in units that make columns comparable, their ridge, and W with W'(X'X/n + Diag(ridge)^2)W = I."""

    X: Array
    ridge: Array
    found: RidgeWhitener


def scale_to_whiten(X: Array, ridge: Array | None = None) -> Whitened:
    """Return scaled columns and what whitens them: the product X W does not depend on units, its accuracy does."""
    n, d = X.shape
    ridge = np.zeros(d) if ridge is None else ridge
    scale = power_of_two(inverse_or_one(np.sqrt(np.mean(X**2, axis=0) + ridge**2)))
    X, ridge = X * scale, ridge * scale
    return Whitened(X, ridge, whitener_with_ridge(X / n**0.5, ridge))


def inverse_or_one(x: Array) -> Array:
    """Return 1/x entrywise, and 1 where x is 0."""
    return 1.0 / np.where(x == 0.0, 1.0, x)


def power_of_two(x: Array) -> Array:
    """Return the powers of two next to positive numbers: columns times these are not rounded."""
    return np.asarray(np.exp2(np.round(np.log2(x))))


class Standardised(NamedTuple):
    """Columns of mean 0 and variance 1, X = (what was given - mean) * unit, each shape (d,) but X (n, d)."""

    X: Array
    mean: Array
    unit: Array


def standardise(X: Array, shares: Array | None = None) -> Standardised:
    """Centre the columns and scale them to unit variance; constant columns become 0, their unit is 1.

    Mean and variance are weighted where the rows have shares, (n,) of sum 1.
    """
    mean = mean_of(X, shares)
    # The mean of a constant column is rounded: what is left after centring must not be taken for a feature.
    centred = np.where(X.min(axis=0) == X.max(axis=0), 0.0, X - mean)
    unit = inverse_or_one(np.sqrt(mean_of(centred**2, shares)))
    return Standardised(centred * unit, mean, unit)


def momentum(t: float) -> tuple[float, float]:
    """Return the next term of Nesterov's sequence and the weight of the extrapolation."""
    following = (1 + (1 + 4 * t**2) ** 0.5) / 2
    return following, (t - 1) / following
