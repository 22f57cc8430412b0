"""Labelled points: as text in the address of the page, and in a plot where points are selected."""

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

Marks = tuple[tuple[int, int], ...]  # sorted points with labels -1 or +1
PLOT_SIZE = (5.6, 4.3)  # inches of 100 pixels; scaled down on a narrow page
POWER_STEPS = 30  # iterations of the power method
FLAT_VARIATION = 1e-9  # residual variation relative to the total, below which it counts as zero
MAX_DRAWN_POINTS = 5000
SMALL_PLOT_POINTS = 1000  # up to this number, markers are larger
CLICK_RADIUS = 0.05  # of the plot width: a click farther from all points selects none


def read_marks(text: str, data: Data) -> Marks:
    """Return the labelled points of text such as "3:1 17:0": rows of the file, each with its cluster, 0 or 1."""
    places = {str(row): place for place, row in enumerate(data.rows.tolist())}
    marks: dict[int, int] = {}
    for part in text.replace(",", " ").split():
        row, _, cluster = part.partition(":")
        if cluster not in ("0", "1"):
            raise ParameterError(f"{part} names no cluster. Write 3:1 for row 3 in cluster 1, or 3:0 for cluster 0.")
        if row not in places:
            raise ParameterError(f"{part}: there is no row {row}. Give rows from 0 to {data.rows.max()}.")
        label = 2 * int(cluster) - 1
        if marks.setdefault(places[row], label) != label:
            raise ParameterError(f"{part}: row {row} cannot be in both clusters")
    return tuple(sorted(marks.items()))


def write_marks(marks: Marks, data: Data) -> str:
    """Return labelled points as text."""
    return " ".join(f"{data.rows[point]}:{int(label > 0)}" for point, label in marks)


def change_marks(marks: Marks, points: Iterable[int], label: int) -> Marks:
    """Return labelled points after setting some labels to -1 or +1, or removing them with 0."""
    changed = {**dict(marks), **dict.fromkeys(points, label)}
    return tuple(sorted((point, label) for point, label in changed.items() if label))


@lru_cache(maxsize=2)
def place_points(answer: ClusterSummary) -> Array:
    """Return the position of each point, (n, 2): decision function, and orthogonal direction of largest variance.

    With several decision functions, it is their first two principal components.
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
    """Return the points to draw, at most MAX_DRAWN_POINTS."""
    return np.unique(np.linspace(0, n - 1, min(n, MAX_DRAWN_POINTS)).astype(np.int64))


def draw_marks(answer: ClusterSummary, marks: Marks) -> Any:
    """Draw the points in the plane, with rings around labelled points."""
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
        ax.plot(*plane[points].T, linestyle="none", label="labelled", **ring)
        ax.legend(loc="upper right", frameon=False, fontsize="small")
    ax.set_xlabel("decision function" if answer.scores.ndim == 1 else "first principal component")
    ax.set_ylabel(
        "orthogonal direction of largest variance" if answer.scores.ndim == 1 else "second principal component"
    )
    ax.set_xticks([])
    ax.set_yticks([])
    return ax


def points_in(selection: Any, answer: ClusterSummary, ax: Any) -> list[int]:
    """Return the points in a box or lasso, or the nearest point if a box is empty, as after a click."""
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
