"""Alternating optimisation of Eq. (2) from random labels."""

import time
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from diffrac_cvx.baselines.restarts import until_late
from diffrac_cvx.metrics import separation
from diffrac_cvx.points.checks import Array, as_data, as_generator, positive_int
from diffrac_cvx.points.linear_algebra import column_basis
from diffrac_cvx.rounding.alternation import alternate


def alternating_optimisation(
    X: npt.ArrayLike,
    *,
    restarts: int = 10,
    rng: np.random.Generator | int,
    max_iter: int = 100,
    time_limit: float | None = None,
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
    time_limit : float, optional
        Seconds after which no further run is started.

    Raises
    ------
    DataError
        If X cannot be used as given.
    ParameterError
        If restarts, rng, max_iter or time_limit is not valid.
    """
    started = time.perf_counter()
    Q = column_basis(as_data(X))
    runs = until_late(_run_alternations(Q, restarts, rng, max_iter), time_limit, started)
    return max(runs, key=lambda y: separation(Q, y))


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
