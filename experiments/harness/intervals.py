"""Intervals of what is fitted: the bootstrap over replications, percentiles of a fixed number of draws."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from diffrac_cvx.typing import Array

DRAWS = 400
LEVEL = 0.95


class Interval(NamedTuple):
    """A number with its interval at `LEVEL`; NaN where it is not determined."""

    value: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        """Write the number and its interval, each in the given format."""
        if not np.isfinite(self.value):
            return "not determined"
        return f"{self.value:{spec}} ({self.low:{spec}} to {self.high:{spec}})"

    def within(self, low: float, high: float) -> bool:
        """Whether the whole interval lies between two numbers."""
        return bool(low <= self.low and self.high <= high)

    def meets(self, low: float, high: float) -> bool:
        """Whether any part of the interval lies between two numbers."""
        return bool(self.low <= high and low <= self.high)


def interval_of(value: float, draws: Array, least: float = 0.8) -> Interval:
    """Return a number with the percentiles of its draws; undetermined draws are left out, if they are few.

    Parameters
    ----------
    value : float
        The number, of the whole sample.
    draws : (m,) array
        The number of each sample drawn, NaN where it is not determined.
    least : float
        The share of draws that have to be determined; the interval is infinite otherwise.
    """
    known = draws[np.isfinite(draws)]
    if not np.isfinite(value):
        return Interval(float("nan"), -np.inf, np.inf)
    if len(known) < least * len(draws):
        return Interval(float(value), -np.inf, np.inf)
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(value), float(min(low, value)), float(max(high, value)))


def bootstrap(sample: Array, statistic: Callable[[Array], float], seed: int = 0) -> Interval:
    """Return a statistic of the rows of a sample with its interval, rows drawn with replacement."""
    sample, rng = np.asarray(sample, dtype=float), np.random.default_rng([2017, seed])
    if len(sample) == 0:
        return Interval(float("nan"), -np.inf, np.inf)
    chosen = rng.integers(len(sample), size=(DRAWS, len(sample)))
    return interval_of(statistic(sample), np.array([statistic(sample[rows]) for rows in chosen]))


def mean_of(sample: Array, seed: int = 0) -> Interval:
    """Return the mean of a sample with its interval."""
    return bootstrap(np.asarray(sample, dtype=float), lambda rows: float(rows.mean()), seed)


def share_of(successes: Array) -> Interval:
    """Return a share of successes with Wilson's interval, which holds for shares of 0 and 1 too."""
    successes = np.asarray(successes, dtype=float)
    n, z = len(successes), 1.959964
    if n == 0:
        return Interval(float("nan"), -np.inf, np.inf)
    share = float(successes.mean())
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5
    return Interval(share, max(min(middle - half, share), 0.0), max(middle + half, share))


def resample(
    table: pd.DataFrame, strata: Sequence[str], unit: str = "replication", seed: int = 0
) -> list[pd.DataFrame]:
    """Return `DRAWS` tables in which, for each combination of the strata, the units are drawn with replacement.

    Where a replication is one stream of data of which every n takes the first rows, the replication is the unit: its
    rows at different n are not independent.
    """
    rng = np.random.default_rng([2017, seed])
    groups = [dict(iter(part.groupby(unit))) for _, part in table.groupby(list(strata))]
    drawn = []
    for _ in range(DRAWS):
        parts = []
        for units in groups:
            names = list(units)
            parts += [units[names[i]] for i in rng.integers(len(names), size=len(names))]
        drawn.append(pd.concat(parts, ignore_index=True))
    return drawn
