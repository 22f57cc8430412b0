"""Figure 2: unbalanced clusters, the constrained and the penalised relaxation."""

import warnings
from typing import Any

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.rounding import ROUNDINGS
from experiments.harness.sweep import Cell, Row, cross

N, D, ALPHA_STAR = 80, 10, 0.25
REPLICATIONS = 10  # as in the paper
NOISES = (0.0, 0.05, 0.1, 0.3)
SCS_TOLERANCE, LOW_RANK_TOLERANCE = 1e-9, 1e-8
SCS_OPTIONS: dict[str, Any] = {"eps_abs": SCS_TOLERANCE, "eps_rel": SCS_TOLERANCE, "max_iters": 20_000}
AGAIN, MORE_ITERS = 1e-7, 400_000  # certified gap above which a cell is solved again, with more iterations
RANK_THRESHOLD = 1e-4  # relative to the largest eigenvalue of Y; SCS leaves 1e-6 instead of exact zeros

ALPHAS = [*np.round(np.arange(0.0, 1.0, 0.1), 1).tolist(), ALPHA_STAR, 1.0 - ALPHA_STAR, 0.975, 1.0]
NUS = [*(10.0 ** np.arange(-4.0, 0.0, 0.25)).round(9).tolist(), 0.75, 1.0]
SETTINGS = {"scs": SCS_TOLERANCE, "low_rank": LOW_RANK_TOLERANCE, "rank": RANK_THRESHOLD}
SIGNS = ("sign_leading", "sign_second", "sign_centered")  # roundings


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid: a path of alpha and a path of nu."""
    if grid == "full":
        alphas, nus, draws = ALPHAS, NUS, {"noise": NOISES, "replication": range(REPLICATIONS)}
    else:
        alphas, nus, draws = [0.0, ALPHA_STAR, 0.5, 1.0], [0.001, 0.1, 1.0], {"noise": (0.0, 0.3), "replication": [0]}
    return cross(path=["alpha"], parameter=alphas, **draws) + cross(path=["nu"], parameter=nus, **draws)


def measure(path: str, parameter: float, noise: float, replication: int) -> Row:
    """Solve one cell: at alpha by SCS, at nu by `low_rank`."""
    rng = np.random.default_rng([2017, 2, replication])
    X, y, _ = dc.datasets.make_planted(N, D, imbalance=ALPHA_STAR, noise=noise, rng=rng)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        if path == "nu":
            solution = dc.low_rank(X, parameter, tol=LOW_RANK_TOLERANCE)
        else:
            relaxation = dc.constrained_alpha(X, parameter)
            solution = dc.solve(relaxation, "SCS", tol=1e-6, **SCS_OPTIONS)
            if solution.gap > AGAIN:
                solution = dc.solve(relaxation, "SCS", tol=1e-6, **{**SCS_OPTIONS, "max_iters": MORE_ITERS})
    return {
        "solver": solution.solver,
        "value": solution.value,
        "gap": solution.gap,
        "alpha": dc.metrics.factor_imbalance(solution.F),
        "rank": dc.metrics.numerical_rank(solution.F, RANK_THRESHOLD),
        "eigenvalue_ratio": dc.metrics.eigenvalue_ratio(solution.F),
        **{f"error_{name}": dc.metrics.clustering_error(y, ROUNDINGS[name](solution.F)) for name in SIGNS},
    }
