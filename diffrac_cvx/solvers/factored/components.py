"""Solve a sparse problem by components: V diagonal first, then blocks where the certificate asks for them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import scipy.linalg
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
from diffrac_cvx.factors import Sparse, dense, is_sparse
from diffrac_cvx.inputs import Array
from diffrac_cvx.linalg import inverse_or_one, principal_columns, psd_factor, row_products
from diffrac_cvx.result import Bracket, Components, Labels
from diffrac_cvx.solvers.factored.augmented_lagrangian import top_energy
from diffrac_cvx.solvers.factored.quasi_newton import Memory, Metric, inner, take_step
from diffrac_cvx.solvers.factored.quasi_newton import Point as Evaluated
from diffrac_cvx.solvers.stopping import Iterate, Start

STIFFNESS = 60.0  # of the augmented Lagrangian, times the size of a block
SHRINKAGE = 0.03  # in the metric of the steps
FIRST = 20  # L-BFGS steps before the pairs are looked at first, where that is cheap: one component may be most of all
STEPS = 60  # L-BFGS steps a round
MOST_FREE = 8  # coordinates without an l1 weight, each of which is in every block
LEAST_PENALISED = 4  # below, one block is as quick
CHEAP = 240  # coordinates up to which a look at all pairs costs no more than the steps between two looks
SLOW = 500  # coordinates from which on a look at all pairs may take seconds
MOST_NEAR = 20  # pairs a coordinate that are kept to be looked at again
CHECK = 10  # L-BFGS steps between looks at the gap, while blocks are at most QUICK
QUICK = 64
STALL = 8  # rounds without a smaller gap before the problem is left to the solver for one block, if it is not large
MOST_DENSE = 1000  # coordinates
FAR = 1.5  # times c_j c_k: pairs so far beyond their box will be joined
CLOSE = 0.02  # gap of the block diagonal problem below which pairs are looked at
TRIES = 2  # of larger t where the certificate fails
SMALL = 0.01  # of the largest weight: what a single coordinate gets at least when blocks are joined
REST = 0.1  # of the size of V: what the unpenalised coordinates start with
WARM = 0.2  # the same in a warm start: from 1e-3 it took twice as many steps to grow, and more than a cold start

Poll = Callable[[], None]


class Point(NamedTuple):
    """A block diagonal V.

    Attributes
    ----------
    weights, intercepts : (m1,) and (m1, f) array
        Of the single coordinates, a column of the factor each.
    rest : (f, f) array
        Factor of what V has on the unpenalised coordinates alone.
    factors : list of (s + f, r) arrays
        Those of the blocks.
    """

    weights: Array
    intercepts: Array
    rest: Array
    factors: list[Array]

    @property
    def parts(self) -> list[Array]:
        """All arrays."""
        return [self.weights, self.intercepts, self.rest, *self.factors]

    def times(self, multiple: float) -> "Point":
        """Return the point with V times the square of a multiple."""
        return from_parts([part * multiple for part in self.parts])

    def flat(self) -> Array:
        """Return all entries in one vector."""
        return np.concatenate([part.ravel() for part in self.parts])

    def like(self, entries: Array) -> "Point":
        """Return a point of the same shapes from its entries."""
        pieces, start = [], 0
        for part in self.parts:
            pieces.append(entries[start : start + part.size].reshape(part.shape))
            start += part.size
        return from_parts(pieces)


def from_parts(parts: list[Array]) -> Point:
    """Return the point with these arrays."""
    return Point(parts[0], parts[1], parts[2], parts[3:])


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
            q += row_products(F @ (intercepts.T @ intercepts + point.rest @ point.rest.T), F)
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
        value, pieces = self.single_part(point, u)
        value += 1.0 - 2.0 * float(roots.mean())
        for i, (U, XU, C) in enumerate(zip(point.factors, products, self.multipliers(point), strict=True)):
            s = len(C)
            BU = self.blocks.right[i] @ U
            BU[:s] += C @ U[:s]
            change = C - self.C0[i]
            value += float(np.sum(U * BU) - np.sum(change * change * self.inverse_sigma[i]) / 2)
            pieces.append((2 * BU - (2 / self.n) * (self.blocks.data[i].T @ (u[:, None] * XU))).ravel())
        return value, np.concatenate(pieces)

    def single_part(self, point: Point, u: Array) -> tuple[float, list[Array]]:
        """Return the part of tr VB outside the blocks, and the slopes in weights, intercepts and rest, each flat."""
        weights, intercepts, rest, _ = point
        singles, F = self.partition.singles, self.problem.F
        slope = 2 * weights * (self.diagonal - (u @ self.problem.squares)[singles] / self.n)
        value = float(np.sum(self.diagonal * weights**2))
        if not F.shape[1]:
            return value, [slope, intercepts.ravel(), rest.ravel()]
        uF = u[:, None] * F
        tilt, MF = self.cross - (self.problem.X.T @ uF)[singles] / self.n, F.T @ uF / self.n
        value += float(2 * np.sum(weights * row_products(self.cross, intercepts)))
        value += float(np.sum(intercepts**2) + np.sum(rest**2))
        slope += 2 * row_products(tilt, intercepts)
        slopes = 2 * (weights[:, None] * tilt + intercepts - intercepts @ MF)
        return value, [slope, slopes.ravel(), 2 * (rest - MF @ rest).ravel()]

    def cost(self, point: Point) -> float:
        """Return tr VA + sum_ij c_i c_j |V_ij|."""
        weights, intercepts, rest, _ = point
        total = float(np.sum(self.diagonal * weights**2) + np.sum(intercepts**2) + np.sum(rest**2))
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

    def at(self, point: Point) -> Evaluated:
        """Return the entries of a point in one vector, with the value and the gradient there."""
        return Evaluated(point.flat(), *self.value_and_gradient(point))

    def update(self, point: Point, at: Evaluated) -> Evaluated:
        """Take the maximisers C at a point for the multipliers; return its new value and gradient.

        The products with X are not needed again.
        """
        value, change = at.value, [np.zeros(sum(part.size for part in point.parts[:3]))]
        before, self.C0 = [self.distance(i, C) for i, C in enumerate(self.multipliers(point))], self.multipliers(point)
        for i, (U, old, new) in enumerate(zip(point.factors, self.C0, self.multipliers(point), strict=True)):
            s = len(new)
            slope = np.zeros_like(U)
            slope[:s] = 2 * (new - old) @ U[:s]
            value += inner((new - old) @ U[:s], U[:s]) - self.distance(i, new) + before[i]
            change.append(slope.ravel())
        return Evaluated(at.U, value, at.gradient + np.concatenate(change))

    def distance(self, i: int, C: Array) -> float:
        """Return |C - C0|^2 / (2 sigma) on a block."""
        change = C - self.C0[i]
        return inner(change, change * self.inverse_sigma[i]) / 2

    def metric(self, point: Point) -> Metric:
        """Return the map Z -> Z (U'U + shrinkage)^-1 on the penalised coordinates, block by block, as for one block."""
        tops = [float(np.max(point.weights**2, initial=0.0)), *(top_energy(U.T @ U) for U in point.factors)]
        top = max(*tops, 1e-300)
        single, sizes = 1.0 / (point.weights**2 / top + SHRINKAGE), [len(box) for box in self.box]
        right = [scipy.linalg.inv(U.T @ U / top + SHRINKAGE * np.eye(U.shape[1])) for U in point.factors]

        def apply(Z: Array) -> Array:
            parts = point.like(Z)
            factors = [
                np.vstack([part[:s] @ R, part[s:]]) for part, R, s in zip(parts.factors, right, sizes, strict=True)
            ]
            return Point(parts.weights * single, parts.intercepts, parts.rest, factors).flat()

        return apply

    def minimise(self, point: Point, steps: int, enough: float, poll: Poll) -> tuple[Point, int]:
        """Return the point after at most so many L-BFGS steps, fewer if the gap is small enough, and how many.

        The multipliers are updated as it goes; the memory of L-BFGS is kept.
        """

        def function(entries: Array) -> Evaluated:
            poll()
            return Evaluated(entries, *self.value_and_gradient(point.like(entries)))

        at, memory = self.at(point), Memory()
        for taken in range(1, steps + 1):
            if taken % CHECK == 1:
                metric = self.metric(point.like(at.U))
            new = take_step(function, at, memory, metric)
            if new is None and not self.partition.blocks:
                break
            at = at if new is None else new
            if taken % CHECK == 0 or new is None:
                current = point.like(at.U)
                if self.partition.largest <= QUICK and self.claim(current, self.multipliers(current))[1].gap <= enough:
                    break
                at = self.update(current, at)
        return point.like(at.U), taken


@dataclass
class State:
    """Where the solver is: the partition's blocks, the point, its multipliers, and what is known of the pairs.

    `near` are the pairs that were near their box or beyond it when all were looked at last, where these are few, and
    `looked` is the gap of the block diagonal problem then.
    """

    blocks: Blocks
    point: Point
    C: list[Array]
    near: Pairs | None = None
    looked: float = np.inf


def pays(problem: DirectionProblem, first: Start) -> bool:
    """Whether a solution by components is tried: few coordinates without an l1 weight, no start that is one block."""
    free = int(np.sum(problem.c == 0.0))
    sparse_start = first.U is None or is_sparse(first.U)
    return sparse_start and free <= MOST_FREE and len(problem.c) - free >= LEAST_PENALISED


def iterates(problem: DirectionProblem, tol: float, max_iter: int, first: Start, poll: Poll) -> Iterator[Iterate]:
    """Yield points with their certificates, until half of the coordinates should be in one component, or a stall."""
    split = block_problem(problem)
    state = diagonal_start(split) if first.U is None else warm_start(split, first)
    done, steps = 0, 0 if is_sparse(first.U) else STEPS if len(split.c) > CHEAP else FIRST
    best, since = np.inf, 0  # the least gap of the block diagonal problem, and the rounds since then
    while done < max_iter:
        lagrangian = BlockLagrangian(state.blocks, state.C)
        if steps:
            point = lagrangian.best_scale(state.point)[0]
            state.point, taken = lagrangian.minimise(point, min(steps, max_iter - done), tol / 2, poll)
            state.C = lagrangian.multipliers(state.point)
            state.point = reduce_rank(state.point)
            done += taken
        state.point, claim = lagrangian.claim(state.point, state.C)
        look = Look(None, None)
        best, since = (claim.gap, 0) if claim.gap < 0.95 * best else (best, since + 1)
        if claim.gap <= (max(CLOSE, tol) if steps else tol):
            if len(split.c) > SLOW:
                yield make_iterate(split, state, done, claim, look)  # the value is known before the pairs are looked at
            look = look_at_pairs(state, claim, tol, poll)
        yield make_iterate(split, state, done, claim, look)
        if look.joins is not None:
            if is_giant(state, look):
                return
            state, best, since = join(state, claim.ratios, look.joins), np.inf, 0
        if since >= STALL and len(split.c) <= MOST_DENSE:
            return
        state, steps = state if steps else lift(state), STEPS


def reduce_rank(point: Point) -> Point:
    """Return the point with the negligible columns of its factors dropped."""
    return point._replace(factors=[principal_columns(U, rtol=1e-12) for U in point.factors])


def diagonal_start(problem: BlockProblem) -> State:
    """Return V diagonal, all coordinates with the same weight."""
    m, f = problem.X.shape[1], problem.F.shape[1]
    point = Point(np.full(m, 1.0 / max(m, 1) ** 0.5), np.zeros((m, f)), np.eye(f) * REST, [])
    return State(Blocks(problem, Partition(np.arange(m))), point, [])


def warm_start(problem: BlockProblem, first: Start) -> State:
    """Return the state of a sparse factor and its multipliers."""
    rows = scipy.sparse.csr_array(cast(Sparse, first.U))
    penalised, free = rows[problem.penalised], np.linalg.lstsq(problem.basis, dense(rows[problem.free]))[0]
    partition = problem.partition_of(first.U)
    weights = np.sqrt(np.asarray(penalised.multiply(penalised).sum(axis=1)).ravel())
    # One intercept for each single coordinate: what is left of the free part is not needed at an optimum.
    intercepts, factors = (penalised @ free.T) * inverse_or_one(weights)[:, None], []
    for block in partition.blocks:
        inside = penalised[block]
        used = np.unique(inside.indices)
        factors.append(np.vstack([dense(inside[:, used]), free[:, used]]))
    alone = np.flatnonzero(np.asarray(abs(penalised).sum(axis=0)).ravel() == 0.0)
    rest = psd_factor(free[:, alone] @ free[:, alone].T) if len(free) else np.zeros((0, 0))
    point = Point(weights[partition.singles], intercepts[partition.singles], rest, factors)
    return State(Blocks(problem, partition), point, problem.restrict_multiplier(partition, first.C))


def lift(state: State) -> State:
    """Return a warm start with some weight on every coordinate, and blocks of full rank, so that each can come back."""
    blocks = state.blocks.partition.blocks
    factors = [full_rank(U, len(block)) for U, block in zip(state.point.factors, blocks, strict=True)]
    f = state.point.intercepts.shape[1]
    point = Point(at_least(state.point.weights, WARM), state.point.intercepts, full_rank(state.point.rest, f), factors)
    return State(state.blocks, point, state.C, state.near, state.looked)


def at_least(weights: Array, share: float) -> Array:
    """Return weights of single coordinates, none below a share of the largest, so that each can come back."""
    least = share * np.abs(weights).max(initial=0.0)
    return np.where(np.abs(weights) < least, least, weights)


def full_rank(U: Array, s: int) -> Array:
    """Return a factor, whose first s rows are a block's, with a small part of full rank on them."""
    if s == 0:
        return np.zeros((0, 0))
    extra = np.eye(len(U), s) * (1e-2 * np.sqrt(np.sum(U**2) / s))
    return principal_columns(np.hstack([U, extra]))


class Look(NamedTuple):
    """What the pairs in different groups gave: a bound with what it proves, or pairs to be joined."""

    bound: Finding | None
    joins: Pairs | None


def look_at_pairs(state: State, claim: Claim, tol: float, poll: Poll) -> Look:
    """Look at all pairs where that is cheap or the gap has become small; else at those near their box the last time."""
    m = len(state.blocks.problem.c)
    close = claim.gap <= max(tol, state.looked / 4) or m <= CHEAP
    if state.near is not None and m > CHEAP:
        found = look_at_near(state, claim, poll)
        t = larger_t(state.blocks, claim.ratios, claim.least_t, found.failures)
        if len(found.failing) and claim.value - claim.bound(t) > tol:
            return Look(None, strongest(found))
    if state.near is not None and not close:
        return Look(None, None)
    found = prove(state.blocks, claim, TRIES, poll)
    state.near, state.looked = (found.pairs if len(found.pairs.j) < MOST_NEAR * m else None), claim.gap
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


def is_giant(state: State, look: Look) -> bool:
    """Whether most coordinates are in one component, or will be: then blocks are no gain."""
    partition = state.blocks.partition
    if look.joins is not None:
        partition = partition.join(look.joins.j, look.joins.k)
    if look.bound is not None:
        far = look.bound.pairs.take(np.flatnonzero(np.abs(look.bound.pairs.G) > FAR * look.bound.pairs.side))
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
    point = Point(weights[partition.singles], intercepts[partition.singles], state.point.rest, factors)
    near = None if state.near is None else apart(state.near, partition)
    return State(blocks, point, multipliers, near, state.looked)


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
