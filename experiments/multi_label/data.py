"""Data with many labels: Corel5k as a substitute for COCO, and other sets."""

import io
from functools import cache
from typing import NamedTuple

import numpy as np
import sklearn.datasets

import diffrac_cvx as dc
from diffrac_cvx.datasets.real import read_packed
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.typing import Array

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
        X, digit = sklearn.datasets.load_digits(return_X_y=True)
        Y = np.stack([np.where(np.isin(digit, members), 1.0, -1.0) for members in ATTRIBUTES.values()], axis=1)
        return Labeled(standardize_varying(X), Y, tuple(ATTRIBUTES))
    X, Y = dc.datasets.load(name, scaling="standardize")
    with np.load(io.BytesIO(read_packed(dc.datasets.SETS[name])), allow_pickle=False) as archive:
        names = tuple(map(str, archive["label_names"]))
    if name == "corel5k":
        rows = np.random.default_rng(2017).permutation(len(X))[:COREL_ROWS]
        X, Y = X[rows], Y[rows]
        frequent = np.argsort(-np.sum(Y > 0, axis=0), kind="stable")[:COREL_LABELS]
        Y, names = Y[:, frequent], tuple(names[j] for j in frequent)
    return Labeled(standardize_varying(X), Y, names)


def standardize_varying(X: Array) -> Array:
    """Return the non-constant columns with mean 0 and variance 1."""
    standard = standardize_columns(X)
    return np.asarray(standard[:, standard.any(axis=0)])
