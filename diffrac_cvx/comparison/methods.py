"""Methods of `compare`: list them by name, and run one on a task."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from diffrac_cvx import registry
from diffrac_cvx.certificates import certify_labels
from diffrac_cvx.machine.deadlines import deadline_after, time_limited
from diffrac_cvx.points.checks import Array, as_labels
from diffrac_cvx.problem.result import Bracket, Progress, Result, Status
from diffrac_cvx.rounding import kmeans_centered
from diffrac_cvx.solvers import solve
from diffrac_cvx.solvers.reference import installed_solvers


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparisonTask(registry.Parameters):
    """Input of all methods: the centred data, the parameters, and the limits of each solve."""

    X: Array
    tol: float = 1e-4
    time_limit: float | None = None
    seed: int = 0
    callback: Callable[[Progress], bool] | None = None

    @property
    def limits(self) -> dict[str, Any]:
        """Options of every solver."""
        return {"tol": self.tol, "time_limit": self.time_limit}


@dataclass(frozen=True)
class Method:
    """A relaxation with a solver, or a baseline."""

    problem: str  # the paper's equation
    run: Callable[[ComparisonTask], Result | Array]  # labels for a baseline
    parts: tuple[str, ...] = tuple(registry.PROBLEM_PARTS)  # that it supports, of a penalty and of a problem
    bounds_15: Callable[[Bracket, ComparisonTask], Bracket | None] = registry.same_value  # implied bounds on (15)
    too_large: Callable[[int, int], str] = lambda _n, _d: ""  # from n and d to the reason to skip it by default
    through_cvxpy: bool = False


def list_methods() -> dict[str, Method]:
    """Return all methods by name: the fast solvers, the baselines, and each relaxation with each CVXPY solver."""
    solvers, sizes = registry.cvxpy_solvers(), ("d + 1", "n", "n + d")
    relaxations = sorted(registry.RELAXATIONS, key=lambda name: sizes.index(registry.RELAXATIONS[name].rows))
    return {
        **{name: solver_method(name) for name in registry.fast_solvers()},
        **{name: baseline_method(name) for name in registry.BASELINES},
        **{f"{name}/{by}": relaxation_method(name, by) for name in relaxations for by in solvers},
    }


def solver_method(name: str, **options: Any) -> Method:
    """Return the method of a solver of (15) without CVXPY; options override those of the task."""
    record = registry.SOLVERS[name]

    def run(task: ComparisonTask) -> Result:
        limits = {**task.limits, **options}
        return record.run(task.X, task.nu, task.penalty, callback=task.callback, **task.given, **limits)

    return Method("(15)", run, (*record.penalty, "constraints"), too_large=lambda _n, _d: record.skip_reason)


def relaxation_method(name: str, solver: str, **options: Any) -> Method:
    """Return the method of a relaxation solved through CVXPY; options override those of the task."""
    record = registry.RELAXATIONS[name]

    def run(task: ComparisonTask) -> Result:
        limits = {**task.limits, **options}
        return solve(record.build(task.X, task), solver, **limits)

    def too_large(n: int, d: int) -> str:
        return registry.SOLVERS[solver].too_large(record, n, d) or record.skipped_solvers.get(solver, "")

    parts = (*record.penalty, *({"constraints"} & set(record.takes)))
    return Method(record.equation, run, parts, record.bounds_15, too_large, through_cvxpy=True)


def baseline_method(name: str) -> Method:
    """Return the method of a baseline."""
    record = registry.BASELINES[name]

    def run(task: ComparisonTask) -> Array:
        with time_limited(deadline_after(task.time_limit)):
            return record.function(task.X, rng=task.seed, **task.given)

    parts = (*registry.ALL_PARTS, *(["constraints"] if record.takes_constraints else []))
    return Method(record.problem, run, parts, registry.no_bound)


@dataclass(frozen=True, eq=False)
class MethodResult:
    """Result of one method.

    ``bounds`` are its implied bounds on the optimum of (15), infinite if there are none, and None if its problem is
    unrelated; ``value`` is the same for the value attained.
    """

    problem: str  # the paper's equation
    result: Result | None = None  # None for a baseline, or if the method failed
    labels: Array = field(default_factory=lambda: np.zeros(0))  # (n,), in {-1, +1}; empty if the method failed
    bounds: Bracket | None = None
    value: Bracket | None = None
    objective: float = np.nan  # Eq. (9) at its labels, with the best direction
    seconds: float = np.nan  # including building and compiling
    reason: str = ""  # why there is no result
    warned: tuple[str, ...] = ()


def run_method(method: Method, task: ComparisonTask) -> MethodResult:
    """Run one method; an error, or a result without a solution, becomes the reason in its result."""
    if method.through_cvxpy:
        installed_solvers()  # CVXPY is imported before the method is timed
    start = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            outcome = method.run(task)
            seconds = perf_counter() - start
            found = replace(assess(method, outcome, task), seconds=seconds)
        except Exception as error:  # a solver may raise anything; the other methods still run
            found = MethodResult(method.problem, seconds=perf_counter() - start, reason=summarize_error(error))
    return replace(found, warned=tuple(dict.fromkeys(str(warning.message) for warning in caught)))


def assess(method: Method, outcome: Result | Array, task: ComparisonTask) -> MethodResult:
    """Return the result of a method with its labels, their objective and implied bounds."""
    result = bounds = value = None
    if isinstance(outcome, Result):
        if outcome.status is Status.FAILED:
            return MethodResult(method.problem, reason=str(outcome.status))
        result, bounds = outcome, method.bounds_15(outcome.bracket, task)
        value = method.bounds_15(Bracket(result.value, result.value), task)
        labels = as_labels(kmeans_centered(result.F, constraints=task.constraints), len(task.X), "its factor F")
    else:
        labels = as_labels(outcome, len(task.X), "its return value")
    objective = certify_labels(task.X, labels, 0.0, nu=task.nu, penalty=task.penalty, **task.given).objective
    return MethodResult(method.problem, result, labels, bounds, value, objective)


def summarize_error(error: Exception) -> str:
    """Return the type and the first line of an exception."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
