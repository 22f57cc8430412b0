r"""
Is this the best split?
=======================

Any method returns labels. Whether other labels would be cheaper is another question: of n points there are
:math:`2^{n-1}` splits. `optimal_labels` answers it by branch and bound. It returns labels, and a bracket on what the best
labels of all cost in Eq. (9); where the bracket is narrow enough, its labels are proved to be the best.
"""

import matplotlib.pyplot as plt
import numpy as np

import diffrac_cvx as dc

X, classes = dc.datasets.load("breast_cancer", scaling="standardize")
found = dc.optimal_labels(X, ridge=0.1, tol=1e-5, time_limit=10)
print(found)

# %%
# What this says: no split of the 683 rows in two, along whichever direction of the 10 columns, costs less than the first number,
# and the labels in ``found.labels`` cost at most the second. Rounding is counted in both (:doc:`reliability`). The cost is that of Eq. (9)
# at ν = 1, with the ridge that was given: another ridge or other units of the columns are another question, and what is
# cheapest is not what is true. Here are other labels, and by how much they cost more, with the classes that doctors found.

relaxed = dc.low_rank(X, ridge=0.1)
others = {
    "best split": found.labels,
    "relaxation, rounded": dc.rounding.kmeans_centered(relaxed.F),
    "k-means": dc.baselines.kmeans_standardized(X, rng=0),
    "true classes": classes,
}
for name, labels in others.items():
    above = dc.certify_labels(X, labels, found.lower, penalty=dc.Penalty(ridge=0.1)).gap
    error = dc.metrics.clustering_error(classes, labels)
    print(f"{name:20} costs at most {above:.5f} more, error to the classes {error:.3f}")

# %%
# How the bracket closes
# ----------------------
# The first bound is that of the relaxation, ``found.root``. The search then fixes the label of one point more beside those
# that are fixed, in either way, and solves a relaxation with one row less for each; where its bound reaches the cost of the best
# labels so far, no split with these labels has to be looked at again. ``found.history`` holds the bounds as time
# went on, and `plotting.SearchDisplay` draws them. Three sets at the ridge 0.3, two
# seconds each at most:

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.4), layout="constrained")
for ax, name in zip(axes, ("breast_cancer", "heart", "liver_disorders"), strict=True):
    table = dc.datasets.load(name, scaling="standardize")[0]
    search = dc.optimal_labels(table, ridge=0.3, tol=1e-5, time_limit=2)
    dc.plotting.SearchDisplay.from_search(search).plot(ax).ax_.set_title(name)
    print(f"{name}: {search}")

# %%
# A search that is stopped, by ``time_limit``, by a callback that returns True or by Ctrl-C, returns what it has: the best labels
# so far, and a bracket that holds.
#
# What is known already
# ---------------------
# Pairs that belong together or apart, and known labels, are given as `Constraints`. Labels that do not obey them are not looked at, and the
# bracket is that of the labels that do. Known points are one row of the problem, so links make it smaller. Here every
# ninth label is known:

known = np.where(np.arange(len(X)) % 9 == 0, classes, 0)
held = dc.optimal_labels(
    X, ridge=0.1, tol=1e-5, time_limit=10, constraints=dc.Constraints(labels=known)
)
print(held)
aligned = found.labels * np.sign(
    found.labels @ classes
)  # without a known label either sign is as good
for name, labels in (("without labels", aligned), ("with every ninth", held.labels)):
    right = np.mean(labels[known == 0] == classes[known == 0])
    print(f"{name:17} {100 * right:.1f} % of the other rows in their class")

# %%
# On the rows whose labels are not known nothing is gained here: the cheapest split was as near to the classes. The difference of
# the two costs is what the known labels say against the cheapest split: none means that they agree with it.
least, most = held.lower - found.upper, held.upper - found.lower
print(f"the known labels cost between {least:.5f} and {most:.5f}")

# %%
# What is hard
# ------------
# The problem is NP-hard, and time may grow exponentially. The gap of the relaxation at the root says more about it than the number
# of rows: it is small where one direction stands out. From ``make optimal``, on one thread:
#
# .. include:: ../optimal.inc
#
# Where it loses
# --------------
# The cheapest split is not always nearer to the truth than another one, and quick methods often find it too. What was measured:
#
# .. include:: ../optimal_losses.inc
#
# Alternation never says that its labels are the best; trying all directions does, and is exact, but their number grows as n to the
# power d - 1. With a hundred columns or more one relaxation takes seconds, and the time limit is looked at between relaxations
# only. With an l1 part each relaxation is solved apart and takes a hundredth of a second or more, so that hundreds are seen and not
# hundreds of thousands.
