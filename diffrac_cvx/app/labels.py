"""Labels in the output of the command line and the page: lists, files and contingency tables."""

from collections.abc import Iterable

import numpy as np

from diffrac_cvx.comparison.table import ReportTable
from diffrac_cvx.metrics import ContingencyMatrix
from diffrac_cvx.points.checks import Array


def join_words(values: Iterable[object]) -> str:
    """Return values as text, such as "1, 2 and 3"."""
    *first, last = map(str, values)
    return f"{', '.join(first)} and {last}" if first else last


def file_table(
    titles: tuple[str, str, str],
    rows: np.ndarray,
    labels: np.ndarray,
    scores: Array,
    true: np.ndarray | None,
    names: np.ndarray | None = None,
) -> ReportTable:
    """Return the content of a label file: row number, label or labels, decision values, reference label, name.

    With more than two clusters, the margin, the largest decision value minus the second, follows the decision values.
    """
    n, (label, score, true_title) = len(rows), titles
    labels, scores = labels.reshape(n, -1), scores.reshape(n, -1)
    first = 1 if labels.shape[1] > 1 else 0  # labels are numbered from 1, clusters from 0
    titles_of_columns = [*numbered_titles(label, labels, first), *numbered_titles(score, scores, first)]
    if labels.shape[1] < scores.shape[1]:
        titles_of_columns, scores = (
            [*titles_of_columns, "margin"],
            np.column_stack([scores, np.ptp(np.sort(scores)[:, -2:], axis=1)]),
        )
    head = ("row", *titles_of_columns, *([] if true is None else [true_title]), *([] if names is None else ["name"]))
    short = ([float(f"{value:.9g}") for value in line] for line in scores.tolist())
    last = np.column_stack([np.empty((n, 0)), *(column for column in (true, names) if column is not None)])
    lines = zip(rows.tolist(), labels.tolist(), short, last.tolist(), strict=True)
    return ReportTable(head, tuple((row, *found, *values, *group) for row, found, values, group in lines))


def numbered_titles(title: str, columns: Array, first: int) -> list[str]:
    """Return the titles of columns, numbered if there are several."""
    k = columns.shape[1]
    return [title] if k == 1 else [f"{title}_{j + first}" for j in range(k)]


def contingency_table(crosstab: ContingencyMatrix, row: str, column: str) -> ReportTable:
    """Return the number of points by reference class (rows) and cluster (columns)."""
    head = (row, *(f"{column} {name}" for name in crosstab.found))
    lines = zip(crosstab.true, crosstab.counts.tolist(), strict=True)
    return ReportTable(head, tuple((name, *counts) for name, counts in lines))
