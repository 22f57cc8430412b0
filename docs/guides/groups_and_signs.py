r"""
Feature groups and sign constraints
===================================

Two things are often known about the columns of a table in advance. Some columns belong together, such as the one-hot columns of
one categorical variable or the items of one questionnaire. And larger values of some columns indicate one of the two clusters, as
more symptoms indicate disease. Both can be specified by column names, wherever a penalty is set; the certified bounds then refer
to the constrained problem.

**Groups.** The l1 penalty selects columns. With groups it selects groups: the term is

.. math::
    \Big(\sum_g w_g \|v_g\|_2\Big)^2, \qquad \text{relaxed:}\quad \sum_{gh} w_g w_h \|V_{gh}\|_*,

with the nuclear norms of the blocks of V, so that a group is selected or excluded as a whole. ``lam`` is the square of the
weights. ``group_weights="size"`` multiplies it by the number of columns of each group, so that a group is penalised about as much
as its separate columns; otherwise large groups are penalised less. Groups of one column each give the l1 penalty, and a single
group of all columns gives a ridge.

Frobenius norms of the blocks would give the same penalty at :math:`V = vv^\top`. At higher rank they are smaller, so the
relaxation with nuclear norms is tighter, by up to .0048 on eight points in two groups of two columns.

**Signs.** ``nonnegative`` names columns with :math:`v_j \ge 0`; the relaxation has :math:`V_{jk} \ge 0` for pairs of them. Larger
values of these columns then indicate cluster 1. Sign constraints refer to one direction, so they require two clusters. A penalty
can have groups or sign constraints, but not both.
"""

import numpy as np
import pandas as pd

import diffrac_cvx as dc
from diffrac_cvx.plotting import PathDisplay
from diffrac_cvx.problem.formatting import format_ends

# %%
# A simulated table
# -----------------
# The table has twelve panels of four columns. In the first panel, each column differs slightly between two groups of points.
# `datasets.column_groups` derives groups from the column names of a data frame: here from the part before the first underscore.

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
    print(f"    cost {cost}, lower bound {least}")
print("groups in use:", model.groups_used_)

# %%
# This is one table; :doc:`planted_groups` describes when the groups are found, measured on many tables.
#
# Along a path
# ------------
# `lambda_path` also accepts a penalty with groups or signs, and multiplies its ``lam`` by lambda. The plot shows the norm
# :math:`\|v_g\|_2` of each group: the planted group remains.

unit = dc.Penalty(lam=[len(columns) for columns in groups.values()], ridge=0.3, groups=groups)
path = dc.paths.lambda_path(X, np.geomspace(0.02, 1.0, 10), unit, tol=1e-3)
PathDisplay(path).plot(labeled=3)

# %%
# Categories
# ----------
# One-hot encoding turns a categorical column into one binary column per category. With an l1 penalty alone some of these columns
# may be selected and others not, which is hard to interpret, because the encoding is redundant. In the program, ``--one-hot``
# with ``--lambda`` makes the columns of each categorical variable a group, weighted by their number; ``--feature-groups none``
# disables this.
#
# .. code-block:: console
#
#    $ diffrac-cvx cluster table.csv --one-hot-all --lambda 0.1
#    $ diffrac-cvx cluster table.csv --lambda 0.1 --nonnegative age,dose
#    $ diffrac-cvx cluster table.csv --lambda 0.1 --feature-groups groups.csv
#
# Here is the table of heart patients, in which four columns are categorical:

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
# The group is selected as a whole. A categorical variable is itself a perfect partition of the points, with or without feature
# groups, so such a split is not evidence of clusters.

# %%
# So we use the numeric columns only. Heart patients are older, have more narrowed vessels and a more depressed ST segment. Their
# heart rate is lower, so the sign of this column is flipped before it is constrained:

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
# - Groups help if the columns of a group are informative together, but each of them only weakly. If single columns are
#   informative, the l1 penalty without groups selects them, whereas groups also include the other columns of their group.
# - Signs that agree with the solution only determine which cluster is called 1. They matter if the data are weak: a coefficient
#   that would have the wrong sign is then 0.
# - Wrong signs are enforced too: the cost increases, and a coefficient that would be negative without the constraint is 0. Compare
#   ``lower_bound_`` with and without them.
# - If labels of points are known (`Constraints`, `DiffracClassifier`), they determine which cluster is 1; coefficients whose sign
#   constraint contradicts them become 0.
# - A solve with groups or signs takes about as long as one with an l1 penalty. Sign constraints on very many columns take longer,
#   because :math:`V_{jk} \ge 0` is one constraint for each pair.
#
# Where to specify them
# ---------------------
# Groups and signs can be specified in `Penalty`, which all solvers, relaxations, certificates, paths and `compare` accept; in
# `DiffracClustering`, `DiffracClusteringCV` and `DiffracClassifier`; and by the program's options ``--feature-groups`` and
# ``--nonnegative``. Relaxations in the labels alone do not support them: they raise an error, and `compare` skips them with a
# note. `structure_test` permutes the columns of a group together, so that its null data preserve the dependence within a group.
