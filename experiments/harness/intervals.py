"""Confidence intervals: percentile bootstrap over replications with a fixed number of samples, and Wilson's."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from diffrac_cvx.typing import Array

DRAWS = 400
LEVEL = 0.95


class Interval(NamedTuple):
    """A number with its interval at confidence `LEVEL`; NaN if not determined."""

    value: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        """Format the number and the ends of its interval."""
        if not np.isfinite(self.value):
            return "not determined"
        return f"{self.value:{spec}} ({self.low:{spec}} to {self.high:{spec}})"

    def within(self, low: float, high: float) -> bool:
        """Return whether the whole interval lies between two numbers."""
        return bool(low <= self.low and self.high <= high)

    def meets(self, low: float, high: float) -> bool:
        """Return whether the interval overlaps the range between two numbers."""
        return bool(self.low <= high and low <= self.high)


UNKNOWN = Interval(float("nan"), -np.inf, np.inf)


def interval_of(value: float, draws: Array, least: float = 0.8) -> Interval:
    """Return a number with the percentiles of its bootstrap values, ignoring a few undetermined ones.

    Parameters
    ----------
    value : float
        Estimate from the whole sample.
    draws : (m,) array
        Estimate from each bootstrap sample, NaN if not determined.
    least : float
        Fraction of bootstrap values that must be determined; otherwise the interval is infinite.
    """
    known = draws[np.isfinite(draws)]
    if not np.isfinite(value):
        return UNKNOWN
    if len(known) < least * len(draws):
        return Interval(float(value), -np.inf, np.inf)
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(value), float(min(low, value)), float(max(high, value)))


def bootstrap(sample: npt.ArrayLike, statistic: Callable[..., Any]) -> Interval:
    """Return a statistic of a sample with its interval, by resampling rows with replacement.

    The statistic takes an axis as in NumPy and is called once for all bootstrap samples.
    """
    sample = np.ascontiguousarray(sample, dtype=float)
    if len(sample) == 0:
        return UNKNOWN
    chosen = np.random.default_rng([2017, 0]).integers(len(sample), size=(DRAWS, len(sample)))
    return interval_of(float(statistic(sample, axis=0)), statistic(sample[chosen], axis=1))


def mean_of(sample: npt.ArrayLike) -> Interval:
    """Return the mean of a sample with its interval."""
    return bootstrap(sample, np.mean)


def median_of(sample: npt.ArrayLike) -> Interval:
    """Return the median of a sample with its interval."""
    return bootstrap(sample, np.median)


def proportion_of(successes: npt.ArrayLike) -> Interval:
    """Return a proportion of successes with Wilson's interval, which is valid for proportions of 0 and 1 too."""
    successes = np.asarray(successes, dtype=float)
    n, z = len(successes), 1.959964
    if n == 0:
        return UNKNOWN
    proportion = float(successes.mean())
    middle = (proportion + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * (proportion * (1 - proportion) / n + z**2 / (4 * n**2)) ** 0.5
    return Interval(proportion, max(min(middle - half, proportion), 0.0), max(middle + half, proportion))


def percent(proportion: Interval) -> str:
    """Format a proportion and its interval in per cent."""
    if np.isnan(proportion.value):
        return "none"
    return (
        f"{100 * proportion.value:.0f} % "
        f"({100 * max(proportion.low, 0.0):.0f} to {100 * min(proportion.high, 1.0):.0f})"
    )
