r"""
scikit-learn estimators
=======================

`DiffracClustering`, `DiffracClusteringCV`, `DiffracClassifier` and `MultiLabelDiffrac` follow scikit-learn's conventions:
pipelines, grid searches, data frames, sparse input, ``set_output``. They need the extra ``app`` (``pip install 'diffrac-cvx[app]'``).
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import diffrac_cvx as dc
from diffrac_cvx.plotting import ProjectionDisplay

X, y = dc.datasets.load("breast_cancer")
model = dc.DiffracClustering(lam=0.01).fit(X)
print(f"relaxation: optimum proved to lie in {model.result_.bracket}")
print(f"labels: no labelling has a cost lower by more than {dc.format_upper(model.label_gap_)}")
print(f"features with a nonzero coefficient: {model.support_}")

# %%
# ``fit_predict(X)`` fits and returns ``labels_``. ``callback=print`` prints the
# bounds so far, which is useful for long fits; ``time_limit`` ends a fit with the best result so far.
#
# Columns are scaled to unit variance first, since the penalty depends on their units; ``standardize=False`` disables this.
# ``coef_`` and ``intercept_`` are in the units of X, ``scaled_coef_`` is per standard deviation of each
# feature, so that its entries can be compared. The default ridge is 0.3; ``ridge=0`` is the paper's problem without one. The true
# labels are used for evaluation only:

found = 2.0 * model.labels_ - 1.0
print(f"clustering error {dc.metrics.clustering_error(y, found):.3f}")
print(f"of one constant label {dc.metrics.clustering_error(y, np.ones(len(y))):.3f}")
ProjectionDisplay.from_estimator(model, X, y).plot()

# %%
# ``labels_`` are derived from the direction: penalised least squares on the rounded solution gives a direction, and its
# projections are split in two. So the same rule applies to new points. The labels of the rounding itself need not be given by a
# threshold along any direction, and may differ:

rounded = dc.rounding.kmeans_centered(model.result_.F)
differ = min(np.sum(rounded != found), np.sum(rounded == found))
print(f"points on which the two differ: {differ} of {len(y)}")

# %%
# New points
# ----------
# ``predict`` returns the cluster of new points, ``decision_function`` their distance from the threshold along the direction, and
# ``transform`` the projection itself. Feature names are preserved. :doc:`saving` shows how to store the model in a file.

frame = pd.DataFrame(X, columns=[f"feature {j}" for j in range(X.shape[1])])
half = dc.DiffracClustering(lam=0.01).set_output(transform="pandas").fit(frame[:400])
print(half.predict(frame[400:405]), half.decision_function(frame[400:405]).round(2))
print(half.transform(frame[400:403]).round(2))

# %%
# Sample weights
# --------------
# ``fit(X, sample_weight=w)`` weights the points in all means, including those that centre and scale the features: a weight of 2
# is equivalent to a repeated point, and only the proportions matter. A point of weight 0 has no influence, but gets a label. So
# equal rows can be merged without a change of labels and bounds. Three of these features are grades from 1 to 10:

grades = X[:, 1:4]
rows, counts = np.unique(grades, axis=0, return_counts=True)
merged = dc.DiffracClustering().fit(rows, sample_weight=counts)
full = dc.DiffracClustering().fit(grades)
print(f"{len(grades)} points, {len(rows)} of them different")
off, bounds = np.abs(merged.coef_ - full.coef_).max(), merged.lower_bound_ - full.lower_bound_
print(f"largest difference of coefficients {off:.0e}, of the bounds {abs(bounds):.0e}")
assert np.array_equal(merged.predict(grades), full.labels_)

# %%
# `low_rank`, `fista`, `v_space`, `find_components`, the roundings and the certificates of V, of labels and of clusters take
# ``sample_weight`` too.
#
# ``score`` is the squared correlation of predicted labels and projections on the given points. It needs no true labels, so
# ``GridSearchCV`` works without changes; :doc:`choosing` describes a better rule. For pipelines see :doc:`saving`, and for the
# problem of `MultiLabelDiffrac` see :doc:`/auto/tutorial/many_labels`.

plt.show()
