"""Local search for labels of large squared correlation, Eq. (2): over all directions, or over single columns."""

import time
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import scipy

from diffrac_cvx.metrics import separation
from diffrac_cvx.points.checks import Array, as_data, as_generator, positive, positive_int
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.points.linear_algebra import column_basis
from diffrac_cvx.rounding.two_clusters import alternate, apply_constraints, kmeans_1d


def alternating_optimization(
    X: npt.ArrayLike,
    *,
    n_init: int = 10,
    rng: np.random.Generator | int,
    max_iter: int = 100,
    time_limit: float | None = None,
    constraints: Constraints | None = None,
) -> Array:
    """Return the labels of largest squared correlation among the runs of alternating_runs, the first point at +1.

    Source: Eq. (2), section 2.1.

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.
    n_init : int
        Number of runs.
    rng : numpy.random.Generator or int
        Generator, or its seed.
    max_iter : int
        Most rounds of alternation in a run.
    time_limit : float, optional
        Seconds after which no further run is started.
    constraints : Constraints, optional
        What is known of some points, which the labels of every round obey; known labels are as they are.

    Raises
    ------
    DataError
        If X cannot be used as given.
    ParameterError
        If restarts, rng, max_iter or time_limit is not valid.
    """
    started = time.perf_counter()
    Q = column_basis(as_data(X))
    return _best_until_deadline(Q, _run_alternations(Q, n_init, rng, max_iter, constraints), time_limit, started)


def alternating_runs(
    X: npt.ArrayLike, *, n_init: int = 10, rng: np.random.Generator | int, max_iter: int = 100
) -> list[Array]:
    """Return the labels of each run of alternating optimisation, from random labels to a fixed point.

    Given y, the direction is w = (X'X)^+ X'y; given w, y is the exact 2-means of X w.  A basis of the columns of X is
    computed once, O(n d^2); a round is O(n d + n log n).

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

    The distortion that 2-means minimises there is least where the squared correlation of Eq. (2) is largest: the
    objective is that of alternating_optimization, the local search is another one.  Each run starts from the centres of
    k-means++ and has max_iter rounds.  The data are whitened once, O(n d^2); a round is O(n d).

    Source: section 2.1 and Figure 4.

    Parameters and errors are those of alternating_optimization.
    """
    started = time.perf_counter()
    Q = column_basis(as_data(X))
    n_init, max_iter = positive_int(n_init, "n_init"), positive_int(max_iter, "max_iter")
    random = as_generator(rng)
    if Q.shape[1] == 0:  # all points are equal
        return np.ones(len(Q))
    # With two centres no round leaves a cluster empty: the mean of a cluster is nearer to its own centre.
    runs = (scipy.cluster.vq.kmeans2(Q, 2, max_iter, minit="++", rng=random)[1] for _ in range(n_init))
    return _best_until_deadline(Q, (np.where(found == found[0], 1.0, -1.0) for found in runs), time_limit, started)


def best_single_column(X: npt.ArrayLike) -> Array:
    r"""Return the labels of exact 2-means on the column that two clusters explain best, the first point at +1.

    The labels of column j maximise the squared correlation :math:`(y^\top x_j)^2 / (\|\Pi_n y\|_2^2 \|x_j\|_2^2)`, so
    the best of them solve Eq. (2) over all y and all w with one nonzero entry.  Among equally good columns the first is
    taken; a constant column explains nothing.  O(n d log n).

    Source: section 5.2, "1-sparse".

    Parameters
    ----------
    X : (n, d) array
        Data; centred here.

    Raises
    ------
    DataError
        If X cannot be used as given.
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
    random = as_generator(rng)
    for _ in range(n_init):
        y = alternate(Q, apply_constraints(random.choice([-1.0, 1.0], size=len(Q)), constraints), max_iter, constraints)
        yield y if constraints is not None and constraints.labels is not None else y * y[0]


def _best_until_deadline(Q: Array, runs: Iterable[Array], time_limit: float | None, started: float) -> Array:
    """Return the best labels of the runs, at least one, that end until so many seconds after `started`."""
    limit = np.inf if time_limit is None else positive(time_limit, "time_limit")
    found = []
    for y in runs:
        found.append(y)
        if time.perf_counter() - started >= limit:
            break
    return max(found, key=lambda y: separation(Q, y))
