"""Sections 2.3, 5.1.3 and 5.4 numerically: label noise, and the weight of the imbalance."""

import warnings

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.datasets.planted import make_sorted_labels
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Row
from experiments.theory.unique_solution import statistical_dimension

OPTIMAL, AMBIGUOUS = 1e-6, 1e-4  # excess of yy' over the certified bound: optimal below, not optimal above
RANK = 1e-4  # eigenvalues of Y below this fraction of the largest count as 0
NO_CLUSTERS = 1e6  # noise on y that hides the labels completely: spectrum and error of data without clusters
NUS, BEYOND = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0), (1.5, 3.0, 10.0, 100.0)


def measure_one_dimension(n: int, noise: float, replication: int) -> Row:
    """Compare "yy' solves Eq. (8)", decided by the SDP, with "X and y agree in sign everywhere"."""
    rng = np.random.default_rng([2017, 53, n, replication])
    y = rng.permutation(make_sorted_labels(n, 0.0))
    epsilon = noise * rng.standard_normal(n)
    X = (y + epsilon - epsilon.mean())[:, None]
    result = dc.solve(dc.penalized_nu(X, 1.0), "CLARABEL")
    excess = 1 - float(X[:, 0] @ y) ** 2 / (n * float(np.sum(X**2))) - result.lower
    return {
        "agree": int(np.all(X[:, 0] * y > 0)),
        "excess": excess,
        "optimal": int(excess <= OPTIMAL),
        "ambiguous": int(OPTIMAL < excess <= AMBIGUOUS),
        "recovered": int(dc.metrics.clustering_error(y, dc.rounding.sign_leading(result.F)) == 0.0),
        "gap": result.gap,
    }


def measure_perturbed(d: int, noise: float, replication: int) -> Row:
    """Solve a balanced problem with noise on the signal, at twice the number of points needed for uniqueness."""
    n = 2 * int(statistical_dimension(float(d)))
    rng = np.random.default_rng([2017, 59, d, replication])
    planted = dc.datasets.make_planted(n, d, noise=noise, rng=rng)
    result = dc.low_rank(planted.X, tol=1e-8)
    return {
        "n": n,
        "rank": dc.metrics.numerical_rank(result.F, RANK),
        "eigenvalue_ratio": dc.metrics.eigenvalue_ratio(result.F),
        "error": dc.metrics.clustering_error(planted.y, dc.rounding.sign_leading(result.F)),
        "error_signal": dc.metrics.clustering_error(planted.y, signs(planted.X @ planted.v)),
        "gap": result.gap,
    }


def signs(x: Array) -> Array:
    """Return signs in {-1, 1}."""
    return np.where(x >= 0.0, 1.0, -1.0)


def measure_imbalance_weight(imbalance: float, noise: float, replication: int) -> Row:
    """Solve Eq. (8) for nu in [0, 1] and for nu > 1, and record the smallest error of each range.

    The parameter of the relaxation is set without the check of its range; the bounds hold for any nu >= 0.
    """
    rng = np.random.default_rng([2017, 60, int(100 * imbalance), int(10 * noise), replication])
    planted = dc.datasets.make_planted(28, 3, imbalance=imbalance, noise=noise, rng=rng)
    relaxation = dc.penalized_nu(planted.X, 1.0)
    errors, gaps, imbalances = {}, [], {}
    with warnings.catch_warnings(action="ignore"):
        for nu in (*NUS, *BEYOND):
            relaxation.parameters["nu"].value = nu
            result = dc.solve(relaxation, "CLARABEL")
            errors[nu] = dc.metrics.clustering_error(planted.y, dc.rounding.sign_centered(result.F))
            imbalances[nu] = dc.metrics.factor_imbalance(result.F)
            gaps.append(result.gap)
    return {
        "error": min(errors[nu] for nu in NUS),
        "error_beyond": min(errors[nu] for nu in BEYOND),
        "imbalance_at_one": imbalances[1.0],
        "imbalance_beyond": imbalances[BEYOND[-1]],
        "gap": max(gaps),
    }
