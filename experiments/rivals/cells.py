"""Noiseless phase diagram: the relaxation compared with other methods, including those of 2020 to 2022."""

import warnings
from collections.abc import Callable

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Cell, Row
from experiments.problems import mixed, noiseless_data
from experiments.rivals.lattice import lattice
from experiments.rivals.two_valued import cure, spectral_kurtosis
from experiments.theory.unique_solution import statistical_dimension

RESTARTS = 10
TOLERANCE = 1e-6
LATTICE_STEPS, LATTICE_MOST = (0, 2, 4, 8), 32  # numbers of points minus dimensions, and the largest dimension
SETTINGS = {"n_init": RESTARTS, "tolerance": TOLERANCE}

# For each noise law and method: smallest and largest n relative to d + d(d-1)/4, and the ratio of successive n.
RANGES: dict[tuple[str, str], tuple[float, float, float]] = {
    ("gaussian", "relaxation"): (0.4, 1.8, 1.16),
    ("gaussian", "CURE"): (0.25, 4.0, 1.26),
    ("gaussian", "spectral"): (0.7, 8.0, 1.26),
    ("gaussian", "alternating"): (0.7, 8.0, 1.36),
    ("gaussian", "k-means"): (0.7, 8.0, 1.36),
    ("student", "relaxation"): (0.15, 1.5, 1.26),
    ("student", "CURE"): (0.15, 2.0, 1.26),
    ("student", "spectral"): (0.3, 4.0, 1.26),
    ("student", "alternating"): (0.3, 4.0, 1.36),
}
GRIDS = {  # dimensions, replications, most points
    "full": ((6, 8, 12, 16, 24, 32, 48, 64), 20, 3600),
    "smoke": ((4, 8), 2, 80),
}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid; every method has the points around its own boundary, from n = d on."""
    dimensions, replications, most = GRIDS[grid]
    return [
        {"law": law, "method": method, "d": d, "n": n, "replication": replication}
        for law, method in [*RANGES, ("gaussian", "lattice")]
        for d in dimensions
        for n in points_of(law, method, d)
        if n <= most
        for replication in range(replications)
    ]


def points_of(law: str, method: str, d: int) -> list[int]:
    """Return the numbers of points of a method in a dimension, all even: clusters are balanced."""
    if method == "lattice":
        return [d + more for more in LATTICE_STEPS] if d <= LATTICE_MOST else []
    least, most, ratio = RANGES[law, method]
    multiples = least * ratio ** np.arange(1 + np.ceil(np.log(most / least) / np.log(ratio)))
    points = 2 * np.rint(multiples * statistical_dimension(float(d)) / 2)
    return sorted({int(max(n, d)) for n in points})


def measure(law: str, method: str, d: int, n: int, replication: int) -> Row:
    """Cluster one data set by one method."""
    X, y = noiseless_data(law, n, d, replication)
    X = mixed(X, replication)
    with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):  # n <= d is part of the figure
        labels, gap = METHODS[method](X, replication)
    return {"error": 1.0 if labels is None else dc.metrics.clustering_error(y, labels), "gap": gap}


Found = tuple[Array | None, float]  # labels, and the certified gap or NaN


def relax(X: Array, seed: int) -> Found:
    """Relaxation without a penalty, with the paper's rounding."""
    result = dc.low_rank(X, 1.0, tol=TOLERANCE)
    return dc.rounding.kmeans_centered(result.F), result.gap


METHODS: dict[str, Callable[[Array, int], Found]] = {
    "relaxation": relax,
    "CURE": lambda X, seed: (cure(X, n_init=RESTARTS, rng=seed), np.nan),
    "spectral": lambda X, seed: (spectral_kurtosis(X), np.nan),
    "alternating": lambda X, seed: (dc.baselines.alternating_optimization(X, n_init=RESTARTS, rng=seed), np.nan),
    "k-means": lambda X, seed: (dc.baselines.kmeans_whitened(X, n_init=RESTARTS, rng=seed), np.nan),
    "lattice": lambda X, seed: (lattice(X), np.nan),  # None if it finds no labels
}
