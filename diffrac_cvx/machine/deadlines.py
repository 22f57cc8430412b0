"""Deadlines: long computations check them to decide whether to continue, independently of their caller.

No computation runs in a thread that a caller could abandon: after the deadline, the computation itself returns.
Therefore a library call that may take much longer than a second must start only if the remaining time suffices.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

FLOPS_PER_SECOND = 2e9  # lower bound on the speed of a decomposition on a busy machine
MIN_SECONDS = 0.01  # seconds that a solver receives after the deadline
MAX_OVERRUN_SECONDS = 1.0  # seconds by which a limit may be exceeded


class EarlyExitError(Exception):
    """Raised inside a computation that has to stop; its argument is the reason, a ``result.Status``."""

    def __init__(self, status: Any) -> None:
        super().__init__(str(status))
        self.status = status


class Deadline(NamedTuple):
    """Deadline of a computation; without ``check`` nothing is raised, and computations may return early results."""

    remaining: Callable[[], float]  # returns the seconds left, infinite without a limit
    check: Callable[[], None] | None = None  # raises EarlyExitError if the computation has to stop
    abort: Callable[[], None] | None = None  # raises EarlyExitError because the remaining time is too short


current_deadline: ContextVar[Deadline | None] = ContextVar("time budget", default=None)


@contextmanager
def time_limited(deadline: Deadline | None) -> Iterator[None]:
    """Set the deadline of computations in this context; None removes any limit."""
    token = current_deadline.set(deadline)
    try:
        yield
    finally:
        current_deadline.reset(token)


def deadline_after(seconds: float | None) -> Deadline | None:
    """Return the deadline in a number of seconds, or the current one if earlier; results may be early ones."""
    if seconds is None:
        return current_deadline.get()
    timer, outer = Timer(seconds), current_deadline.get()
    return Deadline(lambda: min(timer.remaining, np.inf if outer is None else outer.remaining()))


class Timer:
    """Timer of elapsed and remaining seconds, based on a clock that all processes of a machine share."""

    def __init__(self, limit: float | None) -> None:
        self.start, self.limit = time.monotonic(), np.inf if limit is None else limit

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.start

    @property
    def remaining(self) -> float:
        """Seconds left: infinite without a limit, negative after the limit."""
        return self.limit - self.elapsed

    @property
    def time_left(self) -> float | None:
        """Seconds left, None without a limit; never 0, which solvers reject."""
        return self.split(1)

    @property
    def is_over(self) -> bool:
        return self.remaining <= 0.0

    @property
    def deadline(self) -> Deadline | None:
        """Deadline for computations under this timer."""
        return deadline_after(self.time_left)

    def split(self, parts: int) -> float | None:
        """Return the seconds left divided by the number of parts, None without a limit; never 0."""
        return None if np.isinf(self.limit) else max(self.remaining / parts, MIN_SECONDS)


def seconds_left(fraction: float = 1.0) -> float | None:
    """Return the seconds left, or a fraction of them, None without a limit; never 0, which solvers reject."""
    deadline = current_deadline.get()
    left = np.inf if deadline is None else deadline.remaining()
    return None if np.isinf(left) else fraction * max(left, MIN_SECONDS)


def check_deadline(operations: float = 0.0) -> None:
    """Raise EarlyExitError after the deadline, or if a call of this many operations would end well after it."""
    deadline = current_deadline.get()
    if deadline is None or deadline.check is None:
        return
    deadline.check()
    if deadline.abort is not None and operations > FLOPS_PER_SECOND * (deadline.remaining() + MAX_OVERRUN_SECONDS):
        deadline.abort()


def is_late(operations: float = 0.0) -> bool:
    """Return whether the deadline has passed, or a call of this many operations would end well after it."""
    deadline = current_deadline.get()
    return deadline is not None and operations / FLOPS_PER_SECOND >= deadline.remaining() + (
        MAX_OVERRUN_SECONDS if operations else 0.0
    )
