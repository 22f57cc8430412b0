"""Feature groups of a table: by categorical column, by prefix, or from a file."""

import re
from collections.abc import Sequence
from pathlib import Path

from diffrac_cvx.datasets.columns import category_columns, format_list
from diffrac_cvx.datasets.file_columns import ReadOptions, read_file
from diffrac_cvx.datasets.tables import Table
from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import did_you_mean

CATEGORY, PREFIX = "category", "prefix"
PREFIX_SEPARATORS = re.compile(r"[_.:=]")  # end of a prefix
HEADER_NAMES = ("column", "feature", "name", "variable")  # of the first column of a file, in any case


def column_groups(table: Table | Sequence[str], by: str | Path = CATEGORY) -> dict[str, list[int]]:
    """Return the feature groups of a table as column indices by group name, for estimators and `Penalty`.

    Every column is in exactly one group; a column without a group is a group of its own, under its own name.

    Parameters
    ----------
    table : Table, or sequence of str
        Result of `read_table`, or the column names.
    by : {"category", "prefix"}, "prefix=" and a separator, or the path of a file
        "category" groups the binary columns of each one-hot encoded column.  "prefix" groups by the part of the name
        before the first "_", ".", ":" or "=", and "prefix=__" by the part before the first "__".  A file, read as by
        `read_table`, has one line "column,group" for each grouped column.

    Raises
    ------
    DataError
        If a file is missing or is not a two-column table, or if it names an unknown column or one column in two groups.

    Examples
    --------
    >>> column_groups(["age", "job_clerk", "job_other"], "prefix")
    {'age': [0], 'job': [1, 2]}
    """
    names = table.names if isinstance(table, Table) else tuple(map(str, table))
    if by == CATEGORY:
        keys = category_columns(table.categories) if isinstance(table, Table) else {}
    elif by == PREFIX or str(by).startswith(f"{PREFIX}="):
        separator = str(by).partition("=")[2]
        pattern = re.compile(re.escape(separator)) if separator else PREFIX_SEPARATORS
        keys = {name: pattern.split(name, maxsplit=1)[0] or name for name in names}
    else:
        keys = read_groups_file(Path(by), names)
    groups: dict[str, list[int]] = {}
    for j, name in enumerate(names):
        groups.setdefault(keys.get(name, name), []).append(j)
    return groups


def read_groups_file(path: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the group of each column named in a file."""
    if not path.is_file():
        near = did_you_mean(path, (CATEGORY, PREFIX))
        raise DataError(f"groups = {str(path)!r} is not a file, 'category' or 'prefix'{near}")
    table = read_file(path, str(path), ReadOptions(header=False))
    rows = [tuple(str(entry).strip() for entry in row) for row in zip(*table.columns.values(), strict=True)]
    if rows[0][0] not in names and rows[0][0].lower() in HEADER_NAMES:
        rows = rows[1:]
    if not rows or any(len(row) != 2 or not all(row) for row in rows):
        raise DataError(f"{path}: every line must have the form 'column,group'.")
    columns = [column for column, _ in rows]
    if unknown := [column for column in columns if column not in names]:
        near = did_you_mean(unknown[0], names)
        raise DataError(f"{path}: there is no column {unknown[0]!r}; the columns are {format_list(names)}{near}")
    found = {row[0]: row[1] for row in rows}
    if twice := [(column, group) for column, group in rows if found[column] != group]:
        column, group = twice[0]
        raise DataError(f"{path}: column {column!r} is in two groups, {group!r} and {found[column]!r}. Keep one.")
    if ungrouped := [name for name in names if name not in found and name in found.values()]:
        raise DataError(f"{path}: {ungrouped[0]!r} is both a group and an ungrouped column. Rename the group.")
    return found
