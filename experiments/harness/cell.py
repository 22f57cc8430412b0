"""Measure one cell of a sweep in another process, within limits; a crash becomes a row with a reason."""

import os
import traceback
from collections.abc import Callable, Generator, Mapping
from typing import Any

from diffrac_cvx.errors import ResourceError
from diffrac_cvx.machine.processes import OutOfTimeError, Worker, WorkerDiedError

Cell = Mapping[str, Any]
Row = dict[str, Any]
Measured = Generator[tuple[Cell, Row]]
SECONDS = "processor seconds"  # entry of a row in the log with the cost of its cell; no column of the table
TRIES = 3  # attempts for a cell whose process is killed from outside
FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGHUP")  # killed by the user, or by the system for lack of memory


class SweepError(Exception):
    """Raised if a sweep cannot start or continue; the message names the cause and the remedy."""


def measure_by(
    worker: Worker, measure: Callable[..., Row], cell: Cell, stopped: Callable[[], bool], seconds: float | None
) -> Row:
    """Measure a cell in the process of a worker; return a row with a reason if the process dies, raise other errors.

    A process that is killed from outside counts against its cell only if this is repeated.
    """
    attempts = 0
    while True:
        attempts += 1
        try:
            row: Row = worker.call(measure_here, measure, cell, stopped=stopped, seconds=seconds)
            return row
        except OutOfTimeError as late:
            return {"reason": str(late)}
        except WorkerDiedError as death:
            if death.signal not in FROM_OUTSIDE or attempts == TRIES:
                return {"reason": str(death)}
        except (MemoryError, ResourceError) as error:
            return {"reason": f"out of memory: {str(error) or 'allocation refused'}"}


def measure_here(measure: Callable[..., Row], cell: Cell) -> Row:
    """Measure a cell in this process, and its processor seconds; keep the traceback of an error for other processes."""
    before = os.times()
    try:
        row = measure(**cell)
    except Exception as error:
        error.add_note(f"in the cell {dict(cell)}:\n{traceback.format_exc()}")
        raise
    return {**row, SECONDS: round(sum(os.times()[:4]) - sum(before[:4]), 3)}
