"""Uniqueness of the planted direction in the limit of a vanishing penalty, by a semidefinite program."""

import cvxpy as cp
import numpy as np
import scipy.linalg

from diffrac_cvx.typing import Array

UNIQUE = 1e-7  # smallest mean of (x_i' Delta x_i)^2, at unit trace off v, above which the solution is unique


def least_change(X: Array, v: Array) -> float:
    """Return the smallest mean of (x_i' Delta x_i)^2 over directions Delta at vv' that do not increase |V|_1.

    Delta is in the tangent cone of the semidefinite matrices at vv', of unit trace on the complement of v, and the
    directional derivative of |.|_1 at vv' is at most 0.  The minimum is 0 if and only if vv' is not the unique
    solution with the smallest |V|_1 (up to directions only in the closure of the feasible ones, which random points
    have with probability 0).

    Parameters
    ----------
    X : (n, d) array
        Noiseless: Xv = y, of entries -1 and 1.
    v : (d,) array
        The planted direction.
    """
    n, d = X.shape
    basis = np.column_stack([v / (v @ v) ** 0.5, scipy.linalg.null_space(v[None])])
    Z = X @ basis
    C = cp.Variable((d - 1, d - 1), PSD=True)
    first = cp.Variable((1, d))  # a, and twice b
    j, k = np.triu_indices(d - 1)
    quadratic = Z[:, 1:][:, j] * Z[:, 1:][:, k] * np.where(j == k, 1.0, 2.0)
    forms = np.hstack([Z[:, :1] * Z, quadratic]) / n**0.5  # first[0], then the upper triangle of C
    reduced = np.linalg.qr(forms, mode="r") if n > forms.shape[1] else forms
    change = reduced @ cp.hstack([first[0], cp.hstack([C[p, q] for p, q in zip(j, k, strict=True)])])
    rows = cp.vstack([first, cp.hstack([np.zeros((d - 1, 1)), C])])
    half = basis @ rows @ basis.T
    signs = np.sign(np.where(np.abs(v) > 1e-12, v, 0.0))
    on_support = np.outer(signs, signs)
    raised = cp.sum(cp.multiply(on_support, half)) + cp.sum(
        cp.abs(cp.multiply((on_support == 0).astype(float), (half + half.T) / 2))
    )
    problem = cp.Problem(cp.Minimize(cp.sum_squares(change)), [cp.trace(C) == 1, raised <= 0])
    try:
        problem.solve(solver="CLARABEL")
    except cp.error.SolverError:  # factorisation failure, for example at l = 8, d = 16, n = 64
        problem.solve(solver="SCS", eps_abs=1e-9, eps_rel=1e-9, max_iters=100_000)
    return float(problem.value)


def is_least_norm(X: Array, v: Array) -> bool:
    """Return whether vv' is the unique solution with the smallest |V|_1."""
    return least_change(X, v) > UNIQUE
