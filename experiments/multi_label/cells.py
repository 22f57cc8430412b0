"""Figures 5 and 6: many labels at once, on Corel5k instead of COCO, and on three other sets."""

import io
import warnings
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

import diffrac_cvx as dc
from diffrac_cvx.datasets.real import read_packed
from diffrac_cvx.problem.result import Result
from diffrac_cvx.typing import Array
from experiments.data.loading import keep_loadable
from experiments.harness.sweep import Cell, Row, cross
from experiments.problems import keep_varying

SETS = ("corel5k", "yeast", "scene", "digits")
COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60)
SHOWN = 30  # the paper's k in Figure 6
NU, RIDGE, TOLERANCE = 0.1, 0.25, 1e-2  # labels are rare, so the weight of the imbalance is small
METHODS = {"relaxation": 1, "k-means of F": 3, "k-means": 3, "random": 3}  # runs
SETTINGS = {"nu": NU, "ridge": RIDGE, "tolerance": TOLERANCE}
COREL_ROWS, COREL_LABELS = 2000, 80  # the sizes of the paper's COCO experiment
ATTRIBUTES = {  # of the ten digits
    "even": (0, 2, 4, 6, 8),
    "at least 5": (5, 6, 7, 8, 9),
    "prime": (2, 3, 5, 7),
    "multiple of 3": (0, 3, 6, 9),
    "has a loop": (0, 6, 8, 9),
    "has a straight line": (1, 4, 5, 7),
}


class Labeled(NamedTuple):
    """Features (n, d) with columns of mean 0 and variance 1, labels (n, K) in {-1, +1}, and the labels' names."""

    X: Array
    Y: Array
    names: tuple[str, ...]


@cache
def load_labeled(name: str) -> Labeled:
    """Return a data set by name; the digits' labels are attributes of the numbers."""
    if name == "digits":
        X, digit = load_digits(return_X_y=True)
        Y = np.stack([np.where(np.isin(digit, members), 1.0, -1.0) for members in ATTRIBUTES.values()], axis=1)
        return Labeled(keep_varying(X, digit).X, Y, tuple(ATTRIBUTES))
    X, Y = dc.datasets.load(name, scaling="standardize")
    with np.load(io.BytesIO(read_packed(dc.datasets.SETS[name])), allow_pickle=False) as archive:
        names = tuple(map(str, archive["label_names"]))
    if name == "corel5k":
        rows = np.random.default_rng(2017).permutation(len(X))[:COREL_ROWS]
        X, Y = X[rows], Y[rows]
        frequent = np.argsort(-np.sum(Y > 0, axis=0), kind="stable")[:COREL_LABELS]
        Y, names = Y[:, frequent], tuple(names[j] for j in frequent)
    return Labeled(keep_varying(X, ()).X, Y, names)


def cells_of(grid: str, sets: Sequence[str] = SETS) -> list[Cell]:
    """Return the cells of a grid, over the sets that can be loaded; the first one has the cells of Figure 6."""
    sets = keep_loadable(sets if grid == "full" else ["digits"], load_labeled)
    counts = COUNTS if grid == "full" else COUNTS[:8:3]
    cells: list[Cell] = []
    for name in sets:
        data = load_labeled(name)
        most = min(data.X.shape[1] - 1, len(data.X) // 4)
        ks = [k for k in counts if k <= most]
        for method, runs in METHODS.items():
            cells += cross(data_set=[name], method=[method], k=ks, run=range(runs))
        if name == sets[0]:  # Figure 6: correlations of the found labels with each true one
            shown = max(k for k in ks if k <= SHOWN)
            cells += cross(data_set=[name], method=["correlations"], k=[shown], run=range(data.Y.shape[1]))
    return cells


@cache
def solve_relaxation(name: str) -> Result:
    """Solve the relaxation of a set, once per process.

    The tolerance is large on purpose: FISTA's smoothed solution spreads its weight over all labels, whereas an exact
    solution may exclude some.
    """
    return dc.fista(load_labeled(name).X, NU, dc.Penalty(ridge=RIDGE), tol=TOLERANCE)


def measure(data_set: str, method: str, k: int, run: int) -> Row:
    """Find k labels by one method."""
    data = load_labeled(data_set)
    if method == "correlations":
        return correlations_with(data_set, run, k)
    found = labels_of(data_set, method, k, run)
    return {
        "n": len(data.X),
        "d": data.X.shape[1],
        "labels": data.Y.shape[1],
        "overlap": dc.metrics.label_subspace_overlap(data.Y, found),
        "overlap_centred": dc.metrics.label_subspace_overlap(*(Y - Y.mean(axis=0) for Y in (data.Y, found))),
    }


def correlations_with(name: str, j: int, k: int) -> Row:
    """Return the absolute correlations of true label j with the k found ones, and the largest with random ones."""
    data = load_labeled(name)
    true = data.Y[:, [j]]
    profile = dc.metrics.label_correlations(true, labels_of(name, "relaxation", k))[:, 0]
    chance = dc.metrics.label_correlations(true, labels_of(name, "random", k))
    return {
        "label": data.names[j],
        "profile": " ".join(f"{value:.4f}" for value in profile),
        "chance": float(chance.max()),
    }


@cache
def labels_of(name: str, method: str, k: int, run: int = 0) -> Array:
    """Return (n, k) labels: of the relaxation, of k clusters of its factor or of the data, or random.

    The rows of F are those of the k-way relaxation `multiclass` up to one constant column, so "k-means of F" rounds
    that relaxation.
    """
    X = load_labeled(name).X
    if method == "relaxation":
        with warnings.catch_warnings(action="ignore", category=dc.DegenerateDataWarning):
            return dc.rounding.fit_label_mixture(solve_relaxation(name).F, k, n_init=5).labels
    if method != "random":
        points = X if method == "k-means" else solve_relaxation(name).F
        clusters = KMeans(k, n_init=3, random_state=run).fit_predict(points)
        return np.where(clusters[:, None] == np.arange(k), 1.0, -1.0)
    return np.where(np.random.default_rng([2017, k, run]).random((len(X), k)) < 0.5, 1.0, -1.0)
