"""Lower bounds on (15) from a sparse factor: a dual on a working set of coordinates, and KKT checks of the others.

At an optimum of value v the ridge plus the l1 term is at most v (1 - v).  So v is at least the value of the problem
with both times 1 + e, minus e v (1 - v): a slightly infeasible multiplier costs less than a larger t.

Outside the working set, t C is the projection of G + ZZ', G = M - t A + K'K, for any Z.  This leaves S = ZZ' minus
what of G + ZZ' is beyond the dual set, and minus ZZ' on the diagonal.  Z = 0 leaves the smallest entries, and often a
few negative directions that are spread over many coordinates: these directions as Z make S positive.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse

from diffrac_cvx.certificates.block_problem import BlockProblem, IntegerArray, block_problem
from diffrac_cvx.certificates.proof import (
    EIGENVALUE_ERROR,
    MAX_DENSE_SIZE,
    NO_PAIRS,
    Pairs,
    Remainder,
    bound_at,
    eliminate,
    inflation_cost,
    project_dual,
    prove,
)
from diffrac_cvx.certificates.screening import TooManyPairsError, screen_pairs
from diffrac_cvx.certificates.search import (
    alternate_projection,
    best_combination_by_rows,
    min_ratio,
    refine_dual,
    row_weights,
)
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.factors import Sparse, dense
from diffrac_cvx.points.linear_algebra import eigh, lanczos, symmetric, times
from diffrac_cvx.problem.direction_problem import DirectionProblem, PrimalPoint, without_l1

INFLATION_PER_GAP, MAX_INFLATION_GAP = (
    7.0,
    0.03,
)  # inflation of the penalties as a multiple of the gap on the working set, if that is small
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
MAX_PAIRS_PER_COORDINATE = 60  # violated pairs: with more the bound fails anyway
MAX_NONPOSITIVE = 20  # coordinates with a nonpositive diagonal, beyond which the check stops
MAX_DIRECTIONS = 12  # returned if the bound fails
MIN_DIRECTION_WEIGHT = 0.02  # of a coordinate in violated directions, relative to the largest; others do not enter
MAX_CORRECTIONS, N_DIRECTIONS = 9, 24  # of the multiplier, and directions in each
LIFT, OVERSHOOT = 0.08, 1.5  # eigenvalue to which a correction raises negative directions, and factor of what they lack
MIN_PROGRESS = 0.9  # fraction of the smallest eigenvalue that has to be left after a correction for another one


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

    def at_bound(self, lower: float) -> tuple[Array, float, Array, float, float]:
        """Return the weights, the mean, the multiplier, the t of this bound, and slack_cost: those of `check_kkt`."""
        t, C = (1.0 - lower - self.slack_cost) / self.inverse_mean, (1.0 + self.inflation) * self.C
        return self.u, self.inverse_mean, C, t, self.slack_cost


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
        for u, inverse_mean in [row_weights(problem, point.q)]
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
    t, weight = best_combination_by_rows(rows, inflated.A + np.diag(inflated.c**2), C, 1.0 + inflation)
    return WorkingSetDual(u, inverse_mean, weight * C, t, inflation, inflation_cost(inflation, upper))


def bound_from_working_set(problem: DirectionProblem, point: PrimalPoint, C: Sparse | None = None) -> float:
    """Return the best lower bound from a sparse factor by working sets; at least 0.

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
        working_set = block_problem(problem.with_inflated_penalty(dual.inflation), ws)
        gap = max(SUFFICIENT_GAP / 2.0 * point.value, 1.25 * (point.value - dual.lower))
        failed: KktCheck | None = None
        for tried in (gap, (gap * max(point.value - lower, 0.0)) ** 0.5):  # also between the failed and the known gap
            if tried >= point.value - lower:
                break
            check = check_kkt(working_set, *dual.at_bound(point.value - tried))
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
    data = array_points(problem.X.in_columns().columns(both).array())
    A = array_points(problem.Y.in_columns().columns(both).array()).second_moment()
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
    return bound_at(min_ratio(problem, u, problem.X.weighted_gram(u), None), problem.mean_inverse(np.ones(len(u))))


def check_kkt(
    working_set: BlockProblem, u: Array, inverse_mean: float, C: Array, t: float, slack_cost: float = 0.0
) -> KktCheck:
    """Try to certify the bound 1 - t mean(1/u) from a working set E and a multiplier on it.

    If that fails, return the violated coordinates.  On the working set M <= t (A + C + Diag(c)^2) should hold,
    otherwise nothing is found.  `slack_cost` is subtracted from the bound, for inflated penalties of the problem.

    1. Eliminate the working set.  If the diagonal of S is not positive, its coordinates enter.
    2. Prove that S is positive, with a correction Z of the multiplier, first that of the negative part of the rows.
    3. If that fails, add to Z the directions in which S is least, on rows that are not dominant, and prove it again.
    """
    nothing, m = empty_check(working_set.problem), len(working_set.penalized)
    remainder = eliminate(working_set, u, t, C, lambda P, T: off_diagonal_multipliers(working_set, P, T, t))
    if remainder is None:
        return nothing
    diagonal, pair_penalty = remainder.diagonal - remainder.errors, working_set.problem.pair_penalty
    splits = pair_penalty.splits_into_blocks
    nonpositive = np.flatnonzero(~(diagonal > 0.0))  # what is no number is lacking
    nonpositive = nonpositive[np.argsort(diagonal[nonpositive], kind="stable")] if splits else nonpositive[:0]
    if len(nonpositive) > MAX_NONPOSITIVE:
        return failed_check(remainder, nonpositive, unit_vectors(m, nonpositive[:MAX_DIRECTIONS]))
    corrected = remainder.with_correction(negative_part_of_rows(remainder)) if splits else remainder
    pairs, rows, least = NO_PAIRS if splits else None, np.arange(m), -np.inf
    violated, values = np.zeros((m, 0)), np.zeros(0)
    for _ in range(MAX_CORRECTIONS):
        try:
            pairs = pairs if pairs is None else screen_rows(corrected, rows, pairs)
        except TooManyPairsError:
            if violated.shape[1]:
                break
            order = np.argsort(diagonal, kind="stable")[: m // 4 + 1]
            return failed_check(remainder, order, unit_vectors(m, order[:MAX_DIRECTIONS]))
        if pairs is not None and len(nonpositive):  # the bound fails; directions on the others are found without them
            pairs = pairs.take(np.flatnonzero(~np.isin(pairs.j, nonpositive) & ~np.isin(pairs.k, nonpositive)))
        found = prove(corrected, pairs, max_directions=N_DIRECTIONS)
        if not found:
            return nothing._replace(lower=bound_at(t, inverse_mean, slack_cost=slack_cost))
        previous, least = least, min(float(values[0]) for _, values, _ in found)
        if least < MIN_PROGRESS * previous:
            break
        remainder = corrected
        values = np.concatenate([values for _, values, _ in found])
        violated = np.zeros((m, len(values)))
        ends = np.cumsum([0, *(len(values) for _, values, _ in found)])
        for (members, _, directions), start, end in zip(found, ends[:-1], ends[1:], strict=True):
            violated[members, start:end] = directions
        if len(nonpositive) or not -np.inf < least < 0.0:
            break
        lift = LIFT * t * float(np.mean(working_set.a**2 + working_set.c**2))
        low = values < lift / 2.0
        Z = violated[:, low] * np.sqrt(OVERSHOOT * (lift - values[low]))
        if pairs is not None:
            sums = sum(np.bincount(some, np.abs(pairs.excess), m) for some in (pairs.j, pairs.k))
            weak = ~(remainder.diagonal > 2.0 * sums) | remainder.Z.any(axis=1)
            rows, Z = np.flatnonzero(weak), np.where(weak[:, None], Z, 0.0)
        corrected = remainder.with_correction(Z)
    least_first = np.argsort(values, kind="stable")[: max(int(np.sum(values < 0.0)), 1)]
    violated, lacking = violated[:, least_first], np.clip(-values[least_first], 1e-100, 1e100)
    weight = pair_penalty.restrict(working_set.penalized).group_sums(violated**2 @ lacking)
    order = np.argsort(-weight, kind="stable")
    heavy = order[: int(np.sum(weight > MIN_DIRECTION_WEIGHT * weight.max(initial=0.0)))]
    entering = np.append(nonpositive, heavy[~np.isin(heavy, nonpositive)])
    return failed_check(remainder, entering, violated[:, :MAX_DIRECTIONS])


def screen_rows(remainder: Remainder, rows: IntegerArray, known: Pairs) -> Pairs:
    """Return the pairs that may violate their box: those of some coordinates are screened, the others known."""
    limit = MAX_PAIRS_PER_COORDINATE * max(len(remainder.problem.c), 1)
    found = screen_pairs(remainder.restrict(rows), np.arange(len(rows)), max_pairs=limit)
    found = found._replace(j=rows[found.j], k=rows[found.k])
    others = known.take(np.flatnonzero(~(np.isin(known.j, rows) & np.isin(known.k, rows))))
    return Pairs(*(np.concatenate(parts) for parts in zip(others, found, strict=True)))


def negative_part_of_rows(remainder: Remainder) -> Array:
    """Return Z with ZZ' half of the largest negative part of the weighted Gram matrix of the rows.

    It is large compared with the box if many points have a common sign: they are one row of M and many of A.
    """
    rows, weights = remainder.problem.rows.array(), remainder.gram_weights
    m = rows.shape[1]
    if m <= MAX_DENSE_SIZE:
        values, vectors = eigh(symmetric(times(rows.T * weights, rows)))
    else:
        product = lambda x: rows.T @ (weights * (rows @ x))  # noqa: E731
        values, vectors = lanczos(product, m, N_DIRECTIONS, "SA", EIGENVALUE_ERROR)
    negative = values < 0.1 * values.min(initial=0.0)
    return np.asarray(vectors[:, negative] * np.sqrt(-values[negative] / 2.0))


def empty_check(problem: DirectionProblem) -> KktCheck:
    """Return a check without a bound and without coordinates."""
    return KktCheck(None, np.zeros(0, dtype=np.intp), np.zeros((len(problem.c), 0)), np.zeros((0, 0)))


def failed_check(remainder: Remainder, entering: IntegerArray, violated: Array) -> KktCheck:
    """Return a failed check: entering coordinates, and violated directions, extended optimally to the working set."""
    working_set, t = remainder.problem, remainder.t
    problem, outside = working_set.problem, working_set.penalized
    entering = problem.pair_penalty.restrict(outside).first_groups(
        entering, max(MAX_NONPOSITIVE, len(working_set.free))
    )
    directions = np.zeros((len(problem.c), violated.shape[1]))
    directions[outside] = violated
    directions[working_set.free] = remainder.extend(violated)
    pair_penalty = problem.pair_penalty.restrict(outside[entering])
    C_entering = pair_penalty.project_safe(remainder.gram(entering, entering) / t)
    return KktCheck(None, outside[entering], directions, np.vstack([remainder.tC[:, entering] / t, C_entering]))


def off_diagonal_multipliers(working_set: BlockProblem, P: Array, T: Array, t: float) -> Array:
    """Return t C between the working set and the others, nearly the best choice for S: T if it is in the dual set."""
    violated = working_set.off_diagonal.violated_columns(T, t)
    if not len(violated):
        return T
    tC = T.copy()
    tC[:, violated] = working_set.off_diagonal.restrict(violated).best_multiplier(
        P, np.ascontiguousarray(T[:, violated]), t
    )
    return tC


def unit_vectors(size: int, positions: IntegerArray) -> Array:
    """Return the unit vectors of these coordinates as columns."""
    vectors = np.zeros((size, len(positions)))
    vectors[positions, np.arange(len(positions))] = 1.0
    return vectors
