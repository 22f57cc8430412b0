"""Draw the gaps of every method and the overlaps of the brackets from the table; solves nothing."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from experiments.harness.style import ACCENT, GREY, PAGE, STYLE, save
from experiments.validate.cells import METHODS, RELATED, SLACK

SMALLEST = 1e-16  # gaps and overlaps below are drawn there


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the certified gap of every method, and how far inside or outside the brackets are of each other."""
    present = [name for name in (*METHODS, *RELATED) if f"{name} gap" in table]
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(PAGE, 2.6), width_ratios=[1.6, 1])
        gaps = [np.log10(np.maximum(table[f"{name} gap"].dropna(), SMALLEST)) for name in present]
        left.boxplot(gaps, orientation="horizontal", tick_labels=present, whis=(0, 100), medianprops={"color": ACCENT})
        left.invert_yaxis()
        left.set_xlabel("certified gap, $\\log_{10}$")
        signed = table["violation"].to_numpy()
        right.hist(np.log10(np.maximum(-signed, SMALLEST)), bins=40, color=GREY)
        right.set(xlabel="least overlap of two brackets, $\\log_{10}$", ylabel="instances")
        outside = int(np.sum(signed > SLACK))
        right.text(0.97, 0.95, f"{outside} of {len(signed)} apart", transform=right.transAxes, ha="right", va="top")
        save(figure, stem)
