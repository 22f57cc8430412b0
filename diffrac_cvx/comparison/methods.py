"""Methods of `compare`: list them by name, and run one on a task."""

import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from diffrac_cvx import registry
from diffrac_cvx.certificates import certify_labels
from diffrac_cvx.points.checks import Array, as_labels
from diffrac_cvx.points.constraints import without_linear
from diffrac_cvx.problem.result import Bracket, Result, Status
from diffrac_cvx.registry import ComparisonTask, Method
from diffrac_cvx.rounding import kmeans_centered
from diffrac_cvx.solvers import solve
from diffrac_cvx.solvers.reference import installed_solvers


def list_methods() -> dict[str, Method]:
    """Return all methods by name: the fast solvers, the baselines, and each relaxation with each CVXPY solver."""
    sizes = ("d + 1", "n", "n + d")
    relaxations = sorted(registry.RELAXATIONS, key=lambda name: sizes.index(registry.RELAXATIONS[name].rows))
    return {
        **{name: solver_method(name) for name in registry.SOLVERS},
        **registry.BASELINES,
        **{f"{name}/{by}": relaxation_method(name, by) for name in relaxations for by in registry.CVXPY_SOLVERS},
    }


def solver_method(name: str, **options: Any) -> Method:
    """Return the method of a solver of (15) without CVXPY; options override those of the task."""
    record = registry.SOLVERS[name]

    def run(task: ComparisonTask) -> Result:
        limits = {**task.limits, **options}
        return record.function(task.X, task.nu, task.penalty, callback=task.callback, **task.given, **limits)

    return Method("(15)", run, (*record.penalty, "constraints"), too_large=lambda _n, _d: record.skip_reason)


def relaxation_method(name: str, solver: str, **options: Any) -> Method:
    """Return the method of a relaxation solved through CVXPY; options override those of the task."""
    record = registry.RELAXATIONS[name]

    def run(task: ComparisonTask) -> Result:
        limits = {**task.limits, **options}
        return solve(record.build(task), solver, callback=task.callback, **limits)

    parts = (*record.penalty, *record.constraints)
    too_large, estimate = partial(record.too_large, solver), partial(record.estimate_seconds, solver)
    return Method(record.equation, run, parts, record.bounds_15, too_large, estimate, through_cvxpy=True)


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
        labels = round_result(result, task)
        if not labels.size:
            return MethodResult(method.problem, result, labels, bounds, value)
    else:
        labels = as_labels(outcome, len(task.X), "its return value")
    pairs = without_linear(task.constraints)
    objective = certify_labels(task.X, labels, 0.0, nu=task.nu, penalty=task.penalty, constraints=pairs).objective
    return MethodResult(method.problem, result, labels, bounds, value, objective)


def round_result(result: Result, task: ComparisonTask) -> Array:
    """Return labels of a solution: those of its certificate under linear constraints, which may have none."""
    if "linear" in task.parts:
        labels = getattr(result.certificate, "labels", None)
        return np.zeros(0) if labels is None else np.asarray(labels)
    return as_labels(kmeans_centered(result.F, constraints=task.constraints), len(task.X), "its factor F")


def summarize_error(error: Exception) -> str:
    """Return the type and the first line of an exception."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
