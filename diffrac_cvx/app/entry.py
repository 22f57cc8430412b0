"""The program as it is installed: what it is about to do at once, and one sentence where a package is missing."""

import re
import sys
from collections.abc import Sequence

from diffrac_cvx.machine.writing import escape_control

FIRST_STEPS = {  # what each command does first; "{}" is the file
    "cluster": "reading {}",
    "compare": "reading {}",
    "path": "reading {}",
    "predict": "reading {}",
    "explore": "starting the page",
    "doctor": "testing what is installed",
    "datasets": "looking for the data sets",
}
SILENT_OPTION = re.compile(r"--help|--quiet|--json|-[a-z]*q[a-z]*")  # options with which nothing is said


def first_line(arguments: Sequence[str]) -> str:
    """Return what a command is about to do, nothing where it is to be silent: it is not known yet which are right."""
    command, *rest = arguments or [""]
    if command not in FIRST_STEPS or any(SILENT_OPTION.fullmatch(argument) for argument in rest):
        return ""
    named = rest and not rest[0].startswith("-")
    return escape_control(FIRST_STEPS[command].format(rest[0] if named else "the table"))


def entry() -> None:
    """Say what is about to be done, then import what does it, which takes a second, and run it."""
    line = first_line(sys.argv[1:])
    if line:
        sys.stderr.write(f"{line} ...\n")
    try:
        from diffrac_cvx.app.cli.program import run_and_exit as program
    except ModuleNotFoundError as error:
        sys.stderr.write(f"error: the program needs {error.name}, which is missing: pip install 'diffrac-cvx[app]'\n")
        sys.exit(2)
    program()
