"""Draw Table 1 from its measurements."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from experiments.harness.style import ACCENT, GRAY, GREEN, SECONDARY, draw_intervals, panels
from experiments.two_class.cells import EARLY, READINGS, STOP
from experiments.two_class.findings import SAME, Protocol, by_protocol, fraction_wrong, settings, summary, telling_first

GOLD, PURPLE = "#b8860b", "#7b3294"
MARKS = dict(zip(READINGS, zip("^sP", (ACCENT, GREEN, GOLD), strict=True), strict=True))
LEGEND = (  # in columns of three
    *("sparse", "sparse, paper", "every setting", "non-sparse", "non-sparse, paper", "all in one cluster"),
    *("alternating", "alternating, paper", "least squares with labels", "k-means, whitened", "k-means, paper"),
)


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the figures with the paper's, and those of its algorithm in each reading."""
    rows = telling_first(summary(table))
    caption = (
        "(a) The best setting by the true classes, as in the paper. Filled marks: the paper's figures; bars: two "
        "standard errors over the runs of a baseline; dashes: every setting of the grid that finds two clusters. "
        "(b) The paper's algorithm for three readings of the scale of X, which the paper does not state: "
        + "; ".join(f"{name}: {meaning}" for name, meaning in READINGS.items())
        + f". Grey band: at most {100 * SAME:g} % of the points differ."
    )
    with panels(stem, 2, 1, 5.6, caption=caption, height_ratios=(3, 2)) as (_, (top, bottom)):
        draw_errors(top, rows, table)
        draw_differences(bottom, rows, by_protocol(table))
        for ax, title in ((top, "(a)"), (bottom, "(b) paper's algorithm")):
            ax.set_xticks(np.arange(len(rows)), [name.replace("_", "\n") for name in rows.index])
            ax.set_xlim(-0.5, len(rows) - 0.5)
            ax.tick_params(axis="x", length=0)
            ax.set_title(title)
            for k in range(1, len(rows)):
                ax.axvline(k - 0.5, color="0.9", lw=0.6, zorder=0)
            handles = dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
            names = [name for name in LEGEND if name in handles] or list(handles)
            above: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "frameon": False}
            columns = 4 if len(names) > 6 else 3
            ax.legend([handles[name] for name in names], names, ncols=columns, columnspacing=1.2, **above)


def draw_errors(ax: Axes, rows: pd.DataFrame, table: pd.DataFrame) -> None:
    """Draw the columns of Table 1: ours, the paper's (filled), and every setting that finds a clustering."""
    solved = settings(table)
    place = np.arange(len(rows))
    for k, name in enumerate(rows.index):
        mine = solved[solved["split"] & (solved["data_set"] == name)]
        ax.plot(np.full(len(mine), k - 0.43), mine["error"], "_", color=GRAY, ms=5, mew=0.5, alpha=0.7)
    ax.plot([], [], "_", color=GRAY, ms=5, label="every setting")
    marks: dict[str, Any] = {"ls": "none", "ms": 5, "mew": 0.9}
    for column, shift, color, marker in (("sparse", -0.31, ACCENT, "^"), ("non-sparse", -0.13, SECONDARY, "o")):
        ax.plot(place + shift, rows[column], marker=marker, color=color, mfc="none", label=column, **marks)
        paper = rows[f"paper {column}"]
        ax.plot(place + shift + 0.08, paper, marker=marker, color=color, label=f"{column}, paper", **marks)
    for column, shift, color, marker in (("alternating", 0.05, PURPLE, "D"), ("k-means", 0.22, GOLD, "s")):
        label = "k-means, whitened" if column == "k-means" else column
        style: dict[str, Any] = {"fmt": marker, "color": color, "ms": 4, "elinewidth": 0.8, "capsize": 1.5}
        draw_intervals(ax, place + shift, list(rows[column]), mfc="none", label=label, **style)
        ax.plot(place + shift + 0.08, rows[f"paper {column}"], marker, color=color, ms=4, label=f"{column}, paper")
    ax.plot(place + 0.42, rows["constant"], "x", color="black", ms=4, label="all in one cluster")
    ax.plot(place + 0.42, rows["supervised"], "+", color=GREEN, ms=5, label="least squares with labels")
    ax.set(ylabel="clustering error", ylim=(-0.03, 1.05))


def draw_differences(ax: Axes, rows: pd.DataFrame, figures: Mapping[Protocol, pd.DataFrame]) -> None:
    """Draw fractions of wrong points minus the paper's, filled by its own stopping rule."""
    paper = rows["paper sparse"].map(fraction_wrong)
    drawn = [Protocol(reading, early) for reading in READINGS for early in (True, False)]
    for shift, protocol in zip(np.linspace(-0.38, 0.38, len(drawn)), drawn, strict=True):
        more = 100 * (figures[protocol].loc[rows.index, "sparse"].map(fraction_wrong) - paper)
        marker, color = MARKS[protocol.reading]
        face, label = ("none", protocol.reading) if protocol.early else (color, None)
        ax.plot(np.arange(len(rows)) + shift, more, marker, color=color, ms=4, mfc=face, label=label)
    for face, label in (("none", f"{EARLY} iterations"), ("black", f"gap {STOP:g} or the limit")):
        ax.plot([], [], "s", color="black", ms=4, mfc=face, label=label)
    ax.axhspan(-100 * SAME, 100 * SAME, color="0.93", lw=0, zorder=0)
    ax.set(ylabel="wrong points, ours\nminus the paper's (%)")
