"""Draw the sparse regime from its table."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from experiments.harness.boundary import Boundary
from experiments.harness.style import ACCENT, GREEN, SECONDARY, draw_boundary, panels
from experiments.harness.tables import split_parts
from experiments.phase_transition.uniqueness import wendel
from experiments.sparse_regime.findings import PENALIZED, boundaries_of
from experiments.sparse_regime.models import dimension_bound
from experiments.theory.unique_solution import statistical_dimension

COLORS = {1: "#777777", 2: SECONDARY, 4: ACCENT, 8: GREEN}
MARKS = {"law": "o", "oracle": "s"}
DIMENSIONS = (32, 64, 96)  # dimensions at which the growth in l is drawn


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw n over d and over l."""
    parts = split_parts(table)
    found = {rule: boundaries_of(parts[rule], parts["exact"]) for rule in MARKS}
    with panels(stem, 1, 2, 3.6) as (_, axes):
        draw_dimensions(axes[0], found)
        draw_sparsities(axes[1], found)


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
