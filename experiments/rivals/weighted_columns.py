"""Sparse k-means of Witten and Tibshirani: 2-means with sparse column weights."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import Array, as_data, as_generator, positive_int
from diffrac_cvx.points.linear_algebra import psd_factor, standardize_columns
from experiments.rivals.selection import Selection, as_bound, grid_of_bounds, ranked_columns, sparse_weights

N_ALTERNATIONS = 6
WEIGHTS_RTOL = 1e-4  # relative change of the weights
N_PERMUTATIONS = 10  # permuted tables for the gap statistic
KMEANS_MAX_ITER = 100  # of 2-means with fixed weights


def sparse_kmeans(
    X: npt.ArrayLike, *, bound: float | None = None, n_init: int = 10, rng: np.random.Generator | int
) -> Selection:
    r"""Return the labels of sparse 2-means on columns at unit variance, and the columns with positive weights.

    It maximises over labels y and weights w

    .. math::
        \sum_j w_j b_j(y) \quad \text{subject to} \quad \|w\|_2 \le 1,\ \|w\|_1 \le s,\ w \ge 0,

    with b_j the between-cluster sum of squares of column j.  Given w, it is 2-means of the columns times
    :math:`\sqrt{w_j}`; given y, w is b soft-thresholded and scaled to norm 1.  The best result of six alternations from
    each start is used.  Half of the starts are local optima of 2-means on all columns, half are random labels, and one
    more is the result for the next smaller bound.  The authors start only from the best 2-means on all columns, which
    is a poor start if most columns are irrelevant.

    If the bound is None, it is the one of ten between 1.2 and :math:`0.9 \sqrt d` with the largest gap statistic,
    :math:`\log O(X, s) - \tfrac1B \sum_b \log O(X_b, s)`, with O the optimum and :math:`X_b` one of B = 10 tables with
    the entries of each column permuted.  O(n d) per alternation.

    Source: Witten and Tibshirani, "A framework for feature selection in clustering", JASA 2010, section 3; the grid and
    the number of alternations are those of the authors' R package sparcl, which permutes 25 tables.

    Parameters
    ----------
    X : (n, d) array
        Data; columns are standardised internally.
    bound : float, optional
        Bound s on the l1 norm of the weights, at least 1: about the square root of the number of columns to select.
    n_init : int
        Number of starts for each bound and table; default 10.
    rng : numpy.random.Generator or int
        Random generator of the starts and permutations, or its seed.

    Raises
    ------
    DataError, ParameterError
        If an input is invalid; the message names the value and the remedy.
    """
    data, n_init, random = standardize_columns(as_data(X)), positive_int(n_init, "n_init"), as_generator(rng)
    bounds = None if bound is None else np.array([as_bound(bound)])
    varying = np.flatnonzero(data.any(axis=0))
    if len(varying) == 0:  # all points are equal
        return Selection(np.ones(len(data)), varying)
    data = data[:, varying]
    bounds = grid_of_bounds(len(varying)) if bounds is None else bounds
    found, gaps = _optima(data, bounds, n_init, random), np.zeros(1)
    if len(bounds) > 1:  # the largest gap statistic decides
        tables = (random.permuted(data, axis=0) for _ in range(N_PERMUTATIONS))
        by_chance = [[each.explained for each in _optima(table, bounds, n_init, random)] for table in tables]
        gaps = np.log([each.explained for each in found]) - np.log(by_chance).mean(axis=0)
    best = found[int(np.argmax(gaps))]
    return Selection(best.y * best.y[0], varying[ranked_columns(best.weights)])


class _Weighted(NamedTuple):
    y: Array  # labels, (n,)
    weights: Array  # (d,)
    explained: float  # sum_j w_j b_j


def _optima(data: Array, bounds: Array, n_init: int, random: np.random.Generator) -> list[_Weighted]:
    """Return the best solution from several starts for each of the increasing bounds."""
    starts = _starts(data, n_init, random)
    found: list[_Weighted] = []
    for bound in bounds:  # each solution is a start for the next bound, whose optimum is at least as large
        ends = [_alternate(data, y, bound) for y in [*starts, *(end.y for end in found[-1:])]]
        found.append(max(ends, key=lambda end: end.explained))
    return found


def _starts(data: Array, count: int, random: np.random.Generator) -> list[Array]:
    """Return, alternately, labels of 2-means from two random distinct points and random balanced labels."""
    n, d = data.shape
    points = data if d <= n else psd_factor(data @ data.T)  # same distances
    starts = []
    for i in range(count):
        if i % 2:
            starts.append(np.where(random.permutation(n) < n // 2, 1.0, -1.0))
            continue
        shuffled = random.permutation(points)
        other = np.argmax(np.linalg.norm(shuffled - shuffled[0], axis=1) > 1e-6)
        starts.append(_lloyd(points, np.ones(points.shape[1]), shuffled[0], shuffled[other]))
    return starts


def _alternate(data: Array, y: Array, bound: float) -> _Weighted:
    """Return the labels and weights after alternation from initial labels."""
    weights = sparse_weights(_between(data, y), bound)
    for _ in range(N_ALTERNATIONS - 1):
        y = _lloyd(data, weights, *_means(data, y))
        before, weights = weights, sparse_weights(_between(data, y), bound)
        if np.abs(weights - before).sum() <= WEIGHTS_RTOL * before.sum():
            break
    return _Weighted(y, weights, float(weights @ _between(data, y)))


def _means(data: Array, y: Array) -> tuple[Array, Array]:
    """Return the means of the points labelled +1 and -1; the columns are centred."""
    plus = (y > 0.0).astype(float)
    k = plus.sum()
    total = plus @ data
    return total / k, -total / (len(y) - k)


def _between(data: Array, y: Array) -> Array:
    """Return the between-cluster sum of squares of each centred column, (d,)."""
    plus, minus = _means(data, y)
    return np.asarray(np.count_nonzero(y > 0) * plus**2 + np.count_nonzero(y < 0) * minus**2)


def _lloyd(data: Array, weights: Array, plus: Array, minus: Array) -> Array:
    """Return the labels of 2-means with column weights, started from two distinct centres."""
    y = np.zeros(len(data))
    for _ in range(KMEANS_MAX_ITER):  # none empties a cluster: the mean of a cluster is nearer to its own centre
        direction, middle = weights * (plus - minus), (plus + minus) / 2
        before, y = y, np.where(data @ direction >= middle @ direction, 1.0, -1.0)
        if np.array_equal(y, before):
            break
        plus, minus = _means(data, y)
    return y
