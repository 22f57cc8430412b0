"""Lower bounds on (15) from a sparse factor: a dual on a working set of coordinates, and KKT checks of the others.

At an optimum of value v the ridge plus the l1 term is at most v (1 - v).  So v is at least the value of the problem
with both times 1 + e, minus e v (1 - v): a slightly infeasible multiplier costs less than a larger t.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse

from diffrac_cvx.certificates.block_problem import IntegerArray
from diffrac_cvx.certificates.block_proof import Pairs
from diffrac_cvx.certificates.direction_bounds import lower_bound
from diffrac_cvx.certificates.group_kkt import check_groups_kkt
from diffrac_cvx.certificates.proof import bound_at, inflation_cost, project_dual
from diffrac_cvx.certificates.screening import TooManyPairsError, screen_pairs
from diffrac_cvx.certificates.search import (
    alternate_projection,
    best_combination_by_rows,
    candidate_weights,
    refine_dual,
)
from diffrac_cvx.certificates.working_set_proof import (
    Elimination,
    WorkingSetProblem,
    WorkingSetSums,
    eliminate_working_set,
    excess_matrix,
    is_difference_positive,
    working_set_sums,
)
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.factors import Sparse, dense
from diffrac_cvx.points.linear_algebra import lanczos, solve_lower, times
from diffrac_cvx.problem.direction_problem import DirectionProblem, PrimalPoint, without_l1

INFLATION_PER_GAP, MAX_INFLATION_GAP = (
    7.0,
    0.03,
)  # inflation of the penalties as a multiple of the gap on the working set, if that is small
RELATIVE_GAPS = (0.006, 0.012, 0.025, 0.05, 0.1, 0.2, 0.4, 0.7)  # relative gaps of the bounds to certify, in this order
NEGLIGIBLE_ENTRY = 1e-4  # relative to the largest diagonal entry of V, below which an entry may be 0
SIGN_THRESHOLD = 1e-3  # relative to the diagonal of V: larger entries start the multiplier by their sign
REFINEMENT_STEPS, MAX_REFINED_SIZE = (
    60,
    500,
)  # to fit a multiplier; coordinates of the working set up to which it expands
MAX_EXPANSIONS, SUFFICIENT_GAP = (
    6,
    0.0125,
)  # of the working set, and relative gap at which they stop
MAX_PAIRS_PER_COORDINATE = 40  # violated pairs: with more the bound fails anyway
MAX_FACTORIZED_ROWS = 3000  # rows that are not diagonally dominant
MAX_NONPOSITIVE = 20  # coordinates with a nonpositive diagonal, beyond which the check stops
MAX_DENSE_ROWS, EIGENVALUE_RTOL = (
    200,
    1e-2,
)  # rows of S for a dense eigensolver, and accuracy for larger S
MAX_DIRECTIONS = 12  # returned if the bound fails
MIN_DIRECTION_WEIGHT = 1e-3  # of a coordinate in violated directions, relative to the largest; others do not enter


class KktCheck(NamedTuple):
    """Result of a KKT check of the coordinates outside a working set."""

    lower: float | None  # the bound, if certified
    entering: IntegerArray  # (k,), coordinates to enter the working set, by decreasing violation
    directions: Array  # (D, v), violated directions, in which S is negative
    C: Array  # (w + k, k), multiplier of the working set and these coordinates with these coordinates


class WorkingSetDual(NamedTuple):
    """Weights of the rows, the mean of their inverses, and a multiplier, with the least t at which they are feasible.

    They are feasible for the penalties times 1 + inflation, and slack_cost is subtracted from the bound for that.
    """

    u: Array
    inverse_mean: float
    C: Array
    t: float
    inflation: float = 0.0
    slack_cost: float = 0.0

    @property
    def lower(self) -> float:
        """Lower bound on the working set, up to rounding."""
        return 1.0 - self.t * self.inverse_mean - self.slack_cost

    def at_bound(self, lower: float) -> tuple[Array, float, float, float]:
        """Return the weights, the mean, the t of this bound, and slack_cost: the arguments of `check_kkt`."""
        return self.u, self.inverse_mean, (1.0 - lower - self.slack_cost) / self.inverse_mean, self.slack_cost


def best_dual(
    problem: DirectionProblem,
    restricted: DirectionProblem,
    point: PrimalPoint,
    candidates: Callable[[Array], Iterable[Array]],
) -> WorkingSetDual:
    """Return the weights and the multiplier on a working set with the largest bound, among candidates from q.

    The candidates for the multiplier come from M = X' Diag(u) X / n.  A row that is zero only on the working set keeps
    its weight, because it belongs to the problem on all coordinates.
    """
    found = [
        combine_with_trivial(restricted, u, inverse_mean, C)
        for u, inverse_mean in candidate_weights(problem, point.q)
        for C in candidates(restricted.X.weighted_gram(u))
    ]
    best = max(found, key=lambda dual: dual.lower)
    gap = point.value - best.lower
    if not 0.0 < gap < MAX_INFLATION_GAP:
        return best
    other = combine_with_trivial(restricted, best.u, best.inverse_mean, best.C, INFLATION_PER_GAP * gap, point.value)
    return max(best, other, key=lambda dual: dual.lower)


def combine_with_trivial(
    restricted: DirectionProblem, u: Array, inverse_mean: float, C: Array, inflation: float = 0.0, upper: float = 1.0
) -> WorkingSetDual:
    """Return the dual on a working set with the best weight of a multiplier, and its t."""
    inflated = restricted.with_inflated_penalty(inflation)
    rows = restricted.X.array() * (u / len(u))[:, None] ** 0.5
    found = best_combination_by_rows(rows, inflated.A + np.diag(inflated.c**2), C, 1.0 + inflation)
    return WorkingSetDual(u, inverse_mean, found.weight * C, found.t, inflation, inflation_cost(inflation, upper))


def bound_from_working_set(problem: DirectionProblem, point: PrimalPoint, C: Sparse | None = None) -> float:
    """Return the best lower bound from a sparse factor by working sets, at a few relative gaps; at least 0.

    The working set starts with the coordinates where the factor is not negligible or the multiplier not zero, and
    grows by the coordinates that failed checks return.
    """
    rows = scipy.sparse.csr_array(point.U)
    diagonal_entries = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    in_ws = (diagonal_entries > NEGLIGIBLE_ENTRY * diagonal_entries.max()) | (problem.c == 0.0)
    if C is not None:
        in_ws |= abs(scipy.sparse.csr_array(C)).sum(axis=1) > 0.0
    in_ws = problem.pair_penalty.complete_groups(in_ws)
    ws = np.flatnonzero(in_ws)
    C_ws = None if C is None else dense(scipy.sparse.csr_array(C)[ws][:, ws])
    lower = bound_at_equal_weights(without_l1(problem))
    for expansion in range(MAX_EXPANSIONS):
        refined = C is None or expansion > 0
        dual = dual_on_working_set(problem, point, ws, dense(rows[ws]), C_ws, refine=refined)
        working_set = WorkingSetProblem(problem, ws, dual.C, dual.inflation)
        relative_gaps = [
            relative_gap for relative_gap in RELATIVE_GAPS if lower < point.value * (1.0 - relative_gap) <= dual.lower
        ]
        failed: KktCheck | None = None
        for relative_gap in relative_gaps:
            check = check_kkt(working_set, *dual.at_bound(point.value * (1.0 - relative_gap)))
            if check.lower is not None:
                lower = max(lower, check.lower)
                break
            failed = check if failed is None else failed
        n_entering = 0 if failed is None else len(failed.entering)
        near = lower >= (1.0 - SUFFICIENT_GAP) * point.value
        if failed is None or near or not 0 < n_entering <= MAX_REFINED_SIZE - len(ws):
            break
        ws, C_ws, _ = expand_working_set(problem, ws, dual.C, failed.entering, dual.u, failed)
    return max(lower, 0.0)


def dual_on_working_set(
    problem: DirectionProblem, point: PrimalPoint, ws: IntegerArray, U: Array, C_given: Array | None, *, refine: bool
) -> WorkingSetDual:
    """Return the best dual on a working set: with the given multiplier, its projection, or one fitted from it or V."""
    restricted = problem.restrict(ws)

    def candidates(M: Array) -> Iterator[Array]:
        V = times(U, U.T)
        if C_given is not None:
            start = project_dual(restricted, C_given)
            yield start
            yield alternate_projection(restricted, M, start)
        else:
            start = restricted.pair_penalty.subgradient(V, SIGN_THRESHOLD, project_dual(restricted, M - restricted.A))
        if refine:
            yield refine_dual(restricted, M, V, start, REFINEMENT_STEPS)

    return best_dual(problem, restricted, point, candidates)


def expand_working_set(
    problem: DirectionProblem, ws: IntegerArray, C: Array, new: IntegerArray, u: Array, check: KktCheck
) -> tuple[IntegerArray, Array, IntegerArray]:
    """Return the expanded working set, increasing, its multiplier, and its order among the old and then the new ones.

    The new multipliers are those of the check that returned the coordinates, or minimise S at the weights u.
    """
    both, n_old = np.concatenate([ws, new]), len(ws)
    order = np.argsort(both, kind="stable")
    data = array_points(problem.X.in_columns().dense_columns(both))
    A = array_points(problem.Y.in_columns().dense_columns(both)).second_moment()
    larger = problem.pair_penalty.restrict(both).project_safe(data.weighted_gram(u) - A)
    larger[:n_old, :n_old] = C
    positions = n_old + np.flatnonzero(np.isin(new, check.entering))
    if len(positions):
        named = n_old + np.array([np.flatnonzero(check.entering == j)[0] for j in both[positions]])
        old = np.arange(n_old)
        larger[np.ix_(np.append(old, positions), positions)] = check.C[np.ix_(np.append(old, named), named - n_old)]
        larger[positions, :n_old] = larger[:n_old, positions].T
    return both[order], larger[np.ix_(order, order)], order


def bound_at_equal_weights(problem: DirectionProblem) -> float:
    """Return the lower bound of a problem without an l1 term at u = 1: above 0 with a ridge on all columns."""
    u = np.where(problem.zero_rows, 0.0, 1.0)
    return lower_bound(problem, u, problem.mean_inverse(np.ones(len(u))), None)


def check_kkt(
    working_set: WorkingSetProblem, u: Array, inverse_mean: float, t: float, slack_cost: float = 0.0
) -> KktCheck:
    """Try to certify the bound 1 - t mean(1/u) from a working set; return the violated coordinates if it fails.

    On the working set M <= t (A + C + Diag(c)^2) should hold, otherwise nothing is found.  `slack_cost` is subtracted
    from the bound, for inflated penalties of the working set.
    """
    nothing = empty_check(working_set.problem)
    sums = working_set_sums(working_set, u, t)
    elimination = (
        None
        if sums is None
        else eliminate_working_set(working_set, u, sums, off_diagonal_multipliers(working_set, sums))
    )
    if elimination is None:
        return nothing
    if not working_set.problem.pair_penalty.splits_into_blocks:
        group_check = check_groups_kkt(working_set, elimination)
        if group_check.certified:
            return nothing._replace(lower=bound_at(t, inverse_mean, slack_cost=slack_cost))
        return failed_check(working_set, elimination, group_check.entering, group_check.violated)
    nonpositive = np.flatnonzero(~(elimination.diagonal > elimination.error))  # what is no number is lacking
    nonpositive = nonpositive[np.argsort(elimination.diagonal[nonpositive], kind="stable")]
    m = len(working_set.complement)
    if len(nonpositive) > MAX_NONPOSITIVE:
        return failed_check(working_set, elimination, nonpositive, unit_vectors(m, nonpositive[:MAX_DIRECTIONS]))
    try:
        pairs = screen_pairs(elimination.schur, np.arange(m), 1.0, max_pairs=MAX_PAIRS_PER_COORDINATE * max(m, 1)).pairs
    except TooManyPairsError:
        order = np.argsort(elimination.diagonal, kind="stable")[: m // 4 + 1]
        return failed_check(working_set, elimination, order, unit_vectors(m, order[:MAX_DIRECTIONS]))
    others = pairs.take(np.flatnonzero(~np.isin(pairs.j, nonpositive) & ~np.isin(pairs.k, nonpositive)))
    violated = violated_directions(
        np.where(elimination.diagonal > elimination.error, elimination.diagonal - elimination.error, 1.0), others
    )
    if violated is None and not len(nonpositive):
        return nothing._replace(lower=bound_at(t, inverse_mean, slack_cost=slack_cost))
    violated = np.zeros((m, 0)) if violated is None else violated
    weight = np.sum(violated**2, axis=1)
    order = np.argsort(-weight, kind="stable")
    heavy = order[: int(np.sum(weight > MIN_DIRECTION_WEIGHT * weight.max(initial=0.0)))]
    return failed_check(
        working_set,
        elimination,
        np.append(nonpositive, heavy),
        np.hstack([unit_vectors(m, nonpositive[:MAX_DIRECTIONS]), violated]),
    )


def empty_check(problem: DirectionProblem) -> KktCheck:
    """Return a check without a bound and without coordinates."""
    return KktCheck(None, np.zeros(0, dtype=np.intp), np.zeros((len(problem.c), 0)), np.zeros((0, 0)))


def failed_check(
    working_set: WorkingSetProblem, elimination: Elimination, entering: IntegerArray, violated: Array
) -> KktCheck:
    """Return a failed check: entering coordinates, and violated directions, extended optimally to the working set."""
    entering = working_set.problem.pair_penalty.restrict(working_set.complement).first_groups(
        entering, max(MAX_NONPOSITIVE, len(working_set.ws))
    )
    directions = np.zeros((len(working_set.problem.c), violated.shape[1]))
    directions[working_set.complement] = violated
    inner = elimination.schur.K @ violated
    directions[working_set.ws] = -solve_lower(elimination.L, inner, transposed=True)
    data, K, t = (
        working_set.outside.rows.X.dense_columns(entering),
        elimination.schur.K[:, entering],
        elimination.schur.t,
    )
    pair_penalty = working_set.problem.pair_penalty.restrict(working_set.complement[entering])
    C_entering = pair_penalty.project_safe((data.T @ (data * elimination.schur.gram_weights[:, None]) + K.T @ K) / t)
    return KktCheck(
        None, working_set.complement[entering], directions, np.vstack([elimination.C[:, entering], C_entering])
    )


def off_diagonal_multipliers(working_set: WorkingSetProblem, sums: WorkingSetSums) -> Array:
    """Return t C between the working set and the others, nearly the best choice for S: T if it is in the dual set."""
    t, P, T = sums.t, sums.P, sums.T
    violated = working_set.off_diagonal.violated_columns(T, t)
    if not len(violated):
        return T
    tC = T.copy()
    tC[:, violated] = working_set.off_diagonal.restrict(violated).best_multiplier(
        P, np.ascontiguousarray(T[:, violated]), t
    )
    return tC


def violated_directions(diagonal: Array, pairs: Pairs) -> Array | None:
    """Return directions in which Diag(diagonal) minus the excess is negative; None if it is certified positive.

    If neither is found, the unit vectors of the least dominant rows are returned.
    """
    m = len(diagonal)
    E = excess_matrix(pairs, m)
    rows = np.asarray(abs(E).sum(axis=1)).ravel()
    if is_difference_positive(diagonal, E, np.zeros(m, dtype=bool)):
        return None
    if m <= MAX_DENSE_ROWS:
        values, vectors = np.linalg.eigh(np.diag(diagonal) - E.toarray())
    else:
        values, vectors = lanczos(lambda x: diagonal * x - E @ x, m, MAX_DIRECTIONS, "SA", EIGENVALUE_RTOL)
    if np.any(values < 0.0):
        return np.asarray(vectors[:, : min(MAX_DIRECTIONS, int(np.sum(values < 0.0)))])
    weak = ~(diagonal > 2.0 * rows)
    if int(weak.sum()) > MAX_FACTORIZED_ROWS:
        weak = ~(diagonal > rows)
    if int(weak.sum()) <= MAX_FACTORIZED_ROWS and is_difference_positive(diagonal, E, weak):
        return None
    weak_rows = np.flatnonzero(weak)
    return unit_vectors(m, weak_rows[np.argsort((diagonal - rows)[weak_rows])[:MAX_DIRECTIONS]])


def unit_vectors(size: int, positions: IntegerArray) -> Array:
    """Return the unit vectors of these coordinates as columns."""
    vectors = np.zeros((size, len(positions)))
    vectors[positions, np.arange(len(positions))] = 1.0
    return vectors
