r"""
Global optimality of a split
============================

Any method returns labels. Whether other labels have a lower cost is a different question: n points have
:math:`2^{n-1}` splits. `optimal_labels` answers it by branch and bound. It returns labels, and lower and upper bounds on the lowest
cost of all labels in Eq. (9); if the bounds are close enough, its labels are proved optimal.
"""

import matplotlib.pyplot as plt
import numpy as np

import diffrac_cvx as dc

X, classes = dc.datasets.load("breast_cancer", scaling="standardize")
found = dc.optimal_labels(X, ridge=0.1, tol=1e-5, time_limit=10)
print(found)

# %%
# No split of the 683 rows in two, along any direction of the 10 columns, costs less than the first number, and the labels in
# ``found.labels`` cost at most the second. Both bounds account for rounding errors (:doc:`reliability`). The cost is that of Eq. (9)
# at ν = 1, with the given ridge: another ridge or other units of the columns define another problem, and the labels of lowest cost
# need not be the true ones. Here are other labels, with their additional cost and their error to the diagnosed classes.

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
# The first bound is that of the relaxation, ``found.root_bound``. The search then fixes the label of one more point, to either
# value, and solves a smaller relaxation for each. If its bound reaches the cost of the best labels so far, the search discards all
# splits with these labels. ``found.history`` holds the bounds over time, and `plotting.SearchDisplay` draws them. Three data sets
# at the ridge 0.3, at most two seconds each:

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.4), layout="constrained")
for ax, name in zip(axes, ("breast_cancer", "heart", "liver_disorders"), strict=True):
    table = dc.datasets.load(name, scaling="standardize")[0]
    search = dc.optimal_labels(table, ridge=0.3, tol=1e-5, time_limit=2)
    dc.plotting.SearchDisplay.from_search(search).plot(ax).ax_.set_title(name)
    print(f"{name}: {search}")

# %%
# The search can be stopped at any time, by ``time_limit``, by a callback that returns True or by Ctrl-C. It then returns the best
# labels so far and valid bounds.
#
# With constraints
# ----------------
# Must-link pairs, cannot-link pairs and known labels are passed as `Constraints`. Only labels that satisfy them are considered, and
# the bounds are on the cost of these. Points with known labels share one row of the problem, so constraints shrink it. Here every
# ninth label is known:

known = np.where(np.arange(len(X)) % 9 == 0, classes, np.nan)
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
# On the rows with unknown labels nothing is gained here: the optimal split without labels agrees as well with the classes. The
# difference of the two costs measures how far the known labels disagree with the optimal split: 0 means that they agree.
least, most = held.lower - found.upper, held.upper - found.lower
print(f"the known labels cost between {least:.5f} and {most:.5f}")

# %%
# Run time
# --------
# The problem is NP-hard, and the time may grow exponentially. The gap of the relaxation at the root predicts it better than the
# number of rows: it is small if one direction stands out. From ``make optimal``, on one thread:
#
# .. include:: ../optimal.inc
#
# Limitations
# -----------
# The optimal split is not always closer to the true classes than another one, and fast methods often find it too. Measured:
#
# .. include:: ../optimal_losses.inc
#
# Alternating optimisation never proves that its labels are optimal. Enumerating all directions does, but their number grows as n to
# the power d - 1. With a hundred columns or more one relaxation takes seconds, and the time limit is checked between relaxations
# only. With an l1 penalty each relaxation is solved separately and takes a hundredth of a second or more, so that the search
# visits hundreds of nodes and not hundreds of thousands.
