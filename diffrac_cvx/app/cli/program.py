"""Commands and error reporting: one line per error, suggested commands if any, exit status 2."""

import io
import re
import subprocess
import sys
import warnings
from typing import Annotated

import typer

from diffrac_cvx.app.cli import datasets
from diffrac_cvx.app.cli.cluster import cluster
from diffrac_cvx.app.cli.compare import compare
from diffrac_cvx.app.cli.console import EXIT_ERROR, EXIT_INTERRUPTED
from diffrac_cvx.app.cli.data import CONSTANT_WARNING, suggest_commands, with_remedies
from diffrac_cvx.app.cli.doctor import doctor, version
from diffrac_cvx.app.cli.options import READING_RULES
from diffrac_cvx.app.cli.path import path
from diffrac_cvx.app.cli.predict import predict
from diffrac_cvx.app.page.ports import require_port
from diffrac_cvx.errors import DataError, DegenerateDataWarning, ParameterError, ResourceError
from diffrac_cvx.machine.writing import escape_control

ABOUT = """Find two clusters of the rows of a table along a direction of the data, or K clusters (cluster --clusters K).

Certified bounds limit the distance from the optimum.  The method is discriminative clustering by convex relaxations.
"""
app = typer.Typer(name="diffrac-cvx", help=ABOUT, no_args_is_help=True, pretty_exceptions_enable=False)


def print_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        print(version("diffrac-cvx"))
        raise typer.Exit


@app.callback(help=ABOUT)
def root_options(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Define the options of the program itself."""


def explore(
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 2718,
    headless: Annotated[bool, typer.Option("--headless", help="Do not open a browser.")] = False,
) -> None:
    """Serve the interactive page on this machine until interrupted."""
    require_port(port)
    flags = ["--port", str(port), *(["--headless"] if headless else [])]
    raise typer.Exit(subprocess.run([sys.executable, "-m", "diffrac_cvx.app.page", *flags], check=False).returncode)


for _command in (cluster, predict, compare, path):
    app.command(epilog=READING_RULES)(_command)
for _command in (explore, doctor):
    app.command()(_command)
app.add_typer(datasets.datasets_app, name="datasets")


def print_warning(message: Warning | str, *_where: object, **_more: object) -> None:
    """Print a data warning as one line, except on constant columns, which the notes on the table name."""
    if isinstance(message, DegenerateDataWarning) and not re.match(CONSTANT_WARNING, str(message)):
        print(f"note: {' '.join(escape_control(str(message)).split())}", file=sys.stderr)


def run_command_line(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    suggestions: list[str] = []
    try:
        # Standalone mode lists the commands; otherwise usage errors are caught below.
        with warnings.catch_warnings():
            warnings.showwarning = print_warning
            return int(app(args=arguments, standalone_mode=arguments in ([], ["datasets"])) or 0)
    except SystemExit as end:
        return int(end.code or 0)
    except ModuleNotFoundError as error:
        message = f"the package {error.name} is not installed. Run: pip install 'diffrac-cvx[app]'"
    except DataError as error:
        message, suggestions = with_remedies(error), suggest_commands(error, arguments)
    except OSError as error:
        message = f"{error.filename or 'a file'} cannot be opened or written ({error.strerror or error})"
    except (ParameterError, ResourceError, ImportError) as error:
        message = str(error)
    except MemoryError as error:
        message = f"out of memory: {error}"
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error of Typer, whose class differs between versions
            message = f"{error.format_message()} Try --help."
        else:  # a bug: report it without a traceback
            message = f"internal error, please report it: {type(error).__name__}: {error}"
    print(f"error: {' '.join(escape_control(message).split())}", file=sys.stderr)
    for command in suggestions:
        print(f"try: {escape_control(command)}", file=sys.stderr)
    return EXIT_ERROR


def run_and_exit() -> None:
    """Run the command line and exit with its status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the terminal may not support all characters of column names
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run_command_line())
