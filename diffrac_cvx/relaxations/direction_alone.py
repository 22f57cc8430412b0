"""Relaxation in the matrix of directions V: (12), (14), (15), (20); d x d variable."""

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import centered_data, in_unit_interval, weights_for
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.dense import weighted_points
from diffrac_cvx.problem.direction_problem import without_collinear
from diffrac_cvx.problem.gradient import Instance, make_instance
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, resolve_penalty
from diffrac_cvx.relaxations import direction_space as space
from diffrac_cvx.relaxations.relaxation import Relaxation, Solution, value_of


def v_space(
    X: npt.ArrayLike,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    lam: Weight = None,
    ridge: Weight = None,
    sample_weight: npt.ArrayLike | None = None,
    constraints: Constraints | None = None,
) -> Relaxation:
    r"""Return the relaxation in the matrix of directions V, in which l1 penalties are convex.

    .. math::
        \min_{V \succeq 0}\ 1 - \tfrac2n \sum_i \sqrt{x_i^\top V x_i} + \tfrac1n \mathrm{tr}\, X^\top X V + \Gamma(V)

    The d x d variable does not grow with n.  For nu < 1 a column of ones with ridge weight sqrt(nu / (1 - nu)) is added
    to the data.

    Source: Eq. (12), (14), (15), (20), sections 2.4 and 3.

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.
    nu : float
        Weight of the imbalance penalty, in [0, 1]; default 1.  Change it later with ``at(nu=...)``.
    penalty : Penalty
        Ridge weights a and l1 weights c; none by default.  Scale Gamma later with ``at(penalty_scale=...)``.
    lam, ridge : float or (d,) array, optional
        Weights of the squared l1 norm and of the ridge, short for ``penalty=Penalty(lam=lam, ridge=ridge)``.
    sample_weight : (n,) array, optional
        Non-negative weights of the points, on any scale: weight 2 duplicates a point, weight 0 ignores it.
    constraints : Constraints, optional
        Must-link and cannot-link constraints and known labels; linked points form one row, their signed sum.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.
    ResourceError
        If the problem data would not fit in memory.
    """
    import cvxpy as cp

    penalty = resolve_penalty(penalty, lam, ridge)
    weights = weights_for(X, sample_weight)
    centered, nu = centered_data(X, weights), in_unit_interval(nu, "nu")
    X_all, points = centered[0], without_collinear(weighted_points(centered, weights, constraints), penalty)
    space.require_direction_memory(points, "v_space")
    coordinates = space.scaled_coordinates(points, penalty)
    terms = space.direction_terms(coordinates, nu)
    objective = 1 - 2 * terms.mean_sqrt + terms.quadratic + terms.l1

    def instance() -> Instance:
        return make_instance(X, value_of(terms.nu), penalty.times(value_of(terms.scale)), sample_weight, constraints)

    def read() -> Solution:
        posed = space.pose(points, terms.nu, penalty, terms.scale)
        dual = space.solver_dual(posed.problem, coordinates, terms.l1_constraints, terms.weights())
        solution, problem = space.read_directions(posed, space.user_matrix(terms, coordinates.L), dual), posed.problem
        solution = solution._replace(instance=instance())
        if weights is None or solution.G is None:
            return solution
        U = problem.coordinates.transform_factor(solution.G)
        return solution._replace(F=problem.labels_factor_of_all(U, X_all, weights.mask, constraints))

    def shortcut() -> Solution | None:
        answer = space.read_offset_only(points, value_of(terms.nu))
        return None if answer is None else answer._replace(F=np.ones((len(X_all), 1)), instance=instance())

    problem = cp.Problem(cp.Minimize(objective), terms.constraints)
    size = space.direction_size(coordinates)._replace(points=len(X_all))
    parameters = {"nu": terms.nu, "penalty_scale": terms.scale}
    return Relaxation("v_space", "Eq. (12), (15)", problem, read, size, parameters, shortcut=shortcut)
