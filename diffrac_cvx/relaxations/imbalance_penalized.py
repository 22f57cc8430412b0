"""Relaxation in the matrix of labels Y with penalised imbalance: (8), (16); n x n variable."""

import numpy.typing as npt

from diffrac_cvx.certificates.consistency import RoundingBound
from diffrac_cvx.certificates.label_bounds import bracket_nu
from diffrac_cvx.certificates.label_proof import projection_of
from diffrac_cvx.points.checks import centered_data, in_unit_interval
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.dense import weighted_points
from diffrac_cvx.points.linear_algebra import psd_factor, unit_rows
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty, ridge_of
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.relaxations import label_space as space
from diffrac_cvx.relaxations.relaxation import Relaxation, Solution, matrix_of, parameter, value_of


def penalized_nu(
    X: npt.ArrayLike,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    ridge: Weight = None,
    constraints: Constraints | None = None,
) -> Relaxation:
    r"""Return the relaxation in the matrix of labels Y with the imbalance of the clusters penalised.

    .. math::
        \min_{Y \succeq 0,\ \mathrm{diag}(Y) = 1}
        \tfrac1n \mathrm{tr}\, Y (\Pi_n - X (X^\top X + n\,\mathrm{Diag}(a)^2)^{+} X^\top)
        + \tfrac{\nu}{n^2} 1^\top Y 1

    Source: Eq. (8), section 2.3; the ridge a is that of Eq. (16).

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.
    nu : float
        Weight of the imbalance penalty, in [0, 1]; default 1.  Change it later with ``at(nu=...)``.  At 0 the all-ones
        Y is optimal, and `solve` returns it, unless points are linked.
    penalty : Penalty
        Ridge weights a; use `lifted` or `v_space` for an l1 penalty.  No penalty by default.
    ridge : float or (d,) array, optional
        Weight of the ridge, short for ``penalty=Penalty(ridge=ridge)``.
    constraints : Constraints, optional
        Must-link and cannot-link constraints and known labels, Y_ij = 1 or -1; linked points share one row of Y.

    Raises
    ------
    DataError, ParameterError
        If X is invalid, nu is outside [0, 1] or the penalty has an l1 term.
    ResourceError
        If an n x n matrix would not fit in memory.
    """
    import cvxpy as cp

    penalty = resolve_penalty(penalty, None, ridge)
    points, nu = weighted_points(centered_data(X), None, constraints), in_unit_interval(nu, "nu")
    n = len(points)
    space.require_label_memory(n, "penalized_nu")
    H = projection_of(points, ridge_of(penalty, points.shape[1]))
    N = len(H.sums[0])
    weight = parameter("nu", nu)
    Y = cp.Variable((N, N), PSD=True, name="Y")
    unit = cp.diag(Y) == 1
    objective = space.label_residual(Y, H) + weight * space.imbalance_expression(Y, H)

    def read() -> Solution:
        F = H.points.chunklets.expand(unit_rows(psd_factor(matrix_of(Y), rtol=1e-14)))
        bounds = Bracket(*bracket_nu(H, F, value_of(weight), space.diagonal_multiplier(unit)), H.n_excluded)
        rounding_bound = RoundingBound(H.points, value_of(weight), penalty)
        return Solution(F=F, value=bounds.upper, bracket=bounds, rounding_bound=rounding_bound)

    def shortcut() -> Solution | None:
        return space.read_all_ones(n) if value_of(weight) == 0.0 and H.points.chunklets.allow_one_cluster else None

    size = space.label_size(N)._replace(points=n)
    problem = cp.Problem(cp.Minimize(objective), [unit])
    return Relaxation("penalized_nu", "Eq. (8)", problem, read, size, {"nu": weight}, shortcut=shortcut)
