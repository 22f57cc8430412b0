r"""Section 3 numerically: the l1 norm of v alone, in the problem of labels and direction, compared with Gamma(V).

The rival is alternating minimisation of

.. math:: \min_{y \in \{-1, 1\}^n,\ v}\ \tfrac1n \|y - X v\|_2^2 + \lambda \|v\|_1,

where the labels are the signs of X v and the direction solves the Lasso, started from random labels.
"""

import warnings

import numpy as np
from sklearn.linear_model import Lasso

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Row

RESTARTS, ROUNDS = 10, 50
GRID = (0.02, 0.06, 0.2, 0.6)  # weights of both methods; each is assessed at its best
RECOVERED = 0.05  # clustering error below which the labels count as recovered
NONZERO = 1e-3  # entries of v below this fraction of the largest count as 0


def lasso(X: Array, Y: Array, lam: float) -> Array:
    """Return the directions that minimise the objective for labels Y (n, k), as columns."""
    fitted = Lasso(lam / 2, fit_intercept=False, precompute=True, tol=1e-9, max_iter=10_000).fit(X, Y)
    return np.atleast_2d(fitted.coef_).T


def alternate(X: Array, lam: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the labels and directions at the end of `RESTARTS` alternations; no step increases the objective."""
    Y = rng.choice([-1.0, 1.0], (len(X), RESTARTS))
    for _ in range(ROUNDS):
        V = lasso(X, Y, lam)
        scores = X @ V
        new = np.where(scores == 0.0, Y, np.sign(scores))
        if np.array_equal(new, Y):
            break
        Y = new
    return Y, V


def measure_sparse_direction(sparsity: int, d: int, n: int, replication: int) -> Row:
    """Recover the labels of a noiseless balanced problem by both methods, at every weight of the grid."""
    rng = np.random.default_rng([2017, 62, sparsity, d, n, replication])
    X, y, _ = dc.datasets.make_planted(n, d, sparsity, rng=rng)
    row: Row = {}
    for k, lam in enumerate(GRID):
        Y, V = alternate(X, lam, rng)
        objectives = objectives_of(X, Y, V, lam)
        best = int(np.argmin(objectives))
        planted = y[:, None]
        with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):
            result = dc.low_rank(X, 1.0, dc.Penalty.l1(lam), tol=1e-4, working_set=False)
        sizes = np.abs(V[:, best])
        row |= {
            f"alone_{k}": is_recovered(y, Y[:, best]),
            f"missed_{k}": int(objectives_of(X, planted, lasso(X, planted, lam), lam)[0] < objectives[best] - 1e-9),
            f"nonzeros_{k}": int(np.sum(sizes > NONZERO * sizes.max())),
            f"relaxed_{k}": is_recovered(y, dc.rounding.kmeans_centered(result.F)),
            f"gap_{k}": result.gap,
        }
    return row


def objectives_of(X: Array, Y: Array, V: Array, lam: float) -> Array:
    """Return the rival's objective at each column of labels and directions."""
    return np.asarray(np.mean((Y - X @ V) ** 2, axis=0) + lam * np.abs(V).sum(axis=0))


def is_recovered(y: Array, found: Array) -> int:
    """Return whether labels agree with the planted ones, up to a few points."""
    return int(dc.metrics.clustering_error(y, found) < RECOVERED)
