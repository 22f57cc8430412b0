"""The paper's problems, each written from its formula: dense, unscaled, slow, and independent of the package.

CLARABEL's tolerances are 1e-8; on data of order one the values below are right to about 1e-7, tested to 1e-6.
"""

from itertools import product

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


def gain(V, X):
    """g(V) = mean_i sqrt(x_i'V x_i)."""
    return float(np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", X, V, X), 0.0)).mean())


def v_objective(V, X, a=0.0, c=0.0):
    """Objective of Eq. (15) on data that are augmented already."""
    return float(1 - 2 * gain(V, X) + np.trace(X.T @ X @ V) / len(X) + gamma(V, a, c))


def solved(problem):
    problem.solve(solver="CLARABEL")
    return problem.value


def solve_y(X, nu=1.0, a=0.0):
    """Optimal value and Y of Eq. (8), with a ridge of Eq. (16)."""
    n = len(X)
    Y = cp.Variable((n, n), PSD=True)
    K = (centering(n) - hat(X, a)) / n + nu * np.ones((n, n)) / n**2
    return solved(cp.Problem(cp.Minimize(cp.trace(K @ Y)), [cp.diag(Y) == 1])), Y.value


def solve_alpha(X, alpha):
    """Optimal value and Y of Eq. (7); at alpha = 0, where Y1 = 0, over Y = N W N' with N a basis of 1's complement."""
    n = len(X)
    N = scipy.linalg.null_space(np.ones((1, n))) if alpha == 0.0 else np.eye(n)
    W = cp.Variable((N.shape[1], N.shape[1]), PSD=True)
    Y = N @ W @ N.T
    constraints = [cp.diag(Y) == 1] + ([cp.sum(Y) / n**2 == alpha] if alpha > 0.0 else [])
    return solved(cp.Problem(cp.Minimize(cp.trace((centering(n) - hat(X)) @ Y) / n), constraints)), Y.value


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


def gain_expression(V, X):
    return cp.sum(cp.sqrt(cp.sum(cp.multiply(X @ V, X), axis=1))) / len(X)


def solve_v(X, nu=1.0, a=0.0, c=0.0, crossed=1.0):
    """Optimal value and V of Eq. (15), on augmented data at nu < 1; crossed multiplies c_i c_j |V_ij| where i != j."""
    X, a, c = augmented(X, nu, a, c)
    V = cp.Variable((X.shape[1], X.shape[1]), PSD=True)
    objective = 1 - 2 * gain_expression(V, X) + cp.trace(X.T @ X @ V) / len(X) + gamma_expression(V, a, c)
    cross = np.outer(c, c) - np.diag(c**2)
    objective += (crossed - 1) * cp.sum(cp.abs(cp.multiply(cross, V)))
    return solved(cp.Problem(cp.Minimize(objective))), V.value


def solve_normalized(X, nu=1.0, a=0.0, c=0.0):
    """Optimal value and V of Eq. (21), as a minimisation."""
    X, a, c = augmented(X, nu, a, c)
    V = cp.Variable((X.shape[1], X.shape[1]), PSD=True)
    A = X.T @ X / len(X) + np.diag(a**2)
    objective = gamma_expression(V, 0 * a, c) - gain_expression(V, X)
    return solved(cp.Problem(cp.Minimize(objective), [cp.trace(A @ V) == 1])), V.value


def best_fit(X, y, nu=1.0, a=0.0, c=0.0):
    """Eq. (9) at labels y, minimised over v as a quadratic program."""
    n, d = X.shape
    v = cp.Variable(d)
    misfit = cp.sum_squares(y - y.mean() - X @ v) / n + nu * y.mean() ** 2
    penalty = cp.sum_squares(cp.multiply(column(a, d), v)) + cp.square(cp.norm1(cp.multiply(column(c, d), v)))
    return solved(cp.Problem(cp.Minimize(misfit + penalty)))


def labellings(n):
    """All labellings with y_1 = 1, shape (2^(n-1), n)."""
    return np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=n - 1)])


def fits(X, nu=1.0, a=0.0, c=0.0):
    """Eq. (9), minimised over v, at all labellings.

    The minimiser solves the linear system of its own signs, so the best of all 3^d sign patterns is exact.
    """
    n, d = X.shape
    a, c = column(a, d), column(c, d)
    ys = labellings(n)
    targets = ys - ys.mean(axis=1, keepdims=True)
    best = np.full(len(ys), np.inf)
    for signs in map(np.array, product((-1, 0, 1), repeat=d) if c.any() else [(1,) * d]):
        S = signs != 0
        cs = (c * signs)[S]
        v = np.zeros((len(ys), d))
        v[:, S] = (
            targets @ X[:, S] / n @ np.linalg.pinv(X[:, S].T @ X[:, S] / n + np.diag(a[S] ** 2) + np.outer(cs, cs))
        )
        penalty = v**2 @ a**2 + (np.abs(v) @ c) ** 2
        best = np.minimum(best, np.mean((targets - v @ X.T) ** 2, axis=1) + penalty)
    return best + nu * ys.mean(axis=1) ** 2


def best_labelling(X, nu=1.0, a=0.0, c=0.0):
    """Value of Eq. (9) and its labels, by enumeration of 2^(n-1) labellings."""
    values = fits(X, nu, a, c)
    return values.min(), labellings(len(X))[values.argmin()]
