"""Points whose clusters the user knows: as text, which the page's address has, and in a plot where they are chosen."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from diffrac_cvx.app.page.answer import Answer
from diffrac_cvx.app.page.data import Data
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.plotting.canvas import apart_from_pyplot, axes_for, short_legend, style_of

Marks = tuple[tuple[int, int], ...]  # points in their order, with their labels, -1 or +1
SIZE = (3.1, 3.3)  # inches: the plot is not made smaller by the browser, and has to fit in a narrow one
NEAR = 0.05  # of the width of the plot: a click that is farther from all points chooses none


def read_marks(text: str, data: Data) -> Marks:
    """Return the marks of text such as "3:1 17:0": rows, counted as in the file, each with its cluster, 0 or 1."""
    places = {str(row): place for place, row in enumerate(data.rows.tolist())}
    marks: dict[int, int] = {}
    for part in text.replace(",", " ").split():
        row, _, cluster = part.partition(":")
        if cluster not in ("0", "1"):
            raise ParameterError(f"{part} says no cluster: write 3:1 for row 3 in cluster 1, or 3:0 for cluster 0")
        if row not in places:
            raise ParameterError(f"{part}: there is no row {row}; rows are counted from 0, up to {data.rows.max()}")
        label = 2 * int(cluster) - 1
        if marks.setdefault(places[row], label) != label:
            raise ParameterError(f"{part}: row {row} cannot be in both clusters")
    return tuple(sorted(marks.items()))


def write_marks(marks: Marks, data: Data) -> str:
    """Return marks as text."""
    return " ".join(f"{data.rows[point]}:{int(label > 0)}" for point, label in marks)


def change_marks(marks: Marks, points: Iterable[int], label: int) -> Marks:
    """Return marks in which some points have a label, -1 or +1, or none, 0."""
    changed = {**dict(marks), **dict.fromkeys(points, label)}
    return tuple(sorted((point, label) for point, label in changed.items() if label))


def draw_marks(answer: Answer, marks: Marks) -> Any:
    """Draw each point by its score and its row, with rings around those whose clusters are known."""
    assert answer.data is not None
    rows, drawn = answer.data.rows, []
    with apart_from_pyplot():
        (ax,) = axes_for(None, size=SIZE)
    for k, label in enumerate((-1, 1)):
        inside, style = answer.labels == label, style_of(k)
        look: dict[str, Any] = {"color": style.color, "marker": style.marker, "markersize": 3.5, "linestyle": "none"}
        drawn += ax.plot(answer.scores[inside], rows[inside], label=f"cluster {k}", **look)
    points = [point for point, _ in marks]
    ring: dict[str, Any] = {"color": "k", "marker": "o", "markersize": 9.0, "markerfacecolor": "none"}
    if points:
        drawn += ax.plot(answer.scores[points], rows[points], linestyle="none", label="known", **ring)
    ax.set_xlabel("score")
    ax.set_ylabel("row")
    short_legend(
        ax, drawn, fontsize="small", loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=3, columnspacing=0.8
    )
    return ax


def points_in(selection: Any, answer: Answer, ax: Any) -> list[int]:
    """Return the points in a box or a lasso; where there is none in a box, as after a click, the nearest point."""
    assert answer.data is not None
    x, y = answer.scores, answer.data.rows
    inside = selection.get_mask(x, y)
    if not inside.any() and hasattr(selection, "x_min"):
        middle = (selection.x_min + selection.x_max) / 2, (selection.y_min + selection.y_max) / 2
        across, up = ((at - centre) / np.ptp(limits) for at, centre, limits in
                      zip((x, y), middle, (ax.get_xlim(), ax.get_ylim()), strict=True))  # fmt: skip
        distance = np.hypot(across, up)
        inside[np.argmin(distance)] = distance.min() <= NEAR
    return [int(point) for point in np.flatnonzero(inside)]
