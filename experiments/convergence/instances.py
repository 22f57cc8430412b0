"""Instances: families of data that are easy or hard to solve, in sizes from 5 x 1 to 3000 x 300."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.typing import Array

Rng = np.random.Generator

# n, d and the limit in seconds of processor time per solve, which does not depend on other load of the machine.
SIZES = {
    (5, 1): 2.0,
    (12, 5): 2.0,
    (5, 52): 2.0,
    (22, 282): 4.0,
    (60, 20): 2.0,
    (100, 100): 3.0,
    (220, 125): 3.0,
    (395, 251): 5.0,
    (1000, 40): 3.0,
    (3000, 300): 10.0,
}
SMOKE = ((5, 1), (12, 5))
SMOKE_FAMILIES = ("planted", "outlying rows", "nu near 0")
LEVELS = 5  # of a categorical column
OUTLIER = 1e6


class Instance(NamedTuple):
    """Data, nu and the penalty."""

    X: Array
    nu: float
    penalty: dc.Penalty


class Family(NamedTuple):
    """Generator of the data, nu, the ridge a and the weight lambda = c^2."""

    make: Callable[[Rng, int, int], Array]
    nu: float = 1.0
    a: float = 0.0
    lam: float = 0.01


def one_hot(rng: Rng, n: int, d: int) -> Array:
    """Indicators of categorical columns with five levels, so that columns are collinear."""
    groups = [rng.integers(LEVELS, size=n)[:, None] == np.arange(LEVELS) for _ in range(-(-d // LEVELS))]
    return np.hstack(groups)[:, :d].astype(float)


def outliers(rng: Rng, n: int, d: int) -> Array:
    """Normal entries, with one row in twenty a million times as large."""
    return rng.standard_normal((n, d)) * np.where(np.arange(n) < max(n // 20, 1), OUTLIER, 1.0)[:, None]


def outlying_entries(rng: Rng, n: int, d: int) -> Array:
    """Normal entries, with one in a hundred a million times as large."""
    X = rng.standard_normal((n, d))
    return np.where(rng.random((n, d)) < 0.01, OUTLIER * X, X)


def autoregressive(rng: Rng, n: int, d: int, rho: float = 0.98) -> Array:
    """Normal columns without clusters, with autoregressive correlation rho."""
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + (1.0 - rho**2) ** 0.5 * X[:, j]
    return X


PLANTED = Family(lambda rng, n, d: dc.datasets.make_planted(n, d, min(2, d), noise=0.3, rng=rng).X)
NOISE = Family(lambda rng, n, d: rng.standard_normal((n, d)))
FAMILIES = {
    "planted": PLANTED,
    "planted, no penalty": PLANTED._replace(lam=0.0),
    "noise": NOISE,
    "one-hot": Family(one_hot),
    "one-hot, no penalty": Family(one_hot, lam=0.0),
    "heavy tails": Family(lambda rng, n, d: rng.standard_t(1.5, (n, d))),  # no variance
    "outlying rows": Family(outliers),
    "outlying entries": Family(outlying_entries),
    "outlying rows, no penalty": Family(outliers, lam=0.0),
    "correlated": Family(autoregressive),
    "correlated, ridge": Family(autoregressive, a=0.1, lam=1e-3),
    "lambda tiny": NOISE._replace(lam=1e-8),
    "lambda large": PLANTED._replace(lam=1.0, a=0.1),
    "lambda huge": PLANTED._replace(lam=1e3),
    "nu near 0": PLANTED._replace(nu=1e-4),
    "nu near 1": PLANTED._replace(nu=1.0 - 1e-4),
}


def make_instance(family: str, n: int, d: int) -> Instance:
    """Return the instance of a family at a size; the seed depends only on these."""
    make, nu, a, lam = FAMILIES[family]
    rng = np.random.default_rng([2017, 4, list(FAMILIES).index(family), n, d])
    return Instance(make(rng, n, d), nu, dc.Penalty(a=a, c=lam**0.5))
