"""Problem (15) as stated in the paper, for any rows and pair weights, without certified bounds."""

import warnings

import numpy as np

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import inverse_or_one


def least_over_directions(rows: Array, ridge: Array, pair_weights: Array) -> float:
    r"""Return the smallest objective of (15) that CLARABEL finds, for any rows, centred or not, and any pair weights.

    .. math::
        \min_{V \succeq 0}\ 1 - \tfrac2n \sum_i \sqrt{x_i^\top V x_i}
        + \mathrm{tr}\, (\tfrac1n X^\top X + \mathrm{Diag}(\mathrm{ridge})) V + \sum_{ij} C_{ij} |V_{ij}|

    Source: Eq. (15).

    Parameters
    ----------
    rows : (n, m) array
        Rows X, with a column of ones for an offset.
    ridge : (m,) array
        Nonnegative weights of the diagonal of V, the squares of a.
    pair_weights : (m, m) array
        Nonnegative weights C, which are cc' in (15).

    Returns
    -------
    float
        The objective at the solution, an upper bound on the optimum up to rounding; infinite without a solution.
    """
    import cvxpy as cp

    units = inverse_or_one(np.sqrt(np.mean(rows**2, axis=0) + ridge + np.diag(pair_weights)))
    X, weights = rows * units, pair_weights * np.outer(units, units)
    A = X.T @ X / len(X) + np.diag(ridge * units**2)
    V = cp.Variable((len(A), len(A)), PSD=True)
    mean_sqrt = cp.sum(cp.sqrt(cp.sum(cp.multiply(X @ V, X), axis=1))) / len(X)
    l1 = cp.sum(cp.multiply(weights, cp.abs(V)))
    problem = cp.Problem(cp.Minimize(1 - 2 * mean_sqrt + cp.trace(A @ V) + l1))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*inaccurate.*", category=UserWarning)
            problem.solve(solver="CLARABEL")
    except cp.error.SolverError:
        return np.inf
    return float(problem.value) if problem.value is not None else np.inf
