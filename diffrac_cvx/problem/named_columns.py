"""Penalties on the columns of a table: feature groups and nonnegative columns, given by name or by number."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import Array, did_you_mean, format_exact
from diffrac_cvx.problem.feature_groups import COLUMN_HINT, FeatureGroups, GroupsLike, read_feature_groups
from diffrac_cvx.problem.penalty import Penalty

GroupWeights = str | npt.ArrayLike
Names = Sequence[str] | None  # of the d columns, if they have names
MAX_COLUMNS_SHOWN = 5  # in a message


def penalty_on_columns(
    weights: Penalty,
    groups: GroupsLike | FeatureGroups | None = None,
    nonnegative: Any = None,
    *,
    d: int,
    group_weights: GroupWeights = "equal",
    names: Names = None,
) -> Penalty:
    """Return a penalty of these weights with groups and nonnegative columns, among d columns that may have names.

    Raises
    ------
    ParameterError
        If a column does not exist, is in no group or in several, or ``group_weights`` does not match the groups.
    """
    found = None if groups is None else find_groups(groups, d, names)
    relative = relative_weights(group_weights, found)
    c: Any = weights.c if relative is None else np.asarray(weights.c) * np.sqrt(relative)
    return Penalty(weights.a, c, groups=found, nonnegative=find_nonnegative(nonnegative, d, names))


def column_names(X: Any) -> Names:
    """Return the column names of a data frame; None if there are none, or they are not all strings."""
    columns = [] if getattr(X, "columns", None) is None else list(X.columns)
    return columns if columns and all(isinstance(name, str) for name in columns) else None


def find_groups(groups: GroupsLike | FeatureGroups, d: int, names: Names = None) -> FeatureGroups:
    """Return groups of d columns, given as for `Penalty` or with column names.

    Raises
    ------
    ParameterError
        If a column does not exist, is in no group or in several, or a group is empty.
    """
    found = groups if isinstance(groups, FeatureGroups) else read_feature_groups(with_column_numbers(groups, d, names))
    if len(found.labels) != d:
        raise ParameterError(f"groups has {len(found.labels)} columns for {d} features. Include every feature.")
    return found


def with_column_numbers(groups: Any, d: int, names: Names) -> Any:
    """Return groups with column numbers, each column in one group; other forms are returned unchanged."""
    if isinstance(groups, Mapping):
        lists = {str(name): column_numbers(some, d, names, f"group {str(name)!r}") for name, some in groups.items()}
    elif isinstance(groups, list | tuple) and groups and all(map(is_list, groups)):
        lists = {f"group {g}": column_numbers(some, d, names, f"group {g}") for g, some in enumerate(groups)}
    else:
        return groups
    counts = np.bincount(np.concatenate([*lists.values(), np.zeros(0, dtype=np.intp)]), minlength=d)
    if lists and all(map(len, lists.values())):  # else `read_feature_groups` names the empty group
        for wrong, message in (
            (counts > 1, "in more than one group. List every column once."),
            (counts == 0, "in no group. List every column; a group may have one column."),
        ):
            if wrong.any():
                what = "columns {} are" if wrong.sum() > 1 else "column {} is"
                raise ParameterError(f"{what.format(list_columns(np.flatnonzero(wrong), names))} {message}")
    return lists


def is_list(value: Any) -> bool:
    """Whether a value has the form of a list of columns."""
    return isinstance(value, list | tuple | range | np.ndarray) and np.ndim(value) == 1


def find_nonnegative(nonnegative: Any, d: int, names: Names = None) -> Any:
    """Return the nonnegative columns among d, given as for `Penalty` or by name.

    Raises
    ------
    ParameterError
        If a column does not exist, or is named twice.
    """
    if nonnegative is None or isinstance(nonnegative, bool | np.bool_):
        return nonnegative
    if is_list(nonnegative) and np.asarray(nonnegative).dtype.kind == "b":
        if len(nonnegative) != d:
            raise ParameterError(f"nonnegative has {len(nonnegative)} entries for {d} features. Give one per feature.")
        return nonnegative
    found = column_numbers(nonnegative, d, names, "nonnegative")
    twice = np.flatnonzero(np.bincount(found, minlength=1) > 1)
    if len(twice):
        raise ParameterError(f"nonnegative names column {list_columns(twice, names)} twice. List it once.")
    return found if len(found) else None


def column_numbers(columns: Any, d: int, names: Names, what: str) -> npt.NDArray[np.intp]:
    """Return the numbers of columns given by number or by name.

    Raises
    ------
    ParameterError
        If a column does not exist.
    """
    if not is_list(columns) and not (hasattr(columns, "tolist") and np.ndim(columns) == 1):
        raise ParameterError(f"{what} = {columns!r} must be a list of columns, such as [0, 3] or ['age', 'dose'].")
    places = {} if names is None else {str(name): j for j, name in enumerate(names)}
    found = []
    for column in columns.tolist() if hasattr(columns, "tolist") else columns:
        if isinstance(column, str):
            if names is None:
                raise ParameterError(f"{what} names the column {column!r}, but X has no names. Pass a data frame.")
            if column not in places:
                raise ParameterError(f"{what} names {column!r}, which is not a column{did_you_mean(column, places)}")
            found.append(places[column])
            continue
        if isinstance(column, bool) or not (isinstance(column, int | float | np.number) and float(column).is_integer()):
            raise ParameterError(f"{what} has {column!r}, which is neither a column number nor a column name.")
        if not 0 <= column < d:
            raise ParameterError(f"{what} has the column {format_exact(float(column))} of {d} features. {COLUMN_HINT}")
        found.append(int(column))
    return np.array(found, dtype=np.intp)


def list_columns(numbers: Iterable[int], names: Names) -> str:
    """Return the first few columns for a message, by name if they have names."""
    shown = [str(j) if names is None else repr(str(names[j])) for j in numbers]
    return ", ".join(shown[:MAX_COLUMNS_SHOWN]) + (", ..." if len(shown) > MAX_COLUMNS_SHOWN else "")


def relative_weights(group_weights: GroupWeights, groups: FeatureGroups | None) -> Array | None:
    """Return the factors of lam for each group; None if all are 1.

    Raises
    ------
    ParameterError
        If they are neither "equal" nor "size", nor a number >= 0 for each group, or there are no groups.
    """
    requirement = "must be 'equal', 'size', or a finite number >= 0 for each group"
    if isinstance(group_weights, str):
        if group_weights not in ("equal", "size"):
            hint = did_you_mean(group_weights, ("equal", "size"))
            raise ParameterError(f"group_weights = {group_weights!r} {requirement}{hint}")
        return None if group_weights == "equal" or groups is None else groups.sizes.astype(float)
    values = np.asarray(group_weights)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise ParameterError(f"group_weights = {group_weights!r} {requirement}")
    if groups is None:
        raise ParameterError("group_weights is given without groups. Give groups too.")
    if len(values) != len(groups.names):
        raise ParameterError(
            f"group_weights has {len(values)} numbers for {len(groups.names)} groups. Give one per group."
        )
    wrong = ~(np.isfinite(values) & (values >= 0.0))
    if wrong.any():
        g = int(np.argmax(wrong))
        raise ParameterError(f"group_weights has {format_exact(values[g])} for {groups.names[g]!r}. It {requirement}.")
    return values.astype(float)
