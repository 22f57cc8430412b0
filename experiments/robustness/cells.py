"""The cells of the robustness experiment (Figure 4): clustering error of six methods as noise dimensions are added."""

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.cluster import KMeans

import diffrac_cvx as dc
from diffrac_cvx.inputs import Array, as_data
from diffrac_cvx.linalg import column_basis
from experiments.harness.sweep import Cell, Row, cross
from experiments.runtime.cells import published_fista

N, RELEVANT, NOISE = 100, 2, 0.1
LAMBDAS = (0.0, 0.001, 0.01)
DIMENSIONS = (2, 4, 6, 8, 10, 13, 16, 20, 25, 32, 40, 50, 64)
REPLICATIONS = 20
RESTARTS = 10
TOLERANCE = 1e-4
MOST_ITERATIONS = 3000  # of FISTA as published: an iteration count, so that the table does not depend on the machine
SETTINGS = {"noise": NOISE, "relevant": RELEVANT, "tolerance": TOLERANCE, "iterations": MOST_ITERATIONS}

Solved = tuple[Array, float]  # labels, and the proved gap or nan


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid; the methods that know no lambda are measured once."""
    dimensions, replications = (DIMENSIONS, REPLICATIONS) if grid == "full" else ((2, 10, 30), 1)
    rest = {"d": dimensions, "replication": range(replications)}
    with_lambda = [method for method in METHODS if method not in WITHOUT_LAMBDA]
    return cross(method=WITHOUT_LAMBDA, lam=[0.0], **rest) + cross(method=with_lambda, lam=LAMBDAS, **rest)


def measure(method: str, lam: float, d: int, replication: int) -> Row:
    """Cluster one data set by one method."""
    rng = np.random.default_rng([2017, 4, d, replication])
    planted = dc.datasets.make_planted(N, d, RELEVANT, noise=NOISE, rng=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)
        labels, gap = METHODS[method](planted.X, lam, replication)
    return {
        "error": dc.metrics.clustering_error(planted.y, labels),
        "separation": dc.metrics.separation(column_basis(as_data(planted.X)), labels),
        "gap": gap,
    }


def kmeans(X: Array, lam: float, seed: int) -> Solved:
    """k-means on the whitened variables: the columns of an orthonormal basis of X."""
    assert lam == 0.0
    found = KMeans(2, n_init=10, random_state=seed).fit_predict(column_basis(as_data(X)))
    return 2.0 * found - 1.0, np.nan


def alternating(X: Array, lam: float, seed: int) -> Solved:
    """Alternating optimisation of Eq. (2), the best of ten random starts."""
    assert lam == 0.0
    return dc.baselines.alternating_optimisation(X, restarts=RESTARTS, rng=seed), np.nan


def fista(X: Array, lam: float, seed: int, *, epsilon: float) -> Solved:
    """FISTA as published, at epsilon / log d."""
    result = published_fista(X, lam, seed, epsilon=epsilon, max_iter=MOST_ITERATIONS)
    return dc.rounding.kmeans_centered(result.F), result.gap


def low_rank(X: Array, lam: float, seed: int) -> Solved:
    """The low-rank solver, to a proved gap."""
    result = dc.low_rank(X, 1.0, dc.Penalty.l1(lam), tol=TOLERANCE)
    return dc.rounding.kmeans_centered(result.F), result.gap


def low_rank_alternating(X: Array, lam: float, seed: int) -> Solved:
    """The relaxation as the start of alternating optimisation."""
    labels, gap = low_rank(X, lam, seed)
    return dc.rounding.refine(X, labels), gap


METHODS: dict[str, Callable[[Array, float, int], Solved]] = {
    "k-means": kmeans,
    "alternating": alternating,
    "FISTA, 1e-2": partial(fista, epsilon=1e-2),
    "FISTA, 1e-3": partial(fista, epsilon=1e-3),
    "low_rank": low_rank,
    "low_rank, then alternating": low_rank_alternating,
}
WITHOUT_LAMBDA = ("k-means", "alternating")
