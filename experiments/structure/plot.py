"""Draw the verdicts of the structure test and the rejections of other tests, by family."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from experiments.harness.style import ACCENT, GRAY, SECONDARY, panels
from experiments.structure.findings import LEVEL, shares

BARS = {"separated": (ACCENT, "verdict: separated"), "splits better": ("#fddbc7", "not separated, splits better")}
MARKS = {"either cost": ("o", SECONDARY), "SigClust": ("^", "#1b7837"), "dip": ("D", GRAY)}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw one panel without groups and one with: a bar of verdicts for each family, and a mark for each other test."""
    parts = [shares(table[table["groups"] == groups]) for groups in (0, 1)]
    caption = (
        f"Each bar is a family of tables of one kind; dashed: a share of {LEVEL:g}. Numbers in (b) are shares of the "
        "rows in per cent, of groups 5 standard deviations apart unless named otherwise. Marks: other tests at the "
        f"level {LEVEL:g}, on the same tables or some of them."
    )
    with panels(stem, 1, 2, 0.6 + 0.19 * max(map(len, parts)), caption=caption) as (figure, axes):
        for ax, part, title in zip(axes.flat, parts, ("(a) without groups", "(b) with groups"), strict=True):
            draw_shares(ax, part)
            ax.set_title(title)
        lines, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside upper center", ncols=3, frameon=False)


def draw_shares(ax: Axes, table: pd.DataFrame) -> None:
    """Draw verdicts as stacked bars and the rejections of the other tests as marks, one row for each family."""
    at, left = np.arange(len(table)), np.zeros(len(table))
    for column, (color, label) in BARS.items():
        width = np.array([share.value for share in table[column]])
        ax.barh(at, width, left=left, height=0.75, color=color, label=label)
        left += width
    for test, (marker, color) in MARKS.items():
        rates = [share.value for share in table[test]]
        ax.plot(rates, at, marker, ms=3.5, color=color, label=f"rejected: {test}")
    ax.axvline(LEVEL, color="black", lw=0.6, ls="--")
    ax.set(yticks=at, yticklabels=table.index, xlabel="share of the tables", xlim=(-0.02, 1.02))
    ax.set_ylim(len(table) - 0.5, -0.5)
