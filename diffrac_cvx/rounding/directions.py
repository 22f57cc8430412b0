"""Directions: of labels, of a matrix V, and the affine functions behind a factor."""

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
from diffrac_cvx.points.reading import as_points, gram_of_products
from diffrac_cvx.problem.penalties.structure import PenaltyWeights
from diffrac_cvx.problem.result import Result
from diffrac_cvx.rounding.socp_directions import socp_direction
from diffrac_cvx.rounding.two_clusters import kmeans_1d, right_vectors

DIRECT_SOLVE_SIZE = 400  # rows or columns of X G from which on least squares take steps
INITIAL_FEATURES = 300  # in which a sparse direction is looked for at first
MAX_SIGN_PATTERNS = 20  # that are tried before the features are added one by one
TRIANGULAR_RCOND = 1e-8  # inverse of the condition number from which on a triangular system is solved as it is
GRAM_RCOND = 1e-5  # the same, of the Cholesky factor of a Gram matrix
MIN_CG_STEPS = 20  # of conjugate gradients that are made whatever the time
MAX_SWEEPS, SWEEP_RTOL = 2000, 1e-12  # over all coordinates; the relative change after which there is no other
FEWER_FEATURES = "take fewer features"
ORIGIN_RTOL = 1e-20  # x'Vx, over its mean, below which a point is at the centre up to rounding


def best_directions(X: Points, targets: Array, weights: PenaltyWeights) -> Array:
    """Return the directions of `best_direction`, shape (k, d), for the columns of targets, (n, k)."""
    found: list[Array] = []
    for k, target in enumerate(targets.T):  # of two that are each other's negative, as for two clusters, one is solved
        same = next((i for i in range(k) if np.array_equal(targets[:, i], -target)), None)
        found.append(best_direction(X, target, weights) if same is None else -found[same])
    return np.array(found).reshape(-1, X.shape[1])


def oriented_direction(X: Points, labels: Array, weights: PenaltyWeights) -> tuple[Array, Array]:
    """Return labels in {-1, +1}, or their opposite, with the best direction: where signs are known, the cheaper."""
    v = best_direction(X, labels - X.mean_of(labels), weights)
    if weights.structure.nonnegative is None:
        return labels, v
    other = best_direction(X, X.mean_of(labels) - labels, weights)
    centered = labels - X.mean_of(labels)
    Xty = X.rmatvec(centered if X.counts is None else centered * X.counts)
    # At its best scale a direction costs 1 less its product with the pulls.
    return (labels, v) if Xty @ v >= -(Xty @ other) else (-labels, other)


def best_direction(points: Points, target: Array, weights: PenaltyWeights) -> Array:
    """Return argmin over v of |target - X v|^2/n + sum a_i^2 v_i^2 + (sum c_i |v_i|)^2, or with groups and known signs.

    Without l1 part it is least squares.  With one, the signs are looked for where they may be unique.  Where that fails
    a few features are used at first, and then those whose slope exceeds what the l1 part allows a zero, until there is
    none.  There is no d x d matrix where there are fewer points than features and a ridge on all of them or on none.
    The mean of the squares is weighted where the points have shares.  Where the time is up while many features are
    weighed, it is a direction that costs more.  A factorisation that would not fit in memory is refused.
    """
    if points.excluded is not None:  # columns that are excluded have no coefficient, not even of rounding
        v, included = np.zeros(points.shape[1]), np.setdiff1d(np.arange(points.shape[1]), points.excluded.columns)
        if points.is_streamed:
            v[included] = best_direction(points.with_excluded(None), target, weights)[included]
        else:
            v[included] = best_direction(points.in_columns().columns(included), target, weights.restrict(included))
        return v
    a, c, structure = weights
    if not structure.is_elementwise:
        return socp_direction(points, target, weights)
    target = target if points.counts is None else target * np.sqrt(points.counts)
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
    """Return what `best_direction` does, from second moments: of all features, or of those that are used."""
    scale = inverse_or_one(np.sqrt(X.mean_squares() + a**2 + c**2))
    Xty, ridge, weights = X.rmatvec(target) * scale, a * scale, c * scale
    d, v = len(Xty), np.zeros(len(Xty))
    if X.is_streamed or not weights.all():  # else a few features are used at first
        require_memory(8.0 * 6 * d**2, f"the direction of labels in {d} features", FEWER_FEATURES)
        return solve_gram(X.scaled(scale).second_moment(), Xty, ridge, weights) * scale
    size, slopes, chosen, whole = INITIAL_FEATURES, np.abs(Xty), np.zeros(d, dtype=bool), X.in_columns()
    while size:
        chosen[np.argsort(-np.where(chosen, -np.inf, slopes))[:size]] = True
        active = np.flatnonzero(chosen)
        some = whole.columns(active).scaled(scale[active])
        v[active] = solve_gram(some.second_moment(), Xty[active], ridge[active], weights[active])
        slopes = np.abs(Xty - X.rmatvec(X @ (scale * v)) * scale - ridge**2 * v) - weights * (weights @ np.abs(v))
        size = min(int(np.sum(slopes[~chosen] > 8 * len(X) * EPS)), int(chosen.sum()))
    return v * scale


def solve_gram(gram: Array, Xty: Array, ridge: Array, weights: Array) -> Array:
    """Return argmin over v of v'(gram + Diag(ridge)^2)v - 2 pulls'v + (sum weights_i |v_i|)^2, as `best_direction`."""
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
    """Return argmin over v of |b - Z v|^2 + sum ridge_i^2 v_i^2, of least norm where there are several."""
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
    """Return what `ridge_direction` does from a Gram matrix of the smaller size, None where that is not accurate."""
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
    """Return the lower Cholesky factor of a positive definite matrix, None where it is not well conditioned."""
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
        if size <= enough or (done >= MIN_CG_STEPS and is_late()):  # then it is what a few steps give
            break
        image = Z.T @ (Z @ step) + weights * step
        length = size / float(step @ image)
        v, slope = v + length * step, slope - length * image
        size, before = float(slope @ slope), size
        step = slope + (size / before) * step
    return v


def direction_by_signs(Z: Array, b: Array, ridge: Array, weights: Array) -> Array | None:
    """Return what `sparse_direction` does, by Newton's method on the optimality conditions; None where that fails."""
    v = ridge_direction(Z, b, ridge)
    signs = np.sign(v)
    for _ in range(MAX_SIGN_PATTERNS):
        if is_late():
            return None
        active = signs != 0.0
        row = (weights * signs)[active]  # where the signs are known, the l1 part is (row'v)^2: one more of the squares
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
    """Return what `sparse_direction` does for many features, by descent along one coordinate after the other.

    The l1 part is the square of a separable function, whose slopes are separable too: where no coordinate improves it,
    nothing does.
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
        if largest <= SWEEP_RTOL * np.abs(v).max() or is_late():  # then it is what the sweeps until now give
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

    They exist for all linear functions of the rows of F, which are those of X V^(1/2) at unit norm, up to a rotation.
    """
    if result.G is None:  # the solver failed
        return np.zeros((scores.shape[1], X.shape[1])), np.zeros(scores.shape[1])
    G = result.G  # sparse where V has components: it may be as wide as there are features
    points = X if G.shape[0] == X.shape[1] else np.column_stack([X, np.ones(len(X))])
    projected = np.asarray(points @ G)
    q = np.sum(projected**2, axis=1)
    nonzero = q > ORIGIN_RTOL * q.mean()
    rows, wanted = projected[nonzero] / np.sqrt(q[nonzero, None]), scores[nonzero]
    if min(rows.shape) > DIRECT_SOLVE_SIZE:  # the scores are of a few leading directions, which a few steps find
        coefficients = np.column_stack([least_squares(rows, score) for score in wanted.T])
    else:
        coefficients = np.linalg.lstsq(rows, wanted)[0]
    W = np.asarray(G @ coefficients).T
    return W[:, : X.shape[1]], W[:, X.shape[1] :].sum(axis=1)


def threshold(values: Array, sample_weight: Array | None = None) -> float:
    """Return the midpoint of the gap between the two clusters of numbers; the largest number if they are all equal."""
    labels = kmeans_1d(values, sample_weight)
    above = labels == labels[np.argmax(values)]
    if above.all():
        return float(values.max())
    return float((values[above].min() + values[~above].max()) / 2)


def leading_direction(X: npt.ArrayLike, V: npt.ArrayLike | Result) -> Array:
    """Return v such that X vv' X' is the best approximation of rank one of X V X'.

    If V = vv' it is v.  It does not depend on the units of the columns, except for its sign: the largest entry is
    positive when all columns are at unit variance.

    Source: X V X' is what the labels' matrix is read from, appendix C.2.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    V : Result, or (d, d) array, or (d + 1, d + 1) with the offset last
        Matrix of directions; the offset is left out.  For a result in Y alone, V = X^+ Y X^+'.

    Raises
    ------
    DataError
        If X cannot be used as given, or V has another shape.
    """
    columns = UnitColumns(as_points(X, by_columns=True, warn=False))  # the solvers warn
    return columns.leading_direction(columns.factor_of(V))


class UnitColumns:
    """Centred data X (n, d), and the units that give its columns mean square one."""

    def __init__(self, X: Points) -> None:
        self.X, self.units = X, inverse_or_one(np.sqrt(X.mean_squares()))

    def leading_direction(self, G: Factor) -> Array:
        """Return the leading direction of V = GG', G with d rows, for columns at unit variance."""
        points = self.X.scaled(self.units)
        if points.in_memory:
            weights = right_vectors(points @ G, 1)[0]
        else:
            weights = np.linalg.eigh(gram_of_products(points, G))[1][:, -1]
        v = np.asarray(G @ weights)
        return np.asarray(self.units * (v if v[np.argmax(np.abs(v))] >= 0.0 else -v))  # the largest entry is positive

    def factor_of(self, V: npt.ArrayLike | Result) -> Factor:
        """Return G with V = GG' for columns at unit variance, without the offset; in Y alone, V = X^+ Y X^+'."""
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
        # Unit columns first: the factor of a badly scaled V keeps its small entries.
        return psd_factor(matrix[:d, :d] / np.outer(self.units, self.units))

    def factor_of_labels(self, F: Array) -> Array:
        """Return G of the V that is best in (11) for a result in Y alone."""
        if len(F) != len(self.X):
            raise DataError(f"the result is for {len(F)} points, X has {len(self.X)}")
        if not self.X.in_memory:
            raise DataError("the result is in Y alone; for such data pass one of low_rank or fista")
        return np.asarray(np.linalg.lstsq(self.X.array() * self.units, F - F.mean(axis=0))[0])


def align_signs(directions: Array, units: Array) -> Array:
    """Return directions, (m, d), each with the sign that agrees with the one before, the largest entry positive."""
    scaled = directions / units  # for columns at unit variance
    turns = np.where(row_products(scaled[1:], scaled[:-1]) < 0.0, -1.0, 1.0)
    signs = np.cumprod(np.append(1.0, turns))
    scaled *= signs[:, None]
    largest = scaled.ravel()[np.argmax(np.abs(scaled))]
    return np.asarray(directions * (signs if largest >= 0.0 else -signs)[:, None])
