"""Tables of the page, the roundings side by side and the comparison, and a table as a figure."""

from collections.abc import Iterable
from html import escape
from typing import Any

import numpy as np

from diffrac_cvx.certificates import certify_labels
from diffrac_cvx.comparison import Comparison
from diffrac_cvx.comparison.table import Table
from diffrac_cvx.metrics import clustering_error
from diffrac_cvx.plotting.canvas import axes_for, plain
from diffrac_cvx.points.checks import Array
from diffrac_cvx.problem.penalty import Penalty
from diffrac_cvx.problem.proved_numbers import proved_upper
from diffrac_cvx.problem.result import Result
from diffrac_cvx.rounding import ROUNDINGS, goemans_williamson, refine

COLUMNS = ("method", "problem", "value", "lower", "upper", "gap", "eigenvalue_ratio", "error", "label_gap", "seconds")
TITLED = '<td data-title="{}">{}</td>'
TITLES = {
    "lower": "lower bound", "upper": "upper bound", "gap": "proved gap", "eigenvalue_ratio": "eigenvalue ratio",
    "error": "error against the true labels", "label_gap": "proved label gap",
}  # fmt: skip


def rounding_table(
    X: Array, result: Result, y: Array | None, nu: float, penalty: Penalty, *, bounds: bool = True
) -> Table:
    """Return what every rounding of a result gives: sizes, clustering error, cost by Eq. (9), and its proved gap.

    The labels of least cost are marked.  `bounds` says whether the result's lower bound is one on Eq. (9) with this nu
    and penalty, as that of (8), (11) and (15) is.
    """
    found = {name: rounding(result.F) for name, rounding in ROUNDINGS.items()}
    found["goemans_williamson"] = goemans_williamson(result.F, 0)
    found["kmeans_centered, refined"] = refine(X, found["kmeans_centered"])
    lower = result.lower if bounds else 0.0
    proofs = {name: certify_labels(X, labels, lower, nu=nu, penalty=penalty) for name, labels in found.items()}
    least = min(proof.objective for proof in proofs.values())
    return Table.from_records(
        [
            {
                "rounding": name,
                "+1": int(np.sum(labels > 0)),
                "-1": int(np.sum(labels < 0)),
                "error against the true labels": None if y is None else clustering_error(y, labels),
                "cost": proved_upper(proofs[name].objective, proofs[name].gap if bounds else np.inf),
                "proved label gap": proved_upper(proofs[name].gap) if bounds else None,
                "cheapest": "*" if proofs[name].objective <= least + 1e-9 else "",
            }
            for name, labels in found.items()
        ]
    )


def comparison_table(comparison: Comparison) -> Table:
    """Return a comparison with the columns that the page shows."""
    titles = {name: TITLES.get(name, name) for name in COLUMNS if any(name in row for row in comparison.rows)}
    return Table.from_records(comparison.rows, titles)


def table_figure(table: Table) -> Any:
    """Return a table as a matplotlib figure."""
    lines = [[plain(entry) for entry in line] for line in table.lines()]
    widths = [max(len(text) for text in column) + 2 for column in zip(*lines, strict=True)]
    (ax,) = axes_for(None, size=(0.085 * sum(widths) + 0.3, 0.3 * len(lines) + 0.2))
    ax.axis("off")
    shares = [width / sum(widths) for width in widths]
    drawn = ax.table(lines[1:], colLabels=lines[0], colWidths=shares, loc="center", cellLoc="center", bbox=(0, 0, 1, 1))
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(9)
    for (row, column), box in drawn.get_celld().items():
        box.set_edgecolor("#cccccc")
        box.visible_edges = "B"
        box.set_text_props(weight="bold" if row == 0 else "normal", ha="left" if column == 0 else "center")
    return ax.figure


def list_html(sentences: Iterable[str]) -> str:
    """Return sentences as a list in HTML."""
    return f'<ul class="remarks">{"".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)}</ul>'


def stacked_html(table: Table) -> str:
    """Return a table as HTML whose cells know the titles of their columns: a narrow page shows each row as a list."""
    head, *body = ([escape(entry) for entry in line] for line in table.lines())
    heads = "".join(f'<th scope="col">{entry}</th>' for entry in head)
    rows = "".join(f"<tr>{''.join(map(TITLED.format, head, line))}</tr>" for line in body)
    stacked = f'<table class="stacked"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<div class="wide-table">{stacked}</div>'
