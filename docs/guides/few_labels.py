r"""
Semi-supervised classification
==============================

Labels are often expensive: a doctor diagnoses twenty of three hundred patients, and the other rows have no label. A supervised
method learns from the twenty labelled rows only. `DiffracClassifier` learns from all rows: it solves the relaxation for the whole
table, with the rows of known labels merged into one row.
"""

import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import RidgeClassifierCV

import diffrac_cvx as dc

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
# This is one data set and one random choice of labelled rows; ``make few-labels``, below, measures many. Labels are numbers or
# text. As in `Constraints`, None, NaN, pd.NA and "" mean unlabelled. So does -1 if there are two or more other values, as in
# scikit-learn, with a warning. Pass any other mark as ``unlabelled=``. ``transduction_`` contains the class of every row, with
# the known labels unchanged; use ``predict`` and ``decision_function`` for new rows.
#
# Certified bounds
# ----------------
# The relaxation with known labels has certified bounds too. The resulting labels have a certified optimality gap in the cost of
# Eq. (9), among all labels that agree with the known ones. If all labels are known, the relaxation is exact, and the classifier
# is ridge regression.

print(f"relaxation: optimum proved to lie in {model.result_.bracket}")
gap = dc.format_upper(model.label_gap_)
print(f"no labels that agree with the known ones are better by more than {gap}")

# %%
# This does not prove that the classes are the best explanation of the table.
#
# Parameter selection
# -------------------
# The many unlabelled rows outweigh a few labelled ones: if their clusters are not the classes, equal weights mislead. Moreover, a
# ridge favours directions of large variance, which need not separate the classes. So by default (``ridge="auto"`` and
# ``labeled_weight="auto"``) the classifier is cross-validated on the known labels. It tries four ridges, each with equal weights
# and with 95 % of the weight on the labelled rows, which is close to the supervised fit. It selects the pair with the smallest
# squared error.

print(
    f"ridge {model.ridge_}, least fraction of the weight on the known rows: {model.labeled_weight_}"
)

# %%
# The selection takes up to forty fits; with fixed values of both there is only one.

# %%
# More than two classes
# ---------------------
# The labelled rows of each class become one row. The unlabelled rows are assigned to the nearest class in the metric of the
# solution. Then fits of affine functions to the classes alternate with assignments to the nearest class in the metric of these
# functions; the known labels stay fixed.

Z, species = load_iris(return_X_y=True)
three = np.full(len(Z), -1)
three[::25] = species[::25]
iris = dc.DiffracClassifier().fit(Z, three)
right = np.mean((iris.transduction_ == species)[three < 0])
print(f"iris, two labels of each species: {right:.2f} of the others in theirs")

# %%
# Training one class against the rest was worse on iris, wine and digits, because the rest does not form a cluster.
#
# When it helps
# -------------
# ``make few-labels`` compares the classifier with ridge regression on the same labels and with label spreading (:doc:`/beyond`).
# It helps if there are very few labels: with six labels it is better than ridge regression on many of these data sets, and worse
# on few. With twenty or more, ridge regression on the labelled rows, with its weight chosen by leave-one-out cross-validation, is
# as good or better on average, and faster. The largest losses are on data with one small class, such as yeast or thyroid: the
# relaxation at ν = 1 favours clusters of equal size. If the classes do not form clusters, as in the data on sonar echoes or liver
# disorders, the unlabelled rows carry no information, and at best nothing is lost. A fixed ridge of 0.3 was clearly worse on data
# sets whose classes differ along a direction of small variance, such as crabs.
