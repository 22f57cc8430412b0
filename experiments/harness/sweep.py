"""Sweep runner: measures cells in any order in single-threaded processes, resumes, and returns a sorted table.

Every row is appended to a log as soon as it is measured; an interrupted sweep resumes from it.
"""

import json
import threading
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from itertools import product
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pandas as pd
from tqdm import tqdm

from diffrac_cvx.machine.processes import Worker
from experiments.harness.cell import SECONDS, Cell, Measured, Row, SweepError, measure_by

__all__ = ["Cell", "Log", "Row", "cross", "read_line", "sweep"]


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


def sweep(
    cells: Sequence[Cell],
    measure: Callable[..., Row],
    log: Log,
    *,
    jobs: int,
    title: str,
    seconds: float | None = None,
    memory: float | None = None,
    scheduler: str | None = None,
) -> pd.DataFrame:
    """Measure every cell and return the table in the order of the cells, whatever the number of jobs.

    Each row is appended to `log` when measured; cells with a row in the log are not measured again.  The caller
    deletes the log after writing the table.  A cell whose process dies, exceeds `seconds` or exceeds `memory` GB
    becomes a row with a ``reason``; an error in a measurement ends the sweep.  If `scheduler` is the address of a dask
    scheduler, its workers measure the cells and `jobs` is ignored.

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
    if scheduler is None:
        measured = measure_cells(mixed, measure, jobs, seconds, memory)
    else:
        try:
            from experiments.harness import cluster
        except ModuleNotFoundError as absent:
            raise SweepError(
                f"a sweep on a cluster needs {absent.name}, which is missing. Run pip install 'diffrac-cvx[scale]'."
            ) from None
        measured = cluster.measure_cells(mixed, measure, scheduler, seconds, memory)
    with closing(measured), tqdm(total=len(mixed), desc=title, unit="cell", mininterval=2) as bar:
        for cell, row in measured:
            log.add(cell, row)
            bar.update()
    return log.table_of(cells)


def measure_cells(
    cells: Sequence[Cell], measure: Callable[..., Row], jobs: int, seconds: float | None, memory: float | None
) -> Measured:
    """Yield each cell with its row as soon as it is done; no process outlives the generator."""
    stopping = threading.Event()
    idle: SimpleQueue[Worker] = SimpleQueue()
    workers = [Worker(None if memory is None else memory * 1e9) for _ in range(jobs)]
    for worker in workers:
        idle.put(worker)

    def measure_cell(cell: Cell) -> Row:
        worker = idle.get()
        try:
            return measure_by(worker, measure, cell, stopping.is_set, seconds)
        finally:
            idle.put(worker)

    threads = ThreadPoolExecutor(jobs)
    try:
        futures = {threads.submit(measure_cell, cell): cell for cell in cells}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        stopping.set()
        threads.shutdown(cancel_futures=True)
        for worker in workers:
            worker.close()
