"""Measure one cell of a sweep in another process, within limits; a crash becomes a row with a reason."""

import os
import traceback
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from diffrac_cvx.errors import ResourceError
from diffrac_cvx.machine.processes import Call, CallResult, OutOfTimeError, Worker, WorkerDiedError
from experiments.harness.log import SECONDS, Row

Cell = Mapping[str, Any]
Measured = Generator[tuple[Cell, Row]]
TRIES = 3  # attempts for a cell whose process is killed from outside
FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGHUP")  # killed by the user, or by the system for lack of memory


def measure_by(
    worker: Worker, measure: Callable[..., Row], cell: Cell, stopped: Callable[[], bool], seconds: float | None
) -> Row:
    """Measure a cell in the process of a worker; return a row with a reason if the process dies, raise other errors."""
    call = Call(measure_here, (measure, cell))
    try:
        answer = call_again(partial(worker.call, call, stopped=stopped, seconds=seconds))
    except (OutOfTimeError, WorkerDiedError) as failure:
        return {"reason": str(failure)}
    if isinstance(answer.error, MemoryError | ResourceError):
        return {"reason": f"out of memory: {str(answer.error) or 'allocation refused'}"}
    if answer.error is not None:
        raise answer.error
    row: Row = answer.value
    return row


def call_again(call: Callable[[], CallResult]) -> CallResult:
    """Make a call, again if its process is killed from outside, which counts against the cell only if repeated."""
    for _ in range(TRIES - 1):
        try:
            return call()
        except WorkerDiedError as death:
            if death.signal not in FROM_OUTSIDE:
                raise
    return call()


def measure_here(measure: Callable[..., Row], cell: Cell) -> Row:
    """Measure a cell in this process, and its processor seconds; keep the traceback of an error for other processes."""
    before = os.times()
    try:
        row = measure(**cell)
    except Exception as error:
        error.add_note(f"in the cell {dict(cell)}:\n{traceback.format_exc()}")
        raise
    return {**row, SECONDS: round(sum(os.times()[:4]) - sum(before[:4]), 3)}
