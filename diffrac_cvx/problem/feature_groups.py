"""Feature groups and nonnegative columns as users give them, by column number or by column name."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.checks import array_of, did_you_mean
from diffrac_cvx.points.rows import Indices, Mask

GROUP_FORMS_HINT = (
    "Give a label for each column, ['a', 'a', 'b'], or the columns of each group, {'a': [0, 1], 'b': [2]}."
)

AnyArray = TypeVar("AnyArray", bound=npt.NDArray[Any])
GroupsLike = npt.ArrayLike | Mapping[Any, Sequence[int]] | Sequence[Sequence[int]]
Names = Sequence[str] | None  # of the d columns, if they have names


@dataclass(frozen=True, eq=False)
class FeatureGroups:
    """Feature groups: the group number of each column, and the names of the groups."""

    labels: Indices  # (d,)
    names: tuple[str, ...]

    @classmethod
    def singles(cls, d: int) -> "FeatureGroups":
        """Return groups of one column each: the groups of a penalty without groups."""
        return cls(np.arange(d), tuple(map(str, range(d))))

    @property
    def are_single(self) -> bool:
        """Whether each column is a group of its own."""
        return len(self.names) == len(self.labels)

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Number of columns in each group."""
        return np.bincount(self.labels, minlength=len(self.names))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FeatureGroups) and self.names == other.names and np.array_equal(self.labels, other.labels)
        )

    def __hash__(self) -> int:
        return hash((self.names, self.labels.tobytes()))

    def __repr__(self) -> str:
        return f"<{len(self.names)} groups of {len(self.labels)} columns>"


def read_feature_groups(
    groups: GroupsLike | FeatureGroups | None, d: int | None = None, names: Names = None
) -> FeatureGroups | None:
    """Return feature groups from a label for each column, or from the columns of each group; None if there are none.

    Raises
    ------
    ParameterError
        If groups overlap, are empty, miss a column or contain an invalid one, or do not have d columns.
    """
    if groups is None:
        return None
    if isinstance(groups, FeatureGroups):
        if d not in (None, len(groups.labels)):
            raise ParameterError(
                f"groups has {len(groups.labels)} columns for {d} features. Give a group for every feature."
            )
        return groups
    if isinstance(groups, Mapping):
        return groups_from_lists({str(name): columns for name, columns in groups.items()}, d, names)
    if isinstance(groups, str | bytes) or not (hasattr(groups, "__len__") and np.ndim(array_of(groups))):
        raise ParameterError(f"groups = {groups!r} is not a list. {GROUP_FORMS_HINT}")
    items: list[Any] = list(groups)  # type: ignore[arg-type]
    if items and all(map(is_list, items)):
        return groups_from_lists(dict(enumerate(items)), d, names)
    if any(np.ndim(item) > 0 or item is None or item != item or not isinstance(item, Hashable) for item in items):
        raise ParameterError(f"groups has an entry that is not a label. {GROUP_FORMS_HINT}")
    lists: dict[Any, list[int]] = {}
    for column, label in enumerate(items):
        lists.setdefault(label, []).append(column)
    return groups_from_lists(lists, d, names)


def groups_from_lists(lists: Mapping[Any, Any], d: int | None, names: Names) -> FeatureGroups:
    """Return feature groups from the columns of each group, which must contain each column once; numbers get names."""
    columns = [column_numbers(some, f"group {key!r}", d, names) for key, some in lists.items()]
    for some, key in zip(columns, lists, strict=True):
        if not len(some):
            raise ParameterError(f"group {key!r} has no columns. Omit it.")
    if not columns:
        raise ParameterError(f"groups is empty. {GROUP_FORMS_HINT}")
    found, counts = np.unique(np.concatenate(columns), return_counts=True)
    last = int(found[-1]) if d is None else d - 1
    missing = np.setdiff1d(np.arange(min(last + 1, 2 * len(found) + 6)), found)  # the first few
    for wrong, message in (
        (found[counts > 1], "in more than one group. List every column once."),
        (missing, f"in no group. List every column, up to {last}; a group may have one column."),
    ):
        if len(wrong):
            what = "columns {} are" if len(wrong) > 1 else "column {} is"
            raise ParameterError(f"{what.format(list_columns(wrong, names))} {message}")
    labels = np.empty(last + 1, dtype=np.intp)
    for g, some in enumerate(columns):
        labels[some] = g
    titles = tuple(str(key) if isinstance(key, str) else f"group {key}" for key in lists)
    return FeatureGroups(make_readonly(labels), titles)


def read_nonnegative(nonnegative: Any, d: int | None = None, names: Names = None) -> Indices | Mask | bool | None:
    """Return the nonnegative columns as a mask, as column numbers, or as True for all columns; None if there are none.

    Raises
    ------
    ParameterError
        If the argument is none of these, a column is named twice, or there are not d columns.
    """
    if nonnegative is None or isinstance(nonnegative, bool | np.bool_):
        return True if nonnegative else None
    if is_list(nonnegative) and array_of(nonnegative).dtype.kind == "b":
        if d not in (None, len(nonnegative)):
            raise ParameterError(f"nonnegative has {len(nonnegative)} entries for {d} features. Give one per feature.")
        return make_readonly(np.array(nonnegative)) if np.any(nonnegative) else None
    found = column_numbers(nonnegative, "nonnegative", d, names)
    distinct, counts = np.unique(found, return_counts=True)
    if len(distinct) < len(found):
        twice = list_columns(distinct[counts > 1], names)
        raise ParameterError(f"nonnegative names column {twice} twice. List it once.")
    return make_readonly(found) if len(found) else None


def is_list(value: Any) -> bool:
    """Whether a value has the form of a list of columns."""
    return isinstance(value, list | tuple | range) or (hasattr(value, "tolist") and np.ndim(value) == 1)


def column_numbers(columns: Any, what: str, d: int | None = None, names: Names = None) -> Indices:
    """Return the numbers of columns given by number or by name.

    Raises
    ------
    ParameterError
        If a column does not exist.
    """
    if not is_list(columns):
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
        if not 0 <= column < (2**63 if d is None else d):
            among = f"{column}" if d is None else f"{column} of {d} features"
            raise ParameterError(f"{what} has the column {among}. Columns are numbered from 0, without the offset.")
        found.append(int(column))
    return np.array(found, dtype=np.intp)


def list_columns(numbers: Iterable[int], names: Names) -> str:
    """Return the first few columns for a message, by name if they have names."""
    shown = [str(j) if names is None else repr(str(names[j])) for j in numbers]
    return ", ".join([*shown[:5], *(["..."] if len(shown) > 5 else [])])


def make_readonly(array: AnyArray) -> AnyArray:
    """Return the array, made read-only."""
    array.setflags(write=False)
    return array
