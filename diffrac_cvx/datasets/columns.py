"""Conversion of columns to numbers: decimal marks by column, one-hot encoding, and errors for other text columns."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any

import numpy as np

from diffrac_cvx.errors import DataError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array

MAX_CATEGORIES = 50  # of a one-hot encoded column
MAX_NAMES_SHOWN = 12  # names listed in a message
MAX_VALUES_SHOWN = 3  # values listed in a message
SAMPLE_ENTRIES = 200  # entries used to decide whether a column is mostly numbers
MISSING_TEXTS = frozenset(  # those of pandas, and its missing values as text
    [
        "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
        "NULL", "NaN", "NaT", "None", "n/a", "nan", "null",
    ]
)  # fmt: skip
NUMBER = re.compile(  # with a decimal point and possibly separated thousands
    r"[+\-\u2212]?((\d+|[1-9]\d{0,2}([,'\u2019 \u00a0\u202f])\d{3}(\3\d{3})*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?"
)
FLAGGED = re.compile(r"([+\-\u2212]?\d{2,}),\d")  # a value with leading zeros, and a flag
THOUSANDS = re.compile("[,'\u2019 \u00a0\u202f]")
SWAPPED = str.maketrans(".,", ",.")
NO_NUMBERS = "Drop the text columns, use one as the label, or one-hot encode them, but never the outcome"
MEASURED = re.compile(  # a number with a unit or a flag
    r"([^\w+\-.,]*)([+\-\u2212]?\d[\d.,'\u2019 \u00a0\u202f]*)([^\d_]*)"
)
CAUSES = {  # patterns of text, what to do, and the parameter if most other entries are numbers
    r"=.+": ("Open the file in a spreadsheet program and save it, for its formulas have no values yet", "na_values"),
    r"[<>\u2264\u2265].*": (
        "Replace values below or above a limit, which are not only missing, by numbers such as half the limit of "
        "detection",
        "drop",
    ),
    r"\d{1,3}:\d\d(:\d\d(\.\d+)?)?( ?[AaPp]\.?[Mm]\.?)?": ("Write times as numbers, such as hours", "na_values"),
    r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T].*)?": ("Write dates as numbers, such as days", "na_values"),
}


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns of a file by name, as arrays of numbers or as text, before their roles are assigned."""

    columns: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    row_names: Sequence[Any] | None = None  # entries of a first column without a name
    label: str | None = None  # column of the labels
    mark: str = ""  # decimal mark of ambiguous columns


def name_columns(titles: Sequence[str], columns: Iterable[Any], notes: Iterable[str] = (), **more: Any) -> RawTable:
    """Return columns with unique names: x1, x2, ... without a title, and a number appended to a repeated title."""
    named: dict[str, Any] = {}
    renamed, copies = list[str](), Counter[str]()
    for j, (title, column) in enumerate(zip(titles, columns, strict=True)):
        name = base = title or f"x{j + 1}"
        while name in named:
            copies[base] += 1
            name = f"{base} ({copies[base] + 1})"
        named[name] = column
        renamed += [repr(name)] if title not in ("", name) else []
    note = [f"columns with equal names were renamed: {format_list(renamed)}"] if renamed else []
    return RawTable(named, (*notes, *note), **more)


def to_number(text: str, mark: str) -> float:
    """Return a text with a decimal mark as a number; NaN, or infinity, if it is not a finite number."""
    text = text.translate(SWAPPED) if mark == "," else text
    return float(THOUSANDS.sub("", text).replace("\u2212", "-")) if NUMBER.fullmatch(text) else np.nan


def is_number(text: str, marks: str = ".,") -> bool:
    """Return whether a text is a finite number with one of the decimal marks."""
    return any(math.isfinite(to_number(text, mark)) for mark in marks)


def is_mostly_numeric(entries: Iterable[Any]) -> bool:
    """Return whether at least half of the first present entries are numbers."""
    texts = list(filter(None, clean_texts(islice(entries, SAMPLE_ENTRIES))))
    return bool(texts) and (parse_numbers(texts, ".") is not None or 2 * sum(map(is_number, texts)) >= len(texts))


def clean_texts(entries: Iterable[Any], missing: Collection[str] = MISSING_TEXTS) -> list[str | None]:
    """Return entries as text trimmed on both sides, None if missing."""
    return [None if (text := str(entry).strip()) in missing else text for entry in entries]


def parse_numbers(texts: Sequence[str | None], mark: str) -> Array | None:
    """Return texts with a decimal mark as numbers, NaN for None; None if one is not a finite number."""
    present = list(filter(None, texts))
    try:  # the usual numbers, in less time
        values = [float(text.translate(SWAPPED)) for text in present] if mark == "," else list(map(float, present))
    except ValueError:
        values = list(takewhile(math.isfinite, (to_number(text, mark) for text in present)))
    if len(values) < len(present) or not all(map(math.isfinite, values)) or "_" in "".join(present):
        return None
    found = iter(values)
    return np.array([np.nan if text is None else next(found) for text in texts])


def read_numbers(
    table: RawTable, names: Sequence[str], marks: str, na_values: Sequence[str], ignored: Collection[str]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return columns as numbers, or as text trimmed on both sides with None for missing values, and notes.

    Each column has the decimal mark, one of ``marks``, with which all its entries are numbers.  If both are possible,
    as for 1.204, it has the mark of the format if its entries contain it, otherwise that of the other columns.  If
    these are ambiguous too, it has that of the format; without one, the mark in the entry counts as decimal.  Columns
    that are ``ignored`` have no influence, nor have columns of values with leading zeros and a flag, such as +0105,1.
    """
    missing, codes = MISSING_TEXTS.union(na_values), [to_number(text, marks[0]) for text in na_values]
    columns, unclear = dict[str, np.ndarray](), dict[str, tuple[list[str], dict[str, Array]]]()
    certain, doubtful, flagged = set[str](), list[str](), list[str]()
    for name in names:
        entries = table.columns[name]
        if isinstance(entries, np.ndarray) and entries.dtype.kind in "biuf" and not np.isinf(entries).any():
            columns[name] = entries.astype(float)
            continue
        texts = clean_texts(entries, missing)
        if name not in ignored and (values := without_flags(texts)):
            value = to_number(next(filter(None, values)), ".")
            flagged.append(f"{next(filter(None, texts))} in column {name!r} was read as {value:g}")
            texts = values
        possible = "." if name in ignored else marks
        readings = {mark: numbers for mark in possible if (numbers := parse_numbers(texts, mark)) is not None}
        columns[name] = next(iter(readings.values()), np.array(texts, dtype=object))
        if len(readings) == 2 and not np.array_equal(readings["."], readings[","], equal_nan=True):
            unclear[name] = list(filter(None, texts)), readings
        elif len(readings) == 1 and len(possible) == 2:
            certain.update(readings)
    for name, (present, readings) in unclear.items():
        marked = next(text for text in present if "." in text or "," in text)
        chosen = min(certain) if len(certain) == 1 else table.mark or re.findall("[.,]", marked)[0]
        chosen = table.mark if table.mark and table.mark in marked else chosen
        columns[name] = readings[chosen]
        if chosen == "," or certain == {","} or any("." not in text for text in present):
            doubtful.append(f"{marked} in column {name!r} was read as {to_number(marked, chosen):.12g}")
    remedy = "Specify the decimal mark or the thousands separator if this is wrong"
    for name, column in columns.items():
        if codes and column.dtype != object:
            columns[name] = np.where(np.isin(column, codes), np.nan, column)
    notes = [f"{format_list(flagged)}, without the flag. Correct the entries if they have decimals"] if flagged else []
    return columns, notes + ([f"{format_list(doubtful)}. {remedy}"] if doubtful else [])


def without_flags(texts: Sequence[str | None]) -> list[str | None]:
    """Return the values of entries with a flag, such as +0105,1, of equal width with leading zeros; [] for others."""
    found = [text and FLAGGED.fullmatch(text) for text in texts]
    values = [match and match[1] for match in found]
    present = [value for value in values if value]
    digits = [value.lstrip("+-\u2212") for value in present]
    is_padded = len(present) == sum(map(bool, texts)) and len(set(map(len, digits))) == 1
    return values if is_padded and any(value.startswith("0") for value in digits) else []


def find_padded(columns: Mapping[str, Any]) -> set[str]:
    """Return the columns whose entries are digits of one length, some with leading zeros."""
    found = set[str]()
    for name, column in columns.items():
        texts = [] if isinstance(column, np.ndarray) else list(filter(None, clean_texts(column[:SAMPLE_ENTRIES])))
        if len({*map(len, texts)}) == 1 and len(texts[0]) > 1 and all(map(str.isdigit, texts)):
            found |= {name} if any(text.startswith("0") for text in texts) else set()
    return found


# Categories


def as_texts(column: np.ndarray) -> list[str | None]:
    """Return entries as text, None if missing; whole numbers have no decimal point."""
    if column.dtype == object:
        return list(column)
    return [None if value != value else str(int(value) if value.is_integer() else value) for value in column.tolist()]


def unchanged_texts(entries: Any, missing: Collection[str] = MISSING_TEXTS) -> list[str | None]:
    """Return the entries of a column that is not a feature as they are in the file: "007" is not the number 7."""
    if isinstance(entries, np.ndarray) and entries.dtype.kind in "biuf":
        return as_texts(entries.astype(float))
    return clean_texts(entries, missing)


def feature_names(name: str, categories: Sequence[str]) -> list[str]:
    """Return the names of the binary columns of a categorical column: one per category, or only the second of two."""
    return [f"{name}={value}" for value in (categories[1:] if len(categories) == 2 else categories)]


def category_columns(categories: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the categorical column of each one-hot encoded feature."""
    return {made: name for name, values in categories.items() for made in feature_names(name, values)}


def find_categories(columns: Mapping[str, np.ndarray], one_hot: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the sorted categories of the columns to one-hot encode, 2 to 50 each."""
    found = {}
    for name in filter(set(one_hot).__contains__, columns):
        texts = {text for text in as_texts(columns[name]) if text is not None}
        if not 2 <= len(texts) <= MAX_CATEGORIES:
            message = f"column {name!r} has {len(texts)} distinct values; one-hot encoding needs 2 to {MAX_CATEGORIES}"
            raise drop_error(f"{message}. Drop it.", [name])
        found[name] = tuple(sorted(texts, key=str if columns[name].dtype == object else float))
    return found


def encode_columns(
    columns: Mapping[str, np.ndarray], categories: Mapping[str, Sequence[str]]
) -> tuple[Array, tuple[str, ...]]:
    """Return the features of a table and their names; in binary columns, NaN for missing and unknown categories."""
    count = len(category_columns(categories))
    n = len(next(iter(columns.values())))
    require_memory(16.0 * n * count, f"{count} binary columns", "one-hot encode fewer columns")
    parts, names = list[Array](), list[str]()
    for name, column in columns.items():
        if name not in categories:
            parts.append(column)
            names.append(name)
            continue
        known: dict[str | None, int] = {text: i for i, text in enumerate(categories[name])}
        found = np.array([known.get(text, -1) for text in as_texts(column)])
        binary = np.where(found < 0, np.nan, found == np.arange(len(known))[:, None])
        parts += list(binary[1:] if len(known) == 2 else binary)
        names += feature_names(name, categories[name])
    return np.stack(parts, axis=1), tuple(names)


# Errors


def text_error(columns: Mapping[str, np.ndarray], wrong: Sequence[str], marks: str) -> DataError:
    """Return the DataError that names all text columns among the features, with a remedy for each cause."""
    shown, rows, by_remedy, pairs, turned = list[str](), list[int](), dict[str, list[str]](), dict[str, str](), False
    for name in wrong:
        present = [(i, text) for i, text in enumerate(columns[name]) if text]
        bad = min(([i for i, text in present if not is_number(text, mark)] for mark in marks), key=len)
        remedy, parameter = find_remedy(name, [text for _, text in present], columns[name][bad].tolist())
        if remedy == NO_NUMBERS and name == next(iter(columns)) and len({*columns[name]}) == len(columns[name]):
            remedy, turned = f"{remedy}; if {name!r} names features, transpose the table", True
        by_remedy.setdefault(remedy, []).append(name)
        texts = list(dict.fromkeys(columns[name][bad]))
        pairs |= dict.fromkeys(
            texts[:MAX_NAMES_SHOWN] if parameter == "na_values" else [name] * bool(parameter), parameter
        )
        shown.append(f"{name!r} ({format_list(map(repr, texts[:MAX_VALUES_SHOWN]))})")
        rows.append(bad[0])
    remedies = [
        f"{remedy}{f' ({format_list(map(repr, names))})' if len(by_remedy) > 1 else ''}"
        for remedy, names in by_remedy.items()
    ]
    return DataError(
        f"text in column{'s' * (len(wrong) > 1)} {format_list(shown)}, first in {format_row(rows[0])}. "
        f"{'. '.join(remedies)}.",
        remedies=(*sorted({*pairs.values()}), *["transpose"] * turned),
        columns=tuple(sorted(pairs.items(), key=lambda pair: pair[1])),
    )  # fmt: skip


def find_remedy(name: str, present: Sequence[str], bad: Sequence[str]) -> tuple[str, str]:
    """Return the remedy for a column in which some of these entries are not numbers, and its parameter."""
    is_stray = 2 * len(bad) <= len(present)
    for pattern, (remedy, parameter) in CAUSES.items():
        count = sum(bool(re.fullmatch(pattern, text)) for text in bad)
        if 2 * count >= len(bad) or (count and parameter == "drop"):
            is_missing = is_stray and parameter == "na_values"
            return (
                (f"{remedy}, or read it as missing", parameter)
                if is_missing
                else (f"{remedy}, or drop the column", "drop")
            )
    if all(map(is_number, present)) or (is_stray and any(map(is_number, bad))):
        return "Write all numbers of a column with one decimal mark", ""
    measured = [
        match[1] + match[3] for text in bad if (match := MEASURED.fullmatch(text)) and is_number(match[2].strip())
    ]
    if all(measured) and len(measured) == len(bad):
        what = "unit" if len({*measured}) == 1 and len(bad) == len(present) else "flags or units"
        units = format_list(map(repr, [*dict.fromkeys(measured)][:MAX_VALUES_SHOWN]))
        return f"Remove the {what} {units} of the numbers (a decimal comma may stay), or drop the column", "drop"
    if is_stray:
        line = "skip the line that repeats the names" if name in bad else "skip lines of units or totals"
        return f"Correct the text among numbers, read it as missing, or {line}", "na_values"
    return NO_NUMBERS, "drop"


def drop_error(message: str, names: Sequence[str]) -> DataError:
    """Return the DataError about columns to drop."""
    return DataError(message, remedies=("drop",), columns=tuple((name, "drop") for name in names))


def format_row(row: int) -> str:
    """Return the name of a row in messages."""
    return f"row {row} of the data (counted from 0)"


def format_list(texts: Iterable[object]) -> str:
    """Return the first items as text, with the number of further ones."""
    items = list(map(str, texts))
    more = f" and {len(items) - MAX_NAMES_SHOWN} more" if len(items) > MAX_NAMES_SHOWN else ""
    return ", ".join(items[:MAX_NAMES_SHOWN]) + more
