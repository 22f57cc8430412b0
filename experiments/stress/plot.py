"""Draw the distance of the bounds to the exact values, by family."""

from pathlib import Path

import numpy as np
import pandas as pd

from experiments.harness.style import ACCENT, GRAY, PAGE, panels


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the median width of the bounds of each batch, one row per family; violations are marked."""
    families = sorted(table["family"].unique(), reverse=True)
    with panels(stem, 1, 1, 0.25 * len(families) + 0.8, width=0.7 * PAGE) as (_, axes):
        for i, family in enumerate(families):
            rows = table[table["family"] == family]
            widths = np.clip(rows["median_width"].dropna(), 1e-16, None)
            axes.plot(widths, np.full(len(widths), i), "|", color=GRAY, ms=7)
            if rows["violations"].sum():
                axes.text(1.0, i, f"{rows['violations'].sum()} violated", color=ACCENT, va="center", ha="right")
        axes.set_yticks(range(len(families)), [family.replace("_", " ") for family in families])
        axes.set(xscale="log", xlim=(1e-16, 2.0), xlabel="median width of the bounds in a batch, tolerance $10^{-9}$")
