"""Draw the runtime experiment from its table; solves nothing."""

from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.harness.style import ACCENT, GREY, PAGE, SECOND, STYLE, save
from experiments.runtime.cells import SECONDS

CVXPY = ("CVXPY + SCS", "CVXPY + CLARABEL")
BEST = "CVXPY, better solver"


class Look(NamedTuple):
    """How a method is drawn."""

    color: str
    marker: str
    line: str


LOOKS = {
    BEST: Look("black", "s", "-"),
    "max-cut, pymanopt": Look("#1b7837", "v", "-."),
    "FISTA, 1e-2": Look("#999999", "o", ":"),
    "FISTA, 1e-3": Look(GREY, "D", "--"),
    "FISTA as published": Look(GREY, "D", "--"),
    "accelerated FISTA": Look(SECOND, "o", "-"),
    "low_rank": Look(ACCENT, "^", "-"),
}
NAMES = {
    "FISTA, 1e-2": r"FISTA, $\varepsilon = 10^{-2}/\log d$",
    "FISTA, 1e-3": r"FISTA, $\varepsilon = 10^{-3}/\log d$",
}
ROWS = [(0.0, "n"), (0.0, "d"), (0.001, "n"), (0.001, "d")]
FIXED = {"n": "$d = 50$, $k = 6$", "d": "$n = 100$, $k = 2$"}
WORDS = {"n": "number of points $n$", "d": "dimension $d$"}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the eight panels of Figure 3 with the proved gaps beside them, and the times at an equal gap."""
    lines = medians(table)
    with plt.rc_context({**STYLE, "lines.linewidth": 1.0}):
        figure, axes = plt.subplots(len(ROWS), 3, figsize=(PAGE, 7.6), width_ratios=[1.25, 1, 1])
        for (lam, panel), row in zip(ROWS, axes, strict=True):
            chosen = lines[(lines["goal"] == "own") & (lines["lambda"] == lam) & (lines["panel"] == panel)]
            for ax, column in zip(row, ("seconds", "error", "gap"), strict=True):
                curves(ax, chosen, panel, column)
            row[0].set_ylabel("seconds")
            row[1].set_ylabel("clustering error")
            row[1].set_ylim(-0.03, 1.03)
            row[2].set_ylabel("proved gap")
            row[0].set_title(rf"$\lambda = {lam:g}$, {FIXED[panel]}", loc="left")
        legend(figure, lines[lines["goal"] == "own"])
        save(figure, stem)
        figure, axes = plt.subplots(2, 2, figsize=(PAGE, 4.4))
        for (lam, panel), ax in zip(ROWS, axes.T.ravel(), strict=True):
            chosen = lines[(lines["goal"] == "equal gap") & (lines["lambda"] == lam) & (lines["panel"] == panel)]
            curves(ax, chosen, panel, "seconds")
            ax.set_ylabel(r"seconds to a gap of $10^{-3}$")
            ax.set_title(rf"$\lambda = {lam:g}$, {FIXED[panel]}", loc="left")
        legend(figure, lines[lines["goal"] == "equal gap"])
        save(figure, stem.with_name(f"{stem.name}_equal_gap"))


def medians(table: pd.DataFrame) -> pd.DataFrame:
    """Return the median of every method at every size, with CVXPY's better solver as a method of its own.

    A size where a method was stopped, died, or did not reach the equal gap is marked ``done = 0``.
    """
    table = table.assign(done=(table["reason"].fillna("") == "") & (table["reached"].fillna(0) == 1))
    table = table.assign(seconds=table["seconds"].fillna(SECONDS))  # of a cell that was stopped from outside
    ours = table[table["method"] == "accelerated FISTA"].assign(goal="own")  # its own rule is the equal gap
    table = pd.concat([table, ours], ignore_index=True)
    keys = ["method", "goal", "lambda", "panel", "n", "d"]
    found = table.groupby(keys, sort=False).agg(
        seconds=("seconds", "median"), error=("error", "mean"), gap=("gap", "median"),
        iterations=("iterations", "median"), done=("done", "min"),
    )  # fmt: skip
    found = found.reset_index()
    cvxpy = found[found["method"].isin(CVXPY)].sort_values(["done", "seconds"], ascending=[False, True])
    best = cvxpy.drop_duplicates(keys[1:]).assign(method=BEST)
    return pd.concat([found, best], ignore_index=True).sort_values(["n", "d"], kind="stable")


def curves(ax: Axes, lines: pd.DataFrame, panel: str, column: str) -> None:
    """Draw one quantity of all methods; a cross is a run that was stopped."""
    ends = []
    for method, look in LOOKS.items():
        line = lines[lines["method"] == method]
        done, stopped = line[line["done"]], line[~line["done"].astype(bool)]
        if line.empty:
            continue
        ax.plot(done[panel], done[column], color=look.color, marker=look.marker, ls=look.line, ms=3)
        ax.plot(stopped[panel], stopped[column], color=look.color, marker="x", ls="none", ms=5)
        if column == "seconds" and len(done) >= 3:
            ends.append((float(done[panel].iloc[-1]), float(done[column].iloc[-1]), exponent(done, panel), look.color))
    ax.set_xscale("log")
    ax.set_xlabel(WORDS[panel])
    if column != "error":
        ax.set_yscale("log")
    if column == "gap":
        ax.set_ylim(1e-7, 1)
    spread_labels(ax, ends)


def spread_labels(ax: Axes, ends: list[tuple[float, float, float, str]]) -> None:
    """Write the exponents at the right edge, in the order of the lines' ends, far enough apart to be read."""
    if not ends:
        return
    low, high = (np.log10(limit) for limit in ax.get_ylim())
    wanted = sorted((np.log10(y), power, color) for _, y, power, color in ends)
    place, step = -np.inf, 0.085 * (high - low)
    for y, power, color in wanted:
        place = max(y, place + step)
        at = (1.02, (place - low) / (high - low))
        ax.text(*at, f"{power:.1f}", color=color, transform=ax.transAxes, va="center", fontsize=7)


def exponent(line: pd.DataFrame, panel: str) -> float:
    """Return the slope of log seconds over log size, on the upper half of the sizes, at least three."""
    upper = line.sort_values(panel).iloc[-max(3, (len(line) + 1) // 2) :]
    return float(np.polyfit(np.log(upper[panel]), np.log(upper["seconds"]), 1)[0])


def legend(figure: Figure, lines: pd.DataFrame) -> None:
    """Name the methods that were run, above the panels, and what the numbers are."""
    there = [method for method in LOOKS if method in set(lines["method"])]
    handles = [
        Line2D([], [], color=LOOKS[m].color, marker=LOOKS[m].marker, ls=LOOKS[m].line, ms=3, label=NAMES.get(m, m))
        for m in there
    ]
    handles.append(Line2D([], [], color="black", marker="x", ls="none", ms=5, label="stopped at its limit"))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False)
    figure.supxlabel("coloured numbers: fitted exponents of the time, upper half of the sizes", fontsize=7, color=GREY)
