"""Methods without a relaxation, to compare with: from data to labels in {-1, +1}, the first point at +1.

Those of the paper are alternating optimisation, 2-means on whitened data and 2-means on each column.  The others are
later: CURE, a spectral method and lattice reduction; and 2-means and a mixture of Gaussians on standardised columns.
For wide tables, many more columns than rows, there are sparse k-means, influential-features PCA, spectral clustering,
principal components, sparse ones and two-valued ones, all on standardised columns.  Those that choose columns have a
second function, `select_sparse_kmeans`, `select_ifpca` and `select_sparse_component`, that returns a `Selection`: the
same labels, and the columns.

Those up to lattice reduction, but for `best_single_column`, depend on the data up to an invertible affine map only, as
the relaxation without a penalty does; the others on the data up to shifts and units of the columns.
"""

from diffrac_cvx.baselines.lattice_labels import lattice
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
    "lattice",
    "select_ifpca",
    "select_sparse_component",
    "select_sparse_kmeans",
    "sparse_component",
    "sparse_kmeans",
    "spectral",
    "spectral_kurtosis",
    "two_valued_component",
]  # fmt: skip
