"""Draw the index over the shift, the variants and the selected columns, and the real pairs."""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from diffrac_cvx.plotting.canvas import Style
from experiments.harness.style import ACCENT, GRAY, GREEN, SECONDARY, panels, with_band
from experiments.wide.cells import CURVES, KINDS, SHIFT, USUAL, VARIANTS, K
from experiments.wide.findings import at
from experiments.wide.methods import OWN

STYLES = {
    OWN: Style(ACCENT, "-", "o"),
    "k-means": Style(GRAY, "--", "v"),
    "mixture": Style(GRAY, ":", "D"),
    "first component": Style("#b8860b", "-.", "s"),
    "spectral": Style("#b8860b", ":", "P"),
    "sparse k-means": Style(SECONDARY, "-", "^"),
    "IF-PCA": Style(SECONDARY, "--", "s"),
    "sparse component": Style(SECONDARY, ":", "X"),
    "kurtosis": Style(GREEN, "-", "<"),
    "dip": Style(GREEN, "--", ">"),
    "pursuit": Style(GREEN, "-.", "P"),
    "convex component": Style(GREEN, ":", "*"),
}
DRAWN = (OWN, "k-means", "spectral", "sparse k-means", "IF-PCA", "kurtosis", "dip", "pursuit")
THINNER = {"lines.linewidth": 0.9, "font.size": 7}
LEGEND: dict[str, Any] = {"loc": "outside upper center", "ncols": 6, "frameon": False, "columnspacing": 1.2}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the simulated tables, and the pairs in a separate figure."""
    draw_made(table[table["kind"] == "made"], stem)
    pairs = table[table["kind"].isin(KINDS)]
    if len(pairs):
        draw_pairs(pairs, stem.with_name(f"{stem.name}_pairs"))


def draw_made(made: pd.DataFrame, stem: Path) -> None:
    """Draw one panel per curve, one for the variants of the default table, and one for the selected columns.

    Titles give the noise and the number of informative columns.  The table has more methods.
    """
    narrow = made[(made["share"] == USUAL["share"]) & (made["d"] == made["d"].min())]
    with panels(stem, 2, 4, 4.2, rc=THINNER, sharey=True) as (figure, grid):
        *axes, varied, found = grid.ravel()
        for ax, letter, (noise, k) in zip(axes, "abcdef", CURVES, strict=True):
            draw_curves(ax, narrow[(narrow["noise"] == noise) & (narrow["k"] == k)], "index")
            ax.set_xlabel("shift")
            ax.set_title(f"({letter}) {noise}, {k} columns", fontsize=7.5)
        draw_variants(varied, made)
        varied.set_title(f"(g) variants, shift {SHIFT:g}")
        draw_curves(found, narrow[(narrow["noise"] == USUAL["noise"]) & (narrow["k"] == K)], "top")
        found.set(title=f"(h) columns found, of {K}", xlabel="shift")
        for row in grid:
            row[0].set_ylabel("adjusted Rand index")
        axes[0].set_ylim(-0.08, 1.08)
        figure.legend(*axes[0].get_legend_handles_labels(), **LEGEND | {"ncols": 4})


def draw_curves(ax: Axes, rows: pd.DataFrame, column: str) -> None:
    """Draw the mean of each method over the shift, the relaxation's with two standard errors."""
    for method in DRAWN:
        style = STYLES[method]
        mine = rows[(rows["method"] == method) & rows[column].notna()]
        if method == OWN:
            with_band(ax, mine, "shift", column, label=method, ms=3.0, zorder=3, **style._asdict())
        elif len(mine):
            means = mine.groupby("shift")[column].mean()
            ax.plot(means.index, means, label=method, ms=2.2, lw=0.7, **style._asdict())


def draw_variants(ax: Axes, made: pd.DataFrame) -> None:
    """Draw the mean index of each method on the default table and on its variants, side by side."""
    changes: dict[str, dict[str, Any]] = {"as (b)": {}, **VARIANTS}
    for place, change in enumerate(changes.values()):
        means = at(made, **change).groupby("method")["index"].mean()
        for method in DRAWN:
            if method in means:
                style = STYLES[method]
                ax.plot(place, means[method], color=style.color, marker=style.marker, ms=3.0, ls="none")
    ax.set_xticks(range(len(changes)), changes, rotation=60, ha="right", fontsize=6)


def draw_pairs(pairs: pd.DataFrame, stem: Path) -> None:
    """Draw one row per pair: the index of every method, the relaxation's as a large mark."""
    names = {name: kind for kind in KINDS for name in pairs.loc[pairs["kind"] == kind, "name"].unique()}
    with panels(stem, 1, 1, 0.9 + 0.2 * len(names), rc=THINNER) as (figure, ax):
        for method, style in reversed(STYLES.items()):
            mine = pairs[pairs["method"] == method].set_index("name")["index"]
            if len(mine):
                places = [list(names).index(name) for name in mine.index]
                mark = {"marker": style.marker, "ms": 6.0 if method == OWN else 3.5, "ls": "none", "alpha": 0.8}
                ax.plot(mine, places, color=style.color, label=method, **mark)
        said = [name + (" (held out)" if kind == "held-out" else "") for name, kind in names.items()]
        ax.set_yticks(range(len(names)), said)
        ax.set(xlabel="adjusted Rand index", ylim=(len(names) - 0.5, -0.5))
        ax.grid(axis="y", lw=0.3, color="0.9")
        figure.legend(**LEGEND)
