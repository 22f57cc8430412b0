"""Read a table from a file: numeric features, labels and names, or an error with a remedy."""

import bz2
import csv
import gzip
import lzma
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diffrac_cvx.datasets.columns import (
    category_columns,
    choose_categories,
    drop_error,
    encode_columns,
    format_list,
    format_row,
    is_mostly_numeric,
    pandas_or_error,
    read_numbers,
    text_columns,
)
from diffrac_cvx.datasets.data_warnings import find_data_warnings, find_summary_rows
from diffrac_cvx.datasets.files import read_libsvm
from diffrac_cvx.datasets.real import SCALINGS
from diffrac_cvx.datasets.text_tables import ReadOptions, decode, name_columns, text_frame
from diffrac_cvx.errors import DataError, ResourceError
from diffrac_cvx.machine.memory import available_memory, require_memory
from diffrac_cvx.points.checks import Array, did_you_mean, one_of, positive_int

if TYPE_CHECKING:
    import pandas as pd

MISSING_POLICIES = ("error", "drop", "mean")
UNPACKERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
LIBSVM_LINE = re.compile(rb"\s*[+-]?[\d.]+(\s+\d+:\S+)+\s*")
SUFFIXES = (
    ".csv", ".tsv", ".txt", ".dat", ".data", ".libsvm", ".svm", ".xlsx", ".npz", ".npy", ".parquet", *UNPACKERS, ".zip",
)  # fmt: skip
MEMORY_COPIES = 4  # copies of a table in memory while it is read
LARGE_ARCHIVE = 2**26  # unpacked bytes
MAX_COMPRESSION = 200  # ratio of unpacked to packed bytes; archives written by programs have up to 50
EXCEL_EXPANSION = 4  # memory of the cells relative to the text of a sheet
POINT_AND_THREE_DIGITS = re.compile(r"-?\d{1,3}\.\d{3}")
AUTO_DETECT = ReadOptions()


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
        Path of a .csv, .tsv, .txt, .dat or .data file (any separator), or of an .xlsx, .parquet, .npz (X and optionally
        y), .npy or .libsvm file, possibly compressed (.gz, .bz2, .xz, .zip); or the bytes of such a file.
    label : str, optional
        Column with the labels (numbers or text).  In an npz or LIBSVM file, "y" by default if present.
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
        Whether the first line contains the column names.  By default it does if every entry is text or a whole number
        and the whole numbers increase or decrease.
    separator, decimal, thousands, encoding : str, optional
        Field separator of a text file.  Decimal mark, "." or ",", found column by column.  Thousands separator, "." or
        ",", found column by column.  Encoding of a text file.  All are found by default.
    na_values : sequence of str
        Texts of missing values, besides those of pandas.
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
        Columns that are not features and are returned unchanged, such as partially known labels.
    transpose : bool
        Whether the rows of the file are the features, as for gene expression, and its columns the points.  The first
        column, if it has no name, else the first text column then has the feature names, to which the other parameters
        refer; ``drop`` may also name points.
    top_variance : int, optional
        Number of features to select, by largest variance before scaling; by default all.

    Raises
    ------
    ParameterError
        If ``missing``, ``scaling``, ``decimal``, ``thousands`` or ``top_variance`` is not an allowed value.
    DataError
        If the file cannot be read as a numeric table; the message names all offending columns and the remedies.
    ResourceError
        If the unpacked content would not fit in memory.
    """
    one_of(missing, "missing", MISSING_POLICIES)
    one_of(scaling, "scaling", SCALINGS)
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
    defaults = vars(AUTO_DETECT) | {"missing": "error", "scaling": "none"}
    given: dict[str, Any] = {**roles, **vars(reading), "missing": missing, "scaling": scaling}
    options = {key: value for key, value in given.items() if value not in (None, (), [], defaults.get(key))}
    encoded = () if one_hot == "all" else tuple(one_hot)
    frame = read_frame(source, name or str(source), reading, [*filter(None, [label]), *drop, *aside, *encoded], drop)
    messages, points = frame.attrs["notes"], frame.index.to_numpy()
    label = label if label is not None else frame.attrs.get("label")
    drop = [column for column in drop if column not in frame.attrs.get("dropped", ())]
    for columns, purpose in (([label] if label else [], ""), (drop, " to drop"), (aside, " to set aside")):
        require_columns(frame, columns, purpose)
    labels, others = frame[label] if label else None, {column: frame[column] for column in aside}
    frame = frame.drop(columns=list({*filter(None, [label]), *drop, *aside}))
    if frame.shape[1] == 0:
        raise DataError("no column is left as a feature")
    require_columns(frame, encoded, " to one-hot encode")
    categories = choose_categories(frame, one_hot, labels is not None)
    X, names = encode_columns(frame, categories)
    require_no_infinity(X, names)
    notes = []
    if categories:
        count = len(category_columns(categories))
        notes.append(f"one-hot encoded columns: {format_list(map(repr, categories))} (binary columns: {count})")
    X, mask, changes = clean_missing(X, names, missing, None if labels is None else labels.isna().to_numpy())
    if len(X) < 2:
        left = "no row is" if len(X) == 0 else "one row is"
        raise DataError(f"{left} left; clustering needs at least two rows")
    if top_variance is not None:
        largest = np.sort(np.argsort(-X.var(axis=0), kind="stable")[:top_variance])
        notes.append(f"the {len(largest)} of {X.shape[1]} features with the largest variance were selected")
        X, names = X[:, largest], tuple(names[j] for j in largest)
    messages = (*messages, *notes, *changes, *find_data_warnings(X, names))
    text = None if labels is None else convert_to_text(labels.to_numpy()[mask])
    classes = () if text is None else tuple(np.unique(text).tolist())
    X = np.ascontiguousarray(SCALINGS[scaling](X))
    excluded = {column: text_or_none(entries.to_numpy()[mask]) for column, entries in others.items()}
    named = points[mask] if transpose else None
    return Table(X, names, text, classes, np.flatnonzero(mask), messages, excluded, categories, options, named)


def require_columns(frame: "pd.DataFrame", names: Sequence[str], purpose: str = "") -> None:
    """Raise DataError naming all columns that the table lacks."""
    if unknown := [name for name in names if name not in frame.columns]:
        what = f"column{'s' * (len(unknown) > 1)} {format_list(map(repr, unknown))}{purpose}"
        suggestion = did_you_mean(unknown[0], frame.columns)
        message = f"there is no {what}; the columns are {format_list(frame.columns)}{suggestion}"
        note = next((note for note in frame.attrs.get("notes", ()) if note.startswith("the first line")), "")
        if not note:
            raise DataError(message)
        other = "no" if "column names." in note else "yes"
        raise DataError(f"{message}. Note: {note}", remedies=("header",), columns=((other, "header"),))


def require_no_infinity(X: Array, names: tuple[str, ...]) -> None:
    """Raise DataError naming all columns with infinite values."""
    infinite = np.isinf(X)
    if not infinite.any():
        return
    wrong = [names[j] for j in np.flatnonzero(infinite.any(axis=0))]
    row = int(np.flatnonzero(infinite[:, names.index(wrong[0])])[0])
    more = f"; also infinite: {format_list(map(repr, wrong[1:]))}" if len(wrong) > 1 else ""
    raise drop_error(f"column {wrong[0]!r} is infinite in {format_row(row)}{more}. Correct or drop it", wrong, row)


def clean_missing(
    X: Array, names: tuple[str, ...], missing: str, unlabeled: np.ndarray | None = None, means: Array | None = None
) -> tuple[Array, np.ndarray, list[str]]:
    """Return X without missing values, the mask of selected rows, and notes on the changes.

    Rows without any value are dropped, and so are rows without a label unless missing = "error".  Missing values are
    replaced by ``means``, by default those of the columns.
    """
    is_missing = np.isnan(X)
    empty = is_missing.all(axis=1) & (X.shape[1] > 1) & (True if unlabeled is None else unlabeled)
    absent = is_missing if unlabeled is None else np.column_stack([is_missing, unlabeled])
    mask = ~empty if unlabeled is None else ~empty & ~unlabeled
    valueless = [names[j] for j in np.flatnonzero(is_missing[mask].all(axis=0))] if mask.any() and means is None else []
    if valueless:
        message = "columns {} have no values. Drop them" if len(valueless) > 1 else "column {} has no values. Drop it"
        raise drop_error(message.format(format_list(map(repr, valueless))), valueless)
    if missing == "error" and absent[~empty].any():
        raise missing_error(absent & ~empty[:, None], names)
    if missing == "drop":
        mask &= ~is_missing.any(axis=1)
    changes = []
    if not mask.all():
        changes.append(f"dropped {int((~mask).sum())} of {len(X)} rows with missing values")
    X, is_missing = X[mask], is_missing[mask]
    if count := int(is_missing.sum()):
        X = np.where(is_missing, np.nanmean(X, axis=0) if means is None else means, X)
        which = "column" if means is None else "training"
        changes.append(f"replaced {count} missing value{'s' * (count > 1)} by the {which} mean")
    return X, mask, changes


def missing_error(absent: np.ndarray, names: tuple[str, ...]) -> DataError:
    """Return the DataError that counts and locates the missing values of the features and, if given, the label."""
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
    text = convert_to_text(values).astype(object)
    text[pandas_or_error().isna(values)] = None
    return text


def convert_to_text(values: np.ndarray) -> np.ndarray:
    """Return labels as text, integers without a decimal point."""
    return np.array([str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in values.tolist()])


def read_frame(
    source: str | Path | bytes,
    name: str,
    reading: ReadOptions = AUTO_DETECT,
    ignored: Sequence[str] = (),
    drop: Sequence[str] = (),
) -> "pd.DataFrame":
    """Return the columns of a file as numbers, or as text trimmed on both sides with None for missing values.

    Columns that are ``ignored`` stay text and do not decide on marks.  If the table is transposed, points in ``drop``
    are dropped.  ``attrs`` has "notes", and may have "label", "first_line" and "dropped"; points are the index.
    """
    pandas = pandas_or_error()
    if not isinstance(source, bytes) and not Path(source).is_file():
        folder = Path(source).parent
        files = [file.name for file in folder.iterdir() if file.suffix in SUFFIXES] if folder.is_dir() else []
        raise DataError(f"{source} is not a file; looked in {Path.cwd()}{did_you_mean(Path(source).name, files)}")
    suffix = Path(name).suffix.lower()
    try:
        if suffix not in SUFFIXES:
            raise DataError(f"{name} has the unsupported extension {suffix!r}. Use one of {', '.join(SUFFIXES)}")
        content = source if isinstance(source, bytes) else Path(source).read_bytes()
        if suffix in UNPACKERS or suffix == ".zip":
            content, suffix = unpack(content, name, suffix)
        if suffix in (".npz", ".npy"):
            frame = arrays_frame(content, name)
        elif suffix == ".parquet":
            frame = parquet_frame(content, name)
        elif suffix == ".xlsx":
            frame = excel_frame(content, name, reading)
        elif suffix in (".libsvm", ".svm") or LIBSVM_LINE.fullmatch(content[:4096].split(b"\n")[0]):
            X, y = read_libsvm(decode(content, reading.encoding, name)[0], name)
            frame = pandas.DataFrame(X, columns=[f"x{j + 1}" for j in range(X.shape[1])]).assign(y=y)
            frame.attrs["label"] = "y"
        else:
            text, notes = decode(content, reading.encoding, name)
            frame = text_frame(text, name, reading)
            frame.attrs["notes"] = (*notes, *frame.attrs["notes"])
        if len(twice := frame.columns[frame.columns.duplicated()]):
            raise DataError(f"two columns are named {str(twice[0])!r}. Rename one of them")
        frame.attrs["notes"] = (*frame.attrs.get("notes", ()), *([] if reading.transpose else find_summary_rows(frame)))
        frame = transpose_frame(frame, drop) if reading.transpose else frame
        return read_numbers(frame, reading.mark, reading.na_values, ignored)
    except DataError as error:
        if str(error).startswith(name):
            raise
        raise DataError(f"{name} cannot be read: {error}") from None
    except ResourceError:
        raise
    except MemoryError:
        raise ResourceError(f"{name} does not fit in memory. Use a part of it") from None
    except ImportError as error:
        raise DataError(f"{name} needs {error.name}. Run pip install 'diffrac-cvx[app]', or save it as CSV") from None
    except Exception as error:  # file readers raise many kinds of errors on a damaged file
        message = " ".join(str(error).split()) or "unexpected end of file"
        raise DataError(f"{name} cannot be read as a {suffix} file: {message}") from None


def unpack(content: bytes, name: str, suffix: str) -> tuple[bytes, str]:
    """Return the unpacked bytes of a compressed file and the suffix of its content."""
    limit = int(min(available_memory() / MEMORY_COPIES, max(LARGE_ARCHIVE, MAX_COMPRESSION * len(content))))
    if suffix == ".zip":
        with zipfile.ZipFile(BytesIO(content)) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            if len(members) != 1:
                raise DataError(f"{name} contains {len(members)} files instead of one. Unpack it")
            name = members[0].filename
            with archive.open(members[0]) as file:
                unpacked = file.read(limit + 1)
    else:
        name = name[: -len(suffix)]
        with UNPACKERS[suffix](BytesIO(content)) as file:
            unpacked = file.read(limit + 1)
    if len(unpacked) > limit:
        raise ResourceError(f"{name} unpacks to more than {limit} bytes. Unpack it yourself, or use a part of it")
    return unpacked, Path(name).suffix.lower()


def transpose_frame(frame: "pd.DataFrame", drop: Sequence[str]) -> "pd.DataFrame":
    """Return the transposed table, named by its first column if unnamed, else by its first text column.

    Other text columns are excluded: they would be points with text in every feature.
    """
    pandas = pandas_or_error()
    dropped = [name for name in drop if name in frame.columns]
    texts = [name for name in text_columns(frame) if not is_mostly_numeric(frame[name])]
    named = frame.columns[0] if frame.attrs.get("is_unnamed") else next(iter(texts), None)
    if named is None:
        names, messages = [f"x{i + 1}" for i in range(len(frame))], list[str]()
    else:
        titles = frame[named].astype(object).where(frame[named].notna(), "")
        names, messages = name_columns([str(title).strip() for title in titles])
    values = frame.drop(columns=[*{*texts, *dropped, *([] if named is None else [named])}])
    points = list(map(str, values.columns))
    if not points:
        raise DataError("no column is numeric, so the transposed table would have no points")
    cells = values.to_numpy().T
    transposed = pandas.DataFrame(cells, points, names, dtype=cells.dtype)
    notes = [f"the table was transposed: {len(points)} points ({format_list(points)}), {len(names)} features"]
    if others := [name for name in texts if name not in (named, *dropped)]:
        notes.append(f"excluded text columns: {format_list(map(repr, others))}")
    transposed.attrs.update(frame.attrs, notes=(*frame.attrs["notes"], *notes, *messages), dropped=dropped)
    return transposed


def excel_frame(content: bytes, name: str, options: ReadOptions) -> "pd.DataFrame":
    """Return the columns of a sheet, read as the same cells in a comma-separated text."""
    import openpyxl

    with zipfile.ZipFile(BytesIO(content)) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())  # bounds what is read of each member
    if unpacked > max(LARGE_ARCHIVE, MAX_COMPRESSION * len(content)):
        raise DataError(f"{name} unpacks from {len(content)} to {unpacked} bytes: implausible. Save it as CSV")
    require_room(EXCEL_EXPANSION * unpacked, name)
    book = openpyxl.load_workbook(BytesIO(content), read_only=True, data_only=True)
    chosen = book.sheetnames[0] if options.sheet is None else options.sheet
    if chosen not in book.sheetnames:
        raise DataError(f"{name} has no sheet {chosen!r}; the sheets are {format_list(book.sheetnames)}")
    sheet, text = book[chosen], StringIO()
    sheet.reset_dimensions()  # else every row has the width of the sheet
    for row in sheet.iter_rows(values_only=True):
        last = next((j for j in range(len(row), 0, -1) if row[j - 1] is not None), 0)
        csv.writer(text).writerow(map(cell_text, row[:last]))
    frame = text_frame(text.getvalue(), name, replace(options, separator=","))
    if len(book.sheetnames) > 1 and options.sheet is None:
        note = f"{name} has {len(book.sheetnames)} sheets, and {chosen!r} was read"
        frame.attrs["notes"] = (note, *frame.attrs["notes"])
    return frame


def cell_text(cell: Any) -> str:
    """Return a cell as text; a number whose decimal point might separate thousands gets an exponent."""
    text = "" if cell is None else str(cell)
    return f"{text}e0" if isinstance(cell, float) and POINT_AND_THREE_DIGITS.fullmatch(text) else text


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
    names = list(map(str, arrays.get("feature_names", [f"x{j + 1}" for j in range(X.shape[1])])))
    frame = pandas.DataFrame(X, columns=names)
    if "y" in arrays:
        frame.insert(len(names), "y", arrays["y"], allow_duplicates=True)
        frame.attrs["label"] = "y"
    return frame


def parquet_frame(content: bytes, name: str) -> "pd.DataFrame":
    """Return the columns of a Parquet file; text that is not UTF-8 is read as cp1252."""
    import pyarrow
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(BytesIO(content))
    require_room(8.0 * file.metadata.num_rows * file.metadata.num_columns, name)
    table, notes = file.read(), []
    for j, column in enumerate(table.column_names):
        try:
            table.column(j).validate(full=True)
        except pyarrow.ArrowInvalid:
            entries = table.column(j).cast("binary").to_pylist()
            texts = [None if entry is None else entry.decode("cp1252", "replace") for entry in entries]
            table = table.set_column(j, column, pyarrow.array(texts))
            notes.append(f"column {column!r} is not UTF-8 text and was read as cp1252")
    frame = table.to_pandas()
    frame.columns = frame.columns.map(str)
    frame.attrs["notes"] = tuple(notes)
    return frame


def require_room(unpacked: float, name: str) -> None:
    """Raise ResourceError if the columns, their frame, the matrix and its scaled copy would not fit in memory."""
    require_memory(MEMORY_COPIES * unpacked, f"{name}, unpacked,", "use a part of it")
