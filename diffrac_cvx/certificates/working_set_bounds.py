"""Lower bounds on (15) from a sparse factor: a dual on a working set of coordinates, and KKT checks of the others.

Outside the working set, t C is the projection of G + ZZ', G = M - t A + K'K, for any Z. This leaves S = ZZ' minus the
part of G + ZZ' beyond the dual set, and minus ZZ' on the diagonal.  Z = 0 leaves the smallest entries, but often a few
negative directions spread over many coordinates.  Taking these directions as Z makes S positive.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import scipy.sparse

from diffrac_cvx.certificates.block_problem import BlockProblem, block_problem, scatter_block
from diffrac_cvx.certificates.bound_search import best_bound, best_combination, improved_multipliers, row_weights
from diffrac_cvx.certificates.proof import (
    LANCZOS_RTOL,
    MAX_DENSE_SIZE,
    TRIVIAL,
    Bound,
    Multipliers,
    Remainder,
    best_of,
    bound_at,
    eliminate,
    project_dual,
    prove,
)
from diffrac_cvx.certificates.screening import TooManyPairsError, Verdict, screen_outside
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Sparse, dense, diagonal
from diffrac_cvx.points.linear_algebra import eigh, lanczos, solve_lower, symmetric, times
from diffrac_cvx.points.rows import Indices, Mask
from diffrac_cvx.problem.direction_problem import DirectionProblem, PrimalPoint, without_l1

INACTIVE_ENTRY = 1e-4  # relative to the diagonal of V, below which an entry may be 0
MAX_REFINED_SIZE = 500  # size of the working set up to which it grows for a given point
SUFFICIENT_GAP = 0.0125  # relative gap of a given point, below which its working set stops growing
MAX_DIRECTIONS = 12  # largest number in a correction, and returned if the bound fails
MIN_DIRECTION_WEIGHT = 0.02  # weight in violated directions, relative to the largest, at which a coordinate enters
MAX_SUM_DIRECTIONS = 40  # directions of the negative part of G due to sums of points
SUM_SHARE = 0.85  # fraction of this part that the first correction compensates
LIFT = 0.1  # eigenvalue to which a correction raises negative directions, relative to the mean of t (a^2 + c^2)


def best_dual(
    problem: DirectionProblem,
    restricted: DirectionProblem,
    point: PrimalPoint,
    candidates: Callable[[Array], Iterable[Array]],
) -> tuple[float, Array, Array]:
    """Return the largest bound on a working set, up to rounding, with its weights u and multiplier C.

    The candidates for C come from M = X' Diag(u) X / n.  A row that is zero only on the working set keeps its weight,
    because it belongs to the problem on all coordinates.
    """
    u, inverse_mean = row_weights(problem, problem.inverse_sqrt(point.q))
    rows, B = restricted.X.array() * (u / len(u))[:, None] ** 0.5, restricted.B
    found = [(*best_combination(rows, C, B, by_rows=True), C) for C in candidates(restricted.X.weighted_gram(u))]
    t, weight, _, C = min(found, key=lambda one: one[0])
    return 1.0 - t * inverse_mean, u, weight * C


def bound_from_working_set(problem: DirectionProblem, point: PrimalPoint, C: Sparse | None = None) -> Bound:
    """Return the best lower bound from a sparse factor by working sets; at least 0.

    The working set starts with the coordinates where the factor is not negligible or the multiplier not zero, and
    grows by the coordinates that failed KKT checks return.
    """
    rows = scipy.sparse.csr_array(point.U)
    in_ws = is_active(problem, rows)
    if C is not None:
        in_ws |= abs(scipy.sparse.csr_array(C)).sum(axis=1) > 0.0
    ws = np.flatnonzero(problem.pair_penalty.complete_groups(in_ws))
    C_ws = None if C is None else dense(scipy.sparse.csr_array(C)[ws][:, ws])
    best, refine = bound_at_equal_weights(problem), C is None
    for _ in range(6):  # expansions
        ws_bound, u, C_dual = dual_on_working_set(problem, point, ws, dense(rows[ws]), C_ws, refine=refine)
        gap = max(SUFFICIENT_GAP / 2.0 * point.value, 1.25 * (point.value - ws_bound))
        verdict, split = Verdict(), block_problem(problem, ws)
        for target_gap in (gap, (gap * max(point.value - best.lower, 0.0)) ** 0.5):  # the second: the geometric mean
            if target_gap < point.value - best.lower:
                found = check_kkt(split, u, C_dual, (1.0 - point.value + target_gap) / problem.mean_inverse(u))
                best = best_of(best, found.bound or TRIVIAL)
                verdict = verdict if len(verdict.violated) else found
        is_near = best.lower >= (1.0 - SUFFICIENT_GAP) * point.value
        if is_near or not 0 < len(verdict.violated) <= MAX_REFINED_SIZE - len(ws):
            break
        (ws, C_ws, _), refine = expand_working_set(problem, ws, u, C_dual, verdict.violated, verdict), True
    return best


def is_active(problem: DirectionProblem, U: Sparse) -> Mask:
    """Return the mask of coordinates that a working set needs: without an l1 weight, or not negligible in UU'."""
    entries = diagonal(U)
    return np.asarray((entries > INACTIVE_ENTRY * entries.max()) | (problem.c == 0.0))


def dual_on_working_set(
    problem: DirectionProblem, point: PrimalPoint, ws: Indices, U: Array, C_given: Array | None, *, refine: bool
) -> tuple[float, Array, Array]:
    """Return the best dual on a working set, from the given multiplier, its projection, or one fitted from it or V."""
    restricted = problem.restrict(ws)

    def candidates(M: Array) -> Iterator[Array]:
        C = project_dual(restricted, M - restricted.A if C_given is None else C_given)
        if C_given is None:
            C = restricted.pair_penalty.subgradient(times(U, U.T), INACTIVE_ENTRY, C)
        return improved_multipliers(restricted, M, U, C, 60 if refine else 0)

    return best_dual(problem, restricted, point, candidates)


def expand_working_set(
    problem: DirectionProblem, ws: Indices, u: Array, C_ws: Array, new: Indices, verdict: Verdict
) -> tuple[Indices, Array, Indices]:
    """Return the expanded working set, increasing, its multiplier, and the permutation from (old, new) to that order.

    The new multipliers are those of the check that returned the coordinates, or minimise S at the weights u.
    """
    both, w = np.concatenate([ws, new]), len(ws)
    order, expanded = np.argsort(both, kind="stable"), problem.restrict(both)
    C = expanded.pair_penalty.project_safe(expanded.X.weighted_gram(u) - expanded.summed_A)
    C[:w, :w] = C_ws
    if verdict.C is not None:
        _, new_positions, named = np.intersect1d(new, verdict.violated, return_indices=True)
        rows, columns = np.append(np.arange(w), w + new_positions), w + new_positions
        C[np.ix_(rows, columns)] = verdict.C[np.ix_(np.append(np.arange(w), w + named), named)]
        C[columns, :w] = C[:w, columns].T
    return both[order], C[np.ix_(order, order)], order


def bound_at_equal_weights(problem: DirectionProblem) -> Bound:
    """Return the lower bound without the l1 term at equal weights, at least 0: above 0 with a ridge on all columns.

    A row of R that sums m points has u = 1/m, so that M <= A.
    """
    problem = without_l1(problem) if problem.has_l1 else problem
    counts = np.broadcast_to(problem.sums.counts, len(problem.X))
    return best_bound(problem, [row_weights(problem, 1.0 / counts)], lambda _: [None])


def check_kkt(working_set: BlockProblem, u: Array, C: Array, t: float) -> Verdict:
    """Try to certify the bound 1 - t mean(1/u) from a working set E and C on it.

    If that fails, return the violated coordinates.  On the working set M <= t (A + C + Diag(c)^2) should hold,
    otherwise no coordinates are found.

    1. Eliminate the working set.  If the diagonal of S is not positive, its coordinates enter.
    2. Prove that S is positive, with a correction Z of the multiplier; the first Z is the negative part of G.
    3.  If that fails, add to Z the directions in which S is smallest and try again, as long as the same progress once
      more would make S positive.
    """
    problem, outside = working_set.problem, working_set.penalized
    remainder = eliminate(working_set, u, t, C, lambda P, T: working_set.off_diagonal.best_multiplier(P, T, t))
    if remainder is None:
        return Verdict()
    m, diagonal, splits = len(outside), remainder.diagonal - remainder.errors, problem.pair_penalty.splits_into_blocks
    nonpositive = np.flatnonzero(~(diagonal > 0.0)) if splits else np.zeros(0, dtype=np.intp)  # NaN too
    if len(nonpositive) > MAX_DIRECTIONS:
        return failed_check(remainder, nonpositive[np.argsort(diagonal[nonpositive], kind="stable")])
    base, Z = remainder, correction_for_sums(remainder)
    corrected = base.with_correction(Z)
    pairs, least, values, violated = None, -np.inf, np.zeros(0), np.zeros((m, 0))
    while True:
        if splits:
            try:
                pairs = screen_outside(corrected)
            except TooManyPairsError:
                if len(values):
                    break
                return failed_check(remainder, np.argsort(diagonal, kind="stable")[: m // 4 + 1])
            # The bound fails if some diagonal entries are not positive; directions on the others are found without
            # them.
            pairs = pairs.take(np.flatnonzero(~np.isin(pairs.j, nonpositive) & ~np.isin(pairs.k, nonpositive)))
        found = prove(corrected, pairs, max_directions=MAX_DIRECTIONS)
        if not found:
            proof = Multipliers(
                u,
                t,
                scatter_block(working_set.project_inner(C), working_set.free, len(problem.c)),
                working_set.free,
                Z=Z,
            )
            return Verdict(Bound(bound_at(t, problem.mean_inverse(u)), proof))
        previous, least = least, min(float(eigenvalues[0]) for _, eigenvalues, _ in found)
        if len(values) and not least > previous:
            break
        remainder, values = corrected, np.concatenate([eigenvalues for _, eigenvalues, _ in found])
        violated, start = np.zeros((m, len(values))), 0
        for members, eigenvalues, directions in found:
            violated[members, start : start + len(eigenvalues)] = directions
            start += len(eigenvalues)
        if len(nonpositive) or not -np.inf < least < 0.0 or 2.0 * least < previous:
            break
        lift = LIFT * t * float(np.mean(working_set.a**2 + working_set.c**2))
        low = values < lift / 2.0
        Z = np.hstack([Z, violated[:, low] * np.sqrt(lift - values[low])])
        corrected = base.with_correction(Z)
    least_first = np.argsort(values, kind="stable")[: max(int(np.sum(values < 0.0)), 1)]
    violated, deficits = violated[:, least_first], np.clip(-values[least_first], 1e-100, 1e100)
    weight = problem.pair_penalty.restrict(outside).group_sums(violated**2 @ deficits)
    order = np.argsort(-weight, kind="stable")
    heavy = order[: int(np.sum(weight > MIN_DIRECTION_WEIGHT * weight.max(initial=0.0)))]
    return failed_check(remainder, heavy, violated[:, :MAX_DIRECTIONS])


def correction_for_sums(remainder: Remainder) -> Array:
    """Return Z with ZZ' equal to most of the negative part of G; each sum of m points adds up to m - 1 columns.

    A sum of m points is one row of M and m rows of A, so that G is negative in m - 1 directions, and large there
    compared with the box.
    """
    problem = remainder.problem.problem
    m, n_directions = len(remainder.problem.c), min(len(problem.Y) - len(problem.X), MAX_SUM_DIRECTIONS)
    if n_directions <= 0:
        return np.zeros((m, 0))
    if m <= MAX_DENSE_SIZE:
        values, vectors = eigh(symmetric(remainder.gram(slice(None), slice(None))))
        values, vectors = values[:n_directions], vectors[:, :n_directions]
    else:
        rows, weights, K = remainder.problem.rows.array(), remainder.gram_weights, remainder.K
        product = lambda x: rows.T @ (weights * (rows @ x)) + K.T @ (K @ x)  # noqa: E731
        values, vectors = lanczos(product, m, n_directions, "SA", LANCZOS_RTOL)
    return np.asarray(vectors * np.sqrt(SUM_SHARE * np.maximum(-values, 0.0)))


def failed_check(remainder: Remainder, entering: Indices, violated: Array | None = None) -> Verdict:
    """Return entering coordinates and violated directions, unit vectors by default, extended to the working set."""
    working_set, problem, outside = remainder.problem, remainder.problem.problem, remainder.problem.penalized
    if violated is None:
        some = entering[:MAX_DIRECTIONS]
        violated = np.zeros((len(outside), len(some)))
        violated[some, np.arange(len(some))] = 1.0
    limit = max(MAX_DIRECTIONS, len(working_set.free))
    entering = problem.pair_penalty.restrict(outside).first_groups(entering, limit)
    directions = np.zeros((len(problem.c), violated.shape[1]))
    directions[outside] = violated
    # Extend to the working set by the part that minimises the quadratic form of S.
    W = working_set.inner.W if remainder.is_whitened else np.eye(len(working_set.free))[:, working_set.used]
    inner = remainder.K[: len(remainder.L)] @ violated
    directions[working_set.free] = -W @ solve_lower(remainder.L, inner, transposed=True)
    C = problem.pair_penalty.restrict(outside[entering]).project_safe(remainder.gram(entering, entering) / remainder.t)
    C = np.vstack([remainder.tC[:, entering] / remainder.t, C])
    return Verdict(None, outside[entering], directions=directions, C=C)
