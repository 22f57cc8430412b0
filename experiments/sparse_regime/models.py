"""Boundaries of recovery obtained from searches, their growth with the sparsity, and their theory."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from diffrac_cvx.typing import Array
from experiments.harness.boundary import LEAST_DIMENSIONS, Boundary, boundary_at, collect
from experiments.harness.intervals import DRAWS, UNKNOWN, Interval, interval_of

Law = Callable[[Array], Array]


def boundary_of(searches: pd.DataFrame) -> Boundary:
    """Return the boundary of searches, the median of their n for each d, with bootstrap intervals over replications.

    A search that ends outside its grid counts as infinite, or as 0.
    """
    rng = np.random.default_rng([2017, 51, 0])
    found = []
    for d, part in searches.groupby("d"):
        points = part["points"].to_numpy(float)
        open_ended = np.where(part["outside"] == 1, np.inf, np.where(part["outside"] == -1, 0.0, points))
        at = float(np.median(open_ended))
        draws = np.median(open_ended[rng.integers(len(points), size=(DRAWS, len(points)))], axis=1)
        draws[~np.isfinite(draws) | (draws == 0.0)] = np.nan
        side = 0 if 0.0 < at < np.inf else 1 if at > 0.0 else -1
        n50 = at if side == 0 else float(points.max() if side == 1 else points.min())
        found.append(boundary_at(float(str(d)), n50, side, draws, points, len(points)))
    return collect(found)


def theory_of(cone: pd.DataFrame) -> dict[int, Law]:
    """Return 1 + statistical dimension as a function of d for each sparsity, by piecewise power laws."""
    laws: dict[int, Law] = {}
    for sparsity, part in cone.groupby("sparsity"):
        mean = 1.0 + part.groupby("d")["dimension"].mean()
        laws[int(str(sparsity))] = interpolation(mean.index.to_numpy(float), mean.to_numpy(float))
    return laws


def interpolation(at: Array, values: Array) -> Law:
    """Return the piecewise power law through points."""
    return lambda d: np.exp(np.interp(np.log(d), np.log(at), np.log(values)))


def growth_in_sparsity(boundaries: Mapping[int, Boundary], d: float) -> Interval:
    """Return the exponent of n50 in l at one d, from at least four l; otherwise undetermined."""
    x, y, draws, units = [], [], [], []
    for sparsity, found in boundaries.items():
        for i in np.flatnonzero((found.d == d) & found.inside):
            x.append(np.log(sparsity))
            y.append(np.log(found.n50[i]))
            draws.append(np.log(found.draws[:, i]))
            units.append(int(found.units[i]))
    if len(x) < LEAST_DIMENSIONS:
        return UNKNOWN
    known = [draw for draw in np.array(draws).T if np.all(np.isfinite(draw))]
    slopes = np.array([np.polyfit(x, draw, 1)[0] for draw in known] + [np.nan] * (DRAWS - len(known)))
    return interval_of(float(np.polyfit(x, y, 1)[0]), slopes, min(units), len(units), least=0.5)
