"""The program as it is installed: one sentence where the packages that it needs are not."""

import sys


def entry() -> None:
    """Run the program."""
    try:
        from diffrac_cvx.app.cli.program import entry as program
    except ModuleNotFoundError as error:
        sys.stderr.write(f"error: the program needs {error.name}, which is missing: pip install 'diffrac-cvx[app]'\n")
        sys.exit(2)
    program()
