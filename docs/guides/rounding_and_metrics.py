r"""
Rounding and metrics
====================

All solvers return a factor F with Y = FF', n × r. A rounding is a function from F to labels in {−1, 1}; no n × n matrix is
formed. The first point always gets the label +1, since Y determines the labels only up to sign.

.. list-table::
   :header-rows: 1
   :widths: auto

   * - rounding
     - rule
     - suitable if
   * - `rounding.kmeans_centered`
     - exact 2-means on the leading eigenvector of :math:`\Pi_n Y \Pi_n`
     - Y is a mixture of yy' and 11'; the paper's choice on real data, and the default here
   * - `rounding.sign_centered`
     - the signs of that eigenvector, for the best rank-two approximation of Y
     - as above; with noise, 0 need not be the best threshold
   * - `rounding.sign_leading`
     - signs of the first eigenvector of Y
     - yy' outweighs 11' in Y: clusters of about equal sizes
   * - `rounding.sign_second`
     - signs of the second eigenvector
     - 11' outweighs yy'
   * - `rounding.goemans_williamson`
     - the best of random hyperplanes
     - Y is far from rank two; it evaluates the objective for each of ``n_samples`` hyperplanes
   * - `rounding.procrustes`
     - a rotation to k labels at once; `rounding.fit_label_mixture` also returns their weights
     - Y is a mixture of several labels (:doc:`/auto/tutorial/many_labels`)
"""

import numpy as np

import diffrac_cvx as dc

planted = dc.datasets.make_planted(80, 5, imbalance=0.25, noise=0.2, rng=0)
X, y = planted.X, planted.y
print("   nu   " + "   ".join(dc.rounding.ROUNDINGS) + "   goemans_williamson")
for nu in (0.1, 0.3, 1.0):
    F = dc.low_rank(X, nu).F
    found = [rounded(F) for rounded in dc.rounding.ROUNDINGS.values()] + [
        dc.rounding.goemans_williamson(F, rng=0)
    ]
    widths = [len(name) for name in (*dc.rounding.ROUNDINGS, "goemans_williamson")]
    errors = [dc.metrics.clustering_error(y, labels) for labels in found]
    cells = [f"{error:{width}.2f}" for error, width in zip(errors, widths, strict=True)]
    print(f"{nu:5.1f}   " + "   ".join(cells))

# %%
# For small nu, y is the first eigenvector here. In general this depends on the weights of yy' and 11' in Y; the centred rules do
# not depend on them (:doc:`/auto/relaxations/constrained_alpha`). At nu = 1 the relaxation favours clusters of equal size, but
# these clusters have different sizes. No rounding corrects this.
#
# Local search
# ------------
# `rounding.refine` runs the alternating optimisation of Eq. (2) from labels to a fixed point. Starting from good labels this is
# safe: the squared correlation never decreases.

F = dc.low_rank(X, 0.3).F
for name, rounded in dc.rounding.ROUNDINGS.items():
    before = rounded(F)
    after = dc.rounding.refine(X, before)
    correlations = [dc.metrics.squared_correlation(X, labels) for labels in (before, after)]
    errors = [dc.metrics.clustering_error(y, labels) for labels in (before, after)]
    print(f"{name:16}", "correlation {:.4f} -> {:.4f},".format(*correlations), end=" ")
    print("error {:.2f} -> {:.2f}".format(*errors))
    assert correlations[1] >= correlations[0] - 1e-12

# %%
# Metrics of labels
# -----------------
# `metrics.clustering_error` is :math:`1 - (y^\top \hat y / n)^2`: 0 for the same clusters, whatever their names. A constant label
# has the error :math:`1 - (1^\top y / n)^2`. For unbalanced classes this is below the error of random labels, so always report it
# too.

constant, random = np.ones(80), np.random.default_rng(0).choice([-1.0, 1.0], size=80)
errors = [dc.metrics.clustering_error(y, labels) for labels in (constant, random)]
print("one cluster {:.2f}, random labels {:.2f}".format(*errors))
assert np.isclose(dc.metrics.clustering_error(y, constant), 1 - dc.metrics.imbalance(y))

# %%
# `metrics.squared_correlation` needs no true labels. It is the objective of Eq. (2), in [0, 1], and measures how well the best
# direction separates the labels. It grows with the number of features, so compare it only at the same d.
#
# For many labels: `metrics.label_subspace_overlap` and `metrics.label_correlations` (:doc:`/auto/tutorial/many_labels`).
#
# Metrics of solutions
# --------------------
# `metrics.eigenvalue_ratio` is the second eigenvalue of Y divided by the first: 0 if Y = yy' for labels y.
# `metrics.numerical_rank` counts eigenvalues above 1 % of the largest. Both depend on the accuracy of the solution:

data = dc.datasets.make_planted(100, 10, rng=0).X
for name, result in {
    "fista, gap 1e-3": dc.fista(data, tol=1e-3),
    "fista, gap 1e-5": dc.fista(data, tol=1e-5),
    "low_rank, gap 1e-8": dc.low_rank(data, tol=1e-8),
}.items():
    ratio, rank = dc.metrics.eigenvalue_ratio(result.F), dc.metrics.numerical_rank(result.F)
    gap = dc.format_upper(result.gap)
    print(f"{name:19} certified gap {gap}, rank {rank}, eigenvalue ratio {ratio:.1e}")
