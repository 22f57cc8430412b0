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

from diffrac_cvx.machine.writing import escape_control
from diffrac_cvx.points.checks import positive
from diffrac_cvx.problem.formatting import format_ends
from diffrac_cvx.problem.result import Progress

EXIT_SUCCESS, EXIT_WARNING, EXIT_ERROR, EXIT_INTERRUPTED = 0, 1, 2, 130
FIRST_LINE_SECONDS, LINE_INTERVAL_SECONDS = (
    1.0,
    5.0,
)  # seconds to the first line and between lines, where there is no terminal


@dataclass(frozen=True)
class Console:
    """Print for a person, or one JSON object for a program, or nothing."""

    as_json: bool = False
    quiet: bool = False

    def echo(self, text: str) -> None:
        """Print a line for a person."""
        if not (self.as_json or self.quiet):
            print(escape_control(text))

    def echo_json(self, findings: Mapping[str, Any]) -> None:
        """Print the JSON object, where it was asked for."""
        if self.as_json:
            print(json.dumps(to_json(findings), indent=2, allow_nan=False))

    def finish(
        self,
        findings: Mapping[str, Any],
        *,
        has_warnings: bool,
        interrupted: bool = False,
        files: Sequence[Path | None] = (),
    ) -> NoReturn:
        """Say which files were written, give the findings and the exit status, and end with it."""
        for file in files:
            if file is not None:
                self.echo(f"wrote {file}")
        status = EXIT_INTERRUPTED if interrupted else EXIT_WARNING if has_warnings else EXIT_SUCCESS
        self.echo_json({"exit": status, **findings})
        raise typer.Exit(status)


def to_json(value: Any) -> Any:
    """Return a value in the types of JSON: arrays become lists, infinite numbers and NaN become null."""
    if isinstance(value, Mapping):
        return {str(key): to_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(inner) for inner in value]
    if isinstance(value, np.ndarray | np.generic):
        return to_json(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


class ProgressReporter:
    """Say on standard error what is under way, and how long it has taken, while a command works.

    In a terminal it is one line that changes; elsewhere a line now and then; nothing with ``--quiet`` or ``--json``.
    The first Ctrl-C makes ``stopped`` true where a solver is at work that asks for it, and the command goes on with
    what is finished; another one, or one elsewhere, interrupts as usual.  ``time_limit`` is in seconds, for all of it.
    """

    def __init__(self, console: Console, time_limit: float | None = None) -> None:
        self.silent = console.quiet or console.as_json
        self.time_limit = None if time_limit is None else positive(time_limit, "--time-limit")
        self.started = time.perf_counter()
        self.stopped = False
        self.text = "reading the table"
        self.is_interruptible = False  # whether what is at work will ask whether to stop
        self._display: Any = None
        self._task: Any = None
        self._finished = threading.Event()
        self._old_handler: Any = None

    @property
    def seconds(self) -> float:
        """Seconds since the command began."""
        return time.perf_counter() - self.started

    @property
    def time_left(self) -> float | None:
        """Seconds that are left, None where there is no limit."""
        return None if self.time_limit is None else max(self.time_limit - self.seconds, 0.01)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._old_handler = signal.signal(signal.SIGINT, self._interrupt)
        if not self.silent:
            (self._show_spinner if sys.stderr.isatty() else self._print_lines)()
        return self

    def __exit__(self, *_error: object) -> None:
        self._finished.set()
        if self._display is not None:
            self._display.stop()
        if self._old_handler is not None:
            signal.signal(signal.SIGINT, self._old_handler)

    def update(self, text: str, *, is_interruptible: bool = False) -> None:
        """Say what is under way; ``is_interruptible`` where it asks whether to stop."""
        self.text, self.is_interruptible = text, is_interruptible
        if self._display is not None:
            self._display.update(self._task, description=text)

    def write_line(self, text: str) -> None:
        """Write a line that stays, above the one that changes."""
        if self._display is not None:
            self._display.console.print(escape_control(text), markup=False, highlight=False)
        elif not self.silent:
            sys.stderr.write(f"{escape_control(text)}\n")

    def begin(self, text: str) -> bool:
        """Say what is about to begin, and return whether to stop instead."""
        self.update(text)
        return self.stopped

    def solver_callback(self, name: str) -> Callable[[Progress], bool]:
        """Return the callback of a solver: it says the bracket, and returns whether to stop."""

        def callback(progress: Progress) -> bool:
            lower, upper = format_ends(progress.lower, progress.upper)
            self.update(f"{name}: best cost between {lower} and {upper}", is_interruptible=True)
            return self.stopped

        return callback

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self.stopped or not self.is_interruptible:
            self.stopped = True
            raise KeyboardInterrupt
        self.stopped = True
        self.update("stopping with what is finished (Ctrl-C again: at once)", is_interruptible=True)

    def _show_spinner(self) -> None:
        from rich.console import Console as Terminal
        from rich.progress import Progress as Line
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
        self._display = Line(*columns, console=Terminal(stderr=True), transient=True)
        self._task = self._display.add_task(self.text, total=None)
        self._display.start()

    def _print_lines(self) -> None:
        def work() -> None:
            pause = FIRST_LINE_SECONDS
            while not self._finished.wait(pause):
                print(f"{self.seconds:.0f} s: {self.text}", file=sys.stderr, flush=True)
                pause = LINE_INTERVAL_SECONDS

        threading.Thread(target=work, daemon=True, name="diffrac_cvx progress").start()
