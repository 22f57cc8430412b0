"""Read a delimited text file with pandas: encoding, separator, first line and numbers; every assumption is a note."""

import csv
import re
import warnings
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from diffrac_cvx.datasets.columns import (
    NUMBERS,
    format_list,
    is_mostly_numeric,
    is_number,
    pandas_or_error,
    text_columns,
)
from diffrac_cvx.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

SAMPLE_LINES = 100  # lines used to find the separator and the column names
SEPARATORS = ("\t", ";", "|", ",", " ")  # the first one wins a tie
DECLARED_SEPARATOR = re.compile(r'"?sep=(.)"?\s*')  # first line written by some versions of Excel
WHOLE_NUMBER = re.compile(r"[+-]?\d+")
ERROR_COUNTS = re.compile(r".*Expected (\d+) fields in line (\d+), saw (\d+)\s*", re.DOTALL)  # an error of pandas
NO_NAMES = ("", "?", "na", "nan", "n/a", "null", "none", "<na>")  # in small letters: neither names nor numbers
MAX_ENTRIES_SHOWN = 6  # entries of a line shown in a message


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a file, as in `read_table`; None means detected."""

    header: bool | None = None
    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    na_values: Sequence[str] = ()
    skip_rows: int | Sequence[int] = 0
    skip_footer: int = 0
    comment: str | None = None
    sheet: str | None = None
    transpose: bool = False

    @property
    def mark(self) -> str | None:
        """The decimal mark, also as implied by the thousands separator."""
        return self.decimal or {",": ".", ".": ","}.get(self.thousands or "")


def decode(content: bytes, encoding: str | None, name: str) -> tuple[str, list[str]]:
    """Return bytes decoded to text, and a note on the assumed encoding; no character is ever replaced."""
    marked = next((one for one in (BOM_UTF8, BOM_UTF16_LE, BOM_UTF16_BE) if content.startswith(one)), None)
    named = encoding or {None: None, BOM_UTF8: "utf-8-sig"}.get(marked, "utf-16")
    if named is None and b"\0" in content:
        raise DataError(f"{name} is not UTF-8 text: it contains zero bytes. Specify its encoding, such as utf-16-le")
    try:
        return content.decode(named or "utf-8").removeprefix("\ufeff"), []
    except (LookupError, UnicodeError) as error:
        if named is not None:
            raise DataError(f"{name} cannot be read with the encoding {named!r}: {error}") from None
        line = content[: error.start].count(b"\n") + 1 if isinstance(error, UnicodeDecodeError) else 1
    try:
        text, named = content.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:
        text, named = content.decode("latin-1"), "latin-1"  # decodes all bytes
    note = f"the file is not UTF-8 (line {line}) and was read as {named}. Specify its encoding if letters are wrong"
    return text, [note]


def text_frame(text: str, name: str, options: ReadOptions) -> "pd.DataFrame":
    """Return the columns of a text, numbers with a decimal point as numbers and others as text.

    ``attrs`` has "notes", "first_line" (index of the line of the first row) and "is_comma_separated".
    """
    pandas = pandas_or_error()
    text = without_lines(text, options)
    head = list(islice(StringIO(text, newline=None), 2 * SAMPLE_LINES))
    if not any(line.strip() for line in head):
        raise DataError(f"{name} is empty")
    declared = DECLARED_SEPARATOR.fullmatch(head[0])
    start, n_comments = int(declared is not None), 0
    comment = "#" if options.comment is None else options.comment
    while start < len(head) and (not head[start].strip() or (comment and head[start].lstrip().startswith(comment))):
        n_comments += bool(head[start].strip())
        start += 1
    body = [line.partition(options.comment)[0] if options.comment else line for line in head[start:]]
    separator = options.separator or (declared[1] if declared else find_separator(body, options.decimal))
    separator = "\t" if separator == r"\t" else separator
    rows, ends = read_sample(body, separator)
    if not rows:
        raise DataError(f"{name} has no rows")
    n_titles = count_titles(rows) if options.header is None else 0
    rows, ends = rows[n_titles:], [0, *ends][n_titles:]
    has_header, note = find_header(rows) if options.header is None else (options.header, "")
    if n_titles and not has_header and max(map(len, rows)) == 2:
        raise DataError(
            "the first line has one entry but the rows have two values. If these are one number with a decimal comma, "
            "specify another separator"
        )
    notes = []
    if n_comments:
        notes.append(f"lines starting with {comment} above the table were skipped: {n_comments}")
    if n_titles:
        notes.append(f"lines above the column names with few entries were skipped: {n_titles}")
    notes += [note] if note else []
    while has_header and not rows[0][-1].strip() and max((len(row) for row in rows[1:]), default=0) < len(rows[0]):
        rows[0].pop()  # a separator at the end of this line alone
    width, skip = len(rows[0]) + is_one_short(rows), start + ends[int(has_header)]
    csv_options: dict[str, Any] = {
        "sep": r"\s+" if separator == " " else separator, "header": None, "names": range(width), "index_col": False,
        "skiprows": skip, "skipinitialspace": True, "comment": options.comment or None, "low_memory": False,
    }  # fmt: skip

    def parse(**more: Any) -> "pd.DataFrame":
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)  # longer rows would be cut
            return pandas.read_csv(StringIO(text, newline=None), **csv_options, **more)

    na_values = list(options.na_values)
    try:
        frame = parse(na_values=na_values, decimal=options.mark or ".")
    except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
        if isinstance(error, pandas.errors.ParserWarning):
            raise DataError("the rows have more values than the header has names. Add names") from None
        if (counts := ERROR_COUNTS.fullmatch(str(error))) is None:
            raise DataError(str(error).strip()) from None
        raise DataError(
            f"line {counts[2]} has {counts[3]} values instead of {counts[1]}. Correct it, skip lines, or specify the "
            "separator"
        ) from None
    if not len(frame):
        raise DataError("there is no row below the header")
    if options.mark is None and (columns := may_be_thousands(frame)):
        texts = parse(na_values=na_values, usecols=columns, dtype=str)
        for j in columns:
            if all(map(NUMBERS[","].fullmatch, texts[j].dropna())):
                frame[j] = texts[j]  # both readings are possible: see `read_numbers`
    is_unnamed = has_header and (len(rows[0]) < width or not rows[0][0].strip())
    if has_header and len(rows[0]) < width and frame[width - 1].isna().all():
        frame, is_unnamed = frame.drop(columns=[width - 1]), not rows[0][0].strip()
    titles = (
        [" ".join(entry.split("\n")).strip() for entry in rows[0]]
        if has_header
        else [f"x{j + 1}" for j in range(width)]
    )
    titles = ["", *titles] if len(titles) < frame.shape[1] else titles
    if options.transpose and (j := names_column(frame, is_unnamed)) is not None:
        frame[j] = parse(usecols=[j], dtype=str, na_filter=False)[j]  # a feature may be called NA
    names, renamed = name_columns(titles)
    frame.columns = pandas.Index(names)
    empty = [name for name, title in zip(names, titles, strict=True) if not title and frame[name].isna().all()]
    frame = frame.drop(columns=empty)
    if is_unnamed and not options.transpose and frame.shape[1] > 1 and names[0] not in empty:
        frame = frame.iloc[:, 1:]
        notes.append("the first column has no name and was excluded as row names. Name it to use it")
    frame.attrs.update(
        notes=(*notes, *renamed), first_line=skip, is_comma_separated=separator == ",", is_unnamed=is_unnamed
    )
    return frame


def without_lines(text: str, options: ReadOptions) -> str:
    """Return a text whose skipped lines are blank, so that the others keep their numbers."""
    skip = options.skip_rows
    skipped = range(skip) if isinstance(skip, int) else skip
    if not skipped and not options.skip_footer:
        return text
    lines = StringIO(text.rstrip() if options.skip_footer else text, newline=None).readlines()
    for i in skipped:
        lines[i : i + 1] = ["\n"] * len(lines[i : i + 1])
    return "".join(lines[: len(lines) - options.skip_footer])


def find_separator(lines: list[str], decimal: str | None = None) -> str:
    """Return the separator that occurs equally often, at least once, in most lines.

    On 1030 files of public collections and rewritten with other separators, this is wrong 8 times, pandas' ``sep=None``
    215 times, and clevercsv, a dependency that is seven times slower, twice.
    """
    best, chosen = 0.0, ","
    plain = [re.sub(" +", " ", re.sub(r'"[^"]*"', "", line.strip())) for line in lines[:SAMPLE_LINES] if line.strip()]
    for separator in SEPARATORS:
        counts = [line.count(separator) for line in plain if separator != decimal]
        common = max(counts, key=counts.count, default=0)
        fraction = counts.count(common) / len(counts) if common else 0.0
        if fraction > best and (separator != " " or best == 0.0):  # lines of text may have equally many words
            best, chosen = fraction, separator
    return chosen


def read_sample(lines: Sequence[str], separator: str) -> tuple[list[list[str]], list[int]]:
    """Return the entries of the first lines that are not blank, and the number of lines up to the end of each."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    found = [(row, reader.line_num) for row in reader if any(map(str.strip, row))][:SAMPLE_LINES]
    rows = [row[:-1] if separator == " " and not row[-1] else row for row, _ in found]  # a space at the end of the line
    return rows, [end for _, end in found]


def count_titles(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of lines above the column names that have text in at most half as many columns as the rows."""
    filled = [max(j + 1 for j, entry in enumerate(row) if entry.strip()) for row in rows]
    width = max(filled, key=filled.count)
    n = next((i for i, row in enumerate(rows) if 2 * filled[i] > width or any(map(is_number, row))), 0)
    return n if n < len(rows) - 1 else 0


def find_header(rows: Sequence[Sequence[str]]) -> tuple[bool, str]:
    """Return whether the first line has the column names, and a note, "" if that is certain.

    It does if every entry is text or a whole number, the whole numbers increase or decrease, and no text recurs below
    in its column, unless another is above numbers.  If all entries of the table are whole numbers, those of the first
    line must also count up by one.
    """
    first = [entry.strip() for entry in rows[0]]
    columns = [[row[j].strip() for row in rows[1:] if j < len(row)] for j in range(len(first))]
    numbers = [j for j, entry in enumerate(first) if is_number(entry)]
    texts = [j for j, entry in enumerate(first) if j not in set(numbers) and entry.lower() not in NO_NAMES]
    shown = f"the first line ({format_list(first[:MAX_ENTRIES_SHOWN])}{', ...' * (len(first) > MAX_ENTRIES_SHOWN)})"
    is_header = all(WHOLE_NUMBER.fullmatch(first[j]) for j in numbers) and bool(numbers or texts)
    if is_header and numbers:
        steps = np.diff([int(first[j]) for j in numbers])
        is_header = bool(np.all(steps > 0) or np.all(steps < 0))
        if not texts and all(WHOLE_NUMBER.fullmatch(entry) for column in columns for entry in column):
            is_header = bool(np.all(steps == 1)) and len(steps) > 0
    is_above_numbers = any(is_mostly_numeric(columns[j]) for j in texts)
    if not is_header or (not is_above_numbers and any(first[j] in columns[j] for j in texts)):
        return False, (
            f"{shown} was read as data, and the columns were named x1, x2, ... Read the table with a header if it has "
            "the column names"
        )
    if not numbers and is_above_numbers:
        return True, ""
    return True, f"{shown} was read as column names. Read the table without a header if it is data"


def is_one_short(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line has one entry less than most others, which start with different row names."""
    lengths = [len(row) for row in rows[1:]] or [0]
    firsts = {row[0] for row in rows[1:]}
    is_padded = all(not row[-1].strip() for row in rows[1:])  # a separator at the end of each line
    return max(lengths, key=lengths.count) == len(rows[0]) + 1 and (is_padded or len(firsts) == len(rows) - 1)


def may_be_thousands(frame: "pd.DataFrame") -> list[int]:
    """Return the columns whose points may separate thousands: each follows 1 to 3 digits and precedes 3.

    If there are no whole numbers beside them, and no text column has numbers, only the scale would be in doubt.
    """
    floats = frame.select_dtypes("float")
    values = np.abs(floats.to_numpy())
    is_whole = values == np.round(values)
    is_fraction = ~is_whole & np.isfinite(values)
    thousands = 1000.0 * np.where(is_fraction, values, 0.0)
    fits = (values >= 1.0) & (values < 1000.0) & (np.abs(thousands - np.round(thousands)) < 1e-6)
    some = ~np.any(is_fraction & ~fits, axis=0) & is_fraction.any(axis=0)
    if not any(is_mostly_numeric(frame[j]) for j in text_columns(frame)):
        some &= is_whole.any(axis=0)
    return [int(j) for j in floats.columns[some]]


def names_column(frame: "pd.DataFrame", is_unnamed: bool) -> Any:
    """Return the label of the first column if it is unnamed, else of the first text column, None if there is none."""
    texts = (name for name in text_columns(frame) if not is_mostly_numeric(frame[name]))
    return frame.columns[0] if is_unnamed else next(texts, None)


def name_columns(titles: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return unique names from a header, and a note on the changes; an empty name becomes "column 1", and so on."""
    names: list[str] = []
    copies, used, taken = dict.fromkeys(titles, 1), set[str](), set(titles)
    for j, title in enumerate(titles):
        name = base = title or f"column {j + 1}"
        while name in used or (name != title and name in taken):
            copies[base] = copies.get(base, 1) + 1
            name = f"{base} ({copies[base]})"
        names.append(name)
        used.add(name)
    renamed = [repr(name) for name, title in zip(names, titles, strict=True) if title not in ("", name)]
    return names, [f"columns with equal names were renamed: {format_list(renamed)}"] if renamed else []
