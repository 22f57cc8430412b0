"""What most people would try first, on columns at unit variance: 2-means, two Gaussians, spectral clustering."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from diffrac_cvx.points.checks import Array, as_data, as_generator, positive_int
from diffrac_cvx.points.linear_algebra import standardize_columns

LLOYD_MAX_ITER = 100  # of one run
FULL_COVARIANCE_RATIO = 5  # points for each feature, above which the Gaussians have full covariances
N_NEIGHBORS = 10  # of each point, itself among them, in the graph of spectral clustering


def kmeans_standardized(X: npt.ArrayLike, *, n_init: int = 10, rng: np.random.Generator | int) -> Array:
    """Return the labels of 2-means on columns at unit variance, the best of several runs, the first point at +1.

    Each run starts from the centres of k-means++ and has a hundred rounds of Lloyd's algorithm; the best run has the
    least sum of squared distances to the centres.  A round is O(n d).

    Parameters
    ----------
    X : (n, d) array
        Data; brought to unit variance here.
    n_init : int
        Number of runs.
    rng : Generator or int
        Of the starts, or its seed.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.
    """
    data = standardize_columns(as_data(X)).X
    n_init, random = positive_int(n_init, "n_init"), as_generator(rng)
    if not data.any():  # all points are equal
        return np.ones(len(data))
    runs = [scipy.cluster.vq.kmeans2(data, 2, LLOYD_MAX_ITER, minit="++", rng=random) for _ in range(n_init)]
    _, found = min(runs, key=lambda run: float(np.sum((data - run[0][run[1]]) ** 2)))
    return np.where(found == found[0], 1.0, -1.0)


def gaussian_mixture(X: npt.ArrayLike, *, n_init: int = 5, rng: np.random.Generator | int) -> Array:
    """Return the labels of a mixture of two Gaussians on columns at unit variance, the first point at +1.

    By scikit-learn, the likeliest of several runs.  The Gaussians have full covariances where there are at least five
    points for each feature, O(n d^2) a round, and diagonal ones, O(n d), where there are fewer.

    Parameters and errors are those of kmeans_standardized, and ImportError where scikit-learn is not installed.
    """
    data = standardize_columns(as_data(X)).X
    n_init, random = positive_int(n_init, "n_init"), as_generator(rng)
    try:
        from sklearn.mixture import GaussianMixture
    except ImportError:
        raise ImportError("it needs scikit-learn: pip install 'diffrac-cvx[app]'") from None
    if not data.any():  # all points are equal
        return np.ones(len(data))
    covariances, seed = (
        "full" if len(data) >= FULL_COVARIANCE_RATIO * data.shape[1] else "diag",
        int(random.integers(2**31)),
    )
    mixture = GaussianMixture(2, covariance_type=covariances, n_init=n_init, random_state=seed)
    return _fit_quietly(mixture, data)  # a run of a hundred rounds is taken as it is


def spectral(X: npt.ArrayLike, *, rng: np.random.Generator | int) -> Array:
    """Return the labels of spectral clustering of the nearest neighbours, columns at unit variance, the first at +1.

    By scikit-learn: two clusters from the normalised Laplacian of the graph that joins each point to its ten nearest.
    O(n^2 d).

    Source: Ng, Jordan and Weiss, "On spectral clustering", NIPS 2001; von Luxburg, "A tutorial on spectral
    clustering", 2007, for the graph.

    Parameters, without restarts, and errors are those of gaussian_mixture; rng is that of the starts of k-means.
    """
    data, random = standardize_columns(as_data(X)).X, as_generator(rng)
    try:
        from sklearn.cluster import SpectralClustering
    except ImportError:
        raise ImportError("it needs scikit-learn: pip install 'diffrac-cvx[app]'") from None
    if not data.any():  # all points are equal
        return np.ones(len(data))
    if len(data) == 2:  # no graph to speak of
        return np.array([1.0, -1.0])
    graph = {"affinity": "nearest_neighbors", "n_neighbors": min(N_NEIGHBORS, len(data) - 1)}
    clustering = SpectralClustering(2, **graph, random_state=int(random.integers(2**31)))
    return _fit_quietly(clustering, data)  # a graph of several parts is taken as it is


def _fit_quietly(estimator: Any, data: Array) -> Array:
    """Return the labels of scikit-learn's estimator, whose warnings are no errors here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = estimator.fit_predict(data)
    return np.where(found == found[0], 1.0, -1.0)
