"""Read the columns of a file: detects format, encoding, separator and header, and notes every assumption."""

import csv
import gzip
import re
import zipfile
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO, StringIO
from itertools import takewhile
from pathlib import Path

import numpy as np

from diffrac_cvx.datasets.columns import (
    MISSING_TEXTS,
    RawTable,
    format_list,
    is_mostly_numeric,
    is_number,
    name_columns,
)
from diffrac_cvx.datasets.real import read_libsvm
from diffrac_cvx.errors import DataError, ResourceError, sentence
from diffrac_cvx.machine.memory import available_memory, require_memory
from diffrac_cvx.points.checks import did_you_mean

SUFFIXES = (".csv", ".tsv", ".txt", ".dat", ".data", ".libsvm", ".svm", ".xlsx", ".parquet", ".gz")
MEMORY_COPIES = 4  # copies of a table in memory while it is read
MAX_UNPACKED = 2**30  # bytes
EXCEL_EXPANSION = 4  # memory of the cells relative to the text of a sheet
SAMPLE_LINES = 100  # lines used to find the separator and the column names
SEPARATORS = ("\t", ";", "|", ",", " ")  # the first one wins a tie
WHOLE_NUMBER = re.compile(r"[+-]?\d+")
NO_NAMES = {"?", *map(str.lower, MISSING_TEXTS)}  # lower-case texts that are neither names nor numbers
COMMENT_STARTS = "!%^"  # besides "#"; at least two lines above the table, as in a GEO series matrix
SIGNATURES = {b"PK\3\4": ".xlsx", b"PAR1": ".parquet", b"\x1f\x8b": ".gz", b"\xd0\xcf\x11\xe0": ".xls"}
END_OF_TEXT = "\x03"  # marks the last line, unless an open quotation continues


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
    def marks(self) -> str:
        """The possible decimal marks, also as implied by the thousands separator."""
        return self.decimal or {",": ".", ".": ","}.get(self.thousands or "", ".,")


def read_file(source: str | Path | bytes, name: str, options: ReadOptions) -> RawTable:
    """Return the columns of a file; every error names the file."""
    if not isinstance(source, bytes) and not Path(source).is_file():
        folder = Path(source).parent
        files = [file.name for file in folder.iterdir() if file.suffix in SUFFIXES] if folder.is_dir() else []
        raise DataError(f"{source} is not a file; looked in {Path.cwd()}{did_you_mean(Path(source).name, files)}")
    suffix = Path(name).suffix.lower()
    try:
        if suffix not in SUFFIXES:
            raise DataError(f"unsupported extension {suffix!r}. Use one of {', '.join(SUFFIXES)}")
        content = source if isinstance(source, bytes) else Path(source).read_bytes()
        if suffix == ".gz":
            with gzip.open(BytesIO(content)) as file:
                content = file.read((limit := unpacked_limit()) + 1)
            if len(content) > limit:
                raise ResourceError(f"it unpacks to more than {limit} bytes. Unpack it yourself, or use a part of it")
            suffix = Path(Path(name).stem).suffix.lower()
        require_format(content, suffix)
        if suffix in (".libsvm", ".svm"):
            X, y = read_libsvm(content)
            return name_columns([""] * X.shape[1] + ["y"], [*X.T, y], label="y")
        if suffix == ".parquet":
            return read_parquet(content)
        if suffix == ".xlsx":
            return read_excel(content, options)
        text, notes = decode(content, options.encoding)
        table = read_text(text, options)
        return replace(table, notes=(*notes, *table.notes))
    except DataError as error:
        raise DataError(f"{name} cannot be read: {sentence(error)}") from None
    except MemoryError as error:
        reason = error if isinstance(error, ResourceError) else "it does not fit in memory. Use a part of it"
        raise ResourceError(f"{name} cannot be read: {sentence(reason)}") from None
    except ImportError as error:
        raise DataError(f"{name} needs {error.name}. Run pip install 'diffrac-cvx[app]', or save it as CSV.") from None
    except Exception as error:  # file readers raise many kinds of errors on a damaged file
        message = " ".join(str(error).split()) or "unexpected end of file"
        hint = " If it is text, rename it to .csv." if suffix in SIGNATURES.values() else ""
        raise DataError(f"{name} cannot be read as a {suffix} file: {sentence(message)}{hint}") from None


def transpose_table(table: RawTable, drop: Sequence[str]) -> tuple[RawTable, list[str]]:
    """Return the transposed table, and the names in ``drop`` that are not columns of the file.

    The feature names are in the first column if it has no name, otherwise in the first text column.  Other text columns
    are excluded, because they would become points with text in every feature.
    """
    columns = {name: column for name, column in table.columns.items() if name not in drop}
    texts = [name for name, column in columns.items() if not is_mostly_numeric(column)]
    titles = table.row_names
    if titles is None:
        titles = columns[texts.pop(0)] if texts else [""] * max(map(len, columns.values()), default=0)
    points = {name: column for name, column in columns.items() if name not in texts and column is not titles}
    if not points:
        raise DataError("no column is numeric, so the transposed table would have no points.")
    is_numeric = all(isinstance(column, np.ndarray) and column.dtype.kind in "biuf" for column in points.values())
    cells = np.array(list(points.values()), dtype=float if is_numeric else object)
    notes = [f"the table was transposed: {len(points)} points ({format_list(points)}), {len(titles)} features"]
    if texts:
        notes.append(f"excluded text columns: {format_list(map(repr, texts))}")
    made = name_columns([str(title or "").strip() for title in titles], cells.T, [*table.notes, *notes])
    return replace(made, row_names=list(points), mark=table.mark), [name for name in drop if name not in table.columns]


# Formats


def unpacked_limit(expansion: int = 1) -> int:
    """Return the largest number of unpacked bytes to read; the columns and their copies must fit in memory."""
    return int(min(MAX_UNPACKED, available_memory() / (MEMORY_COPIES * expansion)))


def require_format(content: bytes, suffix: str) -> None:
    """Raise DataError if the first bytes of a file are those of a format with another extension."""
    found = next((kind for start, kind in SIGNATURES.items() if content.startswith(start)), suffix)
    if found == ".xls":
        raise DataError("it is a .xls file. Save it as .xlsx or .csv")
    if found != suffix:
        other = " or another zip archive" if found == ".xlsx" else ""
        raise DataError(f"it is a {found} file{other}. Rename it to {found}{', or unpack it' if other else ''}")


def read_parquet(content: bytes) -> RawTable:
    """Return the columns of a Parquet file; text that is not UTF-8 is read as cp1252 with a note."""
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(BytesIO(content))
    unpacked = 8.0 * file.metadata.num_rows * file.metadata.num_columns
    require_memory(MEMORY_COPIES * unpacked, "the unpacked table", "use a part of it")
    table, other = file.read(), list[str]()
    for j, field in enumerate(table.schema):
        if "string" not in str(field.type):
            continue
        cells = table.column(j).cast(getattr(field.type, "value_type", field.type))  # the texts of a categorical column
        try:
            cells.validate(full=True)
        except ValueError:
            entries = cells.cast("binary").to_pylist()
            texts = [entry and entry.decode("cp1252", "backslashreplace") for entry in entries]
            table = table.set_column(j, field.name, [texts])
            other.append(field.name)
    frame = table.to_pandas()
    columns = [
        column.to_numpy(dtype=float, na_value=np.nan) if column.dtype.kind in "biuf" else list(column)
        for _, column in frame.items()
    ]
    notes = [f"text that is not UTF-8 was read as cp1252: {format_list(map(repr, other))}"] if other else []
    return name_columns(list(map(str, frame.columns)), columns, notes)


def read_excel(content: bytes, options: ReadOptions) -> RawTable:
    """Return the columns of a sheet, whose cells are read as comma-separated text."""
    import openpyxl

    limit = unpacked_limit(EXCEL_EXPANSION)
    with zipfile.ZipFile(BytesIO(content)) as archive:
        if sum(member.file_size for member in archive.infolist()) > limit:  # limits the bytes read from each member
            raise ResourceError(f"it unpacks to more than {limit} bytes. Save it as CSV, or use a part of it")
        sheets = [archive.read(name) for name in archive.namelist() if name.startswith("xl/worksheets/sheet")]
    book = openpyxl.load_workbook(BytesIO(content), read_only=True, data_only=True)
    chosen = book.sheetnames[0] if options.sheet is None else options.sheet
    if chosen not in book.sheetnames:
        raise DataError(f"it has no sheet {chosen!r}; the sheets are {format_list(book.sheetnames)}")
    book[chosen].reset_dimensions()  # otherwise every row has the width of the sheet
    rows = book[chosen].iter_rows(values_only=True)
    if any(re.search(rb"<f[ >/]", sheet) for sheet in sheets):  # formulas have no value until a program computes them
        formulas = openpyxl.load_workbook(BytesIO(content), read_only=True)[chosen]
        formulas.reset_dimensions()
        rows = (
            [getattr(formula, "text", formula) if cell is None else cell for cell, formula in zip(*pair, strict=True)]
            for pair in zip(rows, formulas.iter_rows(values_only=True), strict=True)
        )
    text = StringIO()
    csv.writer(text).writerows(  # with exponents, so that a decimal point cannot be read as a thousands separator
        [np.format_float_scientific(cell) if isinstance(cell, float) else cell for cell in row] for row in rows
    )
    table = read_text(text.getvalue(), replace(options, separator=","))
    if len(book.sheetnames) == 1 or options.sheet is not None:
        return table
    return replace(table, notes=(f"the file has {len(book.sheetnames)} sheets, and {chosen!r} was read", *table.notes))


# Text


def decode(content: bytes, encoding: str | None) -> tuple[str, list[str]]:
    """Return bytes decoded to text, and a note if the encoding is assumed; no character is ever replaced."""
    named = encoding or ("utf-16" if content[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) else None)
    if named is None and b"\0" in content:
        raise DataError("it is not UTF-8 text: it contains zero bytes. Specify its encoding, such as utf-16-le")
    try:
        return content.decode(named or "utf-8").removeprefix("\ufeff"), []
    except (LookupError, UnicodeError) as error:
        if named:
            raise DataError(f"it does not have the encoding {named!r}: {error}") from None
    note = "the file is not UTF-8 and was read as cp1252. Specify its encoding if letters are wrong"
    return content.decode("cp1252"), [note]


def read_text(text: str, options: ReadOptions) -> RawTable:
    """Return the columns of a delimited text."""
    lines = StringIO(text.rstrip() if options.skip_footer else text, newline=None).readlines()
    skipped = range(options.skip_rows) if isinstance(options.skip_rows, int) else options.skip_rows
    lines = ["" if i in skipped else line for i, line in enumerate(lines[: len(lines) - options.skip_footer])]
    if options.comment:
        lines = [line.partition(options.comment)[0] for line in lines]
    marks = find_comment_marks(lines) if options.comment is None else ()
    start = next((i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(marks)), None)
    others = tuple(mark for mark in marks if mark != "#")
    if start is not None and others:
        lines[start:] = ["" if line.startswith(others) else line for line in lines[start:]]
    if start is None:
        raise DataError("it has no rows")
    n_skipped = sum(bool(line.strip()) for line in lines[:start])
    separator = options.separator or find_separator(lines[start:], options.decimal)
    rows, ends = split_lines(lines[start:], "\t" if separator == r"\t" else separator)
    sample = [list(map(str.strip, row)) for row in rows[:SAMPLE_LINES]]
    n_titles, (has_header, note) = 0, (options.header, "")
    if options.header is None:
        n_titles = count_titles(sample)
        has_header, note = find_header(sample[n_titles:])
    sample, n_skipped = sample[n_titles:], n_skipped + n_titles
    first, width = n_titles + bool(has_header), len(sample[0]) + is_one_short(sample)
    if n_titles and not has_header and width == 2:  # a column with decimal commas, for example
        raise DataError("the rows have two values below a line of one. Specify the separator or the decimal mark")
    if first == len(rows):
        raise DataError("there is no row below the header")
    rows, ends = rows[first:], ends[first:]
    for row, end in zip(rows, ends, strict=True):
        if len(row) != width:
            if any(row[width:]):
                raise DataError(
                    f"line {start + end} has {len(row)} values instead of {width}. Correct it, skip lines, or specify "
                    "the separator"
                )
            row[:] = [*row[:width], *[""] * (width - len(row))]
    titles = [" ".join(title.split("\n")) for title in sample[0]] if has_header else []
    titles = [""] * (width - len(titles)) + titles
    used = {j: column for j, column in enumerate(zip(*rows, strict=True)) if titles[j] or any(column)}
    row_names = used.pop(0, None) if has_header and not titles[0] and len(used) > 1 else None
    notes = {
        f"lines above the table were skipped: {n_skipped}": n_skipped,
        f"all lines that begin with {' or '.join(map(repr, others))} were read as comments (comment)": others,
        note: note,
        "the first column has no name and was excluded as row names. Name it to use it": row_names
        and not options.transpose,
    }
    return name_columns(
        [titles[j] for j in used], list(used.values()), [text for text, is_needed in notes.items() if is_needed],
        row_names=row_names, mark="." if separator == "," else "",
    )  # fmt: skip


def find_comment_marks(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the characters that start comments: "#", and others that start two or more lines above the table."""
    starts = "".join(
        takewhile(("#" + COMMENT_STARTS).__contains__, (line.lstrip()[0] for line in lines if line.strip()))
    )
    return ("#", *(mark for mark in COMMENT_STARTS if starts.count(mark) > 1))


def split_lines(lines: Sequence[str], separator: str) -> tuple[list[list[str]], list[int]]:
    """Return the entries of the lines that are not blank, and the number of lines up to the end of each."""
    if separator == " ":
        lines = [" ".join(line.split("\t")).strip() for line in lines]
    reader = csv.reader([*lines, "\n", END_OF_TEXT], delimiter=separator, skipinitialspace=True)
    limit = csv.field_size_limit(sum(map(len, lines)) + 1)  # of characters of an entry
    try:
        found = [(row, reader.line_num) for row in reader if len(row) > 1 or any(map(str.strip, row))]
    finally:
        csv.field_size_limit(limit)
    if found.pop()[0] != [END_OF_TEXT]:
        raise DataError("a quotation is not closed. Close or remove it")
    return [row for row, _ in found], [end for _, end in found]


def find_separator(lines: Sequence[str], decimal: str | None = None) -> str:
    """Return the separator with an equal, positive number of occurrences in the most lines.

    On 1030 files, from public collections and rewritten with other separators, this rule is wrong 8 times, pandas'
    ``sep=None`` 215 times, and clevercsv, a dependency that is seven times slower, twice.
    """
    best, chosen = 0.0, ";" if decimal == "," else ","
    plain = [re.sub(" +", " ", re.sub(r'"[^"]*"', "", line.strip())) for line in lines[:SAMPLE_LINES] if line.strip()]
    for separator in SEPARATORS:
        counts = [line.count(separator) for line in plain if separator != decimal]
        common = max(counts, key=counts.count, default=0)
        fraction = counts.count(common) / len(counts) if common else 0.0
        if fraction > best and (separator != " " or best == 0.0):  # lines of plain text may have equal numbers of words
            best, chosen = fraction, separator
    return chosen


def count_filled(row: Sequence[str]) -> int:
    """Return the number of entries up to the last that is not empty."""
    return next((j for j in range(len(row), 0, -1) if row[j - 1]), 0)


def count_titles(rows: Sequence[Sequence[str]]) -> int:
    """Return the number of title lines above the column names: lines with text in at most half of the columns."""
    filled = list(map(count_filled, rows))
    width = max(filled, key=filled.count)
    n = next((i for i, row in enumerate(rows) if 2 * filled[i] > width or any(map(is_number, row))), 0)
    return n if n < len(rows) - 1 else 0


def find_header(rows: Sequence[Sequence[str]]) -> tuple[bool, str]:
    """Return whether the first line is a header, and a note, "" if that is certain.

    It is if every entry is text or a whole number, the whole numbers increase or decrease, and no text recurs below in
    its column, unless another text is above numbers.  If all entries of the table are whole numbers, those of the first
    line must also increase in steps of one.
    """
    first = rows[0]
    columns = [[row[j] for row in rows[1:] if j < len(row)] for j in range(len(first))]
    numbers = [j for j, entry in enumerate(first) if is_number(entry)]
    texts = [j for j, entry in enumerate(first) if not is_number(entry) and entry.lower() not in NO_NAMES]
    is_header = all(WHOLE_NUMBER.fullmatch(first[j]) for j in numbers) and bool(numbers or texts)
    if is_header and numbers:
        steps = np.diff([int(first[j]) for j in numbers])
        is_header = bool(np.all(steps > 0) or np.all(steps < 0))
        if not texts and all(WHOLE_NUMBER.fullmatch(entry) for column in columns for entry in column):
            is_header = bool(np.all(steps == 1)) and len(steps) > 0
    has_numbers_below = any(is_mostly_numeric(columns[j]) for j in texts)
    is_header &= has_numbers_below or not any(first[j] in columns[j] for j in texts)
    if is_header and has_numbers_below and not numbers:
        return True, ""
    shown = f"the first line ({format_list(first)})"
    if is_header:
        return True, f"{shown} was read as column names. Read the table without a header if it is data"
    return False, (
        f"{shown} was read as data, and the columns were named x1, x2, ... Read the table with a header if it has the "
        "column names"
    )


def is_one_short(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line has one entry less than most others, which start with different row names."""
    lengths = list(map(count_filled, rows[1:])) or [0]
    firsts = {row[0] for row in rows[1:]}
    return max(lengths, key=lengths.count) == len(rows[0]) + 1 and len(firsts) == len(rows) - 1
