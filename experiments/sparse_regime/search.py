"""The least number of points at which a replication is recovered, by bisection on its own stream."""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

RATIO = 1.07  # between neighbours on the ladder of n: half of it is the error of a boundary
STRIDE = 4  # rungs a step, until success and failure are both met


class Answer(Enum):
    """What a trial says; the value is its mark in the table."""

    RECOVERED = "+"
    FAILED = "-"
    UNDECIDED = "?"  # the time limit was reached: taken as failed


class Search(NamedTuple):
    """The least n of the ladder that is recovered.

    Attributes
    ----------
    points : int
        That n; the last of the ladder where even that fails.
    outside : int
        1 where the last fails, -1 where the first succeeds, else 0.
    undecided : int
        Trials that reached their time limit.
    tried : str
        Every trial, in its order: n and its mark.
    """

    points: int
    outside: int
    undecided: int
    tried: str


def ladder(first: int, last: int) -> npt.NDArray[np.int64]:
    """Return even numbers from first to last, each about `RATIO` times the one before."""
    steps = int(np.log(last / first) / np.log(RATIO)) + 1
    rungs = np.unique(2 * np.round(np.geomspace(first, last, steps + 1) / 2)).astype(np.int64)
    return np.unique(rungs[(rungs >= 4) & (rungs <= last)])


def least_points(answer: Callable[[int], Answer], rungs: npt.NDArray[np.int64], guess: float) -> Search:
    """Return the least rung that is recovered, if more points never hurt; strides from a guess, then bisection."""
    known: dict[int, Answer] = {}

    def recovered(i: int) -> bool:
        known[i] = known.get(i) or answer(int(rungs[i]))
        return known[i] is Answer.RECOVERED

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
    tried = " ".join(f"{rungs[i]}{mark.value}" for i, mark in known.items())
    undecided = sum(mark is Answer.UNDECIDED for mark in known.values())
    return Search(int(rungs[min(high, top)]), 1 if high > top else -1 if high == 0 else 0, undecided, tried)
