"""Common driver of the fast solvers: run the strategies, certify the iterates, and stop on the certified gap."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates.block_problem import UNPENALIZED, labels_by_zeros, number_by_first
from diffrac_cvx.certificates.consistency import RoundingBound
from diffrac_cvx.certificates.direction_bounds import DualPoint, certify
from diffrac_cvx.certificates.screening import screen_components
from diffrac_cvx.errors import ClusterConnectionError, DataError
from diffrac_cvx.machine.deadlines import Deadline, EarlyExitError, time_limited
from diffrac_cvx.machine.threads import one_thread
from diffrac_cvx.points.checks import Array, PointWeights, in_unit_interval
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.exclusion import exclude_columns
from diffrac_cvx.points.factors import as_sparse, is_sparse, squared_norm
from diffrac_cvx.points.floating_point import round_up
from diffrac_cvx.points.points import Points
from diffrac_cvx.points.ranges import is_out_of_range
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.points.streamed import known_shape
from diffrac_cvx.problem.direction_problem import (
    DirectionProblem,
    PrimalPoint,
    best_single_feature,
    direction_problem,
    offset_solution,
    unit_problem,
    warn_if_uninformative,
)
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Bracket, Components, Progress, Result, Status
from diffrac_cvx.solvers.stopping import Iterate, Stopping, WarmStart


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
    exhausted: Status = Status.STALLED,
    sample_weight: npt.ArrayLike | None = None,
    constraints: Constraints | None = None,
    are_many: Callable[[int, int], bool] | None = None,
    by_columns: bool = False,
) -> Result:
    """Solve problem (15) with a generator of iterates: certify each, keep the best, stop on the certified gap.

    The start is certified before the first iterate, unless the solver ``certifies_start`` itself.  The status is
    ``exhausted`` if the iterates end.  Rows without weights and constraints are streamed if ``are_many(n, d)``; a
    sparse matrix may be stored ``by_columns``.
    """
    # 1. Read the table, and return the closed form if only the offset remains.
    nu, X = in_unit_interval(nu, "nu"), known_shape(X)
    trivial = partial(trivial_result, nu=nu, stopping=stopping, solver=solver)
    try:
        with time_limited(stopping.deadline):
            sample = read_points(
                X, sample_weight, constraints=constraints, are_many=are_many, by_columns=by_columns, warn=True
            )
    except EarlyExitError as leave:
        return trivial(np.shape(X), status=leave.status)
    data, shape = sample.X, sample.X_all.shape
    G = offset_solution(data, nu)
    if G is not None:
        upper = min(round_up(nu), 1.0)  # 1 - nu is rounded, and with it V
        return trivial(shape, status=Status.CLOSED_FORM, G=G, bounds=(nu, upper))
    n, d = data.shape  # of large data, a single product or decomposition may take longer than the callback waits
    stopping.calls_periodically = n * d >= 2e7 or n * d**2 >= 2e8 or d >= 400
    with one_thread(), time_limited(stopping.deadline):
        # 2. Pose the problem; at the time limit only in unit columns, without its matrices, to state the start.
        try:
            problem = direction_problem(data, nu, penalty)
            warm_start = starting_point(problem, start)
            warn_if_uninformative(problem, data, penalty)
            points = iterates(problem, warm_start)
        except EarlyExitError as leave:
            if data.is_streamed:
                return trivial(shape, status=leave.status)
            with time_limited(Deadline(lambda: 0.0)):  # ends every computation that can be cut short
                problem, points = unit_problem(data, nu, penalty), iter(())
                warm_start = starting_point(problem, start)
        if problem.X.shape[1] == 0:  # the data are below rounding error relative to the penalty
            return trivial(shape, status=Status.OVERFLOW)
        # 3. Certify the iterates.
        if warm_start.U is not None and not certifies_start:
            points = chain([Iterate(warm_start.U, 0, DualPoint(C=warm_start.C), warm_start.point)], points)
        found = certify_until_stopped(problem, points, warm_start.point, stopping, solver, exhausted)
    with one_thread(), time_limited(None):
        # 4. Certify the value of V in the user's units, and check the bounds.
        try:
            certified_data = exclude_columns(data, problem.coordinates.excluded)
            found = with_certified_value(found, RoundingBound(certified_data, nu, penalty), stopping)
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
    if weights is None or not weights.has_zeros:
        return found
    u = np.ones(len(points))
    u[weights.mask] = 1.0 if found.u is None else found.u
    F = problem.labels_factor_of_all(
        problem.coordinates.transform_result(found), points.array(), weights.mask, constraints
    )
    return replace(found, factor=F, u=None if found.u is None else u)


def with_certified_value(found: Result, rounding_bound: RoundingBound, stopping: Stopping) -> Result:
    """Return the result with the certified value of its V in the user's units, rounding errors included.

    V = 0, of value 1, replaces a V that is not certified to be better.  The lower bound is checked against this value
    and against the objective of the rounded labels.
    """
    assert found.G is not None  # solvers of (15) have a V
    G, value = rounding_bound.or_trivial(found.G)
    status = found.status
    if status is Status.OPTIMAL and not stopping.is_met(found.lower, value):
        status = Status.STALLED
    found = replace(found, value=value, upper=value, G=G, status=status)
    objective = rounding_bound.upper_bound(None if callable(found.factor) else found.F, G)
    return replace(found.checked_against(objective), seconds=stopping.timer.elapsed)


def trivial_result(
    shape: tuple[int, ...],
    nu: float,
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
        factor=np.ones((n, 1)),
        G=np.zeros((d + int(nu < 1.0), 1)) if G is None else G,
        status=status,
        n_iter=0,
        seconds=stopping.timer.elapsed,
        solver=solver,
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
    best = PrimalPoint(np.zeros((len(problem.c), 1)), 1.0, np.zeros(0)) if initial is None else initial
    dual: DualPoint | None = None
    lower, history, status = 0.0, list[Progress](), None
    stopping.count_rows = lambda: problem.X.rows_read
    try:
        for iterate in iterates:
            # 1. The point may become the best even if no time is left for its lower bound.
            point = problem.rescale(iterate.U) if iterate.point is None else iterate.point
            if point.value < best.value or (dual is None and point.value == best.value):
                best, dual = point, iterate.dual
            if iterate.bounds is None:
                stopping.check_deadline()
            # 2. The bounds of all iterates hold.
            bounds = iterate.bounds or certify(problem, point, iterate.dual)
            lower = max(lower, bounds.lower)
            now = Progress(iterate.n_iter, stopping.timer.elapsed, min(lower, best.value), best.value)
            history.append(now.with_counts(problem.X.rows_read, problem.coordinates.n_excluded))
            status = stopping.stop_reason(history[-1])
            if status is not None:
                break
    except EarlyExitError as leave:
        status = leave.status
    except (DataError, ClusterConnectionError) as error:
        raise with_bracket(error, min(lower, best.value), best.value) from error
    except (ArithmeticError, ValueError) as error:
        if not is_out_of_range(error):
            raise
        status = Status.OVERFLOW
    status = stopping.status if status is None else status
    with time_limited(None):  # the rest is required and short
        # 3. The best point in the user's coordinates.
        if best.value >= 1.0 and status in (Status.TIME_LIMIT, Status.STOPPED) and not problem.X.is_streamed:
            best = best_single_feature(problem)
        if status is None:
            status = Status.OPTIMAL if stopping.is_met(lower, best.value) else exhausted
        C = None if dual is None or not problem.has_l1 else dual.C
        return Result(
            value=best.value,
            lower=lower,
            upper=best.value,
            factor=problem.X.labels_factor(best.U),
            status=status,
            n_iter=history[-1].iteration if history else 0,
            seconds=stopping.timer.elapsed,
            solver=solver,
            history=tuple(history),
            C=None if C is None else problem.coordinates.inverse_transform_multiplier(C),
            u=None if dual is None or dual.u is None else problem.X.values_of_points(dual.u),
            G=problem.coordinates.inverse_transform(best.U),
            components=components_of(problem, best, best.value - lower),
            n_excluded=problem.coordinates.n_excluded,
        )


def with_bracket(
    error: DataError | ClusterConnectionError, lower: float, upper: float
) -> DataError | ClusterConnectionError:
    """Return the error with the bounds certified before the data changed or became unreadable."""
    message = f"{error}; certified so far: the optimum lies in {Bracket(lower, upper)}"
    message += ", for the data as first read" if isinstance(error, DataError) else ""
    return type(error)(message, bracket=(lower, upper))


def components_of(problem: DirectionProblem, point: PrimalPoint, gap: float) -> Components | None:
    """Return the components of the features between which V is zero, numbered by first feature; None if they are one.

    Those between which every optimal V is zero are certified by the gap if that takes a fraction of a second.
    """
    penalized, splits = np.flatnonzero(problem.c > 0.0), problem.pair_penalty.splits_into_blocks
    pattern = as_sparse(point.U).astype(bool)
    if not splits or not 0 < 2 * pattern.count_nonzero() <= np.prod(pattern.shape):
        return None
    rows = pattern[penalized].astype(float)
    found = np.full(len(problem.c), UNPENALIZED)
    found[penalized] = labels_by_zeros(rows @ rows.T)
    if found.max(initial=0) == 0:
        return None
    d, certified = len(problem.coordinates.scale) - int(problem.coordinates.has_offset), None
    if problem.X.is_local and len(problem.X) * len(penalized) ** 2 <= 1e9:
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
