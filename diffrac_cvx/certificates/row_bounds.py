"""Brackets from one pass over many rows: sums that do not grow with their number prove both sides."""

from functools import partial
from typing import NamedTuple

import numpy as np

from diffrac_cvx.certificates.direction_bounds import Dual, least_ratio, lower_bound
from diffrac_cvx.certificates.proof import OF_MEANS, bound_at, clip_to_box, moment_of_sums, skip_zero_rows
from diffrac_cvx.certificates.search import FLOORS, candidate_matrices, closer_to_feasible
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import dense, is_sparse
from diffrac_cvx.points.linear_algebra import symmetric
from diffrac_cvx.problem.direction_problem import DirectionProblem, Scaled
from diffrac_cvx.problem.result import Bracket


class Pass(NamedTuple):
    """What one pass over all rows gives, at a factor at its best scale.

    Attributes
    ----------
    point : Scaled
        The factor, the objective, and the energies.
    C : (D, D) array, or None
        The multiplier.
    floor : float
        The smallest energy used in u = 1/sqrt(max(q, floor)).
    M : (D, D) array
        X' Diag(u) X / n.
    bounds : Bracket
        Proved, with the multiplier given.
    """

    point: Scaled
    C: Array | None
    floor: float
    M: Array
    bounds: Bracket


def certify_in_one_pass(problem: DirectionProblem, U: Array, C: Array | None, guess: bool = False) -> Pass:
    """Return what one pass over all rows proves and gives at a factor.

    With `guess` the multipliers tried are those of `bracket`, else the one given and that moved closer to feasible.
    """
    n = len(problem.X)
    floors = np.array(FLOORS) * max(float(np.sum(U * (problem.A @ U))), 1e-300)  # of the mean energy, or a little more
    sums = problem.X.sums_at(U, floors)
    gain, cost = sums.roots / n, problem.cost(U, float(sums.squares / n))
    point = problem.at_best_scale(U, gain, cost)
    multiple = gain / cost if point.value < 1.0 else 1.0
    moments = [symmetric(moment) / (n * multiple) for moment in sums.moments]
    M, lower = moments[0], -np.inf
    solver = [C] if C is None else [C, closer_to_feasible(problem, M, C)]
    for i in range(len(floors)) if np.ptp(sums.inverses) > 0.0 else range(1):
        tried = candidate_matrices(problem, dense(point.U), partial(moments.__getitem__, i), C) if guess else solver
        moment = moment_of_sums(problem, sums.moments[i] / n)
        t = min(least_ratio(problem, moment, candidate if problem.has_l1 else None) for candidate in tried)
        lower = max(lower, bound_at(t, sums.inverses[i] / n, OF_MEANS + problem.X.summands))
    bounds = Bracket(float(max(lower, 0.0)), float(point.value))
    return Pass(point, C, floors[0] * multiple**2, M, bounds)


def bracket_rows(problem: DirectionProblem, U: Array, dual: Dual | None = None) -> Bracket:
    """Bracket the optimum of (15) from a factor, one pass over many rows, and the multipliers of a result."""
    C = None if dual is None or dual.C is None or is_sparse(dual.C) else clip_to_box(problem, dual.C)
    found = certify_in_one_pass(problem, U, C, guess=True)
    lower = found.bounds.lower
    if dual is not None and dual.u is not None:
        u, inverse_mean = skip_zero_rows(problem, dual.u)
        lower = max(lower, lower_bound(problem, u, inverse_mean, C))
    return Bracket(float(max(lower, 0.0)), found.bounds.upper)
