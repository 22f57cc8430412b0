"""Solve a sparse problem by components: V diagonal first, then blocks where the certificate asks for them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
import scipy.sparse

from diffrac_cvx.certificates.block_bounds import (
    BlockCertificate,
    BlockRatios,
    Blocks,
    Finding,
    attempt,
    larger_t,
    prove,
)
from diffrac_cvx.certificates.block_problem import BlockProblem, Partition, block_problem
from diffrac_cvx.certificates.block_proof import Pairs, eliminate
from diffrac_cvx.certificates.direction_bounds import Dual
from diffrac_cvx.certificates.screening import look_again
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Sparse, as_sparse, dense, is_sparse
from diffrac_cvx.points.linear_algebra import LARGE, cholesky, inverse_or_one, principal_columns, psd_factor, times
from diffrac_cvx.problem.direction_problem import DirectionProblem, Scaled
from diffrac_cvx.problem.result import Bracket, Components, Labels
from diffrac_cvx.solvers.factored.augmented_lagrangian import Lagrangian, Multiplier, follow_multiplier
from diffrac_cvx.solvers.factored.quasi_newton import Memory
from diffrac_cvx.solvers.factored.tuning import COMPONENTS
from diffrac_cvx.solvers.factored.unknowns import BlockFactors, Point
from diffrac_cvx.solvers.stopping import Iterate, Start


@dataclass
class State:
    """Where the solver is: the partition's blocks, the point, its multipliers, and what is known of the pairs."""

    blocks: Blocks
    point: Point
    C: list[Array]
    near: Pairs | None = None  # near their box or beyond it when all were looked at last, where these are few
    looked: float = np.inf  # the gap of the block diagonal problem then


def is_worth_trying(problem: DirectionProblem, first: Start) -> bool:
    """Whether a solution by components is tried: few coordinates without an l1 weight, no start that is one block."""
    free = int(np.sum(problem.c == 0.0))
    sparse_start = first.U is None or is_sparse(first.U)
    sparse_start &= problem.structure.is_plain
    return sparse_start and free <= COMPONENTS.most_free and len(problem.c) - free >= COMPONENTS.least_penalised


def iterates(problem: DirectionProblem, tol: float, max_iter: int, first: Start) -> Iterator[Iterate]:
    """Yield points with their certificates, until half of the coordinates should be in one component, or a stall."""
    split = block_problem(problem)
    state = diagonal_start(split) if first.U is None else warm_start(split, first)
    done, steps = 0, COMPONENTS.steps if len(split.c) > COMPONENTS.cheap else COMPONENTS.first_steps
    steps = 0 if is_sparse(first.U) else steps
    best, since = np.inf, 0  # the least gap of the block diagonal problem, and the rounds since then
    while done < max_iter:
        if steps:
            done += improve(state, min(steps, max_iter - done), tol / 2)
        state.point, claim = BlockFactors(state.blocks, state.point).claim(state.point, state.C)
        look = Look(None, None)
        best, since = (claim.gap, 0) if claim.gap < 0.95 * best else (best, since + 1)
        if claim.gap <= (max(COMPONENTS.close, tol) if steps else tol):
            if len(split.c) > COMPONENTS.slow:
                yield make_iterate(split, state, done, claim, look)  # the value is known before the pairs are looked at
            look = look_at_pairs(state, claim, tol)
        yield make_iterate(split, state, done, claim, look)
        if look.joins is not None:
            if is_giant(state, look):
                return
            state, best, since = join(state, claim.ratios, look.joins), np.inf, 0
        if since >= COMPONENTS.rounds_to_end and len(split.c) <= COMPONENTS.most_in_one_block:
            return
        state, steps = state if steps else revive_coordinates(state), COMPONENTS.steps


def lagrangian_of(blocks: Blocks, point: Point, C: list[Array]) -> Lagrangian:
    """Return the Lagrangian of V block diagonal, of the shapes of a point."""
    pairs = zip(blocks.partition.blocks, C, strict=True)
    multipliers = [Multiplier(blocks.problem.coupling_of(block), C0, capped=False) for block, C0 in pairs]
    return Lagrangian(BlockFactors(blocks, point), multipliers)


def improve(state: State, steps: int, enough: float) -> int:
    """Take at most so many L-BFGS steps, fewer where the gap is small enough, and return how many."""
    unknowns, lagrangian = BlockFactors(state.blocks, state.point), lagrangian_of(state.blocks, state.point, state.C)

    def is_enough(entries: Array) -> bool:
        if state.blocks.partition.largest > COMPONENTS.quick:
            return False
        return unknowns.claim(state.point.like(entries), lagrangian.multiplier(entries))[1].gap <= enough

    start = lagrangian.point(unknowns.best_scale(state.point)[0].flat())
    at, taken = follow_multiplier(lagrangian, start, steps, Memory(), is_enough)
    if taken == steps and not is_enough(at.U):
        at = lagrangian.update(at)
    state.point, state.C = reduce_rank(state.point.like(at.U)), lagrangian.multiplier(at.U)
    return max(taken, 1)


def reduce_rank(point: Point) -> Point:
    return point._replace(factors=[principal_columns(U, rtol=1e-12) for U in point.factors])


def diagonal_start(problem: BlockProblem) -> State:
    """Return V diagonal, all coordinates with the same weight."""
    m, f = problem.X.shape[1], problem.F.shape[1]
    point = Point(np.full(m, 1.0 / max(m, 1) ** 0.5), np.zeros((m, f)), np.eye(f) * COMPONENTS.rest, [])
    return State(Blocks(problem, Partition(np.arange(m))), point, [])


def warm_start(problem: BlockProblem, first: Start) -> State:
    """Return the state of a sparse factor and its multipliers."""
    U = as_sparse(cast(Sparse, first.U))
    partition = problem.partition_of(U)
    C = problem.restrict_multiplier(partition, None if first.C is None else as_sparse(first.C))
    return State(Blocks(problem, partition), point_of(problem, partition, U), C)


def point_of(problem: BlockProblem, partition: Partition, U: Sparse) -> Point:
    """Return the V of a factor, which is 0 between the groups.

    A single coordinate has one intercept: what is left of its free part is not needed at an optimum.
    """
    rows = scipy.sparse.csr_array(U)
    penalised, free = rows[problem.penalised], np.linalg.lstsq(problem.basis, dense(rows[problem.free]))[0]
    weights = np.sqrt(np.asarray(penalised.multiply(penalised).sum(axis=1)).ravel())
    intercepts, factors = (penalised @ free.T) * inverse_or_one(weights)[:, None], []
    for block in partition.blocks:
        inside = penalised[block]
        used = np.unique(inside.indices)
        factors.append(np.vstack([dense(inside[:, used]), free[:, used]]))
    alone = np.flatnonzero(np.asarray(abs(penalised).sum(axis=0)).ravel() == 0.0)
    rest = psd_factor(free[:, alone] @ free[:, alone].T) if len(free) else np.zeros((0, 0))
    return Point(weights[partition.singles], intercepts[partition.singles], rest, factors)


def revive_coordinates(state: State) -> State:
    """Return a warm start with some weight on every coordinate, and blocks of full rank, so that each can come back."""
    weights, intercepts, rest, factors = state.point
    blocks = state.blocks.partition.blocks
    factors = [full_rank(U, len(block)) for U, block in zip(factors, blocks, strict=True)]
    rest = full_rank(rest, intercepts.shape[1])
    return replace(state, point=Point(at_least(weights, COMPONENTS.warm), intercepts, rest, factors))


def at_least(weights: Array, share: float) -> Array:
    """Return weights of single coordinates, none below a share of the largest, so that each can come back."""
    least = share * np.abs(weights).max(initial=0.0)
    return np.where(np.abs(weights) < least, least, weights)


def full_rank(U: Array, s: int) -> Array:
    """Return a factor, whose first s rows are a block's, with a small part of full rank on them."""
    if s == 0:
        return np.zeros((0, 0))
    small = 1e-2 * np.sqrt(np.sum(U**2) / s)
    if len(U) == s > LARGE // 2 and small > 0.0:
        return cholesky(times(U, U.T) + small**2 * np.eye(s))
    extra = np.eye(len(U), s) * small
    return principal_columns(np.hstack([U, extra]))


class Look(NamedTuple):
    """What the pairs in different groups gave: a bound with what it proves, or pairs to be joined."""

    bound: Finding | None
    joins: Pairs | None


def look_at_pairs(state: State, claim: BlockCertificate, tol: float) -> Look:
    """Look at all pairs where that is cheap or the gap has become small; else at those near their box the last time."""
    m = len(state.blocks.problem.c)
    close = claim.gap <= max(tol, state.looked / 4) or m <= COMPONENTS.cheap
    if state.near is not None and m > COMPONENTS.cheap:
        found = look_at_near(state, claim)
        t = larger_t(state.blocks, claim.ratios, claim.least_t, found.failures)
        if len(found.failing) and claim.value - claim.bound(t) > tol:
            return Look(None, strongest(found))
    if state.near is not None and not close:
        return Look(None, None)
    found = prove(state.blocks, claim, 3)
    state.near, state.looked = (found.pairs if len(found.pairs.j) < COMPONENTS.most_near * m else None), claim.gap
    done = found.lower is not None and claim.value - found.lower <= tol
    return Look(found, None if done or not len(found.failing) else strongest(found))


def look_at_near(state: State, claim: BlockCertificate) -> Finding:
    """Return where the pairs that were near their box last violate the certificate now."""
    at = eliminate(state.blocks.problem, claim.ratios.u, claim.least_t)
    if at is None or state.near is None:
        return Finding(None)
    return attempt(state.blocks, claim, at, look_again(at, state.near), None)


def strongest(found: Finding) -> Pairs:
    """Return the pairs furthest beyond their box, in the components where the certificate fails."""
    pairs = found.pairs.beyond()
    chosen = np.flatnonzero(np.isin(pairs.j, found.failing))
    order = np.argsort(-np.abs(pairs.excess[chosen]), kind="stable")
    return pairs.take(chosen[order[: max(20, len(found.failing) // 10)]])


def is_giant(state: State, look: Look) -> bool:
    """Whether most coordinates are in one component, or will be: then blocks are no gain."""
    partition = state.blocks.partition
    if look.joins is not None:
        partition = partition.join(look.joins.j, look.joins.k)
    if look.bound is not None:
        far = look.bound.pairs.take(np.flatnonzero(np.abs(look.bound.pairs.G) > COMPONENTS.far * look.bound.pairs.side))
        partition = partition.join(far.j, far.k)
    return 2 * partition.largest > len(partition.labels)


def join(state: State, ratios: BlockRatios, pairs: Pairs) -> State:
    """Return the state with the groups of these pairs joined: V as it is, its factors at full rank."""
    problem, old = state.blocks.problem, state.blocks.partition
    partition = old.join(pairs.j, pairs.k)
    blocks = Blocks(problem, partition)
    before = state.point._replace(weights=at_least(state.point.weights, COMPONENTS.small))
    point = point_of(problem, partition, problem.factor(old, *before))
    known = problem.restrict_multiplier(partition, problem.multiplier(old, state.C))
    factors, multipliers = [], []
    for block, data, U, C in zip(partition.blocks, blocks.data, point.factors, known, strict=True):
        s, labels = len(block), old.labels[block]
        M, right = data.columns(slice(s)).moment(ratios.u), problem.right_of(block, data)[:s, :s]
        guess = problem.coupling_of(block).project(M / ratios.largest - right)
        multipliers.append(np.where(labels[:, None] == labels, C, guess))
        factors.append(full_rank(U, s))
    near = None if state.near is None else apart(state.near, partition)
    return State(blocks, point._replace(factors=factors), multipliers, near, state.looked)


def apart(pairs: Pairs, partition: Partition) -> Pairs:
    """Return the pairs that are still in different groups."""
    return pairs.take(np.flatnonzero(partition.labels[pairs.j] != partition.labels[pairs.k]))


def make_iterate(problem: BlockProblem, state: State, done: int, claim: BlockCertificate, look: Look) -> Iterate:
    """Return the state as an iterate of the whole problem."""
    partition = state.blocks.partition
    U = problem.factor(partition, *state.point)
    lower = 0.0 if look.bound is None or look.bound.lower is None else max(look.bound.lower, 0.0)
    return Iterate(
        U=U,
        n_iter=done,
        dual=Dual(C=problem.multiplier(partition, state.C)),
        scaled=Scaled(U, claim.value, claim.q),
        bounds=Bracket(lower, claim.value),
        groups=Components(
            spread_labels(problem, partition.labels),
            None if look.bound is None or look.bound.proved is None else spread_labels(problem, look.bound.proved),
        ),
    )


def spread_labels(problem: BlockProblem, labels: Labels) -> Labels:
    """Return labels of the penalised coordinates as labels of all, -1 for the others."""
    full = np.full(len(problem.problem.c), -1)
    full[problem.penalised] = labels
    return full
