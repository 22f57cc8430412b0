"""Draw the law of wide tables from its table."""

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from experiments.harness.style import ACCENT, GRAY, SECONDARY, panels
from experiments.harness.tables import split_parts
from experiments.wide_law.findings import FOUND_RATIO, LOST_RATIO, ratio


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the index over c / kappa, and the costs of noise."""
    part = split_parts(table)
    caption = (
        "Each mark is one table. c: cost of the true labels with a direction on the shifted columns; kappa: lower"
        " bound on the cost of any labels of the variance within clusters; rho: fraction of variance due to "
        f"common factors. Lines in (a): below c / kappa = {FOUND_RATIO:g} the theorem applies, above "
        f"{LOST_RATIO:g} the clusters are lost. (b) Noise alone: cost of the labels that were found, and the bound"
        " kappa, over the formula; line: equality."
    )
    with panels(stem, 1, 2, 2.6, caption=caption) as (_, (left, right)):
        draw_index(left, part["groups"])
        draw_noise(right, part["noise"])


def draw_index(ax: Axes, groups: pd.DataFrame) -> None:
    """Index of every table over c / kappa."""
    for (rho, rows), color, marker in zip(groups.groupby("rho"), (SECONDARY, ACCENT), "o^", strict=False):
        ax.plot(ratio(rows), rows["index"], marker, color=color, ms=3, mfc="none", label=rf"$\rho = {rho:g}$")
    for edge in (FOUND_RATIO, LOST_RATIO):
        ax.axvline(edge, color=GRAY, lw=0.7)
    ax.set(xscale="log", xlabel=r"$c / \kappa$ (log scale)", ylabel="adjusted Rand index", title="(a) clusters found")
    ax.legend(frameon=False, fontsize=6)


def draw_noise(ax: Axes, noise: pd.DataFrame) -> None:
    """Cost of noise, found and bounded, over the formula."""
    for column, marker, color, label in (("found", "^", ACCENT, "found"), ("kappa", "o", SECONDARY, "bound")):
        ax.plot(noise["kappa_formula"], noise[column], marker, color=color, ms=3, mfc="none", label=label)
    top = float(noise[["kappa_formula", "found"]].max().max()) * 1.05
    ax.plot([0, top], [0, top], color=GRAY, lw=0.7)
    ax.set(xlabel=r"$\kappa$ by the formula", ylabel="cost of noise", title="(b) noise")
    ax.legend(frameon=False, fontsize=6)
