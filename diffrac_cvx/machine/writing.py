"""Atomic writing of files, and escaping of text for spreadsheets and terminals."""

import contextlib
import csv
import itertools
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

# Characters that start a spreadsheet formula, including full-width forms and skipped characters before them.
SPREADSHEET_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")  # noqa: RUF001
NUMERIC_TEXT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# Characters that a terminal interprets: escape sequences and marks that reverse the text direction.
CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield the path of a new file in the same folder, which replaces `path` if no exception is raised.

    A reader sees either the old or the new file, even if the disk is full or the process is killed.  A path that is not
    a regular file, such as /dev/stdout, is written directly.  The ``filename`` of an OSError is `path`.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        yield path
        return
    part = target.with_name(f".{target.stem[:100]}.{os.getpid()}.part{target.suffix}")
    try:
        yield part
        if target.exists():
            shutil.copymode(target, part)
        with part.open("rb") as file:
            os.fsync(file.fileno())  # the content must reach the disk before the name does
        part.replace(target)
    except OSError as error:
        if error.filename in (None, str(part)):  # hide the name of the temporary file
            error.filename = str(path)
        raise
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write text to a file in UTF-8 atomically."""
    with atomic_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file in which all text is quoted, and escaped so that spreadsheets do not read it as formulas."""
    with atomic_file(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        write_rows(file, header, rows)


def write_rows(file: TextIO, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write the rows of `write_csv` to an open file."""
    table = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
    table.writerows([escape_formula(entry) for entry in row] for row in itertools.chain([header], rows))


def escape_formula(value: Any) -> Any:
    """Return the value of a cell, with an apostrophe before text that starts a formula, except numbers like "-1"."""
    if isinstance(value, str) and SPREADSHEET_FORMULA.match(value) and not NUMERIC_TEXT.fullmatch(value):
        return f"'{value}"
    return value


def escape_control(text: str) -> str:
    """Return a text with the control characters of terminals escaped, except tabs and line breaks."""
    return CONTROL_CHARACTERS.sub(lambda match: repr(match[0])[1:-1], text)
