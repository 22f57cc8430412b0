"""Read a delimited text as columns of text: encoding, separator and first line; every assumption is a note."""

import csv
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np

from diffrac_cvx.datasets.columns import MISSING_TEXTS, format_list, is_mostly_numeric, is_number, pandas_or_error
from diffrac_cvx.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

SAMPLE_LINES = 100  # lines used to find the separator and the column names
SEPARATORS = ("\t", ";", "|", ",", " ")  # the first one wins a tie
WHOLE_NUMBER = re.compile(r"[+-]?\d+")
NO_NAMES = {"?", *map(str.lower, MISSING_TEXTS)}  # in small letters: neither names nor numbers
END_OF_TEXT = "\x03"  # a last line, which no open quotation contains
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
    """Return the columns of a delimited text, as text trimmed on both sides.

    ``attrs`` has "notes", "first_line" (index of the line of the first row), "is_comma_separated" and "is_unnamed".
    """
    lines = StringIO(text.rstrip() if options.skip_footer else text, newline=None).readlines()
    skipped = range(options.skip_rows) if isinstance(options.skip_rows, int) else options.skip_rows
    lines = ["" if i in skipped else line for i, line in enumerate(lines[: len(lines) - options.skip_footer])]
    comment = "#" if options.comment is None else options.comment
    heads = map(str.lstrip, lines)
    start = next((i for i, head in enumerate(heads) if head and not (comment and head.startswith(comment))), len(lines))
    body = [line.partition(options.comment)[0] if options.comment else line for line in lines[start:]]
    separator = options.separator or find_separator(body, options.decimal)
    rows, ends = split_lines(body, "\t" if separator == r"\t" else separator)
    filled = [i for i, row in enumerate(rows[: 2 * SAMPLE_LINES]) if any(row)][:SAMPLE_LINES]
    if not filled:
        raise DataError(f"{name} has no rows" if any(map(str.strip, lines)) else f"{name} is empty")
    n_titles = count_titles([rows[i] for i in filled]) if options.header is None else 0
    sample = [rows[i] for i in filled[n_titles:]]
    has_header, note = find_header(sample) if options.header is None else (options.header, "")
    if n_titles and not has_header and max(map(len, sample)) == 2:
        raise DataError(
            "the first line has one entry but the rows have two values. If these are one number with a decimal comma, "
            "specify another separator"
        )
    first, width = filled[n_titles] + has_header, len(sample[0]) + is_one_short(sample)
    if first == len(rows):
        raise DataError("there is no row below the header")
    for row, end in zip(rows[first:], ends[first:], strict=True):
        if any(row[width:]):
            raise DataError(
                f"line {start + end} has {len(row)} values instead of {width}. Correct it, skip lines, or specify the "
                "separator"
            )
    cells = np.array([row[:width] + [""] * (width - len(row)) for row in rows[first:]], dtype=object)
    titles = [" ".join(entry.split("\n")) for entry in sample[0]] if has_header else [f"x{j + 1}" for j in range(width)]
    titles = [""] * (width - len(titles)) + titles
    names, renamed = name_columns(titles)
    frame = pandas_or_error().DataFrame(cells, columns=names, dtype=object)
    used = [j for j, title in enumerate(titles) if title or any(cells[:, j])]
    is_unnamed = not titles[0]
    n_comments = sum(bool(line.strip()) for line in lines[:start])
    notes = {
        f"lines starting with {comment} above the table were skipped: {n_comments}": n_comments,
        f"lines above the column names with few entries were skipped: {n_titles}": n_titles,
        note: note,
    }
    if is_unnamed and not options.transpose and len(used) > 1 and used[0] == 0:
        used = used[1:]
        notes["the first column has no name and was excluded as row names. Name it to use it"] = True
    frame = frame.iloc[:, used]
    frame.attrs.update(
        notes=(*(text for text, is_needed in notes.items() if is_needed), *renamed),
        first_line=start + ends[first] - 1, is_comma_separated=separator == ",", is_unnamed=is_unnamed,
    )  # fmt: skip
    return frame


def split_lines(lines: Sequence[str], separator: str) -> tuple[list[list[str]], list[int]]:
    """Return the trimmed entries of the lines that are not blank, and the number of lines up to the end of each."""
    if separator == " ":
        lines = [" ".join(line.split("\t")).strip() for line in lines]
    reader = csv.reader([*lines, "\n", END_OF_TEXT], delimiter=separator, skipinitialspace=True)
    found = [(list(map(str.strip, row)), reader.line_num) for row in reader if len(row) > 1 or any(map(str.strip, row))]
    if found[-1][0] != [END_OF_TEXT]:
        raise DataError(f"a quotation that starts in {found[-1][0][-1][:40]!r} is not closed. Close or remove it")
    return [row for row, _ in found[:-1]], [end for _, end in found[:-1]]


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


def count_filled(row: Sequence[str]) -> int:
    """Return the number of entries up to the last that is not empty."""
    return next((j for j in range(len(row), 0, -1) if row[j - 1]), 0)


def count_titles(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of lines above the column names that have text in at most half as many columns as the rows."""
    filled = list(map(count_filled, rows))
    width = max(filled, key=filled.count)
    n = next((i for i, row in enumerate(rows) if 2 * filled[i] > width or any(map(is_number, row))), 0)
    return n if n < len(rows) - 1 else 0


def find_header(rows: Sequence[Sequence[str]]) -> tuple[bool, str]:
    """Return whether the first line has the column names, and a note, "" if that is certain.

    It does if every entry is text or a whole number, the whole numbers increase or decrease, and no text recurs below
    in its column, unless another is above numbers.  If all entries of the table are whole numbers, those of the first
    line must also count up by one.
    """
    first = rows[0]
    columns = [[row[j] for row in rows[1:] if j < len(row)] for j in range(len(first))]
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
    lengths = list(map(count_filled, rows[1:])) or [0]
    firsts = {row[0] for row in rows[1:]}
    return max(lengths, key=lengths.count) == len(rows[0]) + 1 and len(firsts) == len(rows) - 1


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
