"""Solve a sparse problem from a few features outwards, where V is 0 on most: for many more columns than rows.

The problem on a few features is solved first.  Those join that the certificate finds to be violated: features that
would enter alone, then, by a look at all pairs, features and directions in which S is negative.  Features that are dead
leave again while the value falls.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np
import scipy.sparse

from diffrac_cvx.certificates.block_problem import Indices
from diffrac_cvx.certificates.core_proof import Core
from diffrac_cvx.certificates.direction_bounds import Dual, bracket
from diffrac_cvx.certificates.outwards import (
    CoreDual,
    Look,
    bound_at_equal_weights,
    dual_of,
    empty_look,
    join,
    look_outside,
)
from diffrac_cvx.certificates.search import closer_to_feasible, fit_from
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.dense import array_points
from diffrac_cvx.points.factors import dense, diagonal
from diffrac_cvx.points.linear_algebra import principal_columns, row_products, symmetric, times
from diffrac_cvx.problem.direction_problem import DirectionProblem, Scaled, best_alone, gains_alone, without_l1
from diffrac_cvx.problem.penalties.coupling import Labels
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.solvers.factored import augmented_lagrangian
from diffrac_cvx.solvers.factored.augmented_lagrangian import (
    follow_multiplier,
    one_block,
    rotation_to_fewer,
    without_inactive,
)
from diffrac_cvx.solvers.factored.quasi_newton import Memory
from diffrac_cvx.solvers.factored.tuning import OUTWARDS
from diffrac_cvx.solvers.factored.unknowns import OneFactor
from diffrac_cvx.solvers.stopping import Iterate, Start, Stopping


@dataclass
class Grown:
    """The features there are, increasing, the factor on them, and its multiplier."""

    chosen: Indices
    U: Array
    C: Array


class Solved(NamedTuple):
    """The factor and the multiplier on the core, the point made of them, its dual, the gap there, and the steps."""

    U: Array
    C: Array
    point: Scaled
    dual: CoreDual
    gap: float
    steps: int


def is_worth_trying(problem: DirectionProblem, first: Start) -> bool:
    """Whether a solution from a few features outwards is tried: there has to be a ridge, or V is often diagonal."""
    n, D = problem.X.shape
    has_ridge, free = bool(np.any(problem.a[problem.c > 0.0])), int(np.sum(problem.c == 0.0))
    fits = (
        problem.structure.nonnegative is None
        and free <= OUTWARDS.most_free
        and D >= OUTWARDS.least
        and n * D <= OUTWARDS.most_entries
    )
    return has_ridge and fits and (first.U is None or 4 * int(np.sum(diagonal(first.U) > 0.0)) <= D)


def iterates(
    problem: DirectionProblem, stopping: Stopping, max_iter: int, first: Start, *, always: bool = False
) -> Iterator[Iterate]:
    """Yield points with proved brackets on all features; end where a diagonal V may be better, or nothing is gained.

    With groups they end where most are needed, too.

    No diagonal V has an objective below min_j (A_jj + c_j^2 - mean x_j^2) / (A_jj + c_j^2): where the first features do
    no better, that is left to the solver that starts there, unless it has been tried.
    """
    if not problem.X.in_memory:
        problem = replace(problem, X=array_points(problem.X.array()))
    size = len(problem.c)
    state = first_features(problem) if first.U is None else warm_start(problem, first)
    floor = diagonal_floor(problem)
    done, bounds, goal, target, fraction = 0, Bracket(0.0, 1.0), 1.0, OUTWARDS.first_gap, OUTWARDS.target
    while done < max_iter:
        steps = OUTWARDS.first_steps if done == 0 and first.U is None else max_iter - done
        found = solve_on(problem, state, target, steps)
        if done == 0:
            start, goal = best_alone(problem), max(stopping.tol, OUTWARDS.first_goal * found.point.value)
            left = problem.structure.is_plain and found.point.value >= floor and first.U is None and not always
            lower = 0.0 if left and len(problem.X) >= size else bound_without_l1(problem)
            bounds = Bracket(lower, start.value)
            yield Iterate(start.U, 0, Dual(), start, bounds)
            if left:
                return
        done += found.steps
        state = Grown(state.chosen, found.U, found.C)
        point, dual = spread(problem, state.chosen, found.point), dual_on_all(state.chosen, found.dual, size)
        bounds = Bracket(bounds.lower, min(bounds.upper, point.value))
        yield Iterate(point.U, done, dual, point, bounds)
        new = violated_alone(problem, state.chosen, dense(found.point.U))
        most = max(OUTWARDS.least_new, int(OUTWARDS.new_share * len(state.chosen)))
        look, before, looked = empty_look(problem), goal, 2 * len(new) < most
        if looked:
            core = Core(problem, state.chosen, found.dual.C, found.dual.excess)
            tol = max(stopping.tol, stopping.rtol * bounds.upper)
            look, goal = look_closer(core, found, bounds, goal, tol)
            bounds = Bracket(max(bounds.lower, look.lower or 0.0), bounds.upper)
            yield Iterate(point.U, done, dual, point, bounds)
            new = np.concatenate([new, look.needed[~np.isin(look.needed, new)]])
        # Where nothing is violated, what is missing is accuracy on the core.
        fraction = OUTWARDS.target if len(new) or goal < before else fraction / 3.0
        few = problem.structure.is_plain or len(state.chosen) + len(new) <= OUTWARDS.most_of_groups * size
        if fraction < OUTWARDS.settled or not few:
            return
        target = max(target / 3.0, fraction * goal)
        if not looked:
            state = without_dead(problem, state)
        state = grow(problem, state, problem.structure.first(new, most), found.dual.u, look)


def diagonal_floor(problem: DirectionProblem) -> float:
    """Return a number that the objective of no diagonal V is below, with an offset beside it or not.

    The offset is orthogonal to the centred columns; other columns without an l1 weight are not, and then it is 0.
    """
    others = int(np.sum(problem.c == 0.0)) - int(problem.has_offset)
    squares = problem.Y.mean_squares()
    costs = squares + problem.a**2 + problem.c**2
    return float(1.0 - np.max(squares / np.maximum(costs, 1e-300))) if others == 0 else 0.0


def most_promising(problem: DirectionProblem, size: int) -> Indices:
    """Return the coordinates that are best when used alone, by g_j^2 / (A_jj + c_j^2), and all without an l1 weight."""
    free = np.flatnonzero(problem.c == 0.0)
    order = np.argsort(-problem.structure.sums(gains_alone(problem)), kind="stable")
    others = problem.structure.first(order[problem.c[order] > 0.0], max(size - len(free), 0))
    return np.sort(np.concatenate([free, others]))


def first_features(problem: DirectionProblem) -> Grown:
    """Return the features that split best alone, and all without an l1 weight, with a factor at random."""
    chosen = most_promising(problem, OUTWARDS.first + int(np.sum(problem.c == 0.0)))
    w, r = len(chosen), 2 * OUTWARDS.spare_rank
    return Grown(chosen, np.random.default_rng(0).standard_normal((w, r)) / (w * r) ** 0.5, np.zeros((w, w)))


def warm_start(problem: DirectionProblem, first: Start) -> Grown:
    """Return the features on which a warm start is not faint, with its factor and multiplier; the first, if none."""
    given = scipy.sparse.csr_array(first.U if first.U is not None else np.zeros((len(problem.c), 1)))
    energies = np.asarray(given.multiply(given).sum(axis=1)).ravel()
    chosen = np.flatnonzero(problem.structure.whole((energies > OUTWARDS.faint * energies.max()) | (problem.c == 0.0)))
    if not problem.c[chosen].any():
        return first_features(problem)
    U = dense(given[chosen])
    C = np.zeros((len(chosen), len(chosen)))
    if first.C is not None:
        C = dense(scipy.sparse.csr_array(first.C)[chosen][:, chosen])
    state = Grown(chosen, U, problem.restrict(chosen).coupling.project(symmetric(C)))
    return grow(problem, state, np.zeros(0, dtype=np.intp), np.ones(len(problem.X)), empty_look(problem))


def bound_without_l1(problem: DirectionProblem) -> float:
    """Return the lower bound of the problem with the l1 part's diagonal as ridge: |V|_1 >= tr V; O(n^2 D)."""
    ridge = without_l1(problem)
    lower, r = max(bound_at_equal_weights(ridge), 0.0), ridge.X.shape[1]
    start = np.random.default_rng(0).standard_normal((r, min(r, OUTWARDS.spare_rank))) / max(r, 1)
    for iterate in islice(
        augmented_lagrangian.iterates(ridge, OUTWARDS.rough_points * 100, start), OUTWARDS.rough_points
    ):
        found = bracket(ridge, iterate.scaled or ridge.best_scale(iterate.U))
        lower = max(lower, found.lower)
        if found.gap <= OUTWARDS.rough_gap * found.upper:
            break
    return lower


def solve_on(problem: DirectionProblem, state: Grown, target: float, max_iter: int) -> Solved:
    """Return the solution on the core up to a gap, or what there is after the most steps of a round."""
    small = problem.restrict(state.chosen)
    lagrangian, memory = one_block(OneFactor(small), state.C, capped=False), Memory()
    start = dense(small.best_scale(state.U).U)
    at, done = lagrangian.point(start if start.any() else state.U), 0
    while True:
        at, taken = follow_multiplier(
            lagrangian, at, min(max(OUTWARDS.first_steps, done // 2), max_iter - done), memory
        )
        done += max(taken, 1)
        C = next(iter(lagrangian.multiplier(at.U)), np.zeros((len(small.c), len(small.c))))  # none without an l1 weight
        found = judge(problem, small, at.U, C, done)
        if found.gap <= target or done >= min(max_iter, OUTWARDS.most_steps):
            return found
        at = lagrangian.update(at)
        Q = rotation_to_fewer(at.U, OUTWARDS.negligible)
        if Q is not None:
            memory.rotate(Q)
            at = lagrangian.point(at.U @ Q)


def judge(problem: DirectionProblem, small: DirectionProblem, U: Array, C: Array, steps: int) -> Solved:
    """Return a factor and its multiplier with the better of its two points and the best dual near them."""
    point = small.best_scale(U)
    thresholded = without_inactive(small, dense(point.U), C)

    def candidates(M: Array) -> Iterator[Array]:
        yield closer_to_feasible(small, M, C)
        if not problem.structure.is_plain:  # the multipliers of blocks settle slowly
            yield fit_from(small, M, times(dense(point.U), dense(point.U).T), C, OUTWARDS.fitting_steps)

    dual = dual_of(problem, small, point, candidates)
    best = thresholded if thresholded.value < point.value else point
    return Solved(U, C, best, dual, best.value - dual.lower, steps)


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # products of weights may be 0
def violated_alone(problem: DirectionProblem, chosen: Indices, U: Array) -> Indices:
    """Return the features outside the core that would enter alone, the most violated first; O(n D r).

    A feature j stays outside only if |G_j U z| <= c_j sum_k c_k |(U z)_k| for all z; leading directions z are tried.
    So does a group, with norms in place of absolute values.
    """
    structure = problem.structure
    XU, YU = problem.X.array()[:, chosen] @ U, problem.Y.array()[:, chosen] @ U
    roots = np.sqrt(row_products(XU, XU))
    u = 1.0 / np.maximum(roots, 1e-6 * max(float(roots.mean()), 1e-300))
    Z = np.linalg.svd(U, full_matrices=False)[2].T
    UZ = U @ Z
    sizes = np.abs(UZ) if structure.labels is None else norms_in_groups(UZ, structure.labels[chosen])
    limit = problem.c[chosen] @ sizes
    used = limit > 1e-3 * limit.max(initial=0.0)
    Z = Z[:, used]
    pull = np.abs(problem.X.products_with((u[:, None] * XU) @ Z) - problem.Y.products_with(YU @ Z)) / limit[used]
    if structure.labels is not None and used.any():
        pull = np.sqrt(np.column_stack([structure.sums(column**2) for column in pull.T])).reshape(len(pull), -1)
    excess = pull.max(axis=1, initial=0.0) / np.maximum(problem.c, 1e-300)
    excess[chosen] = 0.0
    order = np.argsort(-excess, kind="stable")
    return order[: int(np.sum(excess > OUTWARDS.violated))]


def norms_in_groups(Z: Array, labels: Labels) -> Array:
    """Return the norm of each column's part in each group, at the group's first coordinate; 0 at the others."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    found = np.zeros_like(Z)
    squares = np.zeros((len(first), Z.shape[1]))
    np.add.at(squares, inverse, Z**2)
    found[first] = np.sqrt(squares)
    return found


def look_closer(core: Core, found: Solved, bounds: Bracket, goal: float, tol: float) -> tuple[Look, float]:
    """Try to prove a gap from the core outwards, and smaller ones down to the tolerance where it is proved.

    Where the core is not solved so far, the gap that it admits is tried.  Returns what the last look found, with the
    best bound, and the gap that is to be proved next.
    """
    look, lower = empty_look(core.problem), bounds.lower
    while True:
        goal = min(goal, max(tol, (bounds.upper - lower) / OUTWARDS.closer))
        tried = max(goal, found.gap / OUTWARDS.target)
        worth = OUTWARDS.worthwhile * (bounds.upper - lower)
        if tried > worth and tried > goal:
            return look._replace(lower=lower), goal
        look = look_outside(core, *found.dual.at(bounds.upper - OUTWARDS.tried * tried))
        if look.lower is None:
            few = len(look.needed) <= OUTWARDS.new_share * len(core.chosen)
            return look._replace(lower=lower), goal if few else min(OUTWARDS.back * tried, worth)
        lower = max(lower, look.lower)
        if tried <= tol:
            return look, goal
        goal = max(tol, tried / OUTWARDS.closer)


def without_dead(problem: DirectionProblem, state: Grown) -> Grown:
    """Return the state without the features that are dead: later on, their multipliers matter."""
    energies = problem.structure.restrict(state.chosen).sums(np.sum(state.U**2, axis=1))
    keep = (energies > OUTWARDS.dead * energies.max(initial=0.0)) | (problem.c[state.chosen] == 0.0)
    return Grown(state.chosen[keep], state.U[keep], state.C[np.ix_(keep, keep)])


def grow(problem: DirectionProblem, state: Grown, new: Indices, u: Array, look: Look) -> Grown:
    """Return the state with new features, with small entries of V."""
    chosen, C, order = join(problem, state.chosen, state.C, new, u, look)
    w, kept = len(chosen), len(state.chosen)
    U = principal_columns(state.U, rtol=OUTWARDS.negligible)
    size = float(np.linalg.norm(U))
    along = look.directions[np.append(state.chosen, new)]
    along *= OUTWARDS.along * size / np.maximum(np.linalg.norm(along, axis=0), 1e-300)
    r = U.shape[1] + along.shape[1] + OUTWARDS.spare_rank
    wide = np.random.default_rng(0).standard_normal((w, r)) * (OUTWARDS.small * size / (w * r) ** 0.5)
    wide[:kept, : U.shape[1]] += U
    wide[:, U.shape[1] : U.shape[1] + along.shape[1]] += along
    return Grown(chosen, wide[order], C)


def spread(problem: DirectionProblem, chosen: Indices, point: Scaled) -> Scaled:
    """Return a point of some features as one of all, its factor sparse."""
    U = dense(point.U)
    some = U.any(axis=1)
    rows, r = chosen[some], U.shape[1]
    triples = (U[some].ravel(), (np.repeat(rows, r), np.tile(np.arange(r), len(rows))))
    return Scaled(scipy.sparse.csc_array(triples, shape=(len(problem.c), r)), point.value, point.q)


def dual_on_all(chosen: Indices, dual: CoreDual, size: int) -> Dual:
    """Return the multiplier of a core as one of all coordinates, 0 outside, sparse."""
    w = len(chosen)
    place = (np.repeat(chosen, w), np.tile(chosen, w))
    return Dual(u=dual.u, C=scipy.sparse.csr_array((dual.C.ravel(), place), shape=(size, size)))
