"""Drawing of boundaries and fits: intervals as bars, fits with bands, values outside the grid as bounds."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from diffrac_cvx.typing import Array
from experiments.harness.boundary import LEAST_DIMENSIONS, MIN_DIMENSION, Boundary, fit_power


def draw_boundary(ax: Axes, found: Boundary, color: str, mark: str = "o", **line: Any) -> None:
    """Draw a boundary: points with their intervals, open triangles if it is above or below the grid."""
    inside = found.inside
    low, high = found.n50 - found.low, found.high - found.n50
    bars = np.maximum([low[inside], high[inside]], 0.0)
    style: dict[str, Any] = {"ms": 2.8, "mfc": "white", "mec": color, "mew": 0.8} | line
    if inside.any():  # an unclipped line without points would affect the layout
        d, n = found.d[inside], found.n50[inside]
        ax.errorbar(d, n, bars, fmt=mark, ecolor=color, elinewidth=0.7, clip_on=False, zorder=4, **style)
    for side, triangle in ((1, "^"), (-1, "v")):
        at = found.outside == side
        if at.any():
            ax.plot(
                found.d[at], found.n50[at], triangle, color=color, ms=3.2, mfc="none", mew=0.7, clip_on=False, zorder=4
            )


def draw_fit(ax: Axes, found: Boundary, color: str) -> None:
    """Draw the power law through a boundary with its bootstrap band; nothing if there are too few points."""
    fit = fit_power(found)
    if not np.isfinite(fit.exponent.value):
        return
    use = found.inside & (found.d >= MIN_DIMENSION)
    d = np.geomspace(found.d[use].min(), found.d[use].max(), 40)
    ax.plot(d, fit.factor * d**fit.exponent.value, color=color, lw=1.0, zorder=3)
    curves = band_of(found.d[use], found.draws[:, use], d)
    if len(curves):
        ax.fill_between(d, *np.quantile(curves, [0.025, 0.975], axis=0), color=color, alpha=0.25, lw=0, zorder=2)


def band_of(at: Array, draws: Array, d: Array) -> Array:
    """Return the power law of each bootstrap sample at d; samples with too few boundaries are excluded."""
    curves = []
    for draw in draws:
        known = np.isfinite(draw)
        if known.sum() >= LEAST_DIMENSIONS:
            slope, offset = np.polyfit(np.log(at[known]), np.log(draw[known]), 1)
            curves.append(np.exp(offset) * d**slope)
    return np.array(curves)
