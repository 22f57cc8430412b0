r"""Section 3 numerically: the l1 norm of v alone, in the problem of labels and direction, compared with Gamma(V).

The rival is alternating minimisation of

.. math:: \min_{y \in \{-1, 1\}^n,\ v}\ \tfrac1n \|y - X v\|_2^2 + \lambda \|v\|_1,

where the labels are the signs of X v and the direction solves the Lasso, started from random labels.
"""

import warnings
from typing import NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.harness.sweep import Row

RESTARTS, ROUNDS, SWEEPS = 10, 50, 300
GRID = (0.02, 0.06, 0.2, 0.6)  # weights of both methods; each is assessed at its best
RECOVERED = 0.05  # clustering error below which the labels count as recovered
NONZERO = 1e-3  # entries of v below this fraction of the largest count as 0


class Run(NamedTuple):
    """Labels, direction and objective at the end of an alternation."""

    y: Array
    v: Array
    objective: float


def lasso(gram: Array, target: Array, lam: float, V: Array) -> Array:
    """Return the minimisers of v'Gv - 2 t'v + lam |v|_1 for the columns t of the target, by cyclic descent from V."""
    V = V.copy()
    for _ in range(SWEEPS):
        before = V.copy()
        for j in range(len(gram)):
            free = target[j] - gram[j] @ V + gram[j, j] * V[j]
            V[j] = np.sign(free) * np.maximum(np.abs(free) - lam / 2, 0.0) / gram[j, j]
        if np.max(np.abs(V - before)) < 1e-9:
            break
    return V


def alternate(X: Array, lam: float, rng: np.random.Generator) -> list[Run]:
    """Return the results of `RESTARTS` alternations from random labels; no step increases the objective."""
    n, d = X.shape
    gram = X.T @ X / n
    Y = rng.choice([-1.0, 1.0], (n, RESTARTS))
    V = np.zeros((d, RESTARTS))
    for _ in range(ROUNDS):
        V = lasso(gram, X.T @ Y / n, lam, V)
        scores = X @ V
        new = np.where(scores == 0.0, Y, np.sign(scores))
        if np.array_equal(new, Y):
            break
        Y = new
    return [Run(y, v, objective_of(X, y, v, lam)) for y, v in zip(Y.T, V.T, strict=True)]


def measure_sparse_direction(sparsity: int, d: int, n: int, replication: int) -> Row:
    """Recover the labels of a noiseless balanced problem by both methods, at every weight of the grid."""
    rng = np.random.default_rng([2017, 62, sparsity, d, n, replication])
    planted = dc.datasets.make_planted(n, d, sparsity, rng=rng)
    row: Row = {}
    gram = planted.X.T @ planted.X / n
    for k, lam in enumerate(GRID):
        runs = alternate(planted.X, lam, rng)
        best = min(runs, key=lambda run: run.objective)
        v = lasso(gram, (planted.X.T @ planted.y / n)[:, None], lam, np.zeros((d, 1)))[:, 0]
        with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):
            result = dc.low_rank(planted.X, 1.0, dc.Penalty.l1(lam), tol=1e-4, working_set=False)
        row |= {
            f"alone_{k}": is_recovered(planted.y, best.y),
            f"missed_{k}": int(objective_of(planted.X, planted.y, v, lam) < best.objective - 1e-9),
            f"nonzeros_{k}": int(np.sum(np.abs(best.v) > NONZERO * np.abs(best.v).max())),
            f"relaxed_{k}": is_recovered(planted.y, dc.rounding.kmeans_centered(result.F)),
            f"gap_{k}": result.gap,
        }
    return row


def objective_of(X: Array, y: Array, v: Array, lam: float) -> float:
    """Return the rival's objective."""
    return float(np.mean((y - X @ v) ** 2) + lam * np.abs(v).sum())


def is_recovered(y: Array, found: Array) -> int:
    """Return whether labels agree with the planted ones, up to a few points."""
    return int(dc.metrics.clustering_error(y, found) < RECOVERED)
