"""What a command prints while it works, and at its end with the exit status; Ctrl-C keeps what is finished.

The status is 0 where it is done; 1 where it is done, but a check failed or tol was not met; 2 where it is not done.
"""

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, Self

import numpy as np
import typer

from diffrac_cvx.machine.writing import printable
from diffrac_cvx.points.checks import positive
from diffrac_cvx.problem.proved_numbers import format_ends
from diffrac_cvx.problem.result import Progress

DONE, RESERVED, REFUSED, INTERRUPTED = 0, 1, 2, 130
FIRST, EVERY = 1.0, 5.0  # seconds to the first line and between lines, where there is no terminal


@dataclass(frozen=True)
class Console:
    """Print for a person, or one JSON object for a program, or nothing."""

    as_json: bool = False
    quiet: bool = False

    def say(self, text: str) -> None:
        """Print a line for a person."""
        if not (self.as_json or self.quiet):
            print(printable(text))

    def give(self, findings: Mapping[str, Any]) -> None:
        """Print the JSON object, where it was asked for."""
        if self.as_json:
            print(json.dumps(convert(findings), indent=2, allow_nan=False))

    def end(
        self, findings: Mapping[str, Any], *, reserved: bool, stopped: bool = False, files: Sequence[Path | None] = ()
    ) -> NoReturn:
        """Say which files were written, give the findings and the exit status, and end with it."""
        for file in files:
            if file is not None:
                self.say(f"wrote {file}")
        status = INTERRUPTED if stopped else RESERVED if reserved else DONE
        self.give({"exit": status, **findings})
        raise typer.Exit(status)


def convert(value: Any) -> Any:
    """Return a value in the types of JSON: arrays become lists, infinite numbers and NaN become null."""
    if isinstance(value, Mapping):
        return {str(key): convert(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [convert(inner) for inner in value]
    if isinstance(value, np.ndarray | np.generic):
        return convert(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


class Watch:
    """Say on standard error what is under way, and how long it has taken, while a command works.

    In a terminal it is one line that changes; elsewhere a line now and then; nothing with ``--quiet`` or ``--json``.
    The first Ctrl-C makes ``stopped`` true where a solver is at work that asks for it, and the command goes on with
    what is finished; another one, or one elsewhere, interrupts as usual.  ``limit`` is in seconds, for all of it.
    """

    def __init__(self, console: Console, limit: float | None = None) -> None:
        self.silent = console.quiet or console.as_json
        self.limit = None if limit is None else positive(limit, "--time-limit")
        self.started = time.perf_counter()
        self.stopped = False
        self.text = "reading the table"
        self.patient = False  # whether what is at work will ask whether to stop
        self._display: Any = None
        self._task: Any = None
        self._ended = threading.Event()
        self._before: Any = None

    @property
    def seconds(self) -> float:
        """Seconds since the command began."""
        return time.perf_counter() - self.started

    @property
    def left(self) -> float | None:
        """Seconds that are left, None where there is no limit."""
        return None if self.limit is None else max(self.limit - self.seconds, 0.01)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        if not self.silent:
            (self._show if sys.stderr.isatty() else self._tell)()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        if self._display is not None:
            self._display.stop()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def say(self, text: str, *, patient: bool = False) -> None:
        """Say what is under way; ``patient`` where it asks whether to stop."""
        self.text, self.patient = text, patient
        if self._display is not None:
            self._display.update(self._task, description=text)

    def note(self, text: str) -> None:
        """Write a line that stays, above the one that changes."""
        if self._display is not None:
            self._display.console.print(printable(text), markup=False, highlight=False)
        elif not self.silent:
            sys.stderr.write(f"{printable(text)}\n")

    def begin(self, text: str) -> bool:
        """Say what is about to begin, and return whether to stop instead."""
        self.say(text)
        return self.stopped

    def solver(self, name: str) -> Callable[[Progress], bool]:
        """Return the callback of a solver: it says the bracket, and returns whether to stop."""

        def callback(progress: Progress) -> bool:
            lower, upper = format_ends(progress.lower, progress.upper)
            self.say(f"{name}: best cost between {lower} and {upper}", patient=True)
            return self.stopped

        return callback

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self.stopped or not self.patient:
            self.stopped = True
            raise KeyboardInterrupt
        self.stopped = True
        self.say("stopping with what is finished (Ctrl-C again: at once)", patient=True)

    def _show(self) -> None:
        from rich.console import Console as Terminal
        from rich.progress import Progress as Line
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
        self._display = Line(*columns, console=Terminal(stderr=True), transient=True)
        self._task = self._display.add_task(self.text, total=None)
        self._display.start()

    def _tell(self) -> None:
        def work() -> None:
            pause = FIRST
            while not self._ended.wait(pause):
                print(f"{self.seconds:.0f} s: {self.text}", file=sys.stderr, flush=True)
                pause = EVERY

        threading.Thread(target=work, daemon=True, name="diffrac_cvx progress").start()
