"""Baseline methods without a relaxation; each maps data to labels in {-1, +1}, with the first point at +1.

From the paper: alternating optimisation, 2-means on whitened data, and 2-means on each column.  More recent: CURE and a
spectral method.  On standardised columns: 2-means and a Gaussian mixture; for wide tables, also sparse k-means,
influential-features PCA, spectral clustering, and principal, sparse and two-valued components.  Three
methods that select columns have a variant that returns a `Selection` of the same labels and the selected columns:
`select_sparse_kmeans`, `select_ifpca` and `select_sparse_component`.

The methods up to the spectral one, except `best_single_column`, are invariant under invertible affine maps of the
data, like the relaxation without a penalty; the others are invariant under shifts and rescaling of the columns.
"""

from diffrac_cvx.baselines.principal import (
    first_component,
    ifpca,
    select_ifpca,
    select_sparse_component,
    sparse_component,
)
from diffrac_cvx.baselines.selection import Selection
from diffrac_cvx.baselines.squared_correlation import (
    alternating_optimization,
    alternating_runs,
    best_single_column,
    kmeans_whitened,
)
from diffrac_cvx.baselines.standardized import gaussian_mixture, kmeans_standardized, spectral
from diffrac_cvx.baselines.two_valued import cure, spectral_kurtosis, two_valued_component
from diffrac_cvx.baselines.weighted_columns import select_sparse_kmeans, sparse_kmeans

__all__ = [
    "Selection",
    "alternating_optimization",
    "alternating_runs",
    "best_single_column",
    "cure",
    "first_component",
    "gaussian_mixture",
    "ifpca",
    "kmeans_standardized",
    "kmeans_whitened",
    "select_ifpca",
    "select_sparse_component",
    "select_sparse_kmeans",
    "sparse_component",
    "sparse_kmeans",
    "spectral",
    "spectral_kurtosis",
    "two_valued_component",
]  # fmt: skip
