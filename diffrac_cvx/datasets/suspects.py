"""Rules that detect suspicious columns and rows: codes for missing values, dates, keys, and totals."""

from collections.abc import Collection, Sequence
from itertools import product

import numpy as np

from diffrac_cvx.datasets.columns import format_list
from diffrac_cvx.points.checks import Array, rounding_floor

MAX_CODES = 4  # distinct codes at one end of a range
LONE_FACTOR = 10.0  # distance of a value that occurs once, relative to the range of the rest
MIN_STEPS = 4.0  # distance of a code from other whole numbers
MIN_DISTINCT = 12  # values of a column in which frequent end values are suspicious; a scale from 0 to 10 has 11
N_NEIGHBOURS = 5  # distinct values with which the end of a range is compared
MIN_REPEATS, MANY, MANY_APART, APART = 5, 5.0, 3.0, 2.5  # occurrences and gap, relative to the neighbours
MIN_ROWS, MIN_WIDTH = 8, 4  # smallest number of rows of a table with keys, and of digits of a key
YEARS = (1900, 2050)


def find_suspects(X: Array, names: Sequence[str], padded: Collection[str] = ()) -> tuple[dict[str, str], list[str]]:
    """Return the reasons why columns of X, (n, d), may not be features or may have codes for missing values, and notes.

    Reasons are by column name.  The numbers of the ``padded`` features have leading zeros in the file.
    """
    keys, codes, notes = describe_keys(X, names), dict[str, str](), list[str]()
    keys = {name: f"column {name!r} has leading zeros" for name in names if name in padded} | keys
    for name, column in zip(names, X.T, strict=True):
        if name not in keys and (text := describe_codes(column)):
            codes[name] = f"column {name!r} is {text}"
    if keys:
        single = "is used as a feature. Drop it if it is not one"
        text = single if len(keys) == 1 else "are used as features. Drop those that are not"
        notes.append(f"{format_list(keys.values())} but {text} (drop)")
    if codes:
        missing = "it is" if len(codes) == 1 else "they are"
        notes.append(f"{format_list(codes.values())}. If {missing} missing, say so (na_values)")
    constant = X.std(axis=0) <= rounding_floor(X.mean(axis=0), len(X))
    if constant.any():
        constants = format_list(repr(names[j]) for j in np.flatnonzero(constant).tolist())
        notes.append(f"constant columns carry no information: {constants}")
    return keys | codes, notes


# Codes


def describe_codes(column: Array) -> str:
    """Return the values of a column that may be codes for missing values, as text, "" if there are none.

    Codes are at most four values at each end of the range that lie outside the range of the rest by more than this
    range.  Each code recurs, or is the only negative value, or is ten ranges away.  The rest has no such gap itself;
    otherwise the values have a heavy tail.  Values that recur far more often than their neighbours at the end of a
    range are codes too.
    """
    values, counts = np.unique(column, return_counts=True)
    n, gaps, found, reason = len(values), np.diff(values), set[int](), "far from the others"
    core = values[-MAX_CODES - 1] - values[MAX_CODES] if n > 2 * MAX_CODES else 0.0  # least range of the rest
    low, high = ([0, *(1 + np.flatnonzero(side[:MAX_CODES] > core)).tolist()] for side in (gaps, gaps[::-1]))
    pairs: list[tuple[int, int]] = sorted(product(low, high), key=lambda pair: -sum(pair))
    for i, k in pairs:
        if 2 <= n - i - k >= i + k > 0 and are_outside(values, gaps, counts, i, n - k):
            found = {*range(i), *range(n - k, n)}
            break
    if not found and n >= MIN_DISTINCT and max(counts[0], counts[-1]) >= MIN_REPEATS:
        found = {n - 1 - i for i in range(count_repeated(values[::-1], gaps[::-1], counts[::-1]))}
        found |= {*range(count_repeated(values, gaps, counts))}
        reason = "more often than near values"
    shown = (f"{values[i]:g} in {'one row' if counts[i] == 1 else f'{counts[i]} rows'}" for i in sorted(found))
    return f"{' and '.join(shown)}, {reason}" if found else ""


def are_outside(values: Array, gaps: Array, counts: np.ndarray, start: int, stop: int) -> bool:
    """Return whether the values before start, and from stop on, are outside the rest by more than its range.

    Each further value on a side needs another such distance, except for negative values if the rest has none.
    """
    width, inner = values[stop - 1] - values[start], gaps[start : stop - 1]
    if (width != 1.0) if len(inner) == 1 else (inner.max() > 0.5 * width or 2 * (stop - start) == len(values)):
        return False
    if start and values[start - 1] > 0.0:  # a code below the others is zero or negative
        return False
    least = MIN_STEPS * float(np.all(values == np.floor(values)))
    sides = [(gaps[start - 1], counts[:start], values[start - 1] < 0.0 <= values[start])] if start else []
    sides += [(gaps[stop - 1], counts[stop:], False)] if stop < len(values) else []
    return all(
        gap > max(least, width * (1 if is_negative else len(rows)))
        and (rows.min() > 1 or is_negative or gap > LONE_FACTOR * width)
        for gap, rows, is_negative in sides
    )


def count_repeated(values: Array, gaps: Array, counts: np.ndarray) -> int:
    """Return how many of the first values recur far more often than their neighbours; zeros need a gap too."""
    for k in range(min(MAX_CODES, len(values) - N_NEIGHBOURS - 1), 0, -1):
        least, usual = counts[:k].min(), counts[k : k + N_NEIGHBOURS].max()
        is_apart = abs(gaps[k - 1]) >= APART * np.abs(gaps[k : k + N_NEIGHBOURS]).max()
        is_many = least >= MANY * usual and np.all(values[:k] != 0.0)
        if least >= MIN_REPEATS and (is_many or (is_apart and least >= MANY_APART * usual)):
            return k
    return 0


# Dates and keys


def describe_keys(X: Array, names: Sequence[str]) -> dict[str, str]:
    """Return, by name, the description of columns that number, date or identify the rows.

    If many columns increase with the row, or have distinct numbers, they count as measurements.
    """
    certain, possible = dict[str, str](), dict[str, dict[str, str]]()
    begins = np.all(np.diff(X[:3], axis=0) == 1.0, axis=0)
    for name, column, may_count in zip(names, X.T, begins.tolist(), strict=True):
        if may_count and len(X) > 2 and np.all(np.diff(column) == 1.0):
            certain[name] = f"column {name!r} numbers the rows"
        elif are_dates(column):
            certain[name] = f"column {name!r} has dates such as {column[0]:.0f}"
        elif len(column) >= MIN_ROWS and (text := describe_order(column)):
            possible.setdefault(text, {})[name] = f"column {name!r} {text}"
    for columns in possible.values():
        certain |= columns if len(columns) <= max(2, len(names) // 20) else {}
    return {name: certain[name] for name in names if name in certain}


def are_dates(column: Array) -> bool:
    """Return whether a column has at least three distinct numbers, all of them dates such as 20240131 or 202401."""
    if not (np.all(column == np.floor(column)) and column.min() >= YEARS[0] and len(np.unique(column[:1000])) > 2):
        return False
    whole = column.copy()
    while whole.max() >= 1e8:  # drop hours, minutes and seconds
        whole //= 100
    first, middle, last = whole // 10_000, whole // 100 % 100, whole % 100
    century, swapped = np.where(first < 100, 2000 + first, first), whole // 1_000_000
    date_formats = (
        (century, middle, last), (whole % 10_000, first % 100, swapped), (whole % 10_000, swapped, first % 100),
        (whole // 100, last, 1), (whole, 1, 1),
    )  # fmt: skip
    return any(
        np.all((YEARS[0] <= y) & (y <= YEARS[1]) & (m >= 1) & (m <= 12) & (d >= 1) & (d <= 31))
        for y, m, d in date_formats
    )


def describe_order(column: Array) -> str:
    """Return the finding that a column rises or falls with the row, or has distinct whole numbers like a key; or ""."""
    n, steps = len(column), np.diff(column)
    is_sorted = np.all(steps >= 0.0) or np.all(steps <= 0.0)
    if is_sorted and 4 * (1 + np.count_nonzero(steps)) >= n:
        return "grows with the row" if column[0] < column[-1] else "falls with the row"
    if np.any(column != np.floor(column)) or len(np.unique(column)) < n:
        return ""
    least, most = column.min(), column.max()
    is_one_width = least >= 10.0 ** (MIN_WIDTH - 1) and len(f"{least:.0f}") == len(f"{most:.0f}")
    is_dense = most - least < n * n / 8  # fewer than 2 % of random samples of so small a range are distinct
    return "has a different whole number in each row" if is_one_width or is_dense else ""


# Totals


def find_total(X: Array) -> tuple[int, str]:
    """Return the index of the last or first row, and "sum" or "mean" if it is that of the others; otherwise ""."""
    n, total, vary = len(X), X.sum(axis=0), np.ptp(X, axis=0) > 0.0
    for i, rest in ((n - 1, X[:-1]), (0, X[1:])) if n > 3 and vary.any() else ():
        others = total - X[i]
        if np.all(np.abs(X[i] - others) <= 1e-3 * np.abs(others)) and np.all((X[i] > rest.max(axis=0))[vary]):
            return i, "sum"
        if vary.sum() > 1 and np.all(
            np.abs(X[i] - others / (n - 1)) <= 1e-3 * np.ptp(rest, axis=0) + 1e-9 * np.abs(X[i])
        ):
            return i, "mean"
    return 0, ""
