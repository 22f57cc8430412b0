"""Directions of labels and of a matrix V, and the affine functions of a factor."""

import numpy as np
import numpy.typing as npt
import scipy

from diffrac_cvx.errors import DataError
from diffrac_cvx.machine.deadlines import is_late
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array, as_matrix
from diffrac_cvx.points.factors import Factor, scale_rows
from diffrac_cvx.points.linear_algebra import (
    EPS,
    LARGE_SIZE,
    cholesky,
    inverse_or_one,
    psd_factor,
    row_products,
    times,
    triangular_root,
    with_ridge_rows,
)
from diffrac_cvx.points.points import Points
from diffrac_cvx.points.reading import as_points
from diffrac_cvx.problem.penalties.base import PenaltyWeights
from diffrac_cvx.problem.result import Result
from diffrac_cvx.rounding.socp_directions import socp_direction
from diffrac_cvx.rounding.two_clusters import kmeans_1d, right_vectors

DIRECT_SOLVE_SIZE = 400  # rows and columns of X G above which least squares are solved iteratively
INITIAL_FEATURES = 300  # of the initial working set of a sparse direction
MAX_SIGN_PATTERNS = 20  # tried before the general solver
TRIANGULAR_RCOND = 1e-8  # reciprocal condition number above which a triangular system is solved by substitution
GRAM_RCOND = 1e-5  # the same for the Cholesky factor of a Gram matrix
MIN_CG_STEPS = 20  # of conjugate gradients, made even after the deadline
MAX_SWEEPS, SWEEP_RTOL = 2000, 1e-12  # of coordinate descent; relative change at which it stops
FEWER_FEATURES = "use fewer features"
ORIGIN_RTOL = 1e-20  # x'Vx over its mean below which a point is the centre up to rounding


def best_directions(X: Points, targets: Array, weights: PenaltyWeights) -> Array:
    """Return the directions of `best_direction`, shape (k, d), for the columns of targets, (n, k)."""
    found: list[Array] = []
    for k, target in enumerate(targets.T):  # opposite targets, as for two clusters, are solved once
        same = next((i for i in range(k) if np.array_equal(targets[:, i], -target)), None)
        found.append(best_direction(X, target, weights) if same is None else -found[same])
    return np.array(found).reshape(-1, X.shape[1])


def oriented_direction(X: Points, labels: Array, weights: PenaltyWeights) -> tuple[Array, Array]:
    """Return labels in {-1, +1} and their best direction; with sign constraints, of y and -y the one of lower cost."""
    v = best_direction(X, labels - X.mean_of(labels), weights)
    if weights.pair_penalty.is_even:
        return labels, v
    other = best_direction(X, X.mean_of(labels) - labels, weights)
    centered = labels - X.mean_of(labels)
    Xty = X.rmatvec(X.times_counts(centered))
    # At its best scale the cost of a direction is 1 - Xty'v.
    return (labels, v) if Xty @ v >= -(Xty @ other) else (-labels, other)


def best_direction(points: Points, target: Array, weights: PenaltyWeights) -> Array:
    """Return argmin over v of |target - X v|^2/n + sum a_i^2 v_i^2 + (sum c_i |v_i|)^2, or with groups and signs.

    Without l1 penalty this is least squares.  Otherwise Newton's method on sign patterns is tried first (if the
    solution is unique), then a working set that grows by the features whose gradient violates the optimality
    conditions.  No d x d matrix is formed if n < d and all features have a ridge or none has.  The mean of squares uses
    the sample weights.  After the deadline the direction may be suboptimal.  Raises if a factorisation would not fit in
    memory.
    """
    if points.excluded is not None:  # columns that are excluded have no coefficient, not even of rounding
        v, included = np.zeros(points.shape[1]), np.setdiff1d(np.arange(points.shape[1]), points.excluded.columns)
        v[included] = best_direction(points.columns(included), target, weights.restrict(included))
        return v
    a, c = weights.a, weights.c
    if not weights.pair_penalty.splits_into_blocks:
        return socp_direction(points, target, weights)
    target = points.times_root_counts(target)
    if not points.in_memory:
        return direction_from_gram(points, target, a, c)
    X = points.weighted_rows().array()
    n, d = X.shape
    scale = inverse_or_one(np.sqrt(np.mean(X**2, axis=0) + a**2 + c**2))
    Z, b, ridge, l1_weights = X * (scale / n**0.5), target / n**0.5, a * scale, c * scale
    if not l1_weights.any():
        return ridge_direction(Z, b, ridge) * scale
    quick = min(n, d) <= LARGE_SIZE // 2 or not is_late()
    if n >= d and quick:
        Z, b = triangular_system(Z, b, ridge)
        ridge = np.zeros(d)
    if (n >= d or ridge.all()) and quick:
        found = direction_by_signs(Z, b, ridge, l1_weights)
        if found is not None:
            return found * scale
    v = np.zeros(d)
    size, slopes = INITIAL_FEATURES, np.abs(Z.T @ b)
    chosen = np.zeros(d, dtype=bool)
    while size:
        chosen[np.argsort(-np.where(chosen, -np.inf, slopes))[:size]] = True
        v[chosen] = sparse_direction(Z[:, chosen], b, ridge[chosen], l1_weights[chosen])
        slopes = np.abs(Z.T @ (b - Z @ v)) - l1_weights * (l1_weights @ np.abs(v))
        size = min(int(np.sum(slopes[~chosen] > 8 * n * EPS * np.linalg.norm(b))), int(chosen.sum()))
        if is_late():
            break
    return v * scale


def direction_from_gram(X: Points, target: Array, a: Array, c: Array) -> Array:
    """Return the result of `best_direction` from Gram matrices of all features, or of a working set."""
    scale = inverse_or_one(np.sqrt(X.mean_squares() + a**2 + c**2))
    Xty, ridge, weights = X.rmatvec(target) * scale, a * scale, c * scale
    d, v = len(Xty), np.zeros(len(Xty))
    if not weights.all():  # otherwise a working set is used
        require_memory(8.0 * 6 * d**2, f"the direction of labels in {d} features", FEWER_FEATURES)
        return solve_gram(X.scaled(scale).second_moment(), Xty, ridge, weights) * scale
    size, slopes, chosen = INITIAL_FEATURES, np.abs(Xty), np.zeros(d, dtype=bool)
    while size:
        chosen[np.argsort(-np.where(chosen, -np.inf, slopes))[:size]] = True
        active = np.flatnonzero(chosen)
        some = X.columns(active).scaled(scale[active])
        v[active] = solve_gram(some.second_moment(), Xty[active], ridge[active], weights[active])
        slopes = np.abs(Xty - X.second_moment_times(scale * v) * scale - ridge**2 * v) - weights * (weights @ np.abs(v))
        size = min(int(np.sum(slopes[~chosen] > 8 * len(X) * EPS)), int(chosen.sum()))
    return v * scale


def solve_gram(gram: Array, Xty: Array, ridge: Array, weights: Array) -> Array:
    """Return argmin over v of v'(gram + Diag(ridge)^2)v - 2 Xty'v + (sum weights_i |v_i|)^2."""
    values, Q = np.linalg.eigh(gram + np.diag(ridge**2))
    mask = values > 8 * len(values) * EPS * max(values[-1], 0.0)
    values, Q = values[mask], Q[:, mask]
    roots = np.sqrt(values)
    if not weights.any():
        return np.asarray(Q @ (Q.T @ Xty / values))  # of least norm
    Z, b, zeros = roots[:, None] * Q.T, Q.T @ Xty / roots, np.zeros(len(Xty))
    found = direction_by_signs(Z, b, zeros, weights) if mask.all() else None
    return sparse_direction(Z, b, zeros, weights) if found is None else found


def ridge_direction(Z: Array, b: Array, ridge: Array) -> Array:
    """Return argmin over v of |b - Z v|^2 + sum ridge_i^2 v_i^2, of least norm if there are several."""
    n, d = Z.shape
    if min(n, d) > LARGE_SIZE // 2:
        v = None if is_late() else ridge_direction_of_gram(Z, b, ridge)
        if v is not None:
            return v
        if is_late() or is_late(20.0 * max(n, d) * float(min(n, d)) ** 2):
            return least_squares(Z, b, ridge)
    if n < d and np.all(ridge > 0.0):  # with w = ridge v: the w and residual r of least norm with Z w / ridge + r = b
        Q, R = scipy.linalg.qr(np.vstack([(Z / ridge).T, np.eye(n)]), mode="economic", check_finite=False)
        return np.asarray(Q[:d] @ scipy.linalg.solve_triangular(R, b, trans="T") / ridge)
    R, b = triangular_system(Z, b, ridge)
    rcond = 8 * max(n, d) * EPS
    if len(R) == d and scipy.linalg.lapack.dtrcon(R)[0] > TRIANGULAR_RCOND:
        return np.asarray(scipy.linalg.solve_triangular(R, b))
    return np.asarray(np.linalg.lstsq(R, b, rcond=rcond)[0])


def ridge_direction_of_gram(Z: Array, b: Array, ridge: Array) -> Array | None:
    """Return the result of `ridge_direction` from the smaller Gram matrix, or None if that is inaccurate."""
    n, d = Z.shape
    if n < d and np.all(ridge > 0.0):
        rows = Z / ridge
        factor = well_conditioned_factor(times(rows, rows.T) + np.eye(n))
        return None if factor is None else np.asarray(rows.T @ scipy.linalg.cho_solve((factor, True), b) / ridge)
    factor = well_conditioned_factor(times(Z.T, Z) + np.diag(ridge**2)) if n + np.count_nonzero(ridge) >= d else None
    if factor is None:
        return None
    v = scipy.linalg.cho_solve((factor, True), Z.T @ b)
    return np.asarray(v + scipy.linalg.cho_solve((factor, True), Z.T @ (b - Z @ v) - ridge**2 * v))


def well_conditioned_factor(B: Array) -> Array | None:
    """Return the lower Cholesky factor of a positive definite matrix, or None if it is ill-conditioned."""
    try:
        L = cholesky(B)
    except np.linalg.LinAlgError:
        return None
    return L if scipy.linalg.lapack.dtrcon(L, uplo="L")[0] > GRAM_RCOND else None


def least_squares(Z: Array, b: Array, ridge: Array | None = None) -> Array:
    """Return argmin over v of |b - Z v|^2 + sum ridge_i^2 v_i^2, of least norm, by conjugate gradients."""
    weights = np.zeros(Z.shape[1]) if ridge is None else ridge**2
    v, slope = np.zeros(Z.shape[1]), Z.T @ b
    step, size = slope, float(slope @ slope)
    enough = EPS**2 * size
    for done in range(2 * Z.shape[1]):
        if size <= enough or (done >= MIN_CG_STEPS and is_late()):
            break
        image = Z.T @ (Z @ step) + weights * step
        length = size / float(step @ image)
        v, slope = v + length * step, slope - length * image
        size, before = float(slope @ slope), size
        step = slope + (size / before) * step
    return v


def direction_by_signs(Z: Array, b: Array, ridge: Array, weights: Array) -> Array | None:
    """Return the result of `sparse_direction` by Newton's method on the optimality conditions, or None if it fails."""
    v = ridge_direction(Z, b, ridge)
    signs = np.sign(v)
    for _ in range(MAX_SIGN_PATTERNS):
        if is_late():
            return None
        active = signs != 0.0
        row = (weights * signs)[active]  # at fixed signs the l1 penalty is (row'v)^2, one more square
        v = np.zeros(len(signs))
        if active.any():
            v[active] = ridge_direction(np.vstack([Z[:, active], row]), np.append(b, 0.0), ridge[active])
        slopes = Z.T @ (b - Z @ v)
        entering = ~active & (np.abs(slopes) > weights * (row @ v[active]))
        found = np.where(entering, np.sign(slopes), np.where(v * signs > 0.0, signs, 0.0))
        if np.array_equal(found, signs):
            return v
        signs = found
    return None


def sparse_direction(Z: Array, b: Array, ridge: Array, weights: Array) -> Array:
    """Return argmin over v of |b - Z v|^2 + sum ridge_i^2 v_i^2 + (sum weights_i |v_i|)^2."""
    if Z.shape[1] > LARGE_SIZE // 2:
        return direction_by_descent(Z, b, ridge, weights)
    R, b = triangular_system(Z, b, ridge)
    d = R.shape[1]
    row = weights[None, :]  # with v = p - m, p and m >= 0, the last term is (weights'(p + m))^2
    split, _ = scipy.optimize.nnls(np.vstack([np.hstack([R, -R]), np.hstack([row, row])]), np.append(b, 0.0))
    return np.asarray(split[:d] - split[d:])


def direction_by_descent(Z: Array, b: Array, ridge: Array, weights: Array) -> Array:
    """Return the result of `sparse_direction` for many features, by cyclic coordinate descent.

    The l1 penalty is the square of a separable function, so its subgradients are separable: if no coordinate improves
    the objective, no direction does.
    """
    columns = np.ascontiguousarray(Z.T)
    curvature = row_products(columns, columns) + ridge**2 + weights**2
    v, residual, total = np.zeros(len(weights)), b.copy(), 0.0
    for _ in range(MAX_SWEEPS):
        largest = 0.0
        for j in np.flatnonzero(curvature > 0.0):
            old = v[j]
            other_l1 = total - weights[j] * abs(old)
            partial_product = columns[j] @ residual + (curvature[j] - ridge[j] ** 2 - weights[j] ** 2) * old
            v[j] = np.sign(partial_product) * max(abs(partial_product) - other_l1 * weights[j], 0.0) / curvature[j]
            if v[j] != old:
                residual -= (v[j] - old) * columns[j]
                total = other_l1 + weights[j] * abs(v[j])
                largest = max(largest, abs(v[j] - old))
        total = float(weights @ np.abs(v))
        if largest <= SWEEP_RTOL * np.abs(v).max() or is_late():
            break
    return v


def triangular_system(Z: Array, b: Array, ridge: Array) -> tuple[Array, Array]:
    """Return R and e with |e - R v|^2 = |b - Z v|^2 + sum ridge_i^2 v_i^2 up to a constant, R with at most d rows."""
    d = Z.shape[1]
    rows = len(Z) + np.count_nonzero(ridge)
    require_memory(
        8.0 * (3 * rows * d + 4 * min(rows, d) * d), f"the direction of labels in {d} features", FEWER_FEATURES
    )
    factor = well_conditioned_factor(times(Z.T, Z) + np.diag(ridge**2)) if rows > d > LARGE_SIZE // 2 else None
    if factor is not None:
        return factor.T, scipy.linalg.solve_triangular(factor, Z.T @ b, lower=True)
    stacked = with_ridge_rows(np.column_stack([Z, b]), np.append(ridge, 0.0))
    if rows >= d:
        stacked = triangular_root(stacked)[:d]
    return stacked[:, :d], stacked[:, d]


def affine_functions(X: Array, result: Result, scores: Array) -> tuple[Array, Array]:
    """Return directions (k, d) and offsets (k,) with scores_ij = (x_i'v_j + b_j) / sqrt(x_i'Vx_i).

    They exist for all linear functions of the rows of F, which are the normalised rows of X V^(1/2) up to a rotation.
    """
    if result.G is None:  # the solver failed
        return np.zeros((scores.shape[1], X.shape[1])), np.zeros(scores.shape[1])
    G = result.G  # sparse if V has components; up to d columns
    points = X if G.shape[0] == X.shape[1] else np.column_stack([X, np.ones(len(X))])
    projected = np.asarray(points @ G)
    q = np.sum(projected**2, axis=1)
    nonzero = q > ORIGIN_RTOL * q.mean()
    rows, wanted = projected[nonzero] / np.sqrt(q[nonzero, None]), scores[nonzero]
    if min(rows.shape) > DIRECT_SOLVE_SIZE:  # the scores lie in a few leading directions: few iterations suffice
        coefficients = np.column_stack([least_squares(rows, score) for score in wanted.T])
    else:
        coefficients = np.linalg.lstsq(rows, wanted)[0]
    W = np.asarray(G @ coefficients).T
    return W[:, : X.shape[1]], W[:, X.shape[1] :].sum(axis=1)


def threshold(values: Array, sample_weight: Array | None = None) -> float:
    """Return the midpoint between the two clusters of numbers, or the largest number if all are equal."""
    labels = kmeans_1d(values, sample_weight)
    above = labels == labels[np.argmax(values)]
    if above.all():
        return float(values.max())
    return float((values[above].min() + values[~above].max()) / 2)


def leading_direction(X: npt.ArrayLike, V: npt.ArrayLike | Result) -> Array:
    """Return v such that X vv' X' is the best rank-one approximation of X V X'.

    If V = vv' this is v.  Only its sign depends on the units of the columns: the largest entry is positive for columns
    at unit variance.

    Source: appendix C.2, where the label matrix is computed from X V X'.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    V : Result, or (d, d) array, or (d + 1, d + 1) with the offset last
        Matrix of directions; the offset is ignored.  For a result without V, V = X^+ Y X^+'.

    Raises
    ------
    DataError
        If X is invalid, or the shape of V does not fit X.
    """
    columns = UnitColumns(as_points(X, by_columns=True, warn=False))  # the solvers warn
    return columns.leading_direction(columns.factor_of(V))


class UnitColumns:
    """Centred data X (n, d) and the units in which its columns have mean square one."""

    def __init__(self, X: Points) -> None:
        self.X, self.units = X, inverse_or_one(np.sqrt(X.mean_squares()))

    def leading_direction(self, G: Factor) -> Array:
        """Return the leading direction of V = GG' in the units of X, G (d, r) for columns at unit variance."""
        points = self.X.scaled(self.units)
        v = np.asarray(G @ right_vectors(points.products_root(G), 1)[0])
        return np.asarray(self.units * (v if v[np.argmax(np.abs(v))] >= 0.0 else -v))  # the largest entry is positive

    def factor_of(self, V: npt.ArrayLike | Result) -> Factor:
        """Return G with V = GG' for columns at unit variance, without the offset; without V, V = X^+ Y X^+'."""
        d = self.X.shape[1]
        if isinstance(V, Result):
            if V.G is None:
                return self.factor_of_labels(V.F)
            if V.G.shape[0] not in (d, d + 1):
                raise DataError(f"V has {V.G.shape[0]} rows; for these data it must have {d} or {d + 1}")
            return scale_rows(V.G[:d], 1.0 / self.units)
        matrix = as_matrix(V, "V")
        if matrix.shape not in ((d, d), (d + 1, d + 1)):
            raise DataError(f"V has shape {matrix.shape}; for these data it must be ({d}, {d}) or ({d + 1}, {d + 1})")
        # Unit columns first: factorising a badly scaled V would lose its small entries.
        return psd_factor(matrix[:d, :d] / np.outer(self.units, self.units))

    def factor_of_labels(self, F: Array) -> Array:
        """Return G of the optimal V in (11) for a result without V."""
        if len(F) != len(self.X):
            raise DataError(f"the result has {len(F)} points, X has {len(self.X)}; pass the X that was solved")
        refusal = "the result has no V, which streamed data need; pass a result of low_rank or fista"
        table = self.X.stored_array(DataError(refusal))
        return np.asarray(np.linalg.lstsq(table * self.units, F - F.mean(axis=0))[0])


def align_signs(directions: Array, units: Array) -> Array:
    """Return directions, (m, d), each with the sign that agrees with its predecessor, the largest entry positive."""
    scaled = directions / units  # for columns at unit variance
    turns = np.where(row_products(scaled[1:], scaled[:-1]) < 0.0, -1.0, 1.0)
    signs = np.cumprod(np.append(1.0, turns))
    scaled *= signs[:, None]
    largest = scaled.ravel()[np.argmax(np.abs(scaled))]
    return np.asarray(directions * (signs if largest >= 0.0 else -signs)[:, None])
