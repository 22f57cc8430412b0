"""Common driver of the fast solvers: pose the problem, certify the iterates, and stop on the certified gap."""

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.block_problem import UNPENALIZED, labels_of_pattern, number_by_first
from diffrac_cvx.certificates.certificate import Certificate
from diffrac_cvx.certificates.checker import state, to_proof
from diffrac_cvx.certificates.consistency import RoundingBound
from diffrac_cvx.certificates.direction_bounds import NO_DUAL, DualPoint, certify
from diffrac_cvx.certificates.proof import TRIVIAL, Bound, best_of
from diffrac_cvx.certificates.screening import screen_components
from diffrac_cvx.errors import DataError, ResourceError, sentence
from diffrac_cvx.machine.deadlines import Deadline, EarlyExitError, Timer, time_limited
from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.points.checks import Array, PointWeights, in_unit_interval, positive, positive_int, require_callback
from diffrac_cvx.points.constraints import Constraints, chunklets_of
from diffrac_cvx.points.exclusion import exclude_columns
from diffrac_cvx.points.factors import Factor, as_sparse, dense, is_sparse, squared_norm
from diffrac_cvx.points.floating_point import round_up
from diffrac_cvx.points.ranges import is_out_of_range
from diffrac_cvx.points.reading import Sample, read_points
from diffrac_cvx.points.rows import Mask
from diffrac_cvx.points.table import Table
from diffrac_cvx.problem.direction_problem import (
    DirectionProblem,
    PrimalPoint,
    best_single_feature,
    direction_problem,
    offset_solution,
    unit_problem,
    warn_if_uninformative,
    without_collinear,
    without_excluded,
)
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Bracket, Components, Progress, Result, Status

Callback = Callable[[Progress], object]
CALLBACK_INTERVAL = 0.2  # seconds between calls of the user's callback during a long iteration
WIDE_TABLE_RTOL = 0.1  # certified relative gap that suffices for labels if d > n and there is an l1 term


class Iterate(NamedTuple):
    """Candidate solution proposed by a solver.

    Attributes
    ----------
    U : (D, r) array
        Factor of V = UU', in the coordinates of the problem and on any scale.
    n_iter : int
        Iterations so far.
    dual : DualPoint
        Multipliers of the solver, if any; they tighten the bounds.
    point : PrimalPoint, optional
        ``problem.rescale(U)``, if the solver has computed it.
    bound : Bound, optional
        Lower bound with its proof, if the solver has computed it; by default ``certify(problem, point, dual)``.
    """

    U: Factor
    n_iter: int
    dual: DualPoint = NO_DUAL
    point: PrimalPoint | None = None
    bound: Bound | None = None


class WarmStart(NamedTuple):
    """Warm start in the problem's coordinates: optimally scaled factor and multiplier, or None for both."""

    U: Factor | None = None
    C: Factor | None = None
    point: PrimalPoint | None = None  # the factor with its value, if computed

    @property
    def as_dense(self) -> tuple[Array | None, Array | None]:
        return None if self.U is None else dense(self.U), None if self.C is None else dense(self.C)


class Stopping:
    """Stopping rule: absolute and relative tolerances on the certified gap, limits, and the user's callback.

    It holds the timer, the last progress reported, and the status that ends the solver.  The callback is called only
    in the thread that created the rule.

    Raises
    ------
    ParameterError
        If tol, max_iter or time_limit is not positive, or rtol not in [0, 1].
    """

    def __init__(
        self,
        tol: float,
        max_iter: int,
        time_limit: float | None = None,
        callback: Callback | None = None,
        *,
        rtol: float = 0.0,
    ) -> None:
        self.tol, self.rtol = positive(tol, "tol"), in_unit_interval(rtol, "rtol")
        self.max_iter = positive_int(max_iter, "max_iter")
        self.timer = Timer(None if time_limit is None else positive(time_limit, "time_limit"))
        require_callback(callback)
        self.callback, self.thread = callback, threading.get_ident()
        self.last_callback = 0.0  # time of the last callback
        self.progress = Progress(iteration=0, seconds=0.0, lower=0.0, upper=1.0)
        self.calls_periodically = False  # whether the callback is also called while an iterate is computed
        self.status: Status | None = None
        self.count_rows: Callable[[], int] = int  # rows read so far
        self.n_excluded = 0

    def tolerance(self, upper: float) -> float:
        """Return the certified gap at which to stop, for this upper bound."""
        return max(self.tol, self.rtol * upper)

    def is_met(self, lower: float, upper: float) -> bool:
        return upper - lower <= self.tolerance(upper)

    @property
    def deadline(self) -> Deadline:
        """Deadline for the computations of the solver; one that would take too long ends without stopping it."""

        def too_long() -> None:
            raise EarlyExitError(Status.TIME_LIMIT)

        return Deadline(lambda: self.timer.remaining, self.check_deadline, too_long)

    def abort(self, status: Status) -> None:
        """Raise EarlyExitError now and at every later check of the deadline."""
        self.status = status
        raise EarlyExitError(status)

    def check_deadline(self) -> None:
        """Raise EarlyExitError if the solver has to stop; call the user's callback if it is due."""
        if self.status is not None:
            raise EarlyExitError(self.status)
        if self.timer.is_over:
            self.abort(Status.TIME_LIMIT)
        if not self.calls_periodically or self.callback is None or threading.get_ident() != self.thread:
            return
        if self.timer.elapsed - self.last_callback >= CALLBACK_INTERVAL:
            stop = self.callback(self.line(self.progress.iteration, self.progress.lower, self.progress.upper))
            self.last_callback = self.timer.elapsed
            if stop:
                self.abort(Status.STOPPED)

    def line(self, iteration: int, lower: float, upper: float) -> Progress:
        """Return the progress so far, for the history and the callback."""
        line = Progress(iteration, self.timer.elapsed, lower, upper)
        line.rows, line.n_excluded = self.count_rows(), self.n_excluded
        return line

    def stop_reason(self, progress: Progress) -> Status | None:
        """Return the status with which to stop now, or None to continue."""
        stop = bool(self.callback(progress)) if self.callback else False
        self.progress, self.last_callback = progress, self.timer.elapsed
        if self.is_met(progress.lower, progress.upper):
            return Status.OPTIMAL
        if stop:
            return Status.STOPPED
        if progress.iteration >= self.max_iter:
            return Status.MAX_ITER
        return Status.TIME_LIMIT if progress.seconds >= self.timer.limit else None


@dataclass(frozen=True, eq=False)
class Task:
    """Problem (15) as the user posed it, with the solver and its stopping rule."""

    sample: Sample
    nu: float
    penalty: Penalty
    constraints: Constraints | None
    stopping: Stopping
    solver: str

    def points_of(self, problem: DirectionProblem) -> Table:
        """Return the points without the columns that the problem excludes."""
        return exclude_columns(self.sample.X, problem.coordinates.excluded)

    def certificate(self, points: Table, **fields: Any) -> Certificate:
        """Return the certificate of the problem of these points; by default that of V = 0, with trivial bounds."""
        fields = {"G": zero_directions(points.shape[1], self.nu)} | fields
        return state("directions", self.nu, self.penalty, points, self.sample.weights, self.constraints, **fields)


class Certified(NamedTuple):
    """Best certified iterate, with its dual, the best bound of all iterates, and the termination status, if any."""

    point: PrimalPoint
    dual: DualPoint | None
    bound: Bound
    history: list[Progress]
    status: Status | None


def solve_by_iterates(
    X: npt.ArrayLike,
    nu: float,
    penalty: Penalty,
    iterates: Callable[[DirectionProblem, WarmStart], Iterable[Iterate]],
    stopping: Stopping,
    solver: str,
    *,
    start: Result | npt.ArrayLike | None = None,
    certifies_start: bool = False,
    sample_weight: npt.ArrayLike | None = None,
    constraints: Constraints | None = None,
    are_many: Callable[[int, int], bool] | None = None,
    by_columns: bool = False,
) -> Result:
    """Solve problem (15) with a generator of iterates: certify each, keep the best, stop on the certified gap.

    The start is certified before the first iterate, unless the solver ``certifies_start`` itself.  Rows without weights
    and constraints are streamed if ``are_many(n, d)``.  A sparse matrix is stored by columns if ``by_columns``.
    """
    nu = in_unit_interval(nu, "nu")
    try:
        with time_limited(stopping.deadline):
            sample = read_points(
                X, sample_weight, constraints=constraints, are_many=are_many, by_columns=by_columns, warn=True
            )
        task = Task(sample, nu, penalty, constraints, stopping, solver)
        offset = offset_solution(sample.X, nu)
        if offset is not None:
            return closed_form(task, offset)
        # For large data, a single product or decomposition may take longer than the callback interval.
        n, d = sample.X.shape
        stopping.calls_periodically = n * d >= 2e7 or n * d**2 >= 2e8 or d >= 400
        with one_thread(), time_limited(stopping.deadline):
            problem, warm_start, points = pose(task, iterates, start)
    except EarlyExitError as leave:
        n, d = np.shape(X)
        at_zero = Certificate("directions", 0.0, 1.0, nu, penalty, (n, d), G=zero_directions(d, nu))
        return one_cluster(at_zero, leave.status, stopping, solver)
    with one_thread(), time_limited(stopping.deadline):
        if problem.X.shape[1] == 0:  # relative to the penalty, the data are below rounding error
            points_left = task.points_of(problem)
            lower = 0.0 if points_left.used_columns().any() else nu  # without features the optimum is nu
            return one_cluster(task.certificate(points_left, lower=lower), Status.OVERFLOW, stopping, solver)
        if warm_start.U is not None and not certifies_start:
            points = chain([Iterate(warm_start.U, 0, DualPoint(C=warm_start.C), warm_start.point)], points)
        found = certify_iterates(problem, warm_start, points, stopping)
    with one_thread(), time_limited(None):  # the rest is required and short
        return finish(task, problem, found)


def zero_directions(d: int, nu: float) -> Array:
    """Return G of V = GG' = 0, with the row of the offset if nu < 1."""
    return np.zeros((d + int(nu < 1.0), 1))


def one_cluster(certificate: Certificate, status: Status, stopping: Stopping, solver: str) -> Result:
    """Return a result without iterations, from a certificate with all points in one cluster."""
    lower, upper, F = certificate.lower, certificate.upper, np.ones((certificate.shape[0], 1))
    ends: dict[str, Any] = {"G": certificate.G, "n_excluded": certificate.n_excluded, "certificate": certificate}
    ends |= {"status": status, "n_iter": 0, "seconds": stopping.timer.elapsed, "solver": solver}
    return Result(value=upper, lower=lower, upper=upper, factor=F, **ends)


def excludes_quickly(X: Table) -> bool:
    """Return whether the exclusion of columns takes only a fraction of a second, so that no time limit is needed."""
    return len(X) * X.shape[1] ** 2 <= 1e9


def closed_form(task: Task, G: Array) -> Result:
    """Return the solution with the offset alone, of value nu, see `offset_solution`."""
    X, nu, stopping = task.sample.X, task.nu, task.stopping
    deadline = None if excludes_quickly(X) else stopping.deadline
    with one_thread(), time_limited(deadline), suppress(EarlyExitError, ResourceError):
        X = without_excluded(X, nu, task.penalty)  # otherwise keep all columns: the bounds hold for them too
    upper = min(round_up(nu), 1.0)  # 1 - nu is rounded, and with it V
    return one_cluster(task.certificate(X, lower=nu, upper=upper, G=G), Status.CLOSED_FORM, stopping, task.solver)


def pose(
    task: Task,
    iterates: Callable[[DirectionProblem, WarmStart], Iterable[Iterate]],
    start: Result | npt.ArrayLike | None,
) -> tuple[DirectionProblem, WarmStart, Iterable[Iterate]]:
    """Return the problem, the warm start and the iterates.

    If the time limit is reached, the problem is posed in unit columns, without its matrices, and there are no iterates:
    the result is the starting point.  For streamed rows the error of the limit is raised instead.
    """
    X, nu, penalty = task.sample.X, task.nu, task.penalty
    try:
        problem = direction_problem(X, nu, penalty)
        warm_start = starting_point(problem, start)
        warn_if_uninformative(problem, X, penalty)
        return problem, warm_start, iterates(problem, warm_start)
    except EarlyExitError:
        if X.rows.is_streamed:
            raise
    if excludes_quickly(X):
        with time_limited(None):
            X = without_collinear(X, penalty)
    with time_limited(Deadline(lambda: 0.0)):  # a deadline in the past: every computation that can be cut short is
        problem = unit_problem(X, nu, penalty)
        return problem, starting_point(problem, start), ()


def certify_iterates(
    problem: DirectionProblem, warm_start: WarmStart, points: Iterable[Iterate], stopping: Stopping
) -> Certified:
    """Certify iterates until the stopping rule is met or there are no more, and return the best."""
    best = warm_start.point or PrimalPoint(np.zeros((len(problem.c), 1)), 1.0, np.zeros(0))
    dual: DualPoint | None = None
    bound, history, status = TRIVIAL, list[Progress](), None
    stopping.count_rows, stopping.n_excluded = lambda: problem.X.rows_read, problem.coordinates.n_excluded
    try:
        for iterate in points:
            # The point may become the best even if no time is left for its lower bound.
            point = problem.rescale(iterate.U) if iterate.point is None else iterate.point
            if point.value < best.value or (dual is None and point.value == best.value):
                best, dual = point, iterate.dual
            if iterate.bound is None:
                stopping.check_deadline()
            # The lower bound of every iterate is valid.
            bound = best_of(bound, iterate.bound or certify(problem, point, iterate.dual))
            history.append(stopping.line(iterate.n_iter, min(bound.lower, best.value), best.value))
            status = stopping.stop_reason(history[-1])
            if status is not None:
                break
    except EarlyExitError as leave:
        status = leave.status
    except DataError as error:
        raise with_bracket(error, Bracket(min(bound.lower, best.value), best.value, stopping.n_excluded)) from error
    except (ArithmeticError, ValueError) as error:
        if not is_out_of_range(error):
            raise
        status = Status.OVERFLOW
    return Certified(best, dual, bound, history, stopping.status if status is None else status)


def finish(task: Task, problem: DirectionProblem, found: Certified) -> Result:
    """Return the best point in the user's coordinates, with the certificate of its value and of the bound.

    V = 0, with value 1, replaces a V that is not certified to be better, rounding errors included.  The lower bound is
    checked against this value and against the objective of the rounded labels.
    """
    (best, dual, bound, history, status), stopping, coordinates = found, task.stopping, problem.coordinates
    if best.value >= 1.0 and status in (Status.TIME_LIMIT, Status.STOPPED) and not problem.X.is_streamed:
        best = best_single_feature(problem)
    C = None if dual is None or not problem.has_l1 else dual.C
    try:
        rounding_bound = RoundingBound(task.points_of(problem), task.nu, task.penalty)
        G, value = rounding_bound.or_trivial(coordinates.inverse_transform(best.U))
    except DataError as error:
        raise with_bracket(error, Bracket(bound.lower, best.value, coordinates.n_excluded)) from error
    if status is None or status is Status.OPTIMAL:
        status = Status.OPTIMAL if stopping.is_met(bound.lower, value) else Status.STALLED
    result = Result(
        value=value,
        lower=bound.lower,
        upper=value,
        factor=problem.labels_factor(best.U),
        status=status,
        n_iter=history[-1].iteration if history else 0,
        seconds=stopping.timer.elapsed,
        solver=task.solver,
        history=tuple(history),
        C=None if C is None else coordinates.inverse_transform_multiplier(C),
        G=G,
        components=components_of(problem, best, best.value - bound.lower),
        n_excluded=coordinates.n_excluded,
    )
    result = result.checked_against(rounding_bound.upper_bound(None if callable(result.factor) else result.F, G))
    proofs = to_proof(bound.multipliers if result.invalid_bound is None else None, problem)
    certificate = task.certificate(rounding_bound.X, lower=result.lower, upper=value, proofs=proofs, G=G)
    result = replace(result, certificate=certificate, seconds=stopping.timer.elapsed)
    return with_all_points(result, problem, task.sample.X_all, task.sample.weights, task.constraints)


def with_all_points(
    found: Result,
    problem: DirectionProblem,
    points: Table,
    weights: PointWeights | None,
    constraints: Constraints | None = None,
) -> Result:
    """Return the result with rows of F for all points, including those of weight 0."""
    if weights is None or not weights.has_zeros:
        return found
    U = problem.coordinates.transform_result(found)
    return replace(found, factor=labels_factor_of_all(problem, U, points.array(), weights.mask, constraints))


def labels_factor_of_all(
    problem: DirectionProblem, U: Factor, X_all: Array, mask: Mask, constraints: Constraints | None
) -> Array:
    """Return the factor of labels for all centred points in the user's units; the mask selects those of the problem."""
    F = np.asarray(problem.coordinates.labels_factor(U, X_all))
    return chunklets_of(constraints, len(X_all)).propagate(F, np.asarray(problem.labels_factor(U)), mask)


def with_bracket(error: DataError, bounds: Bracket) -> DataError:
    """Return the error with the bounds certified before the data changed or became unreadable."""
    message = f"{sentence(error)} Certified so far: the optimum lies in {bounds}, for the data as first read."
    return type(error)(message, bracket=bounds)


def components_of(problem: DirectionProblem, point: PrimalPoint, gap: float) -> Components | None:
    """Return the components of the features between which V is zero, numbered by first feature; None if they are one.

    The components between which every optimal V is zero are certified from the gap, if this takes a fraction of a
    second and the rows are not distributed.
    """
    if not (problem.has_l1 and problem.pair_penalty.splits_into_blocks):
        return None
    penalized, U = np.flatnonzero(problem.c > 0.0), as_sparse(point.U)
    if not 0 < 2 * U.count_nonzero() <= np.prod(U.shape):
        return None
    found = np.full(len(problem.c), UNPENALIZED)
    found[penalized] = labels_of_pattern(U[penalized])
    if found.max(initial=0) == 0:
        return None
    d, certified = len(problem.coordinates.scale) - int(problem.coordinates.has_offset), None
    if len(problem.X) * len(penalized) ** 2 <= 1e9 and not problem.X.is_distributed:
        if len(point.q) != len(problem.X):  # q is not stored for streamed rows
            problem = problem.in_columns()
            point = problem.rescale(point.U)
        labels = np.full(len(problem.c), UNPENALIZED)
        labels[penalized] = screen_components(problem, point.q, gap)
        certified = number_by_first(labels[:d])
    return Components(number_by_first(found[:d]), certified)


def starting_point(problem: DirectionProblem, start: Result | npt.ArrayLike | None) -> WarmStart:
    """Return the warm start in the problem's coordinates; empty if there is none or it is zero."""
    if start is None or (isinstance(start, Result) and start.G is None):
        return WarmStart()
    point = problem.rescale(problem.coordinates.transform_result(start, "start"))
    if squared_norm(point.U) == 0.0:
        return WarmStart()
    C = problem.transform_multiplier(start) if isinstance(start, Result) else None
    return WarmStart(point.U, C if C is None or is_sparse(C) else problem.pair_penalty.project_safe(C), point)
