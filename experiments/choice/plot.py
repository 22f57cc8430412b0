"""Draw the choice without labels against k-means and the best of the grid."""

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from experiments.harness.style import ACCENT, SECONDARY, panels

KINDS = {"design": (SECONDARY, "o"), "held-out": (ACCENT, "^")}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw one point per set: the choice against k-means, and against the best of the grid."""
    caption = (
        "Each mark is one table: adjusted Rand index with the true classes of the setting chosen without labels. Line: "
        "equal indices. Held-out sets were not used to design the rule."
    )
    with panels(stem, 1, 2, 3.2, caption=caption, sharey=True) as (_, axes):
        draw_points(axes[0], table, "kmeans", "index of k-means on standardised features")
        draw_points(axes[1], table, "best", "index of the best of the grid by true labels")
        axes[0].set_title("(a) against k-means")
        axes[1].set_title("(b) against the best setting")
        axes[0].set_ylabel("adjusted Rand index of the choice\nwithout labels")
        axes[0].legend(frameon=False, loc="lower right")


def draw_points(ax: Axes, table: pd.DataFrame, column: str, label: str) -> None:
    """Draw the adjusted Rand index of the choice against that of another method, with the diagonal."""
    ax.plot([-0.15, 1.0], [-0.15, 1.0], color="0.7", lw=0.8, zorder=0)
    for kind, (color, marker) in KINDS.items():
        part = table[table["kind"] == kind]
        ax.plot(part[column], part["choice"], marker, color=color, ms=4.5, alpha=0.8, label=f"{kind} sets")
    ax.set(xlabel=label, xlim=(-0.15, 1.05), ylim=(-0.15, 1.05), aspect="equal")
