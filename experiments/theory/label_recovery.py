"""Sections 5.1.3 and 5.2 in numbers: when the labels are recovered, with noise on them and along a sparse direction."""

import warnings
from itertools import product

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.datasets.planted import make_sorted_labels
from experiments.harness import Cell, Row

OPTIMAL, AMBIGUOUS = 1e-6, 1e-4  # excess of yy' over the proved bound: optimal below the first, not above the second


def one_dimension_cells(full: bool) -> list[Cell]:
    """Return cells over the noise on one-dimensional labels."""
    noises = (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0) if full else (0.3, 0.6)
    return [
        {"n": n, "noise": noise, "replication": r}
        for n, noise, r in product((10, 20, 40), noises, range(40 if full else 2))
    ]


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


def sparse_cells(full: bool) -> list[Cell]:
    """Return cells over the number of relevant columns, the dimension and the number of points, a multiple of d."""
    multiples = {
        1: (0.25, 0.375, 0.5, 0.625, 0.75, 1, 1.5),
        2: (0.5, 1, 1.5, 2, 2.5, 3, 4),
        4: (1, 2, 3, 4, 5, 6, 8),
        8: (2, 3, 4, 6, 8, 10, 12),
    }
    dimensions, replications = ((20, 32, 44, 56, 68), 8) if full else ((20,), 1)
    return [
        {"sparsity": sparsity, "d": d, "n": int(m * d), "replication": r}
        for sparsity in multiples
        for d, m, r in product(
            dimensions, multiples[sparsity] if full else multiples[sparsity][2::2], range(replications)
        )
    ]


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
