"""Certified bounds in the space of directions, from any factor of V, for (15) and (21), in closed form.

For streamed rows one pass computes sums whose size does not depend on n, which certify both bounds.
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.pencils import bound_normalized, value_normalized
from diffrac_cvx.certificates.proof import (
    MEAN_ROUNDINGS,
    bound_at,
    least_certified_t,
    project_dual,
    skip_zero_rows,
)
from diffrac_cvx.certificates.search import (
    Q_FLOORS,
    alternate_projection,
    best_combination,
    candidate_multipliers,
    candidate_weights,
    normalized_theta,
    subgradient_candidates,
    top_eigenvalue,
)
from diffrac_cvx.machine.deadlines import EarlyExitError
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, dense
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF
from diffrac_cvx.points.linear_algebra import symmetric, times
from diffrac_cvx.points.ranges import are_finite, is_out_of_range
from diffrac_cvx.problem.direction_problem import DirectionProblem, PrimalPoint
from diffrac_cvx.problem.result import Bracket


class DualPoint(NamedTuple):
    """A solver's dual variables for the lower bound: u, or None for 1/sqrt(q), and the off-diagonal C, or None."""

    u: Array | None = None
    C: Factor | None = None


def bracket(problem: DirectionProblem, point: PrimalPoint, dual: DualPoint | None = None) -> Bracket:
    r"""Return certified bounds on the optimum of (15) from an optimally scaled factor of V and a solver's dual, if any.

    For u > 0 and symmetric C in the box with A + C > 0, let M = X' Diag(u) X / n and t the largest generalised
    eigenvalue of (M, A + C).  Then 2 sqrt(q) <= u q + 1/u gives  optimum >= 1 - t mean(1/u), also with sample weights,
    in M and in the mean.
    """
    C = multiplier_of(problem, dual)
    solver_candidates = (
        [] if dual is None or dual.u is None else [DualCandidates(*skip_zero_rows(problem, dual.u), [C])]
    )
    candidates = (
        DualCandidates(
            u, inverse_mean, candidate_multipliers(problem, dense(point.U), partial(problem.X.weighted_gram, u), C)
        )
        for u, inverse_mean in candidate_weights(problem, point.q)
    )
    return Bracket(best_bound(problem, chain(solver_candidates, candidates)), float(point.value))


class DualCandidates(NamedTuple):
    """Weights u of the rows, 0 for zero rows, mean(1/u), and candidates for the multiplier C."""

    u: Array
    inverse_mean: float
    multipliers: Iterable[Array | None]


def best_bound(problem: DirectionProblem, candidates: Iterable[DualCandidates]) -> float:
    """Return the best lower bound of the candidates, at least 0; at a deadline, the best so far.

    A search for multipliers stops if it leaves the range of double precision, as with nearly collinear columns.
    """
    lower = 0.0
    with suppress(EarlyExitError):  # the caller stops at its next deadline check
        for u, inverse_mean, multipliers in candidates:
            M = problem.X.weighted_gram(u)
            # With outlying rows, products of whitened rows are more accurate than those of M with W.
            whitened = M if problem.basis is not None else problem.Z.weighted_gram(u)
            try:
                for C in multipliers:
                    lower = max(lower, bound_at(min_ratio(problem, u, M, C, whitened), inverse_mean))
            except (ArithmeticError, ValueError) as error:
                if not is_out_of_range(error):
                    raise
    return float(lower)


def multiplier_of(problem: DirectionProblem, dual: DualPoint | None) -> Array | None:
    """Return a solver's multiplier, projected onto the dual set, if there is one."""
    return None if dual is None or dual.C is None else project_dual(problem, dense(dual.C))


def bound_by_dual(problem: DirectionProblem, dual: DualPoint) -> float:
    """Return the lower bound of a solver's weights and multiplier, after one alternating projection; 0 without them."""
    C = multiplier_of(problem, dual)
    if dual.u is None or C is None:
        return 0.0
    u, inverse_mean = skip_zero_rows(problem, dual.u)
    return lower_bound(problem, u, inverse_mean, alternate_projection(problem, problem.X.weighted_gram(u), C))


def lower_bound(problem: DirectionProblem, u: Array, inverse_mean: float, C: Array | None) -> float:
    """Return 1 - t mean(1/u), for weights u of the rows, 0 for zero rows, and mean(1/u)."""
    return bound_at(min_ratio(problem, u, problem.X.weighted_gram(u), C), inverse_mean)


def min_ratio(problem: DirectionProblem, u: Array, M: Array, C: Array | None, whitened: Array | None = None) -> float:
    """Return a certified t with M <= t (A + C + Diag(c)^2), with C shrunk until the right side is positive definite.

    M is the weighted Gram matrix at weights u of the rows, 0 for zero rows; whitened, if given, that of whitened rows.
    """
    if not M.size or not are_finite(M):
        return np.inf if M.size else 0.0
    blocked, M, W = block_problem(problem, np.arange(len(problem.c))), symmetric(M), problem.W
    if whitened is None:
        whitened = M if problem.basis is not None else times(W.T, times(M, W))
    whitened = symmetric(whitened)
    if C is None:
        return least_certified_t(blocked, u, M, None, top_eigenvalue(whitened), 1.0)
    C = project_dual(problem, C)
    found = best_combination(whitened, symmetric(times(W.T, times(C, W))))
    return least_certified_t(blocked, u, M, found.weight * C, found.t, found.min_eigenvalue)


def bracket_normalized(problem: DirectionProblem, U: Array, dual: DualPoint | None = None) -> Bracket:
    """Return certified bounds on the optimum of (21), min -(g(V) - sum c_i c_j |V_ij|) over tr AV = 1, from a factor.

    With theta such that M/2 - C <= theta A, the optimum is at least -(mean(1/u)/2 + theta).  It is never below -1, and
    not above 0 if the only penalty is the ridge.
    """
    size = float(np.sum((problem.R @ U) ** 2))
    if size == 0.0:
        return Bracket(-1.0, np.inf if problem.has_l1 else 0.0)
    U = U / size**0.5
    l1 = problem.convex_term(U) - 1.0
    value_error = problem.pair_penalty.value_error_bound(U) if problem.has_l1 else 0.0  # infinite if V is infeasible
    upper, lower = value_normalized(problem, U, l1) + 2.0 * value_error, -1.0 - 4 * UNIT_ROUNDOFF
    C_given = multiplier_of(problem, dual)
    given = [] if C_given is None else [C_given]
    for u, inverse_mean in candidate_weights(problem, problem.X.quadratic_forms(U)):
        half_gram = problem.X.weighted_gram(u) / 2
        theta = problem.mean_sqrt(U) / 2 - l1
        slack = project_dual(problem, half_gram - theta * problem.A)
        M_error = problem.gram_error(problem.Z.weighted_gram(u), problem.largest_weight(u)) / 2
        for C in [*given, *subgradient_candidates(problem, U @ U.T, slack)]:
            found = normalized_theta(problem, half_gram, project_dual(problem, C), M_error)
            lower = max(lower, bound_normalized(inverse_mean, found))
    return Bracket(float(max(lower, -1.0)), float(upper))


class StreamedCertificate(NamedTuple):
    """Results of one pass over all rows, at a factor at its optimal scale."""

    point: PrimalPoint  # the factor, the objective and q
    C: Array | None  # (D, D), the multiplier
    floor: float  # the smallest q used in u = 1/sqrt(max(q, floor))
    M: Array  # (D, D), X' Diag(u) X / n
    bounds: Bracket  # certified, with the given multiplier


def certify_in_one_pass(
    problem: DirectionProblem, U: Array, C: Array | None, search: bool = False
) -> StreamedCertificate:
    """Return certified bounds and the weighted Gram matrix of a factor from one pass over all rows.

    With `search` the multipliers tried are those of `bracket`, else the given one and its alternating projection.
    """
    n = len(problem.X)
    floors = np.array(Q_FLOORS) * max(
        float(np.sum(U * (problem.A @ U))), 1e-300
    )  # relative to the mean of q, or slightly more
    sums, inverse_sums, sqrt_sum, square_sum = problem.X.weighted_sums(U, floors)
    mean_sqrt, convex_term = sqrt_sum / n, problem.convex_term(U, float(square_sum / n))
    point = problem.rescale_with(U, mean_sqrt, convex_term)
    multiple = mean_sqrt / convex_term if point.value < 1.0 else 1.0
    grams = [symmetric(gram) / (n * multiple) for gram in sums]
    M, lower = grams[0], -np.inf
    solver_multipliers = [C] if C is None else [C, alternate_projection(problem, M, C)]
    for i in range(len(floors)) if np.ptp(inverse_sums) > 0.0 else range(1):
        multipliers = (
            candidate_multipliers(problem, dense(point.U), partial(grams.__getitem__, i), C)
            if search
            else solver_multipliers
        )
        # Only the largest weight is known of u; it is that of the largest floor if no q is below that.
        largest = np.array([floors[i if np.ptp(inverse_sums) > 0.0 else -1] ** -0.5])
        t = min(
            min_ratio(problem, largest, sums[i] / n, candidate if problem.has_l1 else None) for candidate in multipliers
        )
        lower = max(lower, bound_at(t, inverse_sums[i] / n, MEAN_ROUNDINGS + problem.X.accumulation_length))
    bounds = Bracket(float(max(lower, 0.0)), float(point.value))
    return StreamedCertificate(point, C, floors[0] * multiple**2, M, bounds)


def bracket_streamed(problem: DirectionProblem, U: Array, dual: DualPoint | None = None) -> Bracket:
    """Return certified bounds on the optimum of (15) from a factor and a result's dual, by one pass over the rows."""
    C = multiplier_of(problem, dual)
    found = certify_in_one_pass(problem, U, C, search=True)
    lower = found.bounds.lower
    if dual is not None and dual.u is not None:
        lower = max(lower, lower_bound(problem, *skip_zero_rows(problem, dual.u), C))
    return Bracket(float(max(lower, 0.0)), found.bounds.upper)
