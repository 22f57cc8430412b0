"""What every command prints, and how it ends: 0 done, 1 done with a reservation, 2 not done."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from diffrac_cvx.result import Progress

DONE, RESERVED, REFUSED, INTERRUPTED = 0, 1, 2, 130


class Console:
    """Print for a person, or one JSON object for a program, or nothing."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet

    def say(self, text: str) -> None:
        """Print a line for a person."""
        if not (self.as_json or self.quiet):
            print(text)

    def give(self, found: Mapping[str, Any]) -> None:
        """Print the JSON object, where it was asked for."""
        if self.as_json:
            print(json.dumps(plain(found), indent=2, allow_nan=False))

    @property
    def progress(self) -> Callable[[Progress], bool] | None:
        """A solver's callback that rewrites one line of a terminal; None where nobody looks at one."""
        if self.as_json or self.quiet or not sys.stderr.isatty():
            return None
        return show


def show(progress: Progress) -> bool:
    """Rewrite the line of progress on standard error, and never stop the solver."""
    line = f"iteration {progress.iteration}, proved gap {progress.upper - progress.lower:.1e}, {progress.seconds:.1f} s"
    print(f"\r{line:60}\r", end="", file=sys.stderr, flush=True)
    return False


def plain(value: Any) -> Any:
    """Return a value as JSON knows it: arrays are lists, and what is not a number is null."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
