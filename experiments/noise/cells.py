"""Cells of the noise experiment: error, certified gap of the labels and spectrum as the clusters spread."""

import warnings

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Cell, Row, cross
from experiments.rivals.lattice import lattice
from experiments.theory.label_recovery import signs
from experiments.theory.unique_solution import statistical_dimension

DIMENSIONS = (12, 20)
RATIOS = (1, 2, 4, 8)  # n over d + d(d-1)/4
TINY = 1e-6
NOISES = (0.0, TINY, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)  # standard deviation within a cluster
REPLICATIONS = 32
RESTARTS = 10
TOLERANCE = 1e-6
SETTINGS = {"n_init": RESTARTS, "tolerance": TOLERANCE}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid."""
    if grid == "full":
        return cross(d=DIMENSIONS, ratio=RATIOS, noise=NOISES, replication=range(REPLICATIONS))
    return cross(d=(4, 6), ratio=(1, 4), noise=(0.0, TINY, 0.2, 0.5), replication=range(2))


def points_of(d: int, ratio: float) -> int:
    """Return the even number of points nearest to a multiple of d + d(d-1)/4."""
    return 2 * round(ratio * statistical_dimension(float(d)) / 2)


def measure(d: int, ratio: float, noise: float, replication: int) -> Row:
    """Cluster one data set by all methods; a replication has the same points at every noise level, except the noise."""
    n = points_of(d, ratio)
    rng = np.random.default_rng([2017, 13, d, n, replication])
    X, y, v = dc.datasets.make_planted(n, d, d, noise=noise, rng=rng)
    with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):
        result = dc.low_rank(X, 1.0, tol=TOLERANCE)
    labels = {
        "relaxation": dc.rounding.kmeans_centered(result.F),
        "direction": signs(X @ v),
        "known_labels": signs(X @ np.linalg.lstsq(X, y - y.mean())[0]),
        "cure": dc.baselines.cure(X, n_init=RESTARTS, rng=replication),
        "spectral": dc.baselines.spectral_kurtosis(X),
    }
    labels["refined"] = dc.rounding.refine(X, labels["relaxation"])
    labels["from_planted"] = dc.rounding.refine(X, y)  # the best labels of Eq. (2) near the planted ones
    errors = {f"error_{name}": dc.metrics.clustering_error(y, found) for name, found in labels.items()}
    certificate = dc.certify_labels(X, labels["refined"], result)
    return {
        "n": n,
        **errors,
        "error_lattice": error_of_lattice(X, y) if noise <= TINY else np.nan,
        "label_gap": certificate.gap,
        "objective": certificate.objective,
        "objective_from_planted": dc.certify_labels(X, labels["from_planted"], result).objective,
        "eigenvalue_ratio": dc.metrics.eigenvalue_ratio(result.F),
        "value": result.value,
        "gap": result.gap,
    }


def error_of_lattice(X: Array, y: Array) -> float:
    """Return the error of lattice reduction, 1 if it finds no labels."""
    try:
        return dc.metrics.clustering_error(y, lattice(X))
    except dc.DataError:
        return 1.0
