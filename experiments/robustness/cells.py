"""Figure 4: clustering error of k-means, alternating optimisation and the relaxation as noise dimensions are added."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

import diffrac_cvx as dc
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.linear_algebra import column_basis
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Cell, Row, cross
from experiments.methods import LIMITED, published_fista

N, RELEVANT, NOISE = 100, 2, 0.1
LAMBDAS = (0.0, 0.001, 0.01)
DIMENSIONS = (2, 4, 6, 8, 12, 16, 24, 32, 48)
REPLICATIONS = 20
FEWER, FISTA_MOST = 10, 32  # of FISTA, which is slow: the first replications, and the largest dimension
RESTARTS = 10
TOLERANCE = 1e-5
MOST_ITERATIONS = 20_000  # of FISTA as published; an iteration limit makes the table independent of the machine
SETTINGS = {"noise": NOISE, "relevant": RELEVANT, "tolerance": TOLERANCE, "iterations": MOST_ITERATIONS}


class Solved(NamedTuple):
    """Labels, the certified gap or NaN, and whether the method's own rule was met."""

    labels: Array
    gap: float = np.nan
    met: bool = True


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid; methods without a lambda are measured once."""
    full = grid == "full"
    cells: list[Cell] = []
    for method in METHODS:
        count, most = (FEWER, FISTA_MOST) if method in FISTA else (REPLICATIONS, max(DIMENSIONS))
        lambdas = (0.0,) if method in WITHOUT_LAMBDA else LAMBDAS
        dimensions = [d for d in DIMENSIONS if d <= most] if full else (2, 8)
        cells += cross(method=[method], lam=lambdas, d=dimensions, replication=range(count if full else 1))
    return cells


def measure(method: str, lam: float, d: int, replication: int) -> Row:
    """Cluster one data set by one method."""
    rng = np.random.default_rng([2017, 4, d, replication])
    planted = dc.datasets.make_planted(N, d, RELEVANT, noise=NOISE, rng=rng)
    with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):
        found = METHODS[method](planted.X, lam, replication)
    return {
        "error": dc.metrics.clustering_error(planted.y, found.labels),
        "gap": found.gap,
        "met": int(found.met),
    }


def kmeans(X: Array, lam: float, seed: int) -> Solved:
    """k-means on the whitened variables: the columns of an orthonormal basis of X."""
    return Solved(2.0 * KMeans(2, n_init=10, random_state=seed).fit_predict(column_basis(as_data(X))) - 1.0)


def fista(X: Array, lam: float, seed: int, *, epsilon: float) -> Solved:
    """FISTA as published, at epsilon / log d."""
    result = published_fista(X, lam, seed, epsilon=epsilon, max_iter=MOST_ITERATIONS)
    return Solved(dc.rounding.kmeans_centered(result.F), result.gap, result.status not in LIMITED)


def low_rank(X: Array, lam: float, seed: int) -> Solved:
    """Low-rank solver to a certified gap."""
    result = dc.low_rank(X, 1.0, dc.Penalty.l1(lam), tol=TOLERANCE)
    return Solved(dc.rounding.kmeans_centered(result.F), result.gap, result.gap <= TOLERANCE)


def low_rank_alternating(X: Array, lam: float, seed: int) -> Solved:
    """Alternating optimisation started from the relaxation."""
    found = low_rank(X, lam, seed)
    return found._replace(labels=dc.rounding.refine(X, found.labels))


METHODS: dict[str, Callable[[Array, float, int], Solved]] = {
    "k-means": kmeans,
    "alternating": lambda X, _, seed: Solved(dc.baselines.alternating_optimization(X, n_init=RESTARTS, rng=seed)),
    "FISTA, 1e-2": partial(fista, epsilon=1e-2),
    "FISTA, 1e-3": partial(fista, epsilon=1e-3),
    "low_rank": low_rank,
    "low_rank, then alternating": low_rank_alternating,
}
WITHOUT_LAMBDA = ("k-means", "alternating")
FISTA = ("FISTA, 1e-2", "FISTA, 1e-3")
