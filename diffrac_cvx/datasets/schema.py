"""Read a new table like the training table: columns by name, with the training categories and means."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diffrac_cvx.datasets.columns import category_columns, category_texts, encode_columns, format_list, format_row
from diffrac_cvx.datasets.tables import MISSING_POLICIES, Table, clean_missing, read_frame, require_columns
from diffrac_cvx.datasets.text_tables import ReadOptions
from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array, one_of

if TYPE_CHECKING:
    import pandas as pd

READ_OPTIONS = tuple(one.name for one in fields(ReadOptions))  # the options that also apply to a new file


@dataclass(frozen=True, eq=False)
class TableSchema:
    """Features of a training table, as required of a new table.

    Attributes
    ----------
    names : tuple of str
        Names of the features, in order.
    means : (d,) array or None
        Their means in the training table, to replace missing values.
    categories, options
        As in `Table`.
    """

    names: tuple[str, ...]
    means: Array | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table) -> "TableSchema":
        """Return the schema of a table."""
        return cls(table.names, table.X.mean(axis=0), table.categories, table.options)

    @property
    def columns(self) -> list[str]:
        """The columns required of a new table."""
        sources = category_columns(self.categories)
        return list(dict.fromkeys(sources.get(name, name) for name in self.names))


def read_with_schema(source: str | Path, schema: TableSchema, *, missing: str | None = None, **reading: Any) -> Table:
    """Read the features of a new table, with at least one row, by the schema of the training table.

    Parameters
    ----------
    source : str or Path
        File, as for `read_table`.
    schema : TableSchema
        Schema of the training table.
    missing : {"error", "drop", "mean"}, optional
        Treatment of missing values and unknown categories: raise an error, drop the rows, or use the training mean of
        the feature; by default as for the training table.
    **reading
        The parameters of `read_table` for reading a file; None means as for the training table.

    Raises
    ------
    DataError, ParameterError
        If the file cannot be read, or if a column is missing or of another type than in the training table.
    """
    missing = one_of(missing or schema.options.get("missing", "error"), "missing", MISSING_POLICIES)
    if missing == "mean" and schema.means is None:
        raise DataError("missing = 'mean': the training means are not available. Drop rows with missing values")
    given = {key: schema.options[key] for key in READ_OPTIONS if key in schema.options}
    options = given | {key: value for key, value in reading.items() if value is not None and value != ()}
    excluded = [*schema.options.get("drop", ()), *schema.options.get("aside", ()), schema.options.get("label")]
    frame = read_frame(source, str(source), ReadOptions(**options), [*excluded, *schema.categories], excluded)
    columns, notes = schema.columns, list(frame.attrs["notes"])
    require_columns(frame, columns)
    if others := [name for name in frame.columns if name not in {*columns, *excluded}]:
        notes.append(f"ignored columns, which are not in the training table: {format_list(map(repr, others))}")
    frame = frame[columns]
    unseen = []
    for name, column in frame.items():
        known = schema.categories.get(name)
        if known is None:
            require_finite(column)
            continue
        texts = category_texts(column)
        if unknown := sorted({*filter(None, texts)} - {*known}):
            row = next(i for i, text in enumerate(texts) if text in unknown)
            unseen.append(
                f"column {name!r} contains {format_list(map(repr, unknown))} in {format_row(row)}, but the training "
                f"table had {format_list(map(repr, known))}"
            )
    if unseen and missing == "error":
        raise DataError(f"{'; '.join(unseen)}. Correct them, or treat them as missing", remedies=("missing",))
    X, names = encode_columns(frame, schema.categories)
    X, mask, changes = clean_missing(
        X[:, [names.index(name) for name in schema.names]], schema.names, missing, means=schema.means
    )
    if not mask.any():
        raise DataError(f"none of the {len(mask)} rows is complete")
    notes += [*(f"{text}: treated as missing" for text in unseen), *changes]
    named = frame.index.to_numpy()[mask] if options.get("transpose") else None
    return Table(np.ascontiguousarray(X), schema.names, None, (), np.flatnonzero(mask), tuple(notes), points=named)


def require_finite(column: "pd.Series") -> None:
    """Raise DataError if a column has text or an infinite value."""
    wrong = np.flatnonzero(column.notna() if column.dtype == object else np.isinf(column))
    if len(wrong):
        raise DataError(
            f"column {column.name!r} contains {str(column.iloc[wrong[0]])!r} in {format_row(int(wrong[0]))}, but the "
            "training table had finite numbers. Correct it, or leave it empty"
        )
