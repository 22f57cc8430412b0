"""Draw the boundaries of all methods from the table."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diffrac_cvx.plotting.canvas import Style
from diffrac_cvx.typing import Array
from experiments.harness.intervals import mean_of
from experiments.harness.style import ACCENT, GRAY, GREEN, PAGE, SECONDARY, STYLE, save, with_intervals
from experiments.phase_transition.curves import draw_boundary
from experiments.rivals.findings import LAWS, boundaries
from experiments.theory.unique_solution import statistical_dimension

STYLES = {
    "relaxation": Style(ACCENT, "-", "o"),
    "CURE": Style(SECONDARY, "-", "P"),
    "spectral": Style(GREEN, "-.", "X"),
    "alternating": Style("#b8860b", "--", "s"),
    "k-means": Style("#7b3294", "--", "D"),
    "lattice": Style("black", "-", "x"),
}
NAMES = {
    "relaxation": "relaxation, no penalty",
    "alternating": "alternating optimisation",
    "k-means": "k-means, whitened",
}
SLICE = 24  # dimension of the error panel (or the nearest one measured)


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the boundaries over d for both noise laws, and the errors over n in one dimension."""
    found = boundaries(table)
    with plt.rc_context({**STYLE, "lines.linewidth": 0.9}):
        figure, axes = plt.subplots(1, 3, figsize=(PAGE, 2.9))
        top = 1.6 * table["n"].max()
        for ax, (law, words), letter in zip(axes, LAWS.items(), "ab", strict=False):
            for method, style in STYLES.items():
                if (law, method) in found:
                    line = {"ls": style.linestyle, "lw": 0.9, "label": NAMES.get(method, method)}
                    draw_boundary(ax, found[law, method], style.color, style.marker, c=style.color, **line)
            draw_laws(ax, np.geomspace(table["d"].min(), table["d"].max(), 50))
            ax.set(xscale="log", yscale="log", ylim=(2.5, top), title=f"({letter}) {words}")
            ax.set(xlabel="dimension $d$")
            ticks = sorted(set(table["d"]))[::2]
            ax.set_xticks(ticks, [f"{d:g}" for d in ticks])
            ax.minorticks_off()
        axes[0].set_ylabel("$n$ with error below 1/2 in half of the runs")
        axes[1].tick_params(labelleft=False)
        draw_errors(axes[2], table[table["law"] == "gaussian"])
        lines, labels = axes[0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside upper center", ncols=4, frameon=False, handlelength=2.6)
        save(figure, stem)


def draw_laws(ax: Axes, d: Array) -> None:
    """Draw the theoretical curves."""
    ax.plot(d, statistical_dimension(d), color=GRAY, ls="--", lw=1.6, alpha=0.6, zorder=0, label="$d + d(d-1)/4$")
    ax.plot(d, d + 1, color=GRAY, ls=":", lw=1.6, alpha=0.8, zorder=0, label="$d + 1$")


def draw_errors(ax: Axes, table: pd.DataFrame) -> None:
    """Draw the mean error over n with its interval, in one dimension."""
    d = min(set(table["d"]), key=lambda value: abs(value - SLICE))
    for method, style in STYLES.items():
        rows = table[(table["method"] == method) & (table["d"] == d)]
        if rows.empty:
            continue
        with_intervals(ax, rows, "n", "error", mean_of, **style._asdict())
    ax.axvline(statistical_dimension(float(d)), color=GRAY, ls="--", lw=1.6, alpha=0.6, zorder=0)
    ax.set(xscale="log", xlabel="points $n$", ylabel="mean clustering error", ylim=(-0.03, 1.03))
    ax.set_title(f"(c) Gaussian noise, $d = {d:g}$")
