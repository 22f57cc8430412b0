"""Columns of a table as numbers: marks of thousands, categories as columns of 0 and 1, and what cannot be one."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from diffrac_cvx.datasets.outcomes import MOST_CLASSES, outcome_rank
from diffrac_cvx.errors import DataError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array

if TYPE_CHECKING:
    import pandas as pd

MARKS = [  # of a missing value
    "", "?", "NA", "N/A", "na", "n/a", "NaN", "nan", "null", "NULL", "None", "none", "-", "--", ".", "<NA>", "n.a.",
    "N.A.", "#N/A", "#NA", "missing", "Missing",
]  # fmt: skip
ALL = "all"  # instead of names of columns: every column of categories
MOST_CATEGORIES = 50  # of a column that is made into columns of 0 and 1
MOST_MADE = 10_000  # columns of 0 and 1, of all columns
MOST_NAMES = 12  # that a message lists
SHOWN = 3  # values that a message shows
DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T]\d{1,2}:\d{2}.*)?")
THOUSANDS = {mark: rf"[{other}'\u2019 \u00a0\u202f]" for mark, other in ((".", ","), (",", "."))}  # by decimal mark
GROUPS = {mark: re.compile(rf"[+-]?\d{{1,3}}({between}\d{{3}})+([{mark}]\d*)?") for mark, between in THOUSANDS.items()}
TYPES = {"c": "complex numbers", "m": "durations", "M": "dates"}  # by the kind of NumPy's type
PLAIN = {mark: re.compile(rf"[+-]?(\d+([{mark}]\d*)?|[{mark}]\d+)([eE][+-]?\d+)?|[+-]?inf") for mark in ".,"}


UNIT = re.compile(  # a sign of money or of shares, or a unit after a space
    r"([€$£¥]?)\s?([-+\u2212]?\d(?:[\d.,'\u2019 \u00a0\u202f]*\d)?(?:[eE][+-]?\d+)?)"
    r"(\s?[€$£¥%‰]?|\s?°[CFK]?|\s[^\W\d_][^\s\d]{0,9})"
)


def pandas_or_error() -> Any:
    """Return pandas, or raise an error that says how to install it."""
    try:
        import pandas
    except ImportError:
        raise DataError("a table needs pandas: pip install 'diffrac-cvx[app]'") from None
    return pandas


@dataclass(frozen=True)
class Unusable:
    """A column that holds no numbers."""

    name: str
    kind: str  # one of `TYPES`, or "categories", text that repeats, "names", text that does not, or "some text"
    values: tuple[str, ...]  # the first different texts
    different: int  # texts
    count: int  # how many entries are text
    row: int  # the first of them

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self.values[:SHOWN]))
        if self.kind == "some text":
            return f"{self.name!r} (numbers, and text in {self.count} row{'s' if self.count > 1 else ''}: {shown})"
        words = "text" if self.kind == "names" else self.kind
        return f"{self.name!r} ({words}: {shown}{', ...' if len(self.values) > SHOWN else ''})"


def numeric_columns(
    frame: "pd.DataFrame",
    decimal: str = ".",
    one_hot: Sequence[str] | str = (),
    *,
    labelled: bool = False,
    sideways: str = "",
) -> tuple["pd.DataFrame", tuple[str, ...]]:
    """Return a table of numbers, NaN where a value is missing, and what was done; the options are of `read_table`.

    The table's ``attrs`` has "categories": by the name of a column of categories, all of them.  ``labelled`` is whether
    the labels are known, and not among the columns; ``sideways`` is the note that the rows look like features, or
    nothing.
    """
    pandas = pandas_or_error()
    parts: dict[str, Array | Categories] = {}
    wrong: list[Unusable] = []
    units: list[str] = []
    chosen = frozenset() if one_hot == ALL else frozenset(one_hot)
    for title, column in frame.items():
        name = str(title)
        numbers, text = split_numbers(column, decimal)
        if text.any() and name not in chosen and not np.isfinite(numbers).any():
            numbers, text, unit = without_unit(column, numbers, text, decimal)
            units += [f"column {name!r} was read without {unit!r}"] if unit else []
        found = judge(name, column, numbers, text) if text.any() else None
        if name in chosen or (found is not None and found.kind == "categories" and one_hot == ALL):
            parts[name] = find_categories(name, column)
        elif found is not None:
            wrong.append(found)
        else:
            parts[name] = numbers
    if wrong:
        named = [] if labelled else [name for name, part in parts.items() if may_be_outcome(name, part)]
        outcome = None if labelled else likely_outcome(wrong, named, list(map(str, frame.columns)))
        raise unusable_error(wrong, named, outcome, labelled, sideways)
    made = {name: part for name, part in parts.items() if isinstance(part, Categories)}
    count = sum(len(part.values) for part in made.values())
    if count > MOST_MADE:
        raise DataError(
            f"{len(made)} columns of categories would become {count} columns of 0 and 1, and at most {MOST_MADE} can "
            "be clustered on: drop some, or turn only those into columns of 0 and 1 that matter"
        )
    require_memory(2.0 * 8.0 * len(frame) * count, f"{count} columns of 0 and 1", "turn fewer columns into such")
    X = np.column_stack([part.columns() if isinstance(part, Categories) else part for part in parts.values()])
    names: list[str] = []
    for name, part in parts.items():
        names += [f"{name}={value}" for value in part.values] if isinstance(part, Categories) else [name]
    done = [
        f"the categories of {name!r} became {len(part.values)} columns of 0 and 1".replace(" 1 columns", " a column")
        for name, part in made.items()
    ]
    if len(made) > MOST_NAMES:
        done = [f"the categories of {len(made)} columns became {count} columns of 0 and 1"]
    done += [
        f"column {name!r} looks like a label, and its categories are features now: name it as the label if it is none"
        for name in made
        if outcome_rank(name) is not None
    ]
    numbers = pandas.DataFrame(X, columns=names, index=frame.index)
    numbers.attrs["categories"] = {name: tuple(part.every) for name, part in made.items()}
    return numbers, (*units, *done)


class Categories(NamedTuple):
    """A column of categories, and the columns of 0 and 1 that it becomes."""

    every: Sequence[str]  # the categories, in order
    places: np.ndarray  # where that of each row is among those that get a column; -1 where it is not
    missing: np.ndarray  # where there is none

    @property
    def values(self) -> Sequence[str]:
        """The categories that get a column: all, or the second of two."""
        return self.every[1:] if len(self.every) == 2 else self.every

    def columns(self) -> Array:
        """Return the columns of 0 and 1, shape (n, number of values); NaN where the category is missing."""
        made = (self.places[:, None] == np.arange(len(self.values))).astype(float)
        made[self.missing] = np.nan
        return np.asarray(made)


def made_of(categories: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the columns of categories, by the features that they became."""
    return {
        f"{column}={value}": column
        for column, every in categories.items()
        for value in (every[1:] if len(every) == 2 else every)
    }


def split_numbers(column: "pd.Series", decimal: str) -> tuple[Array, np.ndarray]:
    """Return a column as numbers, NaN where there are none, and where it holds something else."""
    if column.dtype.kind in "biuf":
        try:
            return column.to_numpy(dtype=float, na_value=np.nan), np.zeros(len(column), dtype=bool)
        except (TypeError, ValueError):
            pass
    values = objects_of(column)
    numbers = np.array([read_number(value, decimal) for value in values])
    marks = np.array([isinstance(value, str) and value.strip() in MARKS for value in values], dtype=bool)
    return numbers, np.isnan(numbers) & ~(marks | pandas_or_error().isna(values))


def without_unit(column: "pd.Series", numbers: Array, text: np.ndarray, decimal: str) -> tuple[Array, np.ndarray, str]:
    """Return a column of text as numbers where all of it has the same unit, such as %, and the unit; else as it was."""
    found = [UNIT.fullmatch(str(entry).strip()) for entry in objects_of(column)[text]]
    units = {(match[1] + match[3]).strip() for match in found if match}
    read = np.array([read_number(match[2], decimal) if match else np.nan for match in found])
    if len(units) != 1 or np.isnan(read).any():
        return numbers, text, ""
    numbers = numbers.copy()
    numbers[text] = read
    return numbers, np.zeros_like(text), units.pop()


def objects_of(column: "pd.Series") -> np.ndarray:
    """Return the entries of a column as they are, shape (n,), without pandas, which takes long to begin."""
    return np.asarray(column.array, dtype=object)


def read_number(value: Any, decimal: str) -> float:
    """Return a value as a number, NaN where it is none."""
    if not isinstance(value, str):
        try:
            return np.nan if isinstance(value, complex) else float(value)
        except (TypeError, ValueError):
            return np.nan
    text = value.strip().replace("\u2212", "-")
    if GROUPS[decimal].fullmatch(text):
        text = re.sub(THOUSANDS[decimal], "", text)
    return float(text.replace(",", ".")) if PLAIN[decimal].fullmatch(text) else np.nan


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
    first = int(np.flatnonzero(text)[0])
    return Unusable(name, kind, tuple(different[: SHOWN + 1]), len(different), len(values), first)


def find_categories(name: str, column: "pd.Series") -> Categories:
    """Return the categories of a column, at most 50, one of which is left out where there are two."""
    texts, numeric = category_texts(column)
    different = sorted(set(filter(None, texts)), key=float if numeric else str)
    if not 2 <= len(different) <= MOST_CATEGORIES:
        raise drop_error(
            f"column {name!r} has {len(different)} different values, and from 2 to {MOST_CATEGORIES} can become "
            "columns of 0 and 1: drop it",
            [name],
        )
    return places_of(texts, different)


def category_texts(column: "pd.Series") -> tuple[list[str], bool]:
    """Return the categories of the rows as text, "" where there is none, and whether they are numbers."""
    pandas = pandas_or_error()
    numeric = bool(pandas.api.types.is_numeric_dtype(column))
    entries = objects_of(column)
    pairs = zip(entries.tolist(), pandas.isna(entries).tolist(), strict=True)
    return ["" if absent else f"{entry:g}" if numeric else str(entry).strip() for entry, absent in pairs], numeric


def places_of(texts: Sequence[str], every: Sequence[str]) -> Categories:
    """Return the texts of rows as categories, of which they are some."""
    found = Categories(every, np.empty(0), np.array([text == "" for text in texts], dtype=bool))
    return found._replace(places=pandas_or_error().Index(list(found.values)).get_indexer(texts))


def may_be_outcome(name: str, part: Array | Categories) -> bool:
    """Whether a column of numbers has the name of an outcome, and few values."""
    if isinstance(part, Categories) or outcome_rank(name) is None:
        return False
    return len(np.unique(part[np.isfinite(part)])) <= MOST_CLASSES


def likely_outcome(wrong: Sequence[Unusable], numbers: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the column that is likely to be the outcome: text or numbers by its name, or text alone, last or first."""
    found = [one.name for one in wrong if one.kind == "categories" and one.different <= MOST_CLASSES]
    for columns in (found, numbers):
        ranks = {name: rank for name in columns if (rank := outcome_rank(name)) is not None}
        if ranks:
            return min(ranks, key=lambda name: ranks[name])
    places = found if len(found) == 1 else (names[-1], names[0])
    return next((name for name in places if name in found), None)


def unusable_error(
    wrong: Sequence[Unusable], named: Sequence[str], outcome: str | None, labelled: bool, sideways: str
) -> DataError:
    """Return the error that names all columns that hold no numbers, and what can be done.

    Categories are never turned into features where the outcome may be among them: that would give the answer away.  So
    would ``named``, columns of numbers that have the name of an outcome.
    """
    first = wrong[0]
    if len(wrong) == 1:
        what = {"some text": "text among numbers", "names": "text", "categories": "text"}.get(first.kind, first.kind)
        more = f" and {first.count - 1} more" if first.count > 1 else ""
        said = f"column {first.name!r} holds {what}, {first.values[0]!r} in {tell_row(first.row)}{more}"
    else:
        said = f"{len(wrong)} columns do not hold numbers: {list_texts(wrong)}"
    if sideways:
        which = f"column {first.name!r} holds" if len(wrong) == 1 else f"{len(wrong)} columns hold"
        return DataError(f"{which} text, and {sideways}", column=first.name, row=first.row, remedies=("transpose",))
    kinds = {one.kind for one in wrong}
    ways, may_be_label = [], not labelled and bool(named or kinds & {"categories", "names"})
    if may_be_label:
        alone = len(wrong) == 1 and outcome in (None, first.name)
        which = "it is" if alone else "one is" if outcome is None else f"{outcome!r} is"
        ways.append(f"if {which} the outcome, name it as the label")
    if "categories" in kinds:
        ways.append("turn categories into columns of 0 and 1 where they are features, and never those of the outcome")
    ways += ["correct the text, or leave these entries empty"] if "some text" in kinds else []
    remedies = {
        one.name: "label" if one.name == outcome
        else "one_hot" if labelled and one.kind == "categories" and outcome_rank(one.name) is None
        else "drop"
        for one in wrong
    } | {name: "label" if name == outcome else "drop" for name in named}  # fmt: skip
    return DataError(
        f"{said}: {'; '.join(ways)}{'; or ' if ways else ''}drop {'it' if len(wrong) == 1 else 'them'}",
        column=first.name, row=first.row, columns=tuple(remedies.items()),
        remedies=(*(("label",) if may_be_label else ()), *(("one_hot",) if "categories" in kinds else ()), "drop"),
    )  # fmt: skip


def drop_error(message: str, names: Sequence[str], row: int | None = None) -> DataError:
    """Return the error about columns that have to be dropped, the first of them wrong in a row."""
    columns = tuple((name, "drop") for name in names)
    return DataError(message, column=names[0], row=row, remedies=("drop",), columns=columns)


def tell_row(row: int) -> str:
    """Return a row as messages name it."""
    return f"row {row} of the data (the first is row 0)"


def list_texts(texts: Iterable[object]) -> str:
    """Return the first of some things as text, and how many there are more."""
    every = list(map(str, texts))
    more = f" and {len(every) - MOST_NAMES} more" if len(every) > MOST_NAMES else ""
    return ", ".join(every[:MOST_NAMES]) + more
