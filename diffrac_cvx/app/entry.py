"""Entry point of the program: report the first step at once, or a missing package in one line."""

import re
import sys
from collections.abc import Sequence

from diffrac_cvx.machine.writing import escape_control

FIRST_STEPS = {  # first step of each command; "{}" is the file
    "cluster": "reading {}",
    "compare": "reading {}",
    "path": "reading {}",
    "predict": "reading {}",
    "explore": "starting the page",
    "doctor": "testing the installation",
    "datasets": "locating the data sets",
}
SILENT_OPTION = re.compile(r"--help|--quiet|--json|-[a-z]*q[a-z]*")  # options that suppress the first line


def first_line(arguments: Sequence[str]) -> str:
    """Return the first step of a command, or "" if it is silent; the arguments are not validated yet."""
    command, *rest = arguments or [""]
    if command not in FIRST_STEPS or any(SILENT_OPTION.fullmatch(argument) for argument in rest):
        return ""
    named = rest and not rest[0].startswith("-")
    return escape_control(FIRST_STEPS[command].format(rest[0] if named else "the table"))


def entry() -> None:
    """Report the first step, then import the program, which takes a second, and run it."""
    line = first_line(sys.argv[1:])
    if line:
        sys.stderr.write(f"{line} ...\n")
    try:
        from diffrac_cvx.app.cli.program import run_and_exit as program
    except ModuleNotFoundError as error:
        sys.stderr.write(f"error: the package {error.name} is not installed. Run: pip install 'diffrac-cvx[app]'\n")
        sys.exit(2)
    program()
