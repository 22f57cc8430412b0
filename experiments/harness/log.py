"""Log of a sweep: one line per row, appended as it is measured; an interrupted run resumes from it.

The file only grows, so a kill at any time loses at most the line being written.
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
SECONDS = "processor seconds"  # entry of a row in the log with the cost of its cell; no column of the table


class SweepError(Exception):
    """Raised if a sweep cannot start or continue; the message names the cause and the remedy."""


class Log:
    """The rows measured so far, keyed by the text of their cells, and the file that stores them.

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
        if torn:  # a line cut off when the run ended
            os.ftruncate(file.fileno(), file.tell() - len(torn))
        if lines and lines[0] != header:
            raise SweepError(f"{path} holds rows of other settings. Delete it or move it away.")
        if not lines:
            self._write(header)
        self.rows: dict[str, Row] = dict(filter(None, map(read_line, lines[1:])))
        self.resumed = bool(self.rows)

    def add(self, key: str, row: Row) -> None:
        """Append a row in the form in which the next run will read it."""
        line = json.dumps([key, row])
        self._write(line.encode())
        self.rows[key] = json.loads(line)[1]

    @property
    def seconds(self) -> float:
        """Processor seconds of all rows."""
        return float(sum(row.get(SECONDS, 0.0) for row in self.rows.values()))

    def delete(self) -> None:
        """Delete the file, after its rows have been written to a table."""
        self.path.unlink(missing_ok=True)

    def _write(self, line: bytes) -> None:
        content = line + b"\n"
        try:
            while content:
                content = content[os.write(self._file.fileno(), content) :]
        except OSError as error:
            raise SweepError(
                f"{self.path} cannot be written ({error.strerror}). The rows so far are in it; once this is fixed, "
                "the same command goes on from there."
            ) from error


@contextmanager
def open_log(path: Path, settings: Mapping[str, Any]) -> Iterator[Log]:
    """Open a log for one sweep at a time; the lock is released when the process ends, for whatever reason.

    Raises
    ------
    SweepError
        If the file is not writable, is in use, or holds rows of other settings.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open_locked(path)
    except BlockingIOError:
        raise SweepError(f"another run writes to {path}. Wait until it ends, or stop it.") from None
    except OSError as error:
        raise SweepError(f"{path} cannot be written ({error.strerror})") from None
    with file:
        yield Log(path, file, settings)


def open_locked(path: Path) -> FileIO:
    """Return a file, created if missing, that no other process has locked."""
    while True:
        file = path.open("ab+", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                file.seek(0)
                return file
        except FileNotFoundError:  # deleted by the run that held the lock
            pass
        except BaseException:
            file.close()
            raise
        file.close()


def read_line(line: bytes) -> tuple[str, Row] | None:
    """Return the cell and the row of a line, or None if the line is damaged and its cell has to be measured again."""
    try:
        key, row = json.loads(line)
    except (ValueError, TypeError):  # not JSON, not UTF-8, or not a pair
        return None
    return (key, row) if isinstance(key, str) and isinstance(row, dict) else None
