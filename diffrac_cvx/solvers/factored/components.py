"""Block-decomposition solver for sparse problems: V starts diagonal, and blocks are merged if the certificate fails."""

from functools import partial
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import scipy.sparse

from diffrac_cvx.certificates.block_problem import block_problem, join_labels, labels_of_pattern
from diffrac_cvx.certificates.direction_bounds import Blocks, DualPoint, certify_blocks
from diffrac_cvx.certificates.proof import TRIVIAL, bound_at
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import Factor, dense, diagonal
from diffrac_cvx.points.linear_algebra import (
    LARGE_SIZE,
    cholesky,
    inverse_or_one,
    principal_columns,
    psd_factor,
    row_products,
    times,
)
from diffrac_cvx.problem.direction_problem import DirectionProblem, PrimalPoint
from diffrac_cvx.problem.result import Labels
from diffrac_cvx.solvers.driver import Iterate, Stopping, WarmStart
from diffrac_cvx.solvers.factored.augmented_lagrangian import (
    Lagrangian,
    Memory,
    Metric,
    Multiplier,
    approximate_top_eigenvalue,
    inner,
    run_multiplier_method,
    shrunk_inverse,
)
from diffrac_cvx.solvers.race import Pause, Steps


class BlockPoint(NamedTuple):
    """Block diagonal V."""

    weights: Array  # (m1,), of the single coordinates; each is one column of the factor
    intercepts: Array  # (m1, f), entries of these columns on the unpenalised coordinates
    free_factor: Array  # (f, f), factor of the part of V on the unpenalised coordinates only
    factors: list[Array]  # (s + f, r) each, of the blocks

    @property
    def parts(self) -> list[Array]:
        return [self.weights, self.intercepts, self.free_factor, *self.factors]

    def times(self, multiple: float) -> "BlockPoint":
        """Return the point with V multiplied by the square of a factor."""
        return self.like(self.flat() * multiple)

    def flat(self) -> Array:
        return np.concatenate([part.ravel() for part in self.parts])

    def like(self, entries: Array) -> "BlockPoint":
        """Return a point of the same shapes from its entries."""
        ends = accumulate(part.size for part in self.parts)
        pieces = (entries[end - one.size : end].reshape(one.shape) for end, one in zip(ends, self.parts, strict=True))
        first, second, third, *others = pieces
        return BlockPoint(first, second, third, others)


class BlockLagrangian(Lagrangian):
    """Augmented Lagrangian at a block diagonal V, as a function of all entries of a `BlockPoint`.

    Single coordinates have no multiplier.
    """

    def __init__(self, blocks: Blocks, shape: BlockPoint, C: list[Array]) -> None:
        super().__init__([Multiplier(one, C0, capped=False) for one, C0 in zip(blocks.penalties, C, strict=True)])
        self.blocks, self.split, self.shape = blocks, blocks.problem, shape
        self.singles, self.sizes = blocks.singles, [len(block) for block in blocks.members]
        self.diagonal, self.cross = self.split.diagonal[self.singles], self.split.cross[self.singles]

    def quadratic_forms(self, point: BlockPoint, products: list[Array]) -> Array:
        """Return q from the point and the products of the blocks' data with their factors."""
        weights, intercepts, F = point.weights, point.intercepts, self.split.F
        q = self.split.squares @ self.expand(weights**2)
        if F.size:
            q += 2 * row_products(F, self.split.X @ self.expand(weights[:, None] * intercepts))
            q += row_products(F @ (intercepts.T @ intercepts + point.free_factor @ point.free_factor.T), F)
        for XU in products:
            q += row_products(XU, XU)
        return np.asarray(np.maximum(q, 0.0))

    def expand(self, values: Array) -> Array:
        """Return values of the single coordinates as values of all coordinates, 0 in the blocks."""
        full = np.zeros((self.split.X.shape[1], *values.shape[1:]))
        full[self.singles] = values
        return full

    def products(self, point: BlockPoint) -> list[Array]:
        """Return the products of the blocks' data with their factors, (n, r) each."""
        return [data @ U for data, U in zip(self.blocks.data, point.factors, strict=True)]

    def factors(self, params: Array) -> list[Array]:
        """Return the factors of the blocks on their own coordinates."""
        return [U[:s] for U, s in zip(self.shape.like(params).factors, self.sizes, strict=True)]

    def value_and_gradient(self, params: Array, products: list[Array]) -> tuple[float, Array]:
        """Return the value and the gradient in all entries."""
        point = self.shape.like(params)
        data_products = self.products(point)
        roots = np.sqrt(self.quadratic_forms(point, data_products))
        u = np.where(roots > 0.0, inverse_or_one(roots), 0.0)
        value, pieces = self.single_part(point, u)
        value += 1.0 - 2.0 * float(roots.mean())
        for i, (U, XU, CU) in enumerate(zip(point.factors, data_products, products, strict=True)):
            KU = times(self.blocks.right[i], U)
            KU[: len(CU)] += CU
            value += inner(U, KU)
            pieces.append((2 * KU - 2 * self.blocks.data[i].rmatvec(u[:, None] * XU)).ravel())
        return value, np.concatenate(pieces)

    def single_part(self, point: BlockPoint, u: Array) -> tuple[float, list[Array]]:
        """Return the part of tr VB outside the blocks, and the flat gradients in weights, intercepts, free factor."""
        weights, intercepts, free_factor, _ = point
        F = self.split.F
        slope = 2 * weights * (self.diagonal - self.split.weighted_squares(u)[self.singles])
        if not F.size:
            return self.single_cost(point), [slope, intercepts.ravel(), free_factor.ravel()]
        uF = u[:, None] * F
        between, MF = self.cross - self.split.X.rmatvec(uF)[self.singles], F.T @ uF / len(F)
        slope += 2 * row_products(between, intercepts)
        slopes = 2 * (weights[:, None] * between + intercepts - intercepts @ MF)
        return self.single_cost(point), [slope, slopes.ravel(), 2 * (free_factor - MF @ free_factor).ravel()]

    def single_cost(self, point: BlockPoint) -> float:
        """Return the part of tr VB outside the blocks."""
        weights, intercepts, free_factor, _ = point
        between = np.sum(weights * row_products(self.cross, intercepts))
        return float(np.sum(self.diagonal * weights**2) + np.sum(intercepts**2) + np.sum(free_factor**2) + 2 * between)

    def multiplier_gradient(self, products: list[Array]) -> Array:
        """Return 2 C U on the blocks, 0 elsewhere."""
        gradient = self.shape.times(0.0)
        for U, CU in zip(gradient.factors, products, strict=True):
            U[: len(CU)] = 2 * CU
        return gradient.flat()

    def metric(self, params: Array) -> Metric:
        """Return the map Z -> Z (U'U + shrinkage)^-1 on the penalised coordinates of each block, as for one block."""
        point, shrinkage = self.shape.like(params), 0.03  # V is diagonal at first, and its entries have to diverge
        grams = [times(U.T, U) for U in point.factors]
        top = max(float(np.max(point.weights**2, initial=1e-300)), *(approximate_top_eigenvalue(G) for G in grams), 0.0)
        single = 1.0 / (point.weights**2 / top + shrinkage)
        rights = [shrunk_inverse(G, top, shrinkage) for G in grams]

        def apply(Z: Array) -> Array:
            parts = self.shape.like(Z)
            factors = [
                np.vstack([times(part[:s], right), part[s:]])
                for part, right, s in zip(parts.factors, rights, self.sizes, strict=True)
            ]
            return BlockPoint(parts.weights * single, parts.intercepts, parts.free_factor, factors).flat()

        return apply

    def has_gap(self, tol: float, params: Array) -> bool:
        """Return whether the gap of the block diagonal problem is at most tol."""
        _, value, q = self.rescale(self.shape.like(params))
        t, u, _ = self.blocks.best_dual(q, self.multiplier(params))
        return value - bound_at(t, self.split.problem.mean_inverse(u)) <= tol

    def cost(self, point: BlockPoint) -> float:
        """Return tr VA + sum_ij c_i c_j |V_ij|."""
        total = self.single_cost(point)
        for U, right, penalty in zip(point.factors, self.blocks.right, self.blocks.penalties, strict=True):
            V = times(U[: len(penalty.c)], U[: len(penalty.c)].T)
            total += inner(U, times(right, U)) + penalty.support_function(V)
        return total

    def rescale(self, point: BlockPoint) -> tuple[BlockPoint, float, Array]:
        """Return the optimal multiple of a point, its objective in (15), and q."""
        q = self.quadratic_forms(point, self.products(point))
        mean_sqrt, cost = float(np.mean(np.sqrt(q))), self.cost(point)
        if mean_sqrt == 0.0 or cost == 0.0:
            return point, 1.0, q
        return point.times(mean_sqrt / cost), max(1.0 - mean_sqrt**2 / cost, 0.0), q * (mean_sqrt / cost) ** 2


def is_blockwise_applicable(problem: DirectionProblem, warm_start: WarmStart) -> bool:
    """Return whether the block strategy applies: few coordinates without l1 weight; a cold or block diagonal start."""
    free = int(np.sum(problem.c == 0.0))
    applies = problem.pair_penalty.splits_into_blocks and free <= 8 and len(problem.c) - free >= 4
    return applies and (warm_start.U is None or is_block_diagonal(problem, warm_start.U))


def is_block_diagonal(problem: DirectionProblem, U: Factor) -> bool:
    """Return whether UU' splits the penalised coordinates into components, none with half of them or more."""
    rows = scipy.sparse.csr_array(U)[problem.c > 0.0]
    if rows.shape[0] == 0 or 2 * rows.count_nonzero() > np.prod(rows.shape):
        return False
    labels = labels_of_pattern(rows)
    return bool(2 * np.bincount(labels).max() < len(labels))


def block_iterates(problem: DirectionProblem, warm_start: WarmStart, stopping: Stopping) -> Steps:
    """Yield certified iterates until one component would contain half of the coordinates, or progress stalls."""
    n, size = problem.X.shape
    screening = 7.5e3 * float(size) ** 2 if size > n else 0.0  # operations; most pairs exceed their bound
    yield Pause(screening)
    split = block_problem(problem)
    m, start = len(split.c), warm_start

    # 1.  Start with a diagonal V, with smaller weights of unpenalised coordinates, or with a warm start, which is
    # certified first.  If there are few pairs, screen them early, because most coordinates may be in one component.
    labels = np.arange(m) if start.U is None else split.labels_of(start.U)
    blocks, f = Blocks(split, labels), split.F.shape[1]
    point = BlockPoint(np.full(m, 1.0 / max(m, 1) ** 0.5), np.zeros((m, f)), 0.1 * np.eye(f), [])
    point = point if start.U is None else block_point(blocks, start.U)
    C, done, steps = blocks.restrict_multiplier(start.C), 0, (20 if m <= 240 else 60) if start.U is None else 0
    best, since = np.inf, 0  # smallest gap of the block diagonal problem, and rounds since then
    while done < stopping.max_iter:
        # 2. Steps on the blocks; their dual proves a bound on the problem without pairs between blocks.
        lagrangian = BlockLagrangian(blocks, point, C)
        point, value, q = lagrangian.rescale(point)
        tol = stopping.tolerance(value)
        if steps:
            steps, is_converged = min(steps, stopping.max_iter - done), partial(lagrangian.has_gap, tol / 2)
            at, n_steps = run_multiplier_method(
                lagrangian, lagrangian.point(point.flat()), steps, Memory(), is_converged
            )
            if n_steps == steps and not is_converged(at.U):
                at = lagrangian.update(at)
            point, C, done = point.like(at.U), lagrangian.multiplier(at.U), done + max(n_steps, 1)
            point = point._replace(factors=[principal_columns(U, rtol=1e-12) for U in point.factors])
            yield Pause()
            point, value, q = lagrangian.rescale(point)
        t, u, _ = found = blocks.best_dual(q, C)
        gap = value - bound_at(t, problem.mean_inverse(u))
        best, since = (gap, 0) if gap < 0.95 * best else (best, since + 1)
        U = blocks.factor(*point)
        iterate = Iterate(U, done, DualPoint(C=blocks.multiplier(C)), PrimalPoint(U, value, q), TRIVIAL)
        close = gap <= (max(0.02, tol) if steps else tol)
        if not close or m > 500:  # the value is reported before a slow screening of pairs
            yield iterate
        if close:
            # 3. Screen all pairs, and prove the bound; otherwise the pairs that violate it most join their blocks.
            verdict = certify_blocks(blocks, found, 3)
            yield iterate._replace(bound=verdict.bound or TRIVIAL)
            proved = verdict.bound is not None and value - verdict.bound.lower <= tol
            if len(verdict.violated) and not proved:
                inside = verdict.pairs.take(np.flatnonzero(np.isin(verdict.pairs.j, verdict.violated)))
                most = np.argsort(-np.abs(inside.excess), kind="stable")[: max(20, len(verdict.violated) // 10)]
                joins = inside.take(most)
                labels = join_labels(labels, joins.j, joins.k)
                # A pair is expected to join if |G_jk| exceeds its bound by half; a block of most coordinates is not
                # worthwhile.
                likely_pairs = verdict.pairs.take(np.flatnonzero(np.abs(verdict.pairs.G) > 1.5 * verdict.pairs.bound))
                if 2 * np.bincount(join_labels(labels, likely_pairs.j, likely_pairs.k)).max() > m:
                    return
                blocks, point, C = merge_blocks(blocks, point, C, labels, u, t)
                best, since = np.inf, 0
        if since >= 8 and m <= 1000:  # then one block is likely to be faster
            return
        if not steps:
            # Raise the weights and the rank of the blocks, so that every coordinate can enter again.  Growth from a
            # thousandth of the largest weight would take more steps than a cold start.
            weights, intercepts, free_factor, factors = point
            factors = [perturb_to_full_rank(U, len(block)) for U, block in zip(factors, blocks.members, strict=True)]
            free_factor = perturb_to_full_rank(free_factor, intercepts.shape[1])
            point = BlockPoint(raise_small_weights(weights, 0.2), intercepts, free_factor, factors)
        steps = 60


def block_point(blocks: Blocks, U: Factor) -> BlockPoint:
    """Return the block diagonal V of a sparse factor.

    A single coordinate has one intercept on the unpenalised coordinates: an optimum needs no more columns for it.
    """
    problem, rows = blocks.problem, scipy.sparse.csr_array(U)
    penalized, free = rows[problem.penalized], np.linalg.lstsq(problem.inner.W, dense(rows[problem.free]))[0]
    weights = np.sqrt(diagonal(penalized))
    intercepts, factors = (penalized @ free.T) * inverse_or_one(weights)[:, None], []
    for block in blocks.members:
        inside = penalized[block]
        columns = np.unique(inside.indices)
        factors.append(np.vstack([dense(inside[:, columns]), free[:, columns]]))
    alone = np.flatnonzero(np.asarray(abs(penalized).sum(axis=0)).ravel() == 0.0)
    free_factor = psd_factor(free[:, alone] @ free[:, alone].T) if len(free) else np.zeros((0, 0))
    return BlockPoint(weights[blocks.singles], intercepts[blocks.singles], free_factor, factors)


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

    The multipliers between the old blocks are C = M/t - A, projected onto the dual set.
    """
    blocks = Blocks(old.problem, labels)
    before = point._replace(weights=raise_small_weights(point.weights, 0.01))
    merged = block_point(blocks, old.factor(*before))
    multipliers = blocks.restrict_multiplier(old.multiplier(C))
    for i, (block, data) in enumerate(zip(blocks.members, blocks.data, strict=True)):
        s, before_labels = len(block), old.labels[block]
        M, right = data.columns(slice(s)).weighted_gram(u), blocks.right[i][:s, :s]
        guess = blocks.penalties[i].project_safe(M / t - right)
        multipliers[i] = np.where(before_labels[:, None] == before_labels, multipliers[i], guess)
    factors = [perturb_to_full_rank(U, len(block)) for U, block in zip(merged.factors, blocks.members, strict=True)]
    return blocks, merged._replace(factors=factors), multipliers
