"""Warnings about entries of a table that may be no features or no points."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from diffrac_cvx.datasets.columns import format_list
from diffrac_cvx.points.checks import Array, rounding_floor

SUMMARY_NAMES = ("total", "totals", "grand total", "sum", "mean", "average", "avg", "sd", "std", "median", "min", "max")
MISSING_CODES = [float("9" * digits + end) for digits in range(2, 7) for end in ("", ".9", ".99")]  # or their negatives


def find_summary_rows(frame: Any) -> list[str]:
    """Return a note on the last rows if each has an entry such as Total that no other row of its column has."""
    found: list[str] = []
    for i in range(len(frame) - 1, 0, -1):
        texts = {name: text for name, text in frame.iloc[i].items() if isinstance(text, str)}
        summaries = [name for name, text in texts.items() if text.strip(" .:").lower() in SUMMARY_NAMES]
        names = [texts[name] for name in summaries if list(frame[name]).count(texts[name]) == 1]
        if not names:
            break
        found.insert(0, repr(names[0]))
    which = "the last row is" if len(found) == 1 else f"the last {len(found)} rows are"
    return [f"{which} named {format_list(found)} but used as points. Skip lines at the end if not"] if found else []


def find_data_warnings(X: Array, names: Sequence[str]) -> Iterator[str]:
    """Yield warnings about features (n, d) that may be row numbers, missing codes, constants or duplicates."""
    begins = np.all(np.diff(X[:3], axis=0) == 1.0, axis=0) & (len(X) > 2)
    for j in np.flatnonzero(begins).tolist():
        if np.all(np.diff(X[:, j]) == 1.0):
            yield f"column {names[j]!r} numbers the rows but is used as a feature. Drop it if it is not one"
    for extreme in (X.min(axis=0), X.max(axis=0)):
        for j in np.flatnonzero(np.isin(np.abs(extreme), MISSING_CODES)).tolist():
            rest = X[X[:, j] != extreme[j], j]
            if len(rest) and np.min(np.abs(rest - extreme[j])) > np.ptp(rest):
                count = len(X) - len(rest)
                rows = "one row" if count == 1 else f"{count} rows"
                yield f"column {names[j]!r} is {extreme[j]:g} in {rows}, far from the others. If it is missing, say so"
    constant = X.std(axis=0) <= rounding_floor(X.mean(axis=0), len(X))
    constants = [repr(names[j]) for j in np.flatnonzero(constant).tolist()]
    if len(constants) == 1:
        yield f"column {constants[0]} is constant and carries no information"
    elif constants:
        yield f"columns {format_list(constants)} are constant and carry no information"
    equal = [" = ".join(repr(names[j]) for j in same) for same in equal_columns(X) if not constant[same[0]]]
    if equal:
        yield f"columns are equal in every row, so they count more than once: {format_list(equal)}. Keep one of each"


def equal_columns(X: Array) -> list[list[int]]:
    """Return the groups of indices of columns that are equal in every row."""
    same: dict[bytes, list[int]] = {}
    _, which, counts = np.unique(X.sum(axis=0), return_inverse=True, return_counts=True)
    for j in np.flatnonzero(counts[which] > 1).tolist():
        same.setdefault((X[:, j] + 0.0).tobytes(), []).append(j)  # -0.0 + 0.0 is 0.0
    return [found for found in same.values() if len(found) > 1]
