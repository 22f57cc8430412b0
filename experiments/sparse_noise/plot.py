"""Draw the numbers of points by the variance of the noise from their table."""

from pathlib import Path
from typing import Any

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

COLORS = dict(zip(VARIANCES, plt.get_cmap("viridis")(np.linspace(0.0, 0.88, len(VARIANCES))), strict=True))
MARKS = dict(zip(VARIANCES, "ov^sD", strict=True))
ROWS = {**dict(zip(WEIGHTS, (r"$\lambda = 1/\sqrt{n}$", r"$\lambda = 1/n$"), strict=True)), COMPONENT: "component"}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw one row of panels for each method, one column for each design, and one line for each variance."""
    found = boundaries_of(table)
    designs = [(columns, kind) for columns in COLUMNS for kind in KINDS]
    with panels(stem, 3, 4, 6.4, sharex=True, sharey=True) as (figure, axes):
        for (method, title), row in zip(ROWS.items(), axes, strict=True):
            for (columns, kind), ax in zip(designs, row, strict=True):
                draw_panel(ax, found, Design(method, L, kind, columns, 1.0))
                ax.set_title(f"{title}, {columns}, {kind}", fontsize=6.5)
            row[0].set_ylabel("number of points $n$")
        for ax in axes[-1]:
            ax.set_xlabel("dimension $d$")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        handles.append(Line2D([], [], color="0.4", marker="o", ls=":", mfc="none", ms=3))
        labels.append("of the 4 largest variances")
        figure.legend(handles, labels, loc="outside upper center", ncols=6, frameon=False, columnspacing=1.0)


def draw_panel(ax: Axes, found: Boundaries, design: Design) -> None:
    """Draw the boundary at each variance, of raw columns also by the largest variances, and the two laws."""
    d = np.geomspace(8, 256, 40)
    ax.plot(d, [1.0 + dimension_bound(L, at) for at in d], "--", color="0.5", lw=0.9)
    ax.plot(d, statistical_dimension(d), ":", color="0.5", lw=0.9)
    for variance in VARIANCES:
        boundary = found.get(design._replace(variance=variance))
        if boundary is not None:
            draw_line(ax, boundary, variance, "-")
        widest = found.get(design._replace(variance=variance, method=WIDEST))
        if design.method == COMPONENT and widest is not None:
            draw_line(ax, widest, variance, ":", mfc="none", ms=2.0)
    ax.set(xscale="log", yscale="log", xlim=(7, 300), ylim=(6, 6000))


def draw_line(ax: Axes, boundary: Boundary, variance: float, dash: str, **style: Any) -> None:
    """Draw a boundary with its intervals, joined by a line."""
    color, inside = COLORS[variance], boundary.inside
    label = f"$m = {variance:.2g}$" if dash == "-" else None
    ax.plot(boundary.d[inside], boundary.n50[inside], dash, color=color, lw=0.8, zorder=3, label=label)
    draw_boundary(ax, boundary, color, MARKS[variance], **style)
