"""Files of tables: CSV with whatever separator, NumPy's archives, Parquet."""

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from diffrac_cvx.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".tsv", ".txt", ".npz", ".npy", ".parquet")
MARKS = ["", "?", "NA", "N/A", "na", "n/a", "NaN", "nan", "null", "NULL", "None", "none", "-"]  # a missing value


def read_frame(source: str | Path | bytes, name: str) -> "pd.DataFrame":
    """Return the columns of a file as they stand in it."""
    pandas = pandas_or_error()
    if not isinstance(source, bytes) and not Path(source).is_file():
        raise DataError(f"{source} is not a file; looked in {Path.cwd()}")
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"{name} ends in {suffix!r}; files that end in {', '.join(SUFFIXES)} can be read")
    if not isinstance(source, bytes):
        source = Path(source).read_bytes()
    try:
        if suffix in (".npz", ".npy"):
            return arrays_frame(source, name)
        if suffix == ".parquet":
            return pandas.read_parquet(BytesIO(source))
        return text_frame(source, name)
    except ImportError:
        raise DataError("Parquet files need pyarrow: pip install pyarrow, or save the table as CSV") from None
    except (ValueError, OSError, KeyError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name} cannot be read as a {suffix} file: {str(error).strip()}") from None


def text_frame(content: bytes, name: str) -> "pd.DataFrame":
    """Return the columns of a text with separators; without a header they are called x1, x2, and so on."""
    pandas = pandas_or_error()
    if not content.strip():
        raise DataError(f"{name} is empty")
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
    loaded = np.load(BytesIO(content), allow_pickle=False)
    arrays = {"X": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    if "X" not in arrays or arrays["X"].ndim != 2:
        raise DataError(f"{name} must hold a two-dimensional array X; it holds {listed(arrays)}")
    X = arrays["X"]
    names = [str(found) for found in arrays.get("feature_names", [f"x{j + 1}" for j in range(X.shape[1])])]
    frame = pandas.DataFrame(X, columns=names)
    if "y" in arrays and arrays["y"].shape == (len(X),):
        frame["y"] = arrays["y"]
        frame.attrs["label"] = "y"
    return frame


def pandas_or_error() -> Any:
    """Return pandas, or say how to get it."""
    try:
        import pandas
    except ImportError:
        raise DataError("a table needs pandas: pip install 'diffrac-cvx[app]'") from None
    return pandas


def has_no_header(frame: "pd.DataFrame") -> bool:
    """Whether the first line reads like the others: numbers above columns of numbers, and text above text."""
    kinds = [is_number(name) for name in frame.columns]
    return any(kinds) and kinds == [column.dtype.kind in "iuf" for _, column in frame.items()]


def is_number(text: object) -> bool:
    """Whether a text is a number."""
    try:
        float(str(text))
    except ValueError:
        return False
    return True


def listed(names: Any) -> str:
    """Return the first names as text."""
    shown = [str(found) for found in list(names)[:12]]
    return ", ".join(shown) + (", ..." if len(list(names)) > 12 else "")
