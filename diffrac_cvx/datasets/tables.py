"""Read a table from a file: numeric features, labels and names, or an error with a remedy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from diffrac_cvx.datasets.columns import (
    MAX_CATEGORIES,
    MISSING_TEXTS,
    RawTable,
    as_texts,
    category_columns,
    clean_texts,
    drop_error,
    encode_columns,
    find_categories,
    find_padded,
    format_list,
    format_row,
    is_number,
    read_numbers,
    text_error,
    unchanged_texts,
)
from diffrac_cvx.datasets.file_columns import ReadOptions, read_file, transpose_table
from diffrac_cvx.datasets.suspects import find_suspects, find_total
from diffrac_cvx.errors import DataError, sentence
from diffrac_cvx.points.checks import Array, did_you_mean, one_of, positive_int

MISSING_POLICIES = ("error", "drop", "mean")
DEFAULTS = vars(ReadOptions()) | {"missing": "error"}


@dataclass(frozen=True, eq=False)
class Table:
    """Features of a table, with labels if given.

    Attributes
    ----------
    X : (n, d) array
        Features, all finite.
    names : tuple of str
        Names of the features.
    labels : (n,) array of str or None
        Label of each point, as text.
    classes : tuple of str
        Distinct labels, sorted.
    rows : (n,) array of int
        Indices of the selected rows in the file; the first data row is 0.
    notes : tuple of str
        Changes and assumptions made while reading, as sentences.
    excluded : mapping of str to (n,) array
        Columns requested by ``aside``, as text; None for an empty cell.
    categories : mapping of str to tuple of str
        Categories of each one-hot encoded column, by its name; the first of two categories has no binary column.
    options : mapping
        Parameters of `read_table` that differ from their defaults.
    points : (n,) array of str or None
        Names of the points, if the table was transposed.
    suspects : mapping of str to str
        Features that may be dates or keys, or may contain codes for missing values, with the reason.
    """

    X: Array
    names: tuple[str, ...]
    labels: np.ndarray | None
    classes: tuple[str, ...]
    rows: np.ndarray
    notes: tuple[str, ...] = ()
    excluded: Mapping[str, np.ndarray] = field(default_factory=dict)
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    points: np.ndarray | None = None
    suspects: Mapping[str, str] = field(default_factory=dict)

    @property
    def y(self) -> Array | None:
        """Labels in {-1, +1}, with the second class as +1; None unless there are exactly two classes."""
        if len(self.classes) != 2:
            return None
        return np.where(self.labels == self.classes[1], 1.0, -1.0)


def read_table(
    source: str | Path | bytes,
    label: str | None = None,
    *,
    drop: Sequence[str] = (),
    one_hot: Sequence[str] | str = (),
    missing: str = "error",
    name: str = "",
    header: bool | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    na_values: Sequence[str] = (),
    skip_rows: int | Sequence[int] = 0,
    skip_footer: int = 0,
    comment: str | None = None,
    sheet: str | None = None,
    aside: Sequence[str] = (),
    transpose: bool = False,
    top_variance: int | None = None,
) -> Table:
    """Read a table of features with one point per row, by the rules on the documentation page "Your own table".

    Parameters
    ----------
    source : str, Path or bytes
        Path of a .csv, .tsv, .txt, .dat or .data file (any separator), or of an .xlsx, .parquet or .libsvm file, each
        possibly compressed as .gz; or the bytes of such a file.
    label : str, optional
        Column with the known classes of the rows (numbers or text), which are not used to find clusters.  In a LIBSVM
        file, "y" by default.
    drop : sequence of str
        Columns to drop, such as sample IDs.
    one_hot : sequence of str, or "all"
        Categorical columns to one-hot encode: one binary column per category, or a single one for two categories.
    missing : {"error", "drop", "mean"}
        Treatment of missing values: raise an error, drop the rows, or use the column mean.
    name : str
        File name if bytes are given; its extension determines the format.
    header : bool, optional
        Whether the first line contains the column names.  By default it does if every entry is text or a whole number
        and the whole numbers increase or decrease.
    separator, decimal, thousands, encoding : str, optional
        Field separator of a text file.  Decimal mark, "." or ",", detected column by column.  Thousands separator, "."
        or ",", detected column by column.  Encoding of a text file.  All are detected by default.
    na_values : sequence of str
        Texts that stand for missing values, in addition to those of pandas.
    skip_rows : int, or sequence of int
        Number of lines to skip at the start, or indices of lines from 0, such as that of a line of units.
    skip_footer : int
        Number of lines to skip at the end.
    comment : str, optional
        Start of a comment up to the end of the line.  By default the lines above the table that start with "#" are
        comments, and with "" none.
    sheet : str, optional
        Sheet of an Excel file, by default the first.
    aside : sequence of str
        Columns that are not features and are returned as the text of the file, such as sample IDs or partially known
        labels.
    transpose : bool
        Whether the rows of the file are the features, as for gene expression, and its columns the points.  The feature
        names, to which the other parameters refer, are then in the first column if it has no name, otherwise in the
        first text column; ``drop`` may also name points.
    top_variance : int, optional
        Number of features to select, by largest variance before scaling; by default all.

    Raises
    ------
    ParameterError
        If ``missing``, ``decimal``, ``thousands`` or ``top_variance`` is not an allowed value.
    DataError
        If the file cannot be read as a numeric table; the message names all offending columns and the remedies.
    ResourceError
        If the unpacked content would not fit in memory.
    """
    one_of(missing, "missing", MISSING_POLICIES)
    for mark, parameter in ((decimal, "decimal"), (thousands, "thousands")):
        if mark is not None:
            one_of(mark, parameter, (".", ","))
    if top_variance is not None:
        positive_int(top_variance, "top_variance")
    reading = ReadOptions(
        header, separator, decimal, thousands, encoding, tuple(na_values), skip_rows, skip_footer, comment, sheet,
        transpose,
    )  # fmt: skip
    roles = {"label": label, "drop": tuple(drop), "one_hot": one_hot, "aside": tuple(aside)}
    given: dict[str, Any] = {**roles, **vars(reading), "missing": missing}
    options = {key: value for key, value in given.items() if value not in (None, (), [], DEFAULTS.get(key))}
    raw = read_file(source, name or str(source), reading)
    raw, drop = transpose_table(raw, drop) if transpose else (raw, drop)
    label = label if label is not None else raw.label
    targets, encoded = [label] if label else [], [] if one_hot == "all" else list(one_hot)
    require_columns(raw, [*targets, *drop, *aside, *encoded])
    used = [column for column in raw.columns if column not in drop]
    columns, changes = read_numbers(raw, used, reading.marks, reading.na_values, {*targets, *aside, *encoded})
    messages = [*raw.notes, *changes]
    features = {column: columns[column] for column in used if column not in {*targets, *aside}}
    if not features:
        raise DataError("no column is left as a feature.")
    texts = [column for column, entries in features.items() if entries.dtype == object]
    if one_hot == "all":
        counts = {column: len({*features[column]} - {None}) for column in texts}
        encoded = [column for column in texts if 2 <= counts[column] <= min(MAX_CATEGORIES, len(features[column]) // 2)]
    if wrong := [column for column in texts if column not in set(encoded)]:
        raise text_error(features, wrong, reading.marks)
    categories = find_categories(features, encoded)
    X, names = encode_columns(features, categories)
    if categories:
        count = len(category_columns(categories))
        messages.append(f"one-hot encoded columns: {format_list(map(repr, categories))} (binary columns: {count})")
    labels = np.array(as_texts(columns[label]), dtype=object) if label else None
    unlabeled = None if labels is None else np.array([text is None for text in labels])
    X, mask, changes = clean_missing(X, names, missing, unlabeled)
    if len(X) < 2:
        raise DataError(f"{'one' if len(X) else 'no'} row is left; clustering needs at least two rows.")
    messages += changes
    if top_variance is not None:
        largest = np.sort(np.argsort(-X.var(axis=0), kind="stable")[:top_variance])
        messages.append(f"the {len(largest)} of {X.shape[1]} features with the largest variance were selected")
        X, names = X[:, largest], tuple(names[j] for j in largest)
    X = np.ascontiguousarray(X)
    rows, (total, what) = np.flatnonzero(mask), find_total(X)
    if what:
        option = "drop" if transpose else "skip_footer" if total else "skip_rows"
        title = f"{format_row(rows[total])}{row_title(raw, rows[total])}"
        messages.append(f"{title} is the {what} of the others. Skip it ({option})")
    suspects, changes = find_suspects(np.delete(X, total, axis=0) if what else X, names, find_padded(raw.columns))
    messages += changes
    text = None if labels is None else labels[mask].astype(str)
    classes = () if text is None else tuple(np.unique(text).tolist())
    missing_texts = MISSING_TEXTS.union(na_values)
    unchanged = {column: unchanged_texts(raw.columns[column], missing_texts) for column in aside}
    excluded = {column: np.array(texts, dtype=object)[mask] for column, texts in unchanged.items()}
    points = np.array(raw.row_names)[mask] if transpose else None
    return Table(X, names, text, classes, rows, tuple(messages), excluded, categories, options, points, suspects)


def require_columns(table: RawTable, names: Sequence[str]) -> None:
    """Raise DataError naming all columns that the table lacks."""
    if unknown := [name for name in names if name not in table.columns]:
        what = f"{'is no column' if len(unknown) == 1 else 'are no columns'} {format_list(map(repr, unknown))}"
        suggestion = did_you_mean(unknown[0], table.columns)
        message = f"there {what}; the columns are {format_list(table.columns)}{suggestion}"
        note = next((note for note in table.notes if note.startswith("the first line")), "")
        if not note:
            raise DataError(message)
        other = "no" if "column names." in note else "yes"
        raise DataError(f"{message} {sentence('Note: ' + note)}", remedies=("header",), columns=((other, "header"),))


def row_title(table: RawTable, row: int) -> str:
    """Return the first text of a row in brackets, "" if it has none."""
    columns = [table.row_names, *table.columns.values()]
    texts = clean_texts(column[row] for column in columns if column is not None and len(column) > row)
    return next((f" ({text!r})" for text in texts if text and not is_number(text)), "")


def clean_missing(
    X: Array, names: Sequence[str], missing: str, unlabeled: np.ndarray | None = None, means: Array | None = None
) -> tuple[Array, np.ndarray, list[str]]:
    """Return X without missing values, the mask of selected rows, and notes on the changes.

    Rows in which all features are missing are dropped, and so are rows without a label, unless missing = "error", which
    also raises DataError if the only feature has no value.  Missing values are replaced by ``means``, by default those
    of the columns.
    """
    is_missing = np.isnan(X)
    absent = is_missing if unlabeled is None else np.column_stack([is_missing, unlabeled])
    mask = ~is_missing.all(axis=1) | np.full(len(X), X.shape[1] == 1 and missing == "error")
    labeled = mask & ~absent[:, X.shape[1] :].any(axis=1)
    if means is None and labeled.any() and (empty := is_missing[labeled].all(axis=0)).any():
        valueless = [names[j] for j in np.flatnonzero(empty).tolist()]
        raise drop_error(f"columns without any value: {format_list(map(repr, valueless))}. Drop them.", valueless)
    wrong = absent & mask[:, None]
    if missing == "error" and wrong.any():
        titles = [*(f"column {name!r}" for name in names), "the label"]
        counts = [f"{titles[j]} ({int(wrong[:, j].sum())})" for j in np.flatnonzero(wrong.any(axis=0))]
        row, column = np.argwhere(wrong)[0].tolist()
        raise DataError(
            f"values are missing in {int(wrong.any(axis=1).sum())} of {len(X)} rows: {format_list(counts)}, first "
            f"in {format_row(row)}, {titles[column]}. Drop these rows, or replace missing values by "
            "the column mean.",
            remedies=("missing",),
        )
    mask = labeled & ~is_missing.any(axis=1) if missing == "drop" else labeled
    changes = []
    if not mask.all():
        changes.append(f"dropped {int((~mask).sum())} of {len(X)} rows with missing values")
    X, is_missing = X[mask], is_missing[mask]
    if count := int(is_missing.sum()):
        X = np.where(is_missing, np.nanmean(X, axis=0) if means is None else means, X)
        mean = "column mean" if means is None else "training mean"
        changes.append(f"replaced {count} missing value{'s' * (count > 1)} by the {mean}")
    return X, mask, changes
