"""Baseline methods without a relaxation; each maps data to labels in {-1, +1}, with the first point at +1.

From the paper: alternating optimisation, and 2-means on whitened data.  More recent: CURE and a spectral method.  On
standardised columns: 2-means and a Gaussian mixture; for wide tables, also sparse k-means, influential-features PCA,
spectral clustering, and sparse and two-valued components.  `sparse_kmeans`, `ifpca` and `sparse_component` select
columns: they return a `Selection` of the labels and these columns.

The methods up to the spectral one are invariant under invertible affine maps of the data, like the relaxation without a
penalty; the others are invariant under shifts and rescaling of the columns.
"""

from diffrac_cvx.baselines.principal import ifpca, sparse_component
from diffrac_cvx.baselines.selection import Selection
from diffrac_cvx.baselines.standard_methods import (
    alternating_optimization,
    gaussian_mixture,
    kmeans_standardized,
    kmeans_whitened,
    spectral,
)
from diffrac_cvx.baselines.two_valued import cure, spectral_kurtosis, two_valued_component
from diffrac_cvx.baselines.weighted_columns import sparse_kmeans

__all__ = [
    "Selection", "alternating_optimization", "cure", "gaussian_mixture", "ifpca", "kmeans_standardized",
    "kmeans_whitened", "sparse_component", "sparse_kmeans", "spectral", "spectral_kurtosis", "two_valued_component",
]  # fmt: skip
