"""Local search for labels of large squared correlation, Eq. (2): alternation and 2-means."""

import time
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import scipy

from diffrac_cvx.metrics import separation
from diffrac_cvx.points.checks import Array, as_data, as_generator, positive, positive_int
from diffrac_cvx.points.constraints import Constraints, chunklets_of
from diffrac_cvx.points.linear_algebra import column_basis, standardize_columns
from diffrac_cvx.rounding.two_clusters import alternate

LLOYD_MAX_ITER = 100  # per run on standardised columns


def alternating_optimization(
    X: npt.ArrayLike,
    *,
    n_init: int = 10,
    rng: np.random.Generator | int,
    max_iter: int = 100,
    time_limit: float | None = None,
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
    max_iter : int
        Maximum number of alternations per run; default 100.
    time_limit : float, optional
        Time in seconds after which no new run starts.
    constraints : Constraints, optional
        Must-link and cannot-link constraints and known labels, satisfied in every alternation.  Known labels keep their
        sign, instead of the first point at +1.

    Raises
    ------
    DataError
        If X is invalid.
    ParameterError
        If n_init, rng, max_iter or time_limit is invalid.
    """
    started = time.perf_counter()
    Q = column_basis(as_data(X))
    return _best_until_deadline(Q, _run_alternations(Q, n_init, rng, max_iter, constraints), time_limit, started)


def kmeans_whitened(
    X: npt.ArrayLike,
    *,
    n_init: int = 10,
    rng: np.random.Generator | int,
    max_iter: int = 100,
    time_limit: float | None = None,
) -> Array:
    """Return the labels of 2-means on whitened data, the best of several runs of Lloyd's algorithm, the first at +1.

    On whitened data, the distortion of 2-means is smallest where the squared correlation of Eq. (2) is largest: this is
    another local search for the objective of alternating_optimization.  Each run starts from k-means++ centres and has
    max_iter iterations.  The data are whitened once, O(n d^2); an iteration is O(n d).

    Source: section 2.1 and Figure 4.

    Parameters and errors are those of alternating_optimization.
    """
    started = time.perf_counter()
    Q = column_basis(as_data(X))
    return _best_until_deadline(Q, _lloyd_runs(Q, n_init, rng, max_iter), time_limit, started)


def kmeans_standardized(X: npt.ArrayLike, *, n_init: int = 10, rng: np.random.Generator | int) -> Array:
    """Return the labels of 2-means on columns at unit variance, the best of several runs, the first point at +1.

    Each run starts from k-means++ centres and has 100 iterations of Lloyd's algorithm; the best run has the smallest
    sum of squared distances to the centres.  An iteration is O(n d).

    Parameters
    ----------
    X : (n, d) array
        Data; columns are standardised internally.
    n_init : int
        Number of runs; default 10.
    rng : numpy.random.Generator or int
        Random generator of the starts, or its seed.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.
    """
    data = standardize_columns(as_data(X))
    return max(_lloyd_runs(data, n_init, rng, LLOYD_MAX_ITER), key=lambda y: separation(data, y))


def _run_alternations(
    Q: Array, n_init: int, rng: np.random.Generator | int, max_iter: int, constraints: Constraints | None = None
) -> Iterator[Array]:
    n_init, max_iter = positive_int(n_init, "n_init"), positive_int(max_iter, "max_iter")
    random, chunklets = as_generator(rng), chunklets_of(constraints, len(Q))
    for _ in range(n_init):
        start = random.choice([-1.0, 1.0], size=len(Q))
        y = alternate(Q, chunklets.adjust_labels(start, start), max_iter, chunklets)
        yield y if chunklets.labeled >= 0 else y * y[0]


def _lloyd_runs(data: Array, n_init: int, rng: np.random.Generator | int, max_iter: int) -> Iterator[Array]:
    n_init, max_iter, random = positive_int(n_init, "n_init"), positive_int(max_iter, "max_iter"), as_generator(rng)
    for _ in range(n_init):
        # With two centres no iteration empties a cluster: the mean of a cluster is nearer to its own centre.
        found = (
            scipy.cluster.vq.kmeans2(data, 2, max_iter, minit="++", rng=random)[1] if data.any() else np.ones(len(data))
        )
        yield np.where(found == found[0], 1.0, -1.0)


def _best_until_deadline(Q: Array, runs: Iterable[Array], time_limit: float | None, started: float) -> Array:
    """Return the best labels of the runs, at least one; no run starts later than time_limit after `started`."""
    limit = np.inf if time_limit is None else positive(time_limit, "time_limit")
    found = []
    for y in runs:
        found.append(y)
        if time.perf_counter() - started >= limit:
            break
    return max(found, key=lambda y: separation(Q, y))
