"""Draw the runtime experiment from its table; solves nothing."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from diffrac_cvx.plotting.canvas import Style, label_ends
from experiments.harness.style import ACCENT, GREEN, GREY, PAGE, SECOND, STYLE, save
from experiments.runtime.cells import CVXPY, MAX_CUT, SECONDS

BEST = "CVXPY, better solver"
STYLES = {
    BEST: Style("black", "-", "s"),
    MAX_CUT: Style(GREEN, "-.", "v"),
    "FISTA, 1e-2": Style("#999999", ":", "o"),
    "FISTA, 1e-3": Style(GREY, "--", "D"),
    "FISTA as published": Style(GREY, "--", "D"),
    "accelerated FISTA": Style(SECOND, "-", "o"),
    "low_rank": Style(ACCENT, "-", "^"),
}
NAMES = {
    "FISTA, 1e-2": r"FISTA, $\varepsilon = 10^{-2}/\log d$",
    "FISTA, 1e-3": r"FISTA, $\varepsilon = 10^{-3}/\log d$",
}
ROWS = [(0.0, "n"), (0.0, "d"), (0.001, "n"), (0.001, "d")]
FIXED = {"n": "$d = 50$, $k = 6$", "d": "$n = 100$, $k = 2$"}
COLUMNS = {"seconds": "seconds", "error": "clustering error", "gap": "proved gap"}
LIMITS = {"error": (-0.03, 1.03), "gap": (1e-7, 1)}
WORDS = {"n": "number of points $n$", "d": "dimension $d$"}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the eight panels of Figure 3 with the proved gaps beside them, and the times at an equal gap."""
    lines = medians(table)
    own, equal = lines[lines["goal"] == "own"], lines[lines["goal"] == "equal gap"]
    with plt.rc_context({**STYLE, "lines.linewidth": 1.0}):
        figure, axes = plt.subplots(len(ROWS), 3, figsize=(PAGE, 7.6), width_ratios=[1.25, 1, 1])
        for (lam, panel), row in zip(ROWS, axes, strict=True):
            for ax, (column, label) in zip(row, COLUMNS.items(), strict=True):
                draw_curves(ax, own[(own["lam"] == lam) & (own["panel"] == panel)], panel, column)
                ax.set_ylabel(label)
            row[0].set_title(rf"$\lambda = {lam:g}$, {FIXED[panel]}")
        draw_legend(figure, own)
        label_exponents(own, list(axes[:, 0]))
        save(figure, stem)
        figure, axes = plt.subplots(2, 2, figsize=(PAGE, 4.4))
        for (lam, panel), ax in zip(ROWS, axes.T.ravel(), strict=True):
            draw_curves(ax, equal[(equal["lam"] == lam) & (equal["panel"] == panel)], panel, "seconds")
            ax.set(ylabel=r"seconds to a gap of $10^{-3}$", title=rf"$\lambda = {lam:g}$, {FIXED[panel]}")
        draw_legend(figure, equal)
        label_exponents(equal, list(axes.T.ravel()))
        save(figure, stem.with_name(f"{stem.name}_equal_gap"))


def medians(table: pd.DataFrame) -> pd.DataFrame:
    """Return the median of every method at every size, with CVXPY's better solver as a method of its own.

    A size where a method was stopped, died, or did not reach the equal gap is marked ``done = 0``.
    """
    table = table.assign(done=(table["reason"].fillna("") == "") & (table["reached"].fillna(0) == 1))
    table = table.assign(seconds=table["seconds"].fillna(SECONDS))  # of a cell that was stopped from outside
    ours = table[table["method"] == "accelerated FISTA"].assign(goal="own")  # its own rule is the equal gap
    table = pd.concat([table, ours], ignore_index=True)
    keys = ["method", "goal", "lam", "panel", "n", "d"]
    found = table.groupby(keys, sort=False).agg(
        seconds=("seconds", "median"), error=("error", "mean"), gap=("gap", "median"),
        iterations=("iterations", "median"), done=("done", "min"),
    )  # fmt: skip
    found = found.reset_index()
    cvxpy = found[found["method"].isin(CVXPY)].sort_values(["done", "seconds"], ascending=[False, True])
    best = cvxpy.drop_duplicates(keys[1:]).assign(method=BEST)
    return pd.concat([found, best], ignore_index=True).sort_values(["n", "d"], kind="stable")


def draw_curves(ax: Axes, lines: pd.DataFrame, panel: str, column: str) -> None:
    """Draw one quantity of all methods; a cross is a run that was stopped."""
    for method, style in STYLES.items():
        line = lines[lines["method"] == method]
        done, stopped = line[line["done"]], line[~line["done"].astype(bool)]
        if not line.empty:
            ax.plot(done[panel], done[column], **style._asdict(), ms=3)
            ax.plot(stopped[panel], stopped[column], color=style.color, marker="x", ls="none", ms=5)
    ax.set(xscale="log", xlabel=WORDS[panel], yscale="linear" if column == "error" else "log")
    if column in LIMITS:
        ax.set_ylim(LIMITS[column])


def label_exponents(lines: pd.DataFrame, axes: Sequence[Axes]) -> None:
    """Write the fitted exponents of the time right of the curves' ends; last, as the layout decides on the places."""
    for (lam, panel), ax in zip(ROWS, axes, strict=True):
        here = lines[(lines["lam"] == lam) & (lines["panel"] == panel) & lines["done"].astype(bool)]
        ends = {method: here[here["method"] == method] for method in STYLES}
        ends = {method: line for method, line in ends.items() if len(line) >= 3}
        heights = [float(line["seconds"].iloc[-1]) for line in ends.values()]
        texts = [f"{exponent(line, panel):.1f}" for line in ends.values()]
        label_ends(ax, heights, texts, [STYLES[method].color for method in ends])


def exponent(line: pd.DataFrame, panel: str) -> float:
    """Return the slope of log seconds over log size, on the upper half of the sizes, at least three."""
    upper = line.sort_values(panel).iloc[-max(3, (len(line) + 1) // 2) :]
    return float(np.polyfit(np.log(upper[panel]), np.log(upper["seconds"]), 1)[0])


def draw_legend(figure: Figure, lines: pd.DataFrame) -> None:
    """Name the methods that were run, above the panels, and what the numbers are."""
    handles = [
        Line2D([], [], **style._asdict(), ms=3, label=NAMES.get(method, method))
        for method, style in STYLES.items()
        if method in set(lines["method"])
    ]
    handles.append(Line2D([], [], color="black", marker="x", ls="none", ms=5, label="stopped at its limit"))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False)
    figure.supxlabel("coloured numbers: fitted exponents of the time, upper half of the sizes", fontsize=7, color=GREY)
