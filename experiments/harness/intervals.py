"""Confidence intervals: t for means, order statistics for medians, Wilson for proportions, t with a bootstrap error.

Percentiles of a bootstrap over ten units cover 85 to 90 % at a nominal 95 %, over four units 75 to 80 %; Student's
factor, with the bootstrap's standard error enlarged by the root of m / (m - 1), mends most of this.  The coverage is
simulated in ``tests/experiments/test_intervals.py``.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.stats

from diffrac_cvx.typing import Array

DRAWS = 400
LEVEL = 0.95
MANY = 10**6  # units of a sample whose number is not given


class Interval(NamedTuple):
    """A number with its interval at confidence `LEVEL`; NaN if not determined."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Format with two digits of the width of the interval; without an interval if it has no width."""
        width = self.high - self.low
        if not np.isfinite(self.value) or width == 0.0:
            return f"{self.value:.3g}" if np.isfinite(self.value) else "none"
        if not np.isfinite(width):
            return f"{self.value:.3g} (no interval)"
        decimals = max(1 - int(np.floor(np.log10(width))), 0)
        value, low, high = (f"{end:.{decimals}f}" if decimals <= 5 else f"{end:.1e}" for end in self)
        return f"{value} [{low}, {high}]"

    def within(self, low: float, high: float) -> bool:
        """Return whether the whole interval lies between two numbers."""
        return bool(low <= self.low and self.high <= high)

    def meets(self, low: float, high: float) -> bool:
        """Return whether the interval overlaps the range between two numbers."""
        return bool(self.low <= high and low <= self.high)


class Proportion(Interval):
    """A proportion with its interval, shown in per cent."""

    __slots__ = ()

    def __str__(self) -> str:
        """Format in per cent, with one more decimal if the interval is narrow."""
        if np.isnan(self.value):
            return "none"
        low, high = 100 * max(self.low, 0.0), 100 * min(self.high, 1.0)
        decimals = 0 if high - low >= 2.0 else 1 if high - low >= 0.2 else 2
        return f"{100 * self.value:.{decimals}f} % [{low:.{decimals}f}, {high:.{decimals}f}]"


UNKNOWN = Interval(float("nan"), -np.inf, np.inf)


def t_factor(freedom: int) -> float:
    """Return Student's quantile with some degrees of freedom."""
    return float(scipy.stats.t.ppf((1 + LEVEL) / 2, freedom))


def interval_of(value: float, draws: Array, units: int | None = None, groups: int = 1, least: float = 0.8) -> Interval:
    """Return a number with a t interval from its bootstrap values, ignoring a few undetermined ones.

    Parameters
    ----------
    value : float
        Estimate from the whole sample.
    draws : (m,) array
        Estimate from each bootstrap sample, NaN if not determined.
    units : int, optional
        Number of units that were resampled; by default many.
    groups : int
        Number of samples of so many units, resampled separately.
    least : float
        Fraction of bootstrap values that must be determined; otherwise the interval is infinite.
    """
    known = draws[np.isfinite(draws)]
    if not np.isfinite(value):
        return UNKNOWN
    units = MANY if units is None else units
    if len(known) < max(least * len(draws), 2) or units < 2:
        return Interval(float(value), -np.inf, np.inf)
    half = t_factor(groups * (units - 1)) * float(known.std()) * (units / (units - 1)) ** 0.5
    return Interval(float(value), float(value - half), float(value + half))


def bootstrap(sample: npt.ArrayLike, statistic: Callable[..., Any]) -> Interval:
    """Return a statistic of a sample with its interval, by resampling rows with replacement.

    The statistic takes an axis as in NumPy and is called once for all bootstrap samples.
    """
    sample = np.ascontiguousarray(sample, dtype=float)
    if len(sample) == 0:
        return UNKNOWN
    chosen = np.random.default_rng([2017, 0]).integers(len(sample), size=(DRAWS, len(sample)))
    return interval_of(float(statistic(sample, axis=0)), statistic(sample[chosen], axis=1), len(sample))


def mean_of(sample: npt.ArrayLike) -> Interval:
    """Return the mean of a sample with its t interval."""
    sample = np.asarray(sample, dtype=float)
    n = len(sample)
    if n < 2:
        return Interval(float(sample[0]), -np.inf, np.inf) if n else UNKNOWN
    mean, half = float(sample.mean()), t_factor(n - 1) * float(sample.std(ddof=1)) / n**0.5
    return Interval(mean, mean - half, mean + half)


def median_of(sample: npt.ArrayLike) -> Interval:
    """Return the median of a sample, between the narrowest pair of order statistics that covers it.

    Five values or fewer have no such pair.
    """
    ordered = np.sort(np.asarray(sample, dtype=float))
    n = len(ordered)
    if n == 0:
        return UNKNOWN
    below = int(scipy.stats.binom.ppf((1 - LEVEL) / 2, n, 0.5))  # P(B < below) <= (1 - LEVEL) / 2
    ends = (ordered[below - 1], ordered[n - below]) if below >= 1 else (-np.inf, np.inf)
    return Interval(float(np.median(ordered)), float(ends[0]), float(ends[1]))


def proportion_of(successes: npt.ArrayLike, groups: npt.ArrayLike | None = None) -> Proportion:
    """Return a proportion of successes with Wilson's interval, which is valid for proportions of 0 and 1 too.

    Parameters
    ----------
    successes : (n,) array
        Successes, 0 or 1.
    groups : (n,) array, optional
        Groups of dependent rows, such as the sizes of one replication.  Wilson's interval is then that of the effective
        number of rows, p (1 - p) over the variance of p between groups: the number of groups at least, n at most.
        Source: Korn and Graubard (1998), Survey Methodology 24.
    """
    successes = np.asarray(successes, dtype=float)
    if len(successes) == 0:
        return Proportion(*UNKNOWN)
    p, n = float(successes.mean()), float(len(successes))
    if groups is not None:
        excess = np.bincount(np.unique(groups, return_inverse=True)[1], successes - p)
        m = len(excess)
        variance = m / max(m - 1, 1) * float(np.sum(excess**2)) / n**2
        n = float(np.clip(p * (1 - p) / variance, m, n)) if m > 1 and excess.any() else float(m)
    z = float(scipy.stats.norm.ppf((1 + LEVEL) / 2))
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * (p * (1 - p) / n + z**2 / (4 * n**2)) ** 0.5
    return Proportion(p, max(min(middle - half, p), 0.0), min(max(middle + half, p), 1.0))
