"""Smallest number of points at which a replication is recovered, by bisection on its own data stream."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

RATIO = 1.07  # of neighbouring n on the grid: half of a step is the error of a boundary
STRIDE = 4  # grid points per step, until both success and failure occur


class Search(NamedTuple):
    """Smallest n of the grid at which a replication is recovered.

    Attributes
    ----------
    points : int
        This n; the last of the grid if even that fails.
    outside : int
        1 if the last fails, -1 if the first succeeds, else 0.
    """

    points: int
    outside: int


def ladder(first: int, last: int) -> npt.NDArray[np.int64]:
    """Return even numbers from first to last, each about `RATIO` times the previous one."""
    steps = int(np.log(last / first) / np.log(RATIO)) + 1
    rungs = np.unique(2 * np.round(np.geomspace(first, last, steps + 1) / 2)).astype(np.int64)
    return np.unique(rungs[(rungs >= 4) & (rungs <= last)])


def least_points(succeeds: Callable[[int], bool], rungs: npt.NDArray[np.int64], guess: float) -> Search:
    """Return the smallest n that succeeds if more points never hurt; steps from a guess, then bisection."""
    recovered = cache(lambda i: succeeds(int(rungs[i])))
    top = len(rungs) - 1
    i = int(np.clip(np.searchsorted(rungs, guess), 0, top))
    low, high = -1, top + 1  # fails at low, succeeds at high
    if recovered(i):
        high = i
        while high > 0 and recovered(max(high - STRIDE, 0)):
            high = max(high - STRIDE, 0)
        low = max(high - STRIDE, 0) if high > 0 else -1
    else:
        low = i
        while low < top and not recovered(min(low + STRIDE, top)):
            low = min(low + STRIDE, top)
        high = min(low + STRIDE, top) if low < top else top + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if recovered(middle) else (middle, high)
    return Search(int(rungs[min(high, top)]), 1 if high > top else -1 if high == 0 else 0)
