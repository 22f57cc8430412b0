"""The boundary of recovery on sparse problems, and how it grows."""

import numpy as np
import pandas as pd

from experiments.phase_transition.fit import boundary

FAILED = 0.5  # clustering error that counts as not recovered


def split_parts(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the table of each part with its own columns, whole numbers as integers again."""
    found = {}
    for name, part in table.groupby("part"):
        part = part.dropna(axis=1, how="all")
        whole = [name for name, values in part.items() if values.dtype == float and (values == values.round()).all()]
        found[str(name)] = part.astype(dict.fromkeys(whole, int))
    return found


def sparse_boundaries(table: pd.DataFrame) -> pd.DataFrame:
    """Return the n at which half of the instances are recovered, by sparsity and dimension, where the grid has it."""
    rows = []
    for (sparsity, d), mine in table.groupby(["sparsity", "d"]):
        rate = (mine["error"] < FAILED).groupby(mine["n"]).mean()
        rows.append({"sparsity": sparsity, "d": d, "n": boundary(rate.index.to_numpy(float), rate.to_numpy(float))})
    return pd.DataFrame(rows)


def sparse_slopes(boundaries: pd.DataFrame) -> dict[int, float]:
    """Return the slope of n against d through the origin, for each sparsity."""
    return {
        int(sparsity): float((mine["n"] @ mine["d"]) / (mine["d"] @ mine["d"]))
        for sparsity, mine in boundaries.dropna().groupby("sparsity")
    }


def sparse_exponents(boundaries: pd.DataFrame) -> dict[int, float]:
    """Return the exponent p of n ~ d^p for each sparsity with at least three dimensions."""
    return {
        int(sparsity): float(np.polyfit(np.log(mine["d"]), np.log(mine["n"]), 1)[0])
        for sparsity, mine in boundaries.dropna().groupby("sparsity")
        if len(mine) >= 3
    }


def line(x: list[float], y: list[float]) -> tuple[float, float, float]:
    """Return slope, intercept and R^2 of a least-squares line."""
    slope, intercept = np.polyfit(x, y, 1)
    residual = np.asarray(y) - slope * np.asarray(x) - intercept
    return float(slope), float(intercept), float(1 - residual.var() / np.var(y))
