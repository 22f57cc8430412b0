"""Small ugly instances by family: entries of very different sizes, ties, collinear columns, every kind of weight."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from diffrac_cvx.inputs import Array

Rng = np.random.Generator
MOST_POINTS, MOST_FEATURES = 12, 5


class Instance(NamedTuple):
    """Data, nu, and the weights a and c, one for each column."""

    X: Array
    nu: float
    a: Array
    c: Array


def small_integers(rng: Rng, n: int, d: int) -> Array:
    """Entries -1, 0 and 1: ties, equal rows, rows of zeros."""
    return rng.integers(-1, 2, (n, d)).astype(float)


def wild_entries(rng: Rng, n: int, d: int) -> Array:
    """Entries of sizes from 1e-9 to 1e9 side by side."""
    return rng.choice([0.0, 1.0, -1.0, 1e-9, -1e-9, 1e9], (n, d))


def gaussian(rng: Rng, n: int, d: int) -> Array:
    """Normal entries."""
    return rng.standard_normal((n, d))


def bad_units(rng: Rng, n: int, d: int) -> Array:
    """Normal columns in units from 1e-8 to 1e8."""
    return rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-8, 8, d)


def far_from_zero(rng: Rng, n: int, d: int) -> Array:
    """Normal columns with means up to 1e12."""
    return rng.standard_normal((n, d)) + 10.0 ** rng.uniform(0, 12, d)


def nearly_collinear(rng: Rng, n: int, d: int) -> Array:
    """The last column is another one but for a part of relative size 2^-k."""
    X = rng.standard_normal((n, d))
    if d > 1:
        X[:, -1] = X[:, 0] + X[:, -1] * 2.0 ** -float(rng.integers(1, 56))
    return X


def ill_conditioned(rng: Rng, n: int, d: int) -> Array:
    """Singular values that fall from 1 to as little as 1e-14."""
    X = rng.standard_normal((n, d))
    left, _, right = np.linalg.svd(X, full_matrices=False)
    return np.asarray((left * np.geomspace(1.0, 10.0 ** -rng.uniform(0, 14), left.shape[1])) @ right)


def duplicates(rng: Rng, n: int, d: int) -> Array:
    """Equal rows and equal columns."""
    X = rng.standard_normal((n, d))
    return X[rng.integers(0, max(n // 2, 1), n)][:, rng.integers(0, d, d)]


def two_valued(rng: Rng, n: int, d: int) -> Array:
    """Columns with two values each."""
    return np.where(rng.random((n, d)) < rng.uniform(0.2, 0.8), 1.0, 0.0)


def one_outlier(rng: Rng, n: int, d: int) -> Array:
    """One row a million times as large."""
    X = rng.standard_normal((n, d))
    X[rng.integers(n)] *= 1e6
    return X


def planted(rng: Rng, n: int, d: int) -> Array:
    """Labels without noise in the first column: the optimum is 0 where they are balanced."""
    X = rng.standard_normal((n, d))
    X[:, 0] = np.where(np.arange(n) % 2, 1.0, -1.0)
    return np.asarray(X @ rng.standard_normal((d, d)))


FAMILIES: dict[str, Callable[[Rng, int, int], Array]] = {
    made.__name__: made
    for made in (
        small_integers, wild_entries, gaussian, bad_units, far_from_zero, nearly_collinear, ill_conditioned, duplicates,
        two_valued, one_outlier, planted,
    )
}  # fmt: skip
NUS = (0.0, 1e-6, 0.25, 0.5, 0.75, 1.0 - 1e-6, 1.0)
SIZES = (0.0, 1e-8, 1e-3, 0.1, 1.0, 1e3)  # of a weight, in units of its column


def make_instance(family: str, number: int) -> Instance:
    """Return an instance of a family; its number is its seed."""
    rng = np.random.default_rng([2017, 12, sorted(FAMILIES).index(family), number])
    n, d = int(rng.integers(2, MOST_POINTS + 1)), int(rng.integers(1, MOST_FEATURES + 1))
    X = FAMILIES[family](rng, n, d)
    size = np.abs(X).max(axis=0)
    weights = []
    for _ in range(2):
        kind = rng.integers(3)
        value = rng.choice(SIZES, d) if kind == 2 else np.full(d, rng.choice(SIZES) if kind else 0.0)
        weights.append(np.clip(value * np.where(size > 0.0, size, 1.0), 0.0, 1e90))
    return Instance(X, float(rng.choice(NUS)), *weights)
