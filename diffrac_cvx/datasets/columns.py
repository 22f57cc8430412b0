"""Columns of a table as numbers: decimal marks by column, one-hot encoding, and errors on the others."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
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
MISSING_TEXTS = frozenset(  # those of pandas, and its missing values as text
    [
        "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
        "NULL", "NaN", "NaT", "None", "n/a", "nan", "null",
    ]
)  # fmt: skip
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
    texts = list(filter(None, clean_texts(islice(entries, SAMPLE_ENTRIES))))
    return bool(texts) and (plain_numbers(texts) is not None or 2 * sum(map(is_number, texts)) >= len(texts))


def text_columns(frame: "pd.DataFrame") -> list[Any]:
    """Return the labels of the columns that are not numbers."""
    return [name for name, dtype in frame.dtypes.items() if dtype.kind not in "biuf"]


def clean_texts(entries: Iterable[Any], missing: frozenset[str] = MISSING_TEXTS) -> list[str | None]:
    """Return entries as text trimmed on both sides, None if missing."""
    return [None if (text := str(entry).strip()) in missing else text for entry in entries]


def read_numbers(
    frame: "pd.DataFrame", mark: str | None, na_values: Sequence[str] = (), ignored: Iterable[str] = ()
) -> "pd.DataFrame":
    """Return a frame whose columns are numbers, or text trimmed on both sides with None for missing values.

    Each column has the decimal mark, if not given by ``mark``, with which all its entries are numbers.  If both are
    possible, as for 1.204, it has the mark of the other columns; if they do not decide, 1.204 is less than two.
    """
    attrs, frame.attrs = frame.attrs, {}  # else copied with each column
    ignored, missing = set(ignored), MISSING_TEXTS.union(na_values)
    texts = {name: clean_texts(frame[name], missing) for name in text_columns(frame)}
    plain = {name: plain_numbers(entries) for name, entries in texts.items()}
    possible, marked = dict[str, list[str]](), dict[str, str]()  # decimal marks, and the first entry with one
    for name, entries in texts.items():
        if name in ignored:
            possible[name], marked[name] = ["."] if plain[name] is not None else [], ""
            continue
        marked[name] = next((text for text in entries if text and ("." in text or "," in text)), "")
        possible[name] = [
            one
            for one in mark or ".,"
            if (one == "." and plain[name] is not None) or all(map(NUMBERS[one].fullmatch, filter(None, entries)))
        ]
    certain = {marks[0] for name, marks in possible.items() if len(marks) == 1 and marked[name]}
    unclear = [name for name, marks in possible.items() if len(marks) == 2 and marked[name]]
    own = "." if attrs.get("is_comma_separated") else ""
    for name in unclear:
        possible[name] = list(certain) if len(certain) == 1 else [own or re.findall("[.,]", marked[name])[0]]
    doubtful = [
        name
        for name in unclear
        if (len(certain) != 1 or possible[name][0] not in marked[name])
        and (possible[name] == [","] or any("." not in text for text in filter(None, texts[name])))  # else usual
    ]
    commas = [repr(name) for name in marked if possible[name] == [","] and marked[name] and name not in unclear]
    pandas, notes = pandas_or_error(), list[str]()
    if commas and mark is None:
        notes.append(f"numbers with a decimal comma: {format_list(commas)}. Specify the decimal mark if this is wrong")
    if doubtful:
        text, value = marked[doubtful[0]], to_number(marked[doubtful[0]], possible[doubtful[0]][0])
        more = f", and so were {len(doubtful) - 1} more columns" if len(doubtful) > 1 else ""
        notes.append(
            f"{text} in column {doubtful[0]!r} was read as {value:.12g}{more}. Specify the decimal mark or the "
            "thousands separator if this is wrong"
        )
    columns, codes = dict[str, Any](), [to_number(text, mark or ".") for text in na_values if is_number(text)]
    for name in frame.columns:
        if name not in texts:
            columns[name] = frame[name].to_numpy(dtype=float, na_value=np.nan)
        elif possible[name] == ["."] and plain[name] is not None:
            columns[name] = plain[name]
        elif possible[name]:
            columns[name] = np.array([to_number(text, possible[name][0]) for text in texts[name]])
        else:
            columns[name] = pandas.Series(texts[name], frame.index, dtype=object)
            continue
        if codes:
            columns[name] = np.where(np.isin(columns[name], codes), np.nan, columns[name])
    numbers = pandas.DataFrame(columns, frame.index, frame.columns)
    numbers.attrs = {**attrs, "mark": mark, "notes": (*attrs["notes"], *notes)}
    return numbers


def plain_numbers(texts: Sequence[str | None]) -> Array | None:
    """Return texts as numbers with a decimal point, NaN for None, or None if one is another text."""
    try:
        return None if "_" in "".join(filter(None, texts)) else np.array(texts, dtype=float)
    except ValueError:
        return None


def to_number(text: str | None, mark: str) -> float:
    """Return a text that matches ``NUMBERS[mark]`` as a number, NaN for None."""
    return np.nan if text is None else float(re.sub(GROUPS[mark], "", text).replace(",", ".").replace("\u2212", "-"))


def find_categories(name: str, column: "pd.Series") -> tuple[str, ...]:
    """Return the sorted categories of a column, 2 to 50."""
    texts = sorted(set(filter(None, category_texts(column))), key=str if column.dtype == object else float)
    if not 2 <= len(texts) <= MAX_CATEGORIES:
        raise drop_error(
            f"column {name!r} has {len(texts)} distinct values; one-hot encoding needs 2 to {MAX_CATEGORIES}. Drop it",
            [name],
        )
    return tuple(texts)


def category_texts(column: "pd.Series") -> list[str | None]:
    """Return the category of each row as text, None if missing; of numbers without a decimal point if whole."""
    if column.dtype == object:
        return list(column)
    return [None if value != value else f"{value:g}" for value in column.astype(float)]


def feature_names(name: str, categories: Sequence[str]) -> list[str]:
    """Return the names of the binary columns of a categorical column: one per category, or the second of two."""
    return [f"{name}={value}" for value in (categories[1:] if len(categories) == 2 else categories)]


def category_columns(categories: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the categorical column of each one-hot encoded feature."""
    return {made: name for name, values in categories.items() for made in feature_names(name, values)}


def choose_categories(frame: "pd.DataFrame", one_hot: Sequence[str] | str, labeled: bool) -> dict[str, tuple[str, ...]]:
    """Return the categories of the columns to one-hot encode; raise DataError on all other text columns."""
    texts = text_columns(frame)
    if one_hot == "all":
        one_hot = [name for name in texts if 2 <= frame[name].nunique() <= min(MAX_CATEGORIES, len(frame) // 2)]
    if wrong := [name for name in texts if name not in set(one_hot)]:
        raise text_error(frame, wrong, labeled)
    return {name: find_categories(name, frame[name]) for name in frame.columns if name in set(one_hot)}


def encode_columns(frame: "pd.DataFrame", categories: Mapping[str, Sequence[str]]) -> tuple[Array, tuple[str, ...]]:
    """Return the features of a table and their names; in binary columns, NaN for missing and unknown categories."""
    if not categories:
        return frame.to_numpy(dtype=float), tuple(frame.columns)
    count = len(category_columns(categories))
    require_memory(16.0 * len(frame) * count, f"{count} binary columns", "one-hot encode fewer columns")
    parts, names = list[Array](), list[str]()
    for name, column in frame.items():
        known = categories.get(name, ())
        names += feature_names(name, known) or [name]
        if known:
            found = pandas_or_error().Index(known, dtype=object).get_indexer(category_texts(column))[:, None]
            binary = np.where(found < 0, np.nan, found == np.arange(len(known)))
        parts.append((binary[:, 1:] if len(known) == 2 else binary) if known else column.to_numpy(dtype=float))
    return np.column_stack(parts), tuple(names)


def text_error(frame: "pd.DataFrame", wrong: Sequence[str], labeled: bool) -> DataError:
    """Return the DataError that names all text columns among the features, and the remedies."""
    entries, bad, stray = {name: list(frame[name]) for name in wrong}, dict[str, list[int]](), list[str]()
    for name, texts in entries.items():
        present = [i for i, text in enumerate(texts) if text]
        marks = frame.attrs["mark"] or ".,"
        bad[name] = min(([i for i in present if not NUMBERS[mark].fullmatch(texts[i])] for mark in marks), key=len)
        is_mixed = all(is_number(texts[i]) for i in present)
        stray += [name] if is_mixed or 2 * len(bad[name]) < len(present) else []
    first, row, rows = wrong[0], bad[wrong[0]][0], sorted({i for name in stray for i in bad[name]})
    values = {name: list(dict.fromkeys(entries[name][i] for i in bad[name])) for name in wrong}
    if len(wrong) == 1:
        more = f" and {len(bad[first]) - 1} more" if len(bad[first]) > 1 else ""
        message = f"column {first!r} contains text: {entries[first][row]!r} in {format_row(row)}{more}"
    else:
        shown = [f"{name!r} ({format_list(map(repr, values[name][:MAX_VALUES_SHOWN]))})" for name in wrong]
        message = f"{len(wrong)} columns are not numeric: {format_list(shown)}; the first text is in {format_row(row)}"
    pairs = {name: "drop" for name in wrong if name not in stray}
    texts = list(dict.fromkeys(text for name in stray for text in values[name]))
    has_numbers, n_rows, remedies = any(map(is_number, texts)), len(rows), list[str]()
    if pairs:
        remedies += ["drop the text columns", "one-hot encode them, but never the outcome"]
        remedies += [] if labeled else ["use one of them as the label"]
        if first == frame.columns[0] and first in pairs and len(set(entries[first])) == len(frame):
            remedies.append(f"if {first!r} names features, transpose the table")
    elif n_rows <= MAX_LINES and not has_numbers and rows == list(range(n_rows)):
        line = frame.attrs.get("first_line", 0) + 1  # counted from 1
        pairs, remedies = {f"{line}-{line + n_rows - 1}": "skip_rows"}, ["skip these lines, if they are units"]
    elif n_rows <= MAX_LINES and not has_numbers and rows == list(range(len(frame) - n_rows, len(frame))):
        pairs, remedies = {str(n_rows): "skip_footer"}, ["skip lines at the end, if they are totals"]
    if has_numbers:
        remedies.append("write all numbers of a column with one decimal mark")
    elif stray and set(pairs.values()) <= {"drop"}:
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
