"""Relaxation in the matrix of directions at unit size: (21); d x d variable."""

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.direction_bounds import bracket_normalized
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import centered_data, in_unit_interval
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.dense import weighted_points
from diffrac_cvx.points.factors import dense
from diffrac_cvx.problem.direction_problem import without_collinear
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.relaxations import direction_space as space
from diffrac_cvx.relaxations.relaxation import Relaxation, Solution, value_of


def v_space_normalized(
    X: npt.ArrayLike,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    lam: Weight = None,
    ridge: Weight = None,
    constraints: Constraints | None = None,
) -> Relaxation:
    r"""Return the relaxation in the matrix of directions V with tr AV = 1, the form smoothed by the paper's algorithm.

    .. math::
        \min_{V \succeq 0,\ \mathrm{tr}\, A V = 1}\ - \tfrac1n \sum_i \sqrt{x_i^\top V x_i} + \sum_{ij} c_i c_j |V_{ij}|

    with A = X'X/n + Diag(a)^2.  It is equivalent to `v_space` only if c = 0; its value is then -sqrt(1 - w), with w the
    value of `v_space`.

    Source: Eq. (21), section 6.1.

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.
    nu : float
        Weight of the imbalance penalty, in (0, 1]; default 1.  Change it later with ``at(nu=...)``.
    penalty : Penalty
        Ridge weights a and l1 weights c; none by default.  Scale Gamma later with ``at(penalty_scale=...)``.
    lam, ridge : float or (d,) array, optional
        Weights of the squared l1 norm and of the ridge, short for ``penalty=Penalty(lam=lam, ridge=ridge)``.
    constraints : Constraints, optional
        Must-link and cannot-link constraints and known labels; linked points form one row, their signed sum.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid, or nu is 1 and all columns are constant, so that tr AV = 1 is infeasible.
    ResourceError
        If the problem data would not fit in memory.
    """
    import cvxpy as cp

    penalty = resolve_penalty(penalty, lam, ridge)
    points, nu = weighted_points(centered_data(X), None, constraints), in_unit_interval(nu, "nu")
    points = without_collinear(points, penalty)
    space.require_direction_memory(points, "v_space_normalized")
    if nu == 1.0 and not points.any():
        raise ParameterError("nu = 1 requires a varying column, but every column of X is constant; choose nu < 1")
    coordinates = space.scaled_coordinates(points, penalty)
    terms = space.direction_terms(coordinates, nu)

    def read() -> Solution:
        problem = space.pose(points, terms.nu, penalty, terms.scale).problem
        U = problem.coordinates.transform_matrix(space.user_matrix(terms, coordinates.L))
        U = dense(problem.pair_penalty.make_feasible(U)) if problem.has_l1 else U
        U = U / max(float(np.sum((problem.R @ U) ** 2)), 1e-300) ** 0.5
        bounds = bracket_normalized(problem, U, space.solver_dual(problem, coordinates, terms.l1_constraints))
        bounds = Bracket(*bounds, problem.n_excluded)
        F, G = np.asarray(problem.labels_factor(U)), problem.coordinates.inverse_transform(U)
        return Solution(F=F, value=bounds.upper, bracket=bounds, G=G)

    def shortcut() -> Solution | None:
        answer = space.read_offset_only(points, value_of(terms.nu))
        if answer is None or answer.G is None:
            return None
        size = (1.0 - value_of(terms.nu)) ** 0.5
        return answer._replace(G=answer.G / max(size, 1e-300), value=-size, bracket=Bracket(-size, -size))

    problem = cp.Problem(cp.Minimize(terms.l1 - terms.mean_sqrt), [*terms.constraints, terms.quadratic == 1])
    size, parameters = space.direction_size(coordinates), {"nu": terms.nu, "penalty_scale": terms.scale}
    trivial = Bracket(-1.0, 0.0 if coordinates.pair_penalty is None else np.inf)
    return Relaxation("v_space_normalized", "Eq. (21)", problem, read, size, parameters, trivial, shortcut)
