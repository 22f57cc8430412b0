"""What the relaxations are compared with: alternating optimisation, and 2-means on whitened data."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

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
    return max(_runs(Q, restarts, rng, max_iter), key=lambda y: separation(Q, y))


def alternating_runs(
    X: npt.ArrayLike, *, restarts: int = 10, rng: np.random.Generator | int, max_iter: int = 100
) -> list[Array]:
    """Return the labels of each run of alternating optimisation, from random labels to a fixed point.

    Given y, the direction is w = (X'X)^+ X'y; given w, y is the exact 2-means of X w.  One basis of the columns of X
    serves all the runs, O(n d^2); a round is O(n d + n log n).

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
    return list(_runs(column_basis(as_data(X)), restarts, rng, max_iter))


def _runs(Q: Array, restarts: int, rng: np.random.Generator | int, max_iter: int) -> Iterator[Array]:
    restarts, max_iter = positive_int(restarts, "restarts"), positive_int(max_iter, "max_iter")
    random = as_generator(rng)
    for _ in range(restarts):
        y = alternate(Q, random.choice([-1.0, 1.0], size=len(Q)), max_iter)
        yield y * y[0]


def kmeans_whitened(
    X: npt.ArrayLike, *, restarts: int = 10, rng: np.random.Generator | int, max_iter: int = 100
) -> Array:
    """Return the labels of 2-means on whitened data, the best of several runs of Lloyd's algorithm, the first at +1.

    The distortion that 2-means minimises there is least where the squared correlation of Eq. (2) is largest: it has the
    objective of alternating_optimisation, and another local search.  The two first centres of a run are points, the
    second drawn with weights ||x - x_1||^2.  One whitening serves all the runs, O(n d^2); a round is O(n d).

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
    runs = [_lloyd(Q, random, max_iter) for _ in range(restarts)]
    best = max(runs, key=lambda y: separation(Q, y))
    return best if best[0] > 0.0 else -best


def _lloyd(Q: Array, random: np.random.Generator, max_iter: int) -> Array:
    first = Q[random.integers(len(Q))]
    weights = np.sum((Q - first) ** 2, axis=1)
    if not weights.any():
        return np.ones(len(Q))
    y = _nearer(Q, first, Q[random.choice(len(Q), p=weights / weights.sum())])
    for _ in range(max_iter):
        new = _nearer(Q, Q[y > 0].mean(axis=0), Q[y < 0].mean(axis=0))
        if abs(new.sum()) == len(Q) or np.array_equal(new, y):
            break
        y = new
    return y


def _nearer(Q: Array, centre: Array, other: Array) -> Array:
    """Return +1 where a point is nearer to a centre than to another, else -1."""
    return np.where(Q @ (centre - other) >= (centre @ centre - other @ other) / 2, 1.0, -1.0)
