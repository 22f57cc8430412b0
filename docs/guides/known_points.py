r"""
Constraints on rows
===================

Two scans of one patient have the same diagnosis; an expert has labelled ten rows; two products are always bought together and two
others never. `Constraints` represents such knowledge as must-link pairs, cannot-link pairs and known labels. Linked points become
one row of the problem, the signed sum of its points. The constraints are hard, without a trade-off parameter, and they reduce the
size of the problem (Theorem 6 of :doc:`/note`).
"""

import numpy as np

import diffrac_cvx as dc

X, classes = dc.datasets.load("heart", scaling="standardize")
constraints = dc.Constraints(
    must_link=[(0, 5), (5, 9)],  # points are counted from 0
    cannot_link=[(1, 2)],
    labels=np.where(np.arange(len(X)) % 30 == 0, classes, np.nan),  # -1 or +1 for nine points
)
print(f"{len(X)} points make {constraints.chunklets_of(len(X)).n_chunklets} rows")

# %%
# Labels may also be other numbers, or text, of two classes: the first class in sorted order is -1. None, NaN, pd.NA and "" mean
# unlabelled. So do -1 if there are two other values, with a warning, and any value passed as ``unlabelled=``. ``groups=`` accepts
# a number or text for each row, such as the name of its patient. Contradictory constraints raise an error that lists the points
# involved:

try:
    dc.low_rank(X, constraints=dc.Constraints(must_link=[(0, 5), (5, 9)], cannot_link=[(0, 9)]))
except dc.DataError as error:
    print(error)

# %%
# Constraints refer to rows by number, so they belong to one table. The number of rows is known from labels, groups or rows of
# inequalities, and otherwise from ``n_points=``. Another table, such as a fold of a cross-validation, is then refused; without
# ``n_points`` pairs are about the rows of whatever table is fitted. ``take`` gives the constraints of some rows:

half = np.arange(0, len(X), 2)
try:
    dc.DiffracClustering().fit(X[half], constraints=constraints)
except dc.DataError as error:
    print(error)
part = constraints.take(half)
print(
    f"{len(half)} rows: {len(part.must_link)} pairs, {np.count_nonzero(part.labels)} known labels"
)
dc.DiffracClustering().fit(X[half], constraints=part)

# %%
# The same problem in three spaces
# --------------------------------
# `low_rank` and `fista` solve for V. The builders state the problem in Y, with :math:`Y_{ij} = s_{ij}` for linked points; in Y, P
# and V together; or in V. All brackets contain the same optimum:

small, few = (
    X[:40],
    dc.Constraints(
        must_link=[(0, 5), (5, 9)],
        cannot_link=[(1, 2)],
        labels=np.where(np.arange(40) < 4, classes[:40], np.nan),
    ),
)
for name, found in {
    "low_rank": dc.low_rank(small, ridge=0.3, constraints=few),
    "fista": dc.fista(small, ridge=0.3, constraints=few),
    "(8) in Y": dc.solve(dc.penalized_nu(small, ridge=0.3, constraints=few), "CLARABEL"),
    "(11) in Y, P, V": dc.solve(dc.lifted(small, ridge=0.3, constraints=few), "CLARABEL"),
    "(15) in V": dc.solve(dc.v_space(small, ridge=0.3, constraints=few), "CLARABEL"),
}.items():
    print(f"{name:16} {found.bracket}")

# %%
# `constrained_alpha` also accepts constraints, but they may be infeasible at its imbalance, so `compare` skips it. With more than
# two clusters, `DiffracClustering` accepts must-link constraints only. Its ``labels_`` satisfy all constraints; ``predict`` uses
# the decision function alone and may violate them.
#
# Labels that satisfy the constraints
# -----------------------------------
# Linked rows of F are equal or opposite. The roundings also accept the constraints, so that the labels satisfy them even if a
# threshold would violate them. So do the local search, the paths, `compare`, the certificates and the estimator.

relaxed = dc.low_rank(X, ridge=0.3, constraints=constraints)
labels = dc.rounding.kmeans_centered(relaxed.F, constraints=constraints)
alone = dc.rounding.kmeans_centered(dc.low_rank(X, ridge=0.3).F)
alone = alone * np.sign(alone @ classes)  # without a known label either sign is as good
proof = dc.certify_labels(X, labels, relaxed, ridge=0.3, constraints=constraints)
unknown = constraints.labels == 0
right = 100 * np.mean(labels[unknown] == classes[unknown])
print(f"labels of points that were not known: {right:.1f} % right")
print(f"without constraints: {100 * np.mean(alone[unknown] == classes[unknown]):.1f} %")
print(f"no labels that satisfy the constraints cost less by more than {proof.gap:.3f}")

# %%
# On this table the constraints do not help: fewer of the other labels are right than without them. The constraints change the
# optimum, and with only nine known labels and three links the change need not be towards the classes.
#
# The bracket refers to the constrained problem, whose optimum is at least that of the problem without constraints. The difference
# is the cost of the constraints; if it is large, the table disagrees with the given labels and links. Wrong constraints are not
# detected: they are satisfied like any others.
#
# `optimal_labels` accepts constraints too (:doc:`best_split`), and `DiffracClassifier` is the estimator for a few known labels
# (:doc:`few_labels`).
