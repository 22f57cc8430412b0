"""Lower bounds on (15) from a sparse factor: a dual on a working set of coordinates, and KKT checks of the others.

At an optimum of value v the ridge plus the l1 term is at most v (1 - v).  So v is at least the value of the problem
with both times 1 + e, minus e v (1 - v): a slightly infeasible multiplier costs less than a larger t.

Outside the working set, t C is the projection of G + ZZ', G = M - t A + K'K, for any Z.  This leaves S = ZZ' minus
what of G + ZZ' is beyond the dual set, and minus ZZ' on the diagonal.  Z = 0 leaves the smallest entries, and often a
few negative directions that are spread over many coordinates: these directions as Z make S positive.

Among the multipliers C between the working set and a coordinate outside it, a lasso with the matrix P gives the t C in
the box t c_j c_k with the least e'P^-1 e, e = t C - T: e = -Pz at the minimum of z'Pz/2 - z'T + t c_j sum_k c_k |z_k|.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse

from diffrac_cvx.certificates.block_problem import IntegerArray, block_problem
from diffrac_cvx.certificates.block_proof import Pairs, SchurComplement
from diffrac_cvx.certificates.direction_bounds import lower_bound
from diffrac_cvx.certificates.group_kkt import check_groups_kkt
from diffrac_cvx.certificates.proof import bound_at, inflation_cost, project_dual
from diffrac_cvx.certificates.screening import TooManyPairsError, scaled_columns, screen_pairs, single_precision_error
from diffrac_cvx.certificates.search import (
    alternate_projection,
    best_combination_by_rows,
    candidate_weights,
    refine_dual,
)
from diffrac_cvx.certificates.working_set_proof import (
    LIFT,
    MIN_PROGRESS,
    OVERSHOOT,
    Elimination,
    WorkingSetProblem,
    WorkingSetSums,
    eliminate_working_set,
    excess_matrix,
    is_difference_positive,
    working_set_sums,
)
from diffrac_cvx.machine.deadlines import check_deadline
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.factors import Sparse, dense
from diffrac_cvx.points.linear_algebra import lanczos, times
from diffrac_cvx.points.points import Mask
from diffrac_cvx.problem.direction_problem import DirectionProblem, PrimalPoint, without_l1
from diffrac_cvx.problem.result import Bracket

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
MAX_FACTORIZED_ROWS = 5000  # rows that are not diagonally dominant
DOMINANCE = 1.5  # diagonal over the sum of the excess from which a row is clearly dominant
MAX_NONPOSITIVE = 20  # coordinates with a nonpositive diagonal, beyond which the check stops
MAX_DENSE_ROWS, EIGENVALUE_ERROR = (
    200,
    3e-3,
)  # rows of S for a dense eigensolver, and accuracy for larger S
MAX_DIRECTIONS = 12  # returned if the bound fails
MIN_DIRECTION_WEIGHT = 0.02  # of a coordinate in violated directions, relative to the largest; others do not enter
MAX_CORRECTIONS, N_EIGENPAIRS = 9, 24  # of the multiplier, and directions in each
MIN_NEGATIVE_PART = 0.25  # of the Gram matrix of the rows, relative to the box, to be corrected
MIN_GAIN, MAX_PRICE = 0.05, 0.15  # of a bound by larger penalties outside, and their cost, relative to the gap
LASSO_ROUNDS = 6  # of lassos: coordinate descent on some entries, then a check for missing ones
ENTRIES_PER_ROUND = 16  # new entries of each lasso in a round, those with the largest violation
LASSO_SWEEPS = 10  # of coordinate descent in a round
SWEEP_TOLERANCE = 3e-3  # change in a sweep, relative to the largest entry, at which the sweeps stop
VIOLATION_TOLERANCE = 1e-2  # violation, relative to the bound, that makes an entry join
MAX_GRAM_ENTRIES = 2**22  # of the blocks of P in memory
LASSO_BATCH = 128  # lassos of similar numbers of entries, solved with blocks of one size


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
    """Return the best lower bound from a sparse factor by working sets; at least 0.

    The working set starts with the coordinates where the factor is not negligible or the multiplier not zero, and
    grows by the coordinates that failed checks return.
    """
    rows = scipy.sparse.csr_array(point.U)
    diagonal_entries = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    in_ws = (diagonal_entries > NEGLIGIBLE_ENTRY * diagonal_entries.max()) | (problem.c == 0.0)
    if C is not None:
        in_ws |= abs(scipy.sparse.csr_array(C)).sum(axis=1) > 0.0
    in_ws = problem.structure.complete_groups(in_ws)
    ws = np.flatnonzero(in_ws)
    C_ws = None if C is None else dense(scipy.sparse.csr_array(C)[ws][:, ws])
    lower = bound_at_equal_weights(without_l1(problem))
    for expansion in range(MAX_EXPANSIONS):
        refined = C is None or expansion > 0
        dual = dual_on_working_set(problem, point, ws, dense(rows[ws]), C_ws, refine=refined)
        working_set = WorkingSetProblem(problem, ws, dual.C, dual.inflation)
        gap = max(SUFFICIENT_GAP / 2.0 * point.value, 1.25 * (point.value - dual.lower))
        failed: KktCheck | None = None
        for tried in (gap, (gap * max(point.value - lower, 0.0)) ** 0.5):  # also between the failed and the known gap
            if tried >= point.value - lower:
                break
            check = check_kkt(working_set, *dual.at_bound(point.value - tried), Bracket(lower, point.value))
            lower = max(lower, check.lower or 0.0)
            if check.lower is not None and not len(check.entering):
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
    data, c = array_points(problem.X.in_columns().dense_columns(both)), problem.c[both]
    A = array_points(problem.Y.in_columns().dense_columns(both)).second_moment()
    larger = problem.structure.restrict(both).pair_penalty(c).project_safe(data.weighted_gram(u) - A)
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
    working_set: WorkingSetProblem,
    u: Array,
    inverse_mean: float,
    t: float,
    slack_cost: float = 0.0,
    bounds: Bracket | None = None,
) -> KktCheck:
    """Try to certify the bound 1 - t mean(1/u) from a working set; return the violated coordinates if it fails.

    On the working set M <= t (A + C + Diag(c)^2) should hold, otherwise nothing is found.  `slack_cost` is subtracted
    from the bound, for inflated penalties of the working set.  If S is negative outside, penalties times 1 + e there
    may make it positive: then the bound less their cost is certified too, if that improves the known bounds.
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
    attempted = bound_at(t, inverse_mean, slack_cost=slack_cost)
    if working_set.problem.structure.labels is not None:
        group_check = check_groups_kkt(working_set, elimination)
        if group_check.certified:
            return nothing._replace(lower=attempted)
        return failed_check(working_set, elimination, group_check.entering, group_check.violated)
    m = len(working_set.complement)
    nonpositive = np.flatnonzero(~(elimination.diagonal > elimination.error))  # what is no number is lacking
    nonpositive = nonpositive[np.argsort(elimination.diagonal[nonpositive], kind="stable")]
    units = unit_vectors(m, nonpositive[:MAX_DIRECTIONS])
    if len(nonpositive) > MAX_NONPOSITIVE:
        return failed_check(working_set, elimination, nonpositive, units)
    try:
        rest = correct_multiplier(working_set, elimination, nonpositive)
    except TooManyPairsError:
        order = np.argsort(elimination.diagonal, kind="stable")[: m // 4 + 1]
        return failed_check(working_set, elimination, order, unit_vectors(m, order[:MAX_DIRECTIONS]))
    lower, lacking = None, max(0.0, -float(rest.values.min(initial=0.0)))
    for e in (0.0, *(multiple * (lacking + EIGENVALUE_ERROR) for multiple in (1.0, 3.0))):
        if len(nonpositive) or e < lacking:
            continue
        price = inflation_cost(e * (1.0 + working_set.inflation), 1.0 if bounds is None else bounds.upper)
        if e and (bounds is None or attempted - price < bounds.lower + MIN_GAIN * bounds.gap):
            break
        if is_difference_positive(rest.diagonal + e * t * rest.penalties, rest.excess, rest.weak, rest.Z):
            lower = attempted - price
            break
    if lower is not None and (bounds is None or price <= MAX_PRICE * (bounds.upper - attempted)):
        return nothing._replace(lower=lower)
    violated = rest.vectors[:, : max(int(np.sum(rest.values < 0.0)), 1)]
    weight = violated**2 @ np.maximum(-rest.values[: violated.shape[1]], EIGENVALUE_ERROR)
    order = np.argsort(-weight, kind="stable")
    heavy = order[: int(np.sum(weight > MIN_DIRECTION_WEIGHT * weight.max(initial=0.0)))]
    entering = np.append(nonpositive, heavy[~np.isin(heavy, nonpositive)])
    directions = np.hstack([units, violated[:, :MAX_DIRECTIONS]])
    return failed_check(working_set, elimination, entering, directions, rest.Z)._replace(lower=lower)


class Remainder(NamedTuple):
    """What remains of S outside a working set, Diag(diagonal) - excess + ZZ', and its smallest eigenpairs."""

    diagonal: Array
    excess: scipy.sparse.csr_array
    Z: Array
    weak: Mask  # the rows that are not clearly dominant; Z is 0 on the others
    penalties: Array  # a^2 + c^2: eigenvalues are relative to t times these
    values: Array
    vectors: Array


def correct_multiplier(
    working_set: WorkingSetProblem, elimination: Elimination, nonpositive: IntegerArray
) -> Remainder:
    """Return what remains of S, its rounding subtracted, for the best of a few Z, each from the last one's directions.

    The diagonal of the nonpositive coordinates, which enter the working set in any case, is raised.
    """
    outside, t, m = working_set.outside, elimination.schur.t, len(working_set.complement)
    penalties = outside.a**2 + outside.c**2
    units = np.sqrt(t * np.maximum(penalties, 1e-12 * penalties.max(initial=0.0)))
    Z = negative_part_of_rows(elimination.schur)
    pairs = screen_pairs(
        elimination.corrected(Z).schur, np.arange(m), 1.0, max_pairs=MAX_PAIRS_PER_COORDINATE * max(m, 1)
    ).pairs

    def remainder(pairs: Pairs, Z: Array, weak: Mask | None) -> Remainder:
        corrected, excess = elimination.corrected(Z), excess_matrix(pairs, m)
        diagonal = corrected.diagonal - corrected.error
        diagonal[nonpositive] = np.maximum(diagonal[nonpositive], 0.1 * units[nonpositive] ** 2)
        if weak is None:
            rows = np.asarray(abs(excess).sum(axis=1)).ravel()
            weak = (diagonal < DOMINANCE * rows) | Z.any(axis=1)

        def product(x: Array) -> Array:
            scaled = x / units
            return np.asarray((diagonal * scaled - excess @ scaled + Z @ (Z.T @ scaled)) / units - x)

        if m <= MAX_DENSE_ROWS:
            S = np.diag(diagonal) - excess.toarray() + times(Z, Z.T)
            values, vectors = np.linalg.eigh(S / np.outer(units, units)) if m else (np.ones(1), np.zeros((0, 1)))
        elif not len(pairs.j):
            values, vectors = (
                np.array([float(np.min(diagonal / units**2))]),
                unit_vectors(m, np.argsort(diagonal / units**2)[:1]),
            )
        else:
            values, vectors = lanczos(product, m, N_EIGENPAIRS, "SA", EIGENVALUE_ERROR)
            values += 1.0  # of S, whose eigenvalues may be near 0: the accuracy is relative
        return Remainder(diagonal, excess, Z, weak, penalties, values, vectors / units[:, None])

    best = latest = remainder(pairs, Z, None)
    weak_rows = np.flatnonzero(best.weak)
    if best.values[0] >= 0.0 or not 0 < len(weak_rows) <= MAX_FACTORIZED_ROWS:
        return best
    fixed = pairs.take(np.flatnonzero(~(best.weak[pairs.j] & best.weak[pairs.k])))
    schur = elimination.schur._replace(
        problem=block_problem(working_set.problem, working_set.complement[weak_rows]),
        K=elimination.schur.K[:, weak_rows],
    )
    columns, among = scaled_columns(schur), slice(0, len(weak_rows))
    G = columns.products(among, among)
    order = weak_rows if columns.order is None else weak_rows[columns.order]
    c_order = outside.c[order]
    for _ in range(MAX_CORRECTIONS):
        negative = latest.values < LIFT / 2.0
        added = (
            latest.vectors[:, negative] * np.sqrt(OVERSHOOT * (LIFT - latest.values[negative])) * units[:, None] ** 2
        )
        Z = np.hstack([latest.Z, np.where(best.weak[:, None], added, 0.0)])
        rounding = 0.0
        if columns.rounding:
            rounding = single_precision_error(schur._replace(K=np.vstack([schur.K, Z[weak_rows].T])))
        scaled = (Z[order] / c_order[:, None]).astype(G.dtype)
        with np.errstate(over="ignore", invalid="ignore"):  # a pair that is no number counts as violated
            H = G + scaled @ scaled.T
        j, k = np.nonzero(np.triu(~(np.abs(H) <= schur.bound - rounding), 1))
        c_product = c_order[j] * c_order[k]
        changed = Pairs(order[j], order[k], H[j, k] * c_product, (schur.bound - rounding) * c_product)
        pairs = Pairs(*(np.concatenate(parts) for parts in zip(fixed, changed, strict=True)))
        previous, latest = latest, remainder(pairs, Z, best.weak)
        best = max(best, latest, key=lambda found: float(found.values[0]))
        if latest.values[0] >= 0.0 or latest.values[0] < MIN_PROGRESS * previous.values[0]:
            break
    return best


def negative_part_of_rows(schur: SchurComplement) -> Array:
    """Return Z with ZZ' half of the negative part of the weighted Gram matrix of the rows, if it is not small.

    It is not small compared with the box if many points have a common sign: they are one row of M and many of A.
    """
    rows, weights = schur.problem.rows.X.array(), schur.gram_weights
    m = rows.shape[1]
    if len(rows) > m:
        return np.zeros((m, 0))
    squares, Q = np.linalg.eigh(rows @ rows.T)
    roots = np.sqrt(np.maximum(squares, 0.0))
    some = roots > 1e-6 * roots.max(initial=0.0)
    root = roots[some, None] * Q[:, some].T
    values, vectors = np.linalg.eigh((root * weights) @ root.T)
    negative = values < 0.1 * values.min(initial=0.0)
    if np.linalg.norm(values[values < 0.0]) < MIN_NEGATIVE_PART * schur.t * np.sum(schur.problem.c**2):
        return np.zeros((m, 0))
    vectors = (Q[:, some] / roots[some]) @ (vectors[:, negative] * np.sqrt(-values[negative] / 2.0))
    return np.asarray(rows.T @ vectors)


def empty_check(problem: DirectionProblem) -> KktCheck:
    """Return a check without a bound and without coordinates."""
    return KktCheck(None, np.zeros(0, dtype=np.intp), np.zeros((len(problem.c), 0)), np.zeros((0, 0)))


def failed_check(
    working_set: WorkingSetProblem,
    elimination: Elimination,
    entering: IntegerArray,
    violated: Array,
    Z: Array | None = None,
) -> KktCheck:
    """Return a failed check: entering coordinates, and violated directions, extended optimally to the working set.

    The multiplier among the entering coordinates is corrected by ZZ'.
    """
    entering = working_set.problem.structure.restrict(working_set.complement).first_groups(
        entering, max(MAX_NONPOSITIVE, len(working_set.ws))
    )
    directions = np.zeros((len(working_set.problem.c), violated.shape[1]))
    directions[working_set.complement] = violated
    inner = elimination.schur.K @ violated
    directions[working_set.ws] = -scipy.linalg.solve_triangular(
        elimination.L, inner, lower=True, trans="T", check_finite=False
    )
    schur = elimination.schur if Z is None else elimination.corrected(Z).schur
    data, K, t = working_set.outside.rows.X.dense_columns(entering), schur.K[:, entering], schur.t
    pair_penalty = working_set.problem.structure.restrict(working_set.complement[entering]).pair_penalty(
        working_set.outside.c[entering]
    )
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
    some, tC = T[:, violated], T.copy()
    if working_set.off_diagonal.is_elementwise:
        with np.errstate(over="ignore", invalid="ignore"):  # single precision has a smaller range
            found = lasso_residuals(P, some, working_set.off_diagonal.bound(t)[:, violated])
        tC[:, violated] = np.where(np.isfinite(found), found, some)
    else:
        tC[:, violated] = working_set.off_diagonal.restrict(violated).best_multiplier(P, some, t)
    return tC


def unit_vectors(size: int, positions: IntegerArray) -> Array:
    """Return the unit vectors of these coordinates as columns."""
    vectors = np.zeros((size, len(positions)))
    vectors[positions, np.arange(len(positions))] = 1.0
    return vectors


def lasso_residuals(P: Array, T: Array, half_width: Array) -> npt.NDArray[np.float32]:
    """Return nearly T - PZ at the minimisers of z'Pz/2 - z'T_j + sum_k half_width_kj |z_k|, P positive definite.

    They are computed in single precision, because they only choose a multiplier.
    """
    P, (w, m) = P.astype(np.float32), T.shape
    Z, residual, half_widths = (
        np.zeros((m, w), dtype=np.float32),
        np.array(T.T, dtype=np.float32, order="C"),
        np.array(half_width.T, dtype=np.float32, order="C"),
    )
    unsolved = np.arange(m)
    for _ in range(LASSO_ROUNDS):
        violated = (np.abs(residual[unsolved]) > (1.0 + VIOLATION_TOLERANCE) * half_widths[unsolved]) & (
            Z[unsolved] == 0.0
        )
        unsolved = unsolved[violated.any(axis=1)]
        counts = np.count_nonzero(Z[unsolved], axis=1)
        unsolved = unsolved[np.argsort(counts, kind="stable")]
        counts.sort()
        start = 0
        while start < len(unsolved):
            check_deadline()
            size = min(w, int(counts[min(start + LASSO_BATCH, len(unsolved)) - 1]) + ENTRIES_PER_ROUND)
            batch = unsolved[start : start + min(LASSO_BATCH, max(1, MAX_GRAM_ENTRIES // size**2))]
            start += len(batch)
            positions = most_violated_entries(residual[batch], Z[batch], half_widths[batch], size)
            before, after = coordinate_descent(P, positions, residual[batch], Z[batch], half_widths[batch])
            ends = np.arange(len(batch) + 1) * size
            change = scipy.sparse.csr_array(((after - before).ravel(), positions.ravel(), ends), shape=(len(batch), w))
            change.eliminate_zeros()
            residual[batch] -= change @ P
            rows = Z[batch]
            np.put_along_axis(rows, positions, after, axis=1)
            Z[batch] = rows
    return residual.T


def most_violated_entries(residual: Array, Z: Array, half_widths: Array, size: int) -> IntegerArray:
    """Return `size` positions for each lasso: all nonzero entries, then those with the largest violation."""
    score = np.abs(residual) - half_widths
    score[Z != 0.0] = np.inf
    return np.argpartition(-score, size - 1, axis=1)[:, :size]


def coordinate_descent(
    P: Array, positions: IntegerArray, residual: Array, Z: Array, half_widths: Array
) -> tuple[Array, Array]:
    """Return the entries at these positions before and after coordinate descent on them, for all lassos at once."""
    blocks, diagonal = P[positions[:, :, None], positions[:, None, :]], np.diag(P)[positions]
    r, before, b = (np.take_along_axis(rows, positions, axis=1) for rows in (residual, Z, half_widths))
    z = before.copy()
    for _ in range(LASSO_SWEEPS):
        change = 0.0
        for k in range(positions.shape[1]):
            gradient = r[:, k] + diagonal[:, k] * z[:, k]
            step = np.sign(gradient) * np.maximum(np.abs(gradient) - b[:, k], 0.0) / diagonal[:, k] - z[:, k]
            z[:, k] += step
            r -= step[:, None] * blocks[:, k]
            change = max(change, float(np.abs(step).max(initial=0.0)))
        if change <= SWEEP_TOLERANCE * float(np.abs(z).max(initial=0.0)):
            break
    return before, z
