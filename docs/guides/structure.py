"""
Is there a structure at all?
============================

A clustering method splits whatever it is given. Before a split is read, one question comes first: would a table without
any groups be split as well? `structure_test` makes such tables of the one at hand, splits them in the same way, and
counts how many split as well. The program says the answer in its first lines, and `DiffracClustering` with
``test_structure=True`` keeps it in ``structure_``.
"""

import warnings

import numpy as np

import diffrac_cvx as dc

rng = np.random.default_rng(0)
noise = rng.standard_normal((200, 10))
print(dc.structure_test(noise))

# %%
# Two questions
# -------------
# What is compared is the cost of the split that is found, at the weights that are used, Eq. (9). Tables without
# structure are made in two ways, and each answers its own question.
#
# - ``null="columns"``: each column is permuted by itself. *Is there any connection among the columns?* A p-value is valid
#   for independent columns of any distributions.
# - ``null="covariance"``: the points are rotated at random about their mean, :math:`QX` with :math:`Q` orthogonal, which
#   keeps :math:`X^\top X`. *Do the points fall into two groups better than one Gaussian cloud with the same correlations?*
#   Valid for Gaussian points of any covariance, also where there are more columns than rows; heavy tails make it
#   conservative.
#
# Correlated columns without groups are a connection, and no groups:

cloud = rng.standard_normal((200, 10)) @ rng.standard_normal((10, 10))
for null in ("columns", "covariance"):
    print(dc.structure_test(cloud, null=null))

# %%
# Two groups along a direction that no column shows, and that has no more variance than others:

planted = dc.datasets.make_planted(400, 5, 5, noise=0.1, rng=0)
for null in ("columns", "covariance"):
    print(dc.structure_test(planted.X, null=null, penalty=dc.Penalty()))

# %%
# A p-value is (1 + tables that split as well) / (1 + tables), so that 39 tables give 0.025 at least. It is valid for any
# number of tables, and more of them give a finer one: ``n_resamples=199``. Of a table of more than 50 000 entries rows drawn
# at random are tested; that keeps the p-value valid and costs power. With ``time_limit`` fewer tables are drawn.
#
# What a clustering says
# ----------------------
# With ``test_structure=True`` tables of either kind that split as well are a reservation, the first one, unless the other
# question has a clear answer; so is a clustering that changes when the tolerance is ten times larger. In the program
# a reservation is "NO ANSWER" and the exit status 1; ``--no-structure`` leaves the test out.

model = dc.DiffracClustering(test_structure=True)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", dc.DegenerateDataWarning)
    model.fit(noise)
for reservation in model.diagnostics_:
    print(f"{reservation.kind}: {reservation}")

# %%
# Other reservations need no draws of tables: with about as many columns as rows or more, labels by coin flips may cost no
# more than those found; where less than a tenth of the cost is proved, quite other labels may be far better.
#
# How it was tested
# -----------------
# ``make structure`` draws tables without groups, where p should be at most 0.05 in one of twenty, and tables with groups of
# rising strength, beside SigClust, the gap statistic and Hartigan's dip. The dip of the score that a clustering found is no
# test: the score was chosen to fall in two parts, and rejects without groups.
#
# .. include:: ../structure.inc
#
# .. include:: ../structure_picture.inc
