"""What a user should know of the features of a table before they are clustered on: which look like none."""

from collections.abc import Iterator, Sequence

import numpy as np

from diffrac_cvx.datasets.columns import list_texts
from diffrac_cvx.datasets.outcomes import DIFFERENT, MOST_CLASSES, names_points, outcome_rank
from diffrac_cvx.points.checks import Array, find_constant

CODES = (-99.0, -999.0, -9999.0, -99999.0)  # that some programs write for a missing value


def remarks_on(X: Array, names: Sequence[str]) -> Iterator[str]:
    """Yield sentences about features, (n, d), that number the rows, may be labels, are constant or equal to others."""
    n, whole = len(X), np.all(np.round(X) == X, axis=0)
    counts_up = np.all(np.diff(X, axis=0) == 1.0, axis=0) & (n > 2)
    for j, name in enumerate(names):
        if counts_up[j] or (whole[j] and names_points(name) and len(np.unique(X[:, j])) >= max(DIFFERENT * n, 3)):
            yield f"column {name!r} numbers the rows, and is used as a feature: drop it if it is not one"
    least = X.min(axis=0)
    for j in np.flatnonzero(np.isin(least, CODES)):
        count = int(np.sum(X[:, j] == least[j]))
        if count < n and X[X[:, j] > least[j], j].min() >= 0.0:
            rows = "one row" if count == 1 else f"{count} rows"
            yield f"column {names[j]!r} is {least[j]:g} in {rows}, which may stand for a missing value: it is none here"
    for j, name in enumerate(np.where(whole, names, "").tolist()):
        if outcome_rank(name) is not None and 2 <= (count := len(np.unique(X[:, j]))) <= min(MOST_CLASSES, n // 2):
            yield f"column {name!r} looks like a label, with {count} values: name it as the label if it is no feature"
    constant = find_constant(np.abs(X - X.mean(axis=0)).max(axis=0), np.abs(X).max(axis=0), n)
    alone = [repr(names[j]) for j in np.flatnonzero(constant)]
    if len(alone) == 1:
        yield f"column {alone[0]} is constant and carries no information"
    elif alone:
        yield f"columns {list_texts(alone)} are constant and carry no information"
    equal = [" = ".join(repr(names[j]) for j in same) for same in equal_columns(X) if not constant[same[0]]]
    if equal:
        yield f"columns are equal in every row, and count more than once: {list_texts(equal)}; keep one of each"


def equal_columns(X: Array) -> list[list[int]]:
    """Return the numbers of the columns that are equal in every row, those that are equal to each other together."""
    same: dict[bytes, list[int]] = {}
    _, which, counts = np.unique(X.sum(axis=0), return_inverse=True, return_counts=True)
    for j in np.flatnonzero(counts[which] > 1):
        same.setdefault((X[:, j] + 0.0).tobytes(), []).append(int(j))  # -0.0 + 0.0 is 0.0
    return [found for found in same.values() if len(found) > 1]
