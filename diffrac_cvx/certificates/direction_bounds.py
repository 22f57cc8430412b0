"""Brackets in the space of directions: what any factor of V proves about (15) and (21), in closed form.

Of many rows one pass makes sums that do not grow with their number, and they prove both sides.
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from diffrac_cvx.certificates.proof import (
    OF_MEANS,
    Inexact,
    bound_at,
    bound_normalized,
    in_dual_set,
    moment_at,
    moment_of_sums,
    multiplier_in_box,
    prove,
    skip_zero_rows,
    value_normalized,
)
from diffrac_cvx.certificates.search import (
    FLOORS,
    blended_ratio,
    candidate_matrices,
    candidate_weights,
    closer_to_feasible,
    normalized_multiplier,
    sign_patterns,
    top_eigenvalue,
)
from diffrac_cvx.machine.time_budget import LeaveError
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, dense, is_sparse
from diffrac_cvx.points.floating_point import UNIT, round_up
from diffrac_cvx.points.linear_algebra import symmetric
from diffrac_cvx.points.ranges import is_out_of_range
from diffrac_cvx.problem.direction_problem import DirectionProblem, Scaled
from diffrac_cvx.problem.result import Bracket


class Dual(NamedTuple):
    """A solver's multipliers, for the lower bound: u, or None for 1/sqrt(q), and C off the diagonal, or None."""

    u: Array | None = None
    C: Factor | None = None


def bracket(problem: DirectionProblem, point: Scaled, dual: Dual | None = None) -> Bracket:
    r"""Bracket the optimum of (15) from any factor of V, at its best scale, and the dual that a solver has, if any.

    For u > 0 and symmetric C in the box with A + C > 0, let M = X' Diag(u) X / n and t the largest generalised
    eigenvalue of (M, A + C).  Then 2 sqrt(q) <= u q + 1/u gives  optimum >= 1 - t mean(1/u), and so it does where the
    points have weights, with these in M and in the mean.
    """
    C = multiplier_of(problem, dual)
    given = [] if dual is None or dual.u is None else [Tried(*skip_zero_rows(problem, dual.u), [C])]
    read = (
        Tried(u, inverse_mean, candidate_matrices(problem, dense(point.U), partial(problem.X.moment, u), C))
        for u, inverse_mean in candidate_weights(problem, point.q)
    )
    return Bracket(best_bound(problem, chain(given, read)), float(point.value))


class Tried(NamedTuple):
    """Weights u of the rows, 0 for zero rows, mean(1/u), and multipliers C to be tried with them."""

    u: Array
    inverse_mean: float
    multipliers: Iterable[Array | None]


def best_bound(problem: DirectionProblem, all_tried: Iterable[Tried]) -> float:
    """Return the best lower bound of those tried, 0 at least; of those proved in time where the time ends.

    A search for multipliers that leaves the range of double precision, as with nearly collinear columns, ends there.
    """
    lower = 0.0
    with suppress(LeaveError):  # whoever asked will leave at the next look at the clock
        for u, inverse_mean, multipliers in all_tried:
            moment = moment_at(problem, u)
            try:
                for C in multipliers:
                    lower = max(lower, bound_at(least_ratio(problem, moment, C), inverse_mean))
            except (ArithmeticError, ValueError) as error:
                if not is_out_of_range(error):
                    raise
    return float(lower)


def multiplier_of(problem: DirectionProblem, dual: Dual | None) -> Array | None:
    """Return a solver's multiplier, clipped to its box, if there is one."""
    return None if dual is None or dual.C is None else in_dual_set(problem, dense(dual.C))


def bound_by_dual(problem: DirectionProblem, dual: Dual) -> float:
    """Return the lower bound of a solver's weights and its multiplier moved closer to feasible; 0 without them."""
    C = multiplier_of(problem, dual)
    if dual.u is None or C is None:
        return 0.0
    u, inverse_mean = skip_zero_rows(problem, dual.u)
    return lower_bound(problem, u, inverse_mean, closer_to_feasible(problem, problem.X.moment(u), C))


def lower_bound(problem: DirectionProblem, u: Array, inverse_mean: float, C: Array | None) -> float:
    """Return 1 - t mean(1/u), for weights u of the rows, 0 for zero rows, and mean(1/u)."""
    return bound_at(least_ratio(problem, moment_at(problem, u), C), inverse_mean)


def least_ratio(problem: DirectionProblem, moment: Inexact, C: Array | None) -> float:
    """Return t with M <= t (A + C + Diag(c)^2), proved; C blended with 0 until the right side is positive definite."""
    if moment.matrix.size == 0:
        return 0.0
    if C is None:
        return prove(problem, moment, None, 0.0, top_eigenvalue(moment.matrix), 1.0)
    multiplier = multiplier_in_box(problem, C)
    off = round_up(problem.rounding.right_error + multiplier.error)
    found = blended_ratio(moment.matrix, multiplier.matrix, moment.error, off)
    return prove(problem, moment, multiplier, found.share, found.t, found.least)


def bracket_normalized(problem: DirectionProblem, U: Array, dual: Dual | None = None) -> Bracket:
    """Bracket the optimum of (21), min -(g(V) - sum c_i c_j |V_ij|) over tr AV = 1, from a factor of V.

    With theta such that M/2 - C <= theta A, the optimum is at least -(mean(1/u)/2 + theta); it is never below -1, and
    not above 0 where nothing is penalised but by the ridge.
    """
    size = float(np.sum((problem.R @ U) ** 2))
    if size == 0.0:
        return Bracket(-1.0, np.inf if problem.is_coupled else 0.0)
    U = U / size**0.5
    l1 = problem.cost(U) - 1.0
    off = problem.coupling.error_of_value(U) if problem.is_coupled else 0.0  # infinite where V is not allowed
    upper, lower = value_normalized(problem, U, l1) + 2.0 * off, -1.0 - 4 * UNIT
    C_given = multiplier_of(problem, dual)
    given = [] if C_given is None else [C_given]
    for u, inverse_mean in candidate_weights(problem, problem.X.energies(U)):
        half = problem.X.moment(u) / 2
        theta = problem.gain(U) / 2 - l1
        slack = in_dual_set(problem, half - theta * problem.A)
        off_M = moment_at(problem, u).error / 2
        for C in [*given, *sign_patterns(problem, U @ U.T, slack)]:
            found = normalized_multiplier(problem, half, in_dual_set(problem, C), off_M)
            lower = max(lower, bound_normalized(inverse_mean, found))
    return Bracket(float(max(lower, -1.0)), float(upper))


class Pass(NamedTuple):
    """What one pass over all rows gives, at a factor at its best scale."""

    point: Scaled  # the factor, the objective, and the energies
    C: Array | None  # (D, D), the multiplier
    floor: float  # the smallest energy used in u = 1/sqrt(max(q, floor))
    M: Array  # (D, D), X' Diag(u) X / n
    bounds: Bracket  # proved, with the multiplier given


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
        t = min(least_ratio(problem, moment, candidate if problem.is_coupled else None) for candidate in tried)
        lower = max(lower, bound_at(t, sums.inverses[i] / n, OF_MEANS + problem.X.summands))
    bounds = Bracket(float(max(lower, 0.0)), float(point.value))
    return Pass(point, C, floors[0] * multiple**2, M, bounds)


def bracket_rows(problem: DirectionProblem, U: Array, dual: Dual | None = None) -> Bracket:
    """Bracket the optimum of (15) from a factor, one pass over many rows, and the multipliers of a result."""
    C = None if dual is None or is_sparse(dual.C) else multiplier_of(problem, dual)
    found = certify_in_one_pass(problem, U, C, guess=True)
    lower = found.bounds.lower
    if dual is not None and dual.u is not None:
        lower = max(lower, lower_bound(problem, *skip_zero_rows(problem, dual.u), C))
    return Bracket(float(max(lower, 0.0)), found.bounds.upper)
