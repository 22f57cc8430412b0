"""
Testing for structure
=====================

A clustering method splits any table. So before you interpret a split, ask whether the table has groups at all. `structure_test`
answers with one of three verdicts: "separated", "continuum" or "none". The program prints it first, and `DiffracClustering` with
``test_structure=True`` stores the result in ``structure_``.
"""

import warnings

import numpy as np

import diffrac_cvx as dc

rng = np.random.default_rng(0)
noise = rng.standard_normal((200, 10))
print(dc.structure_test(noise))

# %%
# Two groups along a direction that no column shows:

direction = rng.standard_normal(10)
y = np.repeat([0, 1], 100)
groups = noise + 5.0 * np.outer(y, direction / np.linalg.norm(direction))
test = dc.structure_test(groups)
print(test)
_ = dc.plotting.StructureDisplay(test).plot()

# %%
# How it works
# ------------
# The score of a clustering is bimodal even for noise, because its direction was chosen so that the points fall in two parts. A test of
# the fitted score therefore rejects too often. Here four fifths of the rows choose the direction, and the score is computed for the
# others; over several partitions each row gets the mean of its scores. If the table is one unimodal cloud, these scores have one mode.
#
# The test statistic is Silverman's critical bandwidth, the smallest bandwidth at which a kernel density estimate of the scores has one
# mode. Its null distribution is that of samples from the unimodal density nearest to the scores. Splits with five weights
# :math:`(\nu, \text{ridge})` are tested, those in use first, and the p-value is multiplied by their number.
#
# - **separated**: p is at most 0.05, so there is a gap between groups.
# - **continuum**: no gap is seen, but the table splits in two at a lower cost than 19 tables with independently permuted columns and 19
#   randomly rotated tables, which are Gaussian clouds with the same correlations. The clusters may be the two ends of a continuum. This
#   is a note, not a warning.
# - **none**: there is no evidence of more than one group. ``diagnostics_`` begins with a warning, and the exit status of the program
#   is 1; ``--no-structure`` skips the test.
#
# A gap in a single column is enough for "separated", even if no other column depends on it: with the values of each column of the iris
# data in random order, the lengths of the petals still have two modes. The answer then names that column (``gap_column``). Strongly correlated yes-or-no answers, most of which are all
# yes or all no, are separated too.
#
# No verdict depends on the clock. If the time limit is too short the verdict is "not tested", and nothing is concluded from it.
#
# Correlated columns without groups are a single cloud, and flat or ordinal scales a continuum:

cloud = rng.standard_normal((200, 10)) @ rng.standard_normal((10, 10))
scale = np.outer(3.5 * rng.random(200), rng.standard_normal(10)) + 0.5 * rng.standard_normal(
    (200, 10)
)
for table in (cloud, scale):
    print(dc.structure_test(table))

# %%
# Groups of unequal size are often seen only with a smaller weight on balance, and the test says so:

unequal = rng.standard_normal((200, 10))
unequal[:30, :3] += 4.0
test = dc.structure_test(unequal)
print(test)
model = dc.DiffracClustering(nu=test.nu, ridge=test.penalty.ridge).fit(unequal)
print(np.bincount(model.labels_))

# %%
# Weights, constraints, feature groups and signs are those of the clustering; for K clusters the K - 1 directions that separate them are
# tested. Of a table with more than 1000 rows or 50 000 entries a random sample of rows is tested.
#
# Warnings of a clustering
# ------------------------
# The verdict "none" is a warning of the estimator:

model = dc.DiffracClustering(test_structure=True)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", dc.DegenerateDataWarning)
    model.fit(noise)
for diagnostic in model.diagnostics_:
    print(f"{diagnostic.code}: {diagnostic}")

# %%
# If the lower bound is below a tenth of the cost, very different labels may have a much lower cost, and there is a warning.
#
# Validation
# ----------
# ``make structure`` draws tables of 27 kinds without groups and 14 kinds with groups, and counts the verdicts; it compares the test with
# the costs of null tables alone, SigClust, and Hartigan's dip test of the first principal component (:doc:`/beyond`).
