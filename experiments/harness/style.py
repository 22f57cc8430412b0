"""Common style of all figures: text width of a journal page, readable in grey scale, PDF and PNG."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from diffrac_cvx.machine.writing import atomic_file
from diffrac_cvx.plotting.canvas import ACCENT, GRAY, SECONDARY, Style
from diffrac_cvx.typing import Array
from experiments.harness.boundary import Boundary
from experiments.harness.intervals import Interval

PAGE = 6.75  # inches, the text width of a journal page
GREEN = "#1b7837"
CAPTION = {"size": 6.5, "color": "0.25", "ha": "left", "x": 0.01}
CAPTION_WIDTH, CAPTION_LINE = 22, 0.11  # characters in an inch, and inches of a line

__all__ = [
    "ACCENT", "GRAY", "GREEN", "PAGE", "SECONDARY", "STYLE", "draw_boundary", "draw_intervals", "open_marks",
    "panels", "save", "with_band", "with_intervals",
]  # fmt: skip
STYLE: Any = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "svg.hashsalt": "diffrac",
}


def save(figure: Figure, stem: Path) -> None:
    """Save a figure as PDF and PNG, without dates: the same table gives the same files."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(stem.with_suffix(".pdf")) as part:
        figure.savefig(part, metadata={"CreationDate": None, "Creator": None, "Producer": None})
    with atomic_file(stem.with_suffix(".png")) as part:
        figure.savefig(part, metadata={"Software": None})
    plt.close(figure)


@contextmanager
def panels(
    stem: Path,
    rows: int,
    columns: int,
    height: float,
    *,
    caption: str = "",
    mosaic: str | None = None,
    rc: Any = (),
    **given: Any,
) -> Iterator[tuple[Figure, Any]]:
    """Create the panels of a figure in the common style, with a caption below, and save it when the block ends.

    With a mosaic of letters, the axes are a dictionary by letter.
    """
    width = given.pop("width", PAGE)
    lines = textwrap.wrap(caption, round(CAPTION_WIDTH * width))
    with plt.rc_context({**STYLE, **dict(rc)}):
        size = (width, height + CAPTION_LINE * len(lines))
        figure, axes = (
            plt.subplots(rows, columns, figsize=size, **given)
            if mosaic is None
            else plt.subplot_mosaic(mosaic, figsize=size, **given)
        )
        if lines:
            figure.supxlabel("\n".join(lines), **CAPTION)
        yield figure, axes
        save(figure, stem)


def with_band(axes: Axes, table: pd.DataFrame, x: str, y: str, **line: Any) -> None:
    """Draw the mean of y at each x, with a band of two standard errors on either side."""
    groups = table.groupby(x)[y]
    mean: pd.Series = groups.mean()
    error: pd.Series = groups.std(ddof=1).fillna(0.0) / groups.size() ** 0.5
    axes.plot(mean.index, mean, ms=line.pop("ms", 2.5), **line)
    axes.fill_between(mean.index, mean - 2 * error, mean + 2 * error, color=line["color"], alpha=0.15, lw=0)


def with_intervals(
    axes: Axes,
    table: pd.DataFrame,
    x: str,
    y: str,
    interval: Callable[[Array], Interval],
    alpha: float = 0.15,
    **line: Any,
) -> None:
    """Draw a statistic of y at each x, with its interval as a band."""
    found = {at: interval(values.to_numpy(float)) for at, values in table.groupby(x)[y]}
    value, low, high = np.array(list(found.values())).T
    axes.plot(list(found), value, ms=2.5, **line)
    axes.fill_between(list(found), low, high, color=line["color"], alpha=alpha, lw=0)


def open_marks(axes: Axes, x: Any, y: Any, style: Style, **mark: Any) -> None:
    """Draw open marks over those of a line, for runs stopped by a limit."""
    axes.plot(x, y, color=style.color, marker=style.marker, mfc="white", ls="none", **mark)


def draw_intervals(ax: Axes, x: npt.ArrayLike, found: Sequence[Interval], **style: Any) -> None:
    """Draw numbers with their intervals."""
    value, low, high = np.array(list(found)).T
    ax.errorbar(x, value, np.array([value - low, high - value]), **style)


def draw_boundary(ax: Axes, found: Boundary, color: str, mark: str = "o", **line: Any) -> None:
    """Draw a boundary: points with their intervals, open triangles if it is above or below the grid."""
    inside = found.inside
    low, high = found.n50 - found.low, found.high - found.n50
    bars = np.maximum([low[inside], high[inside]], 0.0)
    style: dict[str, Any] = {"ms": 2.8, "mfc": "white", "mec": color, "mew": 0.8} | line
    if inside.any():  # an unclipped line without points would affect the layout
        d, n = found.d[inside], found.n50[inside]
        ax.errorbar(d, n, bars, fmt=mark, ecolor=color, elinewidth=0.7, clip_on=False, zorder=4, **style)
    for side, triangle in ((1, "^"), (-1, "v")):
        at = found.outside == side
        if at.any():
            ax.plot(
                found.d[at], found.n50[at], triangle, color=color, ms=3.2, mfc="none", mew=0.7, clip_on=False, zorder=4
            )
