"""2-means on whitened data."""

import time

import numpy as np
import numpy.typing as npt
from scipy.cluster.vq import kmeans2

from diffrac_cvx.baselines.restarts import until_late
from diffrac_cvx.metrics import separation
from diffrac_cvx.points.checks import Array, as_data, as_generator, positive_int
from diffrac_cvx.points.linear_algebra import column_basis


def kmeans_whitened(
    X: npt.ArrayLike,
    *,
    restarts: int = 10,
    rng: np.random.Generator | int,
    max_iter: int = 100,
    time_limit: float | None = None,
) -> Array:
    """Return the labels of 2-means on whitened data, the best of several runs of Lloyd's algorithm, the first at +1.

    The distortion that 2-means minimises there is least where the squared correlation of Eq. (2) is largest: the
    objective is that of alternating_optimisation, the local search is another one.  Each run starts from the centres of
    k-means++ and has max_iter rounds.  The data are whitened once, O(n d^2); a round is O(n d).

    Source: section 2.1 and Figure 4.

    Parameters
    ----------
    X, restarts, rng, max_iter, time_limit
        As for alternating_optimisation.

    Raises
    ------
    DataError, ParameterError
        As for alternating_optimisation.
    """
    started = time.perf_counter()
    Q = column_basis(as_data(X))
    restarts, max_iter = positive_int(restarts, "restarts"), positive_int(max_iter, "max_iter")
    random = as_generator(rng)
    if Q.shape[1] == 0:  # all points are equal
        return np.ones(len(Q))
    # With two centres no round leaves a cluster empty: the mean of a cluster is nearer to its own centre.
    runs = (kmeans2(Q, 2, max_iter, minit="++", rng=random)[1] for _ in range(restarts))
    labels = (np.where(found == found[0], 1.0, -1.0) for found in runs)
    return max(until_late(labels, time_limit, started), key=lambda y: separation(Q, y))
