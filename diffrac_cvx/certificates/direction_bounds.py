"""Certified bounds in the space of directions, from any factor of V, for (15) and (21), in closed form.

For streamed rows one pass computes sums whose size does not depend on n, which certify both bounds.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse

from diffrac_cvx.certificates.block_bounds import Blocks, certify_blocks
from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.proof import MEAN_ROUNDINGS, bound_at, eliminate, project_dual, skip_zero_rows
from diffrac_cvx.certificates.search import (
    NEGLIGIBLE_ENTRY,
    best_bound,
    candidate_multipliers,
    min_ratio,
    row_weights,
)
from diffrac_cvx.certificates.working_set import bound_from_working_set
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, as_sparse, dense, diagonal, is_sparse
from diffrac_cvx.points.floating_point import UNIT_ROUNDOFF, round_up, sum_error
from diffrac_cvx.points.linear_algebra import symmetric
from diffrac_cvx.problem.direction_problem import DirectionProblem, PrimalPoint, problem_by_rows
from diffrac_cvx.problem.result import Bracket

MIN_WIDE_SIZE = 200  # coordinates from which on a working set is quicker than the problem on all of them


class DualPoint(NamedTuple):
    """A solver's dual variables for the lower bound: u, or None for 1/sqrt(q), and the off-diagonal C, or None."""

    u: Array | None = None
    C: Factor | None = None


NO_DUAL = DualPoint()


def certify(problem: DirectionProblem, point: PrimalPoint, dual: DualPoint = NO_DUAL) -> Bracket:
    r"""Return certified bounds on the optimum of (15) from an optimally scaled factor of V and a solver's dual, if any.

    For u > 0 and symmetric C in the box with A + C > 0, let M = X' Diag(u) X / n and t the largest generalised
    eigenvalue of (M, A + C).  Then 2 sqrt(q) <= u q + 1/u gives  optimum >= 1 - t mean(1/u), also with sample weights,
    in M and in the mean.

    If the factor is sparse, C comes from a working set, or from blocks, and is clipped outside.  Else V is one block.
    """
    U, value, penalty, is_sparse_factor = point.U, float(point.value), problem.pair_penalty, is_sparse(point.U)
    if is_sparse_factor and value > 1.0 - 1e-12:  # V is zero up to rounding
        return Bracket(0.0, value)
    few = 2 * int(np.count_nonzero(diagonal(U))) <= len(problem.c) >= MIN_WIDE_SIZE
    if is_sparse_factor and few and problem.X.in_memory and penalty.is_even:
        return Bracket(bound_from_working_set(problem, point, None if dual.C is None else as_sparse(dual.C)), value)
    U = U if penalty.splits_into_blocks else dense(U)
    problem = problem_by_rows(problem, U)
    in_passes = problem.X.is_streamed
    if is_sparse_factor and penalty.splits_into_blocks and not in_passes:
        return Bracket(bound_of_blocks(problem, point, dual), value)
    U = dense(U)
    C = None if dual.C is None or not problem.has_l1 else project_dual(problem, dense(dual.C))
    given = [] if dual.u is None else [skip_zero_rows(problem, dual.u)]
    if in_passes:
        lower, weights = certify_in_one_pass(problem, U, C)[1].lower, given
    else:
        lower, weights = 0.0, [*given, row_weights(problem, point.q)]
    return Bracket(max(lower, best_bound(problem, weights, lambda M: candidate_multipliers(problem, U, M, C))), value)


def bound_of_blocks(problem: DirectionProblem, point: PrimalPoint, dual: DualPoint) -> float:
    """Return a lower bound from a sparse factor, at least 0: with a solver's multipliers, or the best candidates."""
    split = block_problem(problem)
    blocks, rows = Blocks(split, split.labels_of(point.U)), scipy.sparse.csr_array(point.U)[split.penalized]
    found = blocks.best_dual(point.q, blocks.restrict_multiplier(dual.C))
    if dual.C is None:
        u, multipliers = found[1], []
        for i, block in enumerate(blocks.members):
            small, U = problem.restrict(split.penalized[block]), dense(rows[block])
            candidates = candidate_multipliers(small, U, small.X.weighted_gram(u), None)
            ratios = [(blocks.block_ratio(i, u, C)[0], C) for C in candidates if C is not None]
            multipliers.append(min(ratios, key=lambda pair: pair[0])[1])
        found = blocks.best_dual(point.q, multipliers)
    return max(certify_blocks(blocks, found, 3).lower or 0.0, 0.0)


def bracket_normalized(problem: DirectionProblem, U: Array, dual: DualPoint = NO_DUAL) -> Bracket:
    """Return certified bounds on the optimum of (21), min -(g(V) - sum c_i c_j |V_ij|) over tr AV = 1, from a factor.

    With theta > 0 such that M/2 - C <= theta A, which is M <= t (A + C) at t = 2 theta for weights c_i c_j / theta, the
    optimum is at least -(mean(1/u)/2 + theta).  It is never below -1, and not above 0 if the only penalty is the ridge.
    The bound is -1 if the l1 term exceeds half of g, where there is no such theta.
    """
    size = float(np.sum((problem.R @ U) ** 2))
    if size == 0.0:
        return Bracket(-1.0, np.inf if problem.has_l1 else 0.0)
    U = U / size**0.5
    l1, mean_sqrt = problem.convex_term(U) - 1.0, problem.mean_sqrt(U)
    value_error = problem.pair_penalty.value_error_bound(U) if problem.has_l1 else 0.0  # infinite if V is infeasible
    relative_error = sum_error(4 * len(problem.X) + 4 * len(U)) + 2.0 * problem.whitening_error.data_error
    upper = l1 - mean_sqrt + round_up(relative_error * (1.0 + l1)) + 2.0 * value_error
    u, inverse_mean = row_weights(problem, problem.X.quadratic_forms(U))
    M, theta, inverse_mean = problem.X.weighted_gram(u), mean_sqrt / 2 - l1, round_up(inverse_mean, MEAN_ROUNDINGS)
    slack = project_dual(problem, M / 2 - theta * problem.A)
    given = [] if dual.C is None else [project_dual(problem, dense(dual.C))]
    least, everything, weights = 1.0 - inverse_mean / 2, np.arange(len(M)), problem.c * (1.0 - 8 * UNIT_ROUNDOFF)
    for C in [*given, problem.pair_penalty.subgradient(U @ U.T, NEGLIGIBLE_ENTRY, slack), slack]:
        below = 1e-14
        while least - theta > 1.01 * below:
            larger = theta + (below * (least - theta)) ** 0.5
            pair_penalty = problem.pair_penalty.with_weights(weights / max(larger, 1e-300) ** 0.5)
            scaled = block_problem(replace(problem, pair_penalty=pair_penalty), everything)
            if eliminate(scaled, u, 2.0 * larger, C / larger) is None:
                below = larger - theta
            else:
                least = larger
    return Bracket(float(max(-round_up(inverse_mean / 2 + least, 8), -1.0)), float(upper))


def certify_in_one_pass(problem: DirectionProblem, U: Array, C: Array | None) -> tuple[PrimalPoint, Bracket, Array]:
    """Return an optimally scaled factor, its certified bounds with this C, and M, (D, D), from one pass over all rows.

    M = X' Diag(u) X / n, with u = 1/sqrt(q) at q >= 1e-12 tr(AUU').
    """
    n, n_roundings = len(problem.X), MEAN_ROUNDINGS + problem.X.accumulation_length
    floors = np.array([1e-12, 1e-2]) * max(float(np.sum(U * (problem.A @ U))), 1e-300)  # of the mean of q, or more
    grams, inverse_sums, sqrt_sum, square_sum = problem.X.weighted_sums(U, floors)
    mean_sqrt, convex_term = sqrt_sum / n, problem.convex_term(U, float(square_sum / n))
    point = problem.rescale_with(U, mean_sqrt, convex_term)
    multiple = mean_sqrt / convex_term if point.value < 1.0 else 1.0
    # Of u only the largest weight is known: that of the larger floor if no q is below it.
    M, largest = grams[0] / n, floors[int(np.ptp(inverse_sums) == 0.0)] ** -0.5
    scaled_M = symmetric(M) / multiple
    t = min(
        min_ratio(problem, np.array([largest]), M, candidate)
        for candidate in candidate_multipliers(problem, dense(point.U), scaled_M, C)
    )
    lower = max(bound_at(t, inverse_sums[0] / n, n_roundings), 0.0)
    return point, Bracket(float(lower), float(point.value)), scaled_M
