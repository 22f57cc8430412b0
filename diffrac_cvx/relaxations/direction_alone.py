"""The relaxation in the matrix of directions V: (12), (14), (15), (20).  A d x d variable."""

import cvxpy as cp
import numpy.typing as npt

from diffrac_cvx.points.checks import as_data, in_unit_interval, points_with_weight, weights_for
from diffrac_cvx.problem.penalty import NO_PENALTY, Penalty, Weight, penalty_of
from diffrac_cvx.relaxations import direction_space as space
from diffrac_cvx.relaxations.relaxation import Reading, Relaxation, value_of


def v_space(
    X: npt.ArrayLike,
    nu: float = 1.0,
    penalty: Penalty = NO_PENALTY,
    *,
    lam: Weight = None,
    ridge: Weight = None,
    sample_weight: npt.ArrayLike | None = None,
) -> Relaxation:
    r"""Relax in the matrix of directions, where l1 penalties are convex and the size does not grow with n.

    .. math::
        \min_{V \succeq 0}\ 1 - \tfrac2n \sum_i \sqrt{x_i^\top V x_i} + \tfrac1n \mathrm{tr}\, X^\top X V + \Gamma(V)

    For nu < 1 the data are augmented by a column of ones with ridge weight sqrt(nu / (1 - nu)).

    Source: Eq. (12), (14), (15), (20), sections 2.4 and 3.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    nu : float
        Weight of the imbalance, in [0, 1]; a CVXPY parameter, ``at(nu=...)``.
    penalty : Penalty
        Weights a and c; Gamma is multiplied by a CVXPY parameter, ``at(penalty_scale=...)``, 1 at first.
    lam, ridge : float or (d,) array, optional
        Weights of the squared l1 norm and of the ridge, instead of a penalty: ``Penalty(lam=lam, ridge=ridge)``.
    sample_weight : (n,) array, optional
        Weights of the points, >= 0 and of any scale: a weight of 2 counts as the same point twice, 0 as none.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.
    ResourceError
        If the problem's data would not fit in memory.
    """
    penalty = penalty_of(penalty, lam, ridge)
    weights = weights_for(X, sample_weight)
    data, nu = as_data(X, weights), in_unit_interval(nu, "nu")
    space.require_direction_memory(data, "v_space")
    shares = None if weights is None else weights.shares
    coordinates = space.scaled_coordinates(points_with_weight(data, weights), penalty, shares)
    terms = space.direction_terms(coordinates, nu, shares)
    objective = 1 - 2 * terms.gain + terms.quadratic + terms.l1.value

    def read() -> Reading:
        posed = space.pose(data, terms.nu, penalty, terms.scale, weights)
        dual = space.dual_of(posed.problem, coordinates, terms.l1, terms.weights())
        return space.read_directions(posed, space.user_matrix(terms, coordinates.L), dual)

    def shortcut() -> Reading | None:
        return space.read_offset_only(data, value_of(terms.nu))

    problem = cp.Problem(cp.Minimize(objective), terms.constraints)
    size = space.direction_size(coordinates)._replace(points=len(data))
    parameters = {"nu": terms.nu, "penalty_scale": terms.scale}
    return Relaxation("v_space", "Eq. (12), (15)", problem, read, size, parameters, shortcut=shortcut)
