"""What every command prints, and its exit status: 0 done; 1 done, but a check failed or tol was not met; 2 not done."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import typer

from diffrac_cvx.machine.writing import printable

DONE, RESERVED, REFUSED, INTERRUPTED = 0, 1, 2, 130


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
