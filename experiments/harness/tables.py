"""Tables on disk, written atomically."""

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from diffrac_cvx.errors import DataError
from diffrac_cvx.machine.writing import atomic_file, escape_formula

DIGITS = 9  # significant digits in a table; few enough to be unaffected by rounding errors
PROVED = {  # rounding of columns with such a word in their name: certified bounds are rounded outwards
    "lower": ROUND_FLOOR, **dict.fromkeys(("upper", "gap", "value", "objective", "cost"), ROUND_CEILING),
}  # fmt: skip


def read_table(path: Path) -> pd.DataFrame:
    """Return a table.

    Raises
    ------
    DataError
        If the file cannot be read or is not a table.
    """
    try:
        return pd.read_csv(path, low_memory=False)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).") from None
    except ValueError as error:  # from the parser or the decoder of pandas
        raise DataError(f"{path} is not a table ({str(error).strip()}). Delete it and measure again.") from None


def split_parts(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the table of each part with its own columns; restore integer columns."""
    found = {}
    for name, part in table.groupby("part"):
        part = part.dropna(axis=1, how="all")
        whole = [name for name, values in part.items() if values.dtype == float and (values == values.round()).all()]
        found[str(name)] = part.astype(dict.fromkeys(whole, int)).reset_index(drop=True)
    return found


def format_table(table: pd.DataFrame) -> str:
    """Return a table as CSV; text that a spreadsheet would read as a formula is marked as text.

    Certified numbers are rounded to remain valid bounds; rounding a number read from such a table changes nothing.
    """

    def column_of(column: pd.Series) -> pd.Series:
        words = re.split("[ _]", str(column.name))
        rounding = next((PROVED[word] for word in words if word in PROVED), ROUND_HALF_EVEN)
        return column.map(lambda entry: entry_of(entry, rounding))

    text: str = table.apply(column_of).rename(columns=escape_formula).to_csv(index=False, lineterminator="\n")
    return text


def entry_of(entry: Any, rounding: str) -> Any:
    """Return an entry as written to the file."""
    if isinstance(entry, str):  # pandas does not quote a carriage return, which would end the row
        return escape_formula(entry.replace("\r", "\n"))
    if not isinstance(entry, float) or not np.isfinite(entry):
        return entry
    written = Decimal(repr(float(entry)))  # the shortest that parses to the number
    return float(written.quantize(Decimal((0, (1,), written.adjusted() - DIGITS + 1)), rounding))


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table atomically: a reader sees the old or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as part:
        part.write_text(format_table(table), encoding="utf-8", newline="")
