"""Instances that compare the fast solvers with the SDP oracles, and the quantities measured."""

import warnings
from dataclasses import replace

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.comparison import ComparisonTask, Method, relaxation_method, solver_method, worst_disagreement
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Cell, Row

SHAPES = [(12, 3), (20, 5), (30, 8), (40, 2), (25, 12), (60, 6), (10, 14), (8, 20), (16, 16), (30, 1)]
NUS = [0.0, 0.25, 0.5, 0.75, 1.0]
PENALTIES = ["none", "ridge", "weak l1", "strong l1", "mixed"]
TRAITS = ["clean", "noisy", "unbalanced", "badly scaled", "degenerate"]
SLACK = 1e-9  # for rounding errors, in addition to the certified bounds
ALPHA_SLACK = 1e-4  # the alpha of (7) comes from a solution of (8), whose optimum is flat
TOLERANCE = 1e-4  # of every method but low_rank

MOST_LIFTED = 50  # largest n + d for SCS on the lifted form: a cone of side 66 takes minutes

METHODS = {  # problems with the same value, so that all their bounds must be consistent
    "low_rank": solver_method("low_rank", tol=1e-6, max_iter=3000),
    "fista": solver_method("fista", max_iter=1500),
    "v_space": relaxation_method("v_space", "CLARABEL"),
    "v_space SCS": relaxation_method("v_space", "SCS"),
    "lifted": relaxation_method("lifted", "CLARABEL"),
    "lifted SCS": relaxation_method("lifted", "SCS"),
    "penalized_nu": relaxation_method("penalized_nu", "CLARABEL"),
    "penalized_nu SCS": relaxation_method("penalized_nu", "SCS"),
}
FAST = ("low_rank", "fista")  # their bounds must contain the values of the others
NORMALIZED = {
    "normalized": relaxation_method("v_space_normalized", "CLARABEL"),
    "normalized SCS": relaxation_method("v_space_normalized", "SCS"),
}
CONSTRAINED = {
    "constrained_alpha": relaxation_method("constrained_alpha", "CLARABEL"),
    "constrained_alpha SCS": relaxation_method("constrained_alpha", "SCS"),
}
RELATED = NORMALIZED | CONSTRAINED


def cells_of(grid: str) -> list[Cell]:
    """Return the instances: all shapes, nu and penalties, with traits such that every pair of traits occurs."""
    cells: list[Cell] = [
        {"n": n, "d": d, "nu": nu, "penalty": penalty, "trait": TRAITS[(i + 2 * j + 3 * k) % len(TRAITS)]}
        for i, (n, d) in enumerate(SHAPES)
        for j, nu in enumerate(NUS)
        for k, penalty in enumerate(PENALTIES)
    ]
    return cells if grid == "full" else cells[::12]


def instance(n: int, d: int, nu: float, penalty: str, trait: str) -> tuple[Array, dc.Penalty]:
    """Return the data and the penalty of an instance; the seed depends only on the instance."""
    key = [2017, n, d, int(100 * nu), PENALTIES.index(penalty), TRAITS.index(trait)]
    rng = np.random.default_rng(key)
    noise = {"noisy": 0.5, "clean": 0.0}.get(trait, 0.1)
    imbalance = 0.25 if trait == "unbalanced" else 0.0
    X = dc.datasets.make_planted(n, d, min(2, d), imbalance, noise, rng=rng).X
    units: Array = np.ones(d)
    if trait == "badly scaled":
        units = np.power(10.0, rng.integers(-4, 5, size=d))
    if trait == "degenerate":
        X[0] = 0.0
        X[:, -1] = X[:, 0]
    varied = rng.uniform(0.5, 1.5, size=d)
    weights = {
        "none": dc.Penalty(),
        "ridge": dc.Penalty(a=0.3 * units),
        "weak l1": dc.Penalty(c=0.1 * units),
        "strong l1": dc.Penalty(c=0.6 * units),
        "mixed": dc.Penalty(a=0.2 * units * varied, c=0.3 * units * (varied > 0.8)),
    }
    return X * units, weights[penalty]


def measure(n: int, d: int, nu: float, penalty: str, trait: str) -> Row:
    """Solve one instance by all methods; return all values and gaps, and the worst disagreement."""
    X, weights = instance(n, d, nu, penalty, trait)
    task = ComparisonTask(X=X, nu=nu, penalty=weights, tol=TOLERANCE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)
        left_out = {"lifted SCS"} if n + d > MOST_LIFTED else set()
        chosen = {name: method for name, method in METHODS.items() if name not in left_out and applies(method, task)}
        results = {name: run(method, task) for name, method in chosen.items()}
        worst, pair = worst_disagreement(results, FAST)
        row: Row = {"violation": worst, "between": pair, "agrees": int(worst <= SLACK)}
        for name, result in results.items():
            row |= {f"{name} value": result.value, f"{name} gap": result.gap}
        row |= measure_related(task, results["low_rank"])
    row["agrees"] = int(row["agrees"] and row["normalized agrees"] and row["alpha agrees"])
    return row


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
    return not method.explain_refusal(task.penalty) and not method.too_large(*task.X.shape)


def run(method: Method, task: ComparisonTask) -> dc.Result:
    """Run a solver; errors end the sweep."""
    result = method.run(task)
    assert isinstance(result, dc.Result)
    return result


def meets(bounds: dc.Bracket, result: dc.Result) -> bool:
    """Return whether two pairs of bounds on one optimum overlap, up to rounding errors."""
    return bounds.lower <= result.upper + SLACK and result.lower <= bounds.upper + SLACK
