"""The paper's problems, each written from its formula: dense, unscaled, slow, and independent of the package.

CLARABEL's tolerances are 1e-8; on data of order one the values below are right to about 1e-7, tested to 1e-6.
"""

from itertools import combinations, product
from typing import NamedTuple

import cvxpy as cp
import numpy as np
import scipy.linalg

TOL = 1e-6


def column(weight, d):
    return np.broadcast_to(np.asarray(weight, dtype=float), (d,))


def centering(n):
    return np.eye(n) - np.ones((n, n)) / n


def hat(X, a=0.0):
    """X (X'X + n Diag(a)^2)^+ X': Eq. (16) with the transpose that the paper's last X lacks."""
    n, d = X.shape
    return X @ np.linalg.pinv(X.T @ X + n * np.diag(column(a, d) ** 2), rcond=1e-12) @ X.T


def gamma(V, a=0.0, c=0.0):
    """Gamma(V) = sum_i a_i^2 V_ii + sum_ij c_i c_j |V_ij|."""
    a, c = column(a, len(V)), column(c, len(V))
    return float(a**2 @ np.diag(V) + c @ np.abs(V) @ c)


def y_objective(Y, X, nu=1.0, a=0.0):
    """Objective of Eq. (8), and of Eq. (7) at nu = 0."""
    n = len(X)
    return float(np.trace(Y @ (centering(n) - hat(X, a))) / n + nu * Y.sum() / n**2)


def augmented(X, nu, a=0.0, c=0.0):
    """Eq. (14) at nu < 1: a column of ones with a = sqrt(nu / (1 - nu)), c = 0."""
    d = X.shape[1]
    a, c = column(a, d), column(c, d)
    if nu == 1.0:
        return X, a, c
    return np.column_stack([X, np.ones(len(X))]), np.append(a, (nu / (1 - nu)) ** 0.5), np.append(c, 0.0)


def mean_sqrt(V, X):
    """g(V) = mean_i sqrt(x_i'V x_i)."""
    return float(np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", X, V, X), 0.0)).mean())


def v_objective(V, X, a=0.0, c=0.0):
    """Objective of Eq. (15) on data that are augmented already."""
    return float(1 - 2 * mean_sqrt(V, X) + np.trace(X.T @ X @ V) / len(X) + gamma(V, a, c))


def solved(problem):
    problem.solve(solver="CLARABEL")
    return problem.value


def solve_y(X, nu=1.0, a=0.0):
    """Optimal value and Y of Eq. (8), with a ridge of Eq. (16)."""
    n = len(X)
    Y = cp.Variable((n, n), PSD=True)
    K = (centering(n) - hat(X, a)) / n + nu * np.ones((n, n)) / n**2
    return solved(cp.Problem(cp.Minimize(cp.trace(K @ Y)), [cp.diag(Y) == 1])), Y.value


def solve_alpha(X, alpha, a=0.0):
    """Optimal value and Y of Eq. (7), with the ridge of Eq. (16).

    At alpha = 0, where Y1 = 0, it is over Y = N W N', with N a basis of the complement of 1.
    """
    n = len(X)
    N = scipy.linalg.null_space(np.ones((1, n))) if alpha == 0.0 else np.eye(n)
    W = cp.Variable((N.shape[1], N.shape[1]), PSD=True)
    Y = N @ W @ N.T
    constraints = [cp.diag(Y) == 1] + ([cp.sum(Y) / n**2 == alpha] if alpha > 0.0 else [])
    return solved(cp.Problem(cp.Minimize(cp.trace((centering(n) - hat(X, a)) @ Y) / n), constraints)), Y.value


def gamma_expression(V, a, c):
    return cp.sum(cp.multiply(a**2, cp.diag(V))) + cp.sum(cp.abs(cp.multiply(np.outer(c, c), V)))


def solve_lifted(X, nu=1.0, a=0.0, c=0.0):
    """Optimal value of Eq. (11) with Gamma(V)."""
    n, d = X.shape
    block = cp.Variable((n + d, n + d), PSD=True)
    Y, P, V = block[:n, :n], block[:n, n:], block[n:, n:]
    fit = cp.trace(centering(n) @ Y) / n - 2 * cp.trace(P.T @ X) / n + cp.trace(X.T @ X @ V) / n
    total = fit + nu * cp.sum(Y) / n**2 + gamma_expression(V, column(a, d), column(c, d))
    return solved(cp.Problem(cp.Minimize(total), [cp.diag(Y) == 1]))


def mean_sqrt_expression(V, X):
    return cp.sum(cp.sqrt(cp.sum(cp.multiply(X @ V, X), axis=1))) / len(X)


def solve_v(X, nu=1.0, a=0.0, c=0.0, crossed=1.0):
    """Optimal value and V of Eq. (15), on augmented data at nu < 1; crossed multiplies c_i c_j |V_ij| where i != j."""
    X, a, c = augmented(X, nu, a, c)
    V = cp.Variable((X.shape[1], X.shape[1]), PSD=True)
    objective = 1 - 2 * mean_sqrt_expression(V, X) + cp.trace(X.T @ X @ V) / len(X) + gamma_expression(V, a, c)
    cross = np.outer(c, c) - np.diag(c**2)
    objective += (crossed - 1) * cp.sum(cp.abs(cp.multiply(cross, V)))
    return solved(cp.Problem(cp.Minimize(objective))), V.value


def solve_normalized(X, nu=1.0, a=0.0, c=0.0):
    """Optimal value and V of Eq. (21), as a minimisation."""
    X, a, c = augmented(X, nu, a, c)
    V = cp.Variable((X.shape[1], X.shape[1]), PSD=True)
    A = X.T @ X / len(X) + np.diag(a**2)
    objective = gamma_expression(V, 0 * a, c) - mean_sqrt_expression(V, X)
    return solved(cp.Problem(cp.Minimize(objective), [cp.trace(A @ V) == 1])), V.value


def labelings(n):
    """All labellings with y_1 = 1, shape (2^(n-1), n)."""
    return np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=n - 1)])


def labelings_values(X, nu=1.0, ridge=0.0, lam=0.0, w=None, sides=None):
    """Return all labellings, (2^n, n), and Eq. (9) at each, minimised over the directions of all sign patterns.

    By least squares with one row for each point, each column's ridge, and the l1 norm; with weights of pairs of
    columns, sides, positive definite, a row for each column of their root.
    """
    n, d = X.shape
    p = np.full(n, 1.0 / n) if w is None else w / w.sum()
    c, Y = np.sqrt(np.broadcast_to(lam, d)), np.array(list(product((-1.0, 1.0), repeat=n)))
    root, means, best = np.sqrt(p), Y @ p, np.full(len(Y), np.inf)
    system = np.vstack([root[:, None] * (X - p @ X), np.diag(np.sqrt(np.broadcast_to(ridge, d)))])
    target = np.vstack([root[:, None] * (Y - means[:, None]).T, np.zeros((d, len(Y)))])
    L = np.ones((d, 1)) if sides is None else np.linalg.cholesky(sides)
    for pattern in product((-1.0, 0.0, 1.0), repeat=d) if c.any() else [(1.0,) * d]:
        s = np.array(pattern)
        rows, zeros = L.T * (c * s), np.zeros((L.shape[1], len(Y)))
        v = np.linalg.lstsq(np.vstack([system * np.abs(s), rows]), np.vstack([target, zeros]))[0]
        penalty = np.sum((L.T @ (c[:, None] * np.abs(v))) ** 2, axis=0)
        best = np.minimum(best, np.sum((target - system @ v) ** 2, axis=0) + penalty + nu * means**2)
    return Y, best


# Columns in groups, and known signs: not in the paper.  Groups are lists of columns, each with a weight, that of the
# squared norm; of those in no list, none is penalised.  `known` are columns that are nonnegative, `shares` sum to one.


def rows_of(X, nu=1.0, point_weights=None, membership=None, sign=None):
    """Centred rows times their shares, at nu < 1 with the offset's entry; linked rows as one, their signed sum."""
    n = len(X)
    p = np.full(n, 1.0 / n) if point_weights is None else point_weights
    centered = X - p @ X
    rows = p[:, None] * (centered if nu == 1.0 else np.column_stack([centered, np.ones(n)]))
    if membership is not None:
        rows = np.array(
            [sum(sign[i] * rows[i] for i in np.flatnonzero(membership == g)) for g in np.unique(membership)]
        )
    return rows, centered.T @ (p[:, None] * centered)


def group_penalty(V, groups, weights, sides=1.0):
    """sum_gh r_gh w_g w_h |V_gh|_*, with w_g^2 tr V_gg on the diagonal, for weights w_g^2; sides r of the columns."""
    r = np.broadcast_to(sides, V.shape)
    total = sum(weight * np.trace(V[np.ix_(g, g)]) for g, weight in zip(groups, weights, strict=True))
    for i, j in combinations(range(len(groups)), 2):
        singular = np.linalg.svd(V[np.ix_(groups[i], groups[j])], compute_uv=False)
        total += 2.0 * r[groups[i][0], groups[j][0]] * (weights[i] * weights[j]) ** 0.5 * singular.sum()
    return float(total)


def pair_penalty_parts(V, X, nu, ridge, groups, weights, sides=1.0, **given):
    """g and T of (15) at a V that has the offset's row at nu < 1; the objective is 1 - 2 g + T."""
    d = X.shape[1]
    rows, square = rows_of(X, nu, **given)
    W = V[:d, :d]
    T = np.sum(square * W) + column(ridge, d) @ np.diag(W) + group_penalty(W, groups, weights, sides)
    T += V[d, d] / (1.0 - nu) if nu < 1.0 else 0.0  # a column of ones has the mean square 1
    return float(np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", rows, V, rows), 0.0)).sum()), float(T)


def pair_penalty_value(V, *problem, **given):
    """Objective of (15) at a V."""
    g, T = pair_penalty_parts(V, *problem, **given)
    return 1.0 - 2.0 * g + T


def units_of(square, ridge, groups, weights):
    """Units in which the columns are of norm about one, the same within a group."""
    sizes = np.sqrt(np.diag(square) + ridge)
    for g, weight in zip(groups, weights, strict=True):
        sizes[g] = np.sqrt(np.max(sizes[g]) ** 2 + weight)
    return np.where(sizes > 0.0, 1.0 / np.maximum(sizes, 1e-300), 1.0)


class Judged(NamedTuple):
    """What the judge finds of (15): both bounds hold however exact CLARABEL is, as they are computed from its point."""

    optimum: float  # the solver's objective
    value: float  # the objective at an allowed V
    lower: float  # by weak duality, from the solver's multipliers


def solve_pair_penalty(X, nu=1.0, ridge=0.0, groups=(), weights=(), known=(), zero=None, sides=1.0, **given):
    """Optimal value of (15) and bounds on it, by CVXPY in columns of about norm one.

    If V is required to be 0 at given places, no lower bound is returned.  The weights of pairs of single columns may be
    multiplied by sides.
    """
    d = X.shape[1]
    rows, square = rows_of(X, nu, **given)
    ridge = column(ridge, d)
    units = units_of(square, ridge, groups, weights)
    scale = units if nu == 1.0 else np.append(units, 1.0)
    V, square_roots = cp.Variable((len(scale), len(scale)), symmetric=True), cp.Variable(len(rows))
    W, scaled, known = V[:d, :d], rows * scale, np.asarray(known, dtype=int)
    A = np.diag(np.append(ridge, 1.0 / (1.0 - nu)) if nu < 1.0 else ridge)
    A[:d, :d] += square
    A *= np.outer(scale, scale)
    sizes = np.linalg.norm(scaled, axis=1)
    sizes = np.where(sizes > 0.0, sizes, 1.0)  # of rows of any weight, which the solver sees at norm one
    total = 1 - 2 * sizes @ square_roots + cp.sum(cp.multiply(A, V))
    roots = [weight**0.5 * units[g[0]] for g, weight in zip(groups, weights, strict=True)]
    for g, side in zip(groups, roots, strict=True):
        total += side**2 * cp.trace(W[g, :][:, g])
    alone = [(g[0], side) for g, side in zip(groups, roots, strict=True) if len(g) == 1]
    if alone:  # pairs of single columns are compiled at once
        c = np.zeros(d)
        c[[j for j, _ in alone]] = [side for _, side in alone]
        total += cp.sum(cp.multiply(sides * np.outer(c, c) - np.diag(c**2), cp.abs(W)))
    for i, j in combinations(range(len(groups)), 2):
        if roots[i] * roots[j] > 0.0 and max(len(groups[i]), len(groups[j])) > 1:
            total += 2 * roots[i] * roots[j] * cp.normNuc(W[groups[i], :][:, groups[j]])
    # The square roots as second-order cones, and the cone of V, by name: their multipliers are u and Z.
    unit = scaled / sizes[:, None]
    forms = cp.sum(cp.multiply(unit @ V, unit), axis=1)
    below_root, cone = cp.SOC(forms + 1, cp.vstack([2 * square_roots, forms - 1]), axis=0), V >> 0
    constraints = [below_root, cone, *([W[known, :][:, known] >= 0] if len(known) else [])]
    constraints += [] if zero is None else [W[j, k] == 0 for j, k in np.argwhere(np.triu(zero, 1))]
    optimum, found = solved(cp.Problem(cp.Minimize(total), constraints)), allowed(np.asarray(V.value), known)
    value = pair_penalty_value(found * np.outer(scale, scale), X, nu, ridge, groups, weights, sides, **given)
    if zero is not None:
        return Judged(optimum, value, -np.inf)
    u = (below_root.dual_value[0] + below_root.dual_value[1][1]) / sizes**2
    return Judged(optimum, value, dual_bound(scaled, A, u, cone.dual_value, groups, roots, known, sides))


def dual_bound(rows, A, u, Z, groups, roots, known=(), sides=1.0):
    """Lower bound 1 - t sum 1/u on 1 - 2 sum_i sqrt(x_i'V x_i) + tr AV and the penalty, for u > 0.

    It holds if M(u) <= t (A + C), with C in the dual set of the penalty: near Z - A + M(u), where u and Z are the
    solver's multipliers.  C off the diagonal is shrunk if A + C is nearly singular; the best bound is returned.
    """
    M, r = (rows.T * u) @ rows, np.broadcast_to(sides, (len(A), len(A)) if np.ndim(sides) == 0 else np.shape(sides))
    wanted, C, diagonal = Z - A + M, np.zeros_like(A), np.zeros(len(A))
    for g, root in zip(groups, roots, strict=True):
        diagonal[g] = root**2
    for i, j in combinations(range(len(groups)), 2):
        g, h = groups[i], groups[j]
        bound = r[g[0], h[0]] * roots[i] * roots[j]
        U, singular, Wt = np.linalg.svd(wanted[np.ix_(g, h)], full_matrices=False)
        C[np.ix_(g, h)] = (U * np.minimum(singular, bound)) @ Wt
        if g[0] in known and h[0] in known:  # two columns with V_gh >= 0, for which C_gh may be any smaller number
            C[g[0], h[0]] = min(wanted[g[0], h[0]], bound)
        C[np.ix_(h, g)] = C[np.ix_(g, h)].T
    kept = np.diag(A) + diagonal > 1e-12  # in units of about one; the others are constant columns without a penalty
    M, A, C, diagonal = M[np.ix_(kept, kept)], A[np.ix_(kept, kept)], C[np.ix_(kept, kept)], diagonal[kept]
    best = 0.0
    for shrinkage in (0.0, *10.0 ** np.arange(-12.0, 1.0)):
        values, Q = np.linalg.eigh(A + np.diag(diagonal) + (1.0 - shrinkage) * C)
        if values[0] > 1e-13 * values[-1]:
            root = Q / np.sqrt(values)
            best = max(best, 1.0 - np.linalg.eigvalsh(root.T @ M @ root)[-1] * np.sum(1.0 / u))
    return float(best)


def allowed(V, known=()):
    """A positive semidefinite matrix near V, with nonnegative entries for the pairs of known columns."""
    values, Q = np.linalg.eigh((V + V.T) / 2)
    V = (Q * np.maximum(values, 0.0)) @ Q.T
    e = np.isin(np.arange(len(V)), known).astype(float)
    return V + max(0.0, -np.min(V[np.ix_(known, known)], initial=0.0)) * np.outer(e, e)


def best_pair_penalty_fit(X, y, nu=1.0, ridge=0.0, groups=(), weights=(), known=(), point_weights=None):
    """Eq. (9) at labels y, minimised over v by CVXPY, and the direction: with groups, and v >= 0 where it is known."""
    n, d = X.shape
    p = np.full(n, 1.0 / n) if point_weights is None else point_weights
    target, centered = y - p @ y, X - p @ X
    units = units_of(centered.T @ (p[:, None] * centered), column(ridge, d), groups, weights)
    v = cp.Variable(d)
    norm = sum(weight**0.5 * units[g[0]] * cp.norm(v[g]) for g, weight in zip(groups, weights, strict=True))
    residual = cp.sum_squares(cp.multiply(p**0.5, target - (centered * units) @ v)) + nu * float(p @ y) ** 2
    total = residual + cp.sum_squares(cp.multiply(column(ridge, d) ** 0.5 * units, v)) + cp.square(norm)
    value = solved(cp.Problem(cp.Minimize(total), [v[known] >= 0] if len(known) else []))
    return value, v.value * units
