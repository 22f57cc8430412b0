"""Read a new table like the training table: columns by name, with the training categories and means."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diffrac_cvx.datasets.columns import (
    category_columns,
    category_texts,
    feature_names,
    format_list,
    format_row,
    is_number,
    one_hot_columns,
)
from diffrac_cvx.datasets.tables import MISSING_POLICIES, Table, missing_error, read_frame
from diffrac_cvx.datasets.text_tables import ReadOptions
from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array, did_you_mean, one_of

if TYPE_CHECKING:
    import pandas as pd

READ_OPTIONS = tuple(one.name for one in fields(ReadOptions))  # the options that also apply to a new file
NON_FEATURE_OPTIONS = ("label", "drop", "aside")  # the options that name columns other than features


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
    def category_columns(self) -> dict[str, str]:
        """The categorical column of each one-hot encoded feature."""
        return category_columns(self.categories)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns required of a new table."""
        sources = self.category_columns
        return tuple(dict.fromkeys(sources.get(name, name) for name in self.names))


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
    excluded = [name for key in NON_FEATURE_OPTIONS for name in as_names(schema.options.get(key, ()))]
    frame = read_frame(source, str(source), ReadOptions(**options), [*excluded, *schema.categories], excluded)
    notes = [*frame.attrs["notes"], *check_columns(frame, schema, excluded)]
    X, unseen = extract_features(frame, schema)
    if unseen and missing == "error":
        raise DataError(f"{'; '.join(unseen)}. Correct them, or treat them as missing", remedies=("missing",))
    notes += [f"{text}: treated as missing" for text in unseen]
    is_missing = np.isnan(X)
    if missing == "error" and is_missing.any():
        raise missing_error(is_missing, np.zeros(len(X), dtype=bool), schema.names)
    mask = ~is_missing.any(axis=1) if missing == "drop" else np.ones(len(X), dtype=bool)
    if not mask.all():
        notes.append(f"dropped {int((~mask).sum())} of {len(X)} rows with missing values")
    elif is_missing.any():
        X = np.where(is_missing, np.asarray(schema.means), X)
        notes.append(f"missing values replaced by the training means: {int(is_missing.sum())}")
    if not mask.any():
        raise DataError(f"none of the {len(X)} rows is complete")
    points = frame.attrs.get("points")
    named = None if points is None else np.array(points)[mask]
    X = np.ascontiguousarray(X[mask])
    return Table(X, schema.names, None, (), np.flatnonzero(mask), tuple(notes), points=named)


def as_names(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return one or several names as a tuple."""
    return (value,) if isinstance(value, str) else value


def check_columns(frame: "pd.DataFrame", schema: TableSchema, excluded: Sequence[str]) -> Iterator[str]:
    """Yield a note on columns that the training table lacks; raise DataError if a training column is missing."""
    names, columns = list(map(str, frame.columns)), schema.columns
    if absent := [name for name in columns if name not in names]:
        near = did_you_mean(absent[0], names)
        raise DataError(
            f"there is no column {format_list(map(repr, absent))}{near}; the columns are {format_list(names)}"
        )
    others = [name for name in names if name not in {*columns, *excluded}]
    if others:
        yield f"ignored columns, which are not in the training table: {format_list(map(repr, others))}"


def extract_features(frame: "pd.DataFrame", schema: TableSchema) -> tuple[Array, list[str]]:
    """Return the features, with NaN for missing values and unknown categories, and messages on the latter."""
    found: dict[str, Array] = {}
    unseen = []
    for name in schema.columns:
        column, categories = frame[name], schema.categories.get(name)
        if categories is not None:
            texts = category_texts(column)
            if unknown := sorted({*filter(None, texts)} - {*categories}):
                row = next(i for i, text in enumerate(texts) if text in unknown)
                unseen.append(
                    f"column {name!r} contains {format_list(map(repr, unknown))} in {format_row(row)}, but the "
                    f"training table had {format_list(map(repr, categories))}"
                )
            found |= zip(feature_names(name, categories), one_hot_columns(texts, categories).T, strict=True)
            continue
        is_text = column.dtype == object
        wrong = np.flatnonzero(column.notna() if is_text else np.isinf(column))
        if len(wrong):
            at = next((i for i in wrong if is_text and not is_number(column.iloc[i])), wrong[0])
            raise DataError(
                f"column {name!r} contains {str(column.iloc[at])!r} in {format_row(int(at))}, but the training table "
                "had finite numbers. Correct it, or leave it empty"
            )
        found[name] = np.full(len(frame), np.nan) if is_text else column.to_numpy(dtype=float)
    return np.column_stack([found[name] for name in schema.names]), unseen
