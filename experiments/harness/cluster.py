"""Measure the cells of a sweep on the workers of a dask cluster, as futures of distributed.

Each worker thread measures one cell at a time, in a separate process started as in a local sweep: time and memory
limits, linear-algebra threads and the handling of crashes are the same.
"""

import asyncio
import pickle
import platform
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from distributed import Client, Future, KilledWorker, Security, as_completed, get_worker
from distributed.comm.core import connect

from diffrac_cvx import __version__
from diffrac_cvx.machine.processes import Worker
from experiments.harness.cell import Cell, Measured, measure_by
from experiments.harness.log import Row, SweepError

PATIENCE = 10.0  # seconds to wait for an answer of the scheduler
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}."


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

    If a worker is lost, another one measures its cells again.  A cell that is alone on the cluster and loses its worker
    more often than the scheduler allows (``distributed.scheduler.allowed-failures``) becomes a row with a reason.

    Raises
    ------
    SweepError
        If the scheduler is unreachable or lost, or a worker has another version of the package.
    """
    task = Task(measure, seconds, memory, __version__, uuid.uuid4().hex)
    with connected(address) as client:
        check_python(client)
        if not client.nthreads():  # a cluster may start its workers when the first cells arrive
            print(f"the scheduler {address} has no worker yet; waiting for one")
        suspects = []  # cells whose workers died; any cell measured there at the time may be the cause
        try:
            with submitted(client, task, cells) as futures:
                for future in as_completed(list(futures)):
                    cell = futures.pop(future)
                    try:
                        row = row_of(future, address)
                    except KilledWorker:
                        suspects.append(cell)
                    else:
                        yield cell, row
            for cell in suspects:
                with submitted(client, task, [cell]) as (future,):
                    try:
                        row = row_of(future, address)
                    except KilledWorker as death:
                        count = death.allowed_failures + 1
                        row = {"reason": f"{count} workers of the cluster died while they measured it"}
                    yield cell, row
        finally:
            if client.status == "running":
                client.run(end_processes, task.sweep, on_error="ignore")


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Connect to a scheduler for the duration of the block."""
    try:
        asyncio.run(reach(address))
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TypeError) as error:  # no scheduler, invalid address, or TLS without certificates
        raise SweepError(f"the scheduler {address} cannot be reached ({' '.join(str(error).split())})") from None
    with client:
        try:
            yield client
        except OSError as error:
            if hasattr(error, "__notes__"):
                raise
            raise lost(address) from error


async def reach(address: str) -> None:
    """Connect to a scheduler and close the connection again: a client that fails to connect leaves a thread behind."""
    comm = await connect(address, timeout=PATIENCE, **Security().get_connection_args("client"))
    await comm.close()


@contextmanager
def submitted(client: Client, task: Task, cells: Sequence[Cell]) -> Iterator[dict["Future[Row]", Cell]]:
    """Submit the cells; cancel the remaining futures at the end of the block."""
    measure = partial(carrier(), pickle.dumps((measure_there, task)))
    futures = dict(zip(client.map(measure, cells, pure=False), cells, strict=True))
    try:
        yield futures
    finally:
        if client.status == "running":
            client.cancel(list(futures))


def carrier() -> Callable[[bytes, Cell], Row]:
    """Return a function that unpickles another with its first argument, so that a missing import is the cell's error.

    It is sent by value: the scheduler needs neither this package nor the experiments.
    """

    def carry(content: bytes, cell: Cell) -> Row:
        function, task = pickle.loads(content)
        row: Row = function(task, cell)
        return row

    return carry


def row_of(future: "Future[Row]", address: str) -> Row:
    """Return the row of a finished cell; raise errors of its measurement, with notes that name the cell."""
    try:
        row: Row = future.result()
    except CancelledError:
        raise lost(address) from None
    except (AttributeError, ImportError, OSError) as error:
        if hasattr(error, "__notes__") or future.status != "error":  # raised in a cell, or by the connection
            raise
        raise SweepError(
            f"a worker of {address} cannot begin a cell ({' '.join(str(error).split())}): it needs diffrac_cvx "
            f"{__version__} and the experiments. Start it in the folder of this project, installed by "
            "pip install -e '.[experiments,scale]'"
        ) from error
    return row


def lost(address: str) -> SweepError:
    """Return the message for a lost connection, or for cells that the scheduler has forgotten."""
    return SweepError(
        f"the scheduler {address} was lost or has dropped the cells. The rows so far are kept; the same command "
        "goes on from there, with or without a scheduler."
    )


def check_python(client: Client) -> None:
    """Raise if a worker runs another Python version, which cannot run functions sent by value."""
    for place, version in client.run(platform.python_version, on_error="ignore").items():
        if not version.startswith(PYTHON):
            raise SweepError(f"{place} runs Python {version}, this process {PYTHON}x. Use one version everywhere.")


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
    """End the processes of a sweep; if the command was killed, they exit after `processes.IDLE_TIMEOUT`."""
    for place in [place for place in PROCESSES if place[0] == sweep]:
        PROCESSES.pop(place).close()
