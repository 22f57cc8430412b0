"""The relaxation in the matrix of labels Y with the imbalance fixed: (7).  An n x n variable."""

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy

from diffrac_cvx.certificates.label_bounds import FEASIBLE, bracket_alpha, with_imbalance
from diffrac_cvx.inputs import Array, as_data, in_unit_interval
from diffrac_cvx.linalg import column_basis, psd_factor
from diffrac_cvx.relaxations.label_space import INSTEAD, misfit, multiplier, require_label_memory
from diffrac_cvx.relaxations.relaxation import Reading, Relaxation, Size, number, parameter, solved
from diffrac_cvx.result import Bracket


def constrained_alpha(X: npt.ArrayLike, alpha: float) -> Relaxation:
    r"""Fix the imbalance of the clusters.

    .. math::
        \min_{Y \succeq 0,\ \mathrm{diag}(Y) = 1}\ \tfrac1n \mathrm{tr}\, Y (\Pi_n - X (X^\top X)^{+} X^\top)
        \quad\text{such that}\quad \tfrac{1}{n^2} 1^\top Y 1 = \alpha

    Source: Eq. (7), section 2.2.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    alpha : float
        Imbalance (1'y/n)^2 of the clusters, in [0, 1]; a CVXPY parameter, ``at(alpha=...)``.  At 0 the problem has no
        interior point and `solve` uses its reduction to the complement of 1; at 1 the answer is Y = 11'.

    Raises
    ------
    DataError, ParameterError
        If X is not usable or alpha is outside [0, 1].
    ResourceError
        If an n x n matrix would not fit in memory.
    """
    X, alpha = as_data(X), in_unit_interval(alpha, "alpha")
    n = len(X)
    require_label_memory(n, "constrained_alpha")
    Q = column_basis(X)
    weight = parameter("alpha", alpha)
    Y = cp.Variable((n, n), PSD=True, name="Y")
    unit = cp.diag(Y) == 1
    problem = cp.Problem(cp.Minimize(misfit(Y, Q)), [unit, cp.sum(Y) / n**2 == weight])

    def read() -> Reading:
        return reading_alpha(Q, psd_factor(solved(Y), rtol=1e-14), number(weight), multiplier(unit))

    def shortcut() -> Reading | Relaxation | None:
        if number(weight) == 1.0:
            return Reading(np.ones((n, 1)), None, 0.0, Bracket(0.0, 0.0))
        return balanced(Q) if number(weight) <= FEASIBLE else None

    return Relaxation(
        "constrained_alpha", "Eq. (7)", problem, read, Size(n, n, n * n, INSTEAD),
        {"alpha": weight}, shortcut=shortcut,
    )  # fmt: skip


def balanced(Q: Array) -> Relaxation:
    """Return (7) at alpha = 0, where Y1 = 0, in the face Y = N W N' with the columns of N a basis of 1's complement."""
    n = len(Q)
    N = scipy.linalg.helmert(n).T
    W = cp.Variable((n - 1, n - 1), PSD=True, name="W")
    B = N.T @ Q
    fit = cp.trace(W) / n - cp.sum(cp.multiply(B @ B.T, W)) / n
    unit = cp.sum(cp.multiply(N @ W, N), axis=1) == 1
    problem = cp.Problem(cp.Minimize(fit), [unit])

    def read() -> Reading:
        return reading_alpha(Q, N @ psd_factor(solved(W), rtol=1e-14), 0.0, multiplier(unit))

    return Relaxation("constrained_alpha", "Eq. (7)", problem, read, Size(n, n - 1, n * n * n // 2, INSTEAD))


def reading_alpha(Q: Array, F: Array, alpha: float, mu: Array | None) -> Reading:
    """Read a factor of a solution of (7) as its nearest feasible point."""
    F = with_imbalance(F, alpha)
    bounds = bracket_alpha(Q, F, alpha, mu)
    return Reading(F, None, bounds.upper, bounds)
