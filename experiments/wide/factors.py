"""Methods that estimate common factors of the columns: remove them first, or search among them."""

import numpy as np

from diffrac_cvx.baselines import sparse_component
from diffrac_cvx.baselines.principal import leading_scores
from diffrac_cvx.baselines.selection import Selection
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.rounding.two_clusters import kmeans_1d
from diffrac_cvx.typing import Array

PERMUTED = 20  # tables with permuted columns
QUANTILE = 0.95  # of their singular values, which those of a factor exceed
COMPONENTS = 20  # principal components searched


def count_factors(X: Array, rng: np.random.Generator) -> int:
    """Return the number of leading singular values above those of tables with permuted columns.

    Source: Horn, "A rationale and test for the number of factors in factor analysis", Psychometrika 1965; quantiles
    instead of means, as usual today.
    """
    values = np.linalg.svd(X, compute_uv=False)
    permuted = [np.linalg.svd(rng.permuted(X, axis=0), compute_uv=False) for _ in range(PERMUTED)]
    above = values > np.quantile(permuted, QUANTILE, axis=0)
    return int(np.argmin(above)) if not above.all() else len(values)


def without_factors(X: Array, *, bound: float | None = None, rng: np.random.Generator) -> Selection:
    """Return the clusters of a sparse principal component after the common factors are projected out.

    The columns are scaled to variance 1 before and after; the bound is that of `baselines.sparse_component`.
    """
    X = standardize_columns(X)
    factors = leading_scores(X, count_factors(X, rng))
    return sparse_component(X - factors @ (factors.T @ X), bound=bound, rng=rng)


def best_component(X: Array, *, components: int = COMPONENTS, rng: np.random.Generator) -> Array:
    """Return exact 2-means of the principal component that it explains best, by the share of its variance."""

    def explained(scores: Array) -> float:
        labels = kmeans_1d(scores)
        means = [scores[labels == sign].mean() for sign in (-1.0, 1.0)]
        return float(np.mean((labels > 0) * means[1] ** 2 + (labels < 0) * means[0] ** 2) / np.mean(scores**2))

    return kmeans_1d(max(leading_scores(standardize_columns(X), components).T, key=explained))
