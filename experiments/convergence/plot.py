"""Draw the instances that each solver solves, by family and size."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from experiments.convergence.cells import GOALS, METHODS
from experiments.convergence.instances import SIZES
from experiments.harness.beyond import panels
from experiments.harness.style import ACCENT, GRAY

SHADES = {0: ACCENT, 1: "#bdbdbd", 2: GRAY}  # by the number of goals reached
NOT_RUN: Any = {"marker": "_", "s": 10, "linewidths": 0.6, "color": GRAY}
WORDS = ("not solved", *(f"to a gap of {goal:g}" for goal in GOALS))


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw a square for each instance with the tightest goal reached; a dash if a solver is not run."""
    families = list(dict.fromkeys(table["family"]))
    names = [name for name in METHODS if name in set(table["method"])]
    sizes = [size for size in SIZES if ((table["n"] == size[0]) & (table["d"] == size[1])).any()]
    reached = sum(table[f"solved {goal:g}"].fillna(0.0) for goal in GOALS)
    with panels(stem, 1, len(names), 0.16 * len(families) + 1.2, sharey=True, squeeze=False) as (figure, [row]):
        for axes, name in zip(row, names, strict=True):
            part = table[table["method"] == name]
            for goals, shade in SHADES.items():
                rows = part[reached[part.index] == goals]
                at = [sizes.index((row.n, row.d)) for row in rows.itertuples()]
                axes.scatter(at, [families.index(family) for family in rows["family"]], marker="s", s=14, color=shade)
            run = set(zip(part["family"], part["n"], part["d"], strict=True))
            left_out = [
                (k, j) for j, family in enumerate(families) for k, at in enumerate(sizes) if (family, *at) not in run
            ]
            axes.scatter(*np.reshape(left_out, (-1, 2)).T, **NOT_RUN)
            axes.set_title(name, fontsize=7)
            axes.set_xticks(range(len(sizes)), [f"{n} x {d}" for n, d in sizes], rotation=90, fontsize=6.5)
            axes.set_xlim(-0.7, len(sizes) - 0.3)
            axes.tick_params(length=0)
        row[0].set_yticks(range(len(families)), families, fontsize=6.5)
        row[0].set_ylim(len(families) - 0.4, -0.6)
        handles = [Line2D([], [], marker="s", ls="", ms=4, color=SHADES[k], label=WORDS[k]) for k in SHADES]
        handles.append(
            Line2D([], [], ls="", marker="_", ms=4, mew=0.6, color=GRAY, label="not run: too large for the solver")
        )
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
