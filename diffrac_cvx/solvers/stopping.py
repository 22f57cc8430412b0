"""The decision to stop, shared by the fast solvers: certify each point, keep the best, stop on the proved gap."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.direction_bounds import Dual, bracket
from diffrac_cvx.certificates.direction_problem import DirectionProblem, offset_only
from diffrac_cvx.inputs import Array, as_matrix, positive, positive_int
from diffrac_cvx.result import Progress, Result, Status

Callback = Callable[[Progress], object]


class Iterate(NamedTuple):
    """A point a solver proposes: the factor of V, iterations so far, and the dual it has, if any."""

    U: Array
    n_iter: int
    C: Array | None = None
    u: Array | None = None


class Start(NamedTuple):
    """A warm start in the problem's coordinates: the factor and the multiplier, or None for what it lacks."""

    U: Array | None = None
    C: Array | None = None


def duals(point: Iterate) -> list[Dual]:
    """Return the dual that a point brings along, as a list of none or one."""
    return [] if point.C is None and point.u is None else [Dual(point.u, point.C)]


@dataclass(frozen=True)
class Stopping:
    """When to stop: the tolerance on the proved gap, the limits, and the user's callback.

    Raises
    ------
    ParameterError
        If tol, max_iter or time_limit is not positive.
    """

    tol: float
    max_iter: int
    time_limit: float | None = None
    callback: Callback | None = None
    started: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        positive(self.tol, "tol")
        object.__setattr__(self, "max_iter", positive_int(self.max_iter, "max_iter"))
        if self.time_limit is not None:
            positive(self.time_limit, "time_limit")

    @property
    def seconds(self) -> float:
        """Seconds since the solver was called."""
        return time.perf_counter() - self.started

    def reason(self, progress: Progress) -> Status | None:
        """Return why to stop now, or None to go on."""
        asked = bool(self.callback(progress)) if self.callback else False
        if progress.upper - progress.lower <= self.tol:
            return Status.OPTIMAL
        if asked:
            return Status.STOPPED
        if progress.iteration >= self.max_iter:
            return Status.MAX_ITER
        if self.time_limit is not None and progress.seconds >= self.time_limit:
            return Status.TIME_LIMIT
        return None


def run(
    problem: DirectionProblem,
    start: Start,
    iterates: Iterable[Iterate],
    stopping: Stopping,
    solver: str,
    exhausted: Status = Status.STALLED,
) -> Result:
    """Certify the start, if any, and each iterate until the stopping rule is met; return the best point and bracket.

    `exhausted` is the status when the iterates end before the rule is met.
    """
    lower, upper, best = 0.0, 1.0, np.zeros((problem.X.shape[1], 1))
    history: list[Progress] = []
    status: Status | None = None
    for iterate in first_of(start, iterates):
        found = bracket(problem, iterate.U, duals(iterate))
        if found.upper < upper:
            best, upper = iterate.U, found.upper
        lower = min(max(lower, found.lower), upper)
        history.append(Progress(iterate.n_iter, stopping.seconds, lower, upper))
        status = stopping.reason(history[-1])
        if status is not None:
            break
    if status is None:
        status = Status.OPTIMAL if upper - lower <= stopping.tol else exhausted
    best, value = problem.best_scale(best)
    C = iterate.C if problem.has_l1 and history else None
    if C is not None:
        inverse = 1.0 / np.diag(problem.L)
        C = C * np.outer(inverse, inverse)
    n_iter = history[-1].iteration if history else 0
    return Result(
        value, min(lower, value), value, problem.labels_factor(best), problem.directions(best),
        status, n_iter, stopping.seconds, solver, tuple(history), C,
    )  # fmt: skip


def first_of(start: Start, iterates: Iterable[Iterate]) -> Iterator[Iterate]:
    """Yield a warm start as it is, at no iterations, and then the iterates."""
    if start.U is not None:
        yield Iterate(start.U, 0, start.C)
    yield from iterates


def closed_form(X: Array, nu: float, stopping: Stopping, solver: str) -> Result | None:
    """Return the answer where none has to be computed: nu = 0, or no features at all; only the offset is left."""
    V = offset_only(X, nu)
    if V is None:
        return None
    return Result(nu, nu, nu, np.ones((len(X), 1)), V, Status.CLOSED_FORM, 0, stopping.seconds, solver)


def starting_point(problem: DirectionProblem, start: Result | npt.ArrayLike | None) -> Start:
    """Return a warm start in the problem's coordinates."""
    V = start.V if isinstance(start, Result) else start
    if V is None:
        return Start()
    U = problem.from_user(as_matrix(V, "start"))
    C = start.C if isinstance(start, Result) else None
    if C is not None and problem.has_l1 and C.shape == problem.box.shape:
        C = np.clip(problem.L.T @ C @ problem.L, -problem.box, problem.box)
    else:
        C = None
    U, _ = problem.best_scale(U)
    return Start(U, C) if U.any() else Start()
