"""More than two clusters: both strategies of the estimator compared with k-means and a Gaussian mixture."""

import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.mixture import GaussianMixture

import diffrac_cvx as dc
from diffrac_cvx.typing import Array
from experiments.data.loading import keep_loadable
from experiments.harness.sweep import Cell, Row, cross
from experiments.problems import keep_varying

Classes = npt.NDArray[np.int64]
Data = tuple[Array, Classes]

POINTS, FEATURES = 300, 10  # of the planted classes
MOST_POINTS = 600  # of a real set; larger sets are subsampled in each replication
STARTS = 10
SETTINGS = {"starts": STARTS, "most_points": MOST_POINTS, "points": POINTS, "features": FEATURES}
REPLICATIONS = {"full": 5, "smoke": 1}


def planted(k: int, spread: float, replication: int) -> Data:
    """Return classes at the corners of a simplex with Gaussian spread, mixed with noise dimensions."""
    rng = np.random.default_rng([2017, 21, k, round(100 * spread), replication])
    classes = np.arange(POINTS) % k
    corners = (np.linalg.qr(np.eye(k) - 1 / k)[0][:, : k - 1] * k**0.5)[classes]
    noise = rng.standard_normal((POINTS, FEATURES - k + 1))
    X = np.hstack([corners + spread * rng.standard_normal(corners.shape), noise])
    return X @ rng.standard_normal((FEATURES, FEATURES)), classes


def sampled(load: Callable[[], Data], replication: int) -> Data:
    """Return a real set, or a sample of it."""
    X, classes = load()
    chosen = np.random.default_rng([2017, 22, replication]).permutation(len(X))[:MOST_POINTS]
    return X[chosen], classes[chosen]


def yeast() -> Data:
    """Return the genes whose set of functional classes is one of the four most frequent sets."""
    X, Y = dc.datasets.load("yeast")
    _, which, counts = np.unique(Y, axis=0, return_inverse=True, return_counts=True)
    frequent = np.argsort(-counts, kind="stable")[:4]
    chosen = np.isin(which, frequent)
    return np.asarray(X)[chosen], np.searchsorted(np.sort(frequent), which[chosen])


DATA: dict[str, Callable[[int], Data]] = {
    **{f"planted, K = {k}, spread {s}": partial(planted, k, s) for k in (3, 4, 6) for s in (0.2, 0.4)},
    "iris": partial(sampled, partial(load_iris, return_X_y=True)),
    "wine": partial(sampled, partial(load_wine, return_X_y=True)),
    **{f"digits 0 to {k - 1}": partial(sampled, partial(load_digits, n_class=k, return_X_y=True)) for k in (3, 4, 5)},
    "yeast": partial(sampled, yeast),
}
METHODS = ("DiffracClustering", "k-means", "Gaussian mixture")
SMOKE = ("planted, K = 3, spread 0.2", "iris")


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid, over the sets that can be loaded."""
    names = keep_loadable(DATA, lambda name: DATA[name](0)) if grid == "full" else SMOKE
    return cross(data=names, method=METHODS, replication=range(REPLICATIONS[grid]))


def measure(data: str, method: str, replication: int) -> Row:
    """Cluster one standardised set by one method with its defaults; the number of clusters is known."""
    X, classes, _ = keep_varying(*DATA[data](replication))
    k = int(classes.max()) + 1
    begun = time.perf_counter()
    models = {
        "DiffracClustering": dc.DiffracClustering(n_clusters=k, random_state=replication),
        "k-means": KMeans(k, n_init=STARTS, random_state=replication),
        "Gaussian mixture": GaussianMixture(k, n_init=STARTS, reg_covar=1e-3, random_state=replication),
    }
    model = models[method]  # the mixture's own lower_bound_ is a log-likelihood
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gaps above the tolerance, and few points
        labels = model.fit_predict(X)
    return {
        "n": len(X),
        "d": X.shape[1],
        "K": k,
        "adjusted_rand": dc.metrics.adjusted_rand_score(classes, labels),
        "cost": dc.certify_clusters(X, labels, 0.0, k, ridge=dc.DiffracClustering().ridge).objective,
        "lower": model.lower_bound_ if isinstance(model, dc.DiffracClustering) else np.nan,
        "seconds": time.perf_counter() - begun,
    }
