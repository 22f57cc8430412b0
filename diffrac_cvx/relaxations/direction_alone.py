"""The relaxation in the matrix of directions V: (12), (14), (15), (20).  A d x d variable."""

import cvxpy as cp
import numpy.typing as npt

from diffrac_cvx.certificates.direction_bounds import Dual, bracket
from diffrac_cvx.certificates.direction_problem import DirectionProblem, direction_problem
from diffrac_cvx.inputs import as_data, in_unit_interval
from diffrac_cvx.penalty import NO_PENALTY, Penalty
from diffrac_cvx.relaxations.direction_space import (
    clean,
    constraints_of,
    coordinates,
    dual_of,
    multiplier_of,
    require_direction_memory,
    size_of,
    terms,
    to_user,
    trivial,
)
from diffrac_cvx.relaxations.relaxation import Reading, Relaxation, number, solved


def v_space(X: npt.ArrayLike, nu: float = 1.0, penalty: Penalty = NO_PENALTY) -> Relaxation:
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

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.
    ResourceError
        If the problem's data would not fit in memory.
    """
    data, nu = as_data(X), in_unit_interval(nu, "nu")
    require_direction_memory(data, "v_space")
    chosen = coordinates(data, penalty)
    part = terms(chosen, nu)
    problem = cp.Problem(cp.Minimize(1 - 2 * part.gain + part.quadratic + part.l1.value), constraints_of(part))

    def read() -> Reading:
        judge = direction_problem(data, number(part.nu), penalty.times(number(part.scale)), warn=False)
        U = judge.from_user(to_user(clean(solved(part.V)), chosen.L, number(part.nu)))
        U, value = judge.best_scale(U)
        return Reading(judge.labels_factor(U), judge.directions(U), value, bracket(judge, U, duals(judge)))

    def duals(judge: DirectionProblem) -> list[Dual]:
        return dual_of(judge, chosen, part.l1, multiplier_of(part))

    def shortcut() -> Reading | None:
        return trivial(data, number(part.nu))

    knobs = {"nu": part.nu, "penalty_scale": part.scale}
    return Relaxation("v_space", "Eq. (12), (15)", problem, read, size_of(chosen), knobs, shortcut=shortcut)
