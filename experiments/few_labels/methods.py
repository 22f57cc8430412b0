"""Alternatives: supervised methods on the known labels, and semi-supervised ones based on neighbours or clusters."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeClassifierCV
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier

from diffrac_cvx.typing import Array

Labels = npt.NDArray[np.int64]
ALPHAS, CS = np.logspace(-2, 3, 11), 7
NEIGHBORS = 7
MOST_ROUNDS = 300


def logistic(X: Array, few: Labels) -> Labels:
    """Logistic regression on the known labels; its weight by cross-validation if there are two labels per class."""
    known = few >= 0
    parts = min(5, int(np.bincount(few[known]).min()))
    model = LogisticRegression() if parts < 2 else LogisticRegressionCV(Cs=CS, cv=parts)
    return np.asarray(model.fit(X[known], few[known]).predict(X))


def seeded_kmeans(X: Array, few: Labels) -> Labels:
    """k-means from the means of the known points, which stay in their class (Basu, Banerjee and Mooney, 2002)."""
    found = few
    for _ in range(MOST_ROUNDS):
        centers = np.stack([X[found == k].mean(axis=0) for k in (0, 1)])
        nearest = np.argmin(((X[:, None] - centers) ** 2).sum(axis=2), axis=1)
        again = np.where(few >= 0, few, nearest)
        if np.array_equal(found, again):
            break
        found = again
    return found


# Ridge regression chooses its weight by leave-one-out; self-training uses its own confident predictions as labels.
RIVALS: dict[str, Callable[[Array, Labels], Any]] = {
    "ridge": lambda X, few: RidgeClassifierCV(alphas=ALPHAS).fit(X[few >= 0], few[few >= 0]).predict(X),
    "logistic": logistic,
    "label spreading": lambda X, few: LabelSpreading(kernel="knn", n_neighbors=NEIGHBORS).fit(X, few).transduction_,
    "label propagation": lambda X, few: LabelPropagation(kernel="knn", n_neighbors=NEIGHBORS).fit(X, few).transduction_,
    "self-training": lambda X, few: SelfTrainingClassifier(LogisticRegression()).fit(X, few).predict(X),
    "seeded k-means": seeded_kmeans,
}


def classify(method: str, X: Array, few: Labels) -> Labels:
    """Return the classes of all points by a rival, from the known labels (-1 elsewhere)."""
    with warnings.catch_warnings():  # no convergence; points that no label reaches
        warnings.simplefilter("ignore")
        return np.asarray(RIVALS[method](X, few))
