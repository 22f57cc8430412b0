"""What the fast solvers share: from X and a generator of points to a result, stopped by the proved gap."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.direction_bounds import Dual, bracket
from diffrac_cvx.certificates.direction_problem import DirectionProblem, Scaled, direction_problem, offset_only
from diffrac_cvx.inputs import Array, as_data, as_matrix, in_unit_interval, positive, positive_int
from diffrac_cvx.linalg import one_thread
from diffrac_cvx.penalty import Penalty
from diffrac_cvx.result import Progress, Result, Status

Callback = Callable[[Progress], object]


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
    """

    U: Array
    n_iter: int
    dual: Dual | None = None
    scaled: Scaled | None = None


class Start(NamedTuple):
    """A warm start in the problem's coordinates: the factor and the multiplier, or None for what it lacks."""

    U: Array | None = None
    C: Array | None = None


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
        """Return why to stop now, or None to continue."""
        stop = bool(self.callback(progress)) if self.callback else False
        if progress.upper - progress.lower <= self.tol:
            return Status.OPTIMAL
        if stop:
            return Status.STOPPED
        if progress.iteration >= self.max_iter:
            return Status.MAX_ITER
        if self.time_limit is not None and progress.seconds >= self.time_limit:
            return Status.TIME_LIMIT
        return None


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
) -> Result:
    """Solve problem (15) by a generator of points: certify each, keep the best, stop on the proved gap.

    Parameters
    ----------
    X : (n, d) array
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

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.
    """
    data, nu = as_data(X, depth=5), in_unit_interval(nu, "nu")
    V = offset_only(data, nu)
    if V is not None:
        return Result(
            value=nu,
            lower=nu,
            upper=nu,
            F=np.ones((len(data), 1)),
            V=V,
            status=Status.CLOSED_FORM,
            n_iter=0,
            seconds=stopping.seconds,
            solver=solver,
        )
    with one_thread():
        problem = direction_problem(data, nu, penalty)
        first = starting_point(problem, start)
        points = with_start(first, iterates(problem, first))
        return certify_until_stopped(problem, points, stopping, solver, exhausted)


def certify_until_stopped(
    problem: DirectionProblem, iterates: Iterable[Iterate], stopping: Stopping, solver: str, exhausted: Status
) -> Result:
    """Certify each iterate until the stopping rule is met; return the best point and the bracket."""
    lower, best = 0.0, problem.best_scale(np.zeros((problem.X.shape[1], 1)))
    history: list[Progress] = []
    status: Status | None = None
    dual: Dual | None = None
    for U, n_iter, dual, scaled in iterates:
        point = problem.best_scale(U) if scaled is None else scaled
        bounds = bracket(problem, point, dual)
        best = point if point.value < best.value else best
        lower = min(max(lower, bounds.lower), best.value)
        history.append(Progress(iteration=n_iter, seconds=stopping.seconds, lower=lower, upper=best.value))
        status = stopping.reason(history[-1])
        if status is not None:
            break
    if status is None:
        status = Status.OPTIMAL if best.value - lower <= stopping.tol else exhausted
    return Result(
        value=best.value,
        lower=min(lower, best.value),
        upper=best.value,
        F=problem.labels_factor(best.U),
        V=problem.directions(best.U),
        status=status,
        n_iter=history[-1].iteration if history else 0,
        seconds=stopping.seconds,
        solver=solver,
        history=tuple(history),
        C=user_multiplier(problem, dual),
    )


def user_multiplier(problem: DirectionProblem, dual: Dual | None) -> Array | None:
    """Return the multiplier C of the l1 part in the user's coordinates, if there is one."""
    if dual is None or dual.C is None or not problem.has_l1:
        return None
    inverse = 1.0 / np.diag(problem.L)
    return dual.C * np.outer(inverse, inverse)


def with_start(start: Start, iterates: Iterable[Iterate]) -> Iterator[Iterate]:
    """Yield a warm start as it is, at no iterations, and then the iterates."""
    if start.U is not None:
        yield Iterate(start.U, 0, Dual(C=start.C))
    yield from iterates


def starting_point(problem: DirectionProblem, start: Result | npt.ArrayLike | None) -> Start:
    """Return a warm start in the problem's coordinates."""
    V = start.V if isinstance(start, Result) else start
    if V is None:
        return Start()
    U = problem.best_scale(problem.from_user(as_matrix(V, "start"))).U
    if not U.any():
        return Start()
    C = start.C if isinstance(start, Result) else None
    if C is None or not problem.has_l1 or C.shape != problem.box.shape:
        return Start(U)
    return Start(U, np.clip(problem.L.T @ C @ problem.L, -problem.box, problem.box))
