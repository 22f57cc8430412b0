"""Readers of the arguments of `Constraints` that name points: pairs, rows of a table, groups and labels."""

import warnings
from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import DataError, DegenerateDataWarning, ParameterError
from diffrac_cvx.points.checks import Array, as_any
from diffrac_cvx.points.linear_constraints import Indices

IndexPair = tuple[int, int]


def read_pairs(pairs: Iterable[IndexPair], name: str) -> Indices:
    """Return pairs of points as indices, shape (k, 2)."""
    try:
        given = np.asarray(list(pairs) if not isinstance(pairs, np.ndarray) else pairs)
    except (TypeError, ValueError):
        raise DataError(f"{name} must contain pairs (i, j) of integers. Number the points from 0.") from None
    if given.size == 0:
        return np.zeros((0, 2), dtype=np.intp)
    if given.ndim != 2 or given.shape[1] != 2 or not np.issubdtype(given.dtype, np.integer):
        raise DataError(f"{name} must contain pairs (i, j) of integers. Number the points from 0.")
    return given.astype(np.intp)


def read_rows(rows: npt.ArrayLike, n: int | None) -> Indices:
    """Return distinct rows of a table of n rows, given as integers or as a mask, as indices."""
    given = as_any(rows, "rows")
    if given.ndim == 1 and given.dtype == bool and n in (None, len(given)):
        return np.flatnonzero(given)
    is_list = given.ndim == 1 and (not given.size or np.issubdtype(given.dtype, np.integer))
    if not is_list or not len(given) or given.min() < 0 or given.max() >= (np.inf if n is None else n):
        where = "" if n is None else f" from 0 to {n - 1}, or a mask of {n} rows"
        raise DataError(
            f"rows of shape {given.shape} and type {given.dtype} are not rows. Pass different numbers{where}."
        )
    values, counts = np.unique(given, return_counts=True)
    if np.any(counts > 1):
        raise DataError(f"rows contains {values[counts > 1][0]} twice. Name each row once.")
    return given.astype(np.intp)


def read_groups(groups: npt.ArrayLike) -> Indices:
    """Return the groups of points as integers, numbered from 0 if they are text; a negative number means no group."""
    given = as_any(groups, "groups")
    if given.ndim == 1 and given.dtype.kind in "iu":
        return given.astype(np.intp)
    values: list[Any] = [value.strip() if isinstance(value, str) else value for value in given.ravel().tolist()]
    inside = [value for value in values if not (is_missing(value) or str(value) in ("-1", "-1.0"))]
    are_names = all(isinstance(value, str) or is_whole(value) for value in inside)
    if given.ndim != 1 or given.dtype.kind == "b" or not are_names:
        raise DataError("groups must contain one integer or text per point. Use -1 for a point without a group.")
    numbers = {value: number for number, value in enumerate(dict.fromkeys(inside))}
    found = [-1 if is_missing(value) else numbers.get(value, -1) for value in values]
    are_none = [is_whole(value) and value < 0 for value in values]
    return np.where(np.array(are_none, dtype=bool), -1, np.array(found, dtype=np.intp))


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number."""
    return isinstance(value, Real) and not isinstance(value, bool) and value == value // 1


def read_labels(labels: npt.ArrayLike, unlabelled: object = None) -> tuple[Array, tuple[object, object]]:
    """Return the labels as -1, +1, and 0 for unlabelled points, and the two classes."""
    if as_any(labels, "labels").dtype == bool:
        raise DataError("labels is a boolean mask. Pass one label per point, and None for unlabelled points.")
    values, known = split_unlabelled(labels, unlabelled)
    found = {value for value, is_known in zip(values, known.tolist(), strict=True) if is_known}
    are_numbers = all(isinstance(value, Real) for value in found)
    names: list[Any] = sorted(found) if are_numbers else sorted(set(map(str, found)))
    if len(names) > 2:
        raise DataError(
            f"labels contains {len(names)} classes: {', '.join(map(str, names[:5]))}. Use at most two classes. If a "
            "value marks unlabelled points, pass it as unlabelled=."
        )
    classes = (names[0] if len(names) == 2 else None, names[-1] if names else None)
    if are_numbers and found <= {-1, 1}:
        classes = (-1, 1)
    second = np.zeros(len(known), dtype=bool)
    second[known] = [classes[1] in (values[i], str(values[i])) for i in np.flatnonzero(known)]
    return np.where(~known, 0.0, np.where(second, 1.0, -1.0)), classes


def split_unlabelled(
    labels: npt.ArrayLike, unlabelled: object = None, name: str = "labels"
) -> tuple[list[Any], npt.NDArray[np.bool_]]:
    """Return the labels, text trimmed on both sides, and the mask of the labelled points.

    Unlabelled points have None, NaN, pd.NA, "" or the value ``unlabelled``.  By default they also have -1, with a
    warning, if there are two or more other values.
    """
    if not isinstance(unlabelled, str | Real | np.generic | None):
        raise ParameterError(f"unlabelled is a {type(unlabelled).__name__}. Pass one value, a number or text.")
    given = np.asarray(labels, dtype=object)
    if given.ndim != 1:
        raise DataError(f"{name} has shape {given.shape}. Pass a 1-d array with one entry per point.")
    values = [value.strip() if isinstance(value, str) else value for value in given.tolist()]
    known = np.array([not (is_missing(value) or is_equal(value, unlabelled)) for value in values], dtype=bool)
    minus_one = known & np.array([str(value) in ("-1", "-1.0") for value in values], dtype=bool)
    if unlabelled is not None or not minus_one.any():
        return values, known
    others = sorted({str(values[i]) for i in np.flatnonzero(known & ~minus_one)})
    if len(others) > 1:
        warnings.warn(
            f"-1 in {name} marks unlabelled points, because there are other values: {', '.join(others[:5])}. Pass "
            "unlabelled= to choose another mark, or NaN if -1 is a class.",
            DegenerateDataWarning,
            stacklevel=4,
        )
        return values, known & ~minus_one
    if len(others) == 1 and known.all() and others[0] not in ("1", "1.0"):
        raise DataError(
            f"{name} contains only -1 and {others[0]}, and -1 may be a class or mark unlabelled points. Pass "
            "unlabelled=-1, or unlabelled=NaN if it is a class."
        )
    return values, known


def is_missing(value: Any) -> bool:
    """Return whether a label is None, NaN, pd.NA or empty text."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value) or (value == "")


def is_equal(value: Any, mark: object) -> bool:
    """Return whether a label is the given mark, as a number or as text."""
    return mark is not None and bool(value == mark or str(value) == str(mark).strip())
