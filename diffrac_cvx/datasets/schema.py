"""A new table read as an earlier one was: its columns found by name, with the categories and the means of the other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diffrac_cvx.datasets.columns import (
    category_columns,
    category_texts,
    encode_categories,
    format_list,
    format_row,
    split_numbers,
)
from diffrac_cvx.datasets.tables import MISSING_POLICIES, Table, missing_error, read_frame
from diffrac_cvx.datasets.text_tables import ReadOptions
from diffrac_cvx.errors import DataError
from diffrac_cvx.points.checks import Array, one_of

if TYPE_CHECKING:
    import pandas as pd

READ_OPTIONS = (
    "header",
    "separator",
    "decimal",
    "encoding",
    "sheet",
    "transpose",
)  # of `how`, what a new file is read with too
NON_FEATURE_OPTIONS = ("label", "drop", "aside")  # of `how`, the columns that are no features


@dataclass(frozen=True, eq=False)
class TableSchema:
    """What a table has to have so that features can be taken from it as from an earlier one.

    Attributes
    ----------
    names : tuple of str
        Names of the features, in order.
    means : (d,) array or None
        Their means in the earlier table, for missing values.
    categories, how
        As in `Table`.
    """

    names: tuple[str, ...]
    means: Array | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table) -> "TableSchema":
        """Return the form of a table."""
        return cls(table.names, table.X.mean(axis=0), table.categories, table.options)

    @property
    def category_columns(self) -> dict[str, str]:
        """The columns of categories, by the features that they became."""
        return category_columns(self.categories)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a table has to have."""
        sources = self.category_columns
        return tuple(dict.fromkeys(sources.get(name, name) for name in self.names))


def read_with_schema(source: str | Path, schema: TableSchema, *, missing: str | None = None, **reading: Any) -> Table:
    """Read the features of a new table, of one row or more, as those of an earlier one.

    Parameters
    ----------
    source : str or Path
        A file, as for `read_table`.
    schema : Form
        Of the earlier table.
    missing : {"error", "drop", "mean"}, optional
        What to do about missing values and about categories that the earlier table did not have: raise an error, drop
        the rows, or take the earlier table's mean of the feature; by default what was done there.
    **reading
        ``header``, ``separator``, ``decimal``, ``encoding`` and ``sheet`` of `read_table`; what is None is as it was
        given for the earlier table.

    Raises
    ------
    DataError, ParameterError
        If the file cannot be read, or a column is missing or holds something else than there.
    """
    missing = one_of(missing or schema.options.get("missing", "error"), "missing", MISSING_POLICIES)
    if missing == "mean" and schema.means is None:
        raise DataError("the means of the features are not known here: drop rows with missing values")
    options: dict[str, Any] = {
        key: schema.options.get(key) if reading.get(key) is None else reading[key] for key in READ_OPTIONS
    }
    options["transpose"] = bool(options["transpose"])
    frame = read_frame(source, str(source), ReadOptions(**options))
    notes = [*frame.attrs.get("notes", ()), *check_columns(frame, schema)]
    X, unseen = extract_features(frame, schema, frame.attrs.get("decimal", "."))
    if unseen and missing == "error":
        raise DataError(f"{'; '.join(unseen)}: correct these rows, or treat them as missing", remedies=("missing",))
    notes += [f"{text}: taken as missing" for text in unseen]
    is_missing = np.isnan(X)
    if missing == "error" and is_missing.any():
        raise missing_error(is_missing, np.zeros(len(X), dtype=bool), schema.names)
    mask = ~is_missing.any(axis=1) if missing == "drop" else np.ones(len(X), dtype=bool)
    if not mask.all():
        notes.append(f"dropped for missing values: {int((~mask).sum())} of {len(X)} rows")
    elif is_missing.any():
        X = np.where(is_missing, np.asarray(schema.means), X)
        notes.append(f"missing values replaced by the means of the earlier table: {int(is_missing.sum())}")
    if not mask.any():
        raise DataError(f"none of the {len(X)} rows is left")
    points = frame.attrs.get("points")
    named = None if points is None else np.array(points)[mask]
    X = np.ascontiguousarray(X[mask])
    return Table(X, schema.names, None, (), np.flatnonzero(mask), tuple(notes), points=named)


def check_columns(frame: "pd.DataFrame", schema: TableSchema) -> Iterator[str]:
    """Yield a note about columns that the earlier table did not have; raise where some that it had are missing."""
    names, columns = list(map(str, frame.columns)), schema.columns
    absent = [name for name in columns if name not in names]
    if absent:
        folded = {name.casefold(): name for name in names}
        suggestions = [
            (name, folded[close]) for name in absent for close in get_close_matches(name.casefold(), folded, n=1)
        ]
        meant = format_list(f"{close!r} for {name!r}" for name, close in suggestions)
        what = f"there is no column {format_list(map(repr, absent))}"
        raise DataError(
            f"{what}; {f'did you mean {meant}? ' if suggestions else ''}the columns are {format_list(names)}"
        )
    twice = next((name for name in columns if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"two columns are called {twice!r}; give each a name of its own")
    given = [schema.options.get(key) or () for key in NON_FEATURE_OPTIONS]
    excluded = {name for one in given for name in ([one] if isinstance(one, str) else one)}
    others = [name for name in names if name not in {*columns, *excluded}]
    if others:
        yield f"not used, for the earlier table had no such column: {format_list(map(repr, others))}"


def extract_features(frame: "pd.DataFrame", schema: TableSchema, decimal: str) -> tuple[Array, list[str]]:
    """Return the features, NaN where a value is missing or a category is unknown; and these categories, in words."""
    found: dict[str, Array] = {}
    unseen = []
    for name in schema.columns:
        if name in schema.categories:
            categories = schema.categories[name]
            texts, _ = category_texts(frame[name])
            unknown = sorted({*texts} - {*categories, ""})
            if unknown:
                row = next(i for i, text in enumerate(texts) if text in unknown)
                known = f"the earlier table held {format_list(map(repr, categories))}"
                unseen.append(
                    f"column {name!r} holds {format_list(map(repr, unknown))} in {format_row(row)}, and {known}"
                )
            part = encode_categories(["" if text in unknown else text for text in texts], categories)
            found |= {f"{name}={value}": column for value, column in zip(part.values, part.columns().T, strict=True)}
            continue
        numbers, text = split_numbers(frame[name], decimal)
        wrong = np.flatnonzero(text | np.isinf(numbers))
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"column {name!r} holds {str(frame[name].iloc[row])!r} in {format_row(row)}, and the earlier table held "
                "finite numbers: correct it, or leave it empty"
            )
        found[name] = numbers
    return np.column_stack([found[name] for name in schema.names]), unseen
