"""Draw the gap over time for a few instances, and the run times of all instances over their root gaps."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from experiments.harness.style import ACCENT, GRAY, GREEN, SECONDARY, panels
from experiments.optimal.cells import TIMES, TOL

NAMED = {  # sets and ridges: colour and dashes
    ("heart", 0.3): (SECONDARY, "-"),
    ("breast_cancer", 0.1): (ACCENT, "-"),
    ("wine 0 or 1", 0.0): (GREEN, "-"),
    ("heart", 1.0): (SECONDARY, "--"),
    ("liver_disorders", 1.0): (GRAY, "-"),
    ("wdbc", 0.3): (ACCENT, "--"),
    ("diabetes", 0.3): (GREEN, "--"),
    ("sonar", 0.3): (GRAY, "--"),
}
PARTS = {"real": (ACCENT, "o"), "planted": (SECONDARY, "^"), "small": (GRAY, "s")}
LEAST_GAP = 1e-5  # smaller gaps are drawn here
LOWEST = 5e-6  # of the axis of gaps


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw both panels."""
    with panels(stem, 1, 2, 2.9) as (_, axes):
        draw_gaps(axes[0], table)
        draw_seconds(axes[1], table)


def draw_gaps(axes: Axes, table: pd.DataFrame) -> None:
    """Gap over time; a line ends with a dot if the labels are certified as optimal."""
    real = table[table["part"] == "real"]
    for _, row in real[[pair in NAMED for pair in zip(real["name"], real["ridge"], strict=True)]].iterrows():
        color, dashes = NAMED[row["name"], row["ridge"]]
        known = [(seconds, row[f"gap at {seconds:g}"]) for seconds in TIMES if seconds <= row["seconds"]]
        path = np.array([*known, (row["seconds"], row["gap"])], dtype=float)
        label = f"{str(row['name']).replace('_', ' ')}, {row['ridge']:g}"
        axes.plot(path[:, 0], np.maximum(path[:, 1], LEAST_GAP), color=color, ls=dashes, label=label)
        if row["solved"]:
            axes.plot(row["seconds"], max(row["gap"], LEAST_GAP), "o", color=color, ms=4, clip_on=False)
    axes.axhline(TOL, color=GRAY, lw=0.7, ls=":")
    axes.set(xscale="log", yscale="log", xlabel="processor time (s)", ylabel="certified gap", ylim=(LOWEST, None))
    axes.set_title("(a) sets and ridges; dot: certified optimal")
    axes.legend(
        frameon=False, fontsize=6, loc="lower left", bbox_to_anchor=(0.0, 0.12), handlelength=2.4, labelspacing=0.2
    )


def draw_seconds(axes: Axes, table: pd.DataFrame) -> None:
    """Run time of each instance over its root gap, filled if the labels are certified as optimal."""
    for part, (color, marker) in PARTS.items():
        for solved, fill in ((1, color), (0, "none")):
            rows = table[(table["part"] == part) & (table["solved"] == solved)]
            axes.plot(
                np.maximum(rows["root_gap"], LEAST_GAP), rows["seconds"], marker, color=color, mfc=fill, ms=3.5, mew=0.8
            )
        axes.plot([], [], marker, color=color, ms=3.5, label=part)
    axes.plot([], [], "o", color="black", mfc="none", ms=3.5, mew=0.8, label="hollow: not solved within the limit")
    axes.set(xscale="log", yscale="log", xlabel="root gap (relaxation)", ylabel="processor time (s)")
    axes.set_xticks([10.0**k for k in range(-5, 0)], [r"$\leq 10^{-5}$", *(f"$10^{{{k}}}$" for k in range(-4, 0))])
    axes.set_title("(b) all instances")
    axes.legend(frameon=False, fontsize=6, loc="upper left", labelspacing=0.25)
