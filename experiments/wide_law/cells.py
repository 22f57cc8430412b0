"""Recovery of two clusters from a few informative columns of a wide table, compared with the law."""

import warnings
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Cell, Row, cross
from experiments.wide_law.law import (
    RIDGE,
    flat_cost,
    group_share,
    label_cost,
    lower_cost,
    noise_cost,
    odds,
    share_along,
)

FACTORS = 10
POINTS, COLUMNS = 100, 1000
TOL, MAX_ITER = 1e-2, 1000
SETTINGS = {"ridge": RIDGE, "factors": FACTORS, "n": POINTS, "d": COLUMNS, "tolerance": TOL, "max_iter": MAX_ITER}
SHIFTS, WEIGHTS = (0.4, 0.6, 0.8, 1.2), (0.05, 0.1, 0.2)


def make_wide(n: int, d: int, k: int, shift: float, rho: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return a standardised X (n, d) and y: equal clusters whose means differ by 2 shifts in the first k columns.

    The shifts have random signs.  Within the clusters each column has variance 1 before standardisation, of which a
    fraction rho comes from `FACTORS` common factors.
    """
    y = rng.permutation(np.where(np.arange(n) < n // 2, 1.0, -1.0))
    loadings = rng.standard_normal((FACTORS, d))
    loadings /= np.linalg.norm(loadings, axis=0)
    X = (1.0 - rho) ** 0.5 * rng.standard_normal((n, d)) + rho**0.5 * rng.standard_normal((n, FACTORS)) @ loadings
    X[:, :k] += shift * y[:, None] * rng.choice([-1.0, 1.0], k)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid: tables with clusters, then tables of noise."""
    if grid == "full":
        groups = cross(k=(5, 20, 60), shift=SHIFTS, lam=WEIGHTS, rho=(0.0, 0.5), replication=range(2))
        noise = cross(n=(60, 100), d=(1000, 2000), lam=WEIGHTS, replication=range(2))
    else:
        groups = cross(k=[20], shift=(0.4, 1.2), lam=[0.2], rho=(0.0, 0.5), replication=[0])
        noise = cross(n=[60], d=[120], lam=[0.2], replication=[0])
    return [{"part": "groups", **cell} for cell in groups] + [{"part": "noise", **cell} for cell in noise]


def measure(part: str, **cell: Any) -> Row:
    """Measure a cell of either part."""
    return measure_groups(**cell) if part == "groups" else measure_noise(**cell)


def measure_groups(k: int, shift: float, lam: float, rho: float, replication: int) -> Row:
    """Solve one table with clusters and compute the two numbers of the law from it."""
    rng = np.random.default_rng([2017, 71, k, int(100 * shift), int(100 * rho), replication])
    X, y = make_wide(POINTS, COLUMNS, k, shift, rho, rng)
    m = X.T @ y / POINTS
    result = solve(X, lam)
    return {
        "m2": group_share(shift),
        "cost": label_cost(X[:, :k], y, lam),
        "cost_formula": flat_cost(k, group_share(shift) ** 0.5, lam),
        "kappa": lower_cost(X.T @ X / POINTS - np.outer(m, m), lam),
        "found": odds(result.upper),
        "gap": result.gap,
        "index": float(adjusted_rand_score(y, dc.rounding.kmeans_centered(result.F))),
        "along": share_along(X, y, np.asarray(result.V)),
    }


def measure_noise(n: int, d: int, lam: float, replication: int) -> Row:
    """Solve a table of noise and compare its objective with the formula."""
    rng = np.random.default_rng([2017, 72, n, d, replication])
    X, _ = make_wide(n, d, 0, 0.0, 0.0, rng)
    result = solve(X, lam)
    return {
        "kappa": lower_cost(X.T @ X / n, lam),
        "kappa_formula": noise_cost(n, d, lam),
        "found": odds(result.upper),
        "gap": result.gap,
    }


def solve(X: Array, lam: float) -> dc.Result:
    """Return the solution of a table with the ridge of this experiment."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)
        return dc.low_rank(X, lam=lam, ridge=RIDGE, tol=TOL, max_iter=MAX_ITER)
