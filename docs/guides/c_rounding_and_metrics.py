r"""
Rounding and metrics
====================

Both paths meet in a factor F with Y = FF'. A rounding is a function of F.
"""

import numpy as np

import diffrac_cvx as dc

planted = dc.datasets.make_planted(80, 5, imbalance=0.25, noise=0.2, rng=0)
F = dc.low_rank(planted.X, 0.3).F
for name, rounded in dc.rounding.ROUNDINGS.items():
    print(f"{name:16} {dc.metrics.clustering_error(planted.y, rounded(F)):.3f}")
print(f"{'hyperplanes':16} {dc.metrics.clustering_error(planted.y, dc.rounding.goemans_williamson(F, rng=0)):.3f}")

# %%
# ``kmeans_centered``, the paper's recommendation, is exact 2-means on the leading eigenvector of :math:`\Pi Y \Pi`.
# ``sign_leading`` and ``sign_second`` are signs of eigenvectors of Y; which of them is y depends on nu.
# `diffrac_cvx.rounding.refine` runs the alternating optimisation of Eq. (2) from labels; it never lowers the squared
# correlation.

rounded = dc.rounding.kmeans_centered(F)
better = dc.rounding.refine(planted.X, rounded)
print([round(dc.metrics.squared_correlation(planted.X, y), 4) for y in (rounded, better)])

# %%
# Metrics of labels: `diffrac_cvx.metrics.clustering_error`, 0 for the same labels up to sign; a constant labelling scores
# :math:`1 - (1^\top y/n)^2`, to be kept in mind with imbalanced classes:

constant = np.ones(80)
print(dc.metrics.clustering_error(planted.y, constant), 1 - dc.metrics.imbalance(planted.y))

# %%
# Metrics of solutions: the second eigenvalue of Y over the first, and the numerical rank.

print(dc.metrics.eigenvalue_ratio(F), dc.metrics.numerical_rank(F))
