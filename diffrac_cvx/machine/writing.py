"""Files written whole or not at all, and text that a spreadsheet, a terminal or a figure takes as text."""

import contextlib
import csv
import itertools
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

# Characters with which a spreadsheet begins a formula, the full-width forms and what it skips before them included.
SPREADSHEET_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")  # noqa: RUF001
NUMERIC_TEXT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
# What a terminal acts on: escape sequences, and marks that reverse the direction of the text.
CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Give the path of a new file in the same folder, which takes the place of `path` if nothing is raised.

    A reader sees the old file or the new one, also where the disk is full or the process is killed.  What is not a
    regular file, such as /dev/stdout, is written to directly.  An OSError has `path` for its ``filename``.
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
            os.fsync(file.fileno())  # the name must not reach the disk before the content does
        part.replace(target)
    except OSError as error:
        if error.filename in (None, str(part)):  # a user knows nothing of that name
            error.filename = str(path)
        raise
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text, in UTF-8, whole or not at all."""
    with atomic_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table whose text no spreadsheet takes for a formula; all text is quoted, and numbers are not."""
    with atomic_file(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        write_rows(file, header, rows)


def write_rows(file: TextIO, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write the lines of `write_csv` to an open file."""
    table = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
    table.writerows([escape_formula(entry) for entry in row] for row in itertools.chain([header], rows))


def escape_formula(value: Any) -> Any:
    """Return a value for a cell: text that would begin a formula, unless a number as "-1" is, after an apostrophe."""
    if isinstance(value, str) and SPREADSHEET_FORMULA.match(value) and not NUMERIC_TEXT.fullmatch(value):
        return f"'{value}"
    return value


def escape_control(text: str) -> str:
    """Return a text without what a terminal acts on; tabs and ends of lines stay."""
    return CONTROL_CHARACTERS.sub(lambda match: repr(match[0])[1:-1], text)
