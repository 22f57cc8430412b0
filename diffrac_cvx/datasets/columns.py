"""Columns of a table as numbers: decimal marks by column, one-hot encoding, and errors on the others."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from diffrac_cvx.errors import DataError
from diffrac_cvx.machine.memory import require_memory
from diffrac_cvx.points.checks import Array

if TYPE_CHECKING:
    import pandas as pd

MAX_CATEGORIES = 50  # of a one-hot encoded column
MAX_NAMES_SHOWN = 12  # names listed in a message
MAX_VALUES_SHOWN = 3  # values listed in a message
MAX_LINES = 3  # lines of units or totals that an error suggests to skip
SAMPLE_ENTRIES = 200  # entries used to decide whether a column is mostly numbers
GROUPS = {mark: rf"[{other}'\u2019 \u00a0\u202f]" for mark, other in ((".", ","), (",", "."))}  # thousands separators
NUMBERS = {  # numbers by decimal mark, with separated thousands
    mark: re.compile(
        rf"[+\-\u2212]?((\d+|[1-9]\d{{0,2}}({group})\d{{3}}(\3\d{{3}})*)([{mark}]\d*)?|[{mark}]\d+)([eE][+-]?\d+)?"
        r"|[+\-\u2212]?inf"
    )
    for mark, group in GROUPS.items()
}
UNIT = re.compile(r"[€$£¥]\s?-?\d[\d.,]*|-?\d[\d.,]*\s?([€$£¥%‰°]\S?|[^\W\d_][^\s\d]{0,9})")  # a number with a unit


def pandas_or_error() -> Any:
    """Return pandas, or raise DataError with the install command."""
    try:
        import pandas
    except ImportError:
        raise DataError("tables need pandas. Run pip install 'diffrac-cvx[app]'") from None
    return pandas


def is_number(text: str) -> bool:
    """Return whether a text is a number with one of the decimal marks."""
    return any(pattern.fullmatch(text) for pattern in NUMBERS.values())


def is_mostly_numeric(entries: Iterable[Any]) -> bool:
    """Return whether at least half of the first present entries are numbers."""
    texts = [text for text in clean_texts(list(entries)[:SAMPLE_ENTRIES]) if text is not None]
    return bool(texts) and 2 * sum(map(is_number, texts)) >= len(texts)


def text_columns(frame: "pd.DataFrame") -> list[Any]:
    """Return the labels of the columns that are not numbers."""
    return [name for name, dtype in frame.dtypes.items() if dtype.kind not in "biuf"]


def clean_texts(entries: Iterable[Any]) -> list[str | None]:
    """Return entries as text trimmed on both sides, None if missing."""
    pandas = pandas_or_error()
    values = np.asarray(entries, dtype=object)
    missing = pandas.isna(values).tolist()
    return [None if absent else str(value).strip() or None for value, absent in zip(values, missing, strict=True)]


def read_numbers(frame: "pd.DataFrame", mark: str | None, ignored: Iterable[str] = ()) -> "pd.DataFrame":
    """Return a frame whose columns are numbers, or text trimmed on both sides with None for missing values.

    Each column has the decimal mark, if not given by ``mark``, with which all its entries are numbers.  If both are
    possible, as for 1.204, it has the mark of the other columns; if they do not decide, 1.204 is less than two.
    """
    pandas = pandas_or_error()
    texts = {name: clean_texts(frame[name]) for name in text_columns(frame)}
    features = [name for name in texts if name not in set(ignored)]
    possible = {
        name: [one for one in ([mark] if mark else ".,") if all(map(NUMBERS[one].fullmatch, filter(None, texts[name])))]
        for name in features
    }
    notes = []
    marked = {name: next((text for text in texts[name] if text and re.search("[.,]", text)), "") for name in features}
    unclear = [name for name in features if len(possible[name]) == 2 and marked[name]]
    certain = {marks[0] for name, marks in possible.items() if len(marks) == 1 and marked[name]}
    if unclear:
        floats = frame.select_dtypes("float").drop(columns=list(ignored), errors="ignore").to_numpy()
        certain |= {"."} if np.any(floats != np.round(floats), where=np.isfinite(floats)) else set()
        own = "." if frame.attrs.get("is_comma_separated") else ""
        for name in unclear:
            possible[name] = list(certain) if len(certain) == 1 else [own or re.findall("[.,]", marked[name])[0]]
        doubtful = [name for name in unclear if len(certain) != 1 or possible[name][0] not in marked[name]]
        if doubtful:
            text, value = marked[doubtful[0]], to_number(marked[doubtful[0]], possible[doubtful[0]][0])
            more = f", and so were {len(doubtful) - 1} more columns" if len(doubtful) > 1 else ""
            notes.append(
                f"{text} in column {doubtful[0]!r} was read as {value:.12g}{more}. Specify the decimal mark or the "
                "thousands separator if this is wrong"
            )
    commas = [repr(name) for name in features if possible[name] == [","] and marked[name] and name not in unclear]
    if commas and mark is None:
        notes.insert(
            0, f"numbers with a decimal comma: {format_list(commas)}. Specify the decimal mark if this is wrong"
        )
    columns: dict[str, Any] = {}
    for name, entries in texts.items():
        if any(entries) and not possible.get(name):
            columns[name] = pandas.Series(entries, dtype=object)
        else:
            columns[name] = np.array([to_number(text, possible.get(name, ".")[0]) for text in entries])
    for name, dtype in frame.dtypes.items():
        if name not in texts and not isinstance(dtype, np.dtype):
            columns[name] = frame[name].to_numpy(dtype=float, na_value=np.nan)
    attrs = {**frame.attrs, "mark": mark, "notes": (*frame.attrs.get("notes", ()), *notes)}
    if len(columns) == frame.shape[1]:
        frame = pandas.DataFrame(columns, columns=frame.columns)
    elif columns:
        frame = frame.copy()
        for name, column in columns.items():
            frame[name] = column
    frame.attrs.update(attrs)
    return frame


def to_number(text: str | None, mark: str) -> float:
    """Return a text that matches ``NUMBERS[mark]`` as a number, NaN for None."""
    return np.nan if text is None else float(re.sub(GROUPS[mark], "", text).replace(",", ".").replace("\u2212", "-"))


def find_categories(name: str, column: "pd.Series") -> list[str]:
    """Return the sorted categories of a column, 2 to 50."""
    texts = sorted(set(filter(None, category_texts(column))), key=str if column.dtype == object else float)
    if not 2 <= len(texts) <= MAX_CATEGORIES:
        raise drop_error(
            f"column {name!r} has {len(texts)} distinct values; one-hot encoding needs 2 to {MAX_CATEGORIES}. Drop it",
            [name],
        )
    return texts


def category_texts(column: "pd.Series") -> list[str | None]:
    """Return the category of each row as text, None if missing; of numbers without a decimal point if whole."""
    if column.dtype == object:
        return list(column)
    return [None if value != value else f"{value:g}" for value in column.astype(float)]


def feature_names(name: str, categories: Sequence[str]) -> list[str]:
    """Return the names of the binary columns of a categorical column: one per category, or the second of two."""
    return [f"{name}={value}" for value in (categories[1:] if len(categories) == 2 else categories)]


def one_hot_columns(texts: Sequence[str | None], categories: Sequence[str]) -> Array:
    """Return the binary columns of a categorical column, NaN for missing and for unknown categories."""
    codes = {value: k for k, value in enumerate(categories)}
    found = np.array([codes.get(text or "", -1) for text in texts])
    columns: Array = (found[:, None] == np.arange(len(categories))).astype(float)
    columns[found < 0] = np.nan
    return columns[:, 1:] if len(categories) == 2 else columns


def category_columns(categories: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the categorical column of each one-hot encoded feature."""
    return {made: name for name, values in categories.items() for made in feature_names(name, values)}


def encode_columns(
    frame: "pd.DataFrame", one_hot: Sequence[str] | str, labeled: bool
) -> tuple[Array, list[str], dict[str, tuple[str, ...]], list[str]]:
    """Return the features of a table, their names, the categories of one-hot encoded columns, and notes."""
    texts = text_columns(frame)
    if one_hot == "all":
        one_hot = [name for name in texts if 2 <= frame[name].nunique() <= min(MAX_CATEGORIES, len(frame) // 2)]
    if wrong := [name for name in texts if name not in set(one_hot)]:
        raise text_error(frame, wrong, labeled)
    categories = {name: tuple(find_categories(name, frame[name])) for name in frame.columns if name in set(one_hot)}
    if not categories:
        return frame.to_numpy(dtype=float), list(frame.columns), {}, []
    count = sum(len(feature_names(name, values)) for name, values in categories.items())
    require_memory(2.0 * 8.0 * len(frame) * count, f"{count} binary columns", "one-hot encode fewer columns")
    parts = [
        one_hot_columns(category_texts(column), categories[name]) if name in categories else column.to_numpy(float)
        for name, column in frame.items()
    ]
    names = [made for name in frame.columns for made in (feature_names(name, categories.get(name, ())) or [name])]
    note = f"one-hot encoded columns: {format_list(map(repr, categories))} (binary columns: {count})"
    return np.column_stack(parts), names, categories, [note]


def text_error(frame: "pd.DataFrame", wrong: Sequence[str], labeled: bool) -> DataError:
    """Return the DataError that names all text columns among the features, and the remedies."""
    entries, bad, stray = {name: list(frame[name]) for name in wrong}, dict[str, list[int]](), list[str]()
    for name in wrong:
        present = [i for i, text in enumerate(entries[name]) if text]
        marks = frame.attrs["mark"] or ".,"
        others = [[i for i in present if not NUMBERS[mark].fullmatch(entries[name][i])] for mark in marks]
        bad[name] = min(others, key=len)
        is_mixed = all(is_number(entries[name][i]) for i in present)
        stray += [name] if is_mixed or 2 * len(bad[name]) < len(present) else []
    first, row, rows = wrong[0], bad[wrong[0]][0], sorted({i for name in stray for i in bad[name]})
    values = {name: list(dict.fromkeys(entries[name][i] for i in bad[name])) for name in wrong}
    if len(wrong) == 1:
        more = f" and {len(bad[first]) - 1} more" if len(bad[first]) > 1 else ""
        among = " among numbers" * (first in stray and len(bad[first]) < sum(map(bool, entries[first])))
        message = f"column {first!r} contains text{among}: {entries[first][row]!r} in {format_row(row)}{more}"
    else:
        shown = [f"{name!r} ({format_list(map(repr, values[name][:MAX_VALUES_SHOWN]))})" for name in wrong]
        message = f"{len(wrong)} columns are not numeric: {format_list(shown)}; the first text is in {format_row(row)}"
    pairs = {name: "drop" for name in wrong if name not in stray}
    texts = list(dict.fromkeys(text for name in stray for text in values[name]))
    is_edge = not pairs and len(rows) <= MAX_LINES and not any(map(is_number, texts))
    if is_edge and rows == list(range(len(rows))):
        line = frame.attrs.get("first_line", 0) + 1  # counted from 1
        pairs, remedies = (
            {f"{line}-{line + len(rows) - 1}": "skip_rows"},
            ["if these are units or names, skip these lines"],
        )
    elif is_edge and rows == list(range(len(frame) - len(rows), len(frame))):
        pairs, remedies = {str(len(rows)): "skip_footer"}, ["if these are totals or remarks, skip lines at the end"]
    else:
        it, one = ("it", "it") if len(wrong) == 1 else ("the text columns", "one of them")
        remedies = [f"drop {it}"] if pairs else []
        if pairs and not labeled:
            remedies.append(f"use {one} as the label")
        if pairs:
            remedies.append(f"one-hot encode {it}, but never the outcome")
        if first == frame.columns[0] and first in pairs and len(set(entries[first])) == len(frame):
            remedies.append(f"if {first!r} names features, transpose the table")
        if any(map(is_number, texts)):
            remedies.append("write all numbers of a column with one decimal mark")
        elif stray:
            remedies.append("correct the text among numbers, or read it as missing")
            pairs |= dict.fromkeys(texts[:MAX_VALUES_SHOWN], "na_values")
        if any(all(map(UNIT.fullmatch, values[name])) for name in pairs if name in values):
            remedies.append("remove the units of numbers (a decimal comma may stay)")
    return DataError(
        f"{message}. Remedy: {'; or '.join(remedies)}", column=first, row=row,
        remedies=tuple(dict.fromkeys(pairs.values())), columns=tuple(pairs.items()),
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
