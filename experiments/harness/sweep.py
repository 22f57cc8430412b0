"""The sweep runner: cells in any order, over processes of one thread each, resumable, into one sorted table."""

import json
import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from concurrent.futures import TimeoutError as OutOfTime
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
from pebble import ProcessExpired, ProcessPool
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from diffrac_cvx.errors import ResourceError

Cell = Mapping[str, Any]
Row = dict[str, Any]


def sweep(
    cells: Sequence[Cell],
    measure: Callable[..., Row],
    log: Path,
    *,
    jobs: int,
    settings: Mapping[str, Any],
    title: str,
    seconds: float | None = None,
    memory: float | None = None,
) -> pd.DataFrame:
    """Measure every cell and return the table, in the order of the cells whatever the number of jobs.

    Each row is appended to `log` as it comes; started again with the same settings, only the missing cells are
    measured.  The log goes when the caller has written the table (`forget`).  A cell whose process dies, takes more
    than `seconds` or needs more than `memory` GB is a row with a ``reason``; an error in a measurement ends the sweep.
    """
    known = read_log(log, settings)
    missing = [cell for cell in cells if key_of(cell) not in known]
    if len(missing) < len(cells):
        print(f"{title}: {len(cells) - len(missing)} of {len(cells)} cells are in {log}, going on from there")
    spread = sorted(missing, key=hash_of)  # an even mix, so that the time left is honest
    log.parent.mkdir(parents=True, exist_ok=True)
    shown = None if sys.stderr.isatty() else False
    with (
        log.open("a") as file,
        tqdm(total=len(spread), desc=title, unit="cell", disable=shown, mininterval=2) as bar,
    ):
        for cell, row in measured(spread, measure, jobs, seconds, memory):
            known[key_of(cell)] = row
            file.write(json.dumps([key_of(cell), row]) + "\n")
            file.flush()
            bar.update()
    return pd.DataFrame([{**cell, **known[key_of(cell)]} for cell in cells])


def measured(
    cells: Sequence[Cell], measure: Callable[..., Row], jobs: int, seconds: float | None, memory: float | None
) -> Iterator[tuple[Cell, Row]]:
    """Yield each cell with its row as it is done; no process outlives the generator."""
    if not cells:
        return
    workers = ProcessPool(
        max_workers=min(jobs, len(cells)),
        context=multiprocessing.get_context("spawn"),
        initializer=prepare,
        initargs=(memory,),
    )
    try:
        futures: dict[Future[Row], Cell] = {
            workers.schedule(one_thread, args=[measure, cell], timeout=seconds): cell for cell in cells
        }
        for future in as_completed(futures):
            yield futures[future], row_of(future, seconds)
    finally:
        workers.stop()  # type: ignore[no-untyped-call]
        workers.join()


def row_of(future: Future[Row], seconds: float | None) -> Row:
    """Return the row of a cell, or why there is none."""
    try:
        return future.result()
    except ProcessExpired as death:
        return {"reason": f"the process died: {cause_of(death.exitcode)}"}
    except OutOfTime:
        return {"reason": f"stopped after {seconds:g} s"}
    except (MemoryError, ResourceError) as error:
        return {"reason": f"out of memory: {str(error) or 'allocation refused'}"}


def cause_of(exitcode: int) -> str:
    """Return the signal behind an exit code, or the code."""
    with suppress(ValueError):
        return signal.Signals(-exitcode).name
    return f"exit code {exitcode}"


def prepare(memory: float | None) -> None:
    """Set up a worker: Ctrl-C is the parent's to handle, and what a cell may allocate is limited."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (int(memory * 1e9), resource.RLIM_INFINITY))


def one_thread(measure: Callable[..., Row], cell: Cell) -> Row:
    """Measure one cell with one BLAS thread."""
    with threadpool_limits(1):
        return measure(**cell)


def key_of(cell: Cell) -> str:
    """Return the text by which a cell is known in the log."""
    return json.dumps(dict(cell), sort_keys=True)


def hash_of(cell: Cell) -> int:
    """Return a number that depends on the cell alone and mixes the order of cells."""
    value = 2017
    for letter in key_of(cell):
        value = (value * 1_000_003 + ord(letter)) % (1 << 61)
    return value


def read_log(log: Path, settings: Mapping[str, Any]) -> dict[str, Row]:
    """Return the rows of an interrupted run with the same settings; a log of other settings is dropped."""
    header = json.dumps({"settings": dict(settings)}, sort_keys=True)
    lines = log.read_text().splitlines() if log.exists() else []
    if not lines or lines[0] != header:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(header + "\n")
        return {}
    rows = {}
    for line in lines[1:]:
        try:
            key, row = json.loads(line)
        except json.JSONDecodeError:  # the line that was being written when the run was stopped
            continue
        rows[key] = row
    log.write_text("\n".join([header, *(json.dumps([key, row]) for key, row in rows.items())]) + "\n")
    return rows


def forget(log: Path) -> None:
    """Forget the log of a sweep whose table is written, so that the next run measures anew."""
    log.unlink(missing_ok=True)
