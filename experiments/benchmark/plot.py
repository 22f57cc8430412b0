"""Draw the benchmark from its table."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.benchmark.cells import TIMES
from experiments.benchmark.findings import SHORT, has_no_answer, label_of, stopped_by_limit
from experiments.harness.style import ACCENT, GRAY, GREEN, SECONDARY, panels
from experiments.methods import GOALS

MARKS = {  # colour, and a marker that distinguishes the methods in grey scale
    "low_rank": (ACCENT, "^"),
    "accelerated FISTA": (SECONDARY, "o"),
    "FISTA as published": (GRAY, "D"),
    "CVXPY + SCS": ("black", "s"),
    "CVXPY + CLARABEL": ("#b8860b", "P"),
    "CVXPY + MOREAU": ("#8c564b", "X"),
    "max-cut, pymanopt": (GREEN, "v"),
}
ROW = 0.3  # inches
SPREAD = 0.9  # fraction of a row over which its methods are spread


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the times to both goals."""
    instances = list(dict.fromkeys(table["instance"]))
    methods = [name for name in MARKS if name in set(table["method"])]
    with panels(stem, 1, 1, 1.2 + ROW * len(instances)) as (figure, ax):
        for place, instance in enumerate(instances):
            if place % 2 == 0:
                ax.axhspan(place - 0.5, place + 0.5, color="#f2f2f2", lw=0, zorder=0)
            draw_instance(ax, table[table["instance"] == instance].set_index("method"), place)
        ax.set_yticks(range(len(instances)), [label_of(name) for name in instances])
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x", color="#d0d0d0", lw=0.4)
        ax.set_axisbelow(True)
        ax.set(xscale="log", xlabel="time of one solve (s)", ylim=(len(instances) - 0.5, -0.5))
        ax.set_xlim(right=1.9 * float(table["limit"].max()))
        if table.apply(has_no_answer, axis=1).any():
            ax.text(1.035, 1.005, "not run, or\nout of memory", transform=ax.transAxes, fontsize=7, va="bottom")
        draw_legend(figure, methods)


def draw_instance(ax: Axes, rows: pd.DataFrame, place: int) -> None:
    """Draw the methods of an instance one below the other; methods without a result are marked on the right."""
    run = [name for name in MARKS if name in rows.index and not has_no_answer(rows.loc[name])]
    refused = [name for name in MARKS if name in rows.index and name not in run]
    for k, method in enumerate(run):
        draw_method(ax, rows.loc[method], place + SPREAD * ((k + 0.5) / len(run) - 0.5), *MARKS[method])
    for k, method in enumerate(refused):
        color, marker = MARKS[method]
        shape: dict[str, Any] = {"color": color, "marker": marker, "ms": 3.0, "mew": 0.6, "mfc": "white", "ls": "none"}
        ax.plot([1.05 + 0.025 * k], [place], transform=ax.get_yaxis_transform(), clip_on=False, **shape)


def draw_method(ax: Axes, row: pd.Series, height: float, color: str, marker: str) -> None:
    """Draw the time to the looser goal (open), to the tighter goal (filled), and the end of a run that missed it."""
    loose, tight = (float(row[column]) for column in TIMES)
    limited = stopped_by_limit(row) or np.isnan(row["seconds"])
    last = float(row["limit"] if limited else row["seconds"])
    end = last if np.isnan(tight) else tight
    start = end if np.isnan(loose) else loose
    shape: dict[str, Any] = {"color": color, "marker": marker, "ms": 3.6, "mew": 0.8, "ls": "none", "zorder": 3}
    ax.plot([start], [height], mfc="white", **shape)
    if not np.isnan(tight):
        ax.plot([tight], [height], mfc=color, **shape)
    elif limited:
        arrow = {"arrowstyle": "->", "color": color, "lw": 0.7, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 6}
        ax.annotate("", (end * 1.6, height), (end, height), arrowprops=arrow, zorder=2)
    else:
        end *= 1.35
        ax.plot([end], [height], color=color, marker="x", ms=3.4, mew=0.9, ls="none", zorder=3)
    ax.plot([start, end], [height, height], color=color, lw=0.7, zorder=2)


def draw_legend(figure: Figure, methods: list[str]) -> None:
    """Label the methods, and explain open and filled marks, arrow and cross."""
    handles = []
    for method in methods:
        color, marker = MARKS[method]
        handles.append(Line2D([], [], color=color, marker=marker, ls="none", ms=4, label=SHORT.get(method, method)))
    loose, tight = (rf"to a relative gap of $10^{{{round(np.log10(goal))}}}$" for goal in GOALS)
    black: dict[str, Any] = {"color": "black", "ls": "none", "ms": 4}
    handles += [
        Line2D([], [], marker="o", mfc="white", label=loose, **black),
        Line2D([], [], marker="o", label=tight, **black),
        Line2D([], [], marker=r"$\rightarrow$", label="not reached within the limit", **{**black, "ms": 7}),
        Line2D([], [], marker="x", label="stopped without reaching it", **black),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=5, frameon=False, columnspacing=1.2)
