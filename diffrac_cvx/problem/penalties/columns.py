"""What users say of columns, read: which form groups, and which are known to be nonnegative."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.points import Mask
from diffrac_cvx.problem.penalties.pair_penalty import IndexArray

GROUP_FORMS_HINT = (
    "give a label for each column, as ['a', 'a', 'b'], or the columns of each group, as {'a': [0, 1], 'b': [2]}"
)
COLUMN_HINT = "columns are numbered from 0, and the offset is none of them"

AnyArray = TypeVar("AnyArray", bound=npt.NDArray[Any])
GroupsLike = npt.ArrayLike | Mapping[Any, Sequence[int]] | Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False)
class FeatureGroups:
    """Groups of columns: the group of each column, numbered in the order of the names, and these."""

    labels: IndexArray  # (d,)
    names: tuple[str, ...]

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """How many columns each group has."""
        return np.bincount(self.labels, minlength=len(self.names))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FeatureGroups) and self.names == other.names and np.array_equal(self.labels, other.labels)
        )

    def __hash__(self) -> int:
        return hash((self.names, self.labels.tobytes()))

    def __repr__(self) -> str:
        return f"<{len(self.names)} groups of {len(self.labels)} columns>"


def read_feature_groups(groups: GroupsLike | FeatureGroups) -> FeatureGroups:
    """Return groups from a label for each column, or from the columns of each group, with names or without.

    Raises
    ------
    ParameterError
        If they overlap, miss a column, are empty, or hold what is no column.
    """
    if isinstance(groups, FeatureGroups):
        return groups
    if isinstance(groups, Mapping):
        return groups_from_lists(list(groups.values()), [str(name) for name in groups])
    if isinstance(groups, str | bytes) or not hasattr(groups, "__len__"):
        raise ParameterError(f"groups = {groups!r} is no list; {GROUP_FORMS_HINT}")
    items: list[Any] = list(groups)  # type: ignore[arg-type]
    if items and all(np.ndim(item) == 1 and not isinstance(item, str) for item in items):
        return groups_from_lists(items, [f"group {g}" for g in range(len(items))])
    if not items or any(np.ndim(item) > 0 or item is None or item != item for item in items):
        raise ParameterError(
            f"groups has {'no columns' if not items else 'an entry that is no label'}; {GROUP_FORMS_HINT}"
        )
    names: dict[Any, int] = {}
    labels = np.array([names.setdefault(item, len(names)) for item in items], dtype=np.intp)
    return FeatureGroups(
        make_readonly(labels), tuple(str(name) if isinstance(name, str) else f"group {name}" for name in names)
    )


def groups_from_lists(lists: Sequence[Sequence[int]], names: Sequence[str]) -> FeatureGroups:
    """Return groups from the columns of each."""
    columns = [read_column_numbers(some, f"group {name!r}") for some, name in zip(lists, names, strict=True)]
    for some, name in zip(columns, names, strict=True):
        if not len(some):
            raise ParameterError(f"group {name!r} has no columns; leave it out")
    if not columns:
        raise ParameterError(f"groups is empty; {GROUP_FORMS_HINT}")
    all_columns = np.concatenate(columns)
    found, counts = np.unique(all_columns, return_counts=True)
    last, expected = (
        int(found[-1]),
        np.arange(min(int(found[-1]), len(all_columns) + 5) + 1),
    )  # the first that are missing
    for wrong, where in ((found[counts > 1], "more than one group"), (np.setdiff1d(expected, found), "no group")):
        if len(wrong):
            listed = ", ".join(str(j) for j in wrong[:5]) + (", ..." if len(wrong) > 5 else "")
            hint = f"a column that stands alone is a group of one, and the last column here is {last}"
            remedy = "leave it in one of them" if "more" in where else hint
            raise ParameterError(f"column {listed} is in {where}; {remedy}")
    labels = np.empty(len(all_columns), dtype=np.intp)
    for g, some in enumerate(columns):
        labels[some] = g
    return FeatureGroups(make_readonly(labels), tuple(names))


def read_column_numbers(values: Any, what: str) -> IndexArray:
    """Return column numbers >= 0, or raise an error that names what is none."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and (array.dtype.kind not in "iuf" or np.any(array != np.floor(array)))):
        raise ParameterError(f"{what} = {values!r} must be a list of column numbers; {COLUMN_HINT}")
    wrong = (array < 0) | (array >= 2.0**63)
    if wrong.any():
        raise ParameterError(f"{what} has the column {array[wrong][0]!s}; {COLUMN_HINT}")
    return array.astype(np.intp)


def read_nonnegative(nonnegative: Any) -> IndexArray | Mask | bool:
    """Return what is known of signs: a mask, column numbers, or True for all columns.

    Raises
    ------
    ParameterError
        If it is none of these.
    """
    if isinstance(nonnegative, bool | np.bool_):
        return bool(nonnegative)
    array = np.asarray(nonnegative)
    if array.dtype.kind == "b" and array.ndim == 1:
        return make_readonly(array.copy())
    found = read_column_numbers(nonnegative, "nonnegative")
    if len(np.unique(found)) < len(found):
        raise ParameterError(f"nonnegative = {nonnegative!r} names a column twice")
    return make_readonly(found)


def mask_of(nonnegative: IndexArray | Mask | bool, d: int) -> Mask:
    """Return which of d columns are known to be nonnegative.

    Raises
    ------
    ParameterError
        If a mask has another length, or a column is not there.
    """
    if isinstance(nonnegative, bool):
        return np.full(d, nonnegative)
    if nonnegative.dtype.kind == "b":
        if len(nonnegative) != d:
            raise ParameterError(f"nonnegative has {len(nonnegative)} entries for {d} features")
        return np.asarray(nonnegative, dtype=bool)
    if np.any(nonnegative >= d):
        raise ParameterError(f"nonnegative names the column {nonnegative.max()} of {d} features; {COLUMN_HINT}")
    mask = np.zeros(d, dtype=bool)
    mask[nonnegative] = True
    return mask


def make_readonly(array: AnyArray) -> AnyArray:
    """Return an array that cannot be written."""
    array.setflags(write=False)
    return array
