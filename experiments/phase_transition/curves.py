"""Drawing of boundaries and fits: intervals as bars, values outside the grid as bounds."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from experiments.harness.boundary import MIN_DIMENSION, Boundary, fit_power


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
    """Draw the power law through a boundary; nothing if there are too few points."""
    fit = fit_power(found)
    if not np.isfinite(fit.exponent.value):
        return
    d = found.d[found.inside & (found.d >= MIN_DIMENSION)]
    ax.plot(d, fit.factor * d**fit.exponent.value, color=color, lw=1.0, zorder=3)
