"""Boundaries of success in n for each d, and the power law fitted to them, with bootstrap intervals."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.optimize

from diffrac_cvx.typing import Array
from experiments.harness.intervals import DRAWS, UNKNOWN, Interval, interval_of

MIN_DIMENSION = 8  # smallest dimension included in a power-law fit
LEAST_DIMENSIONS = 4  # fewest dimensions with a boundary inside the grid for a fit


class Boundary(NamedTuple):
    """The n at which half of the replications succeed, for each d.

    Attributes
    ----------
    d : (m,) array
        Dimensions.
    n50 : (m,) array
        Boundary; the first or last n of the grid if it lies outside, NaN if nothing was measured.
    low, high : (m,) array
        Its interval.
    outside : (m,) array of int
        -1 if the boundary is at or below the first n, 1 if it is above the last, 0 inside the grid.
    draws : (DRAWS, m) array
        The boundary of each bootstrap sample of the replications; NaN outside the grid.
    units : (m,) array of int
        Number of replications.
    """

    d: Array
    n50: Array
    low: Array
    high: Array
    outside: Array
    draws: Array
    units: Array

    @property
    def inside(self) -> npt.NDArray[np.bool_]:
        """Mask of the boundaries inside the grid."""
        return np.asarray(self.outside == 0)


class PowerLaw(NamedTuple):
    """n50 = factor d^exponent by least squares in logarithms, with intervals; fitted to `dimensions` dimensions."""

    exponent: Interval
    factor: float
    dimensions: int


def crossing(n: Array, rate: Array) -> tuple[float, int]:
    """Return the n at which the increasing (isotonic) fit of a success rate crosses 1/2, and the side if outside."""
    if np.any(rate[1:] < rate[:-1]):
        rate = scipy.optimize.isotonic_regression(rate).x
    if rate[0] >= 0.5:
        return float(n[0]), -1
    if rate[-1] < 0.5:
        return float(n[-1]), 1
    above = int(np.argmax(rate >= 0.5))
    fraction = (0.5 - rate[above - 1]) / (rate[above] - rate[above - 1])
    return float(n[above - 1] + fraction * (n[above] - n[above - 1])), 0


def find_boundary(table: pd.DataFrame, column: str) -> Boundary:
    """Return the boundary of a 0/1 column, with bootstrap intervals over replications.

    All n of a replication take the first rows of one data stream, so replications are resampled as wholes.
    """
    rng = np.random.default_rng([2017, 50, 0])
    found = []
    for d, part in table.groupby("d"):
        success = part.groupby(["replication", "n"])[column].mean().unstack()
        n, values = success.columns.to_numpy(float), success.to_numpy(float)
        at, side = crossing(n, mean_known(values[None])[0])
        rates = mean_known(values[rng.integers(len(values), size=(DRAWS, len(values)))])
        drawn = [crossing(n[known], rate[known]) for rate, known in zip(rates, np.isfinite(rates), strict=True)]
        draws = np.array([n50 if outside == 0 else np.nan for n50, outside in drawn])
        found.append(boundary_at(float(str(d)), at, side, draws, n, len(values)))
    return collect(found)


def mean_known(values: Array) -> Array:
    """Return the means of the finite entries along the second axis; NaN if there are none."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=1) / known.sum(axis=1))


def boundary_at(d: float, n50: float, outside: int, draws: Array, n: Array, units: int) -> Boundary:
    """Return the boundary at one dimension; its interval is that of log n50, clipped to the range of measured n."""
    low, high = np.exp(interval_of(float(np.log(n50)), np.log(draws), units, least=0.5)[1:])
    entries = (d, n50, max(low, n.min()), min(high, n.max()), outside)
    columns = [np.array([entry]) for entry in entries]
    return Boundary._make([*columns, draws[:, None], np.array([units])])


def collect(found: Sequence[Boundary]) -> Boundary:
    """Collect the boundaries at several dimensions in one record."""
    return Boundary(*(np.concatenate(columns, axis=-1) for columns in zip(*found, strict=True)))


def fit_power(found: Boundary, from_d: float = MIN_DIMENSION) -> PowerLaw:
    """Return the power law through the boundaries inside the grid; NaN with fewer than `LEAST_DIMENSIONS`."""
    use = found.inside & (found.d >= from_d)
    if use.sum() < LEAST_DIMENSIONS:
        return PowerLaw(UNKNOWN, float("nan"), int(use.sum()))
    x = np.log(found.d[use])
    exponent, offset = np.polyfit(x, np.log(found.n50[use]), 1)
    exponents = np.array([power_of(x, draw) for draw in found.draws[:, use]])
    number = int(use.sum())
    interval = interval_of(float(exponent), exponents, int(found.units[use].min()), number)
    return PowerLaw(interval, float(np.exp(offset)), number)


def power_of(x: Array, n50: Array) -> float:
    """Return the slope of log n50 against x over the finite entries; NaN if there are too few."""
    known = np.isfinite(n50)
    if known.sum() < LEAST_DIMENSIONS:
        return float("nan")
    return float(np.polyfit(x[known], np.log(n50[known]), 1)[0])
