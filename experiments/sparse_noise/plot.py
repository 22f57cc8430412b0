"""Draw the numbers of points by the variance of the noise from their table."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from experiments.harness.boundary import Boundary
from experiments.harness.style import draw_boundary, panels
from experiments.sparse_noise.cells import COLUMNS, COMPONENT, KINDS, VARIANCES, WEIGHTS, WIDEST, L
from experiments.sparse_noise.findings import Boundaries, Design, boundaries_of
from experiments.sparse_regime.models import dimension_bound
from experiments.theory.unique_solution import statistical_dimension

COLORS = dict(zip(VARIANCES, plt.get_cmap("viridis")(np.linspace(0.0, 0.85, len(VARIANCES))), strict=True))
MARKS = dict(zip(VARIANCES, "ov^sD", strict=True))
ROWS = {  # method: label of its row
    **dict(zip(WEIGHTS, (r"$n$ at $\lambda = 1/\sqrt{n}$", r"$n$ at $\lambda = 1/n$"), strict=True)),
    COMPONENT: "$n$ of the principal component",
}

CAPTION = (
    "Number of points at which half of the replications recover the labels along a 4-sparse direction, with 95 % "
    "intervals, by the variance m of the noise (that of the labels is 1); triangles: above the grid; 8 is the least n. "
    "Columns are raw or standardised, entries of the direction equal (flat) or randomly rotated. Below: 2-means on the "
    "first principal component; dotted: on that of the 4 columns with the largest variances. 1 + delta: law for a "
    "vanishing penalty and m = 1; d + d(d-1)/4: points needed without a penalty."
)


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw one row of panels for each method, one column for each design, and one line for each variance."""
    found = boundaries_of(table)
    designs = [(columns, kind) for columns in COLUMNS for kind in KINDS]
    with panels(stem, 3, 4, 6.0, caption=CAPTION, sharex=True, sharey=True) as (figure, axes):
        for (method, label), row in zip(ROWS.items(), axes, strict=True):
            row[0].set_ylabel(label)
            for (columns, kind), ax in zip(designs, row, strict=True):
                draw_panel(ax, found, Design(method, L, kind, columns, 1.0))
        for (columns, kind), top, bottom in zip(designs, axes[0], axes[-1], strict=True):
            top.set_title(f"{columns}, {kind}")
            bottom.set_xlabel("dimension $d$")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        handles.append(Line2D([], [], color="0.4", marker="o", ls=":", mfc="none", ms=2.5))
        figure.legend(
            handles, [*labels, "4 largest variances"], loc="outside upper center", ncols=8, frameon=False,
            columnspacing=1.0, handlelength=1.7, fontsize=6.5,
        )  # fmt: skip


def draw_panel(ax: Axes, found: Boundaries, design: Design) -> None:
    """Draw the boundary at each variance, of raw columns also by the largest variances, and the two laws."""
    d = np.geomspace(8, 256, 40)
    ax.plot(d, [1.0 + dimension_bound(L, float(at)) for at in d], "--", color="0.5", lw=0.9, label=r"$1 + \delta$")
    ax.plot(d, statistical_dimension(d), ":", color="0.5", lw=0.9, label="$d + d(d-1)/4$")
    for variance in VARIANCES:
        boundary = found.get(design._replace(variance=variance))
        if boundary is not None:
            draw_line(ax, boundary, variance, label=f"$m = {variance:.2g}$")
        widest = found.get(design._replace(variance=variance, method=WIDEST))
        if design.method == COMPONENT and widest is not None:
            draw_line(ax, widest, variance, ls=":", ms=2.0)
    ax.set(xscale="log", yscale="log", xlim=(7, 300), ylim=(6, 6000))


def draw_line(
    ax: Axes, boundary: Boundary, variance: float, ls: str = "-", ms: float = 2.8, label: str | None = None
) -> None:
    """Draw a boundary with its intervals, its points inside the grid joined by a line."""
    color, inside = COLORS[variance], boundary.inside
    ax.plot(boundary.d[inside], boundary.n50[inside], ls, color=color, lw=0.8, zorder=3, label=label)
    draw_boundary(ax, boundary, color, MARKS[variance], ms=ms)
