"""Block-decomposition solver for sparse problems: V starts diagonal, and blocks merge if the certificate fails."""

import numpy as np
import scipy.sparse

from diffrac_cvx.certificates.block_problem import block_problem, join_labels, labels_by_zeros
from diffrac_cvx.certificates.direction_bounds import Blocks, DualPoint, certify_blocks
from diffrac_cvx.certificates.proof import bound_at
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, dense
from diffrac_cvx.points.linear_algebra import LARGE_SIZE, cholesky, inverse_or_one, principal_columns, psd_factor, times
from diffrac_cvx.problem.direction_problem import DirectionProblem, PrimalPoint
from diffrac_cvx.problem.result import Bracket, Labels
from diffrac_cvx.solvers.driver import Iterate, Steps, Stopping, WarmStart
from diffrac_cvx.solvers.factored.augmented_lagrangian import Lagrangian, Multiplier, run_multiplier_method
from diffrac_cvx.solvers.factored.parametrization import BlockParametrization, BlockPoint
from diffrac_cvx.solvers.factored.quasi_newton import Memory


def is_blockwise_applicable(problem: DirectionProblem, warm_start: WarmStart) -> bool:
    """Return whether the block strategy applies: few coordinates without an l1 weight, and a cold or a split start."""
    free = int(np.sum(problem.c == 0.0))
    applies = problem.pair_penalty.splits_into_blocks and free <= 8 and len(problem.c) - free >= 4
    return applies and (warm_start.U is None or is_block_diagonal(problem, warm_start.U))


def is_block_diagonal(problem: DirectionProblem, U: Factor) -> bool:
    """Return whether UU' splits the penalised coordinates into components, none with half of them or more."""
    pattern = scipy.sparse.csr_array(U)[problem.c > 0.0].astype(bool).astype(float)
    if pattern.shape[0] == 0 or 2 * pattern.count_nonzero() > np.prod(pattern.shape):
        return False
    labels = labels_by_zeros(pattern @ pattern.T)
    return bool(2 * np.bincount(labels).max() < len(labels))


def block_iterates(problem: DirectionProblem, warm_start: WarmStart, stopping: Stopping) -> Steps:
    """Yield certified iterates until one component would contain half of the coordinates, or progress stalls."""
    n, size = problem.X.shape
    yield 7.5e3 * float(size) ** 2 if size > n else 0.0  # a screening of pairs, most of which are beyond their bound
    split, tol = block_problem(problem), stopping.tol
    m, start = len(split.c), warm_start

    # 1. V is diagonal, with smaller weights of unpenalised coordinates, or that of a warm start, certified first.
    labels = np.arange(m) if start.U is None else split.labels_of(start.U)
    blocks, f = Blocks(split, labels), split.F.shape[1]
    point = BlockPoint(np.full(m, 1.0 / max(m, 1) ** 0.5), np.zeros((m, f)), 0.1 * np.eye(f), [])
    point = point if start.U is None else block_point(blocks, start.U)
    C, done, steps = blocks.restrict_multiplier(start.C), 0, 20 if start.U is None else 0
    best, since = np.inf, 0  # smallest gap of the block diagonal problem, and rounds since then
    while done < stopping.max_iter:
        # 2. Steps on the blocks; their dual proves a bound on the problem without the pairs of different blocks.
        if steps:
            point, C, taken = take_lbfgs_steps(blocks, point, C, min(steps, stopping.max_iter - done), tol / 2)
            done += taken
            yield 0.0
        point, value, q = BlockParametrization(blocks, point).rescale(point)
        t, u, _ = found = blocks.best_dual(q, C)
        gap = value - bound_at(t, problem.mean_inverse(u))
        best, since = (gap, 0) if gap < 0.95 * best else (best, since + 1)
        U = blocks.factor(*point)
        iterate = Iterate(
            U=U,
            n_iter=done,
            dual=DualPoint(C=blocks.multiplier(C)),
            point=PrimalPoint(U, value, q),
            bounds=Bracket(0.0, value),
        )
        close = gap <= (max(0.02, tol) if steps else tol)
        if not close or m > 500:  # the value is reported before a slow screening of pairs
            yield iterate
        if close:
            # 3. Screen all pairs, and prove the bound; otherwise the pairs that violate it most join their blocks.
            verdict = certify_blocks(blocks, found, 3)
            yield iterate._replace(bounds=Bracket(max(verdict.lower or 0.0, 0.0), value))
            proved = verdict.lower is not None and value - verdict.lower <= tol
            if len(verdict.violated) and not proved:
                inside = verdict.pairs.take(np.flatnonzero(np.isin(verdict.pairs.j, verdict.violated)))
                most = np.argsort(-np.abs(inside.excess), kind="stable")[: max(20, len(verdict.violated) // 10)]
                joins = inside.take(most)
                labels = join_labels(labels, joins.j, joins.k)
                # A pair is expected to join if |G_jk| exceeds its bound by half: blocks of most coordinates do not pay.
                far = verdict.pairs.take(np.flatnonzero(np.abs(verdict.pairs.G) > 1.5 * verdict.pairs.bound))
                if 2 * np.bincount(join_labels(labels, far.j, far.k)).max() > m:
                    return
                blocks, point, C = merge_blocks(blocks, point, C, labels, u, t)
                best, since = np.inf, 0
        if since >= 8 and m <= 1000:  # one block is better, or nothing is
            return
        point = point if steps else perturb_point(blocks, point)
        steps = 60


def lagrangian_of(blocks: Blocks, point: BlockPoint, C: list[Array]) -> Lagrangian:
    """Return the augmented Lagrangian of a block diagonal V with the shapes of a point."""
    pairs = zip(blocks.members, C, strict=True)
    multipliers = [Multiplier(blocks.problem.pair_penalty_of(block), C0, capped=False) for block, C0 in pairs]
    return Lagrangian(BlockParametrization(blocks, point), multipliers)


def take_lbfgs_steps(
    blocks: Blocks, point: BlockPoint, C: list[Array], steps: int, tol: float
) -> tuple[BlockPoint, list[Array], int]:
    """Return the point and the multipliers after at most this many L-BFGS steps, fewer if the gap reaches tol."""
    parametrization, lagrangian = BlockParametrization(blocks, point), lagrangian_of(blocks, point, C)

    def is_converged(entries: Array) -> bool:
        _, value, q = parametrization.rescale(point.like(entries))
        t, u, _ = blocks.best_dual(q, lagrangian.multiplier(entries))
        return value - bound_at(t, blocks.problem.problem.mean_inverse(u)) <= tol

    start = lagrangian.point(parametrization.rescale(point)[0].flat())
    at, n_steps = run_multiplier_method(lagrangian, start, steps, Memory(), is_converged)
    if n_steps == steps and not is_converged(at.U):
        at = lagrangian.update(at)
    found = point.like(at.U)
    found = found._replace(factors=[principal_columns(U, rtol=1e-12) for U in found.factors])
    return found, lagrangian.multiplier(at.U), max(n_steps, 1)


def block_point(blocks: Blocks, U: Factor) -> BlockPoint:
    """Return the block diagonal V of a sparse factor.

    A single coordinate has one intercept; the rest of its free part is not needed at an optimum.
    """
    problem, rows = blocks.problem, scipy.sparse.csr_array(U)
    penalized, free = rows[problem.penalized], np.linalg.lstsq(problem.inner.W, dense(rows[problem.free]))[0]
    weights = np.sqrt(np.asarray(penalized.multiply(penalized).sum(axis=1)).ravel())
    intercepts, factors = (penalized @ free.T) * inverse_or_one(weights)[:, None], []
    for block in blocks.members:
        inside = penalized[block]
        columns = np.unique(inside.indices)
        factors.append(np.vstack([dense(inside[:, columns]), free[:, columns]]))
    alone = np.flatnonzero(np.asarray(abs(penalized).sum(axis=0)).ravel() == 0.0)
    free_factor = psd_factor(free[:, alone] @ free[:, alone].T) if len(free) else np.zeros((0, 0))
    return BlockPoint(weights[blocks.singles], intercepts[blocks.singles], free_factor, factors)


def perturb_point(blocks: Blocks, point: BlockPoint) -> BlockPoint:
    """Return a warm start with positive weights and full-rank blocks, so that every coordinate can enter again.

    Weights are at least a fifth of the largest: from a thousandth, growth takes more steps than a cold start.
    """
    weights, intercepts, free_factor, factors = point
    factors = [perturb_to_full_rank(U, len(block)) for U, block in zip(factors, blocks.members, strict=True)]
    free_factor = perturb_to_full_rank(free_factor, intercepts.shape[1])
    return BlockPoint(raise_small_weights(weights, 0.2), intercepts, free_factor, factors)


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
    return principal_columns(np.hstack([U, np.eye(len(U), s) * small]))


def merge_blocks(
    old: Blocks, point: BlockPoint, C: list[Array], labels: Labels, u: Array, t: float
) -> tuple[Blocks, BlockPoint, list[Array]]:
    """Return coarser blocks with these labels, V nearly unchanged, its factors at full rank, and the multipliers.

    Those between the old blocks are C = M/t - A, projected onto the dual set.
    """
    problem, blocks = old.problem, Blocks(old.problem, labels)
    before = point._replace(weights=raise_small_weights(point.weights, 0.01))
    merged = block_point(blocks, old.factor(*before))
    multipliers = blocks.restrict_multiplier(old.multiplier(C))
    for i, (block, data) in enumerate(zip(blocks.members, blocks.data, strict=True)):
        s, before_labels = len(block), old.labels[block]
        M, right = data.columns(slice(s)).weighted_gram(u), blocks.right[i][:s, :s]
        guess = problem.pair_penalty_of(block).project_safe(M / t - right)
        multipliers[i] = np.where(before_labels[:, None] == before_labels, multipliers[i], guess)
    factors = [perturb_to_full_rank(U, len(block)) for U, block in zip(merged.factors, blocks.members, strict=True)]
    return blocks, merged._replace(factors=factors), multipliers
