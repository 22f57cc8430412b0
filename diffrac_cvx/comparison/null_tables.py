"""Null tables: columns permuted independently, points rotated as one Gaussian cloud, and such a cloud cut in two."""

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import is_above_rounding
from diffrac_cvx.points.rows import Mask
from diffrac_cvx.problem.feature_groups import FeatureGroups

N_NODES, N_BISECTIONS = 12, 20  # of Gauss-Legendre quadrature; of an angle, to 3e-6

NullSampler = Callable[[np.random.Generator], Array]
NullModel = Callable[[Array, FeatureGroups], NullSampler]


def permute_columns(X: Array, groups: FeatureGroups) -> NullSampler:
    """Return a sampler of tables whose columns, or feature groups, are permuted independently."""
    parts = [np.flatnonzero(groups.labels == g) for g in range(len(groups.names))]

    def draw(rng: np.random.Generator) -> Array:
        if groups.are_single:
            return rng.permuted(X, axis=0)
        drawn = np.empty_like(X)
        for part in parts:
            drawn[:, part] = X[np.ix_(rng.permutation(len(X)), part)]
        return drawn

    return draw


def rotate_points(X: Array, _groups: FeatureGroups) -> NullSampler:
    """Return a sampler of QX, with Q a random rotation of the points that preserves their mean, so X'X is unchanged."""
    _, s, Vt = np.linalg.svd(X, full_matrices=False)
    mask = is_above_rounding(s, X.shape)
    half = s[mask, None] * Vt[mask]

    def draw(rng: np.random.Generator) -> Array:
        frame = rng.standard_normal((len(X), len(half)))
        Q, R = np.linalg.qr(frame - frame.mean(axis=0))
        return np.asarray(Q * np.sign(np.diag(R)) @ half)

    return draw


NULL_MODELS: tuple[NullModel, ...] = (permute_columns, rotate_points)


# Columns of two values


def cut_gaussian_cloud(X: Array, p: Array) -> NullSampler:
    """Return a sampler of a Gaussian cloud whose columns are cut in two where those of X (n, d) have two values.

    The cloud has the tetrachoric correlations of X, with weights p of sum 1.  The columns cut have the values of X and
    their shares, spread over cells as by `spread_ties`; the others have the means and variances of X.
    """
    low, high, mean = X.min(axis=0), X.max(axis=0), p @ X
    deviation = np.sqrt(p @ (X - mean) ** 2)
    has_two_values = np.all((low == X) | (high == X), axis=0)
    is_high = X > np.where(has_two_values, low, mean)
    root = root_of_correlations(tetrachoric_correlations(is_high, p))
    threshold = -ndtri(p @ is_high)

    def draw(rng: np.random.Generator) -> Array:
        cloud = rng.standard_normal(X.shape) @ root.T
        cut = low + (high - low) * ((cloud > threshold) + rng.random(X.shape) - 0.5)
        return np.asarray(np.where(has_two_values, cut, mean + deviation * cloud))

    return draw


def root_of_correlations(R: Array) -> Array:
    """Return a matrix B with rows of norm 1 and BB' near R (d, d), whose negative eigenvalues are replaced.

    The lowest eigenvalues become their mean, as few as make it nonnegative.  This keeps the trace: with negative
    eigenvalues at 0 instead, the correlations of many columns and few rows would be far smaller than in R.
    """
    eigenvalues, U = np.linalg.eigh(R)
    means = np.cumsum(eigenvalues) / np.arange(1, len(eigenvalues) + 1)
    last = int(np.argmax(means >= 0.0))
    eigenvalues[: last + 1] = means[last]
    root = U * np.sqrt(eigenvalues)
    return np.asarray(root / np.linalg.norm(root, axis=1, keepdims=True))


def tetrachoric_correlations(is_high: Mask, p: Array) -> Array:
    r"""Return the correlations of the Gaussian columns of which columns (n, d) are the signs, shape (d, d).

    The share of rows in which two columns are high exceeds the product of their shares by

    .. math:: \frac{1}{2\pi} \int_0^{\arcsin\rho} \exp\Big(-\frac{a^2 + b^2 - 2ab\sin t}{2\cos^2 t}\Big) dt

    with thresholds a, b.  Two rows are added as if the columns were independent, so that few rows do not give 1 or -1.

    Source: Pearson (1900) for the correlations; Drezner and Wesolowsky (1990) for the integral.
    """
    n = 1.0 / np.sum(p**2)
    ones = p @ is_high
    threshold = ndtri(np.clip(ones, 0.5 / n, 1.0 - 0.5 / n))
    excess = n / (n + 2.0) * ((is_high.T * p) @ is_high - np.outer(ones, ones))
    squares = (threshold[:, None] ** 2 + threshold**2) / 2.0
    products = np.outer(threshold, threshold)
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    low, high = np.full(excess.shape, -np.pi / 2.0), np.full(excess.shape, np.pi / 2.0)
    for _ in range(N_BISECTIONS):
        angle = (low + high) / 2.0
        integral = np.zeros_like(angle)
        for node, weight in zip(nodes, weights, strict=True):
            t = angle * (node + 1.0) / 2.0
            integral += weight * np.exp((products * np.sin(t) - squares) / np.cos(t) ** 2)
        is_below = angle * integral / (4.0 * np.pi) < excess
        low, high = np.where(is_below, angle, low), np.where(is_below, high, angle)
    correlations = np.sin((low + high) / 2.0)
    np.fill_diagonal(correlations, 1.0)
    return np.asarray(correlations)
