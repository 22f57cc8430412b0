"""A user's own table: a file in; a matrix of numbers, labels and names out, or an error that says what to do."""

import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diffrac_cvx.datasets.real import SCALINGS
from diffrac_cvx.errors import DataError, ResourceError
from diffrac_cvx.inputs import Array, one_of
from diffrac_cvx.memory import require_memory

if TYPE_CHECKING:
    import pandas as pd

MISSING = ("error", "drop", "mean")
SUFFIXES = (".csv", ".tsv", ".txt", ".npz", ".npy", ".parquet")
MARKS = ["", "?", "NA", "N/A", "na", "n/a", "NaN", "nan", "null", "NULL", "None", "none", "-"]  # a missing value
NOT_NUMBERS = {"c": "complex numbers", "m": "durations", "M": "dates"}  # by the kind of NumPy's type
MOST_NAMES = 12  # that a message lists
COPIES = 4  # of a table in memory while it is read


@dataclass(frozen=True, eq=False)
class Table:
    """Features, and labels where there are any.

    Attributes
    ----------
    X : (n, d) array
        Features, all finite.
    names : tuple of str
        Names of the features.
    labels : (n,) array of str or None
        The label of each point, as text.
    classes : tuple of str
        The different labels, in order.
    rows : (n,) array of int
        Numbers of the kept rows in the file, the first row of data being 0.
    notes : tuple of str
        What was done to the table, in sentences.
    """

    X: Array
    names: tuple[str, ...]
    labels: np.ndarray | None
    classes: tuple[str, ...]
    rows: np.ndarray
    notes: tuple[str, ...] = ()

    @property
    def y(self) -> Array | None:
        """Labels in {-1, +1}, the second class being +1; None unless there are exactly two classes."""
        if self.labels is None or len(self.classes) != 2:
            return None
        return np.where(self.labels == self.classes[1], 1.0, -1.0)


def read_table(
    source: str | Path | bytes,
    label: str | None = None,
    *,
    drop: Sequence[str] = (),
    missing: str = "error",
    scaling: str = "none",
    name: str = "",
) -> Table:
    """Read a table of features, one point a row.

    Parameters
    ----------
    source : str, Path or bytes
        A file .csv, .tsv, .txt (any separator), .npz (X and perhaps y), .npy or .parquet; or the bytes of one.
    label : str, optional
        The column with the labels, of numbers or text.  In an npz file, "y" by default if it is there.
    drop : sequence of str
        Columns to leave out, such as numbers of samples.
    missing : {"error", "drop", "mean"}
        What to do about missing values: raise an error, drop the rows, or take the column's mean.
    scaling : {"none", "standardise", "min-max"}
        That of the features, as in `load`.
    name : str
        The name of the file where bytes are given; its ending says what they are.

    Raises
    ------
    ParameterError
        If ``missing`` or ``scaling`` is none of the three.
    DataError
        If the file cannot be read as a table of numbers; the message names the column and the row, and the remedy.
    ResourceError
        If what it holds, unpacked, would not fit in memory.
    """
    one_of(missing, "missing", MISSING)
    one_of(scaling, "scaling", SCALINGS)
    labels, frame = split_label(read_frame(source, name or str(source)), label)
    unknown = [column for column in drop if column not in frame.columns]
    if unknown:
        raise DataError(f"there is no column {unknown[0]!r} to drop; the columns are {list_names(frame.columns)}")
    frame = frame.drop(columns=list(drop))
    if frame.shape[1] == 0:
        raise DataError("no column is left to cluster on")
    names = tuple(map(str, frame.columns))
    X = convert_to_numbers(frame)
    infinite = np.argwhere(np.isinf(X))
    if len(infinite):
        row, column = infinite[0]
        raise DataError(f"column {names[column]!r} is infinite in {tell_row(row)}", column=names[column], row=int(row))
    notes = [
        f"column {names[j]!r} numbers the rows, and is used as a feature: drop it if it is not one"
        for j in np.flatnonzero(np.all(np.diff(X, axis=0) == 1.0, axis=0) & (len(X) > 2))
    ]
    unlabelled = np.zeros(len(X), dtype=bool) if labels is None else labels.isna().to_numpy()
    X, keep, changes = clean_missing(X, names, unlabelled, missing)
    if len(X) < 2:
        raise DataError(f"{len(X)} rows are left, and clustering needs at least two")
    text = None if labels is None else convert_to_text(labels.to_numpy()[keep])
    classes = () if text is None else tuple(np.unique(text).tolist())
    X = np.ascontiguousarray(SCALINGS[scaling](X))
    return Table(X, names, text, classes, np.flatnonzero(keep), (*changes, *notes))


def split_label(frame: "pd.DataFrame", label: str | None) -> tuple["pd.Series | None", "pd.DataFrame"]:
    """Return the column of labels, if there is one, and the others."""
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise DataError(f"two columns are called {str(twice[0])!r}; give each a name of its own")
    label = label if label is not None else frame.attrs.get("label")
    if label is None:
        return None, frame
    if label not in frame.columns:
        raise DataError(f"there is no column {label!r}; the columns are {list_names(frame.columns)}")
    return frame[label], frame.drop(columns=[label])


def convert_to_numbers(frame: "pd.DataFrame") -> Array:
    """Return the columns as numbers, NaN where a value is missing; raise an error that names the text."""
    pandas = pandas_or_error()
    columns = []
    for column in frame.columns:
        held = NOT_NUMBERS.get(frame[column].dtype.kind)
        if held is not None:
            raise DataError(
                f"column {str(column)!r} holds {held}: drop it or encode it as numbers",
                column=str(column), remedies=("drop",),
            )  # fmt: skip
        values = pandas.to_numeric(frame[column], errors="coerce").astype(float)
        wrong = np.flatnonzero(values.isna() & frame[column].notna())
        if len(wrong):
            row = int(wrong[0])
            more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            raise DataError(
                f"column {str(column)!r} holds text, {str(frame[column].iloc[row])!r} in {tell_row(row)}{more}: if it "
                "is the label, name it as the label; otherwise drop it or encode it as numbers",
                column=str(column), row=row, remedies=("label", "drop"),
            )  # fmt: skip
        columns.append(values.to_numpy())
    return np.column_stack(columns)


def clean_missing(
    X: Array, names: tuple[str, ...], unlabelled: np.ndarray, missing: str
) -> tuple[Array, np.ndarray, list[str]]:
    """Return X without missing values, the rows that are kept, and what was done; a row without a label is dropped."""
    lacking = np.isnan(X)
    if missing == "error" and (lacking.any() or unlabelled.any()):
        raise missing_error(lacking, unlabelled, names)
    keep = ~unlabelled & ~lacking.any(axis=1) if missing == "drop" else ~unlabelled
    changes = []
    if not keep.all():
        changes.append(f"{int((~keep).sum())} of {len(X)} rows with missing values were dropped")
    X, lacking = X[keep], lacking[keep]
    if lacking.any():
        if lacking.all(axis=0).any():
            column = names[int(np.flatnonzero(lacking.all(axis=0))[0])]
            raise DataError(f"column {column!r} has no value at all: drop it", column=column, remedies=("drop",))
        X = np.where(lacking, np.nanmean(X, axis=0), X)
        changes.append(f"{int(lacking.sum())} missing values were replaced by the means of their columns")
    return X, keep, changes


def missing_error(lacking: np.ndarray, unlabelled: np.ndarray, names: tuple[str, ...]) -> DataError:
    """Return the error that says where values are missing, and what can be done."""
    absent = np.column_stack([lacking, unlabelled])
    titles = [*(f"column {name!r}" for name in names), "the label"]
    counts = [f"{titles[j]} ({int(absent[:, j].sum())})" for j in np.flatnonzero(absent.any(axis=0))]
    row, column = (int(place) for place in np.argwhere(absent)[0])
    return DataError(
        f"values are missing in {int(absent.any(axis=1).sum())} of {len(absent)} rows: "
        f"{', '.join(counts[:5])}{', ...' if len(counts) > 5 else ''}; the first missing value is in {tell_row(row)}, "
        f"{titles[column]}: drop these rows or put the column's mean in their place",
        column=names[column] if column < len(names) else None, row=row, remedies=("missing",),
    )  # fmt: skip


def tell_row(row: int) -> str:
    """Return a row as messages name it."""
    return f"row {row} of the data (the first is row 0)"


def convert_to_text(values: np.ndarray) -> np.ndarray:
    """Return labels as text; whole numbers lose their decimal point."""
    return np.array([str(int(v)) if isinstance(v, float) and v.is_integer() else str(v) for v in values.tolist()])


def read_frame(source: str | Path | bytes, name: str) -> "pd.DataFrame":
    """Return the columns of a file as they are in it."""
    pandas_or_error()
    if not isinstance(source, bytes) and not Path(source).is_file():
        raise DataError(f"{source} is not a file; looked in {Path.cwd()}")
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"{name} ends in {suffix!r}; files that end in {', '.join(SUFFIXES)} can be read")
    try:
        content = source if isinstance(source, bytes) else Path(source).read_bytes()
        if suffix in (".npz", ".npy"):
            return arrays_frame(content, name)
        if suffix == ".parquet":
            return parquet_frame(content, name)
        return text_frame(content, name)
    except (DataError, ResourceError):
        raise
    except MemoryError:
        raise ResourceError(f"{name} does not fit in memory: take a part of it") from None
    except ImportError:
        raise DataError("Parquet files need pyarrow: pip install pyarrow, or save the table as CSV") from None
    except Exception as error:  # readers of formats raise errors of many kinds on a damaged file
        says = " ".join(str(error).split()) or "it ends too early"
        raise DataError(f"{name} cannot be read as a {suffix} file: {says}") from None


def text_frame(content: bytes, name: str) -> "pd.DataFrame":
    """Return the columns of a text with separators; without a header they are called x1, x2, and so on."""
    pandas = pandas_or_error()
    if not content.strip():
        raise DataError(f"{name} is empty")
    if b"\x00" in content:
        raise DataError(f"{name} is not text in UTF-8: it holds zero bytes, as text in UTF-16 and binary files do")
    options: dict[str, Any] = {"na_values": MARKS, "keep_default_na": False, "skipinitialspace": True}
    options |= {"sep": separator(content), "encoding_errors": "replace"}
    frame = pandas.read_csv(BytesIO(content), **options)
    if not isinstance(frame.index, pandas.RangeIndex):
        raise DataError(f"{name}: the rows have more values than the header has names")
    if has_no_header(frame):
        frame = pandas.read_csv(BytesIO(content), header=None, **options)
        frame.columns = pandas.Index([f"x{j + 1}" for j in range(frame.shape[1])])
    return frame


def separator(content: bytes) -> str:
    """Return what separates the values: the mark that is most often in the first line, or white space."""
    head = content.lstrip().split(b"\n", 1)[0].decode(errors="replace")
    mark = max((",", ";", "\t"), key=head.count)
    return mark if mark in head else r"\s+" if " " in head.strip() else ","


def arrays_frame(content: bytes, name: str) -> "pd.DataFrame":
    """Return NumPy's arrays as columns: X, and y as a column of that name."""
    pandas = pandas_or_error()
    if zipfile.is_zipfile(BytesIO(content)):
        with zipfile.ZipFile(BytesIO(content)) as archive:
            require_room(sum(member.file_size for member in archive.infolist()), name)
    loaded = np.load(BytesIO(content), allow_pickle=False)
    arrays = {"X": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    X = arrays.get("X")
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        raise DataError(f"{name} must hold a two-dimensional array X; it holds {list_names(arrays)}")
    names = [str(found) for found in arrays.get("feature_names", [f"x{j + 1}" for j in range(X.shape[1])])]
    if len(names) != X.shape[1]:
        raise DataError(f"{name} holds {len(names)} feature names for {X.shape[1]} features")
    frame = pandas.DataFrame(X, columns=names)
    if "y" in arrays:
        y = arrays["y"]
        if y.shape != (len(X),):
            raise DataError(f"y in {name} has shape {y.shape}; for {len(X)} points it must be ({len(X)},)")
        if "y" in names:
            raise DataError(f"{name} holds labels y, and a feature of that name: rename the feature")
        frame["y"] = y
        frame.attrs["label"] = "y"
    return frame


def parquet_frame(content: bytes, name: str) -> "pd.DataFrame":
    """Return the columns of a Parquet file."""
    from pyarrow.parquet import ParquetFile

    size = ParquetFile(BytesIO(content)).metadata
    require_room(8.0 * size.num_rows * size.num_columns, name)
    return pandas_or_error().read_parquet(BytesIO(content), engine="pyarrow")


def require_room(unpacked: float, name: str) -> None:
    """Refuse a file of which a few kilobytes may stand for more than the memory holds.

    Raises
    ------
    ResourceError
        If its columns, the frame of them, the matrix and its scaled copy would not fit.
    """
    require_memory(COPIES * unpacked, f"{name}, unpacked,", "take a part of it")


def pandas_or_error() -> Any:
    """Return pandas, or raise an error that says how to install it."""
    try:
        import pandas
    except ImportError:
        raise DataError("a table needs pandas: pip install 'diffrac-cvx[app]'") from None
    return pandas


def has_no_header(frame: "pd.DataFrame") -> bool:
    """Whether the first line looks like the others: numbers above columns of numbers, and text above text."""
    kinds = [is_number(name) for name in frame.columns]
    return any(kinds) and kinds == [column.dtype.kind in "iuf" for _, column in frame.items()]


def is_number(text: object) -> bool:
    """Whether a text is a number."""
    try:
        float(str(text))
    except ValueError:
        return False
    return True


def list_names(names: Iterable[object]) -> str:
    """Return the first names as text."""
    texts = list(map(str, names))
    return ", ".join(texts[:MOST_NAMES]) + (", ..." if len(texts) > MOST_NAMES else "")
