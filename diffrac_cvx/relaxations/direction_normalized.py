"""The relaxation in the matrix of directions at unit size: (21).  A d x d variable."""

import cvxpy as cp
import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.direction_bounds import normalized_bracket
from diffrac_cvx.certificates.direction_problem import direction_problem
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.inputs import as_data, in_unit_interval
from diffrac_cvx.penalty import NO_PENALTY, Penalty
from diffrac_cvx.relaxations.direction_space import (
    clean,
    constraints_of,
    coordinates,
    dual_of,
    require_direction_memory,
    size_of,
    terms,
    to_user,
    trivial,
)
from diffrac_cvx.relaxations.relaxation import Reading, Relaxation, number, solved
from diffrac_cvx.result import Bracket


def v_space_normalized(X: npt.ArrayLike, nu: float = 1.0, penalty: Penalty = NO_PENALTY) -> Relaxation:
    r"""Relax in the matrix of directions at unit size, the form that the paper's algorithm smooths.

    .. math::
        \min_{V \succeq 0,\ \mathrm{tr}\, A V = 1}\ - \tfrac1n \sum_i \sqrt{x_i^\top V x_i} + \sum_{ij} c_i c_j |V_{ij}|

    with A = X'X/n + Diag(a)^2.  Equal to `v_space` only when c = 0, where its value is -sqrt(1 - that one's).

    Source: Eq. (21), section 6.1.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    nu : float
        Weight of the imbalance, in (0, 1]; a CVXPY parameter, ``at(nu=...)``.
    penalty : Penalty
        Weights a and c; Gamma is multiplied by a CVXPY parameter, ``at(penalty_scale=...)``, 1 at first.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; X without any variation leaves no V with tr AV = 1 at nu = 1.
    ResourceError
        If the problem's data would not fit in memory.
    """
    data, nu = as_data(X), in_unit_interval(nu, "nu")
    require_direction_memory(data, "v_space_normalized")
    if nu == 1.0 and not data.any():
        raise ParameterError("every column of X is constant, so that tr AV = 1 cannot hold at nu = 1; take nu < 1")
    chosen = coordinates(data, penalty)
    part = terms(chosen, nu)
    problem = cp.Problem(cp.Minimize(part.l1.value - part.gain), [*constraints_of(part), part.quadratic == 1])

    def read() -> Reading:
        judge = direction_problem(data, number(part.nu), penalty.times(number(part.scale)), warn=False)
        U = judge.from_user(to_user(clean(solved(part.V)), chosen.L, number(part.nu)))
        U = U / max(float(np.sum((judge.R @ U) ** 2)), 1e-300) ** 0.5
        bounds = normalized_bracket(judge, U, dual_of(judge, chosen, part.l1))
        return Reading(judge.labels_factor(U), judge.directions(U), bounds.upper, bounds)

    def shortcut() -> Reading | None:
        answer = trivial(data, number(part.nu))
        if answer is None or answer.V is None:
            return None
        size = (1.0 - number(part.nu)) ** 0.5
        return answer._replace(V=answer.V / max(size, 1e-300) ** 2, value=-size, bracket=Bracket(-size, -size))

    knobs = {"nu": part.nu, "penalty_scale": part.scale}
    return Relaxation(
        "v_space_normalized", "Eq. (21)", problem, read, size_of(chosen), knobs, Bracket(-1.0, 0.0), shortcut
    )
