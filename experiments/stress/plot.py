"""Draw how close the bounds come to the exact values, family by family; solves nothing."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from experiments.harness.style import ACCENT, GREY, PAGE, STYLE, save


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the median width of the brackets of each batch, one row a family; violated families are marked."""
    families = sorted(table["family"].unique(), reverse=True)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(0.7 * PAGE, 0.25 * len(families) + 0.8))
        for i, family in enumerate(families):
            rows = table[table["family"] == family]
            widths = np.clip(rows["median_width"].dropna(), 1e-16, None)
            axes.plot(widths, np.full(len(widths), i), "|", color=GREY, ms=7)
            if rows["violations"].sum():
                axes.text(1.0, i, f"{rows['violations'].sum()} violated", color=ACCENT, va="center", ha="right")
        axes.set_yticks(range(len(families)), [family.replace("_", " ") for family in families])
        axes.set(xscale="log", xlim=(1e-16, 2.0), xlabel="median width of the bracket in a batch, tolerance $10^{-9}$")
        save(figure, stem)
