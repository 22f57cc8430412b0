"""
Testing for structure
=====================

A clustering method splits any table. So before you interpret a split, ask whether a table without groups would be split as well.
`structure_test` generates such null data from your table, splits them in the same way, and counts how many reach the same cost. The
program prints the result in its first lines, and `DiffracClustering` with ``test_structure=True`` stores it in ``structure_``.
"""

import warnings

import numpy as np

import diffrac_cvx as dc

rng = np.random.default_rng(0)
noise = rng.standard_normal((200, 10))
print(dc.structure_test(noise))

# %%
# Two null models
# ---------------
# The test statistic is the cost of the split, Eq. (9), at the weights in use. There are two null models, and each answers its own
# question.
#
# - ``null="columns"``: each column is permuted independently. *Are the columns dependent?* The p-value is valid
#   for independent columns of any distributions.
# - ``null="covariance"``: the points are rotated at random about their mean, :math:`QX` with :math:`Q` orthogonal, which
#   keeps :math:`X^\top X`. *Do the points fall into two groups better than one Gaussian cloud with the same correlations?*
#   Valid for Gaussian points of any covariance, even with more columns than rows; heavy tails make it
#   conservative.
#
# Correlated columns are dependent, but need not form groups:

cloud = rng.standard_normal((200, 10)) @ rng.standard_normal((10, 10))
for null in ("columns", "covariance"):
    print(dc.structure_test(cloud, null=null))

# %%
# Two groups along a direction that no column shows, and that has no more variance than others:

planted = dc.datasets.make_planted(400, 5, 5, noise=0.1, rng=0)
for null in ("columns", "covariance"):
    print(dc.structure_test(planted.X, null=null, penalty=dc.Penalty()))

# %%
# The p-value is (1 + null tables that split as well) / (1 + null tables), so that with 39 tables it is at least 0.025. It is valid
# for any number of tables, and more of them give a finer one: ``n_resamples=199``. For a table of more than 50 000 entries the test
# uses a random sample of rows; that keeps the p-value valid and costs power. With ``time_limit`` fewer tables are drawn.
#
# Warnings of a clustering
# ------------------------
# With ``test_structure=True``, ``diagnostics_`` begins with a warning if null tables of either kind split as well, unless the other
# test is clearly significant. A clustering that changes when the tolerance is ten times larger gets a warning too. In the program
# a diagnostic is a "WARNING" and the exit status is 1; ``--no-structure`` skips the test.

model = dc.DiffracClustering(test_structure=True)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", dc.DegenerateDataWarning)
    model.fit(noise)
for diagnostic in model.diagnostics_:
    print(f"{diagnostic.code}: {diagnostic}")

# %%
# Other warnings need no null data. If the lower bound is below a tenth of the cost, very different labels may have a much lower cost.
#
# Validation
# ----------
# ``make structure`` simulates tables without groups, for which p should be at most 0.05 in one of twenty, and tables with groups of
# increasing strength, and compares the test with SigClust, the gap statistic and Hartigan's dip test. The dip test on the score of
# a clustering is not valid: the score was chosen to fall in two parts, so that the test rejects without groups.
#
# .. include:: ../structure.inc
#
# .. include:: ../structure_picture.inc
