"""Power laws and paired comparisons of the runtime experiment, with bootstrap intervals."""

import numpy as np
import pandas as pd

from diffrac_cvx.typing import Array
from experiments.harness.intervals import UNKNOWN, Interval, bootstrap

LEAST_SIZES = 4  # fewest sizes for a power-law fit


def fit_exponent(table: pd.DataFrame, x: str, y: str) -> Interval:
    """Return p of y ~ x^p by least squares in logarithms, with a bootstrap interval over measurements.

    The pairs are resampled, so that misfit of the power law widens the interval as scatter does.
    """
    use = table[(table[y] > 0.0) & (table[x] > 0.0)]
    return bootstrap(np.log(use[[x, y]].to_numpy(float)), slope) if use[x].nunique() >= LEAST_SIZES else UNKNOWN


def slope(points: Array, axis: int) -> Array:
    """Return the slope of the least squares line through points (x, y) along an axis; NaN if undetermined."""
    x, y = np.moveaxis(points, axis, -1)[..., 0, :], np.moveaxis(points, axis, -1)[..., 1, :]
    centered = x - x.mean(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sum(centered * y, axis=-1) / np.sum(centered**2, axis=-1))


def pair(table: pd.DataFrame, column: str, first: list[str], second: list[str]) -> pd.DataFrame:
    """Return the minimum of a column over two groups of methods, on every instance that both groups finish.

    The columns are ``first`` and ``second``; an instance is a penalty, a panel, a size and a replication.
    """
    keys = ["lam", "panel", "n", "d", "replication"]
    wide = table.pivot_table(index=keys, columns="method", values=column)
    sides = {name: wide.reindex(columns=group).min(axis=1) for name, group in (("first", first), ("second", second))}
    return pd.DataFrame(sides).dropna()
