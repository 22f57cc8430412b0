"""Draw the phase transition from its table."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.ticker import NullFormatter

from diffrac_cvx.typing import Array
from experiments.harness.boundary import MIN_DIMENSION, Boundary, find_boundary, fit_power
from experiments.harness.style import ACCENT, GREEN, SECONDARY, draw_boundary, panels
from experiments.phase_transition.findings import by_interior_point, with_recovery
from experiments.phase_transition.uniqueness import wendel
from experiments.theory.unique_solution import statistical_dimension

PANELS = (  # name in the table, column, title
    ("affine", "rank_one", r"rank, $\lambda = 0$"),
    ("1-sparse, 1/sqrt(n)", "rank_one", r"rank, 1-sparse, $\lambda = 1/\sqrt{n}$"),
    ("affine", "error", r"error, $\lambda = 0$"),
    ("4-sparse rotated, 1/sqrt(n)", "error", r"error, rotated, $\lambda = 1/\sqrt{n}$"),
    ("4-sparse rotated, 1/n", "error", r"error, rotated, $\lambda = 1/n$"),
    ("4-sparse flat, 1/sqrt(n)", "error", r"error, flat, $\lambda = 1/\sqrt{n}$"),
    ("4-sparse flat, 1/n", "error", r"error, flat, $\lambda = 1/n$"),
)
GRAYS = ListedColormap(plt.get_cmap("Greys")(np.linspace(0.08, 0.85, 256)))  # white: cells not measured
CAPTION = (
    "Grey: proportion of rank-one solutions in (a), (b); one minus the mean clustering error in (c) to (g); white: "
    "not measured. Red circles: n at which half of the instances succeed, with 95 % intervals; open triangles: above "
    "or below the grid. Red line: the fitted power of d, with its interval in brackets. Blue: theory. Green squares: "
    "by an interior-point solver. 4-sparse directions: flat, four equal entries; rotated, entries of a random "
    "rotation. The variance of the noise is 1."
)


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the panels of Figure 1 (dark: success), with the fitted boundary of each."""
    panel = dict(iter(with_recovery(table).groupby("panel")))
    with panels(stem, 2, 4, 4.0, mosaic="abcd\nefgk", caption=CAPTION) as (_, axes):
        for letter, (name, column, title) in zip("abcdefg", PANELS, strict=True):
            ax = axes[letter]
            success, colors = ("rank_one", GRAYS) if column == "rank_one" else ("recovered", GRAYS.reversed())
            draw_map(ax, panel[name], column, colors)
            found = find_boundary(panel[name], success)
            draw_boundary(ax, found, ACCENT)
            draw_theory(ax, name)
            if letter == "c":
                inner = find_boundary(by_interior_point(with_recovery(table)), "recovered")
                draw_boundary(ax, inner, GREEN, "s", ms=2.0)
            ax.set_title(f"({letter}) {title}", fontsize=7)
            draw_fit(ax, found)
            ax.set(xscale="log", yscale="log", xlabel="", ylabel="")
            ax.xaxis.set_minor_formatter(NullFormatter())
        for letter in "efg":
            axes[letter].set_xlabel("dimension $d$")
        for letter in "ae":
            axes[letter].set_ylabel("number of points $n$")
        draw_scale(axes["k"])


def draw_scale(ax: Axes) -> None:
    """Draw the grey scale in place of a panel."""
    ax.axis("off")
    scale = plt.cm.ScalarMappable(Normalize(0, 1), GRAYS)
    bar = ax.figure.colorbar(scale, cax=ax.inset_axes((0.05, 0.45, 0.9, 0.07)), orientation="horizontal")
    bar.set_label("proportion of rank one,\nor 1 - mean error")


def draw_map(ax: Axes, table: pd.DataFrame, column: str, colors: Colormap) -> None:
    """Draw the means over the replications; dimensions with a coarser grid of n are drawn separately."""
    points = table.groupby("d")["n"].agg(lambda n: n.nunique() / np.log(n.max() / n.min()))
    coarse = table["d"].map(points) < 0.75 * points.median()
    for part in (table[~coarse], table[coarse]):
        if len(part):
            mean = part.pivot_table(index="n", columns="d", values=column, aggfunc="mean")
            d, n = (edges(axis.to_numpy(float)) for axis in (mean.columns, mean.index))
            ax.pcolormesh(d, n, mean.to_numpy(float), cmap=colors, vmin=0, vmax=1, rasterized=True)


def edges(centers: Array) -> Array:
    """Return the cell edges around increasing centres."""
    if len(centers) == 1:
        return np.array([centers[0] - 0.5, centers[0] + 0.5])
    middle = (centers[1:] + centers[:-1]) / 2
    return np.concatenate([[2 * centers[0] - middle[0]], middle, [2 * centers[-1] - middle[-1]]])


def draw_theory(ax: Axes, name: str) -> None:
    """Draw the theory of a boundary, if there is one for its penalty."""
    if name == "affine":
        d = np.geomspace(2, 40, 50)
        ax.plot(d, statistical_dimension(d), "--", color=SECONDARY, zorder=3.5)
        ax.text(0.97, 0.22, "$d + d(d-1)/4$", transform=ax.transAxes, color=SECONDARY, fontsize=6.5, ha="right")
    if name.startswith("1-sparse"):
        d = np.geomspace(4, 256, 50)
        ax.plot(d, wendel(d), "--", color=SECONDARY, zorder=3.5)
        ax.text(0.97, 0.22, "$(d + 1)/2$", transform=ax.transAxes, color=SECONDARY, fontsize=6.5, ha="right")


def draw_fit(ax: Axes, found: Boundary) -> None:
    """Draw the power law through a boundary and write its exponent with its interval, if it is determined."""
    exponent, factor, _ = fit_power(found)
    d = found.d[found.inside & (found.d >= MIN_DIMENSION)]
    if np.isfinite(exponent.value):
        ax.plot(d, factor * d**exponent.value, color=ACCENT, lw=1.0, zorder=3)
    text = f"$n \\propto d^{{\\,{exponent.value:.2f}}}$\n({exponent.low:.2f} to {exponent.high:.2f})"
    text = text if np.isfinite(exponent.high) else "no fit"
    ax.text(0.97, 0.03, text, transform=ax.transAxes, color=ACCENT, fontsize=6.5, ha="right")
