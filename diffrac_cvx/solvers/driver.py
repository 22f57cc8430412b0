"""Common driver of the fast solvers: run the strategies, certify the iterates, and stop on the certified gap."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.block_bounds import bracket_any
from diffrac_cvx.certificates.block_problem import number_by_first, partition_by_zeros
from diffrac_cvx.certificates.block_screening import screen_components
from diffrac_cvx.certificates.consistency import RoundingBound
from diffrac_cvx.certificates.direction_bounds import DualPoint
from diffrac_cvx.certificates.screening import gap_safe_weights
from diffrac_cvx.errors import ClusterConnectionError, DataError
from diffrac_cvx.machine.deadlines import Deadline, EarlyExitError, time_limited
from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.points.checks import Array, PointWeights, in_unit_interval
from diffrac_cvx.points.chunks import known_shape
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.exclusion import exclude_columns
from diffrac_cvx.points.factors import Factor, as_sparse, is_sparse, squared_norm
from diffrac_cvx.points.floating_point import round_up
from diffrac_cvx.points.points import Points
from diffrac_cvx.points.ranges import is_out_of_range
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.problem.direction_problem import (
    DirectionProblem,
    PrimalPoint,
    best_single_feature,
    direction_problem,
    offset_solution,
    unit_problem,
    warn_if_uninformative,
)
from diffrac_cvx.problem.gradient import Instance, make_instance
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Bracket, Components, Labels, Progress, Result, Status
from diffrac_cvx.solvers.stopping import Iterate, Stopping, WarmStart

MAX_SCREENING_COST = 2e8  # n d^2 up to which screening all pairs of features takes a tenth of a second

EXPIRED_DEADLINE = Deadline(lambda: 0.0)  # ends every computation that can be cut short


def solve_by_iterates(
    X: npt.ArrayLike,
    nu: float,
    penalty: Penalty,
    iterates: Callable[[DirectionProblem, WarmStart], Iterable[Iterate]],
    stopping: Stopping,
    solver: str,
    *,
    start: Result | npt.ArrayLike | None = None,
    exhausted: Status = Status.STALLED,
    sample_weight: npt.ArrayLike | None = None,
    constraints: Constraints | None = None,
    are_many: Callable[[int, int], bool] | None = None,
    by_columns: bool = False,
) -> Result:
    """Solve problem (15) with a generator of iterates: certify each, keep the best, stop on the certified gap.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or dask array
        Data; centred internally.
    nu : float
        Weight of the imbalance penalty, in [0, 1].
    penalty : Penalty
        Ridge weights a and l1 weights c.
    iterates : callable
        Function of the ``DirectionProblem`` and the `WarmStart` that generates the `Iterate` objects.
    stopping : Stopping
        Tolerances on the certified gap, and limits.
    solver : str
        Name of the solver, for the result.
    start : Result or (d, d) array, optional
        Matrix of directions for a warm start; certified before the first iterate.
    exhausted : Status
        Status if the iterates end before the tolerance or a limit is reached.
    sample_weight : (n,) array, optional
        Weights of the points; X must be an array.
    constraints : Constraints, optional
        Must-link and cannot-link constraints and known labels of the points; X must be an array.
    are_many : callable, optional
        Predicate of (n, d): whether to stream the rows, if there are no weights and no constraints.
    by_columns : bool
        Whether to store a sparse matrix with fewer points by columns.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.
    """
    nu = in_unit_interval(nu, "nu")
    X = known_shape(X)
    instance = make_instance(X, nu, penalty, sample_weight, constraints)
    trivial = partial(trivial_result, instance=instance, stopping=stopping, solver=solver)
    try:
        with time_limited(stopping.deadline):
            sample = read_points(
                X, sample_weight, constraints=constraints, are_many=are_many, by_columns=by_columns, warn=True, depth=5
            )
    except EarlyExitError as leave:
        return trivial(np.shape(X), status=leave.status)
    data, shape = sample.X, sample.X_all.shape
    G = offset_solution(data, nu)
    if G is not None:
        upper = min(round_up(nu), 1.0)  # 1 - nu is rounded, and with it V
        return trivial(shape, status=Status.CLOSED_FORM, G=G, bounds=(nu, upper))
    stopping.calls_periodically = is_large(*data.shape)
    with one_thread(), time_limited(stopping.deadline):
        try:
            problem = direction_problem(data, nu, penalty)
            warm_start = starting_point(problem, start)
            warn_if_uninformative(problem, data, penalty)
            points = iterates(problem, warm_start)
        except EarlyExitError as leave:
            if data.is_streamed:
                return trivial(shape, status=leave.status)
            with time_limited(EXPIRED_DEADLINE):
                problem, points = unit_problem(data, nu, penalty), iter(())
                warm_start = starting_point(problem, start)
        if problem.X.shape[1] == 0:  # the data are below rounding error relative to the penalty
            return trivial(shape, status=Status.OVERFLOW)
        if not problem.X.is_streamed:  # with streamed rows, the solver certifies the start itself, in one pass
            points = with_start(warm_start, points)
        found = certify_until_stopped(problem, points, warm_start.point, stopping, solver, exhausted)
    with one_thread(), time_limited(None):
        try:
            found = with_certified_value(found, exclude_columns(data, problem.coordinates.excluded), instance, stopping)
        except (DataError, ClusterConnectionError) as error:
            raise with_bracket(error, found.lower, found.upper) from error
        return with_all_points(found, problem, sample.X_all, sample.weights, constraints)


def with_all_points(
    found: Result,
    problem: DirectionProblem,
    points: Points,
    weights: PointWeights | None,
    constraints: Constraints | None = None,
) -> Result:
    """Return the result with a row of F, and u = 1, also for the points of weight 0."""
    if weights is None or not weights.has_zeros or points.is_streamed:
        return found
    u = np.ones(len(points))
    u[weights.mask] = 1.0 if found.u is None else found.u
    F = problem.labels_factor_of_all(
        problem.coordinates.transform_result(found), points.array(), weights.mask, constraints
    )
    return replace(found, F=F, u=None if found.u is None else u)


def with_certified_value(found: Result, data: Points, instance: Instance, stopping: Stopping) -> Result:
    """Return the result with the certified value of its V in the user's units, rounding errors included.

    V = 0, of value 1, replaces a V that is not certified to be better.  The lower bound is checked against this value
    and against the objective of the rounded labels.
    """
    assert found.G is not None  # solvers of (15) have a V
    rounding_bound = RoundingBound(data, instance.keywords["nu"], instance.keywords["penalty"])
    G, value = rounding_bound.or_trivial(found.G)
    status = found.status
    if status is Status.OPTIMAL and not stopping.is_met(found.lower, value):
        status = Status.STALLED
    F = found.__dict__["F"]  # may be a function that must not be called yet
    found = replace(found, value=value, upper=value, F=F, G=G, status=status, _instance=instance)
    objective = rounding_bound.upper_bound(None if callable(F) else F, G)
    return replace(found.checked_against(objective), F=F, seconds=stopping.timer.elapsed)


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
    """Return a result without iterations, all points in one cluster; by default the trivial bounds, at V = 0."""
    n, d = shape
    return Result(
        value=bounds[1],
        lower=bounds[0],
        upper=bounds[1],
        F=np.ones((n, 1)),
        G=np.zeros((d + int(instance.keywords["nu"] < 1.0), 1)) if G is None else G,
        status=status,
        n_iter=0,
        seconds=stopping.timer.elapsed,
        solver=solver,
        _instance=instance,
    )


class Incumbent:
    """Best iterate so far, with its dual variables, components, lower bound and history."""

    def __init__(self, problem: DirectionProblem, best: PrimalPoint) -> None:
        self.problem, self.best, self.lower = problem, best, 0.0
        self.dual: DualPoint | None = None
        self.components: Components | None = None
        self.proved: Labels | None = None
        self.history: list[Progress] = []

    def update(self, iterate: Iterate, stopping: Stopping) -> Progress:
        """Certify an iterate; it may become the incumbent even if no time is left for its lower bound."""
        X = self.problem.X
        point = self.problem.rescale(iterate.U) if iterate.point is None else iterate.point
        if point.value < self.best.value or (self.dual is None and point.value == self.best.value):
            self.best, self.components, self.dual = point, iterate.components, iterate.dual
        if iterate.bounds is None:
            stopping.check_deadline()
        bounds = iterate.bounds or bracket_any(self.problem, point, iterate.dual)
        if iterate.components is not None and iterate.components.certified is not None:
            self.proved = iterate.components.certified
        self.lower = max(self.lower, bounds.lower)
        now = Progress(iterate.n_iter, stopping.timer.elapsed, min(self.lower, self.best.value), self.best.value)
        self.history.append(now.with_counts(X.rows_read, self.problem.n_excluded))
        return self.history[-1]

    def result(self, status: Status, seconds: float, solver: str) -> Result:
        """Return the incumbent as a result in the user's coordinates."""
        problem, best, dual = self.problem, self.best, self.dual
        components = self.components or components_of_zeros(problem, best.U)
        components = components and replace(components, certified=self.proved)
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
            u=None if dual is None or dual.u is None else problem.X.values_of_points(dual.u),
            G=problem.coordinates.inverse_transform(best.U),
            components=components and user_components(problem, best, best.value - self.lower, components),
            n_excluded=problem.n_excluded,
        )


def certify_until_stopped(
    problem: DirectionProblem,
    iterates: Iterable[Iterate],
    initial: PrimalPoint | None,
    stopping: Stopping,
    solver: str,
    exhausted: Status,
) -> Result:
    """Certify iterates until the stopping rule is met; return the best point, the start included, and the bounds."""
    n, D = problem.X.shape
    zero = PrimalPoint(np.zeros((D, 1)), 1.0, np.zeros(0 if problem.X.is_streamed else n))
    incumbent, status = Incumbent(problem, zero if initial is None else initial), None
    stopping.count_rows = lambda: problem.X.rows_read
    try:
        for iterate in iterates:
            status = stopping.stop_reason(incumbent.update(iterate, stopping))
            if status is not None:
                break
    except EarlyExitError as leave:
        status = leave.status
    except (DataError, ClusterConnectionError) as error:
        raise with_bracket(error, min(incumbent.lower, incumbent.best.value), incumbent.best.value) from error
    except (ArithmeticError, ValueError) as error:
        if not is_out_of_range(error):
            raise
        status = Status.OVERFLOW
    status = stopping.status if status is None else status
    with time_limited(None):  # the rest is required and short
        if incumbent.best.value >= 1.0 and status in (Status.TIME_LIMIT, Status.STOPPED) and not problem.X.is_streamed:
            incumbent.best = best_single_feature(problem)
        if status is None:
            status = Status.OPTIMAL if stopping.is_met(incumbent.lower, incumbent.best.value) else exhausted
        return incumbent.result(status, stopping.timer.elapsed, solver)


def with_bracket(
    error: DataError | ClusterConnectionError, lower: float, upper: float
) -> DataError | ClusterConnectionError:
    """Return the error with the bounds certified before the data changed or became unreadable."""
    message = f"{error}; certified so far: the optimum lies in {Bracket(lower, upper)}"
    message += ", for the data as first read" if isinstance(error, DataError) else ""
    return type(error)(message, bracket=(lower, upper))


def is_large(n: int, D: int) -> bool:
    """Return whether a single product or decomposition may exceed the time limit by more than is allowed."""
    return n * D >= 2e7 or n * D**2 >= 2e8 or D >= 400


def components_of_zeros(problem: DirectionProblem, U: Factor) -> Components | None:
    """Return the components between which a dense factor is zero; None if the factor is sparse or they are one."""
    penalized = np.flatnonzero(problem.c > 0.0)
    if is_sparse(U) or not problem.pair_penalty.splits_into_blocks or not 0 < 2 * np.count_nonzero(U) <= U.size:
        return None
    rows = as_sparse((U[penalized] != 0.0).astype(float))
    found = np.full(len(problem.c), -1)
    found[penalized] = partition_by_zeros(rows @ rows.T).labels
    return Components(found) if found.max(initial=0) > 0 else None


def user_components(problem: DirectionProblem, point: PrimalPoint, gap: float, components: Components) -> Components:
    """Return the components of the features, without the offset, numbered by first feature.

    If the solver has not certified components, they are computed here if cheap.
    """
    d, proved = len(problem.coordinates.scale) - int(problem.coordinates.has_offset), components.certified
    penalized = np.flatnonzero(problem.c > 0.0)
    if proved is None and len(problem.X) * len(penalized) ** 2 <= MAX_SCREENING_COST:
        if not problem.X.is_local:
            return Components(number_by_first(components.found[:d]), None)
        if len(point.q) != len(problem.X):  # q is not stored for streamed rows
            problem = problem.in_columns()
            point = problem.rescale(point.U)
        proved = np.full(len(problem.c), -1)
        proved[penalized] = screen_components(problem, gap_safe_weights(point.q, gap), None)
    return Components(number_by_first(components.found[:d]), None if proved is None else number_by_first(proved[:d]))


def user_multiplier(problem: DirectionProblem, dual: DualPoint | None) -> Factor | None:
    """Return the multiplier C of the l1 penalty in the user's coordinates, or None."""
    if dual is None or dual.C is None or not problem.has_l1:
        return None
    return problem.coordinates.inverse_transform_multiplier(dual.C)


def with_start(start: WarmStart, iterates: Iterable[Iterate]) -> Iterator[Iterate]:
    """Yield the warm start as iterate 0, then the iterates; the solver itself certifies a block-sparse start."""
    if start.U is not None and not is_sparse(start.U):
        yield Iterate(start.U, 0, DualPoint(C=start.C), start.point)
    yield from iterates


def starting_point(problem: DirectionProblem, start: Result | npt.ArrayLike | None) -> WarmStart:
    """Return the warm start in the problem's coordinates; empty if there is none or it is zero."""
    if start is None or (isinstance(start, Result) and start.G is None):
        return WarmStart()
    point = problem.rescale(problem.coordinates.transform_result(start, "start"))
    if squared_norm(point.U) == 0.0:
        return WarmStart()
    C = problem.transform_multiplier(start) if isinstance(start, Result) else None
    return WarmStart(point.U, C if C is None or is_sparse(C) else problem.pair_penalty.project_safe(C), point)
