r"""
A few labels are known
======================

Labels often cost time: a doctor looks at twenty of three hundred patients, and the rest is a table. A supervised method
learns from the twenty alone. `DiffracClassifier` learns from all rows: it solves the relaxation for the whole table, in which
the rows whose labels are known are one row, and the others follow.
"""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import RidgeClassifierCV

import diffrac_cvx as dc
from diffrac_cvx.problem.formatting import format_upper

X, y = dc.datasets.load("heart", scaling="standardize")
names = np.where(y > 0, "ill", "well")
shown = np.random.default_rng(0).permutation(len(y))[:20]
few = np.full(len(y), None)
few[shown] = names[shown]

model = dc.DiffracClassifier().fit(X, few)
hidden = np.setdiff1d(np.arange(len(y)), shown)
supervised = RidgeClassifierCV(np.logspace(-2, 3, 11)).fit(X[shown], names[shown])
right = np.mean(model.transduction_[hidden] == names[hidden])
print(f"of the other {len(hidden)} rows in their class: {right:.2f}")
right = np.mean(supervised.predict(X[hidden]) == names[hidden])
print(f"by ridge regression on the 20 labels: {right:.2f}")

# %%
# That is one set and one draw of labels; the table below has many. Labels are given as scikit-learn's semi-supervised classifiers
# take them: numbers, -1 where the label is not known, or names, None or NaN where it is not. For labels -1 and +1 with 0 for
# unknown, as `Constraints` has them, there is ``unknown=0``. ``transduction_`` has the class of every row, the known ones as they are;
# ``predict`` and ``decision_function`` are for new rows.
#
# What is proved
# --------------
# The relaxation with known labels has a bracket, as it has without, and the labels found a proved distance from the best ones of all
# that agree with the known ones, in the cost of Eq. (9). If all labels are known the relaxation is exact, and the classifier is
# ridge regression.

print(f"relaxation: optimum proved to lie in {model.result_.bracket}")
gap = format_upper(model.label_gap_)
print(f"no labels that agree with the known ones are better by more than {gap}")

# %%
# What this does not prove is that the classes are what explains the table best.
#
# What is chosen
# --------------
# With few labels the rows without labels outweigh them: where their clusters are not the classes, equal weights mislead. And a
# ridge prefers directions of large variance, which the classes need not follow. So by default, ``ridge="auto"`` and
# ``share="auto"``, known labels are hidden in turn and predicted, with four ridges, with equal weights and with known rows that have
# 95 % of the weight, which is nearly the supervised fit. The pair with the least squared error is taken.

print(f"ridge {model.ridge_}, least share of the weight of the known rows: {model.share_}")

# %%
# That takes up to forty fits. Numbers given for both take one.

# %%
# More than two classes
# ---------------------
# The rows of each class are one row. From the solution the rows without labels are put to the nearest class, in the metric of the
# solution first, then in that of affine functions fitted to the classes, in turn; rows with known labels stay.

Z, species = load_iris(return_X_y=True)
three = np.full(len(Z), -1)
three[::25] = species[::25]
iris = dc.DiffracClassifier().fit(Z, three)
right = np.mean((iris.transduction_ == species)[three < 0])
print(f"iris, two labels of each species: {right:.2f} of the others in theirs")

# %%
# One class against the rest was worse on iris, wine and digits: the rest is no cluster.
#
# Links without classes
# ---------------------
# Sometimes it is not known what a row is, but that two rows are alike, or differ. `DiffracClustering` takes `Constraints`, and its
# ``labels_`` obey every one of them; ``predict`` knows only the function, and may say otherwise.

constraints = dc.Constraints(
    must_link=[(0, 5), (5, 8)],
    cannot_link=[(1, 2)],
    groups=np.where(np.arange(len(X)) > 260, 0, -1),
)
linked = dc.DiffracClustering().fit(X, constraints=constraints)
print("together:", linked.labels_[[0, 5, 8]], "apart:", linked.labels_[[1, 2]])
print("one group:", linked.labels_[261:])

# %%
# For more than two clusters "together" is all that links can say.
#
# When it pays
# ------------
# ``make few-labels`` measures it on real sets: design sets, on which it was decided what is chosen and how, and held-out ones. Accuracy on
# the rows without labels, mean over twenty draws, as many labels of each class: by this classifier, by ridge regression on the same
# labels, and by label spreading over seven neighbours.
#
# .. include:: ../few_labels.inc
#
# .. include:: ../few_labels_picture.inc
#
# Where it wins and where it loses, by written rules:
#
# .. include:: ../few_labels_findings.inc
#
# So it is of use with very few labels: with six it is better than ridge regression on many of these sets, and worse on few. With twenty or more
# ridge regression on the labels alone, its weight chosen by leaving one out, is as good or better in the mean, and quicker. The
# largest losses are where one class is small, as in yeast or thyroid: the relaxation at ν = 1 prefers halves. Where the classes are no clusters,
# as with sonar echoes or disorders of the liver, the rows without labels have nothing to say, and at best nothing is lost.
# A fixed ridge of 0.3 was clearly worse on sets whose classes differ along a direction of small variance, such as crabs.
