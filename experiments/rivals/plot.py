"""Draw the boundaries of all methods from the table."""

from pathlib import Path

import numpy as np
import pandas as pd

from diffrac_cvx.plotting.canvas import Style
from experiments.harness.style import ACCENT, GRAY, GREEN, SECONDARY, draw_boundary, panels
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


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the boundaries over d for both noise laws."""
    found = boundaries(table)
    with panels(stem, 1, 2, 3.2, rc={"lines.linewidth": 0.9}) as (figure, axes):
        top = 1.6 * table["n"].max()
        for ax, (law, words), letter in zip(axes, LAWS.items(), "ab", strict=True):
            for method, style in STYLES.items():
                if (law, method) in found:
                    line = {"ls": style.linestyle, "lw": 0.9, "label": NAMES.get(method, method)}
                    draw_boundary(ax, found[law, method], style.color, style.marker, c=style.color, **line)
            d = np.geomspace(table["d"].min(), table["d"].max(), 50)
            theory = {"$d + d(d-1)/4$": ("--", statistical_dimension(d)), "$d + 1$": (":", d + 1)}
            for label, (dashes, n) in theory.items():
                ax.plot(d, n, color=GRAY, ls=dashes, lw=1.6, alpha=0.7, zorder=0, label=label)
            ax.set(xscale="log", yscale="log", ylim=(2.5, top), title=f"({letter}) {words}")
            ax.set(xlabel="dimension $d$")
            ticks = sorted(set(table["d"]))[::2]
            ax.set_xticks(ticks, [f"{d:g}" for d in ticks])
            ax.minorticks_off()
        axes[0].set_ylabel("$n$ with error below 1/2 in half of the runs")
        axes[1].tick_params(labelleft=False)
        lines, labels = axes[0].get_legend_handles_labels()
        figure.legend(lines, labels, loc="outside upper center", ncols=4, frameon=False, handlelength=2.6)
