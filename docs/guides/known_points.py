r"""
What you know about some points
===============================

Two scans of one patient have one diagnosis; an expert has looked at ten rows; these two were bought together and those
two never are. `Constraints` holds such knowledge, and every relaxation takes it: a group of linked points is one row of the
problem, the signed sum of its points. Nothing is weighed against anything: what is known holds, and the problem gets smaller.
The theorem is on the page on :doc:`../relaxations/v_space`.
"""

import numpy as np

import diffrac_cvx as dc

X, classes = dc.datasets.load("heart", scaling="standardize")
constraints = dc.Constraints(
    must_link=[(0, 5), (5, 9)],  # points are counted from 0
    cannot_link=[(1, 2)],
    labels=np.where(
        np.arange(len(X)) % 30 == 0, classes, 0
    ),  # -1 or +1 for nine points, 0 where nothing is known
)
print(f"{len(X)} points make {constraints.chunklets_of(len(X)).n_chunklets} groups")

# %%
# Labels may have names too: of two different ones the first in order is -1, and None or NaN says nothing. ``groups=`` takes a number
# for each row, such as that of its patient. What cannot all hold is refused, with the points on the way:

try:
    dc.low_rank(X, constraints=dc.Constraints(must_link=[(0, 5), (5, 9)], cannot_link=[(0, 9)]))
except dc.DataError as error:
    print(error)

# %%
# The same problem in three spaces
# --------------------------------
# `low_rank` and `fista` solve for V; the builders write the problem in Y, with :math:`Y_{ij} = s_{ij}` for linked points, in Y, P
# and V together, or in V. All brackets are of one number, and all overlap:

small, few = (
    X[:40],
    dc.Constraints(
        must_link=[(0, 5), (5, 9)],
        cannot_link=[(1, 2)],
        labels=np.where(np.arange(40) < 4, classes[:40], 0),
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
# `constrained_alpha` takes none: it fixes the imbalance, and links may make that impossible. For more than two clusters only what is
# together says something, and `DiffracClustering` takes that.
#
# Labels that obey
# ----------------
# Rows of F that are linked are equal, or opposite. The roundings take the links too, so that labels obey them even where a
# threshold would not; so do the local search, the paths, `compare`, the certificates and the estimator.

relaxed = dc.low_rank(X, ridge=0.3, constraints=constraints)
labels = dc.rounding.kmeans_centered(relaxed.F, constraints=constraints)
alone = dc.rounding.kmeans_centered(dc.low_rank(X, ridge=0.3).F)
alone = alone * np.sign(alone @ classes)  # without a known label either sign is as good
proof = dc.certify_labels(X, labels, relaxed, ridge=0.3, constraints=constraints)
unknown = constraints.labels == 0
right = 100 * np.mean(labels[unknown] == classes[unknown])
print(f"labels of points that were not known: {right:.1f} % right")
print(f"without links: {100 * np.mean(alone[unknown] == classes[unknown]):.1f} %")
print(f"no labels that obey the links cost less by more than {proof.gap:.3f}")

# %%
# The bracket is that of the problem in which what is known holds: its value is never below the one without. The difference is
# what the knowledge costs, and where it is large the table says something else than those who labelled it. Nothing here
# finds a wrong link: it is obeyed.
#
# `optimal_labels` takes links as well (:doc:`best_split`), and `DiffracClassifier` is the estimator for a few known labels
# (:doc:`few_labels`).
