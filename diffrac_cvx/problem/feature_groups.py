"""Validation of feature groups and of nonnegative columns given by users."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from diffrac_cvx.errors import ParameterError
from diffrac_cvx.points.points import Mask
from diffrac_cvx.problem.penalties.base import IndexArray

GROUP_FORMS_HINT = (
    "Give a label for each column, ['a', 'a', 'b'], or the columns of each group, {'a': [0, 1], 'b': [2]}."
)
COLUMN_HINT = "Columns are numbered from 0, without the offset."

AnyArray = TypeVar("AnyArray", bound=npt.NDArray[Any])
GroupsLike = npt.ArrayLike | Mapping[Any, Sequence[int]] | Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False)
class FeatureGroups:
    """Feature groups: the group number of each column, and the names of the groups."""

    labels: IndexArray  # (d,)
    names: tuple[str, ...]

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


def read_feature_groups(groups: GroupsLike | FeatureGroups) -> FeatureGroups:
    """Return feature groups from a label for each column, or from the columns of each group, named or not.

    Raises
    ------
    ParameterError
        If groups overlap, are empty, miss a column or contain an invalid one.
    """
    if isinstance(groups, FeatureGroups):
        return groups
    if isinstance(groups, Mapping):
        return groups_from_lists(list(groups.values()), [str(name) for name in groups])
    if isinstance(groups, str | bytes) or not hasattr(groups, "__len__"):
        raise ParameterError(f"groups = {groups!r} is not a list. {GROUP_FORMS_HINT}")
    items: list[Any] = list(groups)  # type: ignore[arg-type]
    if items and all(np.ndim(item) == 1 and not isinstance(item, str) for item in items):
        return groups_from_lists(items, [f"group {g}" for g in range(len(items))])
    if not items or any(np.ndim(item) > 0 or item is None or item != item for item in items):
        raise ParameterError(
            f"groups has {'no columns' if not items else 'an entry that is not a label'}. {GROUP_FORMS_HINT}"
        )
    names: dict[Any, int] = {}
    labels = np.array([names.setdefault(item, len(names)) for item in items], dtype=np.intp)
    return FeatureGroups(
        make_readonly(labels), tuple(str(name) if isinstance(name, str) else f"group {name}" for name in names)
    )


def groups_from_lists(lists: Sequence[Sequence[int]], names: Sequence[str]) -> FeatureGroups:
    """Return feature groups from the columns of each group."""
    columns = [read_column_numbers(some, f"group {name!r}") for some, name in zip(lists, names, strict=True)]
    for some, name in zip(columns, names, strict=True):
        if not len(some):
            raise ParameterError(f"group {name!r} has no columns. Omit it.")
    if not columns:
        raise ParameterError(f"groups is empty. {GROUP_FORMS_HINT}")
    all_columns = np.concatenate(columns)
    found, counts = np.unique(all_columns, return_counts=True)
    last, expected = (
        int(found[-1]),
        np.arange(min(int(found[-1]), len(all_columns) + 5) + 1),
    )  # the first missing columns
    for wrong, where in ((found[counts > 1], "more than one group"), (np.setdiff1d(expected, found), "no group")):
        if len(wrong):
            listed = ", ".join(str(j) for j in wrong[:5]) + (", ..." if len(wrong) > 5 else "")
            hint = f"List every column, up to {last}; a group may have one column"
            remedy = "List it in one of them" if "more" in where else hint
            raise ParameterError(f"column {listed} is in {where}. {remedy}.")
    labels = np.empty(len(all_columns), dtype=np.intp)
    for g, some in enumerate(columns):
        labels[some] = g
    return FeatureGroups(make_readonly(labels), tuple(names))


def read_column_numbers(values: Any, what: str) -> IndexArray:
    """Return column numbers >= 0; raise ParameterError, with the value, for anything else."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and (array.dtype.kind not in "iuf" or np.any(array != np.floor(array)))):
        raise ParameterError(f"{what} = {values!r} must be a list of column numbers. {COLUMN_HINT}")
    wrong = (array < 0) | (array >= 2.0**63)
    if wrong.any():
        raise ParameterError(f"{what} has the column {array[wrong][0]!s}. {COLUMN_HINT}")
    return array.astype(np.intp)


def read_nonnegative(nonnegative: Any) -> IndexArray | Mask | bool:
    """Return the nonnegative columns as a mask, as column numbers, or as True for all columns.

    Raises
    ------
    ParameterError
        If the argument is none of these.
    """
    if isinstance(nonnegative, bool | np.bool_):
        return bool(nonnegative)
    array = np.asarray(nonnegative)
    if array.dtype.kind == "b" and array.ndim == 1:
        return make_readonly(array.copy())
    found = read_column_numbers(nonnegative, "nonnegative")
    if len(np.unique(found)) < len(found):
        raise ParameterError(f"nonnegative = {nonnegative!r} names a column twice. List it once.")
    return make_readonly(found)


def mask_of(nonnegative: IndexArray | Mask | bool, d: int) -> Mask:
    """Return the mask of the nonnegative columns among d.

    Raises
    ------
    ParameterError
        If the length of a mask is not d, or a column number is not below d.
    """
    if isinstance(nonnegative, bool):
        return np.full(d, nonnegative)
    if nonnegative.dtype.kind == "b":
        if len(nonnegative) != d:
            raise ParameterError(f"nonnegative has {len(nonnegative)} entries for {d} features. Give one per feature.")
        return np.asarray(nonnegative, dtype=bool)
    if np.any(nonnegative >= d):
        raise ParameterError(f"nonnegative names the column {nonnegative.max()} of {d} features. {COLUMN_HINT}")
    mask = np.zeros(d, dtype=bool)
    mask[nonnegative] = True
    return mask


def make_readonly(array: AnyArray) -> AnyArray:
    """Return the array, made read-only."""
    array.setflags(write=False)
    return array
