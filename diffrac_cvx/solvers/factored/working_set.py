"""Working-set solver for sparse problems, mainly with many more columns than rows.

It solves the problem on a few features and then adds those that violate the certificate: first features that would
enter alone, then, after screening all pairs, features and directions in which S is negative.  While the objective still
decreases, inactive features are dropped again.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import scipy.sparse

from diffrac_cvx.certificates.block_problem import BlockProblem, IntegerArray, block_problem
from diffrac_cvx.certificates.direction_bounds import DualPoint, certify
from diffrac_cvx.certificates.search import alternate_projection, refine_dual
from diffrac_cvx.certificates.working_set import (
    KktCheck,
    WorkingSetDual,
    best_dual,
    bound_at_equal_weights,
    check_kkt,
    empty_check,
    expand_working_set,
)
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import dense, diagonal
from diffrac_cvx.points.linear_algebra import principal_columns, row_products, symmetric, times
from diffrac_cvx.problem.direction_problem import (
    DirectionProblem,
    PrimalPoint,
    best_single_feature,
    univariate_gains,
    without_l1,
)
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.solvers.factored import augmented_lagrangian
from diffrac_cvx.solvers.factored.augmented_lagrangian import (
    one_block,
    rank_reducing_rotation,
    run_multiplier_method,
    threshold_inactive,
)
from diffrac_cvx.solvers.factored.parametrization import FactorParametrization
from diffrac_cvx.solvers.factored.quasi_newton import Memory
from diffrac_cvx.solvers.stopping import Iterate, Steps, Stopping, WarmStart

MIN_FEATURES = 200  # coordinates below which the problem on all of them takes as long
MAX_GROUP_FRACTION = 0.5  # of all coordinates, in selected feature groups, above which V is one block
INITIAL_SIZE = 40  # features of the first working set
SPARE_RANK = 8  # extra columns of U, so that the rank can grow
COLUMN_RTOL = 1e-5  # squared norm of a column of U, relative to the largest, below which growth drops it
FIRST_STEPS = 40  # before the first certificate; afterwards, half as many as done so far
TARGET = 0.8  # gap of the working-set problem, relative to the gap to be certified next
GAP_REDUCTION = 3.0  # factor of the next, smaller gap after a success
ROUGH_POINTS = 4  # maximum number of certified points of the problem without an l1 penalty
MIN_NEW, NEW_FRACTION = (
    20,
    0.5,
)  # features added at once: the larger of this number and this fraction of the working set


@dataclass
class WorkingSet:
    """Working set: increasing feature indices, the factor on them, and its multiplier."""

    ws: IntegerArray
    U: Array
    C: Array


class WorkingSetSolution(NamedTuple):
    """Solution on the working set: factor, multiplier, primal point, dual point, gap, and number of steps."""

    U: Array
    C: Array
    point: PrimalPoint
    dual: WorkingSetDual
    gap: float
    steps: int


def is_working_set_applicable(problem: DirectionProblem, warm_start: WarmStart) -> bool:
    """Return whether the working-set strategy applies; it requires a ridge, without which V is often diagonal."""
    n, D = problem.X.shape
    has_ridge, free = bool(np.any(problem.a[problem.c > 0.0])), int(np.sum(problem.c == 0.0))
    fits = problem.pair_penalty.is_even and free <= 8 and D >= MIN_FEATURES and n * D <= 1e8
    return has_ridge and fits and (warm_start.U is None or 4 * int(np.sum(diagonal(warm_start.U) > 0.0)) <= D)


def working_set_iterates(problem: DirectionProblem, warm_start: WarmStart, stopping: Stopping) -> Steps:
    """Yield iterates with certified bounds for all features, until progress stops.

    With feature groups, also end if most features are needed.
    """
    yield 0.0
    max_iter = stopping.max_iter
    problem = problem.as_dense()
    size, splits = len(problem.c), problem.pair_penalty.splits_into_blocks
    state = initial_working_set(problem) if warm_start.U is None else warm_working_set(problem, warm_start)
    done, bounds, goal, target, fraction = 0, Bracket(0.0, 1.0), 1.0, 0.03, TARGET
    while done < max_iter:
        steps = FIRST_STEPS if done == 0 and warm_start.U is None else max_iter - done
        found = yield from solve_working_set(problem, state, target, steps)
        if done == 0:
            start, goal = best_single_feature(problem), max(stopping.tol, 0.3 * found.point.value)
            bounds = Bracket(bound_without_l1(problem), start.value)
            yield Iterate(start.U, 0, DualPoint(), start, bounds)
        done += found.steps
        state = WorkingSet(state.ws, found.U, found.C)
        point, dual = expand_point(problem, state.ws, found.point), expand_dual(state.ws, found.dual, size)
        bounds = Bracket(bounds.lower, min(bounds.upper, point.value))
        yield Iterate(point.U, done, dual, point, bounds)
        new = single_feature_violations(problem, state.ws, dense(found.point.U))
        max_new = max(MIN_NEW, int(NEW_FRACTION * len(state.ws)))
        check, before, checked = empty_check(problem), goal, 2 * len(new) < max_new
        if checked:
            yield 0.0
            core = block_problem(problem.with_inflated_penalty(found.dual.inflation), state.ws)
            tol = max(stopping.tol, stopping.rtol * bounds.upper)
            check, goal = tighten_bound(core, found, bounds, goal, tol)
            bounds = Bracket(max(bounds.lower, check.lower or 0.0), bounds.upper)
            yield Iterate(point.U, done, dual, point, bounds)
            new = np.concatenate([new, check.entering[~np.isin(check.entering, new)]])
        # If nothing is violated, the working-set solution has to be more accurate, up to a thousandth of the gap.
        fraction = TARGET if len(new) or goal < before else fraction / 3.0
        is_small = splits or len(state.ws) + len(new) <= MAX_GROUP_FRACTION * size
        if fraction < 1e-3 or not is_small:
            return
        target = max(target / 3.0, fraction * goal)
        if not checked:
            state = drop_inactive_features(problem, state)
        state = grow_working_set(problem, state, problem.pair_penalty.first_groups(new, max_new), found.dual.u, check)


def select_initial_features(problem: DirectionProblem, size: int) -> IntegerArray:
    """Return the coordinates of largest univariate gain g_j^2 / (A_jj + c_j^2), and all without an l1 weight."""
    free = np.flatnonzero(problem.c == 0.0)
    order = np.argsort(-problem.pair_penalty.group_sums(univariate_gains(problem)), kind="stable")
    others = problem.pair_penalty.first_groups(order[problem.c[order] > 0.0], max(size - len(free), 0))
    return np.sort(np.concatenate([free, others]))


def initial_working_set(problem: DirectionProblem) -> WorkingSet:
    """Return the features of largest univariate gain, and all without an l1 weight, with a random factor."""
    ws = select_initial_features(problem, INITIAL_SIZE + int(np.sum(problem.c == 0.0)))
    w, r = len(ws), 2 * SPARE_RANK
    return WorkingSet(ws, np.random.default_rng(0).standard_normal((w, r)) / (w * r) ** 0.5, np.zeros((w, w)))


def warm_working_set(problem: DirectionProblem, warm_start: WarmStart) -> WorkingSet:
    """Return the working set of a warm start with its factor and multiplier; the initial one if it has no features."""
    start_factor = scipy.sparse.csr_array(warm_start.U if warm_start.U is not None else np.zeros((len(problem.c), 1)))
    squared_norms = np.asarray(start_factor.multiply(start_factor).sum(axis=1)).ravel()
    ws = np.flatnonzero(
        problem.pair_penalty.complete_groups((squared_norms > 1e-4 * squared_norms.max()) | (problem.c == 0.0))
    )
    if not problem.c[ws].any():
        return initial_working_set(problem)
    U = dense(start_factor[ws])
    C = np.zeros((len(ws), len(ws)))
    if warm_start.C is not None:
        C = dense(scipy.sparse.csr_array(warm_start.C)[ws][:, ws])
    state = WorkingSet(ws, U, problem.restrict(ws).pair_penalty.project_safe(symmetric(C)))
    return grow_working_set(problem, state, np.zeros(0, dtype=np.intp), np.ones(len(problem.X)), empty_check(problem))


def bound_without_l1(problem: DirectionProblem) -> float:
    """Return a lower bound in O(n^2 D): the problem with only the diagonal of the l1 term, |V|_1 >= tr V, as ridge."""
    ridge = without_l1(problem)
    lower, r = max(bound_at_equal_weights(ridge), 0.0), ridge.X.shape[1]
    start = np.random.default_rng(0).standard_normal((r, min(r, SPARE_RANK))) / max(r, 1)
    iterates = augmented_lagrangian.one_block_iterates(ridge, ROUGH_POINTS * 100, start)
    for iterate in islice((found for found in iterates if isinstance(found, Iterate)), ROUGH_POINTS):
        found = certify(ridge, iterate.point or ridge.rescale(iterate.U))
        lower = max(lower, found.lower)
        if found.gap <= 0.1 * found.upper:
            break
    return lower


def solve_working_set(
    problem: DirectionProblem, state: WorkingSet, target: float, max_iter: int
) -> Generator[float, None, WorkingSetSolution]:
    """Return the solution on the working set to a gap of target, or after the maximum number of steps."""
    small = problem.restrict(state.ws)
    lagrangian, memory = one_block(FactorParametrization(small), state.C, capped=False), Memory()
    start = dense(small.rescale(state.U).U)
    at, done = lagrangian.point(start if start.any() else state.U), 0
    while True:
        at, n_steps = run_multiplier_method(lagrangian, at, min(max(FIRST_STEPS, done // 2), max_iter - done), memory)
        done += max(n_steps, 1)
        C = next(iter(lagrangian.multiplier(at.U)), np.zeros((len(small.c), len(small.c))))  # none without an l1 weight
        found = certify_solution(problem, small, at.U, C, done)
        if found.gap <= target or done >= min(max_iter, 800):
            return found
        yield 0.0
        at = lagrangian.update(at)
        Q = rank_reducing_rotation(at.U, COLUMN_RTOL)
        if Q is not None:
            memory.rotate(Q)
            at = lagrangian.point(at.U @ Q)


def certify_solution(
    problem: DirectionProblem, small: DirectionProblem, U: Array, C: Array, steps: int
) -> WorkingSetSolution:
    """Return a factor and its multiplier with the better of the scaled and thresholded points, and the best dual."""
    point = small.rescale(U)
    thresholded = threshold_inactive(small, dense(point.U), C)

    def candidates(M: Array) -> Iterator[Array]:
        yield alternate_projection(small, M, C)
        if not problem.pair_penalty.splits_into_blocks:  # the multipliers of blocks settle slowly
            yield refine_dual(small, M, times(dense(point.U), dense(point.U).T), C, 30)

    dual = best_dual(problem, small, point, candidates)
    best = thresholded if thresholded.value < point.value else point
    return WorkingSetSolution(U, C, best, dual, best.value - dual.lower, steps)


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def single_feature_violations(problem: DirectionProblem, ws: IntegerArray, U: Array) -> IntegerArray:
    """Return the features outside the working set that would enter alone, the most violated first; O(n D r).

    A feature j stays outside only if |G_j U z| <= c_j sum_k c_k |(U z)_k| for all z; leading directions z are tried.
    The same holds for a feature group, with norms instead of absolute values.
    """
    XU, YU = problem.X.array()[:, ws] @ U, problem.Y.array()[:, ws] @ U
    roots = np.sqrt(row_products(XU, XU))
    u = 1.0 / np.maximum(roots, 1e-6 * max(float(roots.mean()), 1e-300))
    Z = np.linalg.svd(U, full_matrices=False)[2].T
    limit = problem.pair_penalty.restrict(ws).direction_norm(U @ Z)
    active = limit > 1e-3 * limit.max(initial=0.0)
    Z = Z[:, active]
    gradient = np.abs(problem.X.rmatvec((u[:, None] * XU) @ Z) - problem.Y.rmatvec(YU @ Z)) / limit[active]
    excess = problem.pair_penalty.group_norms(gradient).max(axis=1, initial=0.0) / np.maximum(problem.c, 1e-300)
    excess[ws] = 0.0
    order = np.argsort(-excess, kind="stable")
    return order[: int(np.sum(excess > 1.001))]


def tighten_bound(
    core: BlockProblem, found: WorkingSetSolution, bounds: Bracket, goal: float, tol: float
) -> tuple[KktCheck, float]:
    """Try to certify a gap for all features from the working set, then smaller ones down to the tolerance.

    If the working-set solution is not accurate enough, attempt the gap that it admits.  Return the last KKT check with
    the best bound, and the gap to be certified next.
    """
    check, lower = empty_check(core.problem), bounds.lower
    while True:
        goal = min(goal, max(tol, (bounds.upper - lower) / GAP_REDUCTION))
        tried = max(goal, found.gap / TARGET)
        worth = 0.6 * (bounds.upper - lower)
        if tried > worth and tried > goal:
            return check._replace(lower=lower), goal
        check = check_kkt(core, *found.dual.at_bound(bounds.upper - 0.99 * tried))
        if check.lower is None:
            return check._replace(lower=lower), goal
        lower = max(lower, check.lower)
        if tried <= tol:
            return check, goal
        goal = max(tol, tried / GAP_REDUCTION)


def drop_inactive_features(problem: DirectionProblem, state: WorkingSet) -> WorkingSet:
    """Return the state without inactive features; called only early, because their multipliers matter later."""
    squared_norms = problem.pair_penalty.restrict(state.ws).group_sums(np.sum(state.U**2, axis=1))
    keep = (squared_norms > 1e-7 * squared_norms.max(initial=0.0)) | (problem.c[state.ws] == 0.0)
    return WorkingSet(state.ws[keep], state.U[keep], state.C[np.ix_(keep, keep)])


def grow_working_set(
    problem: DirectionProblem, state: WorkingSet, new: IntegerArray, u: Array, check: KktCheck
) -> WorkingSet:
    """Return the state with new features, at small entries of V."""
    ws, C, order = expand_working_set(problem, state.ws, state.C, new, u, check)
    w, n_old = len(ws), len(state.ws)
    U = principal_columns(state.U, rtol=COLUMN_RTOL)
    size = float(np.linalg.norm(U))
    directions = check.directions[np.append(state.ws, new)]
    directions *= 0.02 * size / np.maximum(np.linalg.norm(directions, axis=0), 1e-300)
    r = U.shape[1] + directions.shape[1] + SPARE_RANK
    wide = np.random.default_rng(0).standard_normal((w, r)) * (3e-3 * size / (w * r) ** 0.5)
    wide[:n_old, : U.shape[1]] += U
    wide[:, U.shape[1] : U.shape[1] + directions.shape[1]] += directions
    return WorkingSet(ws, wide[order], C)


def expand_point(problem: DirectionProblem, ws: IntegerArray, point: PrimalPoint) -> PrimalPoint:
    """Return a point on the working set as a point on all features, with a sparse factor."""
    U = dense(point.U)
    some = U.any(axis=1)
    rows, r = ws[some], U.shape[1]
    triples = (U[some].ravel(), (np.repeat(rows, r), np.tile(np.arange(r), len(rows))))
    return PrimalPoint(scipy.sparse.csc_array(triples, shape=(len(problem.c), r)), point.value, point.q)


def expand_dual(ws: IntegerArray, dual: WorkingSetDual, size: int) -> DualPoint:
    """Return the multiplier of a working set as a sparse one on all coordinates, 0 outside."""
    w = len(ws)
    place = (np.repeat(ws, w), np.tile(ws, w))
    return DualPoint(u=dual.u, C=scipy.sparse.csr_array((dual.C.ravel(), place), shape=(size, size)))
