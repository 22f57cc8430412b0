"""Null tables: the columns of a table permuted independently, and its points rotated as one Gaussian cloud."""

from collections.abc import Callable

import numpy as np

from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.linear_algebra import is_above_rounding
from diffrac_cvx.problem.feature_groups import FeatureGroups

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
