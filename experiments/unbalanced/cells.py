"""The cells of the unbalanced problem (Figure 2): constrained and penalised relaxations, and their duality."""

import warnings
from itertools import product
from typing import Any

import numpy as np

import diffrac_cvx as dc
from experiments.harness.sweep import Row

N, D, ALPHA_STAR = 80, 10, 0.25
NOISES = (0.0, 0.05, 0.1, 0.3)
SCS_TOLERANCE, LOW_RANK_TOLERANCE = 1e-9, 1e-8
RANK_THRESHOLD = 1e-4  # of an eigenvalue of Y to the largest; SCS leaves 1e-6 where an exact solution has 0
DUAL_NU = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)

ALPHAS = [*np.round(np.arange(0.0, 1.0, 0.05), 2).tolist(), 0.975, 1.0]
NUS = [*(10.0 ** np.arange(-4.0, 0.0, 0.25)).round(9).tolist(), 0.75, 1.0]
ROUNDINGS = ("sign_leading", "sign_second", "sign_centered")


def cells_of(grid: str) -> list[dict[str, Any]]:
    """Return the cells of a grid: a path of alpha, a path of nu, and pairs that are dual to each other."""
    full = grid == "full"
    replications = 10 if full else 1
    alphas = ALPHAS if full else [0.0, ALPHA_STAR, 0.5, 1.0]
    nus = NUS if full else [0.001, 0.1, 1.0]
    noises = NOISES if full else (0.0, 0.3)
    paths = [("alpha", alphas, noises), ("nu", nus, noises), ("dual", DUAL_NU if full else (0.03, 1.0), (0.0, 0.3))]
    return [
        {"path": path, "parameter": parameter, "noise": noise, "replication": replication}
        for path, parameters, levels in paths
        for parameter, noise in product(parameters, levels)
        for replication in range(min(replications, 4) if path == "dual" else replications)
    ]


def measure(path: str, parameter: float, noise: float, replication: int) -> Row:
    """Solve one cell: at alpha by SCS, at nu by `low_rank`, or both at a nu and the alpha that its solution has."""
    planted = dc.datasets.make_planted(
        N, D, imbalance=ALPHA_STAR, noise=noise, rng=np.random.default_rng([2017, 2, replication])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if path == "alpha":
            return describe(constrained(planted.X, parameter), planted.y)
        penalised = dc.low_rank(planted.X, parameter, tol=LOW_RANK_TOLERANCE)
        if path == "nu":
            return describe(penalised, planted.y)
        return dual_row(planted, parameter, penalised)


def constrained(X: np.ndarray, alpha: float) -> dc.Result:
    """Solve Eq. (7) by SCS to high accuracy."""
    return dc.solve(
        dc.constrained_alpha(X, alpha), "SCS", tol=1e-6, eps_abs=SCS_TOLERANCE, eps_rel=SCS_TOLERANCE, max_iters=20_000
    )


def describe(result: dc.Result, y: np.ndarray) -> Row:
    """Return what the table keeps of a solution."""
    return {
        "solver": result.solver,
        "value": result.value,
        "gap": result.gap,
        "alpha": imbalance_of(result.F),
        "rank": dc.metrics.numerical_rank(result.F, RANK_THRESHOLD),
        "eigenvalue_ratio": dc.metrics.eigenvalue_ratio(result.F),
        **{f"error_{name}": dc.metrics.clustering_error(y, rounded(name, result.F)) for name in ROUNDINGS},
    }


def rounded(name: str, F: np.ndarray) -> np.ndarray:
    """Round by one of the three ways."""
    rounding = getattr(dc.rounding, name)
    return np.asarray(rounding(F))


def imbalance_of(F: np.ndarray) -> float:
    """Return 1'Y1 / n^2."""
    return float(np.sum(F.mean(axis=0) ** 2))


def dual_row(planted: dc.datasets.Planted, nu: float, penalised: dc.Result) -> Row:
    """Compare the penalised value with the constrained one at the penalised solution's own alpha, + nu alpha."""
    alpha = float(np.clip(imbalance_of(penalised.F), 0.0, 1.0))
    other = constrained(planted.X, alpha)
    low, high = other.lower + nu * alpha, other.upper + nu * alpha
    return {
        "solver": f"{penalised.solver}, {other.solver}",
        "value": penalised.value,
        "gap": penalised.gap,
        "alpha": alpha,
        "constrained_value": other.value,
        "constrained_gap": other.gap,
        "difference": other.value + nu * alpha - penalised.value,
        "apart": max(low - penalised.upper, penalised.lower - high, 0.0),
    }


SETTINGS = {"scs": SCS_TOLERANCE, "low_rank": LOW_RANK_TOLERANCE, "rank": RANK_THRESHOLD}
