"""Methods of scikit-learn on columns at unit variance: Gaussian mixture and spectral clustering."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import Array, as_data, as_generator, positive_int
from diffrac_cvx.points.linear_algebra import standardize_columns

FULL_COVARIANCE_RATIO = 5  # points per feature from which the Gaussians have full covariances
N_NEIGHBORS = 10  # of each point, itself included, in the graph of spectral clustering


def gaussian_mixture(X: npt.ArrayLike, *, n_init: int = 5, rng: np.random.Generator | int) -> Array:
    """Return the labels of a mixture of two Gaussians on columns at unit variance, the first point at +1.

    It uses scikit-learn, with the largest likelihood of several runs.  The covariances are full if there are at least
    five points per feature, O(n d^2) per iteration, otherwise diagonal, O(n d).

    Parameters and errors are those of kmeans_standardized, plus ImportError without scikit-learn.
    """
    data = standardize_columns(as_data(X))
    n_init, random = positive_int(n_init, "n_init"), as_generator(rng)
    from sklearn.mixture import GaussianMixture  # here because scikit-learn is an optional dependency

    if not data.any():  # all points are equal
        return np.ones(len(data))
    covariances = "full" if len(data) >= FULL_COVARIANCE_RATIO * data.shape[1] else "diag"
    seed = int(random.integers(2**31))
    mixture = GaussianMixture(2, covariance_type=covariances, n_init=n_init, random_state=seed)
    return _fit_quietly(mixture, data)  # runs that do not converge in 100 iterations are accepted


def spectral(X: npt.ArrayLike, *, rng: np.random.Generator | int) -> Array:
    """Return the labels of spectral clustering on nearest neighbours, columns at unit variance, the first at +1.

    It uses scikit-learn: two clusters from the normalised Laplacian of the ten-nearest-neighbour graph.  O(n^2 d).

    Source: Ng, Jordan and Weiss, "On spectral clustering", NIPS 2001; von Luxburg, "A tutorial on spectral
    clustering", 2007, for the graph.

    Parameters, except n_init, and errors are those of gaussian_mixture; rng is for the starts of k-means.
    """
    data, random = standardize_columns(as_data(X)), as_generator(rng)
    from sklearn.cluster import SpectralClustering

    if not data.any():  # all points are equal
        return np.ones(len(data))
    if len(data) == 2:  # too few points for a graph
        return np.array([1.0, -1.0])
    graph = {"affinity": "nearest_neighbors", "n_neighbors": min(N_NEIGHBORS, len(data) - 1)}
    clustering = SpectralClustering(2, **graph, random_state=int(random.integers(2**31)))
    return _fit_quietly(clustering, data)  # disconnected graphs are accepted


def _fit_quietly(estimator: Any, data: Array) -> Array:
    """Return the labels of a scikit-learn estimator, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = estimator.fit_predict(data)
    return np.where(found == found[0], 1.0, -1.0)
