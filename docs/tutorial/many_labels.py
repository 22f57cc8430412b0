r"""
Many labels at once
===================

Points may have several labels, each an affine function of the features. The relaxation is the same for any number of labels;
only the rounding depends on it.
"""

import matplotlib.pyplot as plt
import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.plotting import SpectrumDisplay

rng = np.random.default_rng(0)
Y = rng.choice([-1.0, 1.0], size=(500, 3))
X = np.hstack([Y, rng.standard_normal((500, 5))]) @ rng.standard_normal((8, 8))

# %%
# Three labels are hidden in eight features by an unknown linear map. Each of them is predicted without error, so its objective is
# only its imbalance :math:`(1^\top y/n)^2`, which is small. The same holds for every mixture
# :math:`\sum_i w_i\, y_i y_i^\top` with weights that sum to one (section 5.3 of the paper): all of them are optimal up to
# the imbalances.
#
# A solver returns one of them. With ``fista`` and a loose tolerance it contains all labels, because the smoothing
# favours matrices of high entropy. An exact solution may omit some.

result = dc.fista(X, tol=1e-2)
print(f"certified bracket {result.bracket}")
SpectrumDisplay.from_result(result).plot()

# %%
# Three eigenvalues stand out. Their eigenvectors span the labels but are not labels. `rounding.procrustes` finds the rotation
# that turns them into labels, with one column for the constant vector,
#
# .. math:: \min_{R^\top R = I,\ \|a\|_2 = 1,\ y_i \in \{-1, 1\}^n} \|F R - [a_0 1, a_1 y_1, \dots, a_k y_k]\|_F^2,
#
# by alternating between closed-form solutions for R and for (a, y), from random rotations.

found = dc.rounding.procrustes(result.F, 3)

# %%
# `rounding.fit_label_mixture` returns the same labels with their weights a, and the distance above divided by n.

mixture = dc.rounding.fit_label_mixture(result.F, 3)
assert np.array_equal(mixture.labels, found)
print(f"residual {mixture.objective:.4f}")
print(f"weights of the constant vector and of the labels: {np.round(mixture.weights, 2)}")

# %%
# The labels come in any order and with any sign. Two metrics depend on neither: the overlap of the spans, at most 3 here, and the
# absolute correlations of predicted labels (rows) with true labels (columns).

overlap = dc.metrics.label_subspace_overlap(Y, found)
print(f"overlap of the spans {overlap:.3f} of 3")
print(dc.metrics.label_correlations(Y, found).round(2))
assert overlap > 2.999

# %%
# Each label has its own certificate. The lower bound comes from a solution with a tight tolerance, whose own labels need not be
# useful.

tight = dc.low_rank(X, tol=1e-8)
for j, labels in enumerate(found.T):
    proof = dc.certify_labels(X, labels, tight)
    objective, imbalance = dc.format_upper(proof.objective), dc.metrics.imbalance(labels)
    print(f"label {j}: objective {objective}, of which imbalance {imbalance:.4f};", end=" ")
    print(f"gap {dc.format_upper(proof.gap)}")
    assert np.isclose(proof.objective, dc.metrics.imbalance(labels))

# %%
# Labels or classes?
# ------------------
# Classes are mutually exclusive, labels are not. The convex relaxation of the partitions into k classes is the same problem up
# to a formula, for every k (:doc:`/auto/relaxations/multiclass`).
#
# :doc:`/reproduction`, Figures 5 and 6, shows how well real labels are found in this way: better than by k-means on Corel5k,
# worse on yeast, scene and digits.

plt.show()
