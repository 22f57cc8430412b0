"""Compare the fast solvers with the SDP oracles on the instances of `dc.validate`; exit 1 if anything is wrong."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import diffrac_cvx as dc
from diffrac_cvx.comparison import ComparisonTask, Method, relaxation_method, solver_method, worst_disagreement
from diffrac_cvx.comparison.answers import read_answer
from diffrac_cvx.comparison.instances import Design, all_designs
from diffrac_cvx.comparison.validation import find_violations
from diffrac_cvx.registry import (
    RELAXATIONS,
    SOLVERS,
    explain_unsupported,
    from_constrained,
    from_normalized,
    same_value,
)
from experiments.harness.sweep import Cell, Row

TABLE = "validation"  # in figures
SEED = 2017
SLACK = 1e-9  # for rounding errors, in addition to the certified bounds
ALPHA_SLACK = 1e-4  # the alpha of (7) comes from a solution of (8), whose optimum is flat
TOLERANCE = 1e-4  # of every method but low_rank
MOST_LIFTED = 50  # largest n + d for SCS on the lifted form: a cone of side 66 takes minutes
REFERENCE = "v_space"

OPTIONS: dict[str, dict[str, Any]] = {"low_rank": {"tol": 1e-6, "max_iter": 3000}, "fista": {"max_iter": 1500}}


def by_cvxpy(bounds_15: Callable[..., dc.Bracket | None]) -> dict[str, Method]:
    """Return the relaxations that imply bounds on (15) in this way, by each CVXPY solver, by their names in the table.

    The name has no solver for CLARABEL.
    """
    return {
        name.removeprefix("v_space_") + (" SCS" if solver == "SCS" else ""): relaxation_method(name, solver)
        for name, record in RELAXATIONS.items()
        if record.bounds_15 is bounds_15
        for solver in ("CLARABEL", "SCS")
    }


FAST = [name for name, record in SOLVERS.items() if not record.skip_reason]  # their bounds must contain all values
# Methods of problems with the same value, so that all their bounds must be consistent.
METHODS = {name: solver_method(name, **OPTIONS.get(name, {})) for name in FAST} | by_cvxpy(same_value)
NORMALIZED, CONSTRAINED = by_cvxpy(from_normalized), by_cvxpy(from_constrained)
RELATED = NORMALIZED | CONSTRAINED


def cells_of(grid: str) -> list[Cell]:
    """Return all kinds of instances of `dc.validate`, or every twelfth."""
    return [design._asdict() for design in all_designs()[:: 1 if grid == "full" else 12]]


def measure(n: int, d: int, nu: float, penalty: str, trait: str) -> Row:
    """Solve one instance by all methods; return all values and gaps, the worst disagreement, and all violations."""
    instance = Design(n, d, nu, penalty, trait).instance(SEED)
    task = ComparisonTask(X=instance.X, nu=nu, penalty=instance.penalty, tol=TOLERANCE)
    with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):
        left_out = {"lifted SCS"} if n + d > MOST_LIFTED else set()
        chosen = {name: method for name, method in METHODS.items() if name not in left_out and applies(method, task)}
        results = {name: run(method, task) for name, method in chosen.items()}
        worst, pair = worst_disagreement(results, FAST)
        violations = [
            f"{name}: {violation}"
            for name, result in results.items()
            for violation in find_violations(read_answer(result, instance), instance, results[REFERENCE], TOLERANCE)
        ]
        row: Row = {"violation": worst, "between": pair, "agrees": int(worst <= SLACK and not violations)}
        for name, result in results.items():
            row |= {f"{name} value": result.value, f"{name} gap": result.gap}
        row |= measure_related(task, results["low_rank"])
    row["agrees"] = int(row["agrees"] and row["normalized agrees"] and row["alpha agrees"])
    return {**row, "named": "; ".join(violations)}


def measure_related(task: ComparisonTask, best: dc.Result) -> Row:
    """Check the formulations tied to (15) by a formula, or by an inequality if c > 0: (21), (7)."""
    row: Row = {"normalized agrees": 1, "alpha agrees": 1}
    fixed = replace(task, alpha=dc.metrics.factor_imbalance(best.F), alpha_slack=ALPHA_SLACK)
    for name, method in RELATED.items():
        if applies(method, task):
            given = task if name in NORMALIZED else fixed
            result = run(method, given)
            bounds = method.bounds_15(dc.Bracket(result.lower, result.upper), given)
            assert bounds is not None
            value = bounds.upper if name in NORMALIZED else result.value
            row |= {f"{name} value": value, f"{name} gap": result.gap}
            row["normalized agrees" if name in NORMALIZED else "alpha agrees"] &= int(meets(bounds, best))
    return row


def applies(method: Method, task: ComparisonTask) -> bool:
    """Return whether a method supports the penalty and takes only seconds at this size."""
    return not explain_unsupported(method.parts, task.penalty) and not method.too_large(*task.X.shape)


def run(method: Method, task: ComparisonTask) -> dc.Result:
    """Run a solver; errors end the sweep."""
    result = method.run(task)
    assert isinstance(result, dc.Result)
    return result


def meets(bounds: dc.Bracket, result: dc.Result) -> bool:
    """Return whether two pairs of bounds on one optimum overlap, up to rounding errors."""
    return bounds.lower <= result.upper + SLACK and result.lower <= bounds.upper + SLACK
