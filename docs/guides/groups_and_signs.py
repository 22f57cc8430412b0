r"""
Groups of columns, and known signs
==================================

Two things are often known of the columns of a table before anything is computed: that some of them belong together, as the
columns of 0 and 1 of one category or the items of one questionnaire, and that more of some can only speak for one of the two
clusters, as more symptoms speak for being ill. Both can be said, by the names of the columns, wherever a penalty is chosen; what
is proved is then proved of the problem with what was said.

**Groups.** The l1 part of the penalty chooses columns. With groups it chooses groups: the term is

.. math::
    \Big(\sum_g w_g \|v_g\|_2\Big)^2, \qquad \text{relaxed:}\quad \sum_{gh} w_g w_h \|V_{gh}\|_*,

with the nuclear norms of the blocks of V, so that a group is used as a whole or left out. ``lam`` is the square of the weights.
``group_weights="size"`` multiplies it by the number of columns of each group, so that a group costs about as much as its columns
would one by one; without that a large group is cheap. Groups of one column each are the l1 part, and one group of all columns is
a ridge.

Nuclear norms and not the Frobenius norms of the blocks, which give the same penalty at :math:`V = vv^\top`: at higher rank they
give less, so that the relaxation with nuclear norms is the tighter one, by up to .0048 on eight points in two groups of two columns.

**Signs.** ``nonnegative`` names columns with :math:`v_j \ge 0`; the relaxation has :math:`V_{jk} \ge 0` for the pairs of them.
Cluster 1 is the one that more of these columns speaks for. Signs are those of one direction: they are for two clusters.
"""

import numpy as np
import pandas as pd

import diffrac_cvx as dc
from diffrac_cvx.plotting import PathDisplay
from diffrac_cvx.problem.formatting import format_ends

# %%
# A planted table
# ---------------
# Twelve panels of four columns, of which the first differs between two groups of points, each of its columns a little. A data
# frame has names, and `datasets.column_groups` makes groups of them: here the part before the first underscore.

rng = np.random.default_rng(0)
y = rng.choice([-1.0, 1.0], 80)
X = pd.DataFrame(
    rng.standard_normal((80, 48)),
    columns=[f"panel{g}_{j}" for g in range(12) for j in range(4)],
)
X.iloc[:, :4] += 0.8 * y[:, None]
groups = dc.datasets.column_groups(X.columns, "prefix")
print(len(groups), "groups; the first:", groups["panel0"])

for title, options in (
    ("l1 of columns", {}),
    ("l1 of groups", {"groups": groups, "group_weights": "size"}),
):
    model = dc.DiffracClustering(lam=0.2, **options).fit(X)
    least, cost = format_ends(model.lower_bound_, model.lower_bound_ + model.label_gap_)
    error = dc.metrics.clustering_error(y, 2.0 * model.labels_ - 1.0)
    print(f"{title}: {len(model.support_)} columns used, clustering error {error:.2f}")
    print(f"    cost {cost}, proved: none costs less than {least}")
print("groups in use:", model.groups_used_)

# %%
# One table shows how it is done; :doc:`planted_groups` measures on many when the groups are found.
#
# Along a path
# ------------
# `lambda_path` takes groups and signs too. The picture has a line for each group, its length :math:`\|v_g\|_2`: the planted one
# stays.

path = dc.paths.lambda_path(
    X, np.geomspace(0.02, 1.0, 10), ridge=0.3, groups=groups, group_weights="size", tol=1e-3
)
PathDisplay(path).plot(labeled=3)

# %%
# Categories
# ----------
# A column of categories becomes a column of 0 and 1 for each of them. With an l1 part alone some of these columns may be used and
# others not, which means little: which ones depends on what is left out elsewhere. In the program, ``--one-hot`` with
# ``--lambda`` makes a group of each category's columns, weighed by their number; ``--groups none`` does not.
#
# .. code-block:: console
#
#    $ diffrac-cvx cluster table.csv --one-hot-all --lambda 0.1
#    $ diffrac-cvx cluster table.csv --groups prefix --lambda 0.1 --nonnegative age,dose
#    $ diffrac-cvx path table.csv --groups groups.csv --out path.png
#
# Here is the table of heart patients, of which four columns are categories:

numbers, ill = dc.datasets.load("heart", scaling="none")
names = ["age", "sex", "pain", "pressure", "cholesterol", "sugar", "ecg"]
names += ["rate", "angina", "depression", "slope", "vessels", "thal"]
categories = ["pain", "ecg", "slope", "thal"]
heart = pd.DataFrame(numbers, columns=names).astype(dict.fromkeys(categories, int))
heart = pd.get_dummies(heart, columns=categories, dtype=float)
by_category = dc.datasets.column_groups(heart.columns, "prefix")
for title, options in (
    ("columns", {}),
    ("groups", {"groups": by_category, "group_weights": "size"}),
):
    model = dc.DiffracClustering(lam=0.2, **options).fit(heart)
    print(f"{title:8}", [heart.columns[j] for j in model.support_])

# %%
# The group is used whole, and the reservation says what it is worth: a category is itself a perfect grouping of the points, with
# groups of columns as without, and such a split is no evidence of anything.

for reservation in model.diagnostics_:
    print(reservation)

# %%
# Numbers alone, then. Heart patients are older, more of their vessels are narrowed, the ST segment is depressed more; and their
# heart rate is lower, so that this column is turned round before its sign is said to be known:

plain = heart[["age", "pressure", "cholesterol", "rate", "depression", "vessels"]]
turned = plain.assign(rate=-plain["rate"])
known = ["age", "rate", "depression", "vessels"]
for title, table, signs in (
    ("none", turned, None),
    ("known", turned, known),
    ("wrong of rate", plain, known),
):
    model = dc.DiffracClustering(nonnegative=signs).fit(table)
    error = dc.metrics.clustering_error(ill, 2.0 * model.labels_ - 1.0)
    least, _ = format_ends(model.lower_bound_, model.lower_bound_ + model.label_gap_)
    print(f"signs {title:13} no split costs less than {least}; clustering error {error:.2f}")
    print(dict(zip(plain.columns, model.scaled_coef_.round(2).tolist(), strict=True)))

# %%
# What to expect
# --------------
# - Groups help where the columns of a group carry something together and each alone little. Where single columns carry it, the l1
#   part without groups does, and groups bring in their neighbours.
# - Signs that agree with the answer change nothing but which cluster is called 1. They matter where the data say little: then a
#   coefficient that would have the wrong sign is 0.
# - Signs that are wrong are obeyed: the cost rises, and a coefficient that the data want negative is 0. Compare ``lower_bound_``
#   with and without them.
# - With known labels of points, by `Constraints` or `DiffracClassifier`, the labels say which cluster is 1, and signs that are against
#   them make these coefficients 0.
# - A solve with groups or signs takes about as long as one with an l1 part. Signs of very many columns take longer, as
#   :math:`V_{jk} \ge 0` is one condition for each pair.
#
# Where they can be given
# -----------------------
# `Penalty`, which all solvers, relaxations, certificates and `compare` take; `DiffracClustering`, `DiffracClusteringCV`,
# `DiffracClassifier` and, groups alone, `MultiLabelDiffrac`; `lambda_path`; the program's ``--groups`` and ``--nonnegative``; the
# page. What has no place for them says so: the relaxations in the labels alone, which `compare` leaves out with a sentence.
# `structure_test` permutes the columns of a group together, so that its tables keep what is inside a group.
#
# Wrong input
# -----------
# Every column is in one group. What is not possible is said with the remedy:

for wrong in (
    {"groups": {"a": ["age"], "b": ["presure"]}},
    {
        "groups": {
            "a": ["age", "pressure"],
            "b": ["age", "cholesterol", "rate", "depression", "vessels"],
        }
    },
    {"groups": {"a": ["age", "pressure", "rate"]}},
    {"nonnegative": ["Age"]},
    {"nonnegative": ["age"], "n_clusters": 3},
):
    try:
        dc.DiffracClustering(lam=0.1, **wrong).fit(plain)
    except dc.ParameterError as error:
        print(error)
