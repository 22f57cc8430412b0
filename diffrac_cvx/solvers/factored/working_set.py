"""Working-set solver for sparse problems, mainly with many more columns than rows.

It solves the problem on a few features and then adds those that violate the certificate: first features that would
enter alone, then, after screening all pairs, features and directions in which S is negative.  While the objective still
decreases, inactive features are dropped again.
"""

from functools import partial

import numpy as np
import scipy.sparse

from diffrac_cvx.certificates import direction_bounds
from diffrac_cvx.certificates.block_problem import block_problem, scatter, scatter_block
from diffrac_cvx.certificates.bound_search import improved_multipliers
from diffrac_cvx.certificates.direction_bounds import DualPoint
from diffrac_cvx.certificates.proof import best_of
from diffrac_cvx.certificates.screening import Verdict
from diffrac_cvx.certificates.working_set_bounds import (
    best_dual,
    bound_at_equal_weights,
    check_kkt,
    expand_working_set,
    is_active,
)
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import dense, diagonal
from diffrac_cvx.points.linear_algebra import principal_columns, row_products, symmetric
from diffrac_cvx.points.rows import Indices
from diffrac_cvx.problem.direction_problem import (
    DirectionProblem,
    best_single_feature,
    univariate_gains,
)
from diffrac_cvx.solvers.driver import Iterate, Stopping, WarmStart
from diffrac_cvx.solvers.factored.augmented_lagrangian import (
    SPARE_RANK,
    Memory,
    OneBlockLagrangian,
    append_violated_directions,
    drop_negligible_columns,
    run_multiplier_method,
    threshold_inactive,
)
from diffrac_cvx.solvers.race import Pause, Steps

INITIAL_SIZE = 40  # features of the first working set
COLUMN_RTOL = 1e-5  # squared norm of a column of U, relative to the largest, below which it is dropped
STALLED = 0.9  # ratio of successive gaps above which the rank grows
REFINEMENTS, MANY_REFINEMENTS = 10, 30  # steps that fit a multiplier, with one eigendecomposition each
FIRST_STEPS = 40  # steps before the first certificate; later, half as many as done so far
TARGET = 0.8  # gap of the working-set problem, relative to the gap to be certified next
GAP_REDUCTION, CAUTIOUS_REDUCTION = 3.0, 2.0  # ratio of successive target gaps; the second on a large working set
LARGE_WORKING_SET = 500  # size above which a larger working set is expensive


def is_working_set_applicable(problem: DirectionProblem, warm_start: WarmStart) -> bool:
    """Return whether the working-set strategy applies; it requires a ridge, without which V is often diagonal."""
    n, D = problem.X.shape
    has_ridge, free = bool(np.any(problem.a[problem.c > 0.0])), int(np.sum(problem.c == 0.0))
    fits = problem.pair_penalty.is_even and free <= 8 and D >= direction_bounds.MIN_WIDE_SIZE and n * D <= 1e8
    return has_ridge and fits and (warm_start.U is None or 4 * int(np.sum(diagonal(warm_start.U) > 0.0)) <= D)


def working_set_iterates(problem: DirectionProblem, warm_start: WarmStart, stopping: Stopping) -> Steps:
    """Yield iterates with certified bounds for all features, until progress stops."""
    yield Pause()
    problem = problem.as_dense()
    penalty, size, max_iter = problem.pair_penalty, len(problem.c), stopping.max_iter
    # Steps that fit the multiplier: those of groups converge slowly, those of entries only with some tables.
    refinements = 0 if penalty.splits_into_blocks else MANY_REFINEMENTS
    start = best_single_feature(problem)
    best, upper = bound_at_equal_weights(problem), start.value
    yield Iterate(start.U, 0, DualPoint(), start, best)
    ws, U, C = initial_working_set(problem, warm_start)
    done, pace, target, goal, accuracy = 0, FIRST_STEPS, 0.03, np.inf, TARGET
    while done < max_iter:
        # 1. Solve the problem on the working set to a gap of target.
        small = problem.restrict(ws)
        lagrangian, memory = OneBlockLagrangian(small, C, capped=False), Memory()
        start_U = dense(small.rescale(U).U)
        at, steps, previous = lagrangian.point(start_U if start_U.any() else U), 0, np.inf
        limit = min(FIRST_STEPS if done == 0 and warm_start.U is None else 800, max_iter - done)
        while True:
            at, n_steps = run_multiplier_method(lagrangian, at, min(max(pace, steps // 2), limit - steps), memory)
            steps += max(n_steps, 1)
            C = next(iter(lagrangian.multiplier(at.U)), np.zeros((len(ws), len(ws))))  # none without an l1 weight
            point = small.rescale(at.U)
            better = partial(last_multiplier, small, dense(point.U), C, refinements)
            lower, u, C_dual = best_dual(problem, small, point, better)
            point = threshold_inactive(small, point, C)
            gap = point.value - lower
            if gap <= target or steps >= limit:
                break
            yield Pause()
            at = lagrangian.update(at)
            at = drop_negligible_columns(lagrangian, at, memory, COLUMN_RTOL)
            if gap > STALLED * previous:  # the rank is too small, or the multiplier of the bound too inexact
                refinements = max(refinements, REFINEMENTS)
                larger = append_violated_directions(small, at.U, C)
                at, memory = lagrangian.point(larger), Memory()
            previous = gap
        done, pace, U = done + steps, max(FIRST_STEPS, steps // 2), at.U
        upper, best_U = min(upper, point.value), dense(point.U)
        used = best_U.any(axis=1)
        point = point._replace(U=scatter(best_U[used], ws[used], size))
        iterate = Iterate(point.U, done, DualPoint(u, scatter_block(C_dual, ws, size)), point, best)
        yield iterate
        # 2. Find the features that would enter alone.  If there are few, certify successively smaller gaps.
        new = single_feature_violations(problem, ws, best_U)
        max_new = max(INITIAL_SIZE, len(ws)) // 2
        verdict, proved, checked = Verdict(), False, 2 * len(new) < max_new
        tol = stopping.tolerance(upper)
        goal = min(goal, max(tol, 0.3 * upper))
        reduction = GAP_REDUCTION if len(ws) < LARGE_WORKING_SET else CAUTIOUS_REDUCTION
        failed_gap, split = 0.0, block_problem(problem, ws)  # failed_gap: one that could not be certified
        while checked:
            known = upper - best.lower
            goal = min(goal, max(tol, known / reduction))
            # Try the gap that the solution on the working set permits; after a failure, a mean of the failed and the
            # certified gap.
            target_gap = (failed_gap * known) ** 0.5 if failed_gap else max(goal, gap / TARGET)
            if target_gap > (0.9 * known if failed_gap else max(goal, 0.6 * known)):
                break
            yield Pause()
            t = (1.0 - upper + 0.99 * target_gap) / problem.mean_inverse(u)
            found = check_kkt(split, u, C_dual, t)
            if found.bound is None:
                failed_gap, verdict = target_gap, verdict if len(verdict.violated) else found
                continue
            best, proved = best_of(best, found.bound), True
            if upper - best.lower <= tol:
                break
            goal = goal if failed_gap else max(tol, target_gap / reduction)
        if failed_gap:  # a smaller step next
            goal = max(goal, (upper - best.lower) / 2.0)
        if proved:
            yield iterate._replace(bound=best)
        # 3.  Add these features, and the violated ones of the last check.  If there are none, the solution on the
        # working set must be more accurate, up to a thousandth of the gap.
        new = np.concatenate([new, verdict.violated[~np.isin(verdict.violated, new)]])
        accuracy = TARGET if len(new) or proved else accuracy / 3.0
        if accuracy < 1e-3:
            return
        target = accuracy * goal
        if not checked:  # only early, because the multipliers of inactive features matter later
            squared_norms = penalty.restrict(ws).group_sums(np.sum(U**2, axis=1))
            keep = (squared_norms > 1e-7 * squared_norms.max(initial=0.0)) | (problem.c[ws] == 0.0)
            ws, U, C = ws[keep], U[keep], C[np.ix_(keep, keep)]
        if len(new):
            new = penalty.first_groups(new, max_new)
            ws, U, C = grow(problem, ws, U, u, C, new, verdict)


def last_multiplier(problem: DirectionProblem, U: Array, C: Array, steps: int, M: Array) -> list[Array]:
    """Return the last of the improved multipliers, in nearly all rounds the best, as the only candidate."""
    return list(improved_multipliers(problem, M, U, C, steps))[-1:]


def initial_working_set(problem: DirectionProblem, warm_start: WarmStart) -> tuple[Indices, Array, Array]:
    """Return a working set, a factor and a multiplier on it: those of a warm start, if it has any features.

    Otherwise the working set has the features of largest univariate gain g_j^2 / (A_jj + c_j^2) and all without an l1
    weight, and the factor is random.
    """
    if warm_start.U is not None:
        rows = scipy.sparse.csr_array(warm_start.U)
        ws = np.flatnonzero(problem.pair_penalty.complete_groups(is_active(problem, rows)))
        if problem.c[ws].any():
            given = scipy.sparse.csr_array((len(problem.c),) * 2) if warm_start.C is None else warm_start.C
            C = symmetric(dense(scipy.sparse.csr_array(given)[ws][:, ws]))
            C = problem.restrict(ws).pair_penalty.project_safe(C)
            return grow(problem, ws, dense(rows[ws]), np.ones(len(problem.X)), C, ws[:0], Verdict())
    order = np.argsort(-problem.pair_penalty.group_sums(univariate_gains(problem)), kind="stable")
    others = problem.pair_penalty.first_groups(order[problem.c[order] > 0.0], INITIAL_SIZE)
    ws = np.sort(np.concatenate([np.flatnonzero(problem.c == 0.0), others]))
    w, r = len(ws), 2 * SPARE_RANK
    return ws, np.random.default_rng(0).standard_normal((w, r)) / (w * r) ** 0.5, np.zeros((w, w))


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def single_feature_violations(problem: DirectionProblem, ws: Indices, U: Array) -> Indices:
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


def grow(
    problem: DirectionProblem,
    ws: Indices,
    U: Array,
    u: Array,
    C: Array,
    new: Indices,
    verdict: Verdict,
) -> tuple[Indices, Array, Array]:
    """Return the working set with the new features added, a factor with small entries there, and a multiplier."""
    n_old, both = len(ws), np.append(ws, new)
    directions = np.zeros((len(both), 0)) if verdict.directions is None else verdict.directions[both]
    ws, C, order = expand_working_set(problem, ws, u, C, new, verdict)
    U = principal_columns(U, rtol=COLUMN_RTOL)
    (w, r), size = (len(ws), U.shape[1] + directions.shape[1] + SPARE_RANK), float(np.linalg.norm(U))
    directions *= 0.02 * size / np.maximum(np.linalg.norm(directions, axis=0), 1e-300)
    larger = np.random.default_rng(0).standard_normal((w, r)) * (3e-3 * size / (w * r) ** 0.5)
    larger[:n_old, : U.shape[1]] += U
    larger[:, U.shape[1] : r - SPARE_RANK] += directions
    return ws, larger[order], C
