"""Draw the runtime experiment from its table."""

from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from diffrac_cvx.plotting.canvas import Style
from experiments.benchmark.cells import TIMES
from experiments.harness.style import ACCENT, GRAY, GREEN, SECONDARY, open_marks, panels
from experiments.methods import MAX_CUT, PUBLISHED
from experiments.runtime.cells import LIMIT

STYLES = {
    "low_rank": Style(ACCENT, "-", "^"),
    "accelerated FISTA": Style(SECONDARY, "-", "o"),
    PUBLISHED: Style(GRAY, "--", "D"),
    "FISTA, 1e-2": Style("#999999", ":", "X"),
    "FISTA, 1e-3": Style(GRAY, "--", "D"),
    "CVXPY + SCS": Style("black", "-", "s"),
    "CVXPY + CLARABEL": Style("#b8860b", "-.", "P"),
    MAX_CUT: Style(GREEN, "-.", "v"),
}
NAMES = {
    "FISTA, 1e-2": r"FISTA, $\varepsilon = 10^{-2}/\log d$",
    "FISTA, 1e-3": r"FISTA, $\varepsilon = 10^{-3}/\log d$",
    MAX_CUT: "max-cut form, pymanopt",
}
ROWS = [(0.0, "n"), (0.0, "d"), (0.001, "n"), (0.001, "d")]
FIXED = {("gap", "n"): "$d = 50$", ("gap", "d"): "$n = 1000$", ("own", "n"): "$d = 50$", ("own", "d"): "$n = 100$"}
WORDS = {"n": "number of points $n$", "d": "dimension $d$"}
COLUMNS = {"seconds": "seconds", "error": "clustering error", "relative_gap": "certified relative gap"}
GOAL = TIMES[0]
NO_OPTIMUM = 1e-6  # optimal values below this count as 0: no relative gap
MARK: dict[str, Any] = {"ms": 3.5, "mew": 0.8}
THIN = {"lines.linewidth": 1.0}


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw the times to a relative gap and, in a supplement, the methods' own rules."""
    gaps = table[table["goal"] == "gap"]
    spent = gaps["seconds"].where(gaps[GOAL].isna(), gaps[GOAL]).fillna(LIMIT)
    room = (0.5 * spent.min(), 5.0 * spent.max())  # for the marks below and the arrows above
    caption = (
        "Medians of three instances (one if slow) with their ranges, processor time on one thread. Open marks "
        f"with arrows: not reached within {LIMIT:g} s by all. A line without such a mark ends at the largest size "
        "at which the method was run. The max-cut form exists for lambda = 0 alone."
    )
    with panels(stem, 2, 2, 4.9, caption=caption, rc=THIN, sharey=True) as (figure, axes):
        for (lam, panel), ax, letter in zip(ROWS, axes.ravel(), "abcd", strict=True):
            here = gaps[(gaps["lam"] == lam) & (gaps["panel"] == panel)]
            for method in STYLES:
                draw_method(ax, here[here["method"] == method], panel, method)
            ax.set(xscale="log", yscale="log", xlabel=WORDS[panel], ylim=room)
            ax.set_title(rf"({letter}) $\lambda = {lam:g}$, {FIXED['gap', panel]}")
            label_sizes(ax, here[panel])
        for ax in axes[:, 0]:
            ax.set_ylabel(r"time to a relative gap of $10^{-2}$ (s)")
        draw_legend(figure, gaps)
    draw_own_rules(table[table["goal"] == "own"], stem.with_name(f"{stem.name}_supplement"))


def draw_method(ax: Axes, rows: pd.DataFrame, panel: str, method: str) -> None:
    """Draw medians and ranges over replications; open marks with arrows, at the time spent, if some missed the goal.

    The time spent is processor time; for a killed run it is unknown, and the limit is drawn.
    """
    if rows.empty:
        return
    style = STYLES[method]
    times = rows.groupby(panel)[GOAL].agg(["median", "min", "max", "count", "size"])
    done = times[times["count"] == times["size"]]
    ax.plot(times.index, times["median"].where(times.index.isin(done.index)), **style._asdict(), **MARK)
    ax.vlines(done.index, done["min"], done["max"], color=style.color, lw=0.8)
    spent = rows[rows[GOAL].isna()].fillna({"seconds": LIMIT}).groupby(panel)["seconds"].max()
    open_marks(ax, spent.index, spent, style, zorder=3, **MARK)
    for place in spent.items():  # upward arrows: the time is larger
        ax.annotate(
            "", place, (0, 11), textcoords="offset points", annotation_clip=False,
            arrowprops={"arrowstyle": "<-", "color": style.color, "lw": 0.8, "shrinkA": 0, "shrinkB": 3},
        )  # fmt: skip


def label_sizes(ax: Axes, sizes: pd.Series) -> None:
    """Label all sizes if they are few and small."""
    values = sorted(set(sizes))
    if values and values[-1] < 1000:
        ax.set_xticks(values, [f"{value:g}" for value in values])
        ax.set_xticks([], minor=True)


def draw_own_rules(own: pd.DataFrame, stem: Path) -> None:
    """Draw time, error and gap of the methods with their own stopping rules, at the paper's sizes."""
    own = own.assign(relative_gap=(own["gap"] / own["value"]).where(own["value"] > NO_OPTIMUM))
    with panels(stem, len(ROWS), 3, 8.0, rc=THIN) as (figure, axes):
        letters = iter("abcdefghijkl")
        for (lam, panel), row in zip(ROWS, axes, strict=True):
            here = own[(own["lam"] == lam) & (own["panel"] == panel)]
            for ax, (column, label) in zip(row, COLUMNS.items(), strict=True):
                for method in STYLES:
                    draw_line(ax, here[here["method"] == method], panel, column, method)
                ax.set(xscale="log", yscale="linear" if column == "error" else "log", xlabel=WORDS[panel], ylabel=label)
                ax.set_title(f"({next(letters)})")
                label_sizes(ax, here[panel])
                if column == "error":
                    ax.set_ylim(-0.03, 1.03)
            row[0].set_title(rf"{row[0].get_title(loc='left')} $\lambda = {lam:g}$, {FIXED['own', panel]}")
        draw_legend(figure, own)


def draw_line(ax: Axes, rows: pd.DataFrame, panel: str, column: str, method: str) -> None:
    """Draw means of errors and medians of the rest; marks are open if a run was stopped by a limit."""
    if rows.empty:
        return
    style = STYLES[method]
    line = rows.groupby(panel)[column].agg("mean" if column == "error" else "median")
    met = rows.groupby(panel)["met"].min().fillna(0) == 1
    ax.plot(line.index, line, **style._asdict(), **MARK)
    stopped = line[~met.reindex(line.index)]
    open_marks(ax, stopped.index, stopped, style, **MARK)


def draw_legend(figure: Any, lines: pd.DataFrame) -> None:
    """Add a legend of the methods above the panels, and explain open marks."""
    handles = [
        Line2D([], [], **style._asdict(), **MARK, label=NAMES.get(method, method))
        for method, style in STYLES.items()
        if method in set(lines["method"])
    ]
    open_mark: dict[str, Any] = {"color": "black", "marker": "o", "mfc": "white", "ls": "none"}
    handles.append(Line2D([], [], **open_mark, **MARK, label="stopped by its limit"))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, frameon=False, handlelength=2.8)
