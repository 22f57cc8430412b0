"""Runs from several random starts, within a time limit."""

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from diffrac_cvx.points.checks import positive

Run = TypeVar("Run")


def until_late(runs: Iterable[Run], time_limit: float | None, started: float) -> Iterator[Run]:
    """Yield runs, at least one, until so many seconds have passed since `started`, a `time.perf_counter()`.

    Raises
    ------
    ParameterError
        If time_limit is not greater than 0.
    """
    limit = float("inf") if time_limit is None else positive(time_limit, "time_limit")
    for run in runs:
        yield run
        if time.perf_counter() - started >= limit:
            return
