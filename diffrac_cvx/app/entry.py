"""The program as it is installed: what it is about to do at once, and one sentence where a package is missing."""

import re
import sys
from collections.abc import Sequence

from diffrac_cvx.machine.writing import printable

BEGINS = {  # what each command does first; "{}" is the file
    "cluster": "reading {}",
    "compare": "reading {}",
    "path": "reading {}",
    "predict": "reading {}",
    "explore": "starting the page",
    "doctor": "testing what is installed",
    "datasets": "looking for the data sets",
}
SILENT = re.compile(r"--help|--quiet|--json|-[a-z]*q[a-z]*")  # options with which nothing is said


def first_line(arguments: Sequence[str]) -> str:
    """Return what a command is about to do, nothing where it is to be silent: it is not known yet which are right."""
    command, *rest = arguments or [""]
    if command not in BEGINS or any(SILENT.fullmatch(argument) for argument in rest):
        return ""
    named = rest and not rest[0].startswith("-")
    return printable(BEGINS[command].format(rest[0] if named else "the table"))


def entry() -> None:
    """Say what is about to be done, then import what does it, which takes a second, and run it."""
    said = first_line(sys.argv[1:])
    if said:
        sys.stderr.write(f"{said} ...\n")
    try:
        from diffrac_cvx.app.cli.program import entry as program
    except ModuleNotFoundError as error:
        sys.stderr.write(f"error: the program needs {error.name}, which is missing: pip install 'diffrac-cvx[app]'\n")
        sys.exit(2)
    program()
