"""Measure the cells of a sweep on the workers of a dask cluster, as futures of distributed.

Each worker thread measures one cell at a time, in a separate process started as in a local sweep: time and memory
limits, linear-algebra threads and the handling of crashes are the same.
"""

import pickle
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from distributed import Client, KilledWorker, as_completed, get_worker

from diffrac_cvx import __version__
from diffrac_cvx.machine.processes import Worker
from experiments.harness.cell import Cell, Measured, Row, SweepError, measure_by

PATIENCE = 10.0  # seconds to wait for an answer of the scheduler


@dataclass(frozen=True)
class Task:
    """Measurement of the cells of a sweep and its limits; `sweep` distinguishes the processes of different sweeps."""

    measure: Callable[..., Row]
    seconds: float | None
    memory: float | None
    version: str
    sweep: str


def measure_cells(
    cells: Sequence[Cell], measure: Callable[..., Row], address: str, seconds: float | None, memory: float | None
) -> Measured:
    """Yield each cell with its row as soon as it is measured; closing the generator cancels the rest.

    If a worker is lost, another one measures its cells again.  A cell that loses its worker more often than the
    scheduler allows (``distributed.scheduler.allowed-failures``) becomes a row with a reason.

    Raises
    ------
    SweepError
        If the scheduler is unreachable or lost, or a worker has another version of the package.
    """
    task = Task(measure, seconds, memory, __version__, uuid.uuid4().hex)
    with connected(address) as client:
        futures = client.map(partial(carrier(), pickle.dumps((measure_there, task))), cells, pure=False)
        cell_of = dict(zip(futures, cells, strict=True))
        try:
            for future in as_completed(futures):
                try:
                    row = future.result()
                except KilledWorker as death:
                    count = death.allowed_failures + 1
                    row = {"reason": f"{count} workers of the cluster died while they measured it"}
                yield cell_of[future], row
        finally:
            if client.status == "running":
                client.cancel(futures)
                client.run(end_processes, task.sweep, on_error="ignore")


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Connect to a scheduler for the duration of the block; errors of a cell, which have notes, pass through."""
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TypeError) as error:  # no scheduler, invalid address, or TLS without certificates
        raise SweepError(f"the scheduler {address} cannot be reached ({' '.join(str(error).split())})") from None
    with client:
        try:
            yield client
        except (CancelledError, OSError) as error:
            if hasattr(error, "__notes__"):
                raise
            raise SweepError(
                f"the scheduler {address} was lost or has dropped the cells. The rows so far are kept; the same "
                "command goes on from there, with or without a scheduler."
            ) from error


def carrier() -> Callable[[bytes, Cell], Row]:
    """Return a function that unpickles another with its first argument, so that a missing import is the cell's error.

    It is sent by value: the scheduler needs neither this package nor the experiments.
    """

    def carry(content: bytes, cell: Cell) -> Row:
        function, task = pickle.loads(content)
        row: Row = function(task, cell)
        return row

    return carry


# On the workers

PROCESSES: dict[tuple[str, int], Worker] = {}  # by sweep and thread


def measure_there(task: Task, cell: Cell) -> Row:
    """Measure a cell in the process of this worker thread, until it is done or cancelled."""
    worker = get_worker()
    if task.version != __version__:
        has = f"{worker.address} has diffrac_cvx {__version__}, this process {task.version}"
        raise SweepError(f"{has}. Install one version everywhere.")
    key = worker.get_current_task()

    def cancelled() -> bool:  # by the user, or because no client waits for the row
        state: Any = worker.state.tasks.get(key)
        return state is None or state.state == "cancelled"

    place = task.sweep, threading.get_ident()
    if place not in PROCESSES:
        PROCESSES[place] = Worker(None if task.memory is None else task.memory * 1e9)
    return measure_by(PROCESSES[place], task.measure, cell, cancelled, task.seconds)


def end_processes(sweep: str) -> None:
    """End the processes of a sweep; if the command was killed, those of running cells end with these."""
    for place in [place for place in PROCESSES if place[0] == sweep]:
        PROCESSES.pop(place).close()
