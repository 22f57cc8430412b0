"""Draw the experiments on the theory from their table."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from experiments.harness.intervals import mean_of, median_of, proportion_of
from experiments.harness.style import ACCENT, GRAY, SECONDARY, draw_intervals, panels, with_intervals
from experiments.harness.tables import split_parts
from experiments.theory.findings import of_the_proposition, recovery_of
from experiments.theory.label_recovery import NO_CLUSTERS
from experiments.theory.sparse_direction import GRID

SHADES = ("#440154", "#31688e", "#35b779", "#8fa01d", "#c26a0a", "#b2182b")
LINES: list[dict[str, Any]] = [
    {"color": color, "marker": marker} for color, marker in zip(SHADES, "osv^Dx", strict=True)
]
DISTINCT_LINES = [{**line, "color": color} for line, color in zip(LINES, SHADES[::2], strict=False)]
POINTS: dict[str, Any] = {"ls": "none", "ms": 3}
SMALL_LEGEND: Any = {"frameon": False, "handlelength": 1.0, "labelspacing": 0.2, "fontsize": 6, "handletextpad": 0.3}
with_shares = partial(with_intervals, interval=proportion_of, alpha=0.12)


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw one panel for each statement that has a curve."""
    part = split_parts(table)
    caption = (
        "Bands and bars: 95 % intervals. (a) Each curve is one kurtosis of the noise. (b) Line: n needed = n "
        "required by the proposition; (a), (b): its two parts; small variance: noise of variance below 1, part "
        "(a). (c) Line: smallest n = statistical dimension; alpha*: squared mean of the labels. (d) From each "
        "start, ten rounds of alternation between k labels and a rotation. (e) Labels plus noise; d: dimension. "
        "(f) Best lambda of a grid for each."
    )
    smaller = {"lines.linewidth": 1.0, "axes.labelsize": 7, "axes.titlesize": 7}
    with panels(stem, 2, 3, 4.5, caption=caption, rc=smaller) as (_, axes):
        draw_kurtosis(axes[0, 0], part["recovery"])
        draw_asked(axes[0, 1], part["sample size"])
        draw_thresholds(axes[0, 2], part["balanced"], part["rank two"], part["many labels"])
        draw_procrustes(axes[1, 0], part["procrustes"])
        draw_perturbed(axes[1, 1], part["perturbed"])
        draw_sparse_direction(axes[1, 2], part["sparse direction"])


def finish(ax: Axes, words: Sequence[str], ticks: Sequence[int] = (), ylim: Any = None, **legend: Any) -> None:
    """Write the title, axis labels and legend; with ticks, x is logarithmic with these ticks only."""
    title, xlabel, ylabel = words
    if ticks:
        ax.set_xscale("log")
        ax.set_xticks(ticks, list(map(str, ticks)))
        ax.minorticks_off()
        xlabel += " (log scale)"
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    if ylim is not None:
        ax.set_ylim(ylim)
    ax.legend(**SMALL_LEGEND, **legend)


def draw_kurtosis(ax: Axes, table: pd.DataFrame) -> None:
    """Proportion of instances with a unique solution over n, for several kurtoses."""
    laws = [law for law in table["law"].unique() if law.startswith("three-point")]
    for law, line in zip(laws, LINES, strict=False):
        mine = table[table["law"] == law]
        with_shares(ax, mine, "n", "unique", label=f"{mine['beta'].iloc[0]:g}", **line)
    words = rf"(a) kurtosis $\beta$ of the noise, $d = {table['d'].iloc[0]}$", "$n$", "proportion with one solution"
    finish(ax, words, [10, 30, 100, 300], (-0.03, 1.03), loc="upper left", bbox_to_anchor=(-0.02, 1.0))


def draw_asked(ax: Axes, table: pd.DataFrame) -> None:
    """Number of points needed over the number required by the proposition."""
    own, small = of_the_proposition(table), table[table["small"] == 1]
    kinds = (("(a)", own, "n_paper"), ("(b)", own, "n_paper_b"), ("small variance", small, "n_paper"))
    for (label, mine, column), color, marker in zip(kinds, SHADES[::2], "os^", strict=True):
        means = mine.groupby(["law", "d", "m"])[[column, "n_measured"]].mean()
        ax.plot(means[column], means["n_measured"], color=color, marker=marker, mfc="none", label=label, **POINTS)
    top = float(table[["n_paper", "n_paper_b"]].max().max()) * 1.3
    ax.plot([3, top], [3, top], color=GRAY, lw=0.7)
    ax.set(xscale="log", yscale="log")
    finish(ax, ("(b) Proposition 1", "$n$ required (log scale)", "$n$ needed (log scale)"), loc="upper left")


def draw_thresholds(ax: Axes, balanced: pd.DataFrame, two: pd.DataFrame, many: pd.DataFrame) -> None:
    """Number of points with only planted solutions, over the statistical dimension."""
    kinds = [("balanced", balanced)]
    kinds += [(rf"$\alpha_* = {value:g}$", mine) for value, mine in two.groupby("imbalance")]
    kinds += [(f"{k} labels", mine) for k, mine in many.groupby("k") if k in (2, 4)]
    top = max(float(mine["expected"].max()) for _, mine in kinds) * 1.08
    ax.plot([0, top], [0, top], color=GRAY, lw=0.7)
    for (label, mine), line in zip(kinds, LINES, strict=False):
        found = mine.groupby("expected")["n_measured"].apply(mean_of)
        draw_intervals(ax, found.index, list(found), elinewidth=0.7, label=label, **line, **POINTS)
    ax.set_xlim(0, top)
    words = "(c) planted solutions only", "statistical dimension", "smallest $n$ (mean)"
    finish(ax, words, ylim=(0, 1.25 * top), loc="upper left", ncols=2, columnspacing=0.6)


def draw_procrustes(ax: Axes, table: pd.DataFrame) -> None:
    """Proportion of mixtures whose labels are recovered in ten rounds, over the number of labels."""
    kinds = {"random": "one rotation", "eigenvectors": "eigenvectors", "best": "best of ten rotations"}
    for (column, label), line in zip(kinds.items(), DISTINCT_LINES, strict=True):
        with_shares(ax, table, "k", f"few_{column}", label=label, **line)
    finish(ax, ("(d) alternation", "labels $k$", "recovered in 10 rounds"), ylim=(-0.03, 1.03), loc="lower left")


def draw_perturbed(ax: Axes, table: pd.DataFrame) -> None:
    """Ratio of the second to the first eigenvalue of Y, and error of the principal eigenvector, over the noise."""
    without = median_of(table.loc[table["noise"] == NO_CLUSTERS, "eigenvalue_ratio"])
    ax.axhline(without.value, color=GRAY, lw=0.7, ls="--")
    ax.text(0.0, without.value + 0.02, "ratio without clusters", fontsize=6, color=GRAY)
    for (d, mine), line in zip(table[table["noise"] != NO_CLUSTERS].groupby("d"), DISTINCT_LINES, strict=False):
        with_intervals(ax, mine, "noise", "eigenvalue_ratio", median_of, 0.12, label=f"$d = {d}$", **line)
        with_intervals(ax, mine, "noise", "error", mean_of, 0.12, ls=":", **line)
    ax.plot([], [], color=GRAY, ls="-", label="ratio of eigenvalues")
    ax.plot([], [], color=GRAY, ls=":", label="error")
    ax.set_yticks(np.linspace(0.0, 1.0, 6))
    words = "(e) labels with noise", r"noise $\sigma$ on $y$", "median ratio, mean error"
    finish(ax, words, ylim=(-0.03, 1.38), loc="upper left", ncols=2, columnspacing=0.6)


def draw_sparse_direction(ax: Axes, table: pd.DataFrame) -> None:
    """Proportion of instances recovered by the relaxation and by the l1 norm of v alone, over n."""
    kinds = (
        ("relaxed", r"$\Gamma(V)$, relaxed", ACCENT, "o"),
        ("alone", r"$|v|_1$ alone, best of ten", SECONDARY, "^"),
    )
    for method, label, color, marker in kinds:
        column = f"{method}_{GRID.index(recovery_of(table, method)[0])}"
        with_shares(ax, table, "n", column, color=color, marker=marker, label=label)
    words = f"(f) sparse directions, $d = {table['d'].iloc[0]}$", "$n$", "proportion recovered"
    finish(ax, words, sorted(set(table["n"])), (-0.03, 1.28), loc="upper left")
