"""Instances: real two-class tables, planted ones, and small planted ones for exhaustive methods."""

from typing import NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.choice.sets import DESIGN, Labeled

SETS = tuple(name for name in DESIGN if not name.startswith("digits"))  # those of Table 1, iris, wine, wdbc
RIDGES = (1.0, 0.3, 0.1, 0.0)
LARGE_SETS = ("dna", "a1a", "w1a")  # one relaxation takes seconds or minutes: run at one ridge
RIDGE_OF_LARGE = 0.3


class Instance(NamedTuple):
    """Standardised columns X (n, d), true labels y in {-1, +1}, and the ridge of Eq. (9)."""

    X: Array
    y: Array
    ridge: float


def make_instance(
    part: str,
    ridge: float,
    name: str = "",
    n: int = 0,
    d: int = 0,
    noise: float = 0.0,
    replication: int = 0,
) -> Instance:
    """Return a real set by its name, or a planted one, whose seed depends only on the rest of the cell."""
    if part == "real":
        found: Labeled = DESIGN[name]()
        return Instance(standardized(found.X), np.where(found.y > 0, 1.0, -1.0), ridge)
    rng = np.random.default_rng([2017, 26, n, d, round(100 * noise), replication])
    planted = dc.datasets.make_planted(n, d, noise=noise, rng=rng)
    return Instance(standardized(planted.X), planted.y, ridge)


def standardized(X: Array) -> Array:
    """Return columns with mean 0 and variance 1; constant ones are excluded."""
    X = X[:, X.std(axis=0) > 0.0]
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def whitened_rows(X: Array, ridge: float) -> Array:
    r"""Return R (n, r) such that labels y have objective :math:`1 - |R^\top y|^2` in Eq. (9) at nu = 1.

    At the best direction the objective is :math:`1 - b^\top A^{+} b` with :math:`b = X^\top y / n` and
    :math:`A = X^\top X / n + \mathrm{ridge}\, I`.
    """
    A = X.T @ X / len(X) + ridge * np.eye(X.shape[1])
    values, vectors = np.linalg.eigh(A)
    mask = values > 1e-10 * values[-1]
    return np.asarray(X @ (vectors[:, mask] / np.sqrt(values[mask])) / len(X))


def cost_of(R: Array, y: Array) -> float:
    """Return the objective of labels in Eq. (9) at nu = 1, from whitened rows."""
    return 1.0 - float(np.sum((y @ R) ** 2))
