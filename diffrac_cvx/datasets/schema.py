"""Schema of a table: its features, and the options to read another table with the same columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from diffrac_cvx.datasets.columns import (
    MISSING_TEXTS,
    as_texts,
    category_columns,
    encode_columns,
    format_list,
    format_row,
    read_numbers,
    unchanged_texts,
)
from diffrac_cvx.datasets.file_columns import ReadOptions, read_file, transpose_table
from diffrac_cvx.datasets.tables import MISSING_POLICIES, Table, clean_missing, require_columns
from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import one_of

READ_OPTIONS = tuple(one.name for one in fields(ReadOptions))  # the options that also apply to a new file


@dataclass(frozen=True, eq=False)
class Schema:
    """Features of a training table, and the options with which it was read.

    Attributes
    ----------
    names : tuple of str
        Names of the features.
    means : sequence of d floats or None
        Means of the features, to replace missing values.
    categories, options : mapping
        As in `Table`.
    """

    names: tuple[str, ...]
    means: Sequence[float] | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table) -> "Schema":
        """Return the schema of a table."""
        return cls(table.names, table.X.mean(axis=0).tolist(), table.categories, table.options)


def read_table_as(
    schema: Schema, source: str | Path, *, missing: str | None = None, aside: Sequence[str] = (), **reading: Any
) -> Table:
    """Read the features of a schema from a new table, with at least one row.

    Parameters
    ----------
    schema : Schema
        Features of the training table.
    source : str or Path
        File, as for `read_table`.
    missing : {"error", "drop", "mean"}, optional
        Treatment of missing values and unknown categories: raise an error, drop the rows, or use the training mean of
        the feature; by default as for the training table.
    aside : sequence of str
        Columns that are not features and are returned as the text of the file, such as sample IDs.
    **reading
        Parameters of `read_table` for reading a file; None means as for the training table.

    Raises
    ------
    DataError, ParameterError
        If the file cannot be read, or if a column is missing or of another type than in the training table.
    """
    missing = one_of(missing or schema.options.get("missing", "error"), "missing", MISSING_POLICIES)
    if missing == "mean" and schema.means is None:
        raise DataError("missing = 'mean': the training means are not available. Drop rows with missing values.")
    given = {key: schema.options[key] for key in READ_OPTIONS if key in schema.options}
    options = ReadOptions(**given | {key: value for key, value in reading.items() if value is not None and value != ()})
    excluded = [*schema.options.get("drop", ()), *schema.options.get("aside", ()), schema.options.get("label"), *aside]
    raw = read_file(source, str(source), options)
    raw = transpose_table(raw, excluded)[0] if options.transpose else raw
    sources = category_columns(schema.categories)
    names = list(dict.fromkeys(sources.get(name, name) for name in schema.names))
    require_columns(raw, [*names, *aside])
    columns, changes = read_numbers(raw, names, options.marks, options.na_values, schema.categories)
    notes, unseen = [*raw.notes, *changes], list[str]()
    if others := [name for name in raw.columns if name not in {*names, *excluded}]:
        notes.append(f"ignored columns, which are not in the training table: {format_list(map(repr, others))}")
    for name, column in columns.items():
        texts, known = as_texts(column), schema.categories.get(name)
        if known is None and column.dtype == object:
            row = next(i for i, text in enumerate(texts) if text is not None)
            raise DataError(
                f"column {name!r} contains {texts[row]!r} in {format_row(row)}, but the training table had finite "
                "numbers. Correct it, or leave it empty."
            )
        if known is not None and (unknown := sorted({*filter(None, texts)} - {*known})):
            row = next(i for i, text in enumerate(texts) if text in unknown)
            unseen.append(
                f"column {name!r} contains {format_list(map(repr, unknown))} in {format_row(row)}, but the training "
                f"table had {format_list(map(repr, known))}"
            )
    if unseen and missing == "error":
        raise DataError(f"{'; '.join(unseen)}. Correct them, or treat them as missing.", remedies=("missing",))
    X, made = encode_columns(columns, schema.categories)
    X = X[:, [made.index(name) for name in schema.names]]
    means = None if schema.means is None else np.array(schema.means)
    X, mask, changes = clean_missing(X, schema.names, missing, means=means)
    if not mask.any():
        raise DataError(f"none of the {len(mask)} rows is complete.")
    notes += [*(f"{text}: treated as missing" for text in unseen), *changes]
    points = np.array(raw.row_names)[mask] if options.transpose else None
    missing_texts = MISSING_TEXTS.union(options.na_values)
    unchanged = {
        column: np.array(unchanged_texts(raw.columns[column], missing_texts), dtype=object)[mask] for column in aside
    }
    rows, X = np.flatnonzero(mask), np.ascontiguousarray(X)
    return Table(X, schema.names, None, (), rows, tuple(notes), unchanged, points=points)
