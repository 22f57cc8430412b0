"""Local search for labels of large squared correlation, Eq. (2), over all directions or single columns."""

import time
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import scipy

from diffrac_cvx.metrics import separation
from diffrac_cvx.points.checks import Array, as_data, as_generator, positive, positive_int
from diffrac_cvx.points.constraints import Constraints, chunklets_of
from diffrac_cvx.points.linear_algebra import column_basis
from diffrac_cvx.rounding.two_clusters import alternate, kmeans_1d


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

    Source: Eq. (2), section 2.1.

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


def alternating_runs(
    X: npt.ArrayLike, *, n_init: int = 10, rng: np.random.Generator | int, max_iter: int = 100
) -> list[Array]:
    """Return the labels of each run of alternating optimisation, from random labels to a fixed point.

    Given y, the direction is w = (X'X)^+ X'y; given w, y is the exact 2-means of X w.  A basis of the columns of X is
    computed once, O(n d^2); an alternation is O(n d + n log n).

    Source: section 2.1, "Algorithm".  Table 1 of the paper averages over ten runs.

    Parameters and errors are those of alternating_optimization.
    """
    return list(_run_alternations(column_basis(as_data(X)), n_init, rng, max_iter))


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
    n_init, max_iter = positive_int(n_init, "n_init"), positive_int(max_iter, "max_iter")
    random = as_generator(rng)
    if Q.shape[1] == 0:  # all points are equal
        return np.ones(len(Q))
    # With two centres no iteration empties a cluster: the mean of a cluster is nearer to its own centre.
    runs = (scipy.cluster.vq.kmeans2(Q, 2, max_iter, minit="++", rng=random)[1] for _ in range(n_init))
    return _best_until_deadline(Q, (np.where(found == found[0], 1.0, -1.0) for found in runs), time_limit, started)


def best_single_column(X: npt.ArrayLike) -> Array:
    r"""Return the labels of exact 2-means on the column that two clusters explain best, the first point at +1.

    The labels of column j maximise the squared correlation :math:`(y^\top x_j)^2 / (\|\Pi_n y\|_2^2 \|x_j\|_2^2)`, so
    the best of them solve Eq. (2) over all y and all w with one nonzero entry.  The first of equally good columns is
    used; a constant column has a squared correlation of 0.  O(n d log n).

    Source: section 5.2, "1-sparse".

    Parameters
    ----------
    X : (n, d) array
        Data; centred internally.

    Raises
    ------
    DataError
        If X is invalid.
    """
    columns = as_data(X).T
    found = [kmeans_1d(column) for column in columns]
    units = [column / (float(np.linalg.norm(column)) or 1.0) for column in columns]  # 0 for a constant one
    best = int(np.argmax([separation(unit[:, None], y) for unit, y in zip(units, found, strict=True)]))
    return found[best]


def _run_alternations(
    Q: Array, n_init: int, rng: np.random.Generator | int, max_iter: int, constraints: Constraints | None = None
) -> Iterator[Array]:
    n_init, max_iter = positive_int(n_init, "n_init"), positive_int(max_iter, "max_iter")
    random, chunklets = as_generator(rng), chunklets_of(constraints, len(Q))
    for _ in range(n_init):
        start = random.choice([-1.0, 1.0], size=len(Q))
        y = alternate(Q, chunklets.adjust_labels(start, start), max_iter, chunklets)
        yield y if chunklets.labeled >= 0 else y * y[0]


def _best_until_deadline(Q: Array, runs: Iterable[Array], time_limit: float | None, started: float) -> Array:
    """Return the best labels of the runs, at least one; no run starts later than time_limit after `started`."""
    limit = np.inf if time_limit is None else positive(time_limit, "time_limit")
    found = []
    for y in runs:
        found.append(y)
        if time.perf_counter() - started >= limit:
            break
    return max(found, key=lambda y: separation(Q, y))
