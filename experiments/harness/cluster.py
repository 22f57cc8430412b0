"""The cells of a sweep on the workers of a dask cluster, as futures of distributed.

Each thread of a worker measures one cell at a time, in a process beside it that is started as those of a local sweep
are: the limits of a cell, its threads of linear algebra and what its death says are the same in both.
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

PATIENCE = 10.0  # seconds in which the scheduler has to answer
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}."


@dataclass(frozen=True)
class Task:
    """What is done with every cell of a sweep, and its limits; `sweep` tells one sweep's processes from another's."""

    measure: Callable[..., Row]
    seconds: float | None
    memory: float | None
    version: str
    sweep: str


def measure_cells(
    cells: Sequence[Cell], measure: Callable[..., Row], address: str, seconds: float | None, memory: float | None
) -> Measured:
    """Yield each cell with its row as a worker is done with it; what is not done is cancelled with the generator.

    Cells of a worker that is lost are measured again by another.  A cell that, alone on the cluster, loses its worker
    more often than the scheduler allows (``distributed.scheduler.allowed-failures``) is a row with a reason.

    Raises
    ------
    SweepError
        If the scheduler cannot be reached or is lost, or a worker has not this version of the package.
    """
    task = Task(measure, seconds, memory, __version__, uuid.uuid4().hex)
    with connected(address) as client:
        check_python(client)
        if not client.nthreads():  # a cluster may start workers once it has cells for them
            print(f"the scheduler {address} has no worker yet: waiting for one")
        suspects = []  # cells whose workers died: any of those that they measured at the time may be to blame
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
    """Connect to a scheduler until the end of the block."""
    try:
        asyncio.run(reach(address))
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TypeError) as error:  # nobody listens; no address; TLS without its certificates
        raise SweepError(f"the scheduler {address} cannot be reached ({' '.join(str(error).split())})") from None
    with client:
        try:
            yield client
        except OSError as error:
            if hasattr(error, "__notes__"):
                raise
            raise lost(address) from error


async def reach(address: str) -> None:
    """Connect to a scheduler and part from it, for a client that cannot connect leaves a thread behind."""
    comm = await connect(address, timeout=PATIENCE, **Security().get_connection_args("client"))
    await comm.close()


@contextmanager
def submitted(client: Client, task: Task, cells: Sequence[Cell]) -> Iterator[dict["Future[Row]", Cell]]:
    """Submit the cells, and cancel at the end of the block those whose futures are still there."""
    measure = partial(carrier(), pickle.dumps((measure_there, task)))
    futures = dict(zip(client.map(measure, cells, pure=False), cells, strict=True))
    try:
        yield futures
    finally:
        if client.status == "running":
            client.cancel(list(futures))


def carrier() -> Callable[[bytes, Cell], Row]:
    """Return a function that unpickles another with its first argument, so that what is missing is the cell's error.

    It travels by value: the scheduler needs neither this package nor the experiments.
    """

    def carry(content: bytes, cell: Cell) -> Row:
        function, task = pickle.loads(content)
        row: Row = function(task, cell)
        return row

    return carry


def row_of(future: "Future[Row]", address: str) -> Row:
    """Return the row of a cell that is done; errors of its measurement are raised, with notes that say where."""
    try:
        row: Row = future.result()
    except CancelledError:
        raise lost(address) from None
    except (AttributeError, ImportError, OSError) as error:
        if hasattr(error, "__notes__") or future.status != "error":  # in a cell, or of the connection
            raise
        raise SweepError(
            f"a worker of {address} cannot begin a cell ({' '.join(str(error).split())}): it needs diffrac_cvx "
            f"{__version__} and the experiments, so start it where the folder of this project is, installed by "
            "pip install -e '.[experiments,scale]'"
        ) from error
    return row


def lost(address: str) -> SweepError:
    """Return what there is to say where the connection ends, or the scheduler forgets the cells."""
    return SweepError(
        f"the scheduler {address} was lost, or has dropped the cells: the rows so far are kept, and the same command "
        "goes on from there, with a scheduler or without"
    )


def check_python(client: Client) -> None:
    """Refuse workers of another Python: what travels by value cannot be run."""
    for place, version in client.run(platform.python_version, on_error="ignore").items():
        if not version.startswith(PYTHON):
            raise SweepError(f"{place} runs Python {version} and this is {PYTHON}x: use one version everywhere")


# On the workers

PROCESSES: dict[tuple[str, int], Worker] = {}  # by sweep and thread


def measure_there(task: Task, cell: Cell) -> Row:
    """Measure a cell in the process of this thread of a worker, until it is done or cancelled."""
    worker = get_worker()
    if task.version != __version__:
        has = f"{worker.address} has diffrac_cvx {__version__} and this is {task.version}"
        raise SweepError(f"{has}: install one version everywhere")
    key = worker.get_current_task()

    def cancelled() -> bool:  # by the user, or because nobody waits for the row any more
        state: Any = worker.state.tasks.get(key)
        return state is None or state.state == "cancelled"

    place = task.sweep, threading.get_ident()
    if place not in PROCESSES:
        PROCESSES[place] = Worker(None if task.memory is None else task.memory * 1e9)
    return measure_by(PROCESSES[place], task.measure, cell, cancelled, task.seconds)


def end_processes(sweep: str) -> None:
    """End the processes of a sweep; those of a command that was killed end by themselves, `processes.IDLE_TIMEOUT` later."""
    for place in [place for place in PROCESSES if place[0] == sweep]:
        PROCESSES.pop(place).close()
