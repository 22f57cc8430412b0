"""Tables and figures used only by the page: roundings, comparison, more than two clusters, tables as figures."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.certificates import certify_labels
from diffrac_cvx.comparison import Comparison
from diffrac_cvx.comparison.table import ReportTable
from diffrac_cvx.metrics import clustering_error
from diffrac_cvx.plotting.canvas import axes_for, format_name, short_legend, style_of
from diffrac_cvx.points.checks import Array
from diffrac_cvx.points.constraints import Constraints
from diffrac_cvx.problem.formatting import formatted_upper
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.result import Result
from diffrac_cvx.rounding import ROUNDINGS, goemans_williamson, refine

COMPARISON_COLUMNS = (
    "method",
    "problem",
    "value",
    "lower",
    "upper",
    "gap",
    "eigenvalue_ratio",
    "error",
    "label_gap",
    "seconds",
)
TITLED_CELL = '<td data-title="{}">{}</td>'
COLUMN_TITLES = {
    "lower": "lower bound", "upper": "upper bound", "gap": "duality gap", "eigenvalue_ratio": "eigenvalue ratio",
    "error": "clustering error", "label_gap": "optimality gap",
}  # fmt: skip
MAX_NAMED_PER_CLUSTER = 4  # features per cluster
MIN_COEFFICIENT = 1e-3  # of the largest coefficient; smaller ones count as zero
NEGLIGIBLE_VARIATION = 1e-9  # singular value relative to the largest


def rounding_table(
    X: Array, result: Result, y: Array | None, nu: float, penalty: Penalty, *, like: Array, bounds: bool = True,
    constraints: Constraints | None = None,
) -> ReportTable:  # fmt: skip
    """Return sizes, clustering error, cost of Eq. (9) and optimality gap for every rounding of a result.

    `like`: labels that determine the sign of the others.  `bounds`: whether the lower bound of the result is a bound
    on Eq. (9) with this nu and penalty, as for (8), (11) and (15).
    """
    found = {name: rounding(result.F, constraints=constraints) for name, rounding in ROUNDINGS.items()}
    found["goemans_williamson"] = goemans_williamson(result.F, 0, constraints=constraints)
    found["kmeans_centered, refined"] = refine(X, found["kmeans_centered"], constraints=constraints)
    found = {name: -labels if labels @ like < 0.0 else labels for name, labels in found.items()}
    lower = result.lower if bounds else 0.0
    parameters: dict[str, Any] = {"nu": nu, "penalty": penalty, "constraints": constraints}
    proofs = {name: certify_labels(X, labels, lower, **parameters) for name, labels in found.items()}
    least = min(proof.objective for proof in proofs.values())
    return ReportTable.from_records(
        [
            {
                "rounding": name,
                "cluster 0": int(np.sum(labels < 0)),
                "cluster 1": int(np.sum(labels > 0)),
                "clustering error": None if y is None else clustering_error(y, labels),
                "cost": formatted_upper(proofs[name].objective, proofs[name].gap if bounds else np.inf),
                "optimality gap": formatted_upper(proofs[name].gap) if bounds else None,
                "lowest cost": "*" if proofs[name].objective <= least + 1e-9 else "",
            }
            for name, labels in found.items()
        ]
    )


def comparison_table(comparison: Comparison) -> ReportTable:
    """Return a comparison with the columns shown on the page."""
    titles = {
        name: COLUMN_TITLES.get(name, name)
        for name in COMPARISON_COLUMNS
        if any(name in row for row in comparison.rows)
    }
    return ReportTable.from_records(comparison.rows, titles)


def plane_of(model: Any, X: Array) -> Array:
    """Return the first two principal components of the decision functions, (n, 2), zero if there is only one."""
    return principal_plane(X @ np.atleast_2d(model.coef_).T)


def principal_plane(scores: Array) -> Array:
    """Return the first two principal components, (n, 2), of decision functions, (n, K)."""
    U, sizes, V = np.linalg.svd(scores - scores.mean(axis=0), full_matrices=False)
    signs = np.where(V[np.arange(len(V)), np.abs(V).argmax(axis=1)] < 0.0, -1.0, 1.0)
    singular_values = np.where(sizes > NEGLIGIBLE_VARIATION * sizes.max(initial=0.0), sizes, 0.0)
    plane = np.zeros((len(scores), 2))
    plane[:, : len(sizes)] = (U * signs * singular_values)[:, :2]
    return plane


def plane_figure(plane: Array, groups: Sequence[Any], title: str) -> Any:
    """Return points in a plane as a figure, with a colour and a marker per group."""
    (ax,) = axes_for(None)
    names, which = np.unique(np.asarray(groups), return_inverse=True)
    drawn = []
    for k, name in enumerate(names.tolist()):
        style, there = style_of(k), plane[which == k]
        style_options = {
            "color": style.color,
            "marker": style.marker,
            "linestyle": "none",
            "markersize": 4.0,
            "alpha": 0.7,
        }
        drawn += ax.plot(*there.T, label=f"{title} {format_name(str(name))}, {len(there)} points", **style_options)
    ax.set_xlabel("first principal component")
    ax.set_ylabel("second principal component")
    short_legend(ax, drawn, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax.figure


def cluster_table(model: Any, X: Array, names: Sequence[str] | None, order: npt.NDArray[np.int64]) -> ReportTable:
    """Return size and most important features of each cluster, numbered by `order`."""
    labels, names = order[np.asarray(model.labels_)], names or [f"x{j}" for j in range(X.shape[1])]
    weights = model.coef_[np.argsort(order)] * X.std(axis=0)
    rows = tuple(
        (k, count, f"{100 * count / len(X):.1f} %", name_weights(weights[k], names, float(np.abs(weights).max())))
        for k, count in enumerate(np.bincount(labels, minlength=len(weights)).tolist())
    )
    return ReportTable(("cluster", "points", "proportion", "most important features"), rows)


def name_weights(weights: Array, names: Sequence[str], largest: float) -> str:
    """Return the features with the largest weights, in decreasing order."""
    order = [j for j in np.argsort(-np.abs(weights), kind="stable") if abs(weights[j]) > MIN_COEFFICIENT * largest]
    words = ", ".join(f"{names[j]} {weights[j]:+.2f}" for j in order[:MAX_NAMED_PER_CLUSTER])
    return (f"{words}, ..." if len(order) > MAX_NAMED_PER_CLUSTER else words) or "none"


def table_figure(table: ReportTable) -> Any:
    """Return a table as a matplotlib figure."""
    lines = [[format_name(entry) for entry in line] for line in table.lines()]
    widths = [max(len(text) for text in column) + 2 for column in zip(*lines, strict=True)]
    (ax,) = axes_for(None, size=(0.085 * sum(widths) + 0.3, 0.3 * len(lines) + 0.2))
    ax.axis("off")
    column_widths = [width / sum(widths) for width in widths]
    drawn = ax.table(
        lines[1:], colLabels=lines[0], colWidths=column_widths, loc="center", cellLoc="center", bbox=(0, 0, 1, 1)
    )
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(9)
    for (row, column), box in drawn.get_celld().items():
        box.set_edgecolor("#cccccc")
        box.visible_edges = "B"
        box.set_text_props(weight="bold" if row == 0 else "normal", ha="left" if column == 0 else "center")
    return ax.figure


def list_html(sentences: Iterable[str]) -> str:
    """Return sentences as an HTML list."""
    return f'<ul class="remarks">{"".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)}</ul>'


def stacked_html(table: ReportTable) -> str:
    """Return a table as HTML whose cells hold their column titles, so that a narrow page shows rows as lists."""
    head, *body = ([escape(entry) for entry in line] for line in table.lines())
    heads = "".join(f'<th scope="col">{entry}</th>' for entry in head)
    rows = "".join(f"<tr>{''.join(map(TITLED_CELL.format, head, line))}</tr>" for line in body)
    stacked = f'<table class="stacked"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<div class="wide-table">{stacked}</div>'
