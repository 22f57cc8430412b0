"""Draw the recovery of planted groups by both penalties."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diffrac_cvx.plotting.canvas import Style
from experiments.groups.cells import AT, PLACES, SHIFT
from experiments.groups.findings import NAMES, of_method, somewhere, summary
from experiments.harness.intervals import Interval
from experiments.harness.style import ACCENT, GRAY, SECONDARY, draw_intervals, panels

STYLES = {
    "groups": Style(ACCENT, "-", "o"),
    "l1": Style(SECONDARY, "-", "s"),
    "wrong groups": Style(GRAY, "-.", "^"),
}
MOVES = {"groups": -0.05, "l1": 0.0, "wrong groups": 0.05}  # so that intervals do not overlap
BARS = {"ms": 3, "elinewidth": 0.7, "capsize": 1.5}
SHARE, INDEX = "proportion of tables", "adjusted Rand index"


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the recovery of the groups, the labels and the columns, and the legend in place of a panel."""
    planted, single = (table[table["place"] == place] for place in PLACES)
    many, few = planted[planted["shift"] == SHIFT], planted[planted["n"] == AT]
    with panels(stem, 2, 3, 4.4, rc={"lines.linewidth": 1.0}) as (_, grid):
        axes = grid.ravel()
        for ax, part, axis in ((axes[0], many, "n"), (axes[1], few, "shift")):
            draw_measure(ax, part, axis, "exact", SHARE)
            for method in ("groups", "l1"):
                points = {x: somewhere(of_method(here, method)) for x, here in part.groupby(axis)}
                draw_line(ax, points, method, dashed=True)
        draw_measure(axes[2], many, "n", "index", INDEX)
        draw_measure(axes[3], single, "n", "index", INDEX)
        draw_measure(axes[4], single, "n", "overlap", "overlap of the columns")
        titles = (
            "planted groups found exactly", f"the same, $n = {AT}$", "labels", "one column per group: labels",
            "one column per group: columns",
        )  # fmt: skip
        for ax, letter, title in zip(axes, "abcde", titles, strict=False):
            ax.set_title(f"({letter}) {title}")
        axes[5].axis("off")
        axes[5].legend(*axes[0].get_legend_handles_labels(), loc="center", frameon=False)


def draw_measure(ax: Axes, rows: pd.DataFrame, axis: str, measure: str, name: str) -> None:
    """Draw a measure at the chosen weights, one line per penalty."""
    for method in STYLES:
        here = of_method(rows, method)
        if len(here):
            draw_line(ax, {x: summary(part, measure) for x, part in here.groupby(axis)}, method)
    values = sorted(rows[axis].unique())
    if axis == "n":
        ax.set_xscale("log")
        ax.minorticks_off()
    ax.set_xticks(values, [f"{value:g}" for value in values])
    ax.set(ylim=(-0.04, 1.04), ylabel=name, xlabel="points $n$" if axis == "n" else "norm of the shift")


def draw_line(ax: Axes, points: dict[float, Interval], method: str, *, dashed: bool = False) -> None:
    """Draw numbers with their intervals."""
    style = STYLES[method]
    x, move = np.array(list(points), dtype=float), MOVES[method] + (0.025 if dashed else 0.0)
    x = x * 2.0**move if x.max() > 10.0 else x + move
    ls, fill, label = (":", "white", ", best weight") if dashed else (style.linestyle, style.color, "")
    mark = {"color": style.color, "marker": style.marker, "ls": ls, "mfc": fill, **BARS}
    draw_intervals(ax, x, list(points.values()), label=NAMES[method] + label, **mark)
