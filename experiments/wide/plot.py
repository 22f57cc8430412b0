"""Draw the index and the selected columns over the shift, of each method."""

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from diffrac_cvx.plotting.canvas import Style
from experiments.harness.style import ACCENT, GRAY, GREEN, SECONDARY, panels, with_band
from experiments.wide.cells import CURVES, USUAL, K
from experiments.wide.methods import OWN

STYLES = {
    OWN: Style(ACCENT, "-", "o"),
    "k-means": Style(GRAY, "--", "v"),
    "spectral": Style("#b8860b", ":", "P"),
    "sparse k-means": Style(SECONDARY, "-", "^"),
    "IF-PCA": Style(SECONDARY, "--", "s"),
    "kurtosis": Style(GREEN, "-", "<"),
    "dip": Style(GREEN, "--", ">"),
    "pursuit": Style(GREEN, "-.", "P"),
    "best component": Style(GREEN, ":", "D"),
    "without factors": Style("#7b4f9d", "-", "X"),
}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw one panel per curve, and one for the selected columns, with the legend in the last place.

    Titles give the noise and the number of informative columns.  The table has more methods, and the real pairs.
    """
    made = table[table["kind"] == "made"]
    narrow = made[(made["share"] == USUAL["share"]) & (made["d"] == made["d"].min())]
    with panels(stem, 2, 4, 4.2, rc={"lines.linewidth": 0.9, "font.size": 7}, sharey=True) as (_, grid):
        *axes, found, last = grid.ravel()
        for ax, letter, (noise, k) in zip(axes, "abcdef", CURVES, strict=True):
            draw_curves(ax, narrow[(narrow["noise"] == noise) & (narrow["k"] == k)], "index")
            ax.set_xlabel("shift")
            ax.set_title(f"({letter}) {noise}, {k} columns", fontsize=7.5)
        draw_curves(found, narrow[(narrow["noise"] == USUAL["noise"]) & (narrow["k"] == K)], "top")
        found.set(title=f"(g) columns found, of {K}", xlabel="shift")
        for row in grid:
            row[0].set_ylabel("adjusted Rand index")
        axes[0].set_ylim(-0.08, 1.08)
        last.axis("off")
        last.legend(*axes[0].get_legend_handles_labels(), loc="center", frameon=False)


def draw_curves(ax: Axes, rows: pd.DataFrame, column: str) -> None:
    """Draw the mean of each method over the shift, the relaxation's with two standard errors."""
    for method, style in STYLES.items():
        mine = rows[(rows["method"] == method) & rows[column].notna()]
        if method == OWN:
            with_band(ax, mine, "shift", column, label=method, ms=3.0, zorder=3, **style._asdict())
        elif len(mine):
            means = mine.groupby("shift")[column].mean()
            ax.plot(means.index, means, label=method, ms=2.2, lw=0.7, **style._asdict())
