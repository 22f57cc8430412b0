"""Stopping rule of the fast solvers, and the iterates and warm starts that they exchange with their driver."""

import threading
from collections.abc import Callable, Generator
from typing import NamedTuple

from diffrac_cvx.certificates.direction_bounds import NO_DUAL, DualPoint
from diffrac_cvx.machine.deadlines import Deadline, EarlyExitError, Timer
from diffrac_cvx.points.checks import Array, in_unit_interval, positive, positive_int
from diffrac_cvx.points.factors import Factor, dense
from diffrac_cvx.problem.direction_problem import PrimalPoint
from diffrac_cvx.problem.result import Bracket, Progress, Status

Callback = Callable[[Progress], object]
CALLBACK_INTERVAL = 0.2  # seconds between calls of the user's callback while an iterate of large data is computed
WIDE_TABLE_RTOL = 0.1  # certified relative gap; enough for the labels if d > n and the penalty has an l1 term


class Iterate(NamedTuple):
    """Candidate solution proposed by a solver.

    Attributes
    ----------
    U : (D, r) array
        Factor of V = UU', in the coordinates of the problem, at any scale.
    n_iter : int
        Iterations so far.
    dual : DualPoint
        Multipliers of the solver, if it has any; they tighten the bounds.
    point : PrimalPoint, optional
        ``problem.rescale(U)``, if the solver has computed it.
    bounds : Bracket, optional
        Certified bounds, if the solver has computed them; otherwise ``certify(problem, point, dual)``.
    """

    U: Factor
    n_iter: int
    dual: DualPoint = NO_DUAL
    point: PrimalPoint | None = None
    bounds: Bracket | None = None


Steps = Generator[Iterate | float, Iterate | None, None]  # iterates, and pauses: see `race.Strategy`


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
        self.callback, self.thread = callback, threading.get_ident()
        self.last_callback = 0.0  # time of the last callback
        self.progress = Progress(iteration=0, seconds=0.0, lower=0.0, upper=1.0)
        self.calls_periodically = False  # whether the callback is also called while an iterate is computed
        self.status: Status | None = None
        self.count_rows: Callable[[], int] = int  # rows read so far

    def is_met(self, lower: float, upper: float) -> bool:
        return upper - lower <= max(self.tol, self.rtol * upper)

    @property
    def deadline(self) -> Deadline:
        """Deadline that the computations of the solver check."""
        return Deadline(lambda: self.timer.remaining, self.check_deadline, lambda: self.abort(Status.TIME_LIMIT))

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
            line = self.progress._replace(seconds=self.timer.elapsed)
            stop = self.callback(line.with_counts(self.count_rows(), self.progress.n_excluded))
            self.last_callback = self.timer.elapsed
            if stop:
                self.abort(Status.STOPPED)

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
