"""Convert the columns of a table to numbers: thousands separators, units, one-hot encoding, unusable columns."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from diffrac_cvx.datasets.targets import MAX_CLASSES, target_rank
from diffrac_cvx.errors import DataError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array

if TYPE_CHECKING:
    import pandas as pd

MISSING_MARKS = [  # texts of a missing value
    "", "?", "NA", "N/A", "na", "n/a", "NaN", "nan", "null", "NULL", "None", "none", "-", "--", ".", "<NA>", "n.a.",
    "N.A.", "#N/A", "#NA", "missing", "Missing",
]  # fmt: skip
ALL_COLUMNS = "all"  # instead of column names: every categorical column
MAX_CATEGORIES = 50  # of a one-hot encoded column
MAX_ONE_HOT = 10_000  # binary columns in total
MAX_NAMES_SHOWN = 12  # names listed in a message
MAX_VALUES_SHOWN = 3  # values listed in a message
DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T]\d{1,2}:\d{2}.*)?")
THOUSANDS = {mark: rf"[{other}'\u2019 \u00a0\u202f]" for mark, other in ((".", ","), (",", "."))}  # by decimal mark
GROUPED_NUMBER = {
    mark: re.compile(rf"[+-]?\d{{1,3}}({between}\d{{3}})+([{mark}]\d*)?") for mark, between in THOUSANDS.items()
}
TYPE_NAMES = {"c": "complex numbers", "m": "durations", "M": "dates"}  # by the kind of the NumPy dtype
PLAIN_NUMBER = {mark: re.compile(rf"[+-]?(\d+([{mark}]\d*)?|[{mark}]\d+)([eE][+-]?\d+)?|[+-]?inf") for mark in ".,"}


NUMBER_WITH_UNIT = re.compile(  # a currency or percent sign, or a unit after a space
    r"([€$£¥]?)\s?([-+\u2212]?\d(?:[\d.,'\u2019 \u00a0\u202f]*\d)?(?:[eE][+-]?\d+)?)"
    r"(\s?[€$£¥%‰]?|\s?°[CFK]?|\s[^\W\d_][^\s\d]{0,9})"
)


def pandas_or_error() -> Any:
    """Return pandas, or raise DataError with the install command."""
    try:
        import pandas
    except ImportError:
        raise DataError("tables need pandas. Run pip install 'diffrac-cvx[app]'") from None
    return pandas


@dataclass(frozen=True)
class UnusableColumn:
    """A non-numeric column."""

    name: str
    kind: str  # one of `TYPE_NAMES`, "categories" (repeated texts), "names" (mostly distinct texts) or "some text"
    values: tuple[str, ...]  # the first distinct texts
    n_distinct: int  # number of distinct texts
    count: int  # number of text entries
    row: int  # row of the first one

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self.values[:MAX_VALUES_SHOWN]))
        if self.kind == "some text":
            return f"{self.name!r} (numbers, and text in {self.count} row{'s' if self.count > 1 else ''}: {shown})"
        words = "text" if self.kind == "names" else self.kind
        return f"{self.name!r} ({words}: {shown}{', ...' if len(self.values) > MAX_VALUES_SHOWN else ''})"


def numeric_columns(
    frame: "pd.DataFrame",
    decimal: str = ".",
    one_hot: Sequence[str] | str = (),
    *,
    labeled: bool = False,
    transposed_note: str = "",
) -> tuple["pd.DataFrame", tuple[str, ...]]:
    """Return a numeric table, with NaN for missing values, and notes; the options are those of `read_table`.

    The table's ``attrs`` has "categories", the categories of each one-hot encoded column.  ``labeled`` states that the
    labels are known and not among the columns; ``transposed_note`` is the note of `detect_transposed`, or "".
    """
    pandas = pandas_or_error()
    parts: dict[str, Array | Categories] = {}
    wrong: list[UnusableColumn] = []
    units: list[str] = []
    requested = frozenset() if one_hot == ALL_COLUMNS else frozenset(one_hot)
    for title, column in frame.items():
        name = str(title)
        numbers, text = split_numbers(column, decimal)
        if text.any() and name not in requested and not np.isfinite(numbers).any():
            numbers, text, unit = strip_unit(column, numbers, text, decimal)
            units += [f"column {name!r} was read without {unit!r}"] if unit else []
        found = classify_column(name, column, numbers, text) if text.any() else None
        if name in requested or (found is not None and found.kind == "categories" and one_hot == ALL_COLUMNS):
            parts[name] = find_categories(name, column)
        elif found is not None:
            wrong.append(found)
        else:
            parts[name] = numbers
    if wrong:
        named = [] if labeled else [name for name, part in parts.items() if may_be_target(name, part)]
        target = None if labeled else likely_target(wrong, named, list(map(str, frame.columns)))
        raise unusable_error(wrong, named, target, labeled, transposed_note)
    encoded = {name: part for name, part in parts.items() if isinstance(part, Categories)}
    count = sum(len(part.values) for part in encoded.values())
    if count > MAX_ONE_HOT:
        raise DataError(
            f"{len(encoded)} categorical columns would become {count} binary columns; at most {MAX_ONE_HOT} are "
            "allowed. Drop some, or one-hot encode fewer"
        )
    require_memory(2.0 * 8.0 * len(frame) * count, f"{count} binary columns", "one-hot encode fewer columns")
    X = np.column_stack([part.columns() if isinstance(part, Categories) else part for part in parts.values()])
    names: list[str] = []
    for name, part in parts.items():
        names += [f"{name}={value}" for value in part.values] if isinstance(part, Categories) else [name]
    notes = [
        f"column {name!r} became {len(part.values)} binary columns".replace(" 1 binary columns", " one binary column")
        for name, part in encoded.items()
    ]
    if len(encoded) > MAX_NAMES_SHOWN:
        notes = [f"{len(encoded)} categorical columns became {count} binary columns"]
    notes += [
        f"column {name!r} looks like a label, but its categories are features. Specify it as the label if it is one"
        for name in encoded
        if target_rank(name) is not None
    ]
    numbers = pandas.DataFrame(X, columns=names, index=frame.index)
    numbers.attrs["categories"] = {name: tuple(part.categories) for name, part in encoded.items()}
    return numbers, (*units, *notes)


class Categories(NamedTuple):
    """A categorical column and its one-hot encoding."""

    categories: Sequence[str]  # the categories, in order
    codes: np.ndarray  # index of each row's category among `values`; -1 if it is not there
    missing: np.ndarray  # mask of missing categories

    @property
    def values(self) -> Sequence[str]:
        """The categories with a binary column: all, or the second of two."""
        return self.categories[1:] if len(self.categories) == 2 else self.categories

    def columns(self) -> Array:
        """Return the binary columns, shape (n, number of values), with NaN for missing categories."""
        indicators = (self.codes[:, None] == np.arange(len(self.values))).astype(float)
        indicators[self.missing] = np.nan
        return np.asarray(indicators)


def category_columns(categories: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the categorical column of each one-hot encoded feature."""
    return {
        f"{column}={value}": column
        for column, values in categories.items()
        for value in (values[1:] if len(values) == 2 else values)
    }


def split_numbers(column: "pd.Series", decimal: str) -> tuple[Array, np.ndarray]:
    """Return a column as numbers, with NaN for other entries, and the mask of non-numeric, non-missing entries."""
    if column.dtype.kind in "biuf":
        try:
            return column.to_numpy(dtype=float, na_value=np.nan), np.zeros(len(column), dtype=bool)
        except (TypeError, ValueError):
            pass
    values = object_values(column)
    numbers = np.array([read_number(value, decimal) for value in values])
    marks = np.array([isinstance(value, str) and value.strip() in MISSING_MARKS for value in values], dtype=bool)
    return numbers, np.isnan(numbers) & ~(marks | pandas_or_error().isna(values))


def strip_unit(column: "pd.Series", numbers: Array, text: np.ndarray, decimal: str) -> tuple[Array, np.ndarray, str]:
    """Return a text column as numbers, without its unit (such as %) and with it, if all entries share one."""
    found = [NUMBER_WITH_UNIT.fullmatch(str(entry).strip()) for entry in object_values(column)[text]]
    units = {(match[1] + match[3]).strip() for match in found if match}
    read = np.array([read_number(match[2], decimal) if match else np.nan for match in found])
    if len(units) != 1 or np.isnan(read).any():
        return numbers, text, ""
    numbers = numbers.copy()
    numbers[text] = read
    return numbers, np.zeros_like(text), units.pop()


def object_values(column: "pd.Series") -> np.ndarray:
    """Return the entries of a column unchanged, shape (n,), without pandas, which is slow to start."""
    return np.asarray(column.array, dtype=object)


def read_number(value: Any, decimal: str) -> float:
    """Return a value as a number, NaN if it is not one."""
    if not isinstance(value, str):
        try:
            return np.nan if isinstance(value, complex) else float(value)
        except (TypeError, ValueError):
            return np.nan
    text = value.strip().replace("\u2212", "-")
    if GROUPED_NUMBER[decimal].fullmatch(text):
        text = re.sub(THOUSANDS[decimal], "", text)
    return float(text.replace(",", ".")) if PLAIN_NUMBER[decimal].fullmatch(text) else np.nan


def classify_column(name: str, column: "pd.Series", numbers: Array, text: np.ndarray) -> UnusableColumn:
    """Return the description of a column that contains text."""
    values = [str(value).strip() for value in object_values(column)[text]]
    distinct = list(dict.fromkeys(values))
    if column.dtype.kind in TYPE_NAMES:
        kind = TYPE_NAMES[column.dtype.kind]
    elif 10 * sum(map(bool, map(DATE.fullmatch, values))) >= 9 * len(values):
        kind = "dates"
    elif int(np.isfinite(numbers).sum()) > len(values):
        kind = "some text"
    elif len(distinct) <= MAX_CATEGORIES and len(distinct) <= max(2, len(values) // 2):
        kind = "categories"
    else:
        kind = "names"
    first = int(np.flatnonzero(text)[0])
    return UnusableColumn(name, kind, tuple(distinct[: MAX_VALUES_SHOWN + 1]), len(distinct), len(values), first)


def find_categories(name: str, column: "pd.Series") -> Categories:
    """Return the categories of a column, at most 50."""
    texts, numeric = category_texts(column)
    distinct = sorted(set(filter(None, texts)), key=float if numeric else str)
    if not 2 <= len(distinct) <= MAX_CATEGORIES:
        raise drop_error(
            f"column {name!r} has {len(distinct)} distinct values; one-hot encoding needs 2 to {MAX_CATEGORIES}. "
            "Drop it",
            [name],
        )
    return encode_categories(texts, distinct)


def category_texts(column: "pd.Series") -> tuple[list[str], bool]:
    """Return the category of each row as text, "" if missing, and whether the column is numeric."""
    pandas = pandas_or_error()
    numeric = bool(pandas.api.types.is_numeric_dtype(column))
    entries = object_values(column)
    pairs = zip(entries.tolist(), pandas.isna(entries).tolist(), strict=True)
    return ["" if absent else f"{entry:g}" if numeric else str(entry).strip() for entry, absent in pairs], numeric


def encode_categories(texts: Sequence[str], categories: Sequence[str]) -> Categories:
    """Return the encoding of the texts of rows by the given categories."""
    found = Categories(categories, np.empty(0), np.array([text == "" for text in texts], dtype=bool))
    return found._replace(codes=pandas_or_error().Index(list(found.values)).get_indexer(texts))


def may_be_target(name: str, part: Array | Categories) -> bool:
    """Return whether a numeric column is named like an outcome and has few values."""
    if isinstance(part, Categories) or target_rank(name) is None:
        return False
    return len(np.unique(part[np.isfinite(part)])) <= MAX_CLASSES


def likely_target(wrong: Sequence[UnusableColumn], numbers: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the likely outcome: a column named like one, else the only, last or first categorical column."""
    found = [one.name for one in wrong if one.kind == "categories" and one.n_distinct <= MAX_CLASSES]
    for columns in (found, numbers):
        ranks = {name: rank for name in columns if (rank := target_rank(name)) is not None}
        if ranks:
            return min(ranks, key=lambda name: ranks[name])
    candidates = found if len(found) == 1 else (names[-1], names[0])
    return next((name for name in candidates if name in found), None)


def unusable_error(
    wrong: Sequence[UnusableColumn], named: Sequence[str], target: str | None, labeled: bool, transposed_note: str
) -> DataError:
    """Return the DataError that names all non-numeric columns and the remedies.

    One-hot encoding is not suggested for a column that may be the outcome, which would leak into the features.  The
    same holds for ``named``, the numeric columns named like an outcome.
    """
    first = wrong[0]
    if len(wrong) == 1:
        what = {"some text": "text among numbers", "names": "text", "categories": "text"}.get(first.kind, first.kind)
        more = f" and {first.count - 1} more" if first.count > 1 else ""
        message = f"column {first.name!r} contains {what}: {first.values[0]!r} in {format_row(first.row)}{more}"
    else:
        message = f"{len(wrong)} columns are not numeric: {format_list(wrong)}"
    if transposed_note:
        which = f"column {first.name!r} contains" if len(wrong) == 1 else f"{len(wrong)} columns contain"
        return DataError(
            f"{which} text, and {transposed_note}", column=first.name, row=first.row, remedies=("transpose",)
        )
    kinds = {one.kind for one in wrong}
    options, may_be_label = [], not labeled and bool(named or kinds & {"categories", "names"})
    if may_be_label:
        alone = len(wrong) == 1 and target in (None, first.name)
        which = "it is" if alone else "one is" if target is None else f"{target!r} is"
        options.append(f"if {which} the outcome, specify it as the label")
    if "categories" in kinds:
        options.append("one-hot encode categorical columns that are features, never the outcome")
    options += ["correct the text, or leave these entries empty"] if "some text" in kinds else []
    remedies = {
        one.name: "label" if one.name == target
        else "one_hot" if labeled and one.kind == "categories" and target_rank(one.name) is None
        else "drop"
        for one in wrong
    } | {name: "label" if name == target else "drop" for name in named}  # fmt: skip
    return DataError(
        f"{message}. Remedy: {'; '.join(options)}{'; or ' if options else ''}"
        f"drop {'it' if len(wrong) == 1 else 'them'}",
        column=first.name, row=first.row, columns=tuple(remedies.items()),
        remedies=(*(("label",) if may_be_label else ()), *(("one_hot",) if "categories" in kinds else ()), "drop"),
    )  # fmt: skip


def drop_error(message: str, names: Sequence[str], row: int | None = None) -> DataError:
    """Return the DataError about columns to drop; ``row`` is an offending row of the first one."""
    columns = tuple((name, "drop") for name in names)
    return DataError(message, column=names[0], row=row, remedies=("drop",), columns=columns)


def format_row(row: int) -> str:
    """Return the name of a row in messages."""
    return f"row {row} of the data (counted from 0)"


def format_list(texts: Iterable[object]) -> str:
    """Return the first items as text, with the number of further ones."""
    items = list(map(str, texts))
    more = f" and {len(items) - MAX_NAMES_SHOWN} more" if len(items) > MAX_NAMES_SHOWN else ""
    return ", ".join(items[:MAX_NAMES_SHOWN]) + more
