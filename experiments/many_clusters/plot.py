"""Draw the adjusted Rand index of each set and method."""

from pathlib import Path

import numpy as np
import pandas as pd

from diffrac_cvx.plotting.canvas import Style
from experiments.harness.style import ACCENT, GRAY, GREEN, PAGE, panels
from experiments.many_clusters.findings import means

STYLES = {
    "DiffracClustering": Style(ACCENT, "", "o"),
    "k-means": Style(GRAY, "", "s"),
    "Gaussian mixture": Style(GREEN, "", "v"),
}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw one row per set and one mark per method."""
    by_set = means(table)
    rows = np.arange(len(by_set))[::-1]
    with panels(stem, 1, 1, 0.22 * len(by_set) + 1.0, width=0.8 * PAGE) as (figure, ax):
        for j, (method, style) in enumerate(STYLES.items()):
            shift = 0.12 * (1 - j)
            ax.plot(by_set[method], rows + shift, style.marker, color=style.color, ms=4, label=method)
        ax.set_yticks(rows, list(by_set.index))
        ax.set(xlabel="adjusted Rand index", xlim=(-0.05, 1.05), ylim=(-0.6, len(by_set) - 0.4))
        ax.grid(axis="y", lw=0.3)
        figure.legend(loc="outside upper center", ncols=3, frameon=False)
