"""Boundaries of the phase transition, from the table."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.optimize

from diffrac_cvx.inputs import Array


class Fit(NamedTuple):
    """Boundaries and the curve through them: n50 = factor * d^exponent, or slope * d + offset."""

    d: Array
    n50: Array
    exponent: float
    factor: float
    slope: float
    offset: float


def wendel(d: Array) -> Array:
    """Return (d + 1)/2: where d - 1 symmetric random vectors in dimension n - 1 have 0 in their hull half of the time.

    The rank-one solution of the noiseless 1-sparse problem is the only one when 0 is not in the convex hull of the
    d - 1 centred squared noise columns (Wendel 1962, if these were symmetric).
    """
    return (np.asarray(d, dtype=float) + 1) / 2


def boundary(n: Array, success: Array) -> float:
    """Return the n at which the increasing (isotonic) fit of the success rate crosses 1/2, interpolated.

    NaN where the grid does not hold the crossing.
    """
    order = np.argsort(n)
    n = np.asarray(n, dtype=float)[order]
    rate = scipy.optimize.isotonic_regression(np.asarray(success, dtype=float)[order]).x
    if rate[0] >= 0.5 or rate[-1] < 0.5:
        return float("nan")
    above = int(np.argmax(rate >= 0.5))
    share = (0.5 - rate[above - 1]) / (rate[above] - rate[above - 1])
    return float(n[above - 1] + share * (n[above] - n[above - 1]))


def fit_boundary(table: pd.DataFrame, column: str, *, from_d: int = 8) -> Fit:
    """Return the boundary of a 0/1 column for every d, and the least-squares power law and line through it."""
    means = table.groupby(["d", "n"], as_index=False)[column].mean()
    pairs = [(float(str(d)), boundary(part["n"].to_numpy(), part[column].to_numpy())) for d, part in means.groupby("d")]
    d, n50 = np.array([[a, b] for a, b in pairs if np.isfinite(b)]).reshape(-1, 2).T
    use = d >= from_d
    if use.sum() < 3:
        return Fit(d, n50, *[float("nan")] * 4)
    exponent, log_factor = np.polyfit(np.log(d[use]), np.log(n50[use]), 1)
    slope, offset = np.polyfit(d[use], n50[use], 1)
    return Fit(d, n50, float(exponent), float(np.exp(log_factor)), float(slope), float(offset))
