"""Block-decomposition solver for sparse problems: V starts diagonal, and blocks merge if the certificate fails."""

from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
import scipy.sparse

from diffrac_cvx.certificates.block_bounds import (
    BlockCertificate,
    BlockRatios,
    Blocks,
    CertificateAttempt,
    certify_blocks,
    larger_t,
    try_certificate,
)
from diffrac_cvx.certificates.block_problem import BlockProblem, Partition, block_problem
from diffrac_cvx.certificates.direction_bounds import DualPoint
from diffrac_cvx.certificates.proof import Pairs, eliminate
from diffrac_cvx.certificates.screening import recompute_pairs
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Sparse, as_sparse, dense, is_sparse
from diffrac_cvx.points.linear_algebra import LARGE_SIZE, cholesky, inverse_or_one, principal_columns, psd_factor, times
from diffrac_cvx.problem.direction_problem import DirectionProblem, PrimalPoint
from diffrac_cvx.problem.result import Bracket, Components, Labels
from diffrac_cvx.solvers.factored.augmented_lagrangian import Lagrangian, Multiplier, run_multiplier_method
from diffrac_cvx.solvers.factored.parametrization import BlockParametrization, BlockPoint
from diffrac_cvx.solvers.factored.quasi_newton import Memory
from diffrac_cvx.solvers.stopping import Iterate, Steps, Stopping, WarmStart

STEPS = 60  # L-BFGS steps per round
SCREENING_GAP = 0.02  # of the block diagonal problem, below which pairs are screened
QUICK_SIZE = 64  # coordinates of the largest block up to which the gap is checked between the steps
CHEAP_SIZE = 240  # coordinates up to which screening all pairs costs no more than the steps between screenings


@dataclass
class State:
    """State of the block solver: blocks of the partition, point, multipliers, and results of the last screening."""

    blocks: Blocks
    point: BlockPoint
    C: list[Array]
    near_pairs: Pairs | None = None  # near or beyond their bound in the last screening, if they are few
    last_screening_gap: float = np.inf  # gap of the block diagonal problem at the last screening


def is_blockwise_applicable(problem: DirectionProblem, warm_start: WarmStart) -> bool:
    """Return whether the block strategy applies: few coordinates without an l1 weight, and no dense warm start."""
    free = int(np.sum(problem.c == 0.0))
    sparse_start = warm_start.U is None or is_sparse(warm_start.U)
    sparse_start &= problem.pair_penalty.splits_into_blocks
    return sparse_start and free <= 8 and len(problem.c) - free >= 4


def block_iterates(problem: DirectionProblem, warm_start: WarmStart, stopping: Stopping) -> Steps:
    """Yield certified iterates until one component would contain half of the coordinates, or progress stalls."""
    tol, max_iter = stopping.tol, stopping.max_iter
    n, size = problem.X.shape
    yield (
        7.5e3 * float(size) ** 2 if size > n else 0.0
    )  # a screening of all pairs, most of which are beyond their bound
    split = block_problem(problem)
    state = diagonal_start(split) if warm_start.U is None else block_start(split, warm_start)
    done, steps = 0, STEPS if len(split.c) > CHEAP_SIZE else 20  # most features may be in one component
    steps = steps if warm_start.U is None else 0
    best, since = np.inf, 0  # smallest gap of the block diagonal problem, and rounds since then
    while done < max_iter:
        if steps:
            done += take_lbfgs_steps(state, min(steps, max_iter - done), tol / 2)
            yield 0.0
        state.point, certificate = BlockParametrization(state.blocks, state.point).certificate(state.point, state.C)
        check = PairCheck(None, None)
        best, since = (certificate.gap, 0) if certificate.gap < 0.95 * best else (best, since + 1)
        if certificate.gap <= (max(SCREENING_GAP, tol) if steps else tol):
            if len(split.c) > 500:
                yield make_iterate(
                    split, state, done, certificate, check
                )  # report the value before the slow screening of pairs
            check = check_pairs(state, certificate, tol)
        yield make_iterate(split, state, done, certificate, check)
        if check.joins is not None:
            if has_giant_component(state, check):
                return
            state, best, since = merge_blocks(state, certificate.ratios, check.joins), np.inf, 0
        if since >= 8 and len(split.c) <= 1000:  # one block is better, or nothing is
            return
        state, steps = state if steps else perturb_state(state), STEPS


def lagrangian_of(blocks: Blocks, point: BlockPoint, C: list[Array]) -> Lagrangian:
    """Return the augmented Lagrangian of a block diagonal V with the shapes of a point."""
    pairs = zip(blocks.partition.blocks, C, strict=True)
    multipliers = [Multiplier(blocks.problem.pair_penalty_of(block), C0, capped=False) for block, C0 in pairs]
    return Lagrangian(BlockParametrization(blocks, point), multipliers)


def take_lbfgs_steps(state: State, steps: int, tol: float) -> int:
    """Take at most this many L-BFGS steps, fewer if the gap reaches tol, and return their number."""
    parametrization, lagrangian = (
        BlockParametrization(state.blocks, state.point),
        lagrangian_of(state.blocks, state.point, state.C),
    )

    def is_converged(entries: Array) -> bool:
        if state.blocks.partition.largest > QUICK_SIZE:
            return False
        return parametrization.certificate(state.point.like(entries), lagrangian.multiplier(entries))[1].gap <= tol

    start = lagrangian.point(parametrization.rescale(state.point)[0].flat())
    at, n_steps = run_multiplier_method(lagrangian, start, steps, Memory(), is_converged)
    if n_steps == steps and not is_converged(at.U):
        at = lagrangian.update(at)
    state.point, state.C = reduce_rank(state.point.like(at.U)), lagrangian.multiplier(at.U)
    return max(n_steps, 1)


def reduce_rank(point: BlockPoint) -> BlockPoint:
    return point._replace(factors=[principal_columns(U, rtol=1e-12) for U in point.factors])


def diagonal_start(problem: BlockProblem) -> State:
    """Return the state with V diagonal: equal weights, and smaller ones of unpenalised coordinates."""
    m, f = problem.X.shape[1], problem.F.shape[1]
    point = BlockPoint(np.full(m, 1.0 / max(m, 1) ** 0.5), np.zeros((m, f)), 0.1 * np.eye(f), [])
    return State(Blocks(problem, Partition(np.arange(m))), point, [])


def block_start(problem: BlockProblem, warm_start: WarmStart) -> State:
    """Return the state of a sparse warm start, its factor and multipliers."""
    U = as_sparse(cast(Sparse, warm_start.U))
    partition = problem.partition_of(U)
    C = problem.restrict_multiplier(partition, None if warm_start.C is None else as_sparse(warm_start.C))
    return State(Blocks(problem, partition), block_point(problem, partition, U), C)


def block_point(problem: BlockProblem, partition: Partition, U: Sparse) -> BlockPoint:
    """Return the block diagonal V of a sparse factor.

    A single coordinate has one intercept; the rest of its free part is not needed at an optimum.
    """
    rows = scipy.sparse.csr_array(U)
    penalized, free = rows[problem.penalized], np.linalg.lstsq(problem.basis, dense(rows[problem.free]))[0]
    weights = np.sqrt(np.asarray(penalized.multiply(penalized).sum(axis=1)).ravel())
    intercepts, factors = (penalized @ free.T) * inverse_or_one(weights)[:, None], []
    for block in partition.blocks:
        inside = penalized[block]
        columns = np.unique(inside.indices)
        factors.append(np.vstack([dense(inside[:, columns]), free[:, columns]]))
    alone = np.flatnonzero(np.asarray(abs(penalized).sum(axis=0)).ravel() == 0.0)
    free_factor = psd_factor(free[:, alone] @ free[:, alone].T) if len(free) else np.zeros((0, 0))
    return BlockPoint(weights[partition.singles], intercepts[partition.singles], free_factor, factors)


def perturb_state(state: State) -> State:
    """Return a warm start with positive weights and full-rank blocks, so that every coordinate can enter again.

    Weights are at least a fifth of the largest: from a thousandth, growth takes more steps than a cold start.
    """
    weights, intercepts, free_factor, factors = state.point
    blocks = state.blocks.partition.blocks
    factors = [perturb_to_full_rank(U, len(block)) for U, block in zip(factors, blocks, strict=True)]
    free_factor = perturb_to_full_rank(free_factor, intercepts.shape[1])
    return replace(
        state,
        point=BlockPoint(raise_small_weights(weights, 0.2), intercepts, free_factor, factors),
    )


def raise_small_weights(weights: Array, fraction: float) -> Array:
    """Return weights of single coordinates, raised to at least a fraction of the largest."""
    least = fraction * np.abs(weights).max(initial=0.0)
    return np.where(np.abs(weights) < least, least, weights)


def perturb_to_full_rank(U: Array, s: int) -> Array:
    """Return a factor with a small full-rank perturbation of its first s rows, those of a block."""
    if s == 0:
        return np.zeros((0, 0))
    small = 1e-2 * np.sqrt(np.sum(U**2) / s)
    if len(U) == s > LARGE_SIZE // 2 and small > 0.0:
        return cholesky(times(U, U.T) + small**2 * np.eye(s))
    extra = np.eye(len(U), s) * small
    return principal_columns(np.hstack([U, extra]))


class PairCheck(NamedTuple):
    """Result of screening the pairs between blocks: a certificate attempt, or pairs to be merged."""

    bound: CertificateAttempt | None
    joins: Pairs | None


def check_pairs(state: State, certificate: BlockCertificate, tol: float) -> PairCheck:
    """Screen all pairs if that is cheap or the gap is much smaller; otherwise only those near their bound last time."""
    m = len(state.blocks.problem.c)
    close = certificate.gap <= max(tol, state.last_screening_gap / 4) or m <= CHEAP_SIZE
    if state.near_pairs is not None and m > CHEAP_SIZE:
        found = check_near_pairs(state, certificate)
        t = larger_t(state.blocks, certificate.ratios, certificate.min_t, found.violated)
        if len(found.violated_coordinates) and certificate.value - certificate.bound(t) > tol:
            return PairCheck(None, most_violated_pairs(found))
    if state.near_pairs is not None and not close:
        return PairCheck(None, None)
    found = certify_blocks(state.blocks, certificate, 3)
    state.near_pairs, state.last_screening_gap = (
        (found.pairs if len(found.pairs.j) < 20 * m else None),
        certificate.gap,
    )
    done = found.lower is not None and certificate.value - found.lower <= tol
    return PairCheck(found, None if done or not len(found.violated_coordinates) else most_violated_pairs(found))


def check_near_pairs(state: State, certificate: BlockCertificate) -> CertificateAttempt:
    """Return a certificate attempt based only on the pairs near their bound in the last screening."""
    remainder = eliminate(state.blocks.problem, certificate.ratios.u, certificate.min_t)
    if remainder is None or state.near_pairs is None:
        return CertificateAttempt(None)
    return try_certificate(state.blocks, certificate, remainder, recompute_pairs(remainder, state.near_pairs), None)


def most_violated_pairs(found: CertificateAttempt) -> Pairs:
    """Return the pairs that exceed their bound most, in the components in which the certificate fails."""
    pairs = found.pairs.violated()
    chosen = np.flatnonzero(np.isin(pairs.j, found.violated_coordinates))
    order = np.argsort(-np.abs(pairs.excess[chosen]), kind="stable")
    return pairs.take(chosen[order[: max(20, len(found.violated_coordinates) // 10)]])


def has_giant_component(state: State, check: PairCheck) -> bool:
    """Return whether most coordinates are in one (giant) component, or will be: blocks are then not faster.

    A pair is expected to be merged if |G_jk| exceeds its bound by half.
    """
    partition = state.blocks.partition
    if check.joins is not None:
        partition = partition.join(check.joins.j, check.joins.k)
    if check.bound is not None:
        far = check.bound.pairs.take(np.flatnonzero(np.abs(check.bound.pairs.G) > 1.5 * check.bound.pairs.bound))
        partition = partition.join(far.j, far.k)
    return 2 * partition.largest > len(partition.labels)


def merge_blocks(state: State, ratios: BlockRatios, pairs: Pairs) -> State:
    """Return the state with the blocks of these pairs merged: V nearly unchanged, its factors at full rank."""
    problem, old = state.blocks.problem, state.blocks.partition
    partition = old.join(pairs.j, pairs.k)
    blocks = Blocks(problem, partition)
    before = state.point._replace(weights=raise_small_weights(state.point.weights, 0.01))
    point = block_point(problem, partition, problem.factor(old, *before))
    old_multipliers = problem.restrict_multiplier(partition, problem.multiplier(old, state.C))
    factors, multipliers = [], []
    for block, data, U, C in zip(partition.blocks, blocks.data, point.factors, old_multipliers, strict=True):
        s, labels = len(block), old.labels[block]
        M, right = data.columns(slice(s)).weighted_gram(ratios.u), problem.right_of(block, data)[:s, :s]
        guess = problem.pair_penalty_of(block).project_safe(M / ratios.largest - right)
        multipliers.append(np.where(labels[:, None] == labels, C, guess))
        factors.append(perturb_to_full_rank(U, s))
    near_pairs = None if state.near_pairs is None else pairs_between_blocks(state.near_pairs, partition)
    return State(blocks, point._replace(factors=factors), multipliers, near_pairs, state.last_screening_gap)


def pairs_between_blocks(pairs: Pairs, partition: Partition) -> Pairs:
    """Return the pairs that are still in different blocks."""
    return pairs.take(np.flatnonzero(partition.labels[pairs.j] != partition.labels[pairs.k]))


def make_iterate(
    problem: BlockProblem, state: State, done: int, certificate: BlockCertificate, check: PairCheck
) -> Iterate:
    """Return the state as an iterate of the whole problem."""
    partition = state.blocks.partition
    U = problem.factor(partition, *state.point)
    lower = 0.0 if check.bound is None or check.bound.lower is None else max(check.bound.lower, 0.0)
    return Iterate(
        U=U,
        n_iter=done,
        dual=DualPoint(C=problem.multiplier(partition, state.C)),
        point=PrimalPoint(U, certificate.value, certificate.q),
        bounds=Bracket(lower, certificate.value),
        components=Components(
            expand_labels(problem, partition.labels),
            None
            if check.bound is None or check.bound.certified is None
            else expand_labels(problem, check.bound.certified),
        ),
    )


def expand_labels(problem: BlockProblem, labels: Labels) -> Labels:
    """Return component labels of the penalised coordinates as labels of all coordinates, -1 for the others."""
    full = np.full(len(problem.problem.c), -1)
    full[problem.penalized] = labels
    return full
