"""Columns of a table as numbers: marks of thousands, categories as columns of 0 and 1, and what cannot be one."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from diffrac_cvx.datasets.headers import MARKS
from diffrac_cvx.datasets.optional import pandas_or_error
from diffrac_cvx.errors import DataError
from diffrac_cvx.inputs import Array

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"  # instead of names of columns: every column of categories
MOST_CATEGORIES = 50  # of a column that is made into columns of 0 and 1
MOST_NAMES = 12  # that a message lists
SHOWN = 3  # values that a message shows
DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T]\d{1,2}:\d{2}.*)?")
THOUSANDS = {mark: rf"[{other}'\u2019 \u00a0\u202f]" for mark, other in ((".", ","), (",", "."))}  # by decimal mark
GROUPS = {mark: re.compile(rf"[+-]?\d{{1,3}}({between}\d{{3}})+([{mark}]\d*)?") for mark, between in THOUSANDS.items()}
TYPES = {"c": "complex numbers", "m": "durations", "M": "dates"}  # by the kind of NumPy's type
PLAIN = {
    ".": re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?inf"),
    ",": re.compile(r"[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?|[+-]?inf"),
}


@dataclass(frozen=True)
class Unusable:
    """A column that holds no numbers.

    Attributes
    ----------
    name : str
        Of the column.
    kind : str
        "dates", "durations", "complex numbers", "categories" (text that repeats), "names" (text that does not) or
        "some text" (and numbers).
    values : tuple of str
        The first different texts.
    count : int
        How many entries are text.
    row : int
        The first of them.
    """

    name: str
    kind: str
    values: tuple[str, ...]
    count: int
    row: int

    @property
    def remedy(self) -> str:
        """What to do with the column: "one_hot" or "drop"."""
        return "one_hot" if self.kind == "categories" else "drop"

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self.values[:SHOWN]))
        if self.kind == "some text":
            return f"{self.name!r} (numbers, and text in {self.count} rows: {shown})"
        words = "text" if self.kind == "names" else self.kind
        return f"{self.name!r} ({words}: {shown}{', ...' if len(self.values) > SHOWN else ''})"


def numeric_columns(
    frame: "pd.DataFrame", decimal: str = ".", one_hot: Sequence[str] | str = ()
) -> tuple["pd.DataFrame", tuple[str, ...]]:
    """Return a table with every column as numbers, NaN where a value is missing, and what was done.

    Parameters
    ----------
    frame : DataFrame
        Columns of numbers, or of text.
    decimal : {".", ","}
        The decimal mark of the text.
    one_hot : sequence of str, or "all"
        Columns of categories, which become a column of 0 and 1 for each category, or one column where there are two.

    Raises
    ------
    DataError
        If a column holds text or dates; the message names all such columns.
    """
    pandas = pandas_or_error()
    parts: list[Any] = []
    wrong: list[Unusable] = []
    notes = []
    for name in map(str, frame.columns):
        column = frame[name]
        asked = one_hot != ALL and name in one_hot
        numbers, text = split_numbers(column, decimal)
        found = judge(name, column, numbers, text) if text.any() else None
        if asked or (found is not None and found.kind == "categories" and one_hot == ALL):
            made = categories(name, column)
            parts.append(made)
            notes.append(f"the categories of {name!r} became {made.shape[1]} columns of 0 and 1")
        elif found is not None:
            wrong.append(found)
        else:
            parts.append(pandas.Series(numbers, name=name, index=frame.index))
    if wrong:
        raise unusable_error(wrong)
    return pandas.concat(parts, axis=1), tuple(notes)


def split_numbers(column: "pd.Series", decimal: str) -> tuple[Array, np.ndarray]:
    """Return a column as numbers, NaN where there are none, and where it holds something else."""
    if column.dtype.kind in "biuf":
        try:
            return column.to_numpy(dtype=float, na_value=np.nan), np.zeros(len(column), dtype=bool)
        except (TypeError, ValueError):
            pass
    read = number_reader(decimal)
    values = column.astype(object).to_list()
    numbers = np.array([read(value) for value in values])
    return numbers, np.isnan(numbers) & column.notna().to_numpy() & ~missing_texts(values)


def number_reader(decimal: str) -> Callable[[Any], float]:
    """Return the function from a value to a number, NaN where it is none."""

    def read(value: Any) -> float:
        if not isinstance(value, str):
            try:
                return np.nan if isinstance(value, complex) else float(value)
            except (TypeError, ValueError):
                return np.nan
        text = value.strip().replace("\u2212", "-")
        if GROUPS[decimal].fullmatch(text):
            text = re.sub(THOUSANDS[decimal], "", text)
        return float(text.replace(",", ".")) if PLAIN[decimal].fullmatch(text) else np.nan

    return read


def missing_texts(values: Sequence[Any]) -> np.ndarray:
    """Return which values are texts that stand for a missing one."""
    return np.array([isinstance(value, str) and value.strip() in MARKS for value in values], dtype=bool)


def judge(name: str, column: "pd.Series", numbers: Array, text: np.ndarray) -> Unusable:
    """Return what a column holds that has text in it."""
    values = column[text].astype(str).str.strip()
    different = values.unique().tolist()
    if column.dtype.kind in TYPES:
        kind = TYPES[column.dtype.kind]
    elif 10 * sum(map(bool, map(DATE.fullmatch, values))) >= 9 * len(values):
        kind = "dates"
    elif int(np.isfinite(numbers).sum()) > len(values):
        kind = "some text"
    elif len(different) <= MOST_CATEGORIES and len(different) <= max(2, len(values) // 2):
        kind = "categories"
    else:
        kind = "names"
    return Unusable(name, kind, tuple(different[: SHOWN + 1]), len(values), int(np.flatnonzero(text)[0]))


def categories(name: str, column: "pd.Series") -> "pd.DataFrame":
    """Return a column of 0 and 1 for each category, "name=category", but one where there are two; NaN stays missing.

    Raises
    ------
    DataError
        If there are more than 50 categories, or fewer than two.
    """
    pandas = pandas_or_error()
    present = column.dropna()
    numbers = pandas.api.types.is_numeric_dtype(present)
    text = present.map(lambda value: f"{value:g}") if numbers else present.astype(str).str.strip()
    different = sorted(text.unique(), key=float if numbers else str)
    if not 2 <= len(different) <= MOST_CATEGORIES:
        raise DataError(
            f"column {name!r} has {len(different)} different values, and from 2 to {MOST_CATEGORIES} can become "
            "columns of 0 and 1: drop it",
            column=name, remedies=("drop",), columns=((name, "drop"),),
        )  # fmt: skip
    kept = different[1:] if len(different) == 2 else different
    made = pandas.DataFrame({f"{name}={value}": (text == value).astype(float) for value in kept})
    return made.reindex(column.index)


def unusable_error(wrong: Sequence[Unusable]) -> DataError:
    """Return the error that names all columns that hold no numbers, and what can be done."""
    first = wrong[0]
    if len(wrong) == 1:
        what = {"some text": "text among numbers", "names": "text", "categories": "text"}.get(first.kind, first.kind)
        more = f" and {first.count - 1} more" if first.count > 1 else ""
        said = f"column {first.name!r} holds {what}, {first.values[0]!r} in {tell_row(first.row)}{more}"
    else:
        said = f"{len(wrong)} columns do not hold numbers: {list_texts(map(str, wrong))}"
    kinds = {one.kind for one in wrong}
    ways = ["if it is the label, name it as the label" if len(wrong) == 1 else "name the label, if one is the label"]
    ways += ["turn categories into columns of 0 and 1"] if kinds & {"categories", "names"} else []
    ways += ["correct the text"] if "some text" in kinds else []
    columns = tuple((one.name, one.remedy) for one in wrong)
    likely = [one.name for one in wrong if one.kind == "categories"]
    if len(likely) == 1:
        columns = tuple((name, "label" if name in likely else remedy) for name, remedy in columns)
    return DataError(
        f"{said}: {'; '.join(ways)}; or drop {'it' if len(wrong) == 1 else 'them'}",
        column=first.name, row=first.row, remedies=("label", "one_hot", "drop"), columns=columns,
    )  # fmt: skip


def tell_row(row: int) -> str:
    """Return a row as messages name it."""
    return f"row {row} of the data (the first is row 0)"


def list_texts(texts: Any) -> str:
    """Return the first of some texts, and how many there are more."""
    every = list(texts)
    more = f" and {len(every) - MOST_NAMES} more" if len(every) > MOST_NAMES else ""
    return ", ".join(every[:MOST_NAMES]) + more
