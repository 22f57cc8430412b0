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
    needs_alpha: bool = False
    too_large: Callable[[int, int], str] = lambda _n, _d: ""  # from n and d to the reason to skip it by default
    priority: int = 0  # default order: fast methods first
    through_cvxpy: bool = False


def list_methods() -> dict[str, Method]:
    """Return all methods by name: the fast solvers, each relaxation with each CVXPY solver, and the baselines."""
    solvers = registry.cvxpy_solvers()
    return {
        **{name: solver_method(name) for name in registry.fast_solvers()},
        **{f"{name}/{by}": relaxation_method(name, by) for name in registry.RELAXATIONS for by in solvers},
        **{name: baseline_method(name) for name in registry.BASELINES},
    }


def solver_method(name: str, **options: Any) -> Method:
    """Return the method of a solver of (15) without CVXPY; options override those of the task."""
    record = registry.SOLVERS[name]

    def run(task: ComparisonTask) -> Result:
        limits = {**task.limits, **options}
        return record.run(task.X, task.nu, task.penalty, callback=task.callback, **task.given, **limits)

    priority = list(registry.fast_solvers()).index(name)
    parts = (*record.penalty, "constraints")
    return Method("(15)", run, parts, too_large=lambda _n, _d: record.skip_reason, priority=priority)


def relaxation_method(name: str, solver: str, **options: Any) -> Method:
    """Return the method of a relaxation solved through CVXPY; options override those of the task."""
    record = registry.RELAXATIONS[name]

    def run(task: ComparisonTask) -> Result:
        limits = {**task.limits, **options}
        return solve(record.build(task.X, task), solver, **limits)

    def too_large(n: int, d: int) -> str:
        return registry.SOLVERS[solver].too_large(record, n, d) or record.skipped_solvers.get(solver, "")

    parts = (*record.penalty, *({"constraints"} & set(record.takes)))
    priority = len(registry.fast_solvers()) + ("d + 1", "n", "n + d").index(record.rows)
    return Method(
        record.equation, run, parts, record.bounds_15, "alpha" in record.takes, too_large, priority, through_cvxpy=True
    )


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
    """Run one method; an error becomes the reason in its result."""
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
    """Return the result of a method with its labels and implied bounds; a result without a solution is a failure."""
    if not isinstance(outcome, Result):
        labels = as_labels(outcome, len(task.X), "its return value")
        return MethodResult(method.problem, labels=labels, objective=objective_of(labels, task))
    if outcome.status is Status.FAILED:
        return MethodResult(method.problem, reason=str(outcome.status))
    labels = as_labels(kmeans_centered(outcome.F, constraints=task.constraints), len(task.X), "its factor F")
    bounds = method.bounds_15(Bracket(outcome.lower, outcome.upper), task)
    value = method.bounds_15(Bracket(outcome.value, outcome.value), task)
    return MethodResult(method.problem, outcome, labels, bounds, value, objective_of(labels, task))


def objective_of(labels: Array, task: ComparisonTask) -> float:
    """Return the objective of labels, Eq. (9), with the best direction."""
    return certify_labels(task.X, labels, 0.0, nu=task.nu, penalty=task.penalty, constraints=task.constraints).objective


def summarize_error(error: Exception) -> str:
    """Return the type and the first line of an exception."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
