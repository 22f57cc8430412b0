"""Augmented Lagrangian of the l1 part in the factor U of V = UU', minimised by L-BFGS: no eigendecomposition."""

from collections.abc import Iterator

import numpy as np
import scipy.linalg

from diffrac_cvx.certificates.direction_bounds import Dual
from diffrac_cvx.machine import time_budget
from diffrac_cvx.machine.time_budget import LeaveError
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.factors import dense
from diffrac_cvx.points.floating_point import UNIT
from diffrac_cvx.points.linear_algebra import (
    LARGE,
    cholesky,
    eigh,
    extreme_eigenpairs,
    inverse_of_positive,
    inverse_or_one,
    row_products,
    times,
)
from diffrac_cvx.points.points import Poll
from diffrac_cvx.problem.direction_problem import DirectionProblem
from diffrac_cvx.solvers.factored.polishing import polish
from diffrac_cvx.solvers.factored.quasi_newton import Memory, Metric, Point, inner, take_step
from diffrac_cvx.solvers.stopping import Iterate

STIFFNESS = 60.0  # times D c_i c_j: too small costs outer rounds, too large makes the inner problem ill conditioned
STIFFEST = 100.0  # the curvature of the rest is about one half, whatever D and c
OUTLYING, UNEQUAL = (
    30.0,
    3.0,
)  # V to what the variances suggest, as a whole and of one column to another: see `lagrangian_of`
STEPS = 10  # L-BFGS steps before the multiplier is updated, long before the minimum is exact
ROUNDS = 2  # of them before the point is certified, and one more for each hundred steps that were done
STEPS_WITHOUT_L1 = 20  # before the point is certified, or a quarter of those that were done
STALL = 8  # certificates without progress before the rank is allowed to grow again
END = 60  # certificates without a narrower bracket before there is no more to be gained in double precision
SIDE = 1.0 - 4.0 * UNIT  # of a box, so that rounding leaves C inside it
WORTH = 70.0  # L-BFGS steps, times columns of U to its rows, that take four times as long as fitting a multiplier
FEWEST = 100  # coordinates from which on that is so
SHRINKAGE = 1e-2  # of the largest eigenvalue of U'U, added to it in the metric of the steps
SHRINKAGE_WITHOUT_L1 = 1e-1
CORRELATED = 3.0  # tr B^2 / tr B from which the metric takes account of B = A + Diag(c)^2; it is 1 + d/n for noise
NEGLIGIBLE = 1e-12  # squared norm of a column of U, relative to the largest, below which it is dropped


class Lagrangian:
    r"""Evaluate min over U of 1 - 2 g(UU') + tr UU'A + max_C [tr C UU' - |C - C0|^2 / (2 sigma)], |C_ij| <= c_i c_j.

    The maximum is attained at C = clip(C0 + sigma UU'); sigma is taken entrywise, in proportion to c_i c_j.
    The diagonal of the l1 part is linear on V >= 0 and is added to A.
    """

    def __init__(self, problem: DirectionProblem, C0: Array | None = None) -> None:
        self.problem = problem
        self.B = problem.A + np.diag(problem.c**2)
        size = len(self.B)
        self.c = problem.c[:, None]
        self.relative = np.zeros((size, size)) if C0 is None else C0 * inverse_or_one(self.c * problem.c)
        self.latest: Array | None = None  # the last unknown that a step led to
        self.set_stiffness(np.ones(size))
        # Correlated columns: steps in the metric B + 1, in which the curvature along them varies less.
        self.left: Metric | None = None
        if np.sum(self.B**2) > CORRELATED * np.trace(self.B):
            self.left = inverse_of_B_and_one(problem, self.B)

    def set_stiffness(self, units: Array) -> None:
        """Choose sigma for a V whose entries are of the size of the units' products."""
        largest = (self.problem.box * np.outer(units, units)).max(initial=0.0)
        self.stiffen(min(STIFFNESS * len(units), STIFFEST / max(largest, 1e-300)), units)

    def stiffen(self, stiffness: float, units: Array | float = 1.0) -> None:
        """Take this times c_i c_j, over the units' products, for sigma."""
        self.stiffness, self.inverse_units = stiffness, (1.0 / np.broadcast_to(units, len(self.c)))[:, None]

    def factor(self, unknown: Array) -> Array:
        """Return U of the unknown in which the steps are made."""
        return unknown

    def unknown(self, U: Array) -> Array:
        """Return the unknown at U."""
        return U

    def multiplier(self, U: Array) -> Array:
        """Return the maximiser C at U."""
        return self.relative_multiplier(U) * self.c * self.problem.c

    def relative_multiplier(self, U: Array) -> Array:
        """Return the maximiser at U, relative to c_i c_j: one array that is passed over a few times."""
        scaled = U * (self.stiffness**0.5 * self.inverse_units)
        relative = times(scaled, scaled.T)
        relative += self.relative
        np.clip(relative, -SIDE, SIDE, out=relative)
        np.fill_diagonal(relative, 0.0)
        return relative

    def value_and_gradient(self, U: Array) -> tuple[float, Array]:
        """Return the value at U and its gradient 2 (A + C - M) U, M = X' Diag(1/sqrt(q)) X / n."""
        n = len(self.problem.X)
        total, pull = self.problem.X.roots_and_pull(U)
        gain = total / n
        if not self.problem.has_l1:
            BU = times(self.B, U)
            return float(1 - 2 * gain + np.sum(U * BU)), 2 * BU - (2 / n) * pull
        relative = self.relative_multiplier(U)
        KU = self.times_B(U) + self.c * times(relative, self.c * U)
        value = 1 - 2 * gain + inner(U, KU) - self.distance(relative)
        return float(value), 2 * KU - (2 / n) * pull

    def times_B(self, U: Array) -> Array:
        """Return B U; by X where there are few rows."""
        problem, rows = self.problem, self.problem.Y
        if not has_few_rows(problem):
            return times(self.B, U)
        return rows.products_with(rows @ U) + (problem.a**2 + problem.c**2)[:, None] * U

    def distance(self, relative: Array) -> float:
        """Return sum_ij (C - C0)_ij^2 / (2 sigma_ij), of multipliers relative to c_i c_j."""
        squares = relative - self.relative
        np.square(squares, out=squares)
        weights = self.problem.c / self.inverse_units.ravel()
        return float(weights @ squares @ weights) / (2.0 * self.stiffness)

    def point(self, U: Array) -> Point:
        """Return U with the value and the gradient there."""
        return Point(U, *self.value_and_gradient(U))

    def update(self, at: Point) -> Point:
        """Take the maximiser C at a point for the multiplier; return the point's new value and gradient.

        The products with X are not needed again.
        """
        old = self.relative_multiplier(at.U)
        before, self.relative = self.distance(old), old
        new = self.relative_multiplier(at.U)
        change = self.c * times(new - old, self.c * at.U)
        value = at.value + inner(at.U, change) - self.distance(new) + before
        return Point(at.U, value, at.gradient + 2 * change)

    def metric(self, U: Array) -> Metric:
        """Return the map Z -> (B + 1)^-1 Z (U'U + shrinkage)^-1, the first guess of the inverse of the Hessian.

        Along a direction with a small part in UU', the value depends on that part's square: scaled so, it changes as
        fast as along the others (Tong, Ma, Chi, JMLR 2021).
        """
        G = times(U.T, U)
        top = top_energy(G)
        shrinkage = SHRINKAGE if self.problem.has_l1 else SHRINKAGE_WITHOUT_L1
        right = inverse_of_positive(G / top + shrinkage * np.eye(len(G)))
        left = self.left
        return (lambda Z: times(Z, right)) if left is None else (lambda Z: left(times(Z, right)))

    def minimise(self, at: Point, steps: int, memory: Memory, poll: Poll = time_budget.poll) -> tuple[Point, int]:
        """Return the point after at most so many L-BFGS steps, and how many there were; ``poll`` may raise to leave."""
        metric = self.metric(at.U)

        def function(U: Array) -> Point:
            poll()
            return self.point(U)

        for taken in range(steps):
            new = take_step(function, at, memory, metric)
            if new is None:
                memory.pairs.clear()
                return at, taken
            at, self.latest = new, new.U
        return at, steps

    def escape(self, U: Array) -> Array:
        """Append the direction in which the certificate is violated most, so that a rank too small can grow."""
        M = self.problem.X.moment(self.problem.inverse_roots(self.problem.X.energies(U)))
        S = M - self.B - self.multiplier(U)
        _, vectors = extreme_eigenpairs(S, 1, "LA", 1e-4) if len(S) > LARGE else np.linalg.eigh(S)
        return np.column_stack([U, 1e-2 * np.sqrt(np.sum(U**2) + 1e-12) * vectors[:, -1:]])


def has_few_rows(problem: DirectionProblem) -> bool:
    """Whether A is X'X/n + Diag(a)^2 of few rows in memory, so that products with X cost less than those with A."""
    from_rows = problem.Y.in_memory and problem.root is None and problem.basis is None
    return from_rows and 4 * len(problem.Y) <= len(problem.c)


def inverse_of_B_and_one(problem: DirectionProblem, B: Array) -> Metric:
    """Return the map Z -> (B + 1)^-1 Z, B = X'X/n + Diag(a)^2 + Diag(c)^2; by X where there are few rows (Woodbury)."""
    if not has_few_rows(problem):
        inverse = inverse_of_positive(B + np.eye(len(B)))
        return lambda Z: times(inverse, Z)
    diagonal = (problem.a**2 + problem.c**2 + 1.0)[:, None]
    rows = problem.Y.array() / len(problem.Y) ** 0.5
    scaled = rows / diagonal.T
    L = cholesky(np.eye(len(rows)) + times(scaled, rows.T))
    F = scipy.linalg.solve_triangular(L, scaled, lower=True, check_finite=False)
    return lambda Z: Z / diagonal - times(F.T, times(F, Z))


class ScaledLagrangian(Lagrangian):
    """The same in the unknown T^-1 U, where the data ask for a V of other size than the columns' variances do.

    A few outlying rows have nearly all of the variance.  Where V can avoid them, it is as large as the other rows ask
    for, and nearly orthogonal to the outlying ones.  T'(B + Diag(units)^-2) T = I: in the unknown the cost is a sum of
    squares in which nothing large cancels, and its curvature is about one in all directions.
    """

    def __init__(self, problem: DirectionProblem, units: Array, C0: Array | None = None) -> None:
        super().__init__(problem, C0)
        root = np.vstack([problem.R, np.diag(problem.c)])
        time_budget.poll(40.0 * float(len(units)) ** 3 if len(units) > LARGE else 0.0)
        _, singular, right = np.linalg.svd(np.vstack([root, np.diag(1.0 / units)]), full_matrices=False)
        self.T, self.inverse_T = right.T / singular, singular[:, None] * right
        self.Z, self.root = problem.X.in_basis(self.T), root @ self.T
        self.left = None
        self.set_stiffness(units)

    def factor(self, unknown: Array) -> Array:
        """Return U."""
        return np.asarray(self.T @ unknown)

    def unknown(self, U: Array) -> Array:
        """Return the unknown at U."""
        return np.asarray(self.inverse_T @ U)

    def value_and_gradient(self, Y: Array) -> tuple[float, Array]:
        """Return the value at U = TY, and its gradient in Y."""
        n, U, RY = len(self.Z), self.T @ Y, self.root @ Y
        total, pull = self.Z.roots_and_pull(Y)
        relative = self.relative_multiplier(U)
        CU = self.c * times(relative, self.c * U)
        value = 1 - 2 * total / n + inner(RY, RY) + inner(U, CU) - self.distance(relative)
        return float(value), 2 * (self.root.T @ RY + self.T.T @ CU) - (2 / n) * pull

    def update(self, at: Point) -> Point:
        """Take the maximiser C at a point for the multiplier; return the point's new value and gradient."""
        new = super().update(Point(self.factor(at.U), at.value, np.zeros_like(at.U)))
        return Point(at.U, new.value, at.gradient + self.T.T @ new.gradient)

    def escape(self, Y: Array) -> Array:
        """Append the direction in which the certificate is violated most."""
        return self.unknown(super().escape(self.factor(Y)))


def lagrangian_of(problem: DirectionProblem, C: Array | None) -> Lagrangian:
    """Return the Lagrangian in the unknown that suits the data.

    The size of V is judged by that of the directions of least squares for labels at random, B^-1 X'X B^-1 / n.
    """
    if not problem.has_l1 or problem.X.in_passes:
        return Lagrangian(problem, C)
    units = np.maximum(np.sqrt(sizes_of_directions(problem)), 1.0)
    if units.max() < OUTLYING and units.max() < UNEQUAL * units.min():
        return Lagrangian(problem, C)
    return ScaledLagrangian(problem, units, C)


def sizes_of_directions(problem: DirectionProblem) -> Array:
    """Return the diagonal of B^+ A B^+, B = A + Diag(c)^2."""
    if problem.is_large:
        inverse = times(problem.W, problem.W.T)
        return np.maximum(np.diag(inverse) - np.square(inverse) @ problem.c**2, 0.0)
    B = problem.A + np.diag(problem.c**2)
    directions = scipy.linalg.lstsq(B, problem.R.T, check_finite=False)[0]
    return row_products(directions, directions)


def top_energy(G: Array) -> float:
    """Return nearly the largest eigenvalue of G = U'U, by power steps; it is at least the largest diagonal entry."""
    z = G[:, np.argmax(np.diag(G))]
    for _ in range(8):
        z = G @ (z / max(float(np.linalg.norm(z)), 1e-300))
    return max(float(np.linalg.norm(z)), float(np.diag(G).max()), 1e-300)


def rotation_to_fewer(U: Array, rtol: float = NEGLIGIBLE) -> Array | None:
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
    problem: DirectionProblem,
    max_iter: int,
    U: Array | None = None,
    C: Array | None = None,
    poll: Poll = time_budget.poll,
) -> Iterator[Iterate]:
    """Yield a point and its multiplier every few rounds, until so many L-BFGS steps are done.

    The memory of L-BFGS is kept when the multiplier changes.  ``poll`` is called at each function value; it may raise
    to leave.
    """
    lagrangian, memory = lagrangian_of(problem, C), Memory()
    start = dense(problem.best_scale(lagrangian.factor(spread_start(problem)) if U is None else U).U)
    at = lagrangian.point(lagrangian.unknown(start) if start.any() else spread_start(problem))
    lagrangian.latest = at.U
    done, best, since, saved = 0, np.inf, 0, 0.0
    progress = StallDetector()
    while done < max_iter:
        try:
            if problem.has_l1:
                rounds = ROUNDS + done // 100
                at, taken = follow_multiplier(lagrangian, at, min(rounds * STEPS, max_iter - done), memory, poll)
            else:
                steps = max(STEPS_WITHOUT_L1, done // 4)
                at, taken = lagrangian.minimise(at, min(steps, max_iter - done), memory, poll)
        except LeaveError:
            with time_budget.spend(None):
                last = problem.best_scale(lagrangian.factor(lagrangian.latest))
            yield Iterate(last.U, done, Dual(), last)  # there is no time for its certificate
            raise
        done += max(taken, 1)
        Q = rotation_to_fewer(at.U)
        if Q is not None:
            memory.rotate(Q)
            at = lagrangian.point(at.U @ Q)
        saved += taken * at.U.shape[1] / len(at.U)
        fitted = saved >= WORTH and FEWEST <= len(at.U) <= LARGE
        saved = 0.0 if fitted else saved
        iterate = proposal(lagrangian, lagrangian.factor(at.U), done, fitted=fitted)
        yield iterate
        if progress.ended(iterate, taken):
            return
        if problem.has_l1:
            at = lagrangian.update(at)
        # The gap narrows long after the value has settled.
        missing = iterate.bounds.gap if iterate.bounds else at.value
        since = 0 if missing < best - 1e-3 * abs(best) else since + 1
        best = min(best, missing)
        if since >= STALL and at.U.shape[1] < len(at.U):
            at, since = lagrangian.point(lagrangian.escape(at.U)), 0
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
        return self.since >= END or self.idle >= 3 * STALL


def follow_multiplier(lagrangian: Lagrangian, at: Point, steps: int, memory: Memory, poll: Poll) -> tuple[Point, int]:
    """Return the point after at most so many steps, with the multiplier updated every few, and how many there were."""
    done = 0
    while True:
        at, taken = lagrangian.minimise(at, min(STEPS, steps - done), memory, poll)
        done += taken
        if done >= steps or taken == 0:
            return at, done
        at = lagrangian.update(at)


def proposal(lagrangian: Lagrangian, U: Array, done: int, *, fitted: bool = False) -> Iterate:
    """Return what is proposed at U: where there is an l1 part, with a bracket that is narrower than U's alone."""
    problem = lagrangian.problem
    if problem.X.in_passes:  # certified by whoever asked, in one pass
        return Iterate(U, done, Dual(C=lagrangian.multiplier(U) if problem.has_l1 else None))
    point = problem.best_scale(U)
    if not problem.has_l1:
        return Iterate(U, done, Dual(), point)
    C = lagrangian.multiplier(U)
    polished, bounds = polish(problem, point, C, fitted=fitted)
    return Iterate(U, done, Dual(u=problem.inverse_roots(point.q), C=C), polished, bounds)
