"""Draw the sparse regime from its table."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize

from experiments.harness.boundary import Boundary
from experiments.harness.style import ACCENT, GREEN, PAGE, SECONDARY, STYLE, draw_boundary, save
from experiments.harness.tables import split_parts
from experiments.phase_transition.findings import RECOVERED
from experiments.phase_transition.uniqueness import wendel
from experiments.sparse_regime.findings import PENALIZED, boundaries_of
from experiments.sparse_regime.models import dimension_bound
from experiments.theory.unique_solution import statistical_dimension

COLORS = {1: "#777777", 2: SECONDARY, 4: ACCENT, 8: GREEN}
MARKS = {"law": "o", "oracle": "s"}
DIMENSIONS = (32, 64, 96)  # dimensions at which the growth in l is drawn
GRAYS = ListedColormap(plt.get_cmap("Greys")(np.linspace(0.05, 0.75, 256)))


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw n over d and over l, and the weights that preserve the direction."""
    parts = split_parts(table)
    found = {rule: boundaries_of(parts[rule], parts["exact"]) for rule in MARKS}
    with plt.rc_context(STYLE):
        figure, axes = plt.subplot_mosaic("ab\nac", figsize=(PAGE, 5.0))
        draw_dimensions(axes["a"], found)
        draw_sparsities(axes["b"], found)
        draw_weights(axes["c"], parts["population"], parts["sample"])
        save(figure, stem)


def draw_dimensions(ax: Axes, found: Mapping[str, Mapping[int, Boundary]]) -> None:
    """Draw the boundaries over d with the theory."""
    d = np.geomspace(8, 256, 60)
    ax.plot(d, statistical_dimension(d), ":", color="black", lw=0.9)
    ax.plot(d, wendel(d), "--", color=COLORS[1], lw=0.9)
    for l in PENALIZED:
        ax.plot(d, [1 + dimension_bound(l, at) for at in d], "--", color=COLORS[l], lw=0.9)
    for rule, mark in MARKS.items():
        for l, boundary in found[rule].items():
            if l > 1 or rule == "law":
                draw_boundary(ax, boundary, COLORS[l], mark)
    ax.set(xscale="log", yscale="log", xlim=(7, 300), ylim=(3, 2e4))
    ax.set(xlabel="dimension $d$", ylabel="50 % boundary $n$", title="(a) points for recovery")
    for x, y, color, text in (
        (8, 9000, "black", "dotted: $d + d(d-1)/4$"),
        (8, 5000, "black", "dashed: $1 + \\delta$ (theory, $\\lambda \\to 0$)"),
        (8, 2800, "black", "\u25cb $\\lambda = 0.3/((l-1)d)$, \u25a1 best $\\lambda$"),
        (170, 45, COLORS[1], "$l = 1$"),
        (170, 330, COLORS[2], "$l = 2$"),
        (150, 1500, COLORS[4], "$l = 4$"),
        (50, 1500, COLORS[8], "$l = 8$"),
    ):
        ax.text(x, y, text, color=color, fontsize=6.5)


def draw_sparsities(ax: Axes, found: Mapping[str, Mapping[int, Boundary]]) -> None:
    """Draw the boundaries over l at several d."""
    for d, color in zip(DIMENSIONS, (SECONDARY, ACCENT, GREEN), strict=True):
        points = [(l, b.n50[b.d == d][0], b) for l, b in found["law"].items() if np.any(b.inside & (b.d == d))]
        for l, _, b in points:
            at = b.d == d
            bars = np.array([b.n50[at] - b.low[at], b.high[at] - b.n50[at]])
            ax.errorbar([l], b.n50[at], bars, fmt="o", ms=3, mfc="white", mec=color, ecolor=color, elinewidth=0.7)
        theory = [wendel(d), *(1 + dimension_bound(l, d) for l in PENALIZED)]
        ax.plot([1, *PENALIZED], theory, "--", color=color, lw=0.9)
        ax.plot([5.5, 9.5], [statistical_dimension(d)] * 2, ":", color=color, lw=0.9)
        ax.text(9.8, statistical_dimension(d), f"$d = {d}$", color=color, fontsize=6.5, va="center")
    lines = np.array([1.0, 9.5])
    ax.plot(lines, 12 * lines, color="#777777", lw=0.7)
    ax.text(5, 45, "slope 1", color="#777777", fontsize=6.5)
    ax.set(xscale="log", yscale="log", xlim=(0.85, 15), ylim=(8, 6000), xticks=[1, 2, 4, 8], xticklabels=list("1248"))
    ax.minorticks_off()
    ax.set(xlabel="nonzero entries $l$", ylabel="50 % boundary $n$", title="(b) growth in $l$")
    ax.text(0.95, 3200, "dashed: $1 + \\delta$, dotted: $d + d(d-1)/4$", fontsize=6.5)


def draw_weights(ax: Axes, population: pd.DataFrame, sample: pd.DataFrame) -> None:
    """Draw the weight of the planted direction over lambda and d, and the large samples with recovery."""
    grid = population.pivot_table(index="lam", columns="d", values="excess")
    image = ax.pcolormesh(
        grid.columns, grid.index, grid.to_numpy(), cmap=GRAYS, norm=Normalize(0, 1), shading="nearest", rasterized=True
    )
    rate = (sample["error"] < RECOVERED).groupby([sample["d"], sample["lam"]]).mean().reset_index(name="share")
    for fraction, face in ((1.0, ACCENT), (0.0, "white")):
        at = rate[rate["share"] == fraction]
        ax.plot(at["d"], at["lam"], "o", ms=3.5, mfc=face, mec=ACCENT, mew=0.7)
    some = rate[(rate["share"] > 0.0) & (rate["share"] < 1.0)]
    ax.plot(some["d"], some["lam"], "o", ms=3.5, fillstyle="left", mfc=ACCENT, mfcalt="white", mec=ACCENT, mew=0.7)
    d = np.geomspace(grid.columns.min(), grid.columns.max(), 50)
    ax.plot(d, 1 / (3 * d), color=SECONDARY)
    ax.set(xscale="log", yscale="log", xlabel="dimension $d$", ylabel=r"weight $\lambda$")
    ax.set(xlim=(5.3, 290), ylim=(2.7e-4, 0.34))
    ax.set_title("(c) weights that preserve a 4-sparse direction")
    ax.text(82, 0.02, r"$\lambda (l-1) d = 1$", color=SECONDARY, fontsize=6.5)
    ax.figure.colorbar(image, ax=ax, label=r"weight of the direction, $n = \infty$", pad=0.02)
