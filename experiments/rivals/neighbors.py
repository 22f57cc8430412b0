"""Spectral clustering of the nearest-neighbour graph."""

import numpy as np
import numpy.typing as npt
from sklearn.cluster import SpectralClustering

from diffrac_cvx.baselines import fit_quietly
from diffrac_cvx.points.checks import as_data, as_generator
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.typing import Array

N_NEIGHBORS = 10  # of each point, itself included, in the graph


def spectral(X: npt.ArrayLike, *, rng: np.random.Generator | int) -> Array:
    """Return the labels of spectral clustering on nearest neighbours, columns at unit variance, the first at +1.

    It uses scikit-learn: two clusters from the normalised Laplacian of the ten-nearest-neighbour graph.  O(n^2 d).

    Source: Ng, Jordan and Weiss, "On spectral clustering", NIPS 2001; von Luxburg, "A tutorial on spectral
    clustering", 2007, for the graph.

    Parameters, except n_init, and errors are those of gaussian_mixture; rng is for the starts of k-means.
    """
    data, random = standardize_columns(as_data(X)), as_generator(rng)
    if len(data) == 2 and data.any():  # too few points for a graph
        return np.array([1.0, -1.0])
    graph = {"affinity": "nearest_neighbors", "n_neighbors": min(N_NEIGHBORS, len(data) - 1)}
    clustering = SpectralClustering(2, **graph, random_state=int(random.integers(2**31)))
    return fit_quietly(clustering, data)  # disconnected graphs are accepted
