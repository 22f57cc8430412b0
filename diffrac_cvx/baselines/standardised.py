"""What most people would try first: 2-means and a mixture of two Gaussians, on columns at unit variance."""

import warnings

import numpy as np
import numpy.typing as npt
from scipy.cluster.vq import kmeans2

from diffrac_cvx.points.checks import Array, as_data, as_generator, positive_int
from diffrac_cvx.points.linear_algebra import standardise

ROUNDS = 100  # of one run
ENOUGH = 5  # points for each feature, above which the Gaussians have full covariances


def kmeans_standardised(X: npt.ArrayLike, *, restarts: int = 10, rng: np.random.Generator | int) -> Array:
    """Return the labels of 2-means on columns at unit variance, the best of several runs, the first point at +1.

    Each run starts from the centres of k-means++ and has a hundred rounds of Lloyd's algorithm; the best run has the
    least sum of squared distances to the centres.  A round is O(n d).

    Parameters
    ----------
    X : (n, d) array
        Data; brought to unit variance here.
    restarts : int
        Number of runs.
    rng : Generator or int
        Of the starts, or its seed.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.
    """
    data = standardise(as_data(X)).X
    restarts, random = positive_int(restarts, "restarts"), as_generator(rng)
    if not data.any():  # all points are equal
        return np.ones(len(data))
    best, least = np.ones(len(data)), np.inf
    for _ in range(restarts):
        centres, found = kmeans2(data, 2, ROUNDS, minit="++", rng=random)
        distortion = float(np.sum((data - centres[found]) ** 2))
        if distortion < least:
            best, least = np.where(found == found[0], 1.0, -1.0), distortion
    return best


def gaussian_mixture(X: npt.ArrayLike, *, restarts: int = 5, rng: np.random.Generator | int) -> Array:
    """Return the labels of a mixture of two Gaussians on columns at unit variance, the first point at +1.

    By scikit-learn, the likeliest of several runs.  The Gaussians have full covariances where there are at least five
    points for each feature, O(n d^2) a round, and diagonal ones, O(n d), where there are fewer.

    Parameters
    ----------
    X, restarts, rng
        As for kmeans_standardised.

    Raises
    ------
    DataError, ParameterError
        If an input is not usable; the message names the value and the remedy.
    ImportError
        If scikit-learn is not installed.
    """
    data = standardise(as_data(X)).X
    restarts, random = positive_int(restarts, "restarts"), as_generator(rng)
    try:
        from sklearn.mixture import GaussianMixture
    except ImportError:
        raise ImportError("it needs scikit-learn: pip install 'diffrac-cvx[app]'") from None
    if not data.any():  # all points are equal
        return np.ones(len(data))
    mixture = GaussianMixture(
        n_components=2,
        covariance_type="full" if len(data) >= ENOUGH * data.shape[1] else "diag",
        n_init=restarts,
        random_state=int(random.integers(2**31)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run of a hundred rounds is taken as it is
        found = mixture.fit_predict(data)
    return np.where(found == found[0], 1.0, -1.0)
