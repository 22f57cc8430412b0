"""Power laws and paired comparisons of the runtime experiment, with intervals over measurements."""

import numpy as np
import pandas as pd

from diffrac_cvx.typing import Array
from experiments.harness.intervals import Interval, bootstrap

LEAST_SIZES = 4  # below which no power is fitted
UNKNOWN = Interval(float("nan"), -np.inf, np.inf)


def fit_exponent(table: pd.DataFrame, x: str, y: str, seed: int = 0) -> Interval:
    """Return p of y ~ x^p by least squares in logarithms, measurements drawn again for the interval.

    The pairs are drawn, so that a misfit of the power law widens the interval as scatter does.
    """
    use = table[(table[y] > 0.0) & (table[x] > 0.0)]
    if use[x].nunique() < LEAST_SIZES:
        return UNKNOWN
    return bootstrap(np.log(use[[x, y]].to_numpy(float)), slope, seed)


def slope(points: Array) -> float:
    """Return the slope of the least squares line through the rows (x, y); NaN where it is not determined."""
    x, y = points.T
    spread = float(np.sum((x - x.mean()) ** 2))
    return float(np.sum((x - x.mean()) * y) / spread) if spread > 0.0 else float("nan")


def median_of(values: Array, seed: int = 0) -> Interval:
    """Return the median of a sample with its interval."""
    return bootstrap(np.asarray(values, dtype=float), lambda rows: float(np.median(rows)), seed)


def pair(table: pd.DataFrame, column: str, first: list[str], second: list[str]) -> pd.DataFrame:
    """Return a column's least entry over each of two groups of methods on every instance that both finish.

    The columns are ``first`` and ``second``; an instance is a penalty, a panel, a size and a replication.
    """
    keys = ["lam", "panel", "n", "d", "replication"]
    wide = table.pivot_table(index=keys, columns="method", values=column)
    sides = {name: wide.reindex(columns=group).min(axis=1) for name, group in (("first", first), ("second", second))}
    return pd.DataFrame(sides).dropna()
