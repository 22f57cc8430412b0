r"""
When to use this method, and when not
=====================================

The method looks for **two groups on two sides of a flat boundary**: one weighted sum of the features, the score,
is small for one group and large for the other. This page measures when that is appropriate and when it is not.

Use it when

* there are two groups, and you want to know which features separate them;
* the groups differ in a few features only, and the others are noise that hides them from k-means;
* you need to know how good the split is: its optimality gap is certified for any data.

Do not use it when

* the boundary is curved, or one group surrounds the other: use spectral clustering, or kernel features
  (:doc:`/auto/guides/kernels`);
* there are three groups or more: a split in two is the wrong model, see :doc:`/auto/guides/many_clusters`;
* one group is very small: the method prefers groups of similar sizes;
* there are about as many features as points, or more, and no penalty: then even noise can be split perfectly;
* the groups are round and well separated, and you need no proof: k-means gives the same result and is faster.

The examples below show each case. The numbers are adjusted Rand indices: 1 for the true groups, about 0 for an unrelated
split.
"""

import warnings

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

import diffrac_cvx as dc

METHODS = {
    "this, default": dc.DiffracClustering(),
    "this, lam=0.03, ridge=0": dc.DiffracClustering(lam=0.03, ridge=0.0),
    "k-means": KMeans(2, n_init=10, random_state=0),
    "Gaussian mixture": GaussianMixture(2, n_init=5, random_state=0),
    "spectral": SpectralClustering(2, affinity="nearest_neighbors", random_state=0),
}


def judge(X, y):
    """Print the index of each method on standardised features, and return them."""
    X, found = StandardScaler().fit_transform(X), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about small clusters
        for name, method in METHODS.items():
            found[name] = adjusted_rand_score(y, method.fit_predict(X))
            print(f"{name:25}{found[name]:5.2f}")
    return found


# %%
# Good: groups hidden among noise
# -------------------------------
# 100 points with 20 features of equal variance. The groups differ along one direction, a combination of three features;
# the other nineteen directions are noise, and k-means, the mixture and spectral clustering follow the noise.

X, y, _ = dc.datasets.make_planted(100, 20, sparsity=3, noise=0.1, rng=0)
found = judge(X, y)
assert (
    found["this, lam=0.03, ridge=0"]
    > 0.9
    > 0.2
    > max(found["k-means"], found["Gaussian mixture"], found["spectral"])
)

# %%
# The default prefers directions of large variance (``ridge``), and here all directions have the same variance: the
# preference for few features (``lam``) is the right one. On real tables it is more often the other way round:
# :doc:`/auto/guides/choosing` explains how to choose without labels.
#
# Good: a real table, and the reason for the split
# ------------------------------------------------
# The breast-cancer data of Wisconsin: nine measurements of 683 samples, and the number of the sample.

X, y = dc.datasets.load("breast_cancer")
found = judge(X, y)
assert min(found["this, default"], found["k-means"]) > 0.8

# %%
# All agree except the mixture. This method adds a certified bound, and the weights of the features per standard deviation;
# the first feature, the sample number, gets almost no weight:

model = METHODS["this, default"].fit(X)
print("weights:", np.round(model.scaled_coef_, 2))
gap = dc.format_upper(model.label_gap_)
print(f"no split is cheaper than this one by more than {gap} (costs lie in [0, 1])")
assert abs(model.scaled_coef_[0]) < 0.05

# %%
# Not needed: round, well separated groups
# ----------------------------------------

X, y = make_blobs(300, centers=[[-3, 0], [3, 0]], random_state=0)
found = judge(X, y)
assert min(found.values()) > 0.9

# %%
# Wrong: curved groups
# --------------------
# A flat boundary cannot separate them. Spectral clustering can.

moons = make_moons(300, noise=0.05, random_state=0)
circles = make_circles(300, noise=0.05, factor=0.4, random_state=0)
for name, (X, y) in {"moons": moons, "circles": circles}.items():
    print(f"{name}:")
    found = judge(X, y)
    assert found["spectral"] > 0.9 > 0.7 > found["this, default"]

# %%
# Wrong: more than two groups
# ---------------------------
# A split in two puts three groups into two clusters. ``DiffracClustering(n_clusters=3)`` looks for three: :doc:`/auto/guides/many_clusters`.

X, y = make_blobs(300, centers=[[-4, 0], [4, 0], [0, 6]], random_state=0)
found = judge(X, y)
assert found["this, default"] < 0.7
for name, method in {
    "k-means": KMeans(3, n_init=10, random_state=0),
    "this": dc.DiffracClustering(n_clusters=3),
}.items():
    three = adjusted_rand_score(y, method.fit_predict(X))
    print(f"{name + ' with three clusters':25}{three:5.2f}")
    assert three > 0.9

# %%
# Wrong: a very small group
# -------------------------
# Ten of 300 points, apart from the others. A cluster of ten has the penalty ``nu`` times its imbalance, 0.87 of at most 1; a
# split through the middle of the large group has none. k-means has the same difficulty; a Gaussian mixture does not. (A
# smaller ``nu`` can help, but the right value has to be known: :doc:`/auto/guides/choosing`.)

rng = np.random.default_rng(0)
y = np.arange(300) < 10
X = rng.standard_normal((300, 3)) + np.outer(y, [6.0, 0.0, 0.0])
found = judge(X, y)
assert found["Gaussian mixture"] > 0.5 > 0.2 > max(found["this, default"], found["k-means"])

# %%
# Wrong without a penalty: too few points
# ---------------------------------------
# Noise, 30 points with 20 features: there is nothing to find. Without a penalty the cost is nevertheless nearly 0, the
# lowest possible: without a penalty, noise is split perfectly up to about :math:`d + d(d-1)/4` points. Test for structure first.

noise = np.random.default_rng(0).standard_normal((30, 20))
model = dc.DiffracClustering(lam=0.0, ridge=0.0).fit(noise)
print(f"optimum at most {dc.format_upper(model.upper_bound_)}")
print(dc.structure_test(noise))
assert dc.structure_test(noise).verdict == "not separated"
