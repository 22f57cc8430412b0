"""One cell of a sweep: measured in another process, within limits; what ends it there is a row with a reason."""

import traceback
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from diffrac_cvx.errors import ResourceError
from diffrac_cvx.machine.processes import Call, CallResult, OutOfTimeError, Worker, WorkerDiedError
from experiments.harness.log import Row

Cell = Mapping[str, Any]
Measured = Generator[tuple[Cell, Row]]
TRIES = 3  # of a cell whose process is ended from outside
FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGHUP")  # a user's kill, or the system's where memory does not suffice


def measure_by(
    worker: Worker, measure: Callable[..., Row], cell: Cell, stopped: Callable[[], bool], seconds: float | None
) -> Row:
    """Measure a cell by the process of a worker; what ends it there is a row with a reason, or raised if an error."""
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
    """Do a call, again where its process is ended from outside: that says nothing of the cell unless it repeats."""
    for _ in range(TRIES - 1):
        try:
            return call()
        except WorkerDiedError as death:
            if death.signal not in FROM_OUTSIDE:
                raise
    return call()


def measure_here(measure: Callable[..., Row], cell: Cell) -> Row:
    """Measure a cell in this process; an error keeps its traceback, which other processes do not see."""
    try:
        return measure(**cell)
    except Exception as error:
        error.add_note(f"in the cell {dict(cell)}:\n{traceback.format_exc()}")
        raise
