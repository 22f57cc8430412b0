"""What a user should know of the features of a table before they are clustered on: which look like none."""

from collections.abc import Iterator, Sequence

import numpy as np

from diffrac_cvx.datasets.columns import format_list
from diffrac_cvx.datasets.targets import MAX_CLASSES, MIN_DISTINCT_FRACTION, is_row_id_name, target_rank
from diffrac_cvx.points.checks import Array, rounding_floor

MISSING_CODES = (-99.0, -999.0, -9999.0, -99999.0)  # that some programs write for a missing value


def find_data_warnings(X: Array, names: Sequence[str]) -> Iterator[str]:
    """Yield sentences about features, (n, d), that may be numbers of rows, codes, labels, constant or equal to others.

    Each is looked at as a whole only where its name or its first entries give cause.
    """
    n, low = len(X), X.min(axis=0)
    begins = np.all(np.diff(X[:3], axis=0) == 1.0, axis=0) & (n > 2)
    for name, column, starts in zip(names, X.T, begins.tolist(), strict=True):
        if (starts and np.all(np.diff(column) == 1.0)) or (is_row_id_name(name) and numbers_rows(column)):
            yield f"column {name!r} numbers the rows, and is used as a feature: drop it if it is not one"
    for j in np.flatnonzero(np.isin(low, MISSING_CODES)).tolist():
        coded = X[:, j] == low[j]
        if not coded.all() and X[~coded, j].min() >= 0.0:
            rows = "one row" if coded.sum() == 1 else f"{coded.sum()} rows"
            yield f"column {names[j]!r} is {low[j]:g} in {rows}, which may stand for a missing value: it is none here"
    for name, column in zip(names, X.T, strict=True):
        if target_rank(name) is None or not is_integer_column(column):
            continue
        if 2 <= (count := len(np.unique(column))) <= min(MAX_CLASSES, n // 2):
            yield f"column {name!r} looks like a label, with {count} values: name it as the label if it is no feature"
    constant = X.std(axis=0) <= rounding_floor(X.mean(axis=0), n)
    constants = [repr(names[j]) for j in np.flatnonzero(constant).tolist()]
    if len(constants) == 1:
        yield f"column {constants[0]} is constant and carries no information"
    elif constants:
        yield f"columns {format_list(constants)} are constant and carry no information"
    equal = [" = ".join(repr(names[j]) for j in same) for same in equal_columns(X) if not constant[same[0]]]
    if equal:
        yield f"columns are equal in every row, and count more than once: {format_list(equal)}; keep one of each"


def is_integer_column(column: Array) -> bool:
    """Whether a column holds whole numbers alone."""
    return bool(np.all(np.round(column) == column))


def numbers_rows(column: Array) -> bool:
    """Whether a column holds whole numbers, nearly all different."""
    return is_integer_column(column) and len(np.unique(column)) >= max(MIN_DISTINCT_FRACTION * len(column), 3)


def equal_columns(X: Array) -> list[list[int]]:
    """Return the numbers of the columns that are equal in every row, those that are equal to each other together."""
    same: dict[bytes, list[int]] = {}
    _, which, counts = np.unique(X.sum(axis=0), return_inverse=True, return_counts=True)
    for j in np.flatnonzero(counts[which] > 1).tolist():
        same.setdefault((X[:, j] + 0.0).tobytes(), []).append(j)  # -0.0 + 0.0 is 0.0
    return [found for found in same.values() if len(found) > 1]
