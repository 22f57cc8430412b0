"""Sections 5.1.3 and 5.2 in numbers: when the labels are recovered, with noise on them and along a sparse direction."""

import warnings

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.datasets.planted import make_sorted_labels
from experiments.harness.sweep import Row

OPTIMAL, AMBIGUOUS = 1e-6, 1e-4  # excess of yy' over the proved bound: optimal below the first, not above the second


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
        "eigenvalue_ratio": dc.metrics.eigenvalue_ratio(result.F),
        "gap": result.gap,
    }


def measure_sparse(sparsity: int, d: int, n: int, replication: int) -> Row:
    """Solve a noiseless balanced problem whose direction has few nonzeros, at lambda = 0.03/sqrt(n)."""
    rng = np.random.default_rng([2017, 57, sparsity, d, n, replication])
    planted = dc.datasets.make_planted(n, d, sparsity, rng=rng)
    lam = 0.03 * n**-0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)
        result = dc.low_rank(planted.X, 1.0, dc.Penalty.l1(lam), tol=1e-4, max_iter=5000)
    return {
        "lam": lam,
        "error": dc.metrics.clustering_error(planted.y, dc.rounding.kmeans_centered(result.F)),
        "gap": result.gap,
    }
