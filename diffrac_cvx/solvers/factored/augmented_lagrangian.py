"""Augmented Lagrangian of the l1 penalty in a factor of V, minimised by L-BFGS, and the one-block solver."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.linalg

from diffrac_cvx.certificates.bound_search import best_bound, improved_multipliers, row_weights
from diffrac_cvx.certificates.direction_bounds import DualPoint
from diffrac_cvx.certificates.proof import Bound, project_dual
from diffrac_cvx.machine import deadlines
from diffrac_cvx.machine.deadlines import EarlyExitError, is_late
from diffrac_cvx.machine.work import count_work
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.linear_algebra import (
    LARGE_SIZE,
    cholesky,
    eigh,
    inverse_of_positive,
    inverse_or_one,
    lanczos,
    psd_factor,
    row_products,
    solve_lower,
    times,
)
from diffrac_cvx.problem.direction_problem import DirectionProblem, PrimalPoint
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.solvers.driver import Iterate
from diffrac_cvx.solvers.race import Pause

Metric = Callable[[Array], Array]
CertifiedPoint = tuple[PrimalPoint, DualPoint, Bound | None]
STEPS_PER_MULTIPLIER = 10  # L-BFGS steps between updates of the multiplier, which do not wait for convergence
GROWTH_ROUNDS, STALLED_ROUNDS = 4, 60  # certificates without progress until the rank grows; until the solver ends
SPARE_RANK = 8  # columns by which the rank grows
LARGE_UNIT = 8.0  # scale of V in a column, relative to that suggested by the variances, above which units are used


class Point(NamedTuple):
    """Point with the value and the gradient of the function."""

    U: Array
    value: float
    gradient: Array


class Memory:
    """L-BFGS memory: the last steps and gradient changes, as matrices of the shape of the unknown."""

    def __init__(self) -> None:
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=10)

    def add(self, step: Array, change: Array) -> None:
        """Store a pair if the curvature along it is positive."""
        curvature = inner(step, change)
        if curvature > 1e-10 * np.sqrt(inner(step, step) * inner(change, change)):
            self.pairs.append((step, change, curvature))

    def direction(self, gradient: Array, metric: Metric) -> Array:
        """Return the quasi-Newton direction, with a multiple of the metric as initial inverse Hessian."""
        G = gradient.copy()
        weights = []
        for step, change, curvature in reversed(self.pairs):
            weights.append(inner(step, G) / curvature)
            G -= weights[-1] * change
        G = metric(G)
        if self.pairs:
            _, change, curvature = self.pairs[-1]
            G *= curvature / inner(change, metric(change))
        for (step, change, curvature), weight in zip(self.pairs, reversed(weights), strict=True):
            G += (weight - inner(change, G) / curvature) * step
        return -G

    def rotate(self, Q: Array) -> None:
        """Transform the memory for a change of the unknown from U to UQ."""
        rotated = [(step @ Q, change @ Q) for step, change, _ in self.pairs]
        self.pairs.clear()
        for step, change in rotated:
            self.add(step, change)


def inner(X: Array, Y: Array) -> float:
    """Return tr X'Y."""
    return float(np.vdot(X, Y))


def take_step(function: Callable[[Array], Point], at: Point, memory: Memory, metric: Metric) -> Point | None:
    """Return the next point by backtracking along the quasi-Newton direction; None if no step is accepted.

    A step is accepted by the Armijo condition or, if rounding hides the decrease, by the approximate Wolfe condition on
    slopes (Hager and Zhang, SIAM J. Optim. 16, 2005).
    """
    count_work(48.0 * (len(memory.pairs) + 2) * at.U.size)  # memory passes
    size = 1.0 + abs(at.value)
    D = memory.direction(at.gradient, metric)
    slope = inner(D, at.gradient)
    if not slope < 0.0:
        memory.pairs.clear()
        D = -metric(at.gradient)
        slope = inner(D, at.gradient)
    if not slope < -1e-23 * size:  # the gradient is pure rounding error
        return None
    length = 1.0 if memory.pairs else min(1.0, 0.3 * (inner(at.U, at.U) / inner(D, D)) ** 0.5)
    for _ in range(12):
        new = function(at.U + length * D)
        change = new.value - at.value
        hidden = change <= 1e-13 * size and inner(D, new.gradient) <= -0.8 * slope
        if change <= 1e-4 * length * slope or hidden:
            memory.add(new.U - at.U, new.gradient - at.gradient)
            return new
        # Minimum of the interpolating parabola, kept away from both ends.
        parabola = -length * slope / (2.0 * (change - length * slope))
        length *= min(max(parabola, 0.1), 0.5) if np.isfinite(parabola) else 0.1
    return None


class Multiplier:
    r"""Multiplier C of one block, stored relative to c_i c_j.

    The maximum of tr CV - |C - C0|^2 / (2 sigma) over C in the dual set is attained at the projection of C0 + sigma V;
    sigma has entries proportional to c_i c_j.  The diagonal of the l1 term is linear on V >= 0 and not included.  The
    entries of V have the scale of products of ``units``.  If ``capped``, sigma is limited in proportion to the
    curvature of the other terms.
    """

    def __init__(
        self, pair_penalty: PairPenalty, C0: Array | None = None, units: Array | None = None, *, capped: bool = True
    ) -> None:
        c, self.pair_penalty, self.dual_set = pair_penalty.reference_weights, pair_penalty, pair_penalty.relative
        self.c, size = c[:, None], len(c)
        self.relative = np.zeros((size, size)) if C0 is None else C0 * inverse_or_one(self.c * c)
        units = np.ones(size) if units is None else units
        self.inverse_units = (1.0 / units)[:, None]
        scaled = c * units
        largest = float(np.prod(np.sort(scaled)[-2:])) if size > 1 else 0.0
        # A small sigma costs outer rounds, a large one makes steps ill conditioned: the other terms have curvature
        # about 1/2.
        stiffest = 100.0 / max(largest, 1e-300) if capped else np.inf
        self.stiffness = min(60.0 * size, stiffest)

    def relative_at(self, U: Array) -> Array:
        """Return the maximiser relative to c_i c_j, computed in place in one array."""
        scaled = U * (self.stiffness**0.5 * self.inverse_units)
        relative = times(scaled, scaled.T)
        relative += self.relative
        return self.dual_set.project_inexact(relative)

    def matrix(self, relative: Array) -> Array:
        """Return C, in the dual set in spite of rounding errors."""
        return self.pair_penalty.project_safe(relative * self.c * self.c.T)

    def times(self, relative: Array, U: Array) -> Array:
        """Return C U."""
        return self.c * times(relative, self.c * U)

    def distance(self, relative: Array) -> float:
        """Return sum_ij (C - C0)_ij^2 / (2 sigma_ij)."""
        squares = relative - self.relative
        np.square(squares, out=squares)
        weights = (self.c / self.inverse_units).ravel()
        return float(weights @ squares @ weights) / (2.0 * self.stiffness)


class Lagrangian(ABC):
    """Augmented Lagrangian of (15): 1 - 2 g(V) + tr VB, B = A + Diag(c)^2, plus the maximum of each `Multiplier`.

    Its unknown is an array, ``params``, that determines the factors of one or more blocks of V.
    """

    def __init__(self, multipliers: list[Multiplier]) -> None:
        self.multipliers = multipliers
        self.latest: Array | None = None  # the unknown after the last step

    @abstractmethod
    def factors(self, params: Array) -> list[Array]:
        """Return the factor of each block with a multiplier."""

    @abstractmethod
    def value_and_gradient(self, params: Array, products: list[Array]) -> tuple[float, Array]:
        """Return 1 - 2 g(V) + tr V(B + C) and its gradient at fixed C, from the product C U of each block."""

    @abstractmethod
    def multiplier_gradient(self, products: list[Array]) -> Array:
        """Return the gradient of tr V C at fixed C, from the product C U of each block."""

    @abstractmethod
    def metric(self, params: Array) -> Metric:
        """Return the initial inverse Hessian."""

    def block_maximizers(self, params: Array) -> list[tuple[Multiplier, Array, Array]]:
        """Return the multiplier, the factor and the maximiser of each block."""
        blocks = zip(self.multipliers, self.factors(params), strict=True)
        return [(one, U, one.relative_at(U)) for one, U in blocks]

    def multiplier(self, params: Array) -> list[Array]:
        """Return the maximiser C of each block."""
        return [one.matrix(relative) for one, _, relative in self.block_maximizers(params)]

    def point(self, params: Array) -> Point:
        """Return the unknown with its value and gradient."""
        deadlines.check_deadline()
        blocks = self.block_maximizers(params)
        value, gradient = self.value_and_gradient(params, [one.times(C, U) for one, U, C in blocks])
        return Point(params, value - sum(one.distance(C) for one, _, C in blocks), gradient)

    def update(self, at: Point) -> Point:
        """Set the multipliers to the maximisers at a point; return its value and gradient, without products with X."""
        value, changes = at.value, []
        for one, U, old in self.block_maximizers(at.U):
            before, one.relative = one.distance(old), old
            new = one.relative_at(U)
            changes.append(one.times(new - old, U))
            value += inner(U, changes[-1]) - one.distance(new) + before
        return Point(at.U, value, at.gradient + self.multiplier_gradient(changes)) if changes else at

    def minimize(self, at: Point, steps: int, memory: Memory) -> tuple[Point, int]:
        """Return the point after at most this many L-BFGS steps, and the number of steps."""
        metric = self.metric(at.U)
        for n_steps in range(steps):
            new = take_step(self.point, at, memory, metric)
            if new is None:
                memory.pairs.clear()
                return at, n_steps
            at, self.latest = new, new.U
        return at, steps


class OneBlockLagrangian(Lagrangian):
    """Augmented Lagrangian in a factor of V = UU', one block on all coordinates.

    With correlated columns, the curvature varies less in the metric B + 1.  If the scale of V differs from that
    suggested by the column variances, ``units`` replaces the 1 by Diag(units)^-2, and entries of V have the scale of
    products of the units.  This occurs if a few outlying rows have nearly all of the variance: V is then nearly
    orthogonal to them, and its scale is determined by the other rows.  The objective is then a sum of squares without
    cancellation of large terms.
    """

    def __init__(
        self, problem: DirectionProblem, C0: Array | None = None, units: Array | None = None, *, capped: bool = True
    ) -> None:
        d, penalty = len(problem.c), problem.pair_penalty
        super().__init__([Multiplier(penalty, C0, units, capped=capped)] if problem.has_l1 else [])
        self.problem = problem
        self.left: Metric | None = None
        self.root: Array | None = None  # of B + Diag(units)^-2; the last d rows are Diag(units)^-1
        if units is None:
            self.B = problem.B
            if np.sum(self.B**2) > 3.0 * np.trace(self.B):  # tr B^2 / tr B is 1 + d/n for noise
                self.left = inverse_of_B_and_one(problem, self.B)
        else:
            deadlines.check_deadline(40.0 * float(d) ** 3 if d > LARGE_SIZE else 0.0)
            count_work(60.0 * float(d) ** 3)
            self.root = np.vstack([problem.R, np.diag(problem.c), np.diag(1.0 / units)])
            _, singular, right = np.linalg.svd(self.root, full_matrices=False)
            T = right.T / singular
            self.left = lambda Z: times(T, times(T.T, Z))

    def factors(self, U: Array) -> list[Array]:
        """Return the factor, if it has a multiplier."""
        return [U] if self.multipliers else []

    def value_and_gradient(self, U: Array, products: list[Array]) -> tuple[float, Array]:
        """Return 1 - 2 g(V) + tr V(B + C) and its gradient at fixed C, from the product C U of each block."""
        problem, n = self.problem, len(self.problem.X)
        total, gradient = problem.X.sqrt_sum_and_gradient(U)
        CU = products[0] if products else np.zeros_like(U)
        if self.root is not None:
            root = self.root[: -len(U)]
            RU = root @ U
            cost, KU = inner(RU, RU) + inner(U, CU), root.T @ RU + CU
        else:
            if has_few_rows(problem):  # then products with X are cheaper than with B
                BU = problem.Y.rmatvec(problem.Y @ U) + (problem.a**2 + problem.c**2)[:, None] * U
            else:
                BU = times(self.B, U)
            KU = BU + CU
            cost = inner(U, KU)
        return float(1 - 2 * (total / n) + cost), 2 * KU - (2 / n) * gradient

    def multiplier_gradient(self, products: list[Array]) -> Array:
        """Return 2 C U."""
        return 2 * products[0]

    def metric(self, U: Array) -> Metric:
        """Return the initial inverse Hessian, the map Z -> (B + 1)^-1 Z (G + shrinkage)^-1, G = U'U.

        With units it is the metric of U at B + Diag(units)^-2, and G the Gram matrix there.
        """
        image = U if self.root is None else self.root @ U
        G, left = times(image.T, image), self.left
        right = shrunk_inverse(G, approximate_top_eigenvalue(G), 1e-2 if self.problem.has_l1 else 1e-1)
        return (lambda Z: times(Z, right)) if left is None else (lambda Z: left(times(Z, right)))


def has_few_rows(problem: DirectionProblem) -> bool:
    """Return whether A is X'X/n + Diag(a)^2 of few rows in memory, so that products with X are cheaper than with A."""
    from_rows = problem.root is None and problem.basis is None
    return from_rows and 4 * len(problem.Y) <= len(problem.c)


def inverse_of_B_and_one(problem: DirectionProblem, B: Array) -> Metric:
    """Return the map Z -> (B + 1)^-1 Z, B = X'X/n + Diag(a)^2 + Diag(c)^2; by Woodbury's identity if rows are few."""
    if not has_few_rows(problem):
        inverse = inverse_of_positive(B + np.eye(len(B)))
        return lambda Z: times(inverse, Z)
    diagonal = (problem.a**2 + problem.c**2 + 1.0)[:, None]
    rows = problem.Y.array() / len(problem.Y) ** 0.5
    scaled = rows / diagonal.T
    L = cholesky(np.eye(len(rows)) + times(scaled, rows.T))
    F = solve_lower(L, scaled)
    return lambda Z: Z / diagonal - times(F.T, times(F, Z))


def column_units(problem: DirectionProblem) -> Array | None:
    """Return the scales of the columns of V if they are large, or unequal with fewer rows than columns; otherwise None.

    The squared scale, relative to that suggested by the variances, is estimated from least-squares directions of random
    labels: it is the diagonal of B^+ A B^+, B = A + Diag(c)^2.
    """
    if not problem.has_l1 or problem.X.is_streamed:
        return None
    if problem.is_large:
        inverse = times(problem.W, problem.W.T)
        squares = np.maximum(np.diag(inverse) - np.square(inverse) @ problem.c**2, 0.0)
    else:
        directions = scipy.linalg.lstsq(problem.B, problem.R.T, check_finite=False)[0]
        squares = row_products(directions, directions)
    units = np.maximum(np.sqrt(squares), 1.0)
    limit = LARGE_UNIT if len(problem.X) >= len(units) else min(LARGE_UNIT, 3.0 * units.min())
    return units if units.max() >= limit else None


def shrunk_inverse(G: Array, top: float, shrinkage: float) -> Array:
    """Return (G / top + shrinkage)^-1.

    The objective depends on the square of a small component of U; with this scaling it changes equally fast in all
    directions (Tong, Ma, Chi, JMLR 2021).
    """
    return inverse_of_positive(G / top + shrinkage * np.eye(len(G)))


def approximate_top_eigenvalue(G: Array) -> float:
    """Return the approximate largest eigenvalue of G = U'U by power steps, at least the largest diagonal entry."""
    z = G[:, np.argmax(np.diag(G))]
    for _ in range(8):
        z = G @ (z / max(float(np.linalg.norm(z)), 1e-300))
    return max(float(np.linalg.norm(z)), float(np.diag(G).max()), 1e-300)


def append_violated_directions(
    problem: DirectionProblem, U: Array, C: Array | float, M: Array | None = None, most: int = SPARE_RANK
) -> Array:
    """Append the directions that violate the certificate most, so that the rank can grow."""
    free = min(most, len(U) - U.shape[1])
    if free == 0:
        return U
    if M is None:
        M = problem.X.weighted_gram(problem.inverse_sqrt(problem.X.quadratic_forms(U)))
    S = M - problem.B - C
    is_partial = most < len(S) and len(S) > LARGE_SIZE
    values, vectors = lanczos(S.dot, len(S), free, "LA", 1e-4) if is_partial else eigh(S)
    new = vectors[:, values > 0.0][:, -free:]
    return np.column_stack([U, 1e-2 * np.sqrt(np.sum(U**2) / max(new.shape[1], 1) + 1e-12) * new])


def drop_negligible_columns(lagrangian: Lagrangian, at: Point, memory: Memory, rtol: float = 1e-12) -> Point:
    """Return the point without negligible columns of U, after a rotation of U and of the memory."""
    Q = rank_reducing_rotation(at.U, rtol)
    if Q is None:
        return at
    memory.rotate(Q)
    return lagrangian.point(at.U @ Q)


def rank_reducing_rotation(U: Array, rtol: float) -> Array | None:
    """Return Q with orthonormal columns such that UQ has no negligible column; None if U has none."""
    G = times(U.T, U)
    limit = rtol * approximate_top_eigenvalue(G)
    try:
        cholesky(G - limit * np.eye(len(G)))
        return None
    except np.linalg.LinAlgError:
        values, Q = eigh(G)
        keep = values > limit
        keep[-1] = True
        return None if keep.all() else np.asarray(Q[:, keep][:, ::-1])


def full_rank_start(problem: DirectionProblem) -> Array:
    """Return a full-rank initial factor without a preferred direction, with a little noise to break symmetry."""
    size = problem.X.shape[1]
    noise: Array = np.random.default_rng(0).standard_normal((size, size))
    start: Array = (np.eye(size) + 1e-2 * noise) / size
    return start


def one_block_iterates(
    problem: DirectionProblem,
    max_iter: int,
    U: Array | None = None,
    C: Array | None = None,
    certified: Callable[[Array, Array | None, bool], CertifiedPoint] | None = None,
) -> Iterator[Iterate | Pause]:
    """Yield an iterate and its multiplier every few rounds, for at most max_iter L-BFGS steps with one memory.

    ``certified`` returns the certified point of a factor and its multiplier, by default `refine_point`.
    """
    certified = partial(refine_point, problem) if certified is None else certified
    lagrangian, memory = OneBlockLagrangian(problem, C, column_units(problem)), Memory()
    start = dense(problem.rescale(full_rank_start(problem) if U is None else U).U)
    at = lagrangian.point(start if start.any() else full_rank_start(problem))
    lagrangian.latest = at.U
    done, saved, lower, upper = 0, 0.0, 0.0, 1.0
    best, since, idle = np.inf, 0, 0  # smallest gap, or value without bounds; rounds since; rounds without a step
    while done < max_iter:
        # 1. L-BFGS steps; with an l1 penalty, the multiplier is updated between them.
        try:
            if problem.has_l1:
                steps = (2 + done // 100) * STEPS_PER_MULTIPLIER
                at, n_steps = run_multiplier_method(lagrangian, at, min(steps, max_iter - done), memory)
            else:
                at, n_steps = lagrangian.minimize(at, min(max(20, done // 4), max_iter - done), memory)
        except EarlyExitError:
            with deadlines.time_limited(None):
                last = problem.rescale(lagrangian.latest)
            yield Iterate(last.U, done, DualPoint(), last)  # no time is left for its certificate
            raise
        yield Pause()
        done += max(n_steps, 1)
        # 2. Negligible columns are dropped.
        at = drop_negligible_columns(lagrangian, at, memory)
        # 3. An iterate with its bounds; fitting the multiplier takes a quarter of the time of the preceding steps.
        C = lagrangian.multiplier(at.U)[0] if problem.has_l1 else None
        saved += n_steps * at.U.shape[1] / len(at.U)
        fitted = saved >= 70.0 and len(at.U) <= LARGE_SIZE
        saved = 0.0 if fitted else saved
        point, dual, bound = certified(at.U, C, fitted)
        yield Iterate(at.U, done, dual, point, bound)
        # 4. The rank grows if the gap no longer decreases; the gap decreases long after the value has converged.
        if bound is not None:
            lower, upper = max(lower, bound.lower), min(upper, point.value)
        missing = at.value if bound is None else upper - lower
        since, idle = 0 if missing < best - 1e-3 * abs(best) else since + 1, 0 if n_steps else idle + 1
        best = min(best, missing)
        if idle >= 6 * GROWTH_ROUNDS or (bound is not None and since >= STALLED_ROUNDS):
            return  # no progress in double precision
        at = lagrangian.update(at)
        patience = GROWTH_ROUNDS * (2 if bound is None else 1)  # the value converges long before the gap
        if since and since % patience == 0 and at.U.shape[1] < len(at.U):
            larger = append_violated_directions(problem, at.U, sum(lagrangian.multiplier(at.U)))
            at, memory = lagrangian.point(larger), Memory()


def run_multiplier_method(
    lagrangian: Lagrangian, at: Point, steps: int, memory: Memory, is_converged: Callable[[Array], bool] | None = None
) -> tuple[Point, int]:
    """Return the point after at most this many steps, with regular multiplier updates, and the number of steps."""
    done = 0
    while True:
        at, n_steps = lagrangian.minimize(at, min(STEPS_PER_MULTIPLIER, steps - done), memory)
        done += n_steps
        if done >= steps or n_steps == 0 or (is_converged is not None and is_converged(at.U)):
            return at, done
        at = lagrangian.update(at)


def refine_point(
    problem: DirectionProblem, U: Array, C: Array | None, fitted: bool = False, q: Array | None = None
) -> CertifiedPoint:
    """Return the better of the scaled point and its thresholded form, its dual, and a lower bound from C.

    The bound uses q of the scaled point, or the given q to which C belongs, not q of the thresholded point.  If
    ``fitted``, the multiplier is also refined, with one eigendecomposition per step.  Without C there is no bound.
    """
    point = problem.rescale(U)
    if C is None:
        return point, DualPoint(), None
    q, U = point.q if q is None else q, dense(point.U)
    better, dual = threshold_inactive(problem, point, C), DualPoint(problem.inverse_sqrt(q), C)
    C = project_dual(problem, C)
    weights, steps = [row_weights(problem, problem.inverse_sqrt(q))], 10 if fitted else 0
    bound = best_bound(problem, weights, lambda M: improved_multipliers(problem, M, U, C, steps))
    return better, dual, bound


def threshold_inactive(problem: DirectionProblem, point: PrimalPoint, C: Array) -> PrimalPoint:
    """Return the better of a point and its projection on V >= 0 with V_ij = 0 where |C_ij| is strictly below its bound.

    At an optimum V_ij is 0 there; before convergence, its penalty c_i c_j |V_ij| is much larger than the gain from it.
    """
    U = dense(point.U)
    V = problem.pair_penalty.zero_inactive(times(U, U.T), C)
    scale = inverse_or_one(np.sqrt(np.diag(V)))
    correlations = V * np.outer(scale, scale)
    try:
        factor = cholesky(correlations) / scale[:, None]
    except np.linalg.LinAlgError:
        if len(V) > LARGE_SIZE and is_late(10.0 * float(len(V)) ** 3):
            return point
        factor = psd_factor(V, rtol=1e-14)
    return min(point, problem.rescale(factor), key=lambda one: one.value)
