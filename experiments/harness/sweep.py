"""Sweep: measures cells in any order in single-threaded processes, resumes, and returns a table in their order.

Every row is appended to a log as soon as it is measured; an interrupted sweep resumes from it.  Threads of this
process, or of the workers of a dask cluster, measure the cells.  Each thread has a process with limits of time and
memory; a crash becomes a row with a reason.
"""

import json
import os
import threading
import traceback
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from diffrac_cvx import __version__
from diffrac_cvx.errors import ResourceError
from diffrac_cvx.machine.processes import OutOfTimeError, Worker, WorkerDiedError

Cell = Mapping[str, Any]
Row = dict[str, Any]
SECONDS = "processor seconds"  # entry of a row in the log with the cost of its cell; no column of the table
TRIES = 3  # attempts for a cell whose process is killed from outside
FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGHUP")  # killed by the user, or by the system for lack of memory
PATIENCE = 10.0  # seconds to wait for an answer of a dask scheduler


class SweepError(Exception):
    """Raised if a sweep cannot start or continue; the message names the cause and the remedy."""


class Log:
    """The rows measured so far, keyed by the text of their cells, and the file that stores them, a line for each.

    The file only grows, so a kill at any time loses at most the line being written.

    Attributes
    ----------
    path : Path
    rows : dict of str to dict
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_bytes().split(b"\n") if path.exists() else []
        self.rows: dict[str, Row] = dict(filter(None, map(read_line, lines)))
        self._append(b"\n")  # ends a line that was cut off; fails now if nothing can be written

    def add(self, cell: Cell, row: Row) -> None:
        """Append a row in the form in which the next run will read it."""
        line = json.dumps([key_of(cell), row])
        self._append(line.encode() + b"\n")
        self.rows[key_of(cell)] = json.loads(line)[1]

    def table_of(self, cells: Sequence[Cell]) -> pd.DataFrame:
        """Return the table of cells that have rows."""
        rows = [{**cell, **self.rows[key_of(cell)]} for cell in cells]
        return pd.DataFrame(rows).drop(columns=SECONDS, errors="ignore")

    @property
    def seconds(self) -> float:
        """Processor seconds of all rows."""
        return float(sum(row.get(SECONDS, 0.0) for row in self.rows.values()))

    def _append(self, content: bytes) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab", buffering=0) as file:
                while content:
                    content = content[file.write(content) :]
        except OSError as error:
            raise SweepError(
                f"{self.path} cannot be written ({error.strerror}). The rows so far are in it; once this is fixed, "
                "the same command goes on from there."
            ) from error


def read_line(line: bytes) -> tuple[str, Row] | None:
    """Return the cell and the row of a line, or None if the line is damaged and its cell has to be measured again."""
    try:
        key, row = json.loads(line)
    except (ValueError, TypeError):  # not JSON, not UTF-8, or not a pair
        return None
    return (key, row) if isinstance(key, str) and isinstance(row, dict) else None


def key_of(cell: Cell) -> str:
    """Return the text that identifies a cell in the log."""
    return json.dumps(dict(cell), sort_keys=True)


def cross(**entries: Iterable[Any]) -> list[Cell]:
    """Return the cells of a full factorial design, the last entry varying fastest."""
    return [dict(zip(entries, values, strict=True)) for values in product(*entries.values())]


@dataclass(frozen=True)
class Task:
    """Measurement of the cells of a sweep, and its limits in seconds and GB; the last entry tells sweeps apart."""

    measure: Callable[..., Row]
    seconds: float | None = None
    memory: float | None = None
    version: str = __version__
    sweep: str = ""


def sweep(
    cells: Sequence[Cell], task: Task, log: Log, *, jobs: int, title: str, scheduler: str | None = None
) -> pd.DataFrame:
    """Measure every cell and return the table in the order of the cells, whatever the number of jobs.

    Each row is appended to `log` when measured; cells with a row in the log are not measured again.  The caller
    deletes the log after writing the table.  A cell whose process dies or exceeds a limit becomes a row with a
    ``reason``; an error in a measurement ends the sweep.  If `scheduler` is the address of a dask scheduler, its
    workers measure the cells and `jobs` is ignored.

    Raises
    ------
    SweepError
        If the log cannot be written, or the cluster cannot be used or is lost.
    """
    missing = [cell for cell in cells if key_of(cell) not in log.rows]
    if not missing:
        return log.table_of(cells)
    if len(missing) < len(cells):
        print(f"{title}: {len(cells) - len(missing)} of {len(cells)} cells are in {log.path}, going on from there")
    # Shuffled, so that the cells measured so far predict the remaining time.
    mixed = sorted(missing, key=lambda cell: zlib.crc32(key_of(cell).encode()))
    task = replace(task, sweep=uuid.uuid4().hex)
    with (
        local_threads(task, jobs) if scheduler is None else cluster_threads(task, scheduler) as executor,
        tqdm(total=len(mixed), desc=title, unit="cell", mininterval=2) as bar,
    ):
        futures = {executor.submit(measure_cell, task, cell): cell for cell in mixed}
        for future in as_completed(futures):
            log.add(futures[future], future.result())
            bar.update()
    return log.table_of(cells)


@contextmanager
def local_threads(task: Task, jobs: int) -> Iterator[Executor]:
    """Return threads of this process; at the end, cancel the remaining cells and end all processes."""
    threads = ThreadPoolExecutor(jobs)
    try:
        yield threads
    finally:
        end_processes(task.sweep)
        threads.shutdown(cancel_futures=True)


@contextmanager
def cluster_threads(task: Task, address: str) -> Iterator[Executor]:
    """Return the threads of the workers of a dask cluster; at the end, cancel the remaining cells, end all processes.

    If a worker is lost, another one measures its cells again.  Errors of a cell, which have notes, pass through.
    """
    try:
        distributed = import_module("distributed")
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except ModuleNotFoundError as absent:
        raise SweepError(
            f"a sweep on a cluster needs {absent.name}, which is missing. Run pip install 'diffrac-cvx[scale]'."
        ) from None
    except (OSError, ValueError, TypeError) as error:  # no scheduler, invalid address, or TLS without certificates
        raise SweepError(f"the scheduler {address} cannot be reached ({' '.join(str(error).split())}).") from None
    with client:
        executor = client.get_executor(pure=False)
        try:
            yield executor
        except (CancelledError, OSError, distributed.KilledWorker) as error:
            if hasattr(error, "__notes__"):
                raise
            raise SweepError(
                f"the scheduler {address} was lost or has dropped the cells. The rows so far are kept; the same "
                "command goes on from there, with or without a scheduler."
            ) from error
        finally:
            if client.status == "running":
                executor.shutdown(wait=False)
                client.run(end_processes, task.sweep, on_error="ignore")


# In a thread of this process or of a worker of a cluster

PROCESSES: dict[tuple[str, int], Worker] = {}  # by sweep and thread
STOPPED: set[str] = set()  # sweeps that have ended


def measure_cell(task: Task, cell: Cell) -> Row:
    """Measure a cell in the process of this thread; return a row with a reason if it dies or exceeds a limit.

    A process that is killed from outside counts against its cell only if this is repeated.

    Raises
    ------
    SweepError
        If this process has another version of the package than the command.
    Exception
        Any error of the measurement.
    """
    if task.version != __version__:
        has = f"a worker of the cluster has diffrac_cvx {__version__}, the command {task.version}"
        raise SweepError(f"{has}. Install one version everywhere.")
    place = task.sweep, threading.get_ident()
    worker = PROCESSES.setdefault(place, Worker(None if task.memory is None else task.memory * 1e9))
    limits: dict[str, Any] = {"stopped": lambda: task.sweep in STOPPED, "seconds": task.seconds}
    attempts = 0
    while True:
        attempts += 1
        try:
            row: Row = worker.call(measure_here, task.measure, cell, **limits)
            return row
        except OutOfTimeError as late:
            return {"reason": str(late)}
        except WorkerDiedError as death:
            if death.signal not in FROM_OUTSIDE or attempts == TRIES:
                return {"reason": str(death)}
        except (MemoryError, ResourceError) as error:
            return {"reason": f"out of memory: {str(error) or 'allocation refused'}"}


def end_processes(sweep: str) -> None:
    """End the processes of a sweep; if the command was killed, they exit after `processes.IDLE_TIMEOUT`."""
    STOPPED.add(sweep)
    for place in [place for place in PROCESSES if place[0] == sweep]:
        PROCESSES.pop(place).close()


def measure_here(measure: Callable[..., Row], cell: Cell) -> Row:
    """Measure a cell in this process, and its processor seconds; keep the traceback of an error for other processes."""
    before = os.times()
    try:
        row = measure(**cell)
    except Exception as error:
        error.add_note(f"in the cell {dict(cell)}:\n{traceback.format_exc()}")
        raise
    return {**row, SECONDS: round(sum(os.times()[:4]) - sum(before[:4]), 3)}
