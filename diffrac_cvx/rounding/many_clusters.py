"""From a factor F, or from any points, to more than two clusters: k-means."""

import numpy as np
import numpy.typing as npt

from diffrac_cvx.machine.time_budget import is_late
from diffrac_cvx.points.checks import Array, as_generator, as_matrix, positive_int
from diffrac_cvx.points.linear_algebra import row_products
from diffrac_cvx.points.weights import mean_of, weigh_rows

MOST_ROUNDS = 300

Clusters = npt.NDArray[np.int64]


def kmeans_clusters(
    F: npt.ArrayLike,
    k: int,
    *,
    restarts: int = 10,
    rng: np.random.Generator | int = 0,
    shares: Array | None = None,
) -> Clusters:
    r"""Return clusters 0, ..., k - 1 of the rows of F by k-means, the best of several starts.

    The relaxation does not depend on the number of clusters: Y = F F' of Eq. (8) is, up to :math:`\tfrac1k 1 1^\top`
    and a factor, the matrix that is 1 for two points of one cluster and 0 else.  Each run is Lloyd's algorithm from
    centres drawn as in k-means++.  Clusters are numbered by their first point; there are fewer than k where fewer rows
    are distinct.

    Source: section 4.

    Parameters
    ----------
    F : (n, r) array
        Factor of Y = F F', or any points.
    k : int
        Number of clusters.
    restarts : int
        Number of starts.
    rng : numpy.random.Generator or int
        Generator, or its seed.
    shares : (n,) array, optional
        Shares of the points of the total weight, positive, of sum 1; equal ones if None.

    Raises
    ------
    DataError, ParameterError
        If F is not a finite matrix, or k, restarts or rng is not valid.
    """
    points, k, restarts = as_matrix(F, "F"), positive_int(k, "k"), positive_int(restarts, "restarts")
    points = points / (float(np.abs(points).max()) or 1.0)
    points = points - mean_of(points, shares)
    random = as_generator(rng)
    runs: list[Clusters] = []
    while not runs or (len(runs) < restarts and not is_late()):
        runs.append(lloyd(points, draw_centres(points, k, random, shares), shares))
    return renumber(min(runs, key=lambda found: distortion(points, found, shares)))


def lloyd(points: Array, centres: Array, shares: Array | None = None) -> Clusters:
    """Assign points to centres and centres to means in turn until nothing changes; a centre left alone is dropped."""
    found = nearest(points, centres)
    for _ in range(MOST_ROUNDS):
        centres = means_of(points, found, shares)
        again = nearest(points, centres)
        if np.array_equal(found, again) or is_late():
            break
        found = again
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def nearest(points: Array, centres: Array) -> Clusters:
    """Return the number of the centre nearest to each point, the first of equally near ones."""
    return np.asarray(np.argmax(points @ centres.T - row_products(centres, centres) / 2.0, axis=1)).astype(np.int64)


def means_of(points: Array, clusters: Clusters, shares: Array | None = None) -> Array:
    """Return the means of the clusters that have points, in the order of their numbers."""
    indicators = (clusters == np.unique(clusters)[:, None]).astype(np.float64)
    indicators = indicators if shares is None else indicators * shares
    return np.asarray(indicators @ points / indicators.sum(axis=1, keepdims=True))


def distortion(points: Array, clusters: Clusters, shares: Array | None = None) -> float:
    """Return the sum of squared distances to the means of the clusters, numbered from 0 without a hole."""
    return float(np.sum(weigh_rows(points - means_of(points, clusters, shares)[clusters], shares) ** 2))


def renumber(clusters: Clusters) -> Clusters:
    """Return the same clusters, numbered in the order of their first points."""
    _, first, inverse = np.unique(clusters, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse]).astype(np.int64)


def draw_centres(points: Array, k: int, random: np.random.Generator, shares: Array | None = None) -> Array:
    """Return up to k distinct points as centres: each further one with probability as its squared distance.

    Where the points have shares, probabilities are in proportion to these too.  The same random numbers are used for
    whole weights as for points that are repeated: NumPy draws a number below n as the integer part of n r / 2^32, with
    r of 32 bits.
    """
    if shares is None:
        chosen = [int(random.integers(len(points)))]
    else:  # the first point up to which the shares add up to more than a number in [0, 1)
        first = np.searchsorted(np.cumsum(shares), random.integers(2**32) / 2.0**32, side="right")
        chosen = [min(int(first), len(points) - 1)]
    far = np.sum((points - points[chosen[0]]) ** 2, axis=1)
    smallest = 1e-24 * float(np.max(far, initial=0.0))
    while len(chosen) < k and far.max() > smallest:
        weighed = far if shares is None else far * shares
        chosen.append(int(random.choice(len(points), p=weighed / weighed.sum())))
        far = np.minimum(far, np.sum((points - points[chosen[-1]]) ** 2, axis=1))
    return points[chosen]
