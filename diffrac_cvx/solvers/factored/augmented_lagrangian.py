"""The augmented Lagrangian of the l1 part at factors of V, minimised by L-BFGS; and V as one block solved by it."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from diffrac_cvx.certificates.direction_bounds import Dual, Tried, best_bound
from diffrac_cvx.certificates.proof import in_dual_set
from diffrac_cvx.certificates.search import candidate_weights, closer_to_feasible, fit_from
from diffrac_cvx.machine import time_budget
from diffrac_cvx.machine.time_budget import LeaveError, is_late
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.linear_algebra import (
    LARGE,
    cholesky,
    eigh,
    extreme_eigenpairs,
    inverse_or_one,
    psd_factor,
    times,
)
from diffrac_cvx.problem.direction_problem import DirectionProblem, Scaled
from diffrac_cvx.problem.penalties.coupling import Coupling
from diffrac_cvx.problem.result import Bracket
from diffrac_cvx.solvers.factored.quasi_newton import Memory, Point, inner, take_step
from diffrac_cvx.solvers.factored.tuning import ONE_BLOCK
from diffrac_cvx.solvers.factored.unknowns import BlockFactors, OneFactor, suitable_factor, top_energy
from diffrac_cvx.solvers.stopping import Iterate


class Multiplier:
    r"""The multiplier C of one block, kept relative to c_i c_j.

    It attains max over C in the dual set of tr CV - |C - C0|^2 / (2 sigma) at the projection of C0 + sigma V; sigma is
    taken entrywise, in proportion to c_i c_j.  The diagonal of the l1 part is linear on V >= 0 and is no part of it.
    V has entries of the size of the products of ``units``; where ``capped``, sigma is no stiffer than the rest
    asks for.
    """

    def __init__(
        self, coupling: Coupling, C0: Array | None = None, units: Array | float = 1.0, *, capped: bool = True
    ) -> None:
        c, self.coupling, self.set = coupling.reference, coupling, coupling.relative
        self.c, size = c[:, None], len(c)
        self.relative = np.zeros((size, size)) if C0 is None else C0 * inverse_or_one(self.c * c)
        units = np.broadcast_to(units, size)
        self.inverse_units = (1.0 / units)[:, None]
        scaled = c * units
        largest = float(np.prod(np.sort(scaled)[-2:])) if size > 1 else 0.0
        stiffest = ONE_BLOCK.stiffest / max(largest, 1e-300) if capped else np.inf
        self.stiffness = min(ONE_BLOCK.stiffness * size, stiffest)

    def relative_at(self, U: Array) -> Array:
        """Return the maximiser relative to c_i c_j: one array that is passed over a few times."""
        scaled = U * (self.stiffness**0.5 * self.inverse_units)
        relative = times(scaled, scaled.T)
        relative += self.relative
        return self.set.clip(relative)

    def matrix(self, relative: Array) -> Array:
        """Return C, in the dual set whatever rounding did."""
        return self.coupling.project(relative * self.c * self.c.T)

    def times(self, relative: Array, U: Array) -> Array:
        """Return C U."""
        return self.c * times(relative, self.c * U)

    def distance(self, relative: Array) -> float:
        """Return sum_ij (C - C0)_ij^2 / (2 sigma_ij)."""
        squares = relative - self.relative
        np.square(squares, out=squares)
        weights = (self.c / self.inverse_units).ravel()
        return float(weights @ squares @ weights) / (2.0 * self.stiffness)


class Lagrangian:
    r"""Evaluate the augmented Lagrangian of (15) at a block diagonal V; one block is a list of one.

    It is 1 - 2 g(V) + tr VB, B = A + Diag(c)^2, and the sum over the blocks of the maximum of their `Multiplier`.
    ``unknowns`` knows what V is, and the value and gradient of 1 - 2 g(V) + tr V(B + C) at the C U of a C that is held.
    """

    def __init__(self, unknowns: OneFactor | BlockFactors, multipliers: list[Multiplier]) -> None:
        self.unknowns, self.multipliers = unknowns, multipliers
        self.latest: Array | None = None  # the last unknown that a step led to

    def at(self, unknown: Array) -> list[tuple[Multiplier, Array, Array]]:
        """Return the multiplier, the factor and the maximiser of each block."""
        if not self.multipliers:
            return []
        factors = self.unknowns.factors(unknown)
        return [(one, U, one.relative_at(U)) for one, U in zip(self.multipliers, factors, strict=True)]

    def multiplier(self, unknown: Array) -> list[Array]:
        """Return the maximisers C."""
        return [one.matrix(relative) for one, _, relative in self.at(unknown)]

    def point(self, unknown: Array) -> Point:
        """Return the unknown with the value and the gradient there."""
        blocks = self.at(unknown)
        value, gradient = self.unknowns.value_and_gradient(unknown, [one.times(C, U) for one, U, C in blocks])
        return Point(unknown, value - sum(one.distance(C) for one, _, C in blocks), gradient)

    def update(self, at: Point) -> Point:
        """Take the maximisers at a point for the multipliers; return its value and gradient: no product with X."""
        value, changes = at.value, []
        for one, U, old in self.at(at.U):
            before, one.relative = one.distance(old), old
            new = one.relative_at(U)
            changes.append(one.times(new - old, U))
            value += inner(U, changes[-1]) - one.distance(new) + before
        return Point(at.U, value, at.gradient + self.unknowns.slope(changes)) if changes else at

    def minimise(self, at: Point, steps: int, memory: Memory) -> tuple[Point, int]:
        """Return the point after at most so many L-BFGS steps, and how many there were."""
        metric = self.unknowns.metric(at.U)

        def function(unknown: Array) -> Point:
            time_budget.poll()
            return self.point(unknown)

        for taken in range(steps):
            new = take_step(function, at, memory, metric)
            if new is None:
                memory.pairs.clear()
                return at, taken
            at, self.latest = new, new.U
        return at, steps


def one_block(unknowns: OneFactor, C0: Array | None = None, *, capped: bool = True) -> Lagrangian:
    """Return the Lagrangian of V = UU'."""
    problem, units = unknowns.problem, unknowns.units
    coupled = problem.is_coupled
    return Lagrangian(unknowns, [Multiplier(problem.coupling, C0, units, capped=capped)] if coupled else [])


def with_violated_direction(unknowns: OneFactor, unknown: Array, C: Array | float) -> Array:
    """Append the direction in which the certificate is violated most, so that a rank too small can grow."""
    problem, U = unknowns.problem, unknowns.factor(unknown)
    M = problem.X.moment(problem.inverse_roots(problem.X.energies(U)))
    S = M - (problem.A + np.diag(problem.c**2)) - C
    _, vectors = extreme_eigenpairs(S, 1, "LA", 1e-4) if len(S) > LARGE else np.linalg.eigh(S)
    return unknowns.unknown(np.column_stack([U, 1e-2 * np.sqrt(np.sum(U**2) + 1e-12) * vectors[:, -1:]]))


def rotation_to_fewer(U: Array, rtol: float = ONE_BLOCK.negligible) -> Array | None:
    """Return Q, with orthonormal columns, such that U Q has no negligible column; None if U has none."""
    G = times(U.T, U)
    limit = rtol * top_energy(G)
    try:
        cholesky(G - limit * np.eye(len(G)))
        return None
    except np.linalg.LinAlgError:
        values, Q = eigh(G)
        keep = values > limit
        keep[-1] = True
        return None if keep.all() else np.asarray(Q[:, keep][:, ::-1])


def spread_start(problem: DirectionProblem) -> Array:
    """Return a full-rank start without a preferred direction; a little noise, so that it is not a symmetric point."""
    size = problem.X.shape[1]
    noise: Array = np.random.default_rng(0).standard_normal((size, size))
    start: Array = (np.eye(size) + 1e-2 * noise) / size
    return start


def iterates(
    problem: DirectionProblem, max_iter: int, U: Array | None = None, C: Array | None = None
) -> Iterator[Iterate]:
    """Yield a point and its multiplier every few rounds, for so many L-BFGS steps, whose memory is kept throughout."""
    unknowns, memory = suitable_factor(problem), Memory()
    lagrangian = one_block(unknowns, C)
    start = dense(problem.best_scale(unknowns.factor(spread_start(problem)) if U is None else U).U)
    at = lagrangian.point(unknowns.unknown(start) if start.any() else spread_start(problem))
    lagrangian.latest = at.U
    done, best, since, saved = 0, np.inf, 0, 0.0
    progress = StallDetector()
    while done < max_iter:
        advance, steps = lagrangian.minimise, max(ONE_BLOCK.steps_without_l1, done // 4)
        if problem.is_coupled:
            advance = partial(follow_multiplier, lagrangian)
            steps = (ONE_BLOCK.rounds + done // 100) * ONE_BLOCK.steps_of_a_multiplier
        try:
            at, taken = advance(at, min(steps, max_iter - done), memory)
        except LeaveError:
            with time_budget.spend(None):
                last = problem.best_scale(unknowns.factor(lagrangian.latest))
            yield Iterate(last.U, done, Dual(), last)  # there is no time for its certificate
            raise
        done += max(taken, 1)
        Q = rotation_to_fewer(at.U)
        if Q is not None:
            memory.rotate(Q)
            at = lagrangian.point(at.U @ Q)
        saved += taken * at.U.shape[1] / len(at.U)
        fitted = saved >= ONE_BLOCK.steps_to_fit and len(at.U) <= LARGE
        saved = 0.0 if fitted else saved
        found = lagrangian.multiplier(at.U)
        iterate = proposal(problem, unknowns.factor(at.U), found[0] if found else None, done, fitted=fitted)
        yield iterate
        if progress.ended(iterate, taken):
            return
        at = lagrangian.update(at)
        # The gap narrows long after the value has settled.
        missing = iterate.bounds.gap if iterate.bounds else at.value
        since = 0 if missing < best - 1e-3 * abs(best) else since + 1
        best = min(best, missing)
        if since >= ONE_BLOCK.rounds_to_grow and at.U.shape[1] < len(at.U):
            at, since = lagrangian.point(with_violated_direction(unknowns, at.U, sum(lagrangian.multiplier(at.U)))), 0
            memory = Memory()


class StallDetector:
    """Notice that points no longer narrow the bracket."""

    def __init__(self) -> None:
        self.lower, self.upper, self.gap, self.since, self.idle = 0.0, 1.0, np.inf, 0, 0

    def ended(self, iterate: Iterate, taken: int) -> bool:
        """Whether the bracket has not become narrower by a thousandth, or no step was possible, for long."""
        self.idle = 0 if taken else self.idle + 1
        if iterate.bounds is not None:
            self.lower, self.upper = max(self.lower, iterate.bounds.lower), min(self.upper, iterate.bounds.upper)
            narrower = self.upper - self.lower < (1.0 - 1e-3) * self.gap
            self.gap, self.since = (self.upper - self.lower, 0) if narrower else (self.gap, self.since + 1)
        return self.since >= ONE_BLOCK.rounds_to_end or self.idle >= 3 * ONE_BLOCK.rounds_to_grow


def follow_multiplier(
    lagrangian: Lagrangian, at: Point, steps: int, memory: Memory, is_enough: Callable[[Array], bool] | None = None
) -> tuple[Point, int]:
    """Return the point after at most so many steps, with the multiplier updated every few, and how many there were."""
    done = 0
    while True:
        at, taken = lagrangian.minimise(at, min(ONE_BLOCK.steps_of_a_multiplier, steps - done), memory)
        done += taken
        if done >= steps or taken == 0 or (is_enough is not None and is_enough(at.U)):
            return at, done
        at = lagrangian.update(at)


def proposal(problem: DirectionProblem, U: Array, C: Array | None, done: int, *, fitted: bool = False) -> Iterate:
    """Return what is proposed at U: where there is an l1 part, with a bracket that is narrower than U's alone."""
    if problem.X.in_passes:  # certified by whoever asked, in one pass
        return Iterate(U, done, Dual(C=C))
    point = problem.best_scale(U)
    if C is None:
        return Iterate(U, done, Dual(), point)
    polished, bounds = polish(problem, point, C, fitted=fitted)
    return Iterate(U, done, Dual(u=problem.inverse_roots(point.q), C=C), polished, bounds)


def polish(problem: DirectionProblem, point: Scaled, C: Array, *, fitted: bool = False) -> tuple[Scaled, Bracket]:
    """Return the better of a point and its thresholded form, and the bracket, for the multiplier C at the point.

    The bound uses the energies of the point given: C belongs to them, and not to those of the thresholded one.  Where
    the multiplier is fitted, that takes an eigendecomposition a step.
    """
    U = dense(point.U)
    thresholded = without_inactive(problem, U, C)
    better = thresholded if thresholded.value < point.value else point
    C = in_dual_set(problem, C)

    def multipliers(u: Array) -> Iterator[Array]:
        yield C
        M = problem.X.moment(u)
        yield closer_to_feasible(problem, M, C)
        if fitted:
            yield fit_from(problem, M, times(U, U.T), C, ONE_BLOCK.fitting_steps)

    weights = candidate_weights(problem, point.q)
    lower = best_bound(problem, (Tried(u, inverse_mean, multipliers(u)) for u, inverse_mean in weights))
    return better, Bracket(lower, float(better.value))


def without_inactive(problem: DirectionProblem, U: Array, C: Array) -> Scaled:
    """Return the point with V_ij = 0 where C_ij is strictly inside its box, projected on V >= 0 where it has to be.

    At an optimum V_ij is 0 there; before, what is left of it costs c_i c_j |V_ij|, much more than it gains.
    """
    V = times(U, U.T)
    V = problem.coupling.active(V, C)
    scale = inverse_or_one(np.sqrt(np.diag(V)))
    correlations = V * np.outer(scale, scale)
    try:
        factor = cholesky(correlations) / scale[:, None]
    except np.linalg.LinAlgError:
        if len(V) > LARGE and is_late(10.0 * float(len(V)) ** 3):
            return problem.best_scale(U)
        factor = psd_factor(V, rtol=1e-14)
    return problem.best_scale(factor)
