"""Choosing lam, ridge and nu without labels: on labelled sets, compared with fixed weights and other methods.

The held-out sets are read from packages that pip and apt-get download into build/packages.
"""

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

import diffrac_cvx as dc
from diffrac_cvx.estimators.choice import SELECTION_CRITERIA, rank
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.typing import Array
from experiments.choice.sets import KINDS, Labeled
from experiments.harness.sweep import Cell, Row, cross

FIXED = tuple((ridge, lam) for ridge in (0.1, 0.3, 0.5, 1.0) for lam in (0.0, 0.01))
NO_PENALTY = (0.0, 0.0)
RESAMPLES = 10
WIDE, FEWER = 100, 2  # features from which on only so few half-samples are used
SECONDS = 240.0  # limit for the grid on one set
BATCH = 500  # points per step of gemclus, whose time is quadratic in them
SETTINGS = {"rule": "gain over the default weights", "resamples": RESAMPLES, "seconds": SECONDS}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid; the smoke grid downloads nothing."""
    if grid == "smoke":
        return cross(kind=["design"], name=["iris 0 or 1", "iris 1 or 2"])
    return [{"kind": kind, "name": name} for kind, sets in KINDS.items() for name in sets]


def measure(kind: str, name: str) -> Row:
    """Cluster one set by all methods, and compare with its labels."""
    found = KINDS[kind][name]()
    Z = standardize_columns(found.X)
    limits = {"tol": 1e-3, "time_limit": SECONDS / 8}
    fixed = {
        column_of(*pair): dc.DiffracClustering(ridge=pair[0], lam=pair[1], **limits) for pair in (NO_PENALTY, *FIXED)
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "n": len(Z),
            "d": Z.shape[1],
            **{method: score(found, label(Z)) for method, label in OTHERS.items()},
            **{column: score(found, model.fit(Z).labels_) for column, model in fixed.items()},
            **measure_choices(found, Z),
        }


def score(found: Labeled, labels: Array | None) -> float:
    """Return the adjusted Rand index; NaN if a method has no result."""
    return float("nan") if labels is None else float(adjusted_rand_score(found.y, labels))


def measure_choices(found: Labeled, Z: Array) -> Row:
    """Return the index of each criterion's choice from the grid, and the best by the true labels."""
    halves = RESAMPLES if Z.shape[1] < WIDE else FEWER
    model = dc.DiffracClusteringCV(n_resamples=halves, time_limit=SECONDS, random_state=0).fit(Z)
    table = model.cv_results_
    scores = [score(found, labels) for labels in table["labels"]]
    usable = np.array([not kinds for kinds in table["diagnostics"]])
    chosen = {name: int(np.argmin(rank(table[name], usable, table["stability"]))) for name in SELECTION_CRITERIA}
    return {
        "best": max(scores),
        **{name: scores[i] for name, i in chosen.items()},
        "choice": score(found, model.labels_),
        "lam": model.lam_,
        "ridge": model.ridge_,
        "settings": len(scores),
        "no_answer": int((~usable).sum()),
    }


def column_of(ridge: float, lam: float) -> str:
    """Return the column name of fixed weights."""
    return f"ridge_{ridge:g}_lam_{lam:g}"


def by_gemini(Z: Array) -> Array | None:
    """Cluster by the linear discriminative model of gemclus, if installed; larger sets in parts of `BATCH`."""
    try:
        linear: Any = import_module("gemclus.linear")
    except ImportError:
        return None
    batch = BATCH if len(Z) > 2 * BATCH else None
    return np.asarray(linear.LinearMMD(n_clusters=2, random_state=0, batch_size=batch).fit_predict(Z))


def clusterings(n_clusters: int) -> dict[str, Callable[[Array], Array | None]]:
    """Return other clustering methods, as functions of standardised points."""
    nearest: Any = {"affinity": "nearest_neighbors", "n_neighbors": 10}
    return {
        "kmeans": KMeans(n_clusters, n_init=10, random_state=0).fit_predict,
        "mixture": GaussianMixture(n_clusters, n_init=5, reg_covar=1e-3, random_state=0).fit_predict,
        "spectral": SpectralClustering(n_clusters, **nearest, random_state=0).fit_predict,
        "ward": AgglomerativeClustering(n_clusters).fit_predict,
    }


OTHERS: dict[str, Callable[[Array], Array | None]] = {**clusterings(2), "gemclus": by_gemini}
