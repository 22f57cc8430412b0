r"""
scikit-learn estimators
=======================

`DiffracClustering` and `MultiLabelDiffrac` follow scikit-learn's conventions and pass its checks: pipelines, grid
searches, data frames, sparse input, ``set_output``. They need the extra ``app``.
"""

import matplotlib.pyplot as plt
from sklearn.model_selection import GridSearchCV

import diffrac_cvx as dc
from diffrac_cvx.plotting import ProjectionDisplay

X, y = dc.datasets.load("breast_cancer")
model = dc.DiffracClustering(c=0.1).fit(X)
print(f"proved: optimum in [{model.lower_bound_:.4f}, {model.upper_bound_:.4f}], label gap {model.label_gap_:.4f}")
print(f"features {model.support_}, error {dc.metrics.clustering_error(y, 2.0 * model.labels_ - 1):.3f}")
ProjectionDisplay.from_estimator(model, X, y).plot()

# %%
# ``score`` is the squared correlation of labels and projections on the data given, so that a grid search on held-out
# points needs no labels. Columns are brought to unit variance first unless ``standardize=False``.

search = GridSearchCV(dc.DiffracClustering(), {"c": [0.0, 0.1, 0.3], "nu": [0.5, 1.0]}, cv=3).fit(X)
print(search.best_params_, round(search.best_score_, 3))

# %%
# Many labels, each with its direction:

X, Y = dc.datasets.load("yeast")
several = dc.MultiLabelDiffrac(5, nu=0.1, a=0.5, random_state=0).fit(X)
print(several.predict(X[:3]), several.weights_.round(2))
plt.show()
