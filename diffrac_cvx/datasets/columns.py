"""Columns of a table as numbers: marks of thousands, categories as columns of 0 and 1, and what cannot be one."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from diffrac_cvx.datasets.headers import MARKS
from diffrac_cvx.datasets.optional import pandas_or_error
from diffrac_cvx.errors import DataError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"  # instead of names of columns: every column of categories
MOST_CATEGORIES = 50  # of a column that is made into columns of 0 and 1
MOST_MADE = 10_000  # columns of 0 and 1, of all columns
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
    parts: list[Array | Categories] = []
    names: list[str] = []
    wrong: list[Unusable] = []
    chosen = frozenset() if one_hot == ALL else frozenset(one_hot)
    for position, name in enumerate(map(str, frame.columns)):
        column = frame.iloc[:, position]
        numbers, text = split_numbers(column, decimal)
        found = judge(name, column, numbers, text) if text.any() else None
        if name in chosen or (found is not None and found.kind == "categories" and one_hot == ALL):
            made = find_categories(name, column)
            parts.append(made)
            names += made.names
        elif found is not None:
            wrong.append(found)
        else:
            parts.append(numbers)
            names.append(name)
    if wrong:
        raise unusable_error(wrong)
    made_of = [part for part in parts if isinstance(part, Categories)]
    require_moderate_number(made_of, len(frame))
    X = np.column_stack([part.columns() if isinstance(part, Categories) else part for part in parts])
    return pandas.DataFrame(X, columns=names, index=frame.index), describe_categories(made_of)


@dataclass(frozen=True)
class Categories:
    """A column of categories, and the columns of 0 and 1 that it becomes.

    Attributes
    ----------
    name : str
        Of the column.
    values : tuple of str
        The categories that get a column: all, or the second of two.
    places : (n,) array of int
        Where the category of each row is among the values; -1 where it has no column.
    missing : (n,) array of bool
        Where there is none.
    """

    name: str
    values: tuple[str, ...]
    places: np.ndarray
    missing: np.ndarray

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [f"{self.name}={value}" for value in self.values]

    def columns(self) -> Array:
        """Return the columns of 0 and 1, shape (n, number of values); NaN where the category is missing."""
        made = (self.places[:, None] == np.arange(len(self.values))).astype(float)
        made[self.missing] = np.nan
        return np.asarray(made)


def require_moderate_number(made: Sequence[Categories], n: int) -> None:
    """Raise unless the columns of 0 and 1 are not absurdly many, and fit in memory.

    Raises
    ------
    DataError
        If they are more than 10 000.
    ResourceError
        If they would not fit in memory.
    """
    count = sum(len(one.values) for one in made)
    if count > MOST_MADE:
        raise DataError(
            f"{len(made)} columns of categories would become {count} columns of 0 and 1, and at most {MOST_MADE} can "
            "be clustered on: drop some, or turn only those into columns of 0 and 1 that matter"
        )
    require_memory(2.0 * 8.0 * n * count, f"{count} columns of 0 and 1", "turn fewer columns into such")


def describe_categories(made: Sequence[Categories]) -> tuple[str, ...]:
    """Return what became of the columns of categories, in a sentence for each, or in one where they are many."""
    if len(made) > MOST_NAMES:
        total = sum(len(one.values) for one in made)
        return (f"the categories of {len(made)} columns became {total} columns of 0 and 1",)
    return tuple(f"the categories of {one.name!r} became {len(one.values)} columns of 0 and 1" for one in made)


def split_numbers(column: "pd.Series", decimal: str) -> tuple[Array, np.ndarray]:
    """Return a column as numbers, NaN where there are none, and where it holds something else."""
    if column.dtype.kind in "biuf":
        try:
            return column.to_numpy(dtype=float, na_value=np.nan), np.zeros(len(column), dtype=bool)
        except (TypeError, ValueError):
            pass
    read = number_reader(decimal)
    values = objects_of(column)
    numbers = np.array([read(value) for value in values])
    return numbers, np.isnan(numbers) & ~missing_values(values)


def objects_of(column: "pd.Series") -> np.ndarray:
    """Return the entries of a column as they are, shape (n,), without pandas, which takes long to begin."""
    return np.asarray(column.array, dtype=object)


def missing_values(values: np.ndarray) -> np.ndarray:
    """Return which entries are missing, or are texts that stand for a missing one."""
    return np.asarray(pandas_or_error().isna(values) | missing_texts(values))


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


def missing_texts(values: np.ndarray) -> np.ndarray:
    """Return which entries are texts that stand for a missing one."""
    return np.array([isinstance(value, str) and value.strip() in MARKS for value in values], dtype=bool)


def judge(name: str, column: "pd.Series", numbers: Array, text: np.ndarray) -> Unusable:
    """Return what a column holds that has text in it."""
    values = [str(value).strip() for value in objects_of(column)[text]]
    different = list(dict.fromkeys(values))
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


def find_categories(name: str, column: "pd.Series") -> Categories:
    """Return the categories of a column, one of which is left out where there are two.

    Raises
    ------
    DataError
        If there are more than 50 categories, or fewer than two.
    """
    pandas = pandas_or_error()
    numeric = pandas.api.types.is_numeric_dtype(column)
    entries = objects_of(column)
    missing = np.asarray(pandas.isna(entries))
    texts = [f"{entry:g}" if numeric else str(entry).strip() for entry in entries[~missing]]
    different = sorted(set(texts), key=float if numeric else str)
    if not 2 <= len(different) <= MOST_CATEGORIES:
        raise DataError(
            f"column {name!r} has {len(different)} different values, and from 2 to {MOST_CATEGORIES} can become "
            "columns of 0 and 1: drop it",
            column=name, remedies=("drop",), columns=((name, "drop"),),
        )  # fmt: skip
    kept = different[1:] if len(different) == 2 else different
    known, places = {value: place for place, value in enumerate(kept)}, np.full(len(entries), -1)
    places[~missing] = [known.get(text, -1) for text in texts]
    return Categories(name, tuple(kept), places, missing)


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
