"""Warnings about columns of a table that may not be features."""

from collections.abc import Iterator, Sequence

import numpy as np

from diffrac_cvx.datasets.columns import format_list
from diffrac_cvx.datasets.targets import MAX_CLASSES, MIN_DISTINCT_FRACTION, is_row_id_name, target_rank
from diffrac_cvx.points.checks import Array, rounding_floor

MISSING_CODES = (-99.0, -999.0, -9999.0, -99999.0)  # codes that some programs write for a missing value


def find_data_warnings(X: Array, names: Sequence[str]) -> Iterator[str]:
    """Yield warnings about features (n, d) that may be row numbers, missing codes, labels, constants or duplicates.

    A column is checked completely only if its name or its first entries are suspicious.
    """
    n, low = len(X), X.min(axis=0)
    begins = np.all(np.diff(X[:3], axis=0) == 1.0, axis=0) & (n > 2)
    for name, column, starts in zip(names, X.T, begins.tolist(), strict=True):
        if (starts and np.all(np.diff(column) == 1.0)) or (is_row_id_name(name) and numbers_rows(column)):
            yield f"column {name!r} numbers the rows but is used as a feature. Drop it if it is not one"
    for j in np.flatnonzero(np.isin(low, MISSING_CODES)).tolist():
        coded = X[:, j] == low[j]
        if not coded.all() and X[~coded, j].min() >= 0.0:
            rows = "one row" if coded.sum() == 1 else f"{coded.sum()} rows"
            yield f"column {names[j]!r} is {low[j]:g} in {rows}: possibly a missing-value code, but read as a number"
    for name, column in zip(names, X.T, strict=True):
        if target_rank(name) is None or not is_integer_column(column):
            continue
        if 2 <= (count := len(np.unique(column))) <= min(MAX_CLASSES, n // 2):
            yield f"column {name!r} looks like a label, with {count} values. Specify it as the label if it is one"
    constant = X.std(axis=0) <= rounding_floor(X.mean(axis=0), n)
    constants = [repr(names[j]) for j in np.flatnonzero(constant).tolist()]
    if len(constants) == 1:
        yield f"column {constants[0]} is constant and carries no information"
    elif constants:
        yield f"columns {format_list(constants)} are constant and carry no information"
    equal = [" = ".join(repr(names[j]) for j in same) for same in equal_columns(X) if not constant[same[0]]]
    if equal:
        yield f"columns are equal in every row, so they count more than once: {format_list(equal)}. Keep one of each"


def is_integer_column(column: Array) -> bool:
    """Return whether a column contains only integers."""
    return bool(np.all(np.round(column) == column))


def numbers_rows(column: Array) -> bool:
    """Return whether a column contains only integers, nearly all distinct."""
    return is_integer_column(column) and len(np.unique(column)) >= max(MIN_DISTINCT_FRACTION * len(column), 3)


def equal_columns(X: Array) -> list[list[int]]:
    """Return the groups of indices of columns that are equal in every row."""
    same: dict[bytes, list[int]] = {}
    _, which, counts = np.unique(X.sum(axis=0), return_inverse=True, return_counts=True)
    for j in np.flatnonzero(counts[which] > 1).tolist():
        same.setdefault((X[:, j] + 0.0).tobytes(), []).append(j)  # -0.0 + 0.0 is 0.0
    return [found for found in same.values() if len(found) > 1]
