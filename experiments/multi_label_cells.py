"""The cells of Figures 5 and 6: how much of the true labels' span k found labels hold."""

import warnings
from functools import cache
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

import diffrac_cvx as dc
from diffrac_cvx.datasets.files import missing
from diffrac_cvx.inputs import Array
from diffrac_cvx.result import Result
from experiments.multi_label_data import OWN, data_of
from experiments.sweep import Row

SETS = ("corel5k", "yeast", "scene", "digits")
COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60)
SHOWN = 30  # the paper's k in Figure 6
NU, RIDGE, TOLERANCE = 1.0, 0.3, 1e-2
METHODS = ("relaxation", "k-means", "random")
SETTINGS = {"nu": NU, "ridge": RIDGE, "tolerance": TOLERANCE}


def cells_of(grid: str, sets: tuple[str, ...] = SETS) -> list[dict[str, Any]]:
    """Return the cells of a grid, over the sets that are there; the others are named with how to get them."""
    if grid != "full":
        sets = tuple(name for name in sets if name == "digits" or OWN in name)
    counts = COUNTS if grid == "full" else COUNTS[:8:3]
    cells = []
    for name in sets:
        try:
            data = data_of(name)
        except dc.DataError as error:
            if name not in dc.datasets.names("multi-label"):
                raise
            print(f"{name} is left out: {missing(dc.datasets.describe(name))}" if "shipped" in str(error) else error)
            continue
        most = min(data.X.shape[1] - 1, len(data.X) // 4)
        cells += [
            {"set": name, "method": method, "k": k, "run": run}
            for method in METHODS
            for k in counts
            for run in range(3 if method != "relaxation" else 1)
            if k <= most
        ]
    return cells


@cache
def solution(name: str) -> Result:
    """Solve the relaxation of a set, once a process.

    A loose tolerance is meant: FISTA's smoothed solution spreads its weight over all labels, where an exact one may
    leave some of them out.
    """
    return dc.fista(data_of(name).X, NU, dc.Penalty(a=RIDGE), tol=TOLERANCE)


def measure(method: str, k: int, run: int, **names: str) -> Row:
    """Find k labels by one method."""
    name = names["set"]
    data = data_of(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)
        found = labels_of(name, method, k, run)
    row: Row = {
        "n": len(data.X),
        "d": data.X.shape[1],
        "labels": data.Y.shape[1],
        "overlap": dc.metrics.label_subspace_overlap(data.Y, found),
        "overlap_centred": dc.metrics.label_subspace_overlap(centred(data.Y), centred(found)),
        "best_correlation": float(dc.metrics.label_correlations(data.Y, found).max()),
    }
    if method == "relaxation":
        row |= {"gap": solution(name).gap, "objective": getattr(found, "objective", np.nan)}
    return row


def labels_of(name: str, method: str, k: int, run: int) -> Array:
    """Return (n, k) labels: of the relaxation, of k clusters, or random."""
    X = data_of(name).X
    if method == "relaxation":
        return dc.rounding.procrustes(solution(name).F, k, restarts=5)
    if method == "k-means":
        clusters = KMeans(k, n_init=3, random_state=run).fit_predict(X)
        return np.where(clusters[:, None] == np.arange(k), 1.0, -1.0)
    return np.where(np.random.default_rng([2017, k, run]).random((len(X), k)) < 0.5, 1.0, -1.0)


def centred(Y: Array) -> Array:
    """Return the labels less their means."""
    return np.asarray(Y - Y.mean(axis=0))
