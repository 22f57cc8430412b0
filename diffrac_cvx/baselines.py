"""Methods without a relaxation, to compare with: alternating optimisation, and 2-means on whitened data."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.cluster.vq import kmeans2

from diffrac_cvx.inputs import Array, as_data, as_generator, positive_int
from diffrac_cvx.linalg import column_basis
from diffrac_cvx.metrics import separation
from diffrac_cvx.rounding.alternation import alternate


def alternating_optimisation(
    X: npt.ArrayLike, *, restarts: int = 10, rng: np.random.Generator | int, max_iter: int = 100
) -> Array:
    """Return the labels of largest squared correlation among the runs of alternating_runs, the first point at +1.

    Source: Eq. (2), section 2.1.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    restarts : int
        Number of runs.
    rng : numpy.random.Generator or int
        Generator, or its seed.
    max_iter : int
        Most rounds of alternation in a run.

    Raises
    ------
    DataError
        If X cannot be used as given.
    ParameterError
        If restarts, rng or max_iter is not valid.
    """
    Q = column_basis(as_data(X))
    return max(_run_alternations(Q, restarts, rng, max_iter), key=lambda y: separation(Q, y))


def alternating_runs(
    X: npt.ArrayLike, *, restarts: int = 10, rng: np.random.Generator | int, max_iter: int = 100
) -> list[Array]:
    """Return the labels of each run of alternating optimisation, from random labels to a fixed point.

    Given y, the direction is w = (X'X)^+ X'y; given w, y is the exact 2-means of X w.  A basis of the columns of X is
    computed once, O(n d^2); a round is O(n d + n log n).

    Source: section 2.1, "Algorithm".  Table 1 of the paper averages over ten runs.

    Parameters
    ----------
    X, restarts, rng, max_iter
        As for alternating_optimisation.

    Raises
    ------
    DataError, ParameterError
        As for alternating_optimisation.
    """
    return list(_run_alternations(column_basis(as_data(X)), restarts, rng, max_iter))


def _run_alternations(Q: Array, restarts: int, rng: np.random.Generator | int, max_iter: int) -> Iterator[Array]:
    restarts, max_iter = positive_int(restarts, "restarts"), positive_int(max_iter, "max_iter")
    random = as_generator(rng)
    for _ in range(restarts):
        y = alternate(Q, random.choice([-1.0, 1.0], size=len(Q)), max_iter)
        yield y * y[0]


def kmeans_whitened(
    X: npt.ArrayLike, *, restarts: int = 10, rng: np.random.Generator | int, max_iter: int = 100
) -> Array:
    """Return the labels of 2-means on whitened data, the best of several runs of Lloyd's algorithm, the first at +1.

    The distortion that 2-means minimises there is least where the squared correlation of Eq. (2) is largest: the
    objective is that of alternating_optimisation, the local search is another one.  Each run starts from the centres of
    k-means++ and has max_iter rounds.  The data are whitened once, O(n d^2); a round is O(n d).

    Source: section 2.1 and Figure 4.

    Parameters
    ----------
    X, restarts, rng, max_iter
        As for alternating_optimisation.

    Raises
    ------
    DataError, ParameterError
        As for alternating_optimisation.
    """
    Q = column_basis(as_data(X))
    restarts, max_iter = positive_int(restarts, "restarts"), positive_int(max_iter, "max_iter")
    random = as_generator(rng)
    if Q.shape[1] == 0:  # all points are equal
        return np.ones(len(Q))
    # With two centres no round leaves a cluster empty: the mean of a cluster is nearer to its own centre.
    runs = (kmeans2(Q, 2, max_iter, minit="++", rng=random)[1] for _ in range(restarts))
    return max((np.where(found == found[0], 1.0, -1.0) for found in runs), key=lambda y: separation(Q, y))
