"""What one would take instead: supervised on the known labels alone, or semi-supervised by neighbours and clusters."""

import warnings
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeClassifierCV
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier

from diffrac_cvx.typing import Array

Labels = npt.NDArray[np.int64]
ALPHAS, CS = np.logspace(-2, 3, 11), 7
NEIGHBOURS = 7
MOST_ROUNDS = 300


def ridge(X: Array, few: Labels) -> Labels:
    """Ridge regression on the known labels, its weight by leaving one out."""
    known = few >= 0
    return np.asarray(RidgeClassifierCV(alphas=ALPHAS).fit(X[known], few[known]).predict(X))


def logistic(X: Array, few: Labels) -> Labels:
    """Logistic regression on the known labels, its weight by cross-validation where there are two labels a class."""
    known = few >= 0
    parts = min(5, int(np.bincount(few[known]).min()))
    model = LogisticRegression() if parts < 2 else LogisticRegressionCV(Cs=CS, cv=parts)
    return np.asarray(model.fit(X[known], few[known]).predict(X))


def spreading(X: Array, few: Labels) -> Labels:
    """Label spreading over nearest neighbours."""
    return np.asarray(LabelSpreading(kernel="knn", n_neighbors=NEIGHBOURS).fit(X, few).transduction_)


def propagation(X: Array, few: Labels) -> Labels:
    """Label propagation over nearest neighbours."""
    return np.asarray(LabelPropagation(kernel="knn", n_neighbors=NEIGHBOURS).fit(X, few).transduction_)


def self_training(X: Array, few: Labels) -> Labels:
    """Logistic regression that takes its own confident answers for labels."""
    return np.asarray(SelfTrainingClassifier(LogisticRegression()).fit(X, few).predict(X))


def seeded_kmeans(X: Array, few: Labels) -> Labels:
    """k-means from the means of the known points, which stay in their class (Basu, Banerjee and Mooney, 2002)."""
    found = few
    for _ in range(MOST_ROUNDS):
        centres = np.stack([X[found == k].mean(axis=0) for k in (0, 1)])
        nearest = np.argmin(((X[:, None] - centres) ** 2).sum(axis=2), axis=1)
        again = np.where(few >= 0, few, nearest)
        if np.array_equal(found, again):
            break
        found = again
    return found


RIVALS: dict[str, Callable[[Array, Labels], Labels]] = {
    "ridge": ridge,
    "logistic": logistic,
    "label spreading": spreading,
    "label propagation": propagation,
    "self-training": self_training,
    "seeded k-means": seeded_kmeans,
}


def classify(method: str, X: Array, few: Labels) -> Labels:
    """Return the classes of all points by a rival, from the known labels, -1 elsewhere."""
    with warnings.catch_warnings():  # of iterations that did not converge, and of points that no label reaches
        warnings.simplefilter("ignore")
        return RIVALS[method](X, few)
