"""Candidate growth laws for the boundaries of recovery, and the boundaries obtained from searches."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from diffrac_cvx.typing import Array
from experiments.harness.boundary import LEAST_DIMENSIONS, Boundary, boundary_at, collect
from experiments.harness.intervals import DRAWS, UNKNOWN, Interval, interval_of

MIN_DIMENSION = 16  # smallest dimension for comparing laws
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


class Fits(NamedTuple):
    """Fit of each law to a boundary.

    Attributes
    ----------
    criterion : dict
        Akaike's criterion of each law on log n, corrected for few points, minus the smallest: m log(RSS/m) + 2 K m /
        (m - K - 1), K the number of parameters, including the variance.
    chosen : dict
        Fraction of the bootstrap samples in which a law has the smallest criterion.
    dimensions : int
    """

    criterion: dict[str, float]
    chosen: dict[str, float]
    dimensions: int

    @property
    def best(self) -> str:
        """Law with the smallest criterion."""
        return min(self.criterion, key=lambda name: self.criterion[name])


def compare_laws(found: Boundary, theory: Law | None = None, from_d: float = MIN_DIMENSION) -> Fits | None:
    """Compare the laws c d, c d log d, c d^p, min(c d, d^2/4) and c times a theory; None with too few dimensions."""
    use = found.inside & (found.d >= from_d)
    if use.sum() < LEAST_DIMENSIONS + 1:  # a law with two parameters and a variance needs more
        return None
    d, samples = found.d[use], found.draws[:, use]
    samples = samples[np.all(np.isfinite(samples), axis=1)]
    criterion = criteria(d, found.n50[use], theory)
    best = [min(values, key=values.__getitem__) for values in (criteria(d, sample, theory) for sample in samples)]
    least = min(criterion.values())
    chosen = {name: best.count(name) / max(len(best), 1) for name in criterion}
    return Fits({name: value - least for name, value in criterion.items()}, chosen, int(use.sum()))


def criteria(d: Array, n50: Array, theory: Law | None) -> dict[str, float]:
    """Return Akaike's corrected criterion of each law."""
    x, y = np.log(d), np.log(n50)
    power = np.polyfit(x, y, 1)
    misfits = {
        "d": (spread(y - x), 1),
        "d log d": (spread(y - x - np.log(x)), 1),
        "d^p": (float(np.sum((y - np.polyval(power, x)) ** 2)), 2),
        "min(c d, d^2/4)": (least_capped(d, y), 1),
    }
    if theory is not None:
        misfits["c (1 + delta)"] = (spread(y - np.log(theory(d))), 1)
    m = len(d)
    return {name: m * np.log(max(rss, 1e-12) / m) + 2 * (k + 1) * m / (m - k - 2) for name, (rss, k) in misfits.items()}


def spread(values: Array) -> float:
    """Return the sum of squares about the mean: the residual of a law with a free factor."""
    return float(np.sum((values - values.mean()) ** 2))


def least_capped(d: Array, y: Array) -> float:
    """Return the smallest sum of squares of y - log min(c d, d^2/4) over a fine grid of c."""
    factors = np.geomspace(0.1, 100.0, 400)
    laws = np.log(np.minimum(factors[:, None] * d, d**2 / 4))
    return float(np.sum((y - laws) ** 2, axis=1).min())


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
