"""The time that a call has left: whatever computes for long asks here whether to go on, wherever it is called from.

Nothing of ours computes in a thread that a caller could leave behind: where the time is up, the computation itself
leaves.  So no single call of the libraries may take much longer than a second, or it is only begun where the time left
is enough for it.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

FLOPS_PER_SECOND = (
    2e9  # floating-point operations a second that a decomposition makes at least, on a machine that is busy
)
MIN_SECONDS = 0.01  # seconds that a solver gets where none are left
MAX_OVERRUN_SECONDS = 1.0  # seconds that a limit may be exceeded by


class EarlyExitError(Exception):
    """Raised inside a computation that has to leave, with the reason, a ``result.Status``."""

    def __init__(self, status: Any) -> None:
        super().__init__(str(status))
        self.status = status


class Deadline(NamedTuple):
    """What a computation has left; without ``check`` nothing is raised, and what can end early does, with an answer."""

    remaining: Callable[[], float]  # seconds, infinite without a limit
    check: Callable[[], None] | None = None  # raises EarlyExitError where the computation has to leave
    abort: Callable[[], None] | None = None  # raises EarlyExitError because the time does not suffice


current_deadline: ContextVar[Deadline | None] = ContextVar("time budget", default=None)


@contextmanager
def time_limited(deadline: Deadline | None) -> Iterator[None]:
    """Let what is computed inside look at a budget of time; None lets it take the time that it needs."""
    token = current_deadline.set(deadline)
    try:
        yield
    finally:
        current_deadline.reset(token)


def deadline_after(seconds: float | None) -> Deadline | None:
    """Return the budget of a call that has so many seconds in all: nothing is raised, what can end early does."""
    if seconds is None:
        return current_deadline.get()
    timer, outer = Timer(seconds), current_deadline.get()
    return Deadline(lambda: min(timer.remaining, np.inf if outer is None else outer.remaining()))


class Timer:
    """Seconds since it was made, and those left of a limit, by a clock that all processes of a machine share."""

    def __init__(self, limit: float | None) -> None:
        self.start, self.limit = time.monotonic(), np.inf if limit is None else limit

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.start

    @property
    def remaining(self) -> float:
        """Seconds left, infinite without a limit; negative after it."""
        return self.limit - self.elapsed

    @property
    def time_left(self) -> float | None:
        """Seconds left, None without a limit; never 0, which solvers refuse."""
        return self.split(1)

    @property
    def is_over(self) -> bool:
        return self.remaining <= 0.0

    @property
    def deadline(self) -> Deadline | None:
        """What is computed under it looks at."""
        return deadline_after(self.time_left)

    def split(self, parts: int) -> float | None:
        """Return an equal share of the seconds left for each of some parts, None without a limit; never 0."""
        return None if np.isinf(self.limit) else max(self.remaining / parts, MIN_SECONDS)


def seconds_left() -> float | None:
    """Return the seconds left, None without a limit; never 0, which solvers refuse."""
    deadline = current_deadline.get()
    left = np.inf if deadline is None else deadline.remaining()
    return None if np.isinf(left) else max(left, MIN_SECONDS)


def check_deadline(operations: float = 0.0) -> None:
    """Raise EarlyExitError where the time is up, or where one call of so many operations would end long after it."""
    deadline = current_deadline.get()
    if deadline is None or deadline.check is None:
        return
    deadline.check()
    if deadline.abort is not None and operations > FLOPS_PER_SECOND * (deadline.remaining() + MAX_OVERRUN_SECONDS):
        deadline.abort()


def is_late(operations: float = 0.0) -> bool:
    """Whether the time is up, or would be long before one call of so many operations ends; nothing is raised."""
    deadline = current_deadline.get()
    return deadline is not None and operations / FLOPS_PER_SECOND >= deadline.remaining() + (
        MAX_OVERRUN_SECONDS if operations else 0.0
    )
