"""Read a delimited text file: detect encoding, separator, header and decimal mark, and note every assumption."""

import csv
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import islice, pairwise
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from diffrac_cvx.datasets.columns import MISSING_MARKS, pandas_or_error
from diffrac_cvx.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

NUMBER_PATTERN = re.compile(
    r"[+-]?(\d+([.,]\d*)?|[.,]\d+|\d{1,3}([., '\u2019\u00a0\u202f]\d{3})+([.,]\d+)?)([eE][+-]?\d+)?|[+-]?inf"
)
INTEGER_PATTERN = re.compile(r"\d+")
MAX_CHANCE = 0.01  # a line of integers is a header if, by the other lines, a point has that with lower probability
UNNAMED_COLUMN = "column 1"  # name of an unnamed first column
MAX_ENTRIES_SHOWN = 6  # entries of a line shown in a message
MAX_NOTES = 3  # notes about duplicate names; more are merged into one
SAMPLE_LINES = 200  # lines used to detect the separator and the header
SEPARATORS = ("\t", ";", "|", ",", " ")  # the first one wins a tie
WHITESPACE = r"\s+"  # as a pandas separator
QUOTED_OR_WORD = re.compile(r'"([^"]*)"|(\S+)')
ERROR_LINE = re.compile(r"line (\d+)")  # in an error of pandas
ERROR_COUNTS = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")  # an error of pandas
DECLARED_SEPARATOR = re.compile(r'\s*"?sep=(.)"?\s*')  # first line written by some versions of Excel
DECIMAL_COMMA = re.compile(
    r"[+-]?(0,\d+|\d+,(\d{1,2}|\d{4,})|\d{4,},\d+|\d{1,3}([. '\u2019\u00a0\u202f]\d{3})+,\d+)([eE][+-]?\d+)?"
)
DECIMAL_POINT = re.compile(r"[+-]?\d{1,3}((,\d{3}){2,}(\.\d*)?|(,\d{3})+\.\d*)")
AMBIGUOUS_COMMA = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # 1,234: a decimal comma, or a thousands comma


def find_header(rows: Sequence[Sequence[str]]) -> tuple[bool, str]:
    """Return whether the first line is a header, and a note for the user ("" if the detection is certain).

    Text above numbers is a name.  A line of numbers may also be a header, for example the default names 0, 1, 2, ...
    It is read as a header if it differs from the lines below (it alone has only integers, or it alone counts up by
    one), if one of its texts is not among the repeated texts below, or if it has an empty entry above a column without
    empty entries, as above the index written by pandas.  Lines with another length than the first are ignored.
    """
    first = [entry.strip() for entry in rows[0]]
    columns = list(zip(*(row for row in rows[1:] if len(row) == len(first)), strict=True))
    numbers = [is_number(entry) for entry in first]
    if not any(numbers) or any(
        not number and entry not in MISSING_MARKS and is_mostly_numeric(below)
        for number, entry, below in zip(numbers, first, columns, strict=False)
    ):
        return True, ""
    if columns and (text_is_a_name(first, columns) or (all(numbers) and numbers_are_names(first, columns))):
        return True, (
            f"the first line ({format_entries(first)}) was read as column names. Read the table without a header if it "
            "is data"
        )
    if all(map(INTEGER_PATTERN.fullmatch, first)) and len(set(first)) == len(first):
        return False, (
            f"the first line ({format_entries(first)}) was read as data, and the columns were named x1, x2 and so on. "
            "Read the table with a header if the line contains names"
        )
    return False, "no header was found: the columns were named x1, x2, ..."


def text_is_a_name(first: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    """Return whether a text of the first line is new above repeated texts, and none occurs below."""
    found = False
    for entry, below in zip(first, columns, strict=True):
        if entry == "" and below and all(value.strip() for value in below):
            found = True
        elif not is_number(entry) and entry not in MISSING_MARKS and not is_mostly_numeric(below):
            values = {value.strip() for value in below}
            if entry in values:
                return False
            found = found or len(values) <= len(below) / 2
    return found


def numbers_are_names(first: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    """Return whether a line of distinct integers differs from the points below."""
    if not all(map(INTEGER_PATTERN.fullmatch, first)) or len(set(first)) < len(first):
        return False
    probabilities = [(sum(map(is_integer_text, below)) + 1) / (len(below) + 2) for below in columns]
    if prod(probabilities) < MAX_CHANCE:
        return True
    return len(first) > 2 and is_consecutive(first) and not any(map(is_consecutive, zip(*columns, strict=True)))


def is_consecutive(row: Sequence[str]) -> bool:
    """Return whether the entries are consecutive integers."""
    if not all(map(is_integer_text, row)):
        return False
    numbers = [int(entry) for entry in row]
    return all(after == before + 1 for before, after in pairwise(numbers))


def is_mostly_numeric(column: Sequence[str]) -> bool:
    """Return whether at least half of the non-missing entries are numbers."""
    present = [entry for entry in column if entry.strip() not in MISSING_MARKS]
    return bool(present) and 2 * sum(map(is_number, present)) >= len(present)


def is_number(text: str) -> bool:
    """Return whether a text is a number, with any decimal and thousands marks."""
    return NUMBER_PATTERN.fullmatch(text.strip()) is not None


def is_integer_text(text: str) -> bool:
    """Return whether a text is an integer without marks."""
    return INTEGER_PATTERN.fullmatch(text.strip()) is not None


def format_entries(row: Sequence[str]) -> str:
    """Return the first entries of a line as text."""
    return ", ".join(row[:MAX_ENTRIES_SHOWN]) + (", ..." if len(row) > MAX_ENTRIES_SHOWN else "")


def name_columns(first: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return unique names from a header, and notes on the changes; an empty name becomes "column 1", and so on."""
    names: list[str] = []
    notes: list[str] = []
    used: set[str] = set()
    given, copies = set(first), dict.fromkeys(first, 1)
    for j, entry in enumerate(first):
        name = other = entry.strip() or f"column {j + 1}"
        while other in used or (other is not name and other in given):
            copies[name] = copies.get(name, 1) + 1
            other = f"{name} ({copies[name]})"
        if other is not name:
            notes.append(f"two columns are named {name!r}: the second was renamed {other!r}")
        names.append(other)
        used.add(other)
    if len(notes) > MAX_NOTES:
        one = next(name for name, entry in zip(names, first, strict=True) if entry.strip() not in ("", name))
        notes = [f"{len(notes)} columns with duplicate names were renamed, for example {one!r}"]
    return names, notes


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a file, as in `read_table`; None means detected."""

    header: bool | None = None
    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    transpose: bool = False


class Layout(NamedTuple):
    """Detected layout of a text file."""

    separator: str
    names: list[str] | None  # column names
    skip: int  # lines before the data
    notes: list[str]  # assumptions, as sentences


def text_frame(content: bytes, name: str, reading: ReadOptions) -> "pd.DataFrame":
    """Return the columns of a text file, non-numeric ones as text; ``attrs`` has "notes" and "decimal"."""
    text, notes = decode(content, reading.encoding, name)
    if not text.strip():
        raise DataError(f"{name} is empty")
    layout = find_layout(text, reading, name)
    frame = parse_text(text, layout, reading.decimal or ".")
    decimal, decimal_note = (reading.decimal, "") if reading.decimal else find_decimal(frame, layout.separator)
    if decimal == "," and reading.decimal is None:
        frame = parse_text(text, layout, ",")
    frame.attrs.update(notes=tuple(filter(None, (*notes, *layout.notes, decimal_note))), decimal=decimal)
    return frame


def parse_text(text: str, layout: Layout, decimal: str) -> "pd.DataFrame":
    """Return the columns as parsed by pandas."""
    pandas = pandas_or_error()
    options: dict[str, Any] = {"na_values": MISSING_MARKS, "keep_default_na": False, "skipinitialspace": True}
    options |= {"sep": WHITESPACE if layout.separator == " " else layout.separator, "header": None, "index_col": False}
    stream = StringIO(text, newline="")
    for _ in range(layout.skip):
        next(stream)
    try:
        frame = pandas.read_csv(stream, decimal=decimal, low_memory=False, **options)
    except pandas.errors.EmptyDataError:
        raise DataError("there is no row below the header") from None
    except pandas.errors.ParserError as error:
        message = str(error).strip().rpartition("C error: ")[2]
        counts = ERROR_COUNTS.fullmatch(message)
        if counts is not None:
            expected, line, seen = counts[1], int(counts[2]) + layout.skip, counts[3]
            raise DataError(
                f"line {line} has {seen} values instead of {expected}. Correct it, or specify the separator"
            ) from None
        raise DataError(ERROR_LINE.sub(lambda found: f"line {int(found[1]) + layout.skip}", message)) from None
    if layout.names is None:
        frame.columns = pandas.Index([f"x{j + 1}" for j in range(frame.shape[1])])
        return frame
    return name_frame(frame, layout.names)


def name_frame(frame: "pd.DataFrame", names: list[str]) -> "pd.DataFrame":
    """Return a frame with the names of a header; empty columns without a name are dropped."""
    pandas = pandas_or_error()
    width = frame.shape[1]
    extra = [j for j in range(len(names), width) if frame[j].notna().any()]
    if extra or len(names) > width:
        more = "more" if extra else "fewer"
        raise DataError(f"the rows have {more} values ({width}) than the header has names ({len(names)})")
    frame = frame.iloc[:, : len(names)]
    frame.columns = pandas.Index(names)
    nameless = [name for j, name in enumerate(names) if name == f"column {j + 1}" and frame[name].isna().all()]
    return frame.drop(columns=nameless)


def decode(content: bytes, encoding: str | None, name: str) -> tuple[str, list[str]]:
    """Return bytes decoded to text, and a note on the assumed encoding; no character is ever replaced."""
    if encoding is not None:
        try:
            return content.decode(encoding).removeprefix("\ufeff"), []
        except (LookupError, UnicodeError) as error:
            raise DataError(f"{name} cannot be read with the encoding {encoding!r}: {error}") from None
    if (coding := declared_encoding(content)) is not None:
        try:
            return content.decode(coding), []
        except UnicodeDecodeError as error:
            raise DataError(f"{name} starts like {coding} text but cannot be decoded: {error}") from None
    if b"\0" in content:
        raise DataError(f"{name} is not a text file: it contains zero bytes")
    try:
        return content.decode("utf-8"), []
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
    try:
        text, coding = content.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:
        text, coding = content.decode("latin-1"), "latin-1"  # decodes all bytes
    note = f"the file is not UTF-8 (line {line}) and was read as {coding}. Specify its encoding if letters are wrong"
    return text, [note]


def declared_encoding(content: bytes) -> str | None:
    """Return the encoding indicated by the first bytes: by a byte order mark, or by zeros at every other position."""
    for start, coding in ((BOM_UTF8, "utf-8-sig"), (BOM_UTF16_LE, "utf-16"), (BOM_UTF16_BE, "utf-16")):
        if content.startswith(start):
            return coding
    first = content[: 2 * SAMPLE_LINES]
    even, odd = first[::2].count(0), first[1::2].count(0)
    return None if max(even, odd) <= len(first) / 4 else "utf-16-le" if odd > even else "utf-16-be"


def find_layout(text: str, reading: ReadOptions, name: str) -> Layout:
    """Return the separator, the header and the start of the data."""
    lines = [line.rstrip("\r\n") for line in islice(StringIO(text, newline=""), 4 * SAMPLE_LINES)]
    declared = DECLARED_SEPARATOR.fullmatch(lines[0])
    skip = int(declared is not None)
    while skip < len(lines) and not lines[skip].strip():
        skip += 1
    comments = skip
    while skip < len(lines) and lines[skip].lstrip().startswith("#"):
        skip += 1
    body = lines[skip:]
    if not any(line.strip() for line in body):
        raise DataError(f"{name} has no rows")
    separator = reading.separator or (declared[1] if declared else find_separator(body, reading.decimal))
    separator = "\t" if separator == r"\t" else separator
    rows = list(islice(split_lines(body, separator), SAMPLE_LINES))
    n_titles = count_titles(rows) if reading.header is None and comments == skip else 0
    titles = note_of_titles(rows[:n_titles])
    if n_titles:
        start = [i for i, line in enumerate(body) if line.strip()][n_titles]
        body, rows, skip, comments = body[start:], rows[n_titles:], skip + start, skip + start
    named = reading.header is None and comments < skip
    layout = comment_header(lines[skip - 1], rows, separator, skip) if named else None
    if layout is None:
        layout = header_layout(body, rows, separator, skip, reading)
        if comments < skip:
            layout.notes.insert(0, f"comment lines (starting with #) were skipped: {skip - comments}")
        layout.notes.insert(0, titles)
    return layout


def count_titles(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of lines above the header with a single text, such as a title."""
    filled = [[entry for entry in row if entry.strip()] for row in rows]
    if max(map(len, filled)) < 3:
        return 0
    above = next(i for i, row in enumerate(filled) if len(row) > 1)
    return 0 if any(is_number(row[0]) for row in filled[:above] if row) else above


def note_of_titles(rows: Sequence[Sequence[str]]) -> str:
    """Return the note on skipped lines above the header, "" if there are none."""
    shown = "; ".join("".join(row).strip() for row in rows)
    return f"text above the header was skipped: {shown}" if shown else ""


def header_layout(body: list[str], rows: list[list[str]], separator: str, skip: int, reading: ReadOptions) -> Layout:
    """Return the layout if the first non-empty line may be the header."""
    found, note = find_header(rows) if reading.header is None else (reading.header, "")
    if reading.header is None and not found and is_quoted_header(body, len(rows[0])):
        found, note = True, ""
    if not found:
        return Layout(separator, None, skip, [note])
    names, notes = name_columns(rows[0])
    width = max((len(row) for row in rows[1:]), default=len(names))
    longer = [row for row in rows[1:] if len(row) == width]
    if width == 2 and len(names) == 1:
        row_names(names)
    if width == len(names) + 1 and 2 * len(longer) >= len(rows) - 1 and all(row[-1].strip() for row in longer):
        firsts = [row[0] for row in longer]
        if len(set(firsts)) < len(firsts) or (any(map(is_number, firsts)) and not is_consecutive(firsts)):
            raise DataError("the rows have more values than the header has names")
        names, notes, note = row_names(names), [*notes, note], ""
    first = next(i for i, line in enumerate(body) if line.strip())
    lines = csv.reader(body[first:], delimiter=separator)
    next(lines)
    return Layout(separator, names, skip + first + lines.line_num, [note, *notes])


def row_names(names: list[str]) -> list[str]:
    """Return the names with one added for the first column, the row names or numbers, which R writes without a name."""
    if len(names) == 1:
        raise DataError(
            "the header has one name but the rows have two values. If these are one number with a decimal comma, "
            "specify the decimal mark"
        )
    return [UNNAMED_COLUMN, *names]


def comment_header(comment: str, rows: list[list[str]], separator: str, skip: int) -> Layout | None:
    """Return the layout if a line starting with # has a name for each column, none of them a number."""
    (last,) = split_lines([comment.lstrip().lstrip("#")], separator)
    if len(last) != len(rows[0]) or any(map(is_number, last)) or not any(map(is_number, rows[0])):
        return None
    names, notes = name_columns(last)
    notes.append(f"the column names were read from line {skip}, which starts with #")
    return Layout(separator, names, skip, notes)


def find_separator(lines: list[str], decimal: str | None = None) -> str:
    """Return the separator for which most lines have the same number of values, more than one."""
    best, chosen = 0.0, ","
    for separator in SEPARATORS:
        if separator == decimal:
            continue
        lengths = [len(row) for row in islice(split_lines(lines, separator), SAMPLE_LINES)]
        most_common = max(lengths, key=lengths.count)
        fraction = lengths.count(most_common) / len(lengths) if most_common > 1 else 0.0
        if separator == " ":  # lines of text may have equally many words
            fraction = fraction if best == 0.0 else 0.0
        if fraction > best:
            best, chosen = fraction, separator
    return chosen


def split_lines(lines: Iterable[str], separator: str) -> Iterator[list[str]]:
    """Yield the values of each non-empty line."""
    present = (line for line in lines if line.strip())
    if separator == " ":
        yield from ([quoted or plain for quoted, plain in QUOTED_OR_WORD.findall(line)] for line in present)
        return
    yield from csv.reader(present, delimiter=separator, skipinitialspace=True)


def is_quoted_header(lines: list[str], width: int) -> bool:
    """Return whether all values of the first line are quoted and those of the next lines are not."""
    first, *others = [line for line in lines if line.strip()][:3]
    return first.count('"') >= 2 * width and bool(others) and all(line.count('"') < 2 * width for line in others)


def find_decimal(frame: "pd.DataFrame", separator: str) -> tuple[str, str]:
    """Return the decimal mark and a note: it is a comma if some number cannot be read otherwise."""
    texts = [text for column in text_columns(frame) for text in column]
    comma, point = (any(map(pattern.fullmatch, texts)) for pattern in (DECIMAL_COMMA, DECIMAL_POINT))
    if comma != point:
        return (",", "numbers were read with a decimal comma") if comma else (".", "")
    doubtful = next((text for text in texts if AMBIGUOUS_COMMA.fullmatch(text)), None)
    if doubtful is None:
        return ".", ""
    if point or separator == ",":
        return ".", f"{doubtful} was read with a thousands comma. Specify the decimal mark if it is the comma"
    return ",", f"{doubtful} was read with a decimal comma. Specify the decimal mark if it is the point"


def text_columns(frame: "pd.DataFrame") -> Iterator[list[str]]:
    """Yield the distinct texts of each text column in which at least half of them are numbers with marks."""
    for _, column in frame.items():
        if column.dtype.kind in "biuf":
            continue
        different = dict.fromkeys(np.asarray(column.array, dtype=object))
        texts = [text.strip() for text in different if isinstance(text, str)]
        if texts and 2 * sum(map(is_number, texts)) >= len(texts):
            yield texts
