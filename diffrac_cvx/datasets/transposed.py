"""Detect index columns, and detect and transpose tables whose rows are features, such as genes."""

import re
from typing import TYPE_CHECKING

import numpy as np

from diffrac_cvx.datasets.columns import format_list, pandas_or_error
from diffrac_cvx.datasets.targets import MIN_DISTINCT_FRACTION, is_row_id_name
from diffrac_cvx.datasets.text_tables import UNNAMED_COLUMN, is_mostly_numeric, name_columns
from diffrac_cvx.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

SAMPLE_ENTRIES = 200  # entries used to decide whether a column is numeric
MIN_COLUMNS = 8  # least number of numeric columns whose names are informative
MIN_ROW_RATIO = 4  # least ratio of rows to numeric columns for a table whose rows may be features
DUPLICATE_SUFFIX = re.compile(r" \(\d+\)$")  # of a duplicate name


INDEX_NAMES = (UNNAMED_COLUMN, "Unnamed: 0", "...1")  # of an unnamed first column here, in pandas and in readr


def has_index(frame: "pd.DataFrame") -> bool:
    """Return whether the first column has no name and only numbers or names the rows."""
    if frame.shape[1] < 2 or frame.columns[0] not in INDEX_NAMES:
        return False
    first = frame.iloc[:, 0]
    if first.dtype.kind in "iu":
        return len(first) > 1 and bool(np.all(np.diff(first.to_numpy()) == 1))
    return first.dtype.kind not in "bf" and bool(first.is_unique)


def drop_index(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a frame without its index column: an unnamed first column that only numbers or names the rows."""
    if not has_index(frame):
        return frame
    note = "the first column has no name and numbers or names the rows: it was excluded"
    features = frame.iloc[:, 1:]
    has_names = frame.iloc[:, 0].dtype.kind not in "iu"
    features.attrs.update(frame.attrs, notes=(*frame.attrs.get("notes", ()), note), has_names=has_names)
    return features


def detect_transposed(frame: "pd.DataFrame") -> str:
    """Return a note if the rows of a table look like features and its columns like points, "" otherwise.

    The criteria are many more rows than numeric columns, and column names like those of repeated samples: duplicates,
    or few names apart from a number.  Because features may also be numbered, the latter needs a column that names the
    rows, and not as points.
    """
    if len(frame) < MIN_ROW_RATIO * max(MIN_COLUMNS, sum(kind.kind in "biuf" for kind in frame.dtypes)):
        return ""
    texts = text_column_indices(frame)
    names = [DUPLICATE_SUFFIX.sub("", str(name)) for name in np.delete(frame.columns.to_numpy(), texts)]
    if len(names) < MIN_COLUMNS or len(frame) < MIN_ROW_RATIO * len(names):
        return ""
    repeated = 3 * len(set(names)) <= 2 * len(names)
    alike = 3 * len({re.sub(r"\d+", "", name) for name in names}) <= len(names)
    named = bool(frame.attrs.get("has_names"))
    if texts and not named:
        column = frame.iloc[:, texts[0]]
        named = not is_row_id_name(str(frame.columns[texts[0]])) and column.nunique() >= MIN_DISTINCT_FRACTION * len(
            column
        )
    if not (repeated or (alike and named)):
        return ""
    shown = format_list(names[:3])
    return (
        f"the {len(frame)} rows look like features and the {len(names)} columns ({shown}, ...) like points. Transpose "
        "the table if so"
    )


def transpose_frame(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return the transposed table, with column names from its first text column; ``attrs`` has the "points" names.

    Other text columns are excluded: they would be points with text in every feature.
    """
    pandas = pandas_or_error()
    texts = text_column_indices(frame)
    if has_index(frame) and 0 not in texts:  # it numbers the rows
        texts.insert(0, 0)
    if texts:
        titles = frame.iloc[:, texts[0]]
        names, messages = name_columns([str(title) for title in titles.astype(object).where(titles.notna(), "")])
    else:
        names, messages = [f"x{i + 1}" for i in range(len(frame))], []
    values = frame.drop(columns=[frame.columns[j] for j in texts])
    points = list(map(str, values.columns))
    if not points:
        raise DataError("no column is numeric, so the transposed table would have no points")
    transposed = pandas.DataFrame(values.to_numpy().T, columns=names).infer_objects()
    notes = [f"the table was transposed: {len(points)} points, {len(names)} features"]
    if texts[1:]:
        notes.append(f"excluded text columns: {format_list(repr(str(frame.columns[j])) for j in texts[1:])}")
    given, decimal = frame.attrs.get("notes", ()), frame.attrs.get("decimal", ".")
    transposed.attrs.update(notes=(*given, *notes, *messages), decimal=decimal, points=points)
    return transposed


def text_column_indices(frame: "pd.DataFrame") -> list[int]:
    """Return the indices of the non-numeric columns."""
    return [j for j in range(frame.shape[1]) if not is_numeric_column(frame.iloc[:, j])]


def is_numeric_column(column: "pd.Series") -> bool:
    """Return whether most of the first entries of a column are numbers."""
    if column.dtype.kind in "biuf":
        return True
    return is_mostly_numeric([str(entry) for entry in column.iloc[:SAMPLE_ENTRIES].dropna()])
