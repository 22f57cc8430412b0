"""Boundaries of the phase transition, from the table."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from diffrac_cvx.inputs import Array


class Fit(NamedTuple):
    """Boundaries and the curve through them: n50 = factor * d^exponent, or slope * d + offset."""

    d: Array
    n50: Array
    exponent: float
    factor: float
    slope: float
    offset: float


def statistical_dimension(d: Array) -> Array:
    """Return d + d(d-1)/4, of the descent cone of the semidefinite cone at a rank-one matrix."""
    d = np.asarray(d, dtype=float)
    return np.asarray(d + d * (d - 1) / 4)


def boundary(n: Array, success: Array) -> float:
    """Return the n of 50 % success: n0 + integral of (1 - success), the mean of the transition (Spearman and Karber).

    NaN where the grid does not hold the whole transition.
    """
    order = np.argsort(n)
    n, success = np.asarray(n, dtype=float)[order], np.asarray(success, dtype=float)[order]
    if success[-1] < 0.9 or success[0] > 0.1:
        return float("nan")
    return float(n[0] + np.sum(np.diff(n) * (1 - (success[1:] + success[:-1]) / 2)))


def fit_boundary(table: pd.DataFrame, column: str, *, from_d: int = 8) -> Fit:
    """Return the boundary of a 0/1 column for every d, and the least-squares power law and line through it."""
    means = table.groupby(["d", "n"], as_index=False)[column].mean()
    pairs = [(d, boundary(part["n"].to_numpy(), part[column].to_numpy())) for d, part in means.groupby("d")]
    d, n50 = np.array([[float(a), b] for a, b in pairs if np.isfinite(b)]).reshape(-1, 2).T
    use = d >= from_d
    if use.sum() < 2:
        return Fit(d, n50, *[float("nan")] * 4)
    exponent, log_factor = np.polyfit(np.log(d[use]), np.log(n50[use]), 1)
    slope, offset = np.polyfit(d[use], n50[use], 1)
    return Fit(d, n50, float(exponent), float(np.exp(log_factor)), float(slope), float(offset))
