"""Penalties on the columns of a table: groups and known signs, by the names of the columns or by their numbers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import Array, did_you_mean, format_exact
from diffrac_cvx.problem.penalties.columns import COLUMN_HINT, FeatureGroups, GroupsLike, read_feature_groups
from diffrac_cvx.problem.penalty import Penalty

GroupWeights = str | npt.ArrayLike
Names = Sequence[str] | None  # of the d columns, where they have some
MAX_COLUMNS_SHOWN = 5  # columns that a message names


def penalty_on_columns(
    weights: Penalty,
    groups: GroupsLike | FeatureGroups | None = None,
    nonnegative: Any = None,
    *,
    d: int,
    group_weights: GroupWeights = "equal",
    names: Names = None,
) -> Penalty:
    """Return a penalty of these weights with groups and known signs of d columns, which may have names.

    Raises
    ------
    ParameterError
        If a column is not there, or in no group or in several, or ``group_weights`` are no weights of the groups.
    """
    found = None if groups is None else find_groups(groups, d, names)
    relative = relative_weights(group_weights, found)
    c: Any = weights.c if relative is None else np.asarray(weights.c) * np.sqrt(relative)
    return Penalty(weights.a, c, groups=found, nonnegative=find_nonnegative(nonnegative, d, names))


def column_names(X: Any) -> Names:
    """Return the names of the columns of a data frame; None where there are none, or they are no texts."""
    columns = [] if getattr(X, "columns", None) is None else list(X.columns)
    return columns if columns and all(isinstance(name, str) for name in columns) else None


def find_groups(groups: GroupsLike | FeatureGroups, d: int, names: Names = None) -> FeatureGroups:
    """Return groups of d columns, given as for `Penalty`, or with names of columns.

    Raises
    ------
    ParameterError
        If a column is not there, in no group or in several, or a group is empty.
    """
    found = groups if isinstance(groups, FeatureGroups) else read_feature_groups(with_column_numbers(groups, d, names))
    if len(found.labels) != d:
        raise ParameterError(f"groups has {len(found.labels)} columns for {d} features")
    return found


def with_column_numbers(groups: Any, d: int, names: Names) -> Any:
    """Return groups with the columns of each by their numbers, each in one; what is no list of lists as it is."""
    if isinstance(groups, Mapping):
        lists = {str(name): column_numbers(some, d, names, f"group {str(name)!r}") for name, some in groups.items()}
    elif isinstance(groups, list | tuple) and groups and all(map(is_list, groups)):
        lists = {f"group {g}": column_numbers(some, d, names, f"group {g}") for g, some in enumerate(groups)}
    else:
        return groups
    counts = np.bincount(np.concatenate([*lists.values(), np.zeros(0, dtype=np.intp)]), minlength=d)
    if lists and all(map(len, lists.values())):  # else `read_groups` says which one is empty
        for wrong, message in (
            (counts > 1, "in more than one group; leave it in one of them"),
            (counts == 0, "in no group; a column that stands alone is a group of one"),
        ):
            if wrong.any():
                what = "columns {} are" if wrong.sum() > 1 else "column {} is"
                raise ParameterError(f"{what.format(list_columns(np.flatnonzero(wrong), names))} {message}")
    return lists


def is_list(value: Any) -> bool:
    """Whether something is a list of columns."""
    return isinstance(value, list | tuple | range | np.ndarray) and np.ndim(value) == 1


def find_nonnegative(nonnegative: Any, d: int, names: Names = None) -> Any:
    """Return which of d columns are known to be nonnegative, given as for `Penalty`, or by names.

    Raises
    ------
    ParameterError
        If a column is not there, or named twice.
    """
    if nonnegative is None or isinstance(nonnegative, bool | np.bool_):
        return nonnegative
    if is_list(nonnegative) and np.asarray(nonnegative).dtype.kind == "b":
        if len(nonnegative) != d:
            raise ParameterError(f"nonnegative has {len(nonnegative)} entries for {d} features")
        return nonnegative
    found = column_numbers(nonnegative, d, names, "nonnegative")
    twice = np.flatnonzero(np.bincount(found, minlength=1) > 1)
    if len(twice):
        raise ParameterError(f"nonnegative names column {list_columns(twice, names)} twice")
    return found if len(found) else None


def column_numbers(columns: Any, d: int, names: Names, what: str) -> npt.NDArray[np.intp]:
    """Return the numbers of columns that are given by numbers or names.

    Raises
    ------
    ParameterError
        If one is not there.
    """
    if not is_list(columns) and not (hasattr(columns, "tolist") and np.ndim(columns) == 1):
        raise ParameterError(f"{what} = {columns!r} must be a list of columns, such as [0, 3] or ['age', 'dose']")
    places = {} if names is None else {str(name): j for j, name in enumerate(names)}
    found = []
    for column in columns.tolist() if hasattr(columns, "tolist") else columns:
        if isinstance(column, str):
            if names is None:
                raise ParameterError(f"{what} names the column {column!r}, and X has no names: pass a data frame")
            if column not in places:
                raise ParameterError(f"{what} names {column!r}, which is no column{did_you_mean(column, places)}")
            found.append(places[column])
            continue
        if isinstance(column, bool) or not (isinstance(column, int | float | np.number) and float(column).is_integer()):
            raise ParameterError(f"{what} has {column!r}, which is neither the number nor the name of a column")
        if not 0 <= column < d:
            raise ParameterError(f"{what} has the column {format_exact(float(column))} of {d} features; {COLUMN_HINT}")
        found.append(int(column))
    return np.array(found, dtype=np.intp)


def list_columns(numbers: Iterable[int], names: Names) -> str:
    """Return columns for a message, by their names where they have some, the first ones of many."""
    shown = [str(j) if names is None else repr(str(names[j])) for j in numbers]
    return ", ".join(shown[:MAX_COLUMNS_SHOWN]) + (", ..." if len(shown) > MAX_COLUMNS_SHOWN else "")


def relative_weights(group_weights: GroupWeights, groups: FeatureGroups | None) -> Array | None:
    """Return by what lam is multiplied for each group, None for nothing.

    Raises
    ------
    ParameterError
        If it is neither "equal" nor "size", nor a number >= 0 for each group, or there are no groups.
    """
    requirement = "must be 'equal', 'size', or a finite number of 0 or more for each group"
    if isinstance(group_weights, str):
        if group_weights not in ("equal", "size"):
            hint = did_you_mean(group_weights, ("equal", "size"))
            raise ParameterError(f"group_weights = {group_weights!r} {requirement}{hint}")
        return None if group_weights == "equal" or groups is None else groups.sizes.astype(float)
    values = np.asarray(group_weights)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise ParameterError(f"group_weights = {group_weights!r} {requirement}")
    if groups is None:
        raise ParameterError("group_weights are those of groups, and there are none: give groups too")
    if len(values) != len(groups.names):
        raise ParameterError(f"group_weights has {len(values)} numbers for {len(groups.names)} groups")
    wrong = ~(np.isfinite(values) & (values >= 0.0))
    if wrong.any():
        g = int(np.argmax(wrong))
        raise ParameterError(f"group_weights has {format_exact(values[g])} for {groups.names[g]!r}; it {requirement}")
    return values.astype(float)
