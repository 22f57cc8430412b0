"""Relaxation in the matrix of labels Y with fixed imbalance: (7); n x n variable."""

import numpy.typing as npt
import scipy

from diffrac_cvx.certificates import label_bounds, label_proof
from diffrac_cvx.points.checks import Array, centered_data, in_unit_interval
from diffrac_cvx.points.dense import weighted_points
from diffrac_cvx.points.linear_algebra import psd_factor
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.relaxations import label_space as space
from diffrac_cvx.relaxations.relaxation import Relaxation, Solution, matrix_of, parameter, value_of


def constrained_alpha(X: npt.ArrayLike, alpha: float) -> Relaxation:
    r"""Return the relaxation in the matrix of labels Y with the imbalance of the clusters fixed.

    .. math::
        \min_{Y \succeq 0,\ \mathrm{diag}(Y) = 1}\ \tfrac1n \mathrm{tr}\, Y (\Pi_n - X (X^\top X)^{+} X^\top)
        \quad\text{such that}\quad \tfrac{1}{n^2} 1^\top Y 1 = \alpha

    Source: Eq. (7), section 2.2.

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.
    alpha : float
        Imbalance (1'y/n)^2 of the clusters, in [0, 1].  Change it later with ``at(alpha=...)``.  At 0 the problem has
        no interior point, and `solve` restricts it to the complement of 1; at 1 the solution is Y = 11'.

    Raises
    ------
    DataError, ParameterError
        If X is invalid or alpha is outside [0, 1].
    ResourceError
        If an n x n matrix would not fit in memory.
    """
    import cvxpy as cp

    points, alpha = weighted_points(centered_data(X)), in_unit_interval(alpha, "alpha")
    n = len(points)
    space.require_label_memory(n, "constrained_alpha")
    H = label_proof.projection_of(points)
    weight = parameter("alpha", alpha)
    Y = cp.Variable((n, n), PSD=True, name="Y")
    unit = cp.diag(Y) == 1

    def read() -> Solution:
        F = psd_factor(matrix_of(Y), rtol=1e-14)
        return read_at_imbalance(H, F, value_of(weight), space.diagonal_multiplier(unit))

    def shortcut() -> Solution | Relaxation | None:
        if value_of(weight) == 1.0:
            return space.read_all_ones(n)
        return constrained_balanced(H, value_of(weight)) if value_of(weight) <= label_bounds.NEAR_BALANCE else None

    problem = cp.Problem(cp.Minimize(space.label_residual(Y, H)), [unit, cp.sum(Y) / n**2 == weight])
    size = space.label_size(n)
    return Relaxation("constrained_alpha", "Eq. (7)", problem, read, size, {"alpha": weight}, shortcut=shortcut)


def constrained_balanced(H: label_proof.Projection, alpha: float) -> Relaxation:
    """Return (7) at alpha = 0, where Y1 = 0, on the face Y = N W N'; the columns of N span the complement of 1.

    Its solution is read as a point of (7) at alpha, which is 0 or nearly 0, with bounds.
    """
    import cvxpy as cp

    n = len(H.Q)
    N = scipy.linalg.helmert(n).T
    W = cp.Variable((n - 1, n - 1), PSD=True, name="W")
    B = N.T @ H.Q
    residual = cp.trace(W) / n - cp.sum(cp.multiply(B @ B.T, W)) / n
    unit = cp.sum(cp.multiply(N @ W, N), axis=1) == 1

    def read() -> Solution:
        return read_at_imbalance(H, N @ psd_factor(matrix_of(W), rtol=1e-14), alpha, space.diagonal_multiplier(unit))

    size = space.label_size(n)._replace(side=n - 1, nonzeros=n * n * n // 2)
    return Relaxation("constrained_alpha", "Eq. (7)", cp.Problem(cp.Minimize(residual), [unit]), read, size)


def read_at_imbalance(H: label_proof.Projection, F: Array, alpha: float, mu: Array | None) -> Solution:
    """Return the certified solution of (7) at the feasible point nearest to a factor."""
    F = label_bounds.with_imbalance(F, alpha)
    bounds = Bracket(*label_bounds.bracket_alpha(H, F, alpha, mu), H.n_excluded)
    return Solution(F=F, value=bounds.upper, bracket=bounds)
