"""Solve a sparse problem by components: V diagonal first, then blocks where the certificate asks for them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse

from diffrac_cvx.certificates.block_bounds import (
    BlockRatios,
    Blocks,
    Claim,
    Finding,
    Pairs,
    attempt,
    eliminate,
    empty_pairs,
    larger_t,
    look_again,
    prove,
)
from diffrac_cvx.certificates.block_problem import BlockProblem, Partition, block_problem
from diffrac_cvx.certificates.direction_bounds import Dual
from diffrac_cvx.certificates.direction_problem import DirectionProblem, Scaled
from diffrac_cvx.factors import dense, is_sparse
from diffrac_cvx.inputs import Array
from diffrac_cvx.linalg import inverse_or_one, principal_columns, row_products
from diffrac_cvx.result import Bracket, Components, Labels
from diffrac_cvx.solvers.stopping import Iterate, Start

STIFFNESS = 60.0  # of the augmented Lagrangian, times the size of a block
STEPS = 60  # L-BFGS steps a round
MOST_FREE = 8  # coordinates without an l1 weight, each of which is in every block
LEAST_PENALISED = 4
CHECK = 10  # L-BFGS steps between looks at the gap, while blocks are at most QUICK
QUICK = 64
FAR = 1.5  # times c_j c_k: pairs so far beyond their box will be joined
CLOSE = 0.02  # gap of the block diagonal problem below which pairs are looked at
TRIES = 2  # of larger t where the certificate fails
SMALL = 0.01  # of the largest weight: what a single coordinate gets at least when blocks are joined
WARM = 0.2  # the same in a warm start: from 1e-3 it took twice as many steps to grow, and more than a cold start

Poll = Callable[[], None]


class Point(NamedTuple):
    """A block diagonal V: weights (m1,) and intercepts (m1, f) of single coordinates, factors (s + f, r) of blocks."""

    weights: Array
    intercepts: Array
    factors: list[Array]

    def times(self, multiple: float) -> "Point":
        """Return the point with V times the square of a multiple."""
        return Point(self.weights * multiple, self.intercepts * multiple, [U * multiple for U in self.factors])

    def flat(self) -> Array:
        """Return all entries in one vector."""
        return np.concatenate([self.weights, self.intercepts.ravel(), *(U.ravel() for U in self.factors)])

    def like(self, entries: Array) -> "Point":
        """Return a point of the same shapes from its entries."""
        m, f = self.intercepts.shape
        sizes = np.cumsum([m, m * f, *(U.size for U in self.factors)])
        parts = np.split(entries, sizes[:-1])
        factors = [part.reshape(U.shape) for part, U in zip(parts[2:], self.factors, strict=True)]
        return Point(parts[0], parts[1].reshape(m, f), factors)


class BlockLagrangian:
    r"""Evaluate the augmented Lagrangian of (15) at a block diagonal V: the l1 part inside blocks by its multipliers.

    As `Lagrangian`, min over the point of 1 - 2 g + tr VB + sum_b max_C [tr C V_b - |C - C0|^2 / (2 sigma)]; the single
    coordinates have no multiplier.
    """

    def __init__(self, blocks: Blocks, C0: list[Array]) -> None:
        self.blocks, self.problem, self.partition = blocks, blocks.problem, blocks.partition
        self.C0 = C0
        self.box = [self.problem.box_of(block) for block in self.partition.blocks]
        self.sigma = [STIFFNESS * len(box) * box for box in self.box]
        self.inverse_sigma = [np.where(sigma > 0.0, inverse_or_one(sigma), 0.0) for sigma in self.sigma]
        self.n, self.m = self.problem.X.shape
        self.diagonal = self.problem.diagonal[self.partition.singles]
        self.cross = self.problem.cross[self.partition.singles]

    def energies(self, point: Point, products: list[Array]) -> Array:
        """Return q from the point and the products of the blocks' data with their factors."""
        weights, intercepts, F = point.weights, point.intercepts, self.problem.F
        q = self.problem.squares @ self.spread(weights**2)
        if F.shape[1]:
            q += 2 * row_products(F, self.problem.X @ self.spread(weights[:, None] * intercepts))
            q += row_products(F @ (intercepts.T @ intercepts), F)
        for XU in products:
            q += row_products(XU, XU)
        return np.maximum(q, 0.0)

    def spread(self, values: Array) -> Array:
        """Return values of the single coordinates as values of all, 0 in the blocks."""
        full = np.zeros((self.m, *values.shape[1:]))
        full[self.partition.singles] = values
        return full

    def products(self, point: Point) -> list[Array]:
        """Return the products of the blocks' data with their factors, (n, r) each."""
        return [data @ U for data, U in zip(self.blocks.data, point.factors, strict=True)]

    def multipliers(self, point: Point) -> list[Array]:
        """Return the maximisers C at a point."""
        return [
            np.clip(C0 + sigma * (U[: len(C0)] @ U[: len(C0)].T), -box, box)
            for C0, sigma, box, U in zip(self.C0, self.sigma, self.box, point.factors, strict=True)
        ]

    def value_and_gradient(self, point: Point) -> tuple[float, Array]:
        """Return the value and the gradient in all entries."""
        products = self.products(point)
        roots = np.sqrt(self.energies(point, products))
        u = np.where(roots > 0.0, inverse_or_one(roots), 0.0)
        value, slope, slopes = self.single_part(point, u)
        value += 1.0 - 2.0 * float(roots.mean())
        pieces = [slope, slopes.ravel()]
        for i, (U, XU, C) in enumerate(zip(point.factors, products, self.multipliers(point), strict=True)):
            s = len(C)
            BU = self.blocks.right[i] @ U
            BU[:s] += C @ U[:s]
            change = C - self.C0[i]
            value += float(np.sum(U * BU) - np.sum(change * change * self.inverse_sigma[i]) / 2)
            pieces.append((2 * BU - (2 / self.n) * (self.blocks.data[i].T @ (u[:, None] * XU))).ravel())
        return value, np.concatenate(pieces)

    def single_part(self, point: Point, u: Array) -> tuple[float, Array, Array]:
        """Return the single coordinates' part of tr VB, and the slopes in weights and intercepts."""
        weights, intercepts, _ = point
        singles, F = self.partition.singles, self.problem.F
        slope = 2 * weights * (self.diagonal - (u @ self.problem.squares)[singles] / self.n)
        value = float(np.sum(self.diagonal * weights**2))
        if not F.shape[1]:
            return value, slope, np.zeros_like(intercepts)
        uF = u[:, None] * F
        tilt = self.cross - (self.problem.X.T @ uF)[singles] / self.n
        value += float(2 * np.sum(weights * row_products(self.cross, intercepts)) + np.sum(intercepts**2))
        slope += 2 * row_products(tilt, intercepts)
        slopes = 2 * (weights[:, None] * tilt + intercepts - intercepts @ (F.T @ uF) / self.n)
        return value, slope, slopes

    def cost(self, point: Point) -> float:
        """Return tr VA + sum_ij c_i c_j |V_ij|."""
        weights, intercepts, _ = point
        total = float(np.sum(self.diagonal * weights**2) + np.sum(intercepts**2))
        total += float(2 * np.sum(weights * row_products(self.cross, intercepts)))
        for U, right, box in zip(point.factors, self.blocks.right, self.box, strict=True):
            V = U[: len(box)] @ U[: len(box)].T
            total += float(np.sum(U * (right @ U)) + np.sum(box * np.abs(V)))
        return total

    def best_scale(self, point: Point) -> tuple[Point, float, Array]:
        """Return the best multiple of a point, its objective in (15), and q."""
        q = self.energies(point, self.products(point))
        gain, cost = float(np.sqrt(q).mean()), self.cost(point)
        if gain == 0.0 or cost == 0.0:
            return point, 1.0, q
        return point.times(gain / cost), max(1.0 - gain**2 / cost, 0.0), q * (gain / cost) ** 2

    def claim(self, point: Point, C: list[Array]) -> tuple[Point, Claim]:
        """Return a point at its best scale, and the ratios that bound the block diagonal problem from below."""
        point, value, q = self.best_scale(point)
        return point, Claim(self.blocks.ratios(q, C), q, value)

    def minimise(self, point: Point, steps: int, enough: float, poll: Poll) -> tuple[Point, int]:
        """Return the point after at most so many L-BFGS steps, fewer if the gap is small enough, and how many."""

        def flat(entries: Array) -> tuple[float, Array]:
            poll()
            return self.value_and_gradient(point.like(entries))

        taken = 0

        def look(intermediate_result: scipy.optimize.OptimizeResult) -> None:
            nonlocal taken
            taken += 1
            if taken % CHECK == 0 and self.partition.largest <= QUICK:
                current = point.like(intermediate_result.x)
                _, claim = self.claim(current, self.multipliers(current))
                if claim.gap <= enough:
                    raise StopIteration

        found = scipy.optimize.minimize(
            flat,
            point.flat(),
            jac=True,
            method="L-BFGS-B",
            callback=look,
            options={"maxcor": 10, "maxiter": steps, "maxfun": 3 * steps, "ftol": 0.0, "gtol": 1e-14},
        )
        point = point.like(found.x)
        return point._replace(factors=[principal_columns(U, rtol=1e-12) for U in point.factors]), max(int(found.nit), 1)


@dataclass
class State:
    """Where the solver is: the partition's blocks, the point, its multipliers, and what is known of the pairs."""

    blocks: Blocks
    point: Point
    C: list[Array]
    near: Pairs | None = None


def pays(problem: DirectionProblem, first: Start) -> bool:
    """Whether a solution by components is tried: few coordinates without an l1 weight, no start that is one block."""
    free = int(np.sum(problem.c == 0.0))
    sparse_start = first.U is None or is_sparse(first.U)
    return sparse_start and free <= MOST_FREE and len(problem.c) - free >= LEAST_PENALISED


def iterates(problem: DirectionProblem, tol: float, max_iter: int, first: Start, poll: Poll) -> Iterator[Iterate]:
    """Yield points with their certificates, until half of the coordinates should be in one component."""
    split = block_problem(problem)
    state = diagonal_start(split) if first.U is None else warm_start(split, first)
    done, steps = 0, 0 if is_sparse(first.U) else STEPS
    while done < max_iter:
        lagrangian = BlockLagrangian(state.blocks, state.C)
        if steps:
            point = lagrangian.best_scale(state.point)[0]
            state.point, taken = lagrangian.minimise(point, min(steps, max_iter - done), tol / 2, poll)
            state.C = lagrangian.multipliers(state.point)
            done += taken
        state.point, claim = lagrangian.claim(state.point, state.C)
        look = Look(None, None)
        if claim.gap <= (max(CLOSE, tol) if steps else tol):
            look = look_at_pairs(state, claim, tol, poll)
        yield make_iterate(split, state, done, claim, look)
        steps = STEPS
        if look.joins is not None:
            if is_giant(state, look.joins):
                return
            state = join(state, claim.ratios, look.joins)


def diagonal_start(problem: BlockProblem) -> State:
    """Return V diagonal, all coordinates with the same weight."""
    m, f = problem.X.shape[1], problem.F.shape[1]
    point = Point(np.full(m, 1.0 / max(m, 1) ** 0.5), np.zeros((m, f)), [])
    return State(Blocks(problem, Partition(np.arange(m))), point, [])


def warm_start(problem: BlockProblem, first: Start) -> State:
    """Return the state of a sparse factor and its multipliers; every coordinate gets a small weight at least."""
    rows = scipy.sparse.csr_array(first.U)
    penalised, free = rows[problem.penalised], np.linalg.lstsq(problem.basis, dense(rows[problem.free]))[0]
    partition = problem.partition_of(first.U)
    weights = np.sqrt(np.asarray(penalised.multiply(penalised).sum(axis=1)).ravel())
    # One intercept for each single coordinate: what is left of the free part is not needed at an optimum.
    intercepts = (penalised @ free.T) * inverse_or_one(weights)[:, None]
    weights, factors = at_least(weights, WARM), []
    for block in partition.blocks:
        inside = penalised[block]
        used = np.unique(inside.indices)
        factors.append(full_rank(np.vstack([dense(inside[:, used]), free[:, used]]), len(block)))
    point = Point(weights[partition.singles], intercepts[partition.singles], factors)
    return State(Blocks(problem, partition), point, problem.restrict_multiplier(partition, first.C))


def at_least(weights: Array, share: float) -> Array:
    """Return weights of single coordinates, none below a share of the largest, so that each can come back."""
    least = share * np.abs(weights).max(initial=0.0)
    return np.where(np.abs(weights) < least, least, weights)


def full_rank(U: Array, s: int) -> Array:
    """Return a factor, whose first s rows are a block's, with a small part of full rank on them."""
    extra = np.eye(len(U), s) * (1e-2 * np.sqrt(np.sum(U**2) / s))
    return principal_columns(np.hstack([U, extra]))


class Look(NamedTuple):
    """What the pairs in different groups gave: a bound with what it proves, or pairs to be joined."""

    bound: Finding | None
    joins: Pairs | None


def look_at_pairs(state: State, claim: Claim, tol: float, poll: Poll) -> Look:
    """Look at the pairs that were near their box last; at all where these are in order and the gap is small."""
    if state.near is not None:
        found = look_at_near(state, claim, poll)
        t = larger_t(state.blocks, claim.ratios, claim.least_t, found.failures)
        if len(found.failing) and claim.value - claim.bound(t) > tol:
            return Look(None, strongest(found))
        if claim.gap > tol:
            return Look(None, None)
    found = prove(state.blocks, claim, TRIES, poll)
    state.near = found.pairs
    done = found.lower is not None and claim.value - found.lower <= tol
    return Look(found, None if done or not len(found.failing) else strongest(found))


def look_at_near(state: State, claim: Claim, poll: Poll) -> Finding:
    """Return where the pairs that were near their box last violate the certificate now."""
    at = eliminate(state.blocks.problem, claim.ratios.u, claim.least_t)
    if at is None or state.near is None:
        return Finding(None, empty_pairs(), [], [])
    return attempt(state.blocks, claim, at, look_again(state.blocks.problem, at, state.near, poll), None, poll)


def strongest(found: Finding) -> Pairs:
    """Return the pairs furthest beyond their box, in the components where the certificate fails."""
    pairs = found.pairs.beyond()
    chosen = np.flatnonzero(np.isin(pairs.j, found.failing))
    order = np.argsort(-np.abs(pairs.excess[chosen]), kind="stable")
    return pairs.take(chosen[order[: max(20, len(found.failing) // 10)]])


def is_giant(state: State, joins: Pairs) -> bool:
    """Whether most coordinates are in one component, or will be: then blocks are no gain."""
    partition = state.blocks.partition.join(joins.j, joins.k)
    if state.near is not None:
        far = state.near.take(np.flatnonzero(np.abs(state.near.G) > FAR * state.near.side))
        partition = partition.join(far.j, far.k)
    return 2 * partition.largest > len(partition.labels)


def join(state: State, ratios: BlockRatios, pairs: Pairs) -> State:
    """Return the state with the groups of these pairs joined: V as it is, its factors at full rank."""
    problem, old = state.blocks.problem, state.blocks.partition
    partition = old.join(pairs.j, pairs.k)
    blocks = Blocks(problem, partition)
    m, f = problem.X.shape[1], problem.F.shape[1]
    weights, intercepts = np.zeros(m), np.zeros((m, f))
    weights[old.singles], intercepts[old.singles] = state.point.weights, state.point.intercepts
    weights = at_least(weights, SMALL)
    before = {int(old.labels[block[0]]): i for i, block in enumerate(old.blocks)}
    factors, multipliers = [], []
    for block, data in zip(partition.blocks, blocks.data, strict=True):
        s = len(block)
        box = problem.box_of(block)
        tilt = (ratios.u / ratios.largest - 1.0) / len(data)
        C = np.clip(data[:, :s].T @ (tilt[:, None] * data[:, :s]), -box, box)
        pieces = []
        for label in np.unique(old.labels[block]):
            place = np.flatnonzero(old.labels[block] == label)
            if int(label) in before:
                U = state.point.factors[before[int(label)]]
                C[np.ix_(place, place)] = state.C[before[int(label)]]
            else:
                j = block[place[0]]
                U = np.concatenate([weights[[j]], intercepts[j]])[:, None]
            piece = np.zeros((s + f, U.shape[1]))
            piece[place], piece[s:] = U[: len(place)], U[len(place) :]
            pieces.append(piece)
        factors.append(full_rank(np.hstack(pieces), s))
        multipliers.append(C)
    point = Point(weights[partition.singles], intercepts[partition.singles], factors)
    return State(blocks, point, multipliers, None if state.near is None else apart(state.near, partition))


def apart(pairs: Pairs, partition: Partition) -> Pairs:
    """Return the pairs that are still in different groups."""
    return pairs.take(np.flatnonzero(partition.labels[pairs.j] != partition.labels[pairs.k]))


def make_iterate(problem: BlockProblem, state: State, done: int, claim: Claim, look: Look) -> Iterate:
    """Return the state as an iterate of the whole problem."""
    partition = state.blocks.partition
    U = problem.factor(partition, *state.point)
    lower = 0.0 if look.bound is None or look.bound.lower is None else max(look.bound.lower, 0.0)
    return Iterate(
        U=U,
        n_iter=done,
        dual=Dual(C=problem.multiplier(partition, state.C)),
        scaled=Scaled(U, claim.value, claim.q),
        bounds=Bracket(min(lower, claim.value), claim.value),
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
