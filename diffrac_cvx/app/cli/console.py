"""Output, progress and exit status of the commands; Ctrl-C keeps the results so far.

The exit status is 0 on success, 1 with a warning or if tol was not met, 2 on an error.
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
)  # to the first line and between lines, without a terminal


@dataclass(frozen=True)
class Console:
    """Standard output: text, one JSON object, or nothing."""

    as_json: bool = False
    quiet: bool = False

    def echo(self, text: str) -> None:
        """Print a line of text unless the output is JSON or quiet."""
        if not (self.as_json or self.quiet):
            print(escape_control(text))

    def echo_json(self, findings: Mapping[str, Any]) -> None:
        """Print the JSON object if the output is JSON."""
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
        """Print the written files and the findings, and exit with the status."""
        for file in files:
            if file is not None:
                self.echo(f"wrote {file}")
        status = EXIT_INTERRUPTED if interrupted else EXIT_WARNING if has_warnings else EXIT_SUCCESS
        self.echo_json({"exit": status, **findings})
        raise typer.Exit(status)


def to_json(value: Any) -> Any:
    """Return a value as JSON types: arrays become lists, infinities and NaN become null."""
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
    """Report progress and elapsed time on standard error.

    A terminal gets one updated line, other streams a line every few seconds, and ``--quiet`` or ``--json`` none.
    While an interruptible solver runs, the first Ctrl-C sets ``stopped`` and the command continues with the results so
    far; any other Ctrl-C interrupts as usual.  ``time_limit`` is in seconds, for the whole command.
    """

    def __init__(self, console: Console, time_limit: float | None = None) -> None:
        self.silent = console.quiet or console.as_json
        self.time_limit = None if time_limit is None else positive(time_limit, "--time-limit")
        self.started = time.perf_counter()
        self.stopped = False
        self.text = "reading the table"
        self.is_interruptible = False  # whether the current step polls `stopped`
        self._display: Any = None
        self._task: Any = None
        self._finished = threading.Event()
        self._old_handler: Any = None

    @property
    def seconds(self) -> float:
        """Seconds since the start of the command."""
        return time.perf_counter() - self.started

    @property
    def time_left(self) -> float | None:
        """Seconds left, None without a limit."""
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
        """Report the current step; ``is_interruptible``: whether it polls `stopped`."""
        self.text, self.is_interruptible = text, is_interruptible
        if self._display is not None:
            self._display.update(self._task, description=text)

    def write_line(self, text: str) -> None:
        """Write a permanent line above the progress line."""
        if self._display is not None:
            self._display.console.print(escape_control(text), markup=False, highlight=False)
        elif not self.silent:
            sys.stderr.write(f"{escape_control(text)}\n")

    def begin(self, text: str) -> bool:
        """Report the next step, and return whether to stop instead."""
        self.update(text)
        return self.stopped

    def solver_callback(self, name: str) -> Callable[[Progress], bool]:
        """Return a solver callback that reports the bounds and returns whether to stop."""

        def callback(progress: Progress) -> bool:
            lower, upper = format_ends(progress.lower, progress.upper)
            self.update(f"{name}: optimal cost between {lower} and {upper}", is_interruptible=True)
            return self.stopped

        return callback

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self.stopped or not self.is_interruptible:
            self.stopped = True
            raise KeyboardInterrupt
        self.stopped = True
        self.update("stopping with the results so far (press Ctrl-C again to abort)", is_interruptible=True)

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
