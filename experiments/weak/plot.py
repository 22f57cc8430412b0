"""Draw F1 of the optimum over that of other methods for bags, and the lower bounds relative to the optimum."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from experiments.harness.style import ACCENT, GRAY, GREEN, SECONDARY, panels
from experiments.weak.cells import FEW, KINDS, MANY, OPTIMUM, PROGRAM

OTHERS = {FEW: (SECONDARY, "^"), MANY: (ACCENT, "o"), PROGRAM: (GREEN, "s")}
BOUNDS = {  # column, colour, marker
    "quadratic program": ("lower of program", GREEN, "s"),
    "relaxation without cuts": ("lower of root", SECONDARY, "^"),
    "relaxation with cuts (optimal_labels)": ("lower", ACCENT, "o"),
}
BELOW: dict[str, Any] = {"frameon": False, "loc": "upper center", "bbox_to_anchor": (0.5, -0.17)}  # legends
SPREAD = 0.18  # of the marks of one kind


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw both panels."""
    with panels(stem, 1, 2, 3.5) as (_, axes):
        draw_scores(axes[0], table[table["kind"] == "bags"])
        draw_bounds(axes[1], table)


def draw_scores(axes: Axes, bags: pd.DataFrame) -> None:
    """F1 of the optimum over F1 of each other method, a mark for each instance; below the line the other is better."""
    least = min(bags[[f"right by {method}" for method in (*OTHERS, OPTIMUM)]].min()) - 0.03
    axes.plot([least, 1.0], [least, 1.0], color=GRAY, lw=0.7)
    for method, (color, marker) in OTHERS.items():
        mean = bags[f"right by {method}"].mean()
        axes.plot(
            bags[f"right by {method}"], bags[f"right by {OPTIMUM}"], marker, color=color, mfc="none", ms=3.5, mew=0.8,
            label=f"{method} (mean {mean:.2f})",
        )  # fmt: skip
    axes.set(
        xlabel="F1 of the other method", ylabel=f"F1 of the optimum (mean {bags[f'right by {OPTIMUM}'].mean():.2f})"
    )
    axes.set_title("(a) bags; below the line, the other is better")
    axes.legend(**BELOW)


def draw_bounds(axes: Axes, table: pd.DataFrame) -> None:
    """Lower bounds relative to the objective of the labels found, a mark for each instance."""
    for number, (name, (column, color, marker)) in enumerate(BOUNDS.items()):
        for place, kind in enumerate(KINDS):
            rows = table[table["kind"] == kind]
            at = place + 0.28 * (number - 1) + SPREAD * (np.linspace(0.0, 1.0, len(rows)) - 0.5)
            axes.plot(
                at, rows[column] / rows["upper"], marker, color=color, mfc="none", ms=2.8, mew=0.7,
                label=name if place == 0 else None,
            )  # fmt: skip
    axes.set_xticks(range(len(KINDS)), list(KINDS))
    axes.set(ylabel="lower bound / objective found", ylim=(0.0, 1.04))
    axes.set_title("(b) lower bounds; 1: the labels are proved optimal")
    axes.legend(**BELOW)
