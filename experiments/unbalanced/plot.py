"""Draw the paths of alpha and nu from the table."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from experiments.harness.style import ACCENT, GRAY, SECONDARY, panels, with_band
from experiments.unbalanced.cells import ALPHA_STAR

CURVES = {
    "sign_leading": {"label": "first eigenvector", "color": SECONDARY, "marker": "o"},
    "sign_second": {"label": "second eigenvector", "color": GRAY, "ls": "--", "marker": "s"},
    "sign_centered": {"label": "projection", "color": ACCENT, "marker": "^"},
}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the error over alpha and over nu without noise, and the rank over alpha with and without."""
    clean = table[table["noise"] == 0.0]
    with panels(stem, 1, 3, 2.3) as (figure, (left, right, ranks)):
        draw_errors(left, clean[clean["path"] == "alpha"])
        left.axvline(ALPHA_STAR, color=GRAY, lw=0.6, ls=":")
        left.set_xlabel(r"$\alpha$ (constrained)")
        left.annotate(r"$\alpha_*$", (ALPHA_STAR + 0.02, 0.5))
        draw_errors(right, clean[clean["path"] == "nu"])
        right.set(xscale="log", xlabel=r"$\nu$ (penalised)")
        figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
        draw_ranks(ranks, table[table["path"] == "alpha"])
        left.set_title(r"(a) error, $\sigma = 0$")
        right.set_title(r"(b) error, $\sigma = 0$")
        ranks.set_title("(c) rank")


def draw_errors(axes: Axes, table: pd.DataFrame) -> None:
    """Draw the mean error of the three roundings, with a band of two standard errors."""
    for name, style in CURVES.items():
        with_band(axes, table, "parameter", f"error_{name}", **style)
    axes.set(ylim=(-0.03, 1.03), ylabel="clustering error")


def draw_ranks(axes: Axes, table: pd.DataFrame) -> None:
    """Draw the mean rank over alpha, one line per noise level."""
    shades = plt.get_cmap("viridis")(np.linspace(0.0, 0.8, table["noise"].nunique()))
    for (noise, group), shade, marker in zip(table.groupby("noise"), shades, "osv^", strict=False):
        with_band(axes, group, "parameter", "rank", label=rf"$\sigma = {noise:g}$", color=shade, marker=marker)
    axes.axvline(ALPHA_STAR, color=GRAY, lw=0.6, ls=":")
    axes.set(xlabel=r"$\alpha$ (constrained)", ylabel="rank of $Y$", ylim=(0, 9.5))
    axes.legend(frameon=False, loc="center", bbox_to_anchor=(0.62, 0.43))
