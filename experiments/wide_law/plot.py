"""Draw the law of wide tables from its table; solves only for the population curves."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from experiments.harness.style import ACCENT, GRAY, SECONDARY, panels
from experiments.harness.tables import split_parts
from experiments.wide_law.findings import FOUND_RATIO, LOST_RATIO, ratio
from experiments.wide_law.law import RIDGE, flat_cost, odds, solve_wide_population, visible_share

COLORS = {0.05: ACCENT, 0.1: SECONDARY, 0.2: "#35b779"}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the population's costs, the index over c / kappa, and the costs of noise."""
    part = split_parts(table)
    smaller = {"lines.linewidth": 1.0, "axes.labelsize": 7, "axes.titlesize": 7}
    with panels(stem, 1, 3, 2.3, rc=smaller) as (_, axes):
        draw_population(axes[0])
        draw_index(axes[1], part["groups"])
        draw_noise(axes[2], part["noise"])


def draw_population(ax: Axes, k: int = 20) -> None:
    """Optimum with infinitely many points, flat direction and diagonal, over m^2."""
    fractions = np.linspace(0.02, 0.9, 30)
    for lam in (0.05, 0.2):
        color = COLORS[lam]
        ax.plot(fractions, [odds(solve_wide_population(k, m2**0.5, lam).value) for m2 in fractions], color=color)
        ax.plot(fractions, [flat_cost(k, m2**0.5, lam) for m2 in fractions], color=color, ls=":")
        ax.plot(visible_share(lam), RIDGE + lam, color=color, marker="o", ms=3, label=rf"$\lambda = {lam:g}$")
    ax.set(ylim=(0, 0.7), xlabel="$m^2$", ylabel="cost $c$", title=f"(a) population, $k = {k}$; dotted: flat direction")
    ax.legend(frameon=False, fontsize=6)


def draw_index(ax: Axes, groups: pd.DataFrame) -> None:
    """Index of every table over c / kappa."""
    for (rho, rows), color, marker in zip(groups.groupby("rho"), (SECONDARY, ACCENT), "o^", strict=False):
        ax.plot(ratio(rows), rows["index"], marker, color=color, ms=3, mfc="none", label=rf"$\rho = {rho:g}$")
    for edge in (FOUND_RATIO, LOST_RATIO):
        ax.axvline(edge, color=GRAY, lw=0.7)
    ax.set(xscale="log", xlabel=r"$c / \kappa$ (log scale)", ylabel="adjusted Rand index", title="(b) clusters found")
    ax.legend(frameon=False, fontsize=6)


def draw_noise(ax: Axes, noise: pd.DataFrame) -> None:
    """Cost of noise, found and bounded, over the formula."""
    for column, marker, color, label in (("found", "^", ACCENT, "found"), ("kappa", "o", SECONDARY, "bound")):
        ax.plot(noise["kappa_formula"], noise[column], marker, color=color, ms=3, mfc="none", label=label)
    top = float(noise[["kappa_formula", "found"]].max().max()) * 1.05
    ax.plot([0, top], [0, top], color=GRAY, lw=0.7)
    ax.set(xlabel=r"$\kappa$ by the formula", ylabel="cost of noise", title="(c) noise")
    ax.legend(frameon=False, fontsize=6)
