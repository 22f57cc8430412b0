"""Draw the gaps of every method and the overlaps of the bounds."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from experiments.harness.beyond import panels
from experiments.harness.style import ACCENT, GRAY
from experiments.validate.cells import METHODS, RELATED, SLACK

SMALLEST = 1e-16  # smaller gaps and overlaps are drawn here


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the certified gap of every method, and the overlaps of the bounds."""
    present = [name for name in (*METHODS, *RELATED) if f"{name} gap" in table]
    with panels(stem, 1, 2, 3.0, width_ratios=[1.1, 1]) as (_, (gaps, overlaps)):
        draw_boxes(gaps, present, [table[f"{name} gap"].dropna() for name in present])
        gaps.set_xlabel("certified gap, $\\log_{10}$")
        signed = table["violation"].to_numpy()  # distance between disjoint bounds
        overlaps.hist(np.log10(np.maximum(-signed, SMALLEST)), bins=40, color=GRAY)
        title = f"{int(np.sum(signed > SLACK))} of {len(signed)} apart"
        overlaps.set(xlabel="smallest overlap, $\\log_{10}$", ylabel="instances", title=title)


def draw_boxes(axes: Axes, names: list[str], values: list[pd.Series]) -> None:
    """Draw quartiles and range of the logarithms of each method's numbers."""
    logarithms = [np.log10(np.maximum(numbers, SMALLEST)) for numbers in values]
    axes.boxplot(logarithms, orientation="horizontal", tick_labels=names, whis=(0, 100), medianprops={"color": ACCENT})
    axes.invert_yaxis()
