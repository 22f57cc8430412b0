"""What the fast solvers share: from X and a generator of points to a result, stopped by the proved gap."""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.block_bounds import bracket_any
from diffrac_cvx.certificates.block_problem import number_by_first
from diffrac_cvx.certificates.contradictions import Judged
from diffrac_cvx.certificates.direction_bounds import Dual
from diffrac_cvx.certificates.screening import weights_at
from diffrac_cvx.certificates.separation import label_components
from diffrac_cvx.errors import DataError, LostError
from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.machine.time_budget import Budget, Clock, LeaveError, spend
from diffrac_cvx.points.checks import Array, PointWeights, in_unit_interval, positive, positive_int
from diffrac_cvx.points.chunks import known_shape
from diffrac_cvx.points.exclusion import without
from diffrac_cvx.points.factors import Factor, dense, is_sparse, scale_rows, squared_norm
from diffrac_cvx.points.floating_point import round_up
from diffrac_cvx.points.links import Links
from diffrac_cvx.points.points import Points
from diffrac_cvx.points.ranges import is_out_of_range
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.problem.direction_problem import (
    DirectionProblem,
    Scaled,
    best_alone,
    direction_problem,
    offset_only,
    unit_problem,
    warn_if_uninformative,
)
from diffrac_cvx.problem.gradient import Instance, instance_of
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Bracket, Components, Labels, Progress, Result, Status

Callback = Callable[[Progress], object]
TICK = 0.2  # seconds between calls of the user's callback while a point of large data is computed
QUICK = 2e8  # n d^2 up to which a look at all pairs of features takes a tenth of a second

WIDE_GAP = 0.1  # proved, relative: enough for labels where there are more features than points, and an l1 part

LATE = Budget(lambda: 0.0)  # what can end early does


class Iterate(NamedTuple):
    """A point that a solver proposes.

    Attributes
    ----------
    U : (D, r) array
        Factor of V = UU', in the coordinates of the problem, at any scale.
    n_iter : int
        Iterations so far.
    dual : Dual, optional
        The solver's multipliers, where it has them; the bracket is narrower with them.
    scaled : Scaled, optional
        ``problem.best_scale(U)``, where the solver has computed it.
    bounds : Bracket, optional
        The proved bracket, where the solver has computed it; else it is ``bracket(problem, scaled, dual)``.
    groups : Components, optional
        Groups of coordinates between which UU' is zero, and between which every optimal V is proved to be.
    """

    U: Factor
    n_iter: int
    dual: Dual | None = None
    scaled: Scaled | None = None
    bounds: Bracket | None = None
    groups: Components | None = None


class Start(NamedTuple):
    """A warm start in the problem's coordinates: the factor at its best scale and the multiplier, or None for both."""

    U: Factor | None = None
    C: Factor | None = None
    point: Scaled | None = None  # the factor with its value, where that has been computed

    @property
    def as_dense(self) -> tuple[Array | None, Array | None]:
        return None if self.U is None else dense(self.U), None if self.C is None else dense(self.C)


class Stopping:
    """When to stop: the tolerances on the proved gap, absolute and relative, the limits, and the user's callback.

    It keeps the clock, what the user was told last and when, and why the solver has to leave.  It belongs to the thread
    that made it: the callback is called in no other.

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
        self.clock = Clock(None if time_limit is None else positive(time_limit, "time_limit"))
        self.callback, self.thread = callback, threading.get_ident()
        self.told = 0.0  # when the user was told last
        self.progress = Progress(iteration=0, seconds=0.0, lower=0.0, upper=1.0)
        self.ticks = False  # whether the user is told while a point is computed
        self.status: Status | None = None
        self.count: Callable[[], int] = int  # rows that were read until now

    def is_met(self, lower: float, upper: float) -> bool:
        return upper - lower <= max(self.tol, self.rtol * upper)

    @property
    def budget(self) -> Budget:
        """What the computations of the solver look at."""
        return Budget(lambda: self.clock.remaining, self.poll, lambda: self.leave(Status.TIME_LIMIT))

    def leave(self, status: Status) -> None:
        """Leave, now and at every further look."""
        self.status = status
        raise LeaveError(status)

    def poll(self) -> None:
        """Raise LeaveError where the solver has to leave; tell the user where the last time is long ago."""
        if self.status is not None:
            raise LeaveError(self.status)
        if self.clock.is_over:
            self.leave(Status.TIME_LIMIT)
        if not self.ticks or self.callback is None or threading.get_ident() != self.thread:
            return
        if self.clock.seconds - self.told >= TICK:
            line = self.progress._replace(seconds=self.clock.seconds)
            stop = self.callback(line.with_marks(self.count(), self.progress.n_excluded))
            self.told = self.clock.seconds
            if stop:
                self.leave(Status.STOPPED)

    def reason(self, progress: Progress) -> Status | None:
        """Return why to stop now, or None to continue."""
        stop = bool(self.callback(progress)) if self.callback else False
        self.progress, self.told = progress, self.clock.seconds
        if self.is_met(progress.lower, progress.upper):
            return Status.OPTIMAL
        if stop:
            return Status.STOPPED
        if progress.iteration >= self.max_iter:
            return Status.MAX_ITER
        return Status.TIME_LIMIT if progress.seconds >= self.clock.limit else None


def solve_by_iterates(
    X: npt.ArrayLike,
    nu: float,
    penalty: Penalty,
    iterates: Callable[[DirectionProblem, Start], Iterable[Iterate]],
    stopping: Stopping,
    solver: str,
    *,
    start: Result | npt.ArrayLike | None = None,
    exhausted: Status = Status.STALLED,
    sample_weight: npt.ArrayLike | None = None,
    links: Links | None = None,
    are_many: Callable[[int, int], bool] | None = None,
    by_columns: bool = False,
) -> Result:
    """Solve problem (15) by a generator of points: certify each, keep the best, stop on the proved gap.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or dask array
        Data; centred here.
    nu : float
        Weight of the imbalance, in [0, 1].
    penalty : Penalty
        Weights a and c.
    iterates : callable
        From the ``DirectionProblem`` and the `Start` to the points, each an `Iterate`.
    stopping : Stopping
        The tolerance on the proved gap and the limits.
    solver : str
        Name of the solver, for the result.
    start : Result or (d, d) array, optional
        A matrix of directions to start from; it is certified before the points.
    exhausted : Status
        The status where the points end before the tolerance or a limit is reached.
    sample_weight : (n,) array, optional
        Weights of the points of an array.
    links : Links, optional
        What is known of the points of an array.
    are_many : callable, optional
        Whether n points of d features are read by parts, where they have no weights and no links.
    by_columns : bool
        Whether a sparse matrix of fewer points is kept by columns.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.
    """
    nu = in_unit_interval(nu, "nu")
    X = known_shape(X)
    instance = instance_of(X, nu, penalty, sample_weight, links)
    trivial = partial(trivial_result, instance=instance, stopping=stopping, solver=solver)
    try:
        with spend(stopping.budget):
            sample = read_points(
                X, sample_weight, links=links, are_many=are_many, by_columns=by_columns, warn=True, depth=5
            )
    except LeaveError as leave:
        return trivial(np.shape(X), status=leave.status)
    data, shape = sample.X, sample.every.shape
    G = offset_only(data, nu)
    if G is not None:
        upper = min(round_up(nu), 1.0)  # 1 - nu is rounded, and with it V
        return trivial(shape, status=Status.CLOSED_FORM, G=G, bounds=(nu, upper))
    stopping.ticks = is_large(*data.shape)
    with one_thread(), spend(stopping.budget):
        try:
            problem = direction_problem(data, nu, penalty)
            first = starting_point(problem, start)
            warn_if_uninformative(problem, data, penalty)
            points = iterates(problem, first)
        except LeaveError as leave:
            if data.in_passes:
                return trivial(shape, status=leave.status)
            with spend(LATE):
                problem, points = unit_problem(data, nu, penalty), iter(())
                first = starting_point(problem, start)
        if problem.X.shape[1] == 0:  # beside the penalty, the data are below rounding
            return trivial(shape, status=Status.RANGE)
        if not problem.X.in_passes:  # of many rows the solver certifies the start itself, in one pass
            points = with_start(first, points)
        found = certify_until_stopped(problem, points, first.point, stopping, solver, exhausted)
    with one_thread(), spend(None):
        try:
            found = with_proved_value(found, without(data, problem.excluded), instance, stopping)
        except (DataError, LostError) as error:
            raise with_bracket(error, found.lower, found.upper) from error
        return with_all_points(found, problem, sample.every, sample.weights, links)


def with_all_points(
    found: Result, problem: DirectionProblem, points: Points, weights: PointWeights | None, links: Links | None = None
) -> Result:
    """Return the result with a row of F, and u = 1, for the points of weight 0 too."""
    if weights is None or not weights.has_zeros or points.in_passes:
        return found
    u = np.ones(len(points))
    u[weights.kept] = 1.0 if found.u is None else found.u
    F = problem.labels_factor_of_all(problem.from_result(found), points.array(), weights.kept, links)
    return replace(found, F=F, u=None if found.u is None else u)


def with_proved_value(found: Result, data: Points, instance: Instance, stopping: Stopping) -> Result:
    """Return the result with the value of its V as it is returned, in the user's units, rounding included.

    V = 0, of value 1, takes the place of a V that is not proved to be better.  The lower bound is held against this
    value, and against the cost of rounded labels.
    """
    assert found.G is not None  # solvers of (15) have a V
    judged = Judged(data, instance.nu, instance.penalty)
    G, value = judged.or_zero(found.G)
    status = found.status
    if status is Status.OPTIMAL and not stopping.is_met(found.lower, value):
        status = Status.STALLED
    F = found.__dict__["F"]  # it may be a function, which is not to be called yet
    found = replace(found, value=value, upper=value, F=F, G=G, status=status, _instance=instance)
    cost = judged.least_cost(None if callable(F) else F, G)
    return replace(found.judged_by(cost), F=F, seconds=stopping.clock.seconds)


def trivial_result(
    shape: tuple[int, ...],
    instance: Instance,
    status: Status,
    stopping: Stopping,
    solver: str,
    *,
    G: Array | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Result:
    """Return a result without steps, all points in one cluster: by default the trivial bracket, at V = 0."""
    n, d = shape
    return Result(
        value=bounds[1],
        lower=bounds[0],
        upper=bounds[1],
        F=np.ones((n, 1)),
        G=np.zeros((d + int(instance.nu < 1.0), 1)) if G is None else G,
        status=status,
        n_iter=0,
        seconds=stopping.clock.seconds,
        solver=solver,
        _instance=instance,
    )


class Found:
    """The best point so far, its dual and groups, the bound, and what was told of them."""

    def __init__(self, problem: DirectionProblem, best: Scaled) -> None:
        self.problem, self.best, self.lower = problem, best, 0.0
        self.dual: Dual | None = None
        self.groups: Components | None = None
        self.proved: Labels | None = None
        self.history: list[Progress] = []

    def take(self, iterate: Iterate, stopping: Stopping) -> Progress:
        """Certify a point, which counts from when its value is known, whether or not there is time for the rest."""
        X = self.problem.X
        point = self.problem.best_scale(iterate.U) if iterate.scaled is None else iterate.scaled
        if point.value < self.best.value or (self.dual is None and point.value == self.best.value):
            self.best, self.groups, self.dual = point, iterate.groups, iterate.dual
        if iterate.bounds is None:
            stopping.poll()
        bounds = iterate.bounds or bracket_any(self.problem, point, iterate.dual)
        if iterate.groups is not None and iterate.groups.proved is not None:
            self.proved = iterate.groups.proved
        self.lower = max(self.lower, bounds.lower)
        now = Progress(iterate.n_iter, stopping.clock.seconds, min(self.lower, self.best.value), self.best.value)
        self.history.append(now.with_marks(X.rows_read if X.in_passes else 0, self.problem.n_excluded))
        return self.history[-1]

    def result(self, status: Status, seconds: float, solver: str) -> Result:
        """Return it in the user's coordinates."""
        problem, best, dual = self.problem, self.best, self.dual
        groups = self.groups and replace(self.groups, proved=self.proved)
        return Result(
            value=best.value,
            lower=self.lower,
            upper=best.value,
            F=problem.labels_factor(best.U),
            status=status,
            n_iter=self.history[-1].iteration if self.history else 0,
            seconds=seconds,
            solver=solver,
            history=tuple(self.history),
            C=user_multiplier(problem, dual),
            u=None if dual is None or dual.u is None else problem.user_weights(dual.u),
            G=problem.user_factor(best.U),
            components=groups and user_components(problem, best, best.value - self.lower, groups),
            n_excluded=problem.n_excluded,
        )


def certify_until_stopped(
    problem: DirectionProblem,
    iterates: Iterable[Iterate],
    first: Scaled | None,
    stopping: Stopping,
    solver: str,
    exhausted: Status,
) -> Result:
    """Certify each iterate until the stopping rule is met; return the best point, of the start too, and the bracket."""
    n, D = problem.X.shape
    zero = Scaled(np.zeros((D, 1)), 1.0, np.zeros(0 if problem.X.in_passes else n))
    found, status = Found(problem, zero if first is None else first), None
    stopping.count = lambda: problem.X.rows_read
    try:
        for iterate in iterates:
            status = stopping.reason(found.take(iterate, stopping))
            if status is not None:
                break
    except LeaveError as leave:
        status = leave.status
    except (DataError, LostError) as error:
        raise with_bracket(error, min(found.lower, found.best.value), found.best.value) from error
    except (ArithmeticError, ValueError) as error:
        if not is_out_of_range(error):
            raise
        status = Status.RANGE
    status = stopping.status if status is None else status
    with spend(None):  # what follows is needed, and short
        if found.best.value >= 1.0 and status in (Status.TIME_LIMIT, Status.STOPPED) and not problem.X.in_passes:
            found.best = best_alone(problem)
        if status is None:
            status = Status.OPTIMAL if stopping.is_met(found.lower, found.best.value) else exhausted
        return found.result(status, stopping.clock.seconds, solver)


def with_bracket(error: DataError | LostError, lower: float, upper: float) -> DataError | LostError:
    """Return the error that also says what was proved until the data changed, or could not be read any more."""
    said = f"{error}; proved until then: the optimum lies in {Bracket(lower, upper)}"
    said += ", for the data as they were read first" if isinstance(error, DataError) else ""
    return type(error)(said, bracket=(lower, upper))


def is_large(n: int, D: int) -> bool:
    """Whether a single product or decomposition may take longer than the limits may be exceeded by."""
    return n * D >= 2e7 or n * D**2 >= 2e8 or D >= 400


def user_components(problem: DirectionProblem, point: Scaled, gap: float, groups: Components) -> Components:
    """Return the components of the features alone, without the offset, numbered by first feature.

    Where the solver has not seen which are proved, as with unpenalised coordinates, that is computed if it is quick.
    """
    d, proved = len(problem.scale) - int(problem.has_offset), groups.proved
    penalised = np.flatnonzero(problem.c > 0.0)
    if proved is None and len(penalised) < len(problem.c) and len(problem.X) * len(penalised) ** 2 <= QUICK:
        if problem.X.in_passes:
            if not problem.X.is_here:
                return Components(number_by_first(groups.found[:d]), None)
            problem = replace(problem, X=problem.X.in_columns())
            point = problem.best_scale(point.U)
        proved = np.full(len(problem.c), -1)
        proved[penalised] = label_components(problem, weights_at(point.q, gap), None)
    return Components(number_by_first(groups.found[:d]), None if proved is None else number_by_first(proved[:d]))


def user_multiplier(problem: DirectionProblem, dual: Dual | None) -> Factor | None:
    """Return the multiplier C of the l1 part in the user's coordinates, if there is one."""
    if dual is None or dual.C is None or not problem.is_coupled:
        return None
    inverse = 1.0 / problem.scale
    if is_sparse(dual.C):
        return scale_rows(scale_rows(dual.C, inverse).T, inverse)
    return np.asarray(dual.C * np.outer(inverse, inverse))


def with_start(start: Start, iterates: Iterable[Iterate]) -> Iterator[Iterate]:
    """Yield a warm start at no iterations, unless it has blocks: its solver certifies these; and then the iterates."""
    if start.U is not None and not is_sparse(start.U):
        yield Iterate(start.U, 0, Dual(C=start.C), start.point)
    yield from iterates


def starting_point(problem: DirectionProblem, start: Result | npt.ArrayLike | None) -> Start:
    """Return a warm start in the problem's coordinates."""
    if start is None or (isinstance(start, Result) and start.G is None):
        return Start()
    point = problem.best_scale(problem.from_result(start, "start"))
    if squared_norm(point.U) == 0.0:
        return Start()
    C = problem.multiplier_of(start) if isinstance(start, Result) else None
    return Start(point.U, C if C is None or is_sparse(C) else problem.coupling.project(C), point)
