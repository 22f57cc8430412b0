"""
Testing for structure
=====================

A clustering method splits any table. So before you interpret a split, ask whether the table has groups at all. `structure_test`
answers "separated" or "not separated". The program prints it first, and `DiffracClustering` with ``test_structure=True`` stores the
result in ``structure_``.
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
# The verdict says where the gap is, and how many rows lie between it and the threshold of the clustering.
#
# How it works
# ------------
# The score of a clustering is bimodal even for noise, because its direction was chosen so that the points fall in two parts. A test of
# the fitted score therefore rejects too often. Here four fifths of the rows choose the direction, and the score is computed for the
# others. If the table is one unimodal cloud, these scores have one mode. Each row has the mean of its scores over three partitions.
#
# The split tested is the one with the deepest valley in the rows that were used for the fit. It is chosen among several weights
# :math:`(\nu, \text{ridge})`, those in use included, and among up to three different splits each with 5, 10, 20, 35 or 50 % of the rows
# on one side. If there are three groups, several splits have a valley, so all folds prefer the one that separates the same group as in
# the first fold: their depths are multiplied by the squared correlation with its scores. With more columns than rows, the valleys in the
# rows of a fit hardly predict those of other rows, and the split in use is tested.
#
# The statistic is the depth of the deepest valley of the density of the scores: the root of the smoothed count at the lower of two peaks,
# minus that between them. It is taken for two bandwidths, since a small group is seen best with a wide kernel and three groups with a
# narrow one, and compared with 399 samples from the unimodal density nearest to the scores.
#
# The verdict is "separated" if the p-value is at most 0.05, and "not separated" otherwise. The latter is a warning of the estimator, and
# the exit status of the program is then 1; ``--no-structure`` skips the test. The p-value of a gap that no sample reaches is the smallest
# that the test can give, and the message says so.
#
# Yes-or-no answers
# -----------------
# The sum of strongly correlated answers has two modes without any groups: many rows are all yes or all no. If most columns have two
# values, scores with a gap are therefore also compared with those of a Gaussian cloud, cut in two in each column at the same shares and
# with the same (tetrachoric) correlations, along the same directions. The larger p-value counts. Ten questions about one trait, and
# answers of two classes of subjects:

subject = np.random.default_rng(0)
trait = subject.standard_normal((200, 1))
one_trait = 1.0 * (1.5 * trait + subject.standard_normal((200, 10)) > 0.0)
two_classes = 1.0 * (subject.random((200, 10)) < np.where(y, 0.9, 0.1)[:, None])
for answers in (one_trait, two_classes):
    print(dc.structure_test(answers))

# %%
# This takes a Gaussian trait for granted: a trait of another shape may be called separated.
#
# Limitations
# -----------
# A gap in a single column is enough, even if no other column depends on it: with the values of each column of the iris
# data in random order, the lengths of the petals still have two modes. The answer then names that column (``gap_column``). The scores of
# a cycle, such as seasons, which dwell at its two ends, may be separated too.
#
# No verdict depends on the clock. If the time limit is too short the verdict is "not tested", and nothing is concluded from it.
#
# No gap: correlated, flat and ordinal columns
# --------------------------------------------
# Correlated columns without groups are a single cloud. Flat or ordinal scales split better than a Gaussian cloud with the same
# correlations. The text says so, and that this is not evidence of groups:

other = np.random.default_rng(1)
cloud = other.standard_normal((200, 10)) @ other.standard_normal((10, 10))
scale = np.outer(
    3.5 * other.random(200), other.standard_normal(10)
) + 0.5 * other.standard_normal((200, 10))
for table in (cloud, scale):
    print(dc.structure_test(table))

# %%
# Copies of rows
# --------------
# A row that is repeated is no more evidence than one. Equal rows count once, unless the columns are so coarse that rows coincide by
# chance, such as answers from 1 to 5. So do points that ``Constraints`` link to equal labels, such as the rows of one patient, and
# replicates whose noise is small compared with the distances between different rows. Noise of 40 rows, each five times:

print(dc.structure_test(np.repeat(rng.standard_normal((40, 5)), 5, axis=0)))

# %%
# Replicates with more noise are not recognised: pass them as ``groups`` of `Constraints`. Conversely, many tight groups, each of at most
# 5 % of the rows, are taken for replicates.
#
# Unequal groups
# --------------
# Groups of unequal size are often seen only by another split, and the test says so. ``labels`` are the sides of the gap:

unequal = rng.standard_normal((200, 10))
unequal[:30, :3] += 4.0
test = dc.structure_test(unequal)
print(test)
print(np.bincount(test.labels))

# %%
# With ``test_structure=True``, `DiffracClustering` returns these clusters if the split with the weights in use does not show the gap and
# 8 to 35 % of the rows are on one side, unless ``unequal=False``; ``is_cut_at_gap_`` says whether it did (:doc:`/beyond`).

model = dc.DiffracClustering(test_structure=True).fit(unequal)
print(model.is_cut_at_gap_, np.bincount(model.labels_))

# %%
# Weights, constraints, feature groups and signs are those of the clustering; for K clusters the K - 1 directions that separate them are
# tested. Of a table with more than 1000 rows or 50 000 entries a random sample of rows is tested.
#
# Warnings of a clustering
# ------------------------
# The verdict "not separated" is a warning of the estimator:

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
# ``make structure`` draws tables of 36 kinds without groups, nine of them with copies of rows or coarse columns, and of 19 kinds with
# groups, and counts how many are called separated: false alarms and power by the same verdict. It compares the test with the costs of
# null tables alone, SigClust, and Hartigan's dip test of the first principal component (:doc:`/beyond`).
