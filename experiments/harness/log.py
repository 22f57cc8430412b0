"""The log of a sweep: one row a line, added as it is measured and read by the run that goes on with it.

The file only grows, so that a kill at any moment costs the line that was being written and nothing else.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class SweepError(Exception):
    """A sweep cannot start or go on; the message says why, and what helps."""


class Log:
    """The rows measured so far, by the texts of their cells, and the file that holds them.

    Attributes
    ----------
    path : Path
    rows : dict of str to dict
    resumed : bool
        Whether an earlier run has left rows.
    """

    def __init__(self, path: Path, file: FileIO, settings: Mapping[str, Any]) -> None:
        self.path, self._file = path, file
        header = json.dumps({"settings": dict(settings)}, sort_keys=True).encode()
        *lines, torn = file.read().split(b"\n")
        if torn:  # the line that was being written when the run ended
            os.ftruncate(file.fileno(), file.tell() - len(torn))
        if lines and lines[0] != header:
            raise SweepError(f"{path} holds rows of other settings: delete it, or move it away")
        if not lines:
            self._write(header)
        self.rows: dict[str, Row] = dict(filter(None, map(read_line, lines[1:])))
        self.resumed = bool(self.rows)

    def add(self, key: str, row: Row) -> None:
        """Add a row, as the next run would read it."""
        line = json.dumps([key, row])
        self._write(line.encode())
        self.rows[key] = json.loads(line)[1]

    def delete(self) -> None:
        """Delete the file, once its rows are in a table."""
        self.path.unlink(missing_ok=True)

    def _write(self, line: bytes) -> None:
        content = line + b"\n"
        try:
            while content:
                content = content[os.write(self._file.fileno(), content) :]
        except OSError as error:
            raise SweepError(
                f"{self.path} cannot be written ({error.strerror}); the rows so far are in it, and the same command "
                "goes on from there once this is mended"
            ) from error


@contextmanager
def open_log(path: Path, settings: Mapping[str, Any]) -> Iterator[Log]:
    """Open a log for one sweep at a time; the lock ends with the process, however that ends.

    Raises
    ------
    SweepError
        If the file cannot be written, is in use, or holds rows of other settings.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open_locked(path)
    except BlockingIOError:
        raise SweepError(f"another run writes to {path}: wait until it has ended, or end it") from None
    except OSError as error:
        raise SweepError(f"{path} cannot be written ({error.strerror})") from None
    with file:
        yield Log(path, file, settings)


def open_locked(path: Path) -> FileIO:
    """Return a file, made where there is none, that no other process has locked."""
    while True:
        file = path.open("ab+", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                file.seek(0)
                return file
        except FileNotFoundError:  # deleted by the run that had it until now
            pass
        except BaseException:
            file.close()
            raise
        file.close()


def read_line(line: bytes) -> tuple[str, Row] | None:
    """Return the cell and the row of a line, None where it is damaged: its cell is measured again."""
    try:
        key, row = json.loads(line)
    except (ValueError, TypeError):  # no JSON or no UTF-8, or not two things
        return None
    return (key, row) if isinstance(key, str) and isinstance(row, dict) else None
