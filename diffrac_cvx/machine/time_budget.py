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

SPEED = 2e9  # floating-point operations a second that a decomposition makes at least, on a machine that is busy
SHORTEST = 0.01  # seconds that a solver gets where none are left
PATIENCE = 1.0  # seconds that a limit may be exceeded by


class LeaveError(Exception):
    """Raised inside a computation that has to leave, with the reason, a ``result.Status``."""

    def __init__(self, status: Any) -> None:
        super().__init__(str(status))
        self.status = status


class Budget(NamedTuple):
    """What a computation has left; without ``look`` nothing is raised, and what can end early does, with an answer."""

    left: Callable[[], float]  # seconds, infinite without a limit
    look: Callable[[], None] | None = None  # raises LeaveError where the computation has to leave
    leave: Callable[[], None] | None = None  # raises LeaveError because the time does not suffice


current: ContextVar[Budget | None] = ContextVar("time budget", default=None)


@contextmanager
def spend(budget: Budget | None) -> Iterator[None]:
    """Let what is computed inside look at a budget of time; None lets it take the time that it needs."""
    token = current.set(budget)
    try:
        yield
    finally:
        current.reset(token)


def within(seconds: float | None) -> Budget | None:
    """Return the budget of a call that has so many seconds in all: nothing is raised, what can end early does."""
    if seconds is None:
        return current.get()
    clock, outer = Clock(seconds), current.get()
    return Budget(lambda: min(clock.remaining, np.inf if outer is None else outer.left()))


class Clock:
    """Seconds since it was made, and those left of a limit, by a clock that all processes of a machine share."""

    def __init__(self, limit: float | None) -> None:
        self.start, self.limit = time.monotonic(), np.inf if limit is None else limit

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.start

    @property
    def remaining(self) -> float:
        """Seconds left, infinite without a limit; negative after it."""
        return self.limit - self.seconds

    @property
    def left(self) -> float | None:
        """Seconds left, None without a limit; never 0, which solvers refuse."""
        return self.share(1)

    @property
    def is_over(self) -> bool:
        return self.remaining <= 0.0

    @property
    def budget(self) -> Budget | None:
        """What is computed under it looks at."""
        return within(self.left)

    def share(self, parts: int) -> float | None:
        """Return an equal share of the seconds left for each of some parts, None without a limit; never 0."""
        return None if np.isinf(self.limit) else max(self.remaining / parts, SHORTEST)


def seconds_left() -> float | None:
    """Return the seconds left, None without a limit; never 0, which solvers refuse."""
    budget = current.get()
    left = np.inf if budget is None else budget.left()
    return None if np.isinf(left) else max(left, SHORTEST)


def poll(operations: float = 0.0) -> None:
    """Raise LeaveError where the time is up, or where one call of so many operations would end long after it."""
    budget = current.get()
    if budget is None or budget.look is None:
        return
    budget.look()
    if budget.leave is not None and operations > SPEED * (budget.left() + PATIENCE):
        budget.leave()


def is_late(operations: float = 0.0) -> bool:
    """Whether the time is up, or would be long before one call of so many operations ends; nothing is raised."""
    budget = current.get()
    return budget is not None and operations / SPEED >= budget.left() + (PATIENCE if operations else 0.0)
