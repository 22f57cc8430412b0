"""Sweep runner: measures cells in any order in single-threaded processes, resumes, and returns a sorted table."""

import json
import threading
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from itertools import product
from queue import SimpleQueue
from typing import Any

import pandas as pd
from tqdm import tqdm

from diffrac_cvx.machine.processes import Worker
from experiments.harness.cell import Cell, Measured, measure_by
from experiments.harness.log import SECONDS, Log, Row, SweepError

__all__ = ["Cell", "Row", "cross", "sweep"]


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
        return table_of(cells, log)
    if log.resumed and len(missing) < len(cells):
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
            log.add(key_of(cell), row)
            bar.update()
    return table_of(cells, log)


def table_of(cells: Sequence[Cell], log: Log) -> pd.DataFrame:
    """Return the table of cells that are in a log."""
    rows = [{**cell, **log.rows[key_of(cell)]} for cell in cells]
    return pd.DataFrame(rows).drop(columns=SECONDS, errors="ignore")


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


def key_of(cell: Cell) -> str:
    """Return the text that identifies a cell in the log."""
    return json.dumps(dict(cell), sort_keys=True)
