"""Spectral clustering of standardised columns."""

import warnings

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import Array, as_data, as_generator
from diffrac_cvx.points.linear_algebra import standardise

NEIGHBOURS = 10  # of each point, itself among them


def spectral(X: npt.ArrayLike, *, rng: np.random.Generator | int) -> Array:
    """Return the labels of spectral clustering of the nearest neighbours, columns at unit variance, the first at +1.

    By scikit-learn: two clusters from the normalised Laplacian of the graph that joins each point to its ten nearest.
    O(n^2 d).

    Source: Ng, Jordan and Weiss, "On spectral clustering", NIPS 2001; von Luxburg, "A tutorial on spectral
    clustering", 2007, for the graph.

    Parameters
    ----------
    X : (n, d) array
        Data; brought to unit variance here.
    rng : Generator or int
        Of the starts of k-means, or its seed.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.
    ImportError
        If scikit-learn is not installed.
    """
    data, random = standardise(as_data(X)).X, as_generator(rng)
    try:
        from sklearn.cluster import SpectralClustering
    except ImportError:
        raise ImportError("it needs scikit-learn: pip install 'diffrac-cvx[app]'") from None
    if not data.any():  # all points are equal
        return np.ones(len(data))
    if len(data) == 2:  # no graph to speak of
        return np.array([1.0, -1.0])
    clustering = SpectralClustering(
        2,
        affinity="nearest_neighbors",
        n_neighbors=min(NEIGHBOURS, len(data) - 1),
        random_state=int(random.integers(2**31)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a graph of several parts is taken as it is
        found = clustering.fit_predict(data)
    return np.where(found == found[0], 1.0, -1.0)
