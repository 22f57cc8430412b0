r"""
From k-means to a direction
===========================

Two clusters, seen along one direction out of thirty. The other directions are noise of the same size.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

import diffrac_cvx as dc
from diffrac_cvx.plotting import BracketDisplay, DirectionDisplay, ProjectionDisplay

planted = dc.datasets.make_planted(400, 30, sparsity=3, noise=0.1, rng=0)
X, y = planted.X, planted.y

# %%
# k-means looks at all directions at once. The clusters are a small part of the variance, so it splits along something
# else. The error is :math:`1 - (y^\top \hat y / n)^2`: 0 for the true labels up to sign, near 1 for labels that know
# nothing.

found = np.where(KMeans(2, n_init=10, random_state=0).fit_predict(X) > 0, 1.0, -1.0)
print(f"k-means: error {dc.metrics.clustering_error(y, found):.3f}")

# %%
# Discriminative clustering asks for the labels that an affine function predicts best,
#
# .. math:: \min_{y \in \{-1, 1\}^n,\ v} \tfrac1n \|\Pi_n y - X v\|_2^2.
#
# Alternating between y and v, from random labels, ends in a local optimum.

found = dc.baselines.alternating_optimisation(X, restarts=10, rng=0)
print(f"alternating optimisation, best of ten: error {dc.metrics.clustering_error(y, found):.3f}")

# %%
# The relaxation replaces yy' by a positive semidefinite Y, and has no local optima. In the matrix of directions V:

result = dc.low_rank(X)
labels = dc.rounding.kmeans_centered(result.F)
print(result)
print(f"relaxation: error {dc.metrics.clustering_error(y, labels):.3f}")

# %%
# ``result.lower`` and ``result.upper`` bracket the optimum, by a proof that does not depend on the solver. Here is how
# they met, by the paper's algorithm, which reports more often:

BracketDisplay.from_result(dc.fista(X, tol=1e-4)).plot(against="seconds")

# %%
# The labels on the direction that predicts them:

ProjectionDisplay.from_labels(X, labels).plot()

# %%
# The labels can be judged without the true ones: no labelling at all, of the 2 to the 400, has an objective lower than
# theirs by more than the gap below.

proof = dc.certify_labels(X, labels, result)
print(f"objective {proof.objective:.4f}, at least {proof.lower:.4f} for every labelling: gap {proof.gap:.4f}")

# %%
# Fewer points
# ------------
# The relaxation needs about :math:`d + d(d-1)/4` points, here 248. With 150 it has other solutions than labels. The
# squared l1 norm of the direction brings them back, if the direction is sparse and its weight is neither too small nor
# too large.

few = dc.datasets.make_planted(150, 30, sparsity=3, noise=0.1, rng=0)
for lam in (0.0, 0.003, 0.01, 0.03):
    result = dc.low_rank(few.X, penalty=dc.Penalty.l1(lam), tol=1e-5)
    error = dc.metrics.clustering_error(few.y, dc.rounding.kmeans_centered(result.F))
    ratio = dc.metrics.eigenvalue_ratio(result.F)
    print(f"lambda = {lam:5.3f}: second eigenvalue of Y over the first {ratio:.3f}, error {error:.3f}")

# %%
# The estimator does all of it at once.

model = dc.DiffracClustering(c=0.1).fit(few.X)
DirectionDisplay.from_estimator(model).plot()
plt.show()
