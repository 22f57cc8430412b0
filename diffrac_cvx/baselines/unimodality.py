"""Hartigan's dip: how far a sample is from every unimodal distribution."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.points.checks import Array

Indices = npt.NDArray[np.intp]


def dip(values: Array) -> float:
    r"""Return the least distance, :math:`\sup_t |F_n(t) - G(t)|`, of the sample's distribution to a unimodal one, G.

    It is between 1/(2n) and 1/4, which is that of two values with half of the points each; for points that are all
    equal it is set to 1/(2n).  An interval that holds the mode shrinks for as long as the greatest convex minorant and
    the least concave majorant of the empirical distribution on it are further apart than what its ends cost.  O(n) a
    round, after sorting.

    Source: Hartigan and Hartigan, "The dip test of unimodality", Annals of Statistics 1985, section 3.
    """
    x, counts = np.unique(values, return_counts=True)
    top = np.cumsum(counts) / len(values)  # of the steps of the empirical distribution
    bottom = top - counts / len(values)
    twice, low, high = 1.0 / len(values), 0, len(x) - 1
    while low < high:
        minorant, majorant = _minorant(x, bottom, low, high), _minorant(x, -top, low, high)
        left, right, apart = _widest_gap(minorant, _Hull(majorant.vertices, -majorant.heights))
        if apart <= twice:
            break
        before = top[low:left] - minorant.heights[low:left]  # the mode may have a step of its own
        after = -majorant.heights[right + 1 : high + 1] - bottom[right + 1 : high + 1]
        twice = max([twice, *before, *after])
        if (left, right) == (low, high):
            break
        low, high = left, right
    return float(twice) / 2


class _Hull(NamedTuple):
    vertices: Indices
    heights: Array  # at all points, meaningful on the interval


def _minorant(x: Array, f: Array, low: int, high: int) -> _Hull:
    """Return the greatest convex function below f at the points low to high."""
    hull: list[int] = []
    for i in range(low, high + 1):
        while len(hull) > 1 and not _turns_up(x, f, hull[-2], hull[-1], i):
            hull.pop()
        hull.append(i)
    vertices = np.array(hull)
    return _Hull(vertices, np.interp(x, x[vertices], f[vertices]))


def _turns_up(x: Array, f: Array, i: int, j: int, k: int) -> bool:
    """Return whether the slope from i to j is less than that from j to k."""
    return bool((f[j] - f[i]) * (x[k] - x[j]) < (f[k] - f[j]) * (x[j] - x[i]))


def _widest_gap(minorant: _Hull, majorant: _Hull) -> tuple[int, int, float]:
    """Return the vertices, one of each, around the largest difference at a vertex, and that difference."""
    below, above = minorant.vertices, majorant.vertices
    difference = majorant.heights - minorant.heights
    i, j = below[np.argmax(difference[below])], above[np.argmax(difference[above])]
    if difference[i] > difference[j]:
        return int(i), int(above[above >= i].min()), float(difference[i])
    return int(below[below <= j].max()), int(j), float(difference[j])
