"""Read a table from a file: numeric features, labels and names, or an error with a remedy."""

import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diffrac_cvx.datasets.columns import (
    MISSING_MARKS,
    drop_error,
    format_list,
    format_row,
    numeric_columns,
    pandas_or_error,
)
from diffrac_cvx.datasets.data_warnings import find_data_warnings
from diffrac_cvx.datasets.real import SCALINGS
from diffrac_cvx.datasets.text_tables import (
    SAMPLE_LINES,
    ReadOptions,
    count_titles,
    find_header,
    name_columns,
    note_of_titles,
    text_frame,
)
from diffrac_cvx.datasets.transposed import detect_transposed, drop_index, transpose_frame
from diffrac_cvx.errors import DataError, ResourceError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array, did_you_mean, one_of, positive_int

if TYPE_CHECKING:
    import pandas as pd

MISSING_POLICIES = ("error", "drop", "mean")
SUFFIXES = (".csv", ".tsv", ".txt", ".dat", ".data", ".xlsx", ".npz", ".npy", ".parquet")
MEMORY_COPIES = 4  # copies of a table in memory while it is read
LARGE_ARCHIVE = 2**26  # unpacked bytes
MAX_COMPRESSION = 200  # ratio of unpacked to packed bytes; archives written by programs have up to 50
INSTALL_HINTS = {
    ".xlsx": "{} needs openpyxl. Run pip install 'diffrac-cvx[excel]', or save the sheet as CSV",
    ".parquet": "{} needs pyarrow. Run pip install pyarrow, or save the table as CSV",
}
EXCEL_EXPANSION = 4  # memory of the cells relative to the text of a sheet
CELL_PATTERN = re.compile(rb'<c [^>]*?\br="([A-Z]{1,3})(\d{1,7})"')  # a cell in the XML of a sheet
AUTO_DETECT = ReadOptions()
DEFAULT_VALUES: tuple[Any, ...] = (None, (), [], "error", "none")  # default values of the parameters of `read_table`


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
        Columns set aside, as text; None for an empty cell.
    categories : mapping of str to tuple of str
        Categories of each one-hot encoded column, by its name; the first of two categories has no binary column.
    options : mapping
        Parameters of `read_table` that differ from their defaults.
    points : (n,) array of str or None
        Names of the points, if the table was transposed.
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

    @property
    def references(self) -> tuple[np.ndarray, ...]:
        """The labels, if there are any: one reference partition or none."""
        return () if self.labels is None else (self.labels,)

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
    scaling: str = "none",
    name: str = "",
    header: bool | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    aside: Sequence[str] = (),
    transpose: bool = False,
    top_variance: int | None = None,
) -> Table:
    """Read a table of features with one point per row.

    Parameters
    ----------
    source : str, Path or bytes
        Path of a .csv, .tsv, .txt, .dat or .data file (any separator), or of an .xlsx, .npz (X and optionally y), .npy
        or .parquet file; or the bytes of such a file.
    label : str, optional
        Column with the labels (numbers or text).  In an npz file, "y" by default if present.
    drop : sequence of str
        Columns to drop, such as sample IDs.
    one_hot : sequence of str, or "all"
        Categorical columns to one-hot encode: one binary column per category, or a single one for two categories.
    missing : {"error", "drop", "mean"}
        Treatment of missing values: raise an error, drop the rows, or use the column mean.
    scaling : {"none", "standardize", "min-max"}
        Scaling of the features, as in `load`.
    name : str
        File name if bytes are given; its extension determines the format.
    header : bool, optional
        Whether the first line contains the column names; detected from the first lines by default, with a note if the
        detection is uncertain.
    separator, decimal, encoding : str, optional
        Field separator, decimal mark ("." or ",") and encoding of a text file; detected by default.
    sheet : str, optional
        Sheet of an Excel file, by default the first.
    aside : sequence of str
        Columns that are not features and are returned unchanged, such as partially known labels.
    transpose : bool
        Whether the rows of the file are the features, as for gene expression, and its columns the points.  The first
        text column then contains the feature names, which replace the column names in the other parameters.
    top_variance : int, optional
        Number of features to select, by largest variance before scaling; by default all.

    Raises
    ------
    ParameterError
        If ``missing``, ``scaling``, ``decimal`` or ``top_variance`` is not an allowed value.
    DataError
        If the file cannot be read as a numeric table; the message names all offending columns and the remedies.
    ResourceError
        If the unpacked content would not fit in memory.
    """
    given: dict[str, Any] = {"label": label, "drop": tuple(drop), "one_hot": one_hot, "missing": missing}
    given |= {"scaling": scaling, "header": header, "separator": separator, "decimal": decimal, "encoding": encoding}
    given |= {"sheet": sheet, "aside": tuple(aside), "transpose": transpose or None}
    options = {key: value for key, value in given.items() if value not in DEFAULT_VALUES}
    one_of(missing, "missing", MISSING_POLICIES)
    one_of(scaling, "scaling", SCALINGS)
    if decimal is not None:
        one_of(decimal, "decimal", (".", ","))
    if top_variance is not None:
        positive_int(top_variance, "top_variance")
    reading = ReadOptions(header, separator, decimal, encoding, sheet, transpose)
    frame = read_frame(source, name or str(source), reading)
    messages, mark, points = frame.attrs.get("notes", ()), frame.attrs.get("decimal", "."), frame.attrs.get("points")
    transposed_note = "" if transpose or label is not None else detect_transposed(frame)
    labels, frame = split_label(frame, label)
    require_columns(frame, drop, " to drop")
    require_columns(frame, aside, " to set aside")
    others = {name: frame[name] for name in aside}
    frame = frame.drop(columns=list({*drop, *aside}))
    if frame.shape[1] == 0:
        raise DataError("no column is left as a feature")
    if one_hot != "all":
        require_columns(frame, one_hot, " to one-hot encode")
    frame, encoded = numeric_columns(frame, mark, one_hot, labeled=labels is not None, transposed_note=transposed_note)
    categories = frame.attrs["categories"]
    names = tuple(map(str, frame.columns))
    X = frame.to_numpy(dtype=float)
    require_no_infinity(X, names)
    unlabeled, removable = np.zeros(len(X), dtype=bool), np.ones(len(X), dtype=bool)
    if labels is not None:
        unlabeled = removable = labels.isna().to_numpy()
    empty = np.isnan(X).all(axis=1) & removable & (X.shape[1] > 1)
    X, mask, changes = clean_missing(X, names, unlabeled, empty, missing)
    if len(X) < 2:
        left = "no row is" if len(X) == 0 else "one row is"
        raise DataError(f"{left} left; clustering needs at least two rows")
    X, names, kept_features = keep_top_variance(X, names, top_variance)
    notes = [*kept_features, *([transposed_note] if transposed_note else []), *find_data_warnings(X, names)]
    text = None if labels is None else convert_to_text(labels.to_numpy()[mask])
    classes = () if text is None else tuple(np.unique(text).tolist())
    X = np.ascontiguousarray(SCALINGS[scaling](X))
    excluded = {name: text_or_none(column.to_numpy()[mask]) for name, column in others.items()}
    messages = (*messages, *encoded, *changes, *notes)
    named = None if points is None else np.array(points)[mask]
    return Table(X, names, text, classes, np.flatnonzero(mask), messages, excluded, categories, options, named)


def keep_top_variance(X: Array, names: tuple[str, ...], count: int | None) -> tuple[Array, tuple[str, ...], list[str]]:
    """Return the features with the largest variance in their original order, their names, and a note."""
    d = X.shape[1]
    if count is None:
        return X, names, []
    if count >= d:
        return X, names, [f"all {d} features were selected: there are at most {count}"]
    selected = np.sort(np.argsort(-X.var(axis=0), kind="stable")[:count])
    return (
        X[:, selected],
        tuple(names[j] for j in selected),
        [f"the {count} of {d} features with the largest variance were selected"],
    )


def require_columns(frame: "pd.DataFrame", names: Sequence[str], purpose: str = "") -> None:
    """Raise DataError naming all columns that the table lacks."""
    unknown = [repr(name) for name in names if name not in frame.columns]
    if unknown:
        what = f"{'column' if len(unknown) == 1 else 'columns'} {format_list(unknown)}{purpose}"
        missing = [name for name in names if name not in frame.columns]
        suggestion = did_you_mean(missing[0], frame.columns)
        raise DataError(f"there is no {what}; the columns are {format_list(frame.columns)}{suggestion}")


def require_no_infinity(X: Array, names: tuple[str, ...]) -> None:
    """Raise DataError naming all columns with infinite values."""
    infinite = np.isinf(X)
    if not infinite.any():
        return
    wrong = [names[j] for j in np.flatnonzero(infinite.any(axis=0))]
    row = int(np.flatnonzero(infinite[:, names.index(wrong[0])])[0])
    more = f"; also infinite: {format_list(map(repr, wrong[1:]))}" if len(wrong) > 1 else ""
    raise drop_error(f"column {wrong[0]!r} is infinite in {format_row(row)}{more}. Correct or drop it", wrong, row)


def split_label(frame: "pd.DataFrame", label: str | None) -> tuple["pd.Series | None", "pd.DataFrame"]:
    """Return the label column, if any, and the other columns."""
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise DataError(f"two columns are named {str(twice[0])!r}. Rename one of them")
    label = label if label is not None else frame.attrs.get("label")
    if label is None:
        return None, frame
    require_columns(frame, [label])
    return frame[label], frame.drop(columns=[label])


def clean_missing(
    X: Array, names: tuple[str, ...], unlabeled: np.ndarray, empty: np.ndarray, missing: str
) -> tuple[Array, np.ndarray, list[str]]:
    """Return X without missing values, the mask of selected rows, and notes on the changes.

    Empty rows are dropped, and so are rows without a label unless missing = "error".
    """
    is_missing = np.isnan(X)
    mask = ~unlabeled & ~empty
    valueless = [names[j] for j in np.flatnonzero(is_missing[mask].all(axis=0))] if mask.any() else []
    if valueless:
        message = "columns {} have no values. Drop them" if len(valueless) > 1 else "column {} has no values. Drop it"
        raise drop_error(message.format(format_list(map(repr, valueless))), valueless)
    if missing == "error" and (is_missing.any(axis=1) | unlabeled)[~empty].any():
        raise missing_error(is_missing & ~empty[:, None], unlabeled & ~empty, names)
    if missing == "drop":
        mask &= ~is_missing.any(axis=1)
    changes = []
    if not mask.all():
        changes.append(f"dropped {int((~mask).sum())} of {len(X)} rows with missing values")
    X, is_missing = X[mask], is_missing[mask]
    if is_missing.any():
        X = np.where(is_missing, np.nanmean(X, axis=0), X)
        count = int(is_missing.sum())
        changes.append(f"replaced {count} missing value{'s' if count > 1 else ''} by the column mean")
    return X, mask, changes


def missing_error(is_missing: np.ndarray, unlabeled: np.ndarray, names: tuple[str, ...]) -> DataError:
    """Return the DataError that counts and locates the missing values."""
    absent = np.column_stack([is_missing, unlabeled])
    titles = [*(f"column {name!r}" for name in names), "the label"]
    counts = [f"{titles[j]} ({int(absent[:, j].sum())})" for j in np.flatnonzero(absent.any(axis=0))]
    row, column = (int(place) for place in np.argwhere(absent)[0])
    return DataError(
        f"values are missing in {int(absent.any(axis=1).sum())} of {len(absent)} rows: "
        f"{format_list(counts)}; the first missing value is in {format_row(row)}, "
        f"{titles[column]}. Drop these rows, or replace missing values by the column mean",
        column=names[column] if column < len(names) else None, row=row, remedies=("missing",),
    )  # fmt: skip


def text_or_none(values: np.ndarray) -> np.ndarray:
    """Return values as text, with None for empty values."""
    empty = [value is None or value != value or value == "" for value in values.tolist()]
    text = convert_to_text(values).astype(object)
    text[empty] = None
    return text


def convert_to_text(values: np.ndarray) -> np.ndarray:
    """Return labels as text, integers without a decimal point."""
    return np.array([str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in values.tolist()])


def read_frame(source: str | Path | bytes, name: str, reading: ReadOptions = AUTO_DETECT) -> "pd.DataFrame":
    """Return the columns of a file unchanged; ``attrs`` may contain "notes", "decimal" and "label"."""
    pandas_or_error()
    if not isinstance(source, bytes) and not Path(source).is_file():
        folder = Path(source).parent
        files = [file.name for file in folder.iterdir() if file.suffix in SUFFIXES] if folder.is_dir() else []
        raise DataError(f"{source} is not a file; looked in {Path.cwd()}{did_you_mean(Path(source).name, files)}")
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"{name} has the unsupported extension {suffix!r}. Use one of {', '.join(SUFFIXES)}")
    try:
        content = source if isinstance(source, bytes) else Path(source).read_bytes()
        if suffix in (".npz", ".npy"):
            frame = arrays_frame(content, name)
            return transpose_frame(frame) if reading.transpose else frame
        if suffix == ".parquet":
            frame = parquet_frame(content, name)
            return transpose_frame(frame) if reading.transpose else frame
        frame = excel_frame(content, name, reading) if suffix == ".xlsx" else text_frame(content, name, reading)
        return transpose_frame(frame) if reading.transpose else drop_index(frame)
    except DataError as error:
        if str(error).startswith(name):
            raise
        raise DataError(f"{name} cannot be read: {error}") from None
    except ResourceError:
        raise
    except MemoryError:
        raise ResourceError(f"{name} does not fit in memory. Use a part of it") from None
    except ImportError:
        raise DataError(INSTALL_HINTS[suffix].format(name)) from None
    except Exception as error:  # file readers raise many kinds of errors on a damaged file
        message = " ".join(str(error).split()) or "unexpected end of file"
        raise DataError(f"{name} cannot be read as a {suffix} file: {message}") from None


def excel_frame(content: bytes, name: str, reading: ReadOptions) -> "pd.DataFrame":
    """Return the columns of a sheet, whose first row is a header or a point, as in a text file."""
    import openpyxl  # noqa: F401  # used by pandas

    pandas = pandas_or_error()
    check_workbook(content, name)
    with pandas.ExcelFile(BytesIO(content), engine="openpyxl") as book:
        sheets = list(map(str, book.sheet_names))
        chosen = sheets[0] if reading.sheet is None else reading.sheet
        if chosen not in sheets:
            raise DataError(f"{name} has no sheet {chosen!r}; the sheets are {format_list(sheets)}")
        options = {"header": None, "dtype": object, "na_values": MISSING_MARKS, "keep_default_na": False}
        cells = pandas.read_excel(book, sheet_name=chosen, **options).dropna(how="all").dropna(how="all", axis=1)
    if cells.empty:
        raise DataError(f"{name}: the sheet {chosen!r} is empty")
    rows = [["" if value != value else str(value) for value in row] for row in cells.head(SAMPLE_LINES).to_numpy()]
    n_titles = count_titles(rows) if reading.header is None else 0
    titles = note_of_titles(rows[:n_titles])
    cells, rows = cells.iloc[n_titles:], rows[n_titles:]
    has_header, note = find_header(rows) if reading.header is None else (reading.header, "")
    names, notes = name_columns(rows[0]) if has_header else ([f"x{j + 1}" for j in range(cells.shape[1])], [])
    frame = cells.iloc[int(has_header) :].reset_index(drop=True).infer_objects()
    frame.columns = pandas.Index(names)
    several = len(sheets) > 1 and reading.sheet is None
    other = f"{name} has {len(sheets)} sheets, and {chosen!r} was read" if several else ""
    frame.attrs.update(notes=tuple(filter(None, (other, titles, note, *notes))), decimal=reading.decimal or ".")
    return frame


def arrays_frame(content: bytes, name: str) -> "pd.DataFrame":
    """Return NumPy arrays as columns: X, and y as a column of that name."""
    pandas = pandas_or_error()
    if zipfile.is_zipfile(BytesIO(content)):
        with zipfile.ZipFile(BytesIO(content)) as archive:
            require_room(sum(member.file_size for member in archive.infolist()), name)
    loaded = np.load(BytesIO(content), allow_pickle=False)
    arrays = {"X": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    X = arrays.get("X")
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        raise DataError(f"{name} must contain a two-dimensional array X; it contains {format_list(arrays)}")
    names = [str(found) for found in arrays.get("feature_names", [f"x{j + 1}" for j in range(X.shape[1])])]
    if len(names) != X.shape[1]:
        raise DataError(f"{name} has {len(names)} feature names for {X.shape[1]} features")
    frame = pandas.DataFrame(X, columns=names)
    if "y" in arrays:
        y = arrays["y"]
        if y.shape != (len(X),):
            raise DataError(f"y in {name} has shape {y.shape}; for {len(X)} points it must be ({len(X)},)")
        if "y" in names:
            raise DataError(f"{name} has labels y and a feature of the same name. Rename the feature")
        frame["y"] = y
        frame.attrs["label"] = "y"
    return frame


def parquet_frame(content: bytes, name: str) -> "pd.DataFrame":
    """Return the columns of a Parquet file."""
    from pyarrow.parquet import ParquetFile

    size = ParquetFile(BytesIO(content)).metadata
    require_room(8.0 * size.num_rows * size.num_columns, name)
    frame = pandas_or_error().read_parquet(BytesIO(content), engine="pyarrow")
    frame.columns = frame.columns.map(str)
    return frame


def check_workbook(content: bytes, name: str) -> None:
    """Raise an error for an Excel file that unpacks to an implausible size (a zip bomb), before unpacking it.

    No program compresses more than 64 MB by a factor above 200.  The unpacked cells must fit in memory, and so must the
    rectangle of all cells up to the last one.
    """
    with zipfile.ZipFile(BytesIO(content)) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())  # bounds what is read of each member
        if unpacked > max(LARGE_ARCHIVE, MAX_COMPRESSION * len(content)):
            raise DataError(
                f"{name} unpacks from {len(content)} to {unpacked} bytes: implausible for a table. Save it as CSV"
            )
        require_room(EXCEL_EXPANSION * unpacked, name)
        rows = columns = 0
        for member in archive.namelist():
            if member.startswith("xl/worksheets/"):
                high, wide = sheet_extent(archive.read(member))
                rows, columns = max(rows, high), max(columns, wide)
    require_room(8.0 * rows * columns, f"{name} with {rows} rows and {columns} columns up to its last cell")


def sheet_extent(text: bytes) -> tuple[int, int]:
    """Return the numbers of rows and columns of a sheet up to its last cell, from the cell names."""
    rows, last = 0, b""
    for cell in CELL_PATTERN.finditer(text):
        rows, last = max(rows, int(cell[2])), max(last, cell[1].rjust(3, b"@"))  # @ comes before A
    columns = 0
    for letter in last:
        columns = 26 * columns + letter - ord("@")
    return rows, columns


def require_room(unpacked: float, name: str) -> None:
    """Raise ResourceError if the columns, their frame, the matrix and its scaled copy would not fit in memory."""
    require_memory(MEMORY_COPIES * unpacked, f"{name}, unpacked,", "use a part of it")
