"""Baselines of `compare`: methods without a relaxation, from data to labels in {-1, +1}, with the first point at +1.

Alternating optimisation and 2-means on whitened data search for labels of largest squared correlation, Eq. (2), and are
invariant under invertible affine maps of the data.  2-means and a Gaussian mixture on standardised columns are
invariant under shifts and rescaling of the columns.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from diffrac_cvx.machine.deadlines import is_late
from diffrac_cvx.metrics import separation
from diffrac_cvx.points.checks import Array, as_data, as_generator, repetitions
from diffrac_cvx.points.constraints import Constraints, chunklets_of
from diffrac_cvx.points.linear_algebra import column_basis, standardize_columns
from diffrac_cvx.rounding.two_clusters import alternate

LLOYD_MAX_ITER = 100  # per run
FULL_COVARIANCE_RATIO = 5  # points per feature at or above which the Gaussians have full covariances

__all__ = ["alternating_optimization", "gaussian_mixture", "kmeans_standardized", "kmeans_whitened"]


def alternating_optimization(
    X: npt.ArrayLike,
    *,
    n_init: int = 10,
    rng: np.random.Generator | int,
    constraints: Constraints | None = None,
) -> Array:
    """Return the labels of largest squared correlation in several alternating runs, the first point at +1.

    Given y, the direction is w = (X'X)^+ X'y; given w, y is the exact 2-means of X w.  A run starts from random labels
    and ends at a fixed point.  A basis of the columns of X is computed once, O(n d^2); an alternation is
    O(n d + n log n).

    Source: Eq. (2) and section 2.1, "Algorithm".

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.
    n_init : int
        Number of runs; default 10.
    rng : numpy.random.Generator or int
        Random generator of the initial labels, or its seed.
    constraints : Constraints, optional
        Must-link and cannot-link constraints and known labels, satisfied in every alternation.  Known labels keep their
        sign, instead of the first point at +1.

    Raises
    ------
    DataError
        If X is invalid.
    ParameterError
        If n_init or rng is invalid.
    """
    Q, random = column_basis(as_data(X)), as_generator(rng)
    chunklets = chunklets_of(constraints, len(Q))

    def run() -> Array:
        start = random.choice([-1.0, 1.0], size=len(Q))
        y = alternate(Q, chunklets.adjust_labels(start, start), chunklets)
        return y if chunklets.has_known_labels else y * y[0]

    return _best_run(Q, run, n_init)


def kmeans_whitened(X: npt.ArrayLike, *, n_init: int = 10, rng: np.random.Generator | int) -> Array:
    """Return the labels of 2-means on whitened data, the best of several runs of Lloyd's algorithm, the first at +1.

    On whitened data, the distortion of 2-means is smallest where the squared correlation of Eq. (2) is largest: this is
    another local search for the objective of alternating_optimization.  Each run starts from k-means++ centres and has
    100 iterations.  The data are whitened once, O(n d^2); an iteration is O(n d).

    Source: section 2.1 and Figure 4.

    Parameters, except constraints, and errors are those of alternating_optimization.
    """
    Q = column_basis(as_data(X))
    return _best_run(Q, partial(_lloyd_run, Q, as_generator(rng)), n_init)


def kmeans_standardized(X: npt.ArrayLike, *, n_init: int = 10, rng: np.random.Generator | int) -> Array:
    """Return the labels of 2-means on columns of unit variance, the best of several runs, the first point at +1.

    Each run starts from k-means++ centres and has 100 iterations of Lloyd's algorithm; the best run has the smallest
    sum of squared distances to the centres.  An iteration is O(n d).

    Parameters
    ----------
    X : (n, d) array
        Data; columns are standardised internally.
    n_init : int
        Number of runs; default 10.
    rng : numpy.random.Generator or int
        Random generator of the initial centres, or its seed.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.
    """
    data = standardize_columns(as_data(X))
    return _best_run(data, partial(_lloyd_run, data, as_generator(rng)), n_init)


def gaussian_mixture(X: npt.ArrayLike, *, n_init: int = 5, rng: np.random.Generator | int) -> Array:
    """Return the labels of a mixture of two Gaussians on columns of unit variance, the first point at +1.

    It uses scikit-learn and returns the run with the largest likelihood.  The covariances are full if there are at
    least five points per feature, O(n d^2) per iteration, otherwise diagonal, O(n d).

    Parameters and errors are those of kmeans_standardized, plus ImportError without scikit-learn.
    """
    data = standardize_columns(as_data(X))
    n_init, random = repetitions(n_init, "n_init"), as_generator(rng)
    from sklearn.mixture import GaussianMixture  # here because scikit-learn is an optional dependency

    covariances = "full" if len(data) >= FULL_COVARIANCE_RATIO * data.shape[1] else "diag"
    seed = int(random.integers(2**31))
    mixture = GaussianMixture(2, covariance_type=covariances, n_init=n_init, random_state=seed)
    return fit_quietly(mixture, data)  # runs that do not converge in 100 iterations are accepted


def fit_quietly(estimator: Any, data: Array) -> Array:
    """Return the labels of a scikit-learn estimator, without its warnings; one cluster if all points are equal."""
    if not data.any():
        return np.ones(len(data))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = estimator.fit_predict(data)
    return np.where(found == found[0], 1.0, -1.0)


def _lloyd_run(data: Array, random: np.random.Generator) -> Array:
    """Return the labels of 2-means from k-means++ centres; if all points are equal, they are one cluster."""
    if not data.any():
        return np.ones(len(data))
    found = scipy.cluster.vq.kmeans2(data, 2, LLOYD_MAX_ITER, minit="++", rng=random)[1]
    return np.where(found == found[0], 1.0, -1.0)


def _best_run(Q: Array, run: Callable[[], Array], n_init: int) -> Array:
    """Return the best labels of the runs; after the deadline only the first run starts."""
    count, found = repetitions(n_init, "n_init"), list[Array]()
    while not found or (len(found) < count and not is_late()):
        found.append(run())
    return max(found, key=lambda y: separation(Q, y))
