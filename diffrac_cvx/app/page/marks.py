"""Points whose clusters the user knows: as text, which the page's address has, and in a plot where they are chosen."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from diffrac_cvx.app.page.data import Data
from diffrac_cvx.app.page.naming import number_clusters
from diffrac_cvx.app.page.summary import ClusterSummary
from diffrac_cvx.app.page.tables import principal_plane
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.plotting.canvas import axes_for, style_of, without_pyplot
from diffrac_cvx.points.checks import Array

Marks = tuple[tuple[int, int], ...]  # points in their order, with their labels, -1 or +1
PLOT_SIZE = (5.6, 4.3)  # inches, a hundred pixels each; a narrow page makes it smaller
POWER_STEPS = 30  # of the power method
FLAT_VARIATION = 1e-9  # variation beside the score, over all: less is none
MAX_DRAWN_POINTS = 5000  # points
SMALL_PLOT_POINTS = 1000  # points, which are drawn larger
CLICK_RADIUS = 0.05  # of the width of the plot: a click that is farther from all points chooses none


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


@lru_cache(maxsize=2)
def place_points(answer: ClusterSummary) -> Array:
    """Return where each point is drawn, (n, 2): its score, and the direction of the largest variation beside it.

    Of several scores it is the plane in which these vary most.
    """
    assert answer.data is not None
    if answer.scores.ndim > 1:
        return principal_plane(answer.scores)
    X = answer.data.X - answer.data.X.mean(axis=0)
    score = answer.scores - answer.scores.mean()
    residual = X - np.outer(score, X.T @ score) / max(float(score @ score), np.finfo(float).tiny)
    v = np.random.default_rng(0).standard_normal(X.shape[1])
    for _ in range(POWER_STEPS):
        v = residual.T @ (residual @ v)
        v /= max(float(np.linalg.norm(v)), np.finfo(float).tiny)
    height = residual @ v * np.sign(v[np.argmax(np.abs(v))] or 1.0)
    flat = np.ptp(height) <= FLAT_VARIATION * np.ptp(X)
    return np.column_stack([answer.scores, answer.data.rows if flat else height])


def drawn_points(n: int) -> np.ndarray:
    """Return the points that are drawn, at most MAX_DRAWN_POINTS."""
    return np.unique(np.linspace(0, n - 1, min(n, MAX_DRAWN_POINTS)).astype(np.int64))


def draw_marks(answer: ClusterSummary, marks: Marks) -> Any:
    """Draw the points in the plane, with rings around those whose clusters are known."""
    assert answer.data is not None
    plane, clusters = place_points(answer), number_clusters(answer.labels)
    drawn = drawn_points(len(plane))
    is_small = len(drawn) <= SMALL_PLOT_POINTS
    with without_pyplot():
        (ax,) = axes_for(None, size=PLOT_SIZE)
    for k in np.unique(clusters).tolist():
        style, there = style_of(k), plane[drawn[clusters[drawn] == k]]
        style_options: dict[str, Any] = {"color": style.color, "marker": style.marker, "linestyle": "none", "mew": 0.0}
        ax.plot(*there.T, markersize=6.0 if is_small else 3.0, alpha=0.75 if is_small else 0.5, **style_options)
    points = [point for point, _ in marks]
    ring: dict[str, Any] = {"color": "k", "marker": "o", "markersize": 10.0, "markerfacecolor": "none"}
    if points:
        ax.plot(*plane[points].T, linestyle="none", label="known", **ring)
        ax.legend(loc="upper right", frameon=False, fontsize="small")
    ax.set_xlabel("score" if answer.scores.ndim == 1 else "first direction of the scores")
    ax.set_ylabel("largest variation beside it" if answer.scores.ndim == 1 else "second direction")
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


def points_in(selection: Any, answer: ClusterSummary, ax: Any) -> list[int]:
    """Return the points in a box or a lasso; where there is none in a box, as after a click, the nearest point."""
    drawn = drawn_points(len(answer.labels))
    x, y = place_points(answer)[drawn].T
    inside = selection.get_mask(x, y)
    if not inside.any() and hasattr(selection, "x_min"):
        middle = (selection.x_min + selection.x_max) / 2, (selection.y_min + selection.y_max) / 2
        across, up = ((at - center) / np.ptp(limits) for at, center, limits in
                      zip((x, y), middle, (ax.get_xlim(), ax.get_ylim()), strict=True))  # fmt: skip
        distance = np.hypot(across, up)
        inside[np.argmin(distance)] = distance.min() <= CLICK_RADIUS
    return [int(point) for point in drawn[inside]]
