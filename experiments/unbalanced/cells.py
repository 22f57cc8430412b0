"""Cells of the unbalanced problem (Figure 2): constrained and penalised relaxations, and their duality."""

import warnings
from typing import Any

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.rounding import ROUNDINGS
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Cell, Row, cross
from experiments.unbalanced.duality import duality

N, D, ALPHA_STAR = 80, 10, 0.25
NOISES = (0.0, 0.05, 0.1, 0.3)
SCS_TOLERANCE, LOW_RANK_TOLERANCE = 1e-9, 1e-8
SCS_OPTIONS: dict[str, Any] = {"eps_abs": SCS_TOLERANCE, "eps_rel": SCS_TOLERANCE, "max_iters": 20_000}
AGAIN, MORE_ITERS = 1e-7, 400_000  # certified gap above which a cell is solved again, with more iterations
RANK_THRESHOLD = 1e-4  # relative to the largest eigenvalue of Y; SCS leaves 1e-6 instead of exact zeros
DUAL_NU = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)

ALPHAS = [*np.round(np.arange(0.0, 1.0, 0.05), 2).tolist(), 0.975, 1.0]
NUS = [*(10.0 ** np.arange(-4.0, 0.0, 0.25)).round(9).tolist(), 0.75, 1.0]
SETTINGS = {"scs": SCS_TOLERANCE, "low_rank": LOW_RANK_TOLERANCE, "rank": RANK_THRESHOLD}
SIGNS = ("sign_leading", "sign_second", "sign_centered")  # roundings


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid: a path of alpha, a path of nu, and dual pairs of both."""
    paths = [("alpha", ALPHAS, NOISES, 10), ("nu", NUS, NOISES, 10), ("dual", DUAL_NU, (0.0, 0.3), 4)]
    if grid != "full":
        small = {"alpha": (0.0, ALPHA_STAR, 0.5, 1.0), "nu": (0.001, 0.1, 1.0), "dual": (0.03, 1.0)}
        paths = [(path, parameters, (0.0, 0.3), 1) for path, parameters in small.items()]
    return [
        cell
        for path, parameters, noises, count in paths
        for cell in cross(path=[path], parameter=parameters, noise=noises, replication=range(count))
    ]


def measure(path: str, parameter: float, noise: float, replication: int) -> Row:
    """Solve one cell: at alpha by SCS, at nu by `low_rank`, or both at a nu and the alpha of its solution."""
    planted = dc.datasets.make_planted(
        N, D, imbalance=ALPHA_STAR, noise=noise, rng=np.random.default_rng([2017, 2, replication])
    )
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        if path == "dual":
            return measure_duality(planted.X, parameter)
        if path == "alpha":
            result = solve_constrained(planted.X, parameter)
        else:
            result = dc.low_rank(planted.X, parameter, tol=LOW_RANK_TOLERANCE)
        return describe(result, planted.y)


def solve_constrained(X: Array, alpha: float) -> dc.Result:
    """Solve at alpha by SCS, with more iterations if necessary."""
    relaxation = dc.constrained_alpha(X, alpha)
    result = dc.solve(relaxation, "SCS", tol=1e-6, **SCS_OPTIONS)
    if result.gap <= AGAIN:
        return result
    return dc.solve(relaxation, "SCS", tol=1e-6, **{**SCS_OPTIONS, "max_iters": MORE_ITERS})


def describe(result: dc.Result, y: Array) -> Row:
    """Return the recorded fields of a solution."""
    return {
        "solver": result.solver,
        "value": result.value,
        "gap": result.gap,
        "alpha": dc.metrics.factor_imbalance(result.F),
        "rank": dc.metrics.numerical_rank(result.F, RANK_THRESHOLD),
        "eigenvalue_ratio": dc.metrics.eigenvalue_ratio(result.F),
        **{f"error_{name}": dc.metrics.clustering_error(y, ROUNDINGS[name](result.F)) for name in SIGNS},
    }


def measure_duality(X: Array, nu: float) -> Row:
    """Compare the penalised value with the constrained one at the penalised solution's own alpha, plus nu alpha."""
    pair = duality(X, [nu], solver="SCS", tol=LOW_RANK_TOLERANCE, **SCS_OPTIONS)
    penalized, constrained = pair.penalized, pair.constrained
    columns = {
        "value": penalized.value,
        "gap": penalized.gap,
        "alpha": constrained.parameter,
        "constrained_value": constrained.value,
        "constrained_gap": constrained.gap,
        "difference": constrained.value + nu * constrained.parameter - penalized.value,
        "apart": pair.bracket_distance,
    }
    return {"solver": "low_rank, SCS", **{name: float(column[0]) for name, column in columns.items()}}
