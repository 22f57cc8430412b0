"""Few known labels: the relaxation's classifier compared with supervised and semi-supervised methods on real tables."""

import time
import warnings
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, RidgeClassifierCV
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier

import diffrac_cvx as dc
from diffrac_cvx.estimators.classifier import CANDIDATE_RIDGES, WEIGHT_FRACTIONS
from diffrac_cvx.typing import Array
from experiments.choice.sets import DESIGN, HELD_OUT
from experiments.data.loading import keep_loadable
from experiments.harness.sweep import Cell, Row

Labels = npt.NDArray[np.int64]
LOAD = {**DESIGN, **HELD_OUT}
LATER = tuple(HELD_OUT)
SETS = {  # the parameters to choose, and how, were decided on the first group
    "design": (
        "heart", "diabetes", "breast_cancer", "liver_disorders", "sonar", "a1a", "iris 1 or 2", "wine 0 or 1",
        "wine 1 or 2", "digits 3 or 8", "digits 4 or 9", "wdbc", *LATER[::2],
    ),
    "held-out": LATER[1::2],
}  # fmt: skip
KNOWN: tuple[int, ...] = (2, 6, 20, 60)
REPLICATIONS = 20
MOST_POINTS = 400
MOST_KNOWN = 0.6  # largest fraction of a class with known labels; no cell above it
ALPHAS, CS = np.logspace(-2, 3, 11), 7
NEIGHBORS = 7
MOST_ROUNDS = 300


# Alternatives: supervised methods on the known labels, and semi-supervised ones based on neighbours or clusters


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


# Cells

SETTINGS = {"most points": MOST_POINTS, "rivals": list(RIVALS), "ridges": CANDIDATE_RIDGES, "shares": WEIGHT_FRACTIONS}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid."""
    if grid == "smoke":
        sets = [("design", "iris 1 or 2"), ("design", "wine 0 or 1")]
        known, replications = KNOWN[1:3], range(2)
    else:
        loadable = {kind: keep_loadable(names, lambda name: LOAD[name]()) for kind, names in SETS.items()}
        sets = [(kind, name) for kind, names in loadable.items() for name in names]
        known, replications = KNOWN, range(REPLICATIONS)
    return [
        {"kind": kind, "name": name, "known": m, "replication": replication}
        for kind, name in sets
        for m in known
        if m / 2 <= MOST_KNOWN * np.bincount(read_table(name)[1]).min()
        for replication in replications
    ]


@cache
def read_table(name: str) -> tuple[Array, Labels]:
    """Return standardised columns and classes 0 and 1 of a set; a sample of a large set."""
    X, y = LOAD[name]()
    if len(X) > MOST_POINTS:
        chosen = np.random.default_rng([2017, 27, zlib.crc32(name.encode())]).permutation(len(X))[:MOST_POINTS]
        X, y = X[chosen], y[chosen]
    X = X[:, X.std(axis=0) > 0.0]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def draw_labels(y: Labels, known: int, replication: int) -> Labels:
    """Return classes with the given number known, balanced over the classes, and -1 elsewhere."""
    rng = np.random.default_rng([2017, 28, known, 0, replication])
    chosen = np.concatenate([rng.permutation(np.flatnonzero(y == k))[: known // 2] for k in (0, 1)])
    return np.where(np.isin(np.arange(len(y)), chosen), y, -1)


def measure(kind: str, name: str, known: int, replication: int) -> Row:
    """Measure all methods on one replication."""
    X, y = read_table(name)
    few = draw_labels(y, known, replication)
    hidden = few < 0
    start = time.process_time()
    model = dc.DiffracClassifier().fit(X, few)
    seconds = time.process_time() - start
    found = {"relaxation": model.transduction_, **{method: classify(method, X, few) for method in RIVALS}}
    return {
        "points": len(X), "columns": X.shape[1], "seconds": seconds,
        "lower": model.lower_bound_, "upper": model.upper_bound_, "label gap": model.label_gap_,
        **{method: float(np.mean((classes == y)[hidden])) for method, classes in found.items()},
    }  # fmt: skip
