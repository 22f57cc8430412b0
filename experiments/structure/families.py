"""Families of tables without groups, of them some with copies of rows, and with groups, for the structure test."""

from collections.abc import Callable

import numpy as np

from diffrac_cvx.typing import Array
from experiments.problems import autoregressive

N, D = 200, 10  # rows and columns
WIDE_N, WIDE_D = 60, 600  # of wide tables
SEPARATION = 5.0  # standard deviations between the centres of two groups

Draw = Callable[[np.random.Generator], Array]


def normal(rng: np.random.Generator, n: int = N, d: int = D) -> Array:
    """Return independent standard normal entries."""
    return rng.standard_normal((n, d))


def factor(rng: np.random.Generator, latent: Array, d: int = D, noise: float = 0.5) -> Array:
    """Return d columns that are random multiples of latent columns, plus noise."""
    latent = latent.reshape(len(latent), -1)
    return latent @ rng.standard_normal((latent.shape[1], d)) + noise * rng.standard_normal((len(latent), d))


def ordinal(X: Array, levels: int) -> Array:
    """Return answers on a scale of levels, each about equally frequent."""
    ranks = np.argsort(np.argsort(X, axis=0), axis=0)
    return np.floor(ranks * levels / len(X))


def uniform_ball(rng: np.random.Generator, n: int, d: int) -> Array:
    """Return points uniform in a ball."""
    X = rng.standard_normal((n, d))
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True) * rng.random((n, 1)) ** (1.0 / d))


def curves(rng: np.random.Generator, n: int, d: int) -> Array:
    """Return smooth bumps whose position, width and height vary, as in spectra."""
    grid = np.linspace(0.0, 1.0, d)
    place, width = 0.5 + 0.1 * rng.standard_normal((n, 1)), 0.1 + 0.02 * rng.random((n, 1))
    height = np.exp(0.3 * rng.standard_normal((n, 1)))
    bumps = height * np.exp(-0.5 * ((grid - place) / width) ** 2)
    return bumps + 0.05 * rng.standard_normal((n, d))


def random_walk(rng: np.random.Generator, n: int, d: int) -> Array:
    """Return d indicators that follow a slow common trend through time, whose rows are the times."""
    trend = np.linspace(0.0, 1.0, n)[:, None] + 0.1 * rng.standard_normal((n, 1))
    return trend @ rng.standard_normal((1, d)) + 0.3 * rng.standard_normal((n, d))


def replicates(rng: np.random.Generator, n: int, d: int, times: int, noise: float) -> Array:
    """Return rows that are repeated, each with a little noise of its own."""
    return np.repeat(normal(rng, n, d), times, axis=0) + noise * normal(rng, n * times, d)


COPIES: dict[str, Draw] = {
    "each row twice": lambda rng: replicates(rng, 100, 8, 2, 0.0),
    "each row five times": lambda rng: replicates(rng, 40, 5, 5, 0.0),
    "300 rows drawn from 100": lambda rng: normal(rng, 100, 5)[rng.integers(0, 100, 300)],
    "200 rows drawn from 200": lambda rng: normal(rng)[rng.integers(0, N, N)],
    "four replicates, noise 0.05": lambda rng: replicates(rng, 50, 6, 4, 0.05),
    "four replicates, noise 0.02": lambda rng: replicates(rng, 50, D, 4, 0.02),
    "whole numbers": lambda rng: np.round(normal(rng, N, 4)),
    "independent answers": lambda rng: rng.integers(1, 6, (N, 8)).astype(float),
    "rounded exponential": lambda rng: np.floor(rng.exponential(3.0, (N, 5))),
}
CLOUDS: dict[str, Draw] = {
    "normal": normal,
    "equal correlations": lambda rng: factor(rng, rng.standard_normal(N), noise=1.0),
    "random covariance": lambda rng: normal(rng) @ rng.standard_normal((D, D)),
    "nearly collinear": lambda rng: factor(rng, normal(rng, N, 2), noise=0.05),
    "autoregressive": lambda rng: autoregressive(rng, N, 20, 0.9),
    "heavy tails": lambda rng: rng.standard_t(3, (N, D)),
    "elliptical heavy tails": lambda rng: normal(rng) / rng.chisquare(3, (N, 1)) ** 0.5,
    "log-normal": lambda rng: np.exp(normal(rng)),
    "exponential factor": lambda rng: factor(rng, rng.exponential(size=N)),
    "Laplace sources": lambda rng: rng.laplace(size=(N, D)) @ rng.standard_normal((D, D)),
    "ball": lambda rng: uniform_ball(rng, N, 5),
    "cube": lambda rng: rng.random((N, D)),
    "flat factor": lambda rng: factor(rng, 3.4 * rng.random(N)),
    "compositions": lambda rng: rng.dirichlet(np.full(6, 2.0), N),
    "counts": lambda rng: rng.poisson(np.exp(0.5 * rng.standard_normal((N, 1))) * rng.gamma(1.0, 3.0, (1, D))).astype(
        float
    ),
    "questionnaire": lambda rng: ordinal(factor(rng, rng.standard_normal(N), noise=1.0), 5),
    "yes or no answers": lambda rng: (factor(rng, rng.standard_normal(N), noise=1.0) > 0.0).astype(float),
    "parabola": lambda rng: factor(rng, (lambda t: np.column_stack([t, t**2]))(rng.standard_normal(N)), noise=0.3),
    "trend": lambda rng: random_walk(rng, N, D),
    "outliers": lambda rng: normal(rng) * np.where(rng.random((N, 1)) < 0.03, 6.0, 1.0),
    "spectra": lambda rng: curves(rng, 150, 60),
    "two rows a subject": lambda rng: np.repeat(normal(rng, 80, 8), 2, axis=0) + 0.5 * normal(rng, 160, 8),
    "normal, wide": lambda rng: normal(rng, WIDE_N, WIDE_D),
    "three factors, wide": lambda rng: factor(rng, normal(rng, WIDE_N, 3), WIDE_D, noise=1.0),
    "autoregressive, wide": lambda rng: autoregressive(rng, WIDE_N, WIDE_D, 0.95),
    "counts, wide": lambda rng: np.log1p(
        rng.poisson(np.exp(0.4 * rng.standard_normal((WIDE_N, 1))) * rng.gamma(1.0, 5.0, (1, WIDE_D)))
    ),
    "skewed factor, wide": lambda rng: factor(rng, rng.gamma(2.0, size=WIDE_N), WIDE_D, noise=1.0),
}
WITHOUT = CLOUDS | COPIES


def two_labels(rng: np.random.Generator, n: int, share: float) -> Array:
    """Return labels -1/2 and 1/2 in random order, the latter for a share of the rows."""
    return rng.permutation(np.where(np.arange(n) < round(share * n), 0.5, -0.5))


def along_direction(rng: np.random.Generator, share: float, separation: float = SEPARATION) -> Array:
    """Return two groups along a random direction of a Gaussian cloud."""
    v = rng.standard_normal(D)
    return normal(rng, N, D) + separation * np.outer(two_labels(rng, N, share), v / np.linalg.norm(v))


def hidden_direction(rng: np.random.Generator, d: int = D) -> Array:
    """Return two groups along a direction whose variance is that of the others, behind a common factor."""
    X, y = normal(rng, N, d), two_labels(rng, N, 0.5)
    X[:, 0] = (X[:, 0] + SEPARATION * y) / (1.0 + SEPARATION**2 / 4.0) ** 0.5
    X = X @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    return np.asarray(X + 1.5 * rng.standard_normal((N, 1)) * rng.standard_normal(d))


def some_columns(rng: np.random.Generator, share: float) -> Array:
    """Return two groups that differ in some columns of a wide table, each by less than a standard deviation."""
    X, y, informative = normal(rng, WIDE_N, WIDE_D), two_labels(rng, WIDE_N, share), 60
    X[:, :informative] += SEPARATION * 2.0 / informative**0.5 * y[:, None]
    return X


def three_groups(rng: np.random.Generator, n: int, d: int) -> Array:
    """Return three groups whose centres are equally far apart, by 7 standard deviations, or 10 of a wide table."""
    centres = np.linalg.qr(rng.standard_normal((d, 3)))[0].T * (SEPARATION * (2.0 if d > n else 1.4) / 2**0.5)
    return normal(rng, n, d) + centres[rng.integers(0, 3, n)]


def three_equal_groups(rng: np.random.Generator, centres: Array) -> Array:
    """Return three groups of equal size at centres (3, k) in random orthogonal directions."""
    axes = np.linalg.qr(rng.standard_normal((D, centres.shape[1])))[0].T
    return np.asarray(normal(rng, N, D) + (centres @ axes)[rng.permutation(N) % 3])


def latent_classes(rng: np.random.Generator) -> Array:
    """Return yes-or-no answers of two classes of subjects."""
    chance = np.where(two_labels(rng, N, 0.5)[:, None] > 0.0, 0.9, 0.1)
    flip = rng.random(12) < 0.5
    return np.where(flip, 1.0 - (rng.random((N, 12)) < chance), rng.random((N, 12)) < chance).astype(float)


WITH: dict[str, Draw] = {
    "halves": lambda rng: along_direction(rng, 0.5),
    "30 to 70": lambda rng: along_direction(rng, 0.3),
    "20 to 80": lambda rng: along_direction(rng, 0.2),
    "15 to 85": lambda rng: along_direction(rng, 0.15),
    "10 to 90, 6 apart": lambda rng: along_direction(rng, 0.1, 6.0),
    "7 to 93": lambda rng: along_direction(rng, 0.07),
    "5 to 95, 6 apart": lambda rng: along_direction(rng, 0.05, 6.0),
    "one column of ten": lambda rng: normal(rng) + SEPARATION * np.outer(two_labels(rng, N, 0.5), np.eye(D)[0]),
    "hidden direction": hidden_direction,
    "heavy-tailed groups": lambda rng: along_direction(rng, 0.5) * 1.5 + rng.standard_t(4, (N, D)) * 0.5,
    "three groups, 5 apart": lambda rng: three_equal_groups(rng, SEPARATION / 2**0.5 * np.eye(3)),
    "three groups in line": lambda rng: three_equal_groups(rng, SEPARATION * np.arange(3.0)[:, None]),
    "three groups": lambda rng: three_groups(rng, 240, 8),
    "latent classes": latent_classes,
    "log-normal groups": lambda rng: np.exp(0.5 * along_direction(rng, 0.4)),
    "halves, wide": lambda rng: some_columns(rng, 0.5),
    "30 to 70, wide": lambda rng: some_columns(rng, 0.3),
    "15 to 85, wide": lambda rng: some_columns(rng, 0.15),
    "three groups, wide": lambda rng: three_groups(rng, 90, WIDE_D),
}
