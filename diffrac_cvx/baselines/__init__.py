"""Methods without a relaxation, to compare with: from data to labels in {-1, +1}, the first point at +1.

Those of the paper are alternating optimisation, 2-means on whitened data and 2-means on each column.  The others are
later: CURE, a spectral method and lattice reduction; and 2-means and a mixture of Gaussians on standardised columns.
All but `kmeans_by_column` and these two depend on the data up to an invertible affine map only, as the relaxation
without a penalty does.
"""

from diffrac_cvx.baselines.alternating import alternating_optimisation, alternating_runs
from diffrac_cvx.baselines.columns import kmeans_by_column
from diffrac_cvx.baselines.fourth_moments import spectral_kurtosis
from diffrac_cvx.baselines.lattice_labels import lattice
from diffrac_cvx.baselines.standardised import gaussian_mixture, kmeans_standardised
from diffrac_cvx.baselines.uncoupled_regression import cure
from diffrac_cvx.baselines.whitened import kmeans_whitened

__all__ = [
    "alternating_optimisation",
    "alternating_runs",
    "cure",
    "gaussian_mixture",
    "kmeans_by_column",
    "kmeans_standardised",
    "kmeans_whitened",
    "lattice",
    "spectral_kurtosis",
]
