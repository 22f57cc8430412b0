"""Output, progress and exit status of the commands; Ctrl-C keeps the results so far."""

import argparse
import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import Any, Self

import numpy as np

from diffrac_cvx.app.cli import EXIT_INTERRUPTED, EXIT_SUCCESS, EXIT_WARNING
from diffrac_cvx.comparison.rendered_table import ReportTable
from diffrac_cvx.machine.writing import escape_control
from diffrac_cvx.points.checks import positive
from diffrac_cvx.problem.formatting import format_ends
from diffrac_cvx.problem.result import Progress

FIRST_LINE_SECONDS, LINE_INTERVAL_SECONDS = 1.0, 5.0  # to the first line of progress, and between lines
TERMINAL_INTERVAL_SECONDS = 0.5  # between changes of the line on a terminal


class Console:
    """Output of a command: text, one JSON object, or nothing; and its progress on standard error.

    While an interruptible solver runs, the first Ctrl-C sets ``stopped`` and the command continues with the results so
    far; any other Ctrl-C interrupts as usual.  The command started at the time ``started`` of `perf_counter`.
    """

    def __init__(self, given: argparse.Namespace, started: float) -> None:
        self.as_json, self.is_silent, self.started = given.json, given.json or given.quiet, started
        self.time_limit = None if given.time_limit is None else positive(given.time_limit, "--time-limit")
        self.stopped = self.is_interruptible = False
        self._next_line = started + FIRST_LINE_SECONDS
        self._old_handler: Any = None

    @property
    def seconds(self) -> float:
        """Seconds since the start of the command, imports included."""
        return time.perf_counter() - self.started

    @property
    def time_left(self) -> float | None:
        """Seconds left, None without a limit."""
        return None if self.time_limit is None else max(self.time_limit - self.seconds, 0.01)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._old_handler = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_error: object) -> None:
        if self._old_handler is not None:
            signal.signal(signal.SIGINT, self._old_handler)

    def update(self, text: str, *, is_interruptible: bool = False) -> bool:
        """Report the current step, and return whether to stop; ``is_interruptible``: whether it polls `stopped`."""
        self.is_interruptible = is_interruptible
        now, on_terminal = time.perf_counter(), sys.stderr.isatty()
        if now >= self._next_line and not self.is_silent:
            line = f"{self.seconds:.0f} s: {escape_control(text)}"
            sys.stderr.write(f"\r\x1b[K{line[:79]}\r" if on_terminal else f"{line}\n")
            sys.stderr.flush()
            self._next_line = now + (TERMINAL_INTERVAL_SECONDS if on_terminal else LINE_INTERVAL_SECONDS)
        return self.stopped

    def solver_callback(self, name: str) -> Callable[[Progress], bool]:
        """Return a solver callback that reports the bounds and returns whether to stop."""

        def callback(progress: Progress) -> bool:
            lower, upper = format_ends(progress.lower, progress.upper)
            return self.update(f"{name}: optimal cost between {lower} and {upper}", is_interruptible=True)

        return callback

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        is_first, self.stopped = not self.stopped, True
        if not (is_first and self.is_interruptible):
            raise KeyboardInterrupt

    def echo(self, text: str) -> None:
        """Print a line of text unless the output is JSON or quiet."""
        if not self.is_silent:
            print(escape_control(text))

    def show_table(self, table: ReportTable) -> None:
        """Print a table and an empty line: on a terminal in columns of whole words, otherwise as text of any width."""
        if self.is_silent:
            return
        if not sys.stdout.isatty():
            self.echo(f"{table.text()}\n")
            return
        from rich.console import Console as Terminal
        from rich.table import Table
        from rich.text import Text

        shown = Table(box=None, pad_edge=False, header_style="")
        head, *body = ([escape_control(entry) for entry in line] for line in table.lines())
        for title, *entries in zip(head, *body, strict=True):
            longest = max(len(word) for word in " ".join([title, *entries]).split())
            shown.add_column(Text(title), min_width=longest)
        for line in body:
            shown.add_row(*map(Text, line))
        Terminal().print(shown, "", crop=False)

    def finish(self, findings: Mapping[str, Any], *files: Path | None, has_warnings: bool = False) -> int:
        """Print the written files, or the findings as JSON, and return the exit status."""
        for file in files:
            if file is not None:
                self.echo(f"wrote {file}")
        status = EXIT_INTERRUPTED if self.stopped else EXIT_WARNING if has_warnings else EXIT_SUCCESS
        if self.as_json:
            print(json.dumps(to_json({"exit": status, **findings}), indent=2, allow_nan=False))
        return status


def to_json(value: Any) -> Any:
    """Return a value as JSON types: records become objects, arrays lists, infinities and NaN null."""
    if hasattr(value, "_asdict"):
        return to_json(value._asdict())
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) or isinstance(value, Mapping):
        fields = value if isinstance(value, Mapping) else vars(value)
        return {str(key): to_json(inner) for key, inner in fields.items()}
    if isinstance(value, np.ndarray | np.generic):
        return to_json(value.tolist())
    if isinstance(value, list | tuple):
        return [to_json(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
