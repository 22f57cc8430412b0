"""Draw the gaps of every method and the overlaps of the brackets from the table; solves nothing."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from diffrac_cvx.typing import Array
from experiments.harness.style import ACCENT, GREY, PAGE, STYLE, save
from experiments.validate.cells import LARGEST_ERROR, METHODS, RELATED, SLACK
from experiments.validate.check import errors_by_point, solver_of

SMALLEST = 1e-16  # gaps and overlaps below are drawn there


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the certified gap and the largest DIMACS error of every method, and the overlaps of the brackets."""
    present = [name for name in (*METHODS, *RELATED) if f"{name} gap" in table]
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, 3, figsize=(PAGE, 3.0), width_ratios=[1.1, 1.1, 1])
        draw_boxes(panels[0], present, [table[f"{name} gap"].dropna() for name in present])
        panels[0].set_xlabel("certified gap, $\\log_{10}$")
        errors = [errors_by_point(table, name).max(axis=1) for name in present]
        draw_boxes(panels[1], present, errors)
        panels[1].set_yticklabels([])
        panels[1].set_xticks(range(-14, 0, 4))
        panels[1].set_xlabel("largest DIMACS error, $\\log_{10}$")
        for i, (name, largest) in enumerate(zip(present, errors, strict=True), 1):
            if len(largest):
                limit = np.log10(LARGEST_ERROR[solver_of(name)])
                panels[1].plot([limit, limit], [i - 0.4, i + 0.4], color=ACCENT, lw=0.8, ls=":")
        draw_overlaps(panels[2], table["violation"].to_numpy())
        save(figure, stem)


def draw_boxes(axes: Axes, names: list[str], values: list[pd.Series]) -> None:
    """Draw the quartiles and the range of the logarithms of each method's numbers."""
    logarithms = [np.log10(np.maximum(numbers, SMALLEST)) for numbers in values]
    axes.boxplot(logarithms, orientation="horizontal", tick_labels=names, whis=(0, 100), medianprops={"color": ACCENT})
    axes.invert_yaxis()


def draw_overlaps(axes: Axes, signed: Array) -> None:
    """Draw how far inside or outside the brackets are of each other."""
    axes.hist(np.log10(np.maximum(-signed, SMALLEST)), bins=40, color=GREY)
    outside = int(np.sum(signed > SLACK))
    axes.set(xlabel="least overlap, $\\log_{10}$", ylabel="instances", title=f"{outside} of {len(signed)} apart")
