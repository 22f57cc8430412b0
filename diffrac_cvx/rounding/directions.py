"""Directions of labels and of a matrix V, and the affine functions of a factor."""

from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy
from scipy.sparse.linalg import lsqr

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
    times,
    triangular_root,
    with_ridge_rows,
)
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.points.rows import Indices
from diffrac_cvx.points.table import Table
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.problem.result import Result
from diffrac_cvx.rounding.two_clusters import kmeans_1d, kmeans_centered, labels_from_known, threshold_between

DIRECT_SOLVE_SIZE = 400  # rows and columns of X G above which least squares are solved iteratively
MAX_ALTERNATIONS, MAX_STREAMED_ALTERNATIONS = 100, 2  # between directions and labels
INITIAL_FEATURES = 300  # size of the initial working set of a sparse direction, in whole groups
MAX_SIGN_PATTERNS = 20  # sign patterns tried before the general solver
TRIANGULAR_RCOND = 1e-8  # reciprocal condition number above which a triangular system is solved by substitution
GRAM_RCOND = 1e-5  # likewise for the Cholesky factor of a Gram matrix
TALL = 20  # rows per column above which the Gram matrix of a small table is factorised
LATE_ITERATIONS = 20  # iterations of LSQR when there is no time for a factorisation
ENTERING_RTOL = 1e-6  # relative violation of its bound at which the gradient of a group enters the working set
ZERO_GROUP_RTOL = 1e-4  # of the largest group, in unit columns: smaller ones are set to 0 (Clarabel leaves about 1e-6)
ZERO_COEFFICIENT_RTOL = 1e-7  # of the largest coefficient: smaller nonnegative ones are set to 0
CLARABEL_TOL = 1e-11
FEWER_FEATURES = "use fewer features"
ORIGIN_RTOL = 1e-20  # x'Vx relative to its mean, below which a point equals the centre up to rounding


class LabelRegression:
    """Penalised least squares of labels on a table; quantities that do not depend on the labels are computed once.

    Attributes
    ----------
    X : Table
        Points, with weights, constraints and excluded columns.
    weights : PairPenalty
        Weights of the ridge and of the penalty on pairs.
    """

    def __init__(self, X: Table, weights: PairPenalty) -> None:
        self.X, self.weights, d = X, weights, X.shape[1]
        self.included = np.arange(d)
        if X.excluded is not None:  # excluded columns have no coefficient, not even a rounding error
            self.included = np.setdiff1d(self.included, X.excluded.columns)
            X, weights = X.columns(self.included), weights.restrict(self.included)
        self.rows = X.weighted_rows()
        roots = np.sqrt(self.rows.mean_squares() + weights.a**2 + weights.c**2)
        self.scale = inverse_or_one(weights.group_max(roots))
        self.pairs = weights.scaled(self.scale)
        self.gram: tuple[Indices, Array] | None = None  # of the last working set

    @cached_property
    def Z(self) -> Array:
        """Rows in scaled columns, over the root of their number."""
        return np.asarray(self.rows.array() * (self.scale / len(self.rows) ** 0.5))

    @cached_property
    def ridge_regression(self) -> "RidgeRegression":
        return RidgeRegression(self.Z, self.pairs.a)

    def directions(self, targets: Array) -> Array:
        """Return the directions of `direction`, shape (k, d), for the columns of targets, (n, k)."""
        found: list[Array] = []
        for k, target in enumerate(targets.T):  # opposite targets, as for two clusters, are solved once
            same = next((i for i in range(k) if np.array_equal(targets[:, i], -target)), None)
            found.append(self.direction(target) if same is None else -found[same])
        return np.array(found).reshape(-1, self.X.shape[1])

    def oriented(self, labels: Array) -> tuple[Array, Array]:
        """Return labels in {-1, +1} and their direction; with sign constraints, the better one of y and -y."""
        X, centered = self.X, labels - self.X.mean_of(labels)
        v = self.direction(centered)
        if self.weights.is_even:
            return labels, v
        other, Xty = self.direction(-centered), X.rmatvec(X.times_counts(centered))
        # At its best scale a direction has the objective 1 - Xty'v.
        return (labels, v) if Xty @ v >= -(Xty @ other) else (-labels, other)

    def direction(self, target: Array) -> Array:
        """Return argmin over feasible v of |target - X v|^2/n + sum a_i^2 v_i^2 plus the penalty on pairs, at vv'.

        Without a penalty on pairs this is least squares on the rows.  With an l1 penalty, (sum c_i |v_i|)^2, Newton's
        method on sign patterns is tried on the rows, if all features have a ridge or n >= d.  Otherwise a working set
        grows by the groups of features whose gradient violates the optimality conditions.  The mean of squares uses the
        sample weights.  After the deadline the direction may be suboptimal.  Raise ResourceError if a factorisation
        would not fit in memory.
        """
        v = np.zeros(self.X.shape[1])
        v[self.included] = self.scaled_direction(self.X.times_root_counts(target)) * self.scale
        return v

    def scaled_direction(self, target: Array) -> Array:
        """Return the direction in scaled columns, for a target times the roots of the counts of the points."""
        (n, d), c, ridge = self.rows.shape, self.pairs.c, self.pairs.a
        if self.rows.in_memory and self.pairs.splits_into_blocks:
            b = target / n**0.5
            if not c.any():
                return self.ridge_regression.solve(b)
            if (n >= d or ridge.all()) and not (min(n, d) > LARGE_SIZE // 2 and is_late()):
                Z, b, rest = (*triangular_system(self.Z, b, ridge), np.zeros(d)) if n >= d else (self.Z, b, ridge)
                found = direction_by_signs(Z, b, rest, c, RidgeRegression(Z, rest).solve(b))
                if found is not None:
                    return found
        return self.direction_of_working_set(target)

    def direction_of_working_set(self, target: Array) -> Array:
        """Return the direction in scaled columns from Gram matrices of a growing set of features."""
        X, pairs, scale = self.rows, self.pairs, self.scale
        Xty, d = X.rmatvec(target) * scale, len(scale)
        v, slopes, chosen = np.zeros(d), Xty, np.zeros(d, dtype=bool)
        while True:
            sizes, bounds = pairs.group_norms(pairs.nearest_direction(slopes)), pairs.c * float(pairs.direction_norm(v))
            excess = sizes - bounds
            slack = 8 * len(X) * EPS if pairs.splits_into_blocks else ENTERING_RTOL * bounds
            violated = ((excess > slack) | (pairs.c == 0.0)) & ~chosen
            if not violated.any() or (chosen.any() and is_late()):
                return v
            order = np.argsort(-np.where(violated, excess, -np.inf), kind="stable")[: int(violated.sum())]
            chosen[pairs.first_groups(order, max(INITIAL_FEATURES, int(chosen.sum())))] = True
            active = np.flatnonzero(chosen)
            v[active] = solve_gram(self.gram_of(active), Xty[active], pairs.restrict(active))
            if not chosen.all():
                slopes = Xty - X.rmatvec(X @ (scale * v)) * scale - pairs.a**2 * v

    def gram_of(self, active: Indices) -> Array:
        """Return the second moments of some scaled columns with their ridge; the last result is cached."""
        if self.gram is None or not np.array_equal(self.gram[0], active):
            require_memory(
                8.0 * 6 * len(active) ** 2, f"the direction of labels in {len(active)} features", FEWER_FEATURES
            )
            moments = self.rows.columns(active).scaled(self.scale[active]).second_moment()
            self.gram = active, moments + np.diag(self.pairs.a[active] ** 2)
        return self.gram[1]


def best_direction(X: Table, target: Array, weights: PairPenalty) -> Array:
    """Return the direction of one target, see `LabelRegression.direction`."""
    return LabelRegression(X, weights).direction(target)


def solve_gram(gram: Array, Xty: Array, pairs: PairPenalty) -> Array:
    """Return argmin over feasible v of v' gram v - 2 Xty'v plus the penalty on pairs; without it, of least norm."""
    if not pairs.splits_into_blocks:
        return cone_direction(gram, Xty, pairs)
    values, Q = np.linalg.eigh(gram)
    mask = values > 8 * len(values) * EPS * max(values[-1], 0.0)
    values, Q = values[mask], Q[:, mask]
    if not pairs.c.any():
        return np.asarray(Q @ (Q.T @ Xty / values))
    roots, zeros = np.sqrt(values), np.zeros(len(Xty))
    Z, b = roots[:, None] * Q.T, Q.T @ Xty / roots
    found = direction_by_signs(Z, b, zeros, pairs.c, RidgeRegression(Z, zeros).solve(b)) if mask.all() else None
    if found is None:
        start = cone_direction(gram, Xty, pairs)
        found = direction_by_signs(Z, b, zeros, pairs.c, start)
    return start if found is None else found


def direction_by_signs(Z: Array, b: Array, ridge: Array, weights: Array, start: Array) -> Array | None:
    """Return argmin over v of |b - Z v|^2 + sum ridge_i^2 v_i^2 + (sum weights_i |v_i|)^2, or None if it is not found.

    Newton's method on the optimality conditions, which are linear for given signs of v.
    """
    signs = np.sign(start)
    for _ in range(MAX_SIGN_PATTERNS):
        if is_late():
            return None
        active = signs != 0.0
        row = (weights * signs)[active]  # at fixed signs the l1 penalty is (row'v)^2, one more square
        v = np.zeros(len(signs))
        if active.any():
            v[active] = RidgeRegression(np.vstack([Z[:, active], row]), ridge[active]).solve(np.append(b, 0.0))
        slopes = Z.T @ (b - Z @ v)
        entering = ~active & (np.abs(slopes) > weights * (row @ v[active]))
        found = np.where(entering, np.sign(slopes), np.where(v * signs > 0.0, signs, 0.0))
        if np.array_equal(found, signs):
            return v
        signs = found
    return None


def cone_direction(gram: Array, Xty: Array, pair_penalty: PairPenalty) -> Array:
    """Return argmin over feasible v of v' gram v - 2 Xty'v plus any penalty on pairs, by a cone program."""
    import clarabel

    d, G, signed = len(Xty), len(pair_penalty.groups), np.flatnonzero(pair_penalty.nonnegative)
    # The unknowns are v, the norms of the groups and their weighted sum.
    rows = scipy.sparse.identity(d + G + 1, format="csr")
    norms = [np.append(d + g, group) for g, group in enumerate(pair_penalty.groups)]
    total = scipy.sparse.csc_array(np.concatenate([np.zeros(d), pair_penalty.weights, [-1.0]])[None])
    A = scipy.sparse.vstack([-rows[signed], total, -rows[np.concatenate(norms)]], format="csc")
    cones = [clarabel.NonnegativeConeT(len(signed)), clarabel.ZeroConeT(1)]
    cones += [clarabel.SecondOrderConeT(len(places)) for places in norms]
    P = scipy.sparse.block_diag([np.triu(2.0 * gram), scipy.sparse.csc_array((G, G)), [[2.0]]], format="csc")
    q = np.concatenate([-2.0 * Xty, np.zeros(G + 1)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = CLARABEL_TOL
    found = np.asarray(clarabel.DefaultSolver(P, q, A, np.zeros(A.shape[0]), cones, settings).solve().x[:d])
    if not np.all(np.isfinite(found)):
        return np.zeros(d)
    small = ZERO_COEFFICIENT_RTOL * np.abs(found).max(initial=0.0)
    found[pair_penalty.nearest_direction(found - small) == 0.0] = 0.0
    sizes = pair_penalty.group_norms(found)
    found[(sizes <= ZERO_GROUP_RTOL * sizes.max(initial=0.0)) & (pair_penalty.c > 0.0)] = 0.0
    cost = float(found @ gram @ found) + pair_penalty.direction_value(found)
    return found * max(float(Xty @ found), 0.0) / cost if cost > 0.0 else found


class RidgeRegression:
    """Ridge regression, argmin over v of |b - Z v|^2 + sum ridge_i^2 v_i^2; the minimiser of least norm if not unique.

    The Cholesky factor of the Gram matrix, if it exists, is reused for all b.
    """

    def __init__(self, Z: Array, ridge: Array) -> None:
        self.Z, self.ridge = Z, ridge
        n, d = Z.shape
        # The dual: find w = ridge v and the residual r of least norm with Z w / ridge + r = b.
        self.is_dual = n < d and bool(np.all(ridge > 0.0))
        self.M, damping = ((Z / ridge).T, np.ones(n)) if self.is_dual else (Z, ridge)
        self.factor = gram_factor(self.M, damping)

    def solve(self, b: Array) -> Array:
        """Return the coefficients, shape (d,), of b, shape (n,)."""
        Z, ridge, M, factor = self.Z, self.ridge, self.M, self.factor
        n, d = Z.shape
        if factor is None and min(n, d) > LARGE_SIZE // 2 and is_late(20.0 * max(n, d) * float(min(n, d)) ** 2):
            rows = with_ridge_rows(Z, ridge)
            return np.asarray(lsqr(rows, np.append(b, np.zeros(len(rows) - n)), iter_lim=LATE_ITERATIONS)[0])
        if self.is_dual and factor is not None:
            return np.asarray(M @ scipy.linalg.cho_solve((factor, True), b) / ridge)
        if self.is_dual:
            Q, R = scipy.linalg.qr(np.vstack([M, np.eye(n)]), mode="economic", check_finite=False)
            return np.asarray(Q[:d] @ scipy.linalg.solve_triangular(R, b, trans="T") / ridge)
        if factor is not None:
            v = scipy.linalg.cho_solve((factor, True), Z.T @ b)
            return np.asarray(v + scipy.linalg.cho_solve((factor, True), Z.T @ (b - Z @ v) - ridge**2 * v))
        R, b = triangular_system(Z, b, ridge)
        if len(R) == d and scipy.linalg.lapack.dtrcon(R)[0] > TRIANGULAR_RCOND:
            return np.asarray(scipy.linalg.solve_triangular(R, b))
        return np.asarray(np.linalg.lstsq(R, b, rcond=8 * max(n, d) * EPS)[0])


def gram_factor(Z: Array, ridge: Array) -> Array | None:
    """Return the lower Cholesky factor of Z'Z + Diag(ridge)^2; None if Z is small, ill-conditioned, or late."""
    rows, columns = Z.shape
    is_large = min(rows, columns) > LARGE_SIZE // 2
    if not (is_large or rows >= TALL * columns) or rows + np.count_nonzero(ridge) < columns or (is_large and is_late()):
        return None
    try:
        L = cholesky(times(Z.T, Z) + np.diag(ridge**2))
    except np.linalg.LinAlgError:
        return None
    return L if scipy.linalg.lapack.dtrcon(L, uplo="L")[0] > GRAM_RCOND else None


def triangular_system(Z: Array, b: Array, ridge: Array) -> tuple[Array, Array]:
    """Return R and e with |e - R v|^2 = |b - Z v|^2 + sum ridge_i^2 v_i^2 up to a constant, R with at most d rows."""
    d = Z.shape[1]
    rows = len(Z) + np.count_nonzero(ridge)
    require_memory(
        8.0 * (3 * rows * d + 4 * min(rows, d) * d), f"the direction of labels in {d} features", FEWER_FEATURES
    )
    factor = gram_factor(Z, ridge)
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
    if min(rows.shape) > DIRECT_SOLVE_SIZE:  # the scores lie in a few leading directions, so few iterations suffice
        coefficients = np.column_stack([lsqr(rows, score, atol=EPS, btol=EPS)[0] for score in wanted.T])
    else:
        coefficients = np.linalg.lstsq(rows, wanted)[0]
    W = np.asarray(G @ coefficients).T
    return W[:, : X.shape[1]], W[:, X.shape[1] :].sum(axis=1)


def label_candidates(regression: LabelRegression, F: Array) -> tuple[Array, Array]:
    """Return the labels of a factor F, and those from exact 2-means of the projections onto their direction.

    Both satisfy the constraints.  If labels are known, both are the signs of the products with the labelled points.
    """
    X = regression.X
    if X.has_known_labels:
        return (labels_from_known(F, X.chunklets),) * 2
    rounded = X.assign_labels(kmeans_centered(F, X.weights))
    projections = X @ regression.oriented(rounded)[1]
    middle = threshold_between(projections, kmeans_1d(projections, X.weights))
    return rounded, X.assign_labels(projections - middle)


def best_affine_function(X: Table, F: Array, nu: float, weights: PairPenalty) -> tuple[Array, float]:
    """Return direction and intercept of two clusters: the better of the labels of a factor and of their 2-means.

    Both alternate with their directions while Eq. (9) decreases.  If labels are known, it is least squares on the
    labels.
    """
    regression = LabelRegression(X, weights)
    candidates = label_candidates(regression, F)
    if X.has_known_labels:
        mean = float(X.mean_of(candidates[0]))
        return regression.direction(candidates[0] - mean), mean
    found = [alternate(regression, labels, nu) for labels in candidates]
    v, intercept, _ = min(found, key=lambda one: one[2])
    if weights.is_even and v[np.argmax(np.abs(v) * np.sqrt(X.mean_squares()))] < 0:
        v, intercept = 0.0 - v, -intercept
    return v, intercept


def alternate(regression: LabelRegression, labels: Array, nu: float) -> tuple[Array, float, float]:
    r"""Alternate between labels and their direction; return direction, intercept and the objective of Eq. (9).

    At the direction v of labels with mean m the objective is 1 - (1 - nu) m^2 - (X'y/n)'v, and taking the signs of Xv +
    (1 - nu) m never increases it.  The last labels are the signs of the returned affine function.  If these would all
    be equal, the threshold of 2-means is used instead.  Streamed tables, which are read again for each sum, get few
    steps.
    """
    X = regression.X
    for _ in range(MAX_STREAMED_ALTERNATIONS if X.rows.is_streamed else MAX_ALTERNATIONS):
        labels, v = regression.oriented(labels)
        projections, mean = X @ v, float(X.mean_of(labels))
        intercept = (1.0 - nu) * mean
        changed = X.assign_labels(projections + intercept)
        if np.array_equal(changed, labels) or not np.ptp(changed) or is_late():
            break
        labels = changed
    if not np.ptp(changed):
        intercept = -threshold_between(projections, kmeans_1d(projections, X.weights))
    product = float(X.mean_of(labels * projections))
    return v, intercept, 1.0 - (1.0 - nu) * mean**2 - product


def leading_direction(X: npt.ArrayLike, V: npt.ArrayLike | Result) -> Array:
    """Return v such that X vv' X' is the best rank-one approximation of X V X'.

    If V = vv' this is v.  Only its sign depends on the units of the columns: the largest entry is positive for columns
    of unit variance.

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
    points = read_points(X, by_columns=True).X  # the solvers warn
    d, units = points.shape[1], units_of(points)
    if not isinstance(V, Result):
        V = as_matrix(V, "V")
        if V.shape not in ((d, d), (d + 1, d + 1)):
            raise DataError(f"V has shape {V.shape}; for these data it must be ({d}, {d}) or ({d + 1}, {d + 1}).")
        # Unit columns first: factorising a badly scaled V would lose its small entries.
        G: Factor = psd_factor(V[:d, :d] / np.outer(units, units))
    elif V.G is not None:
        if V.G.shape[0] not in (d, d + 1):
            raise DataError(f"V has {V.G.shape[0]} rows; for these data it must have {d} or {d + 1}.")
        G = scale_rows(V.G[:d], 1.0 / units)
    elif len(V.F) != len(points):
        raise DataError(f"the result has {len(V.F)} points, X has {len(points)}. Pass the X that was solved.")
    else:  # G of the optimal V in (11)
        G = np.linalg.lstsq(points.array() * units, V.F - V.F.mean(axis=0))[0]
    v = np.asarray(G @ np.linalg.eigh(points.rows.scaled(units).gram_of_products(G))[1][:, -1])
    return np.asarray(units * (v if v[np.argmax(np.abs(v))] >= 0.0 else -v))  # the largest entry is positive


def units_of(X: Table) -> Array:
    """Return the factors that give centred columns mean square one."""
    return inverse_or_one(np.sqrt(X.mean_squares()))
