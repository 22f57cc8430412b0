"""More than two clusters on the page: the plane in which they are shown, and their table."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from diffrac_cvx.comparison.table import Table
from diffrac_cvx.plotting.canvas import axes_for, plain, short_legend, style_of
from diffrac_cvx.points.checks import Array

MOST_NAMED = 4  # features of a cluster
VISIBLE = 1e-3  # of the largest coefficient of all: what is smaller is not used
NEGLIGIBLE = 1e-9  # variation of a direction, over the largest


def plane_of(model: Any, X: Array) -> Array:
    """Return the points, (n, 2), in the plane in which the scores of the clusters vary most.

    The columns are the first two principal components of the scores; the second is 0 where all scores depend on one
    sum of the features.
    """
    scores = X @ np.atleast_2d(model.coef_).T
    U, sizes, V = np.linalg.svd(scores - scores.mean(axis=0), full_matrices=False)
    signs = np.where(V[np.arange(len(V)), np.abs(V).argmax(axis=1)] < 0.0, -1.0, 1.0)
    kept = np.where(sizes > NEGLIGIBLE * sizes.max(initial=0.0), sizes, 0.0)
    plane = np.zeros((len(X), 2))
    plane[:, : len(sizes)] = (U * signs * kept)[:, :2]
    return plane


def plane_figure(plane: Array, groups: Sequence[Any], title: str) -> Any:
    """Return points in a plane as a figure, each group with its colour and mark."""
    (ax,) = axes_for(None)
    names, which = np.unique(np.asarray(groups), return_inverse=True)
    drawn = []
    for k, name in enumerate(names.tolist()):
        style, there = style_of(k), plane[which == k]
        look = {"color": style.color, "marker": style.marker, "linestyle": "none", "markersize": 4.0, "alpha": 0.7}
        drawn += ax.plot(*there.T, label=f"{title} {plain(str(name))}, {len(there)} points", **look)
    ax.set_xlabel("first direction")
    ax.set_ylabel("second direction")
    short_legend(ax, drawn, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax.figure


def cluster_table(model: Any, X: Array, names: Sequence[str] | None = None) -> Table:
    """Return the clusters: their points, and the features that count most for each, per standard deviation."""
    labels, names = np.asarray(model.labels_), names or [f"x{j}" for j in range(X.shape[1])]
    weights = np.atleast_2d(model.coef_) * X.std(axis=0)
    rows = tuple(
        (k, count, f"{100 * count / len(X):.1f} %", name_weights(weights[k], names, float(np.abs(weights).max())))
        for k, count in enumerate(np.bincount(labels, minlength=len(weights)).tolist())
    )
    return Table(("cluster", "points", "share", "features that count most"), rows)


def name_weights(weights: Array, names: Sequence[str], largest: float) -> str:
    """Return the features with the largest weights, by size."""
    order = [j for j in np.argsort(-np.abs(weights), kind="stable") if abs(weights[j]) > VISIBLE * largest]
    words = ", ".join(f"{names[j]} {weights[j]:+.2f}" for j in order[:MOST_NAMED])
    return (f"{words}, ..." if len(order) > MOST_NAMED else words) or "none"
