"""Commands and error reporting: one line per error, suggested commands if any, exit status 2."""

import gc
import io
import re
import shlex
import subprocess
import sys
import time
import warnings
from importlib import import_module, metadata

from diffrac_cvx.app.cli import EXIT_ERROR, EXIT_INTERRUPTED
from diffrac_cvx.errors import DataError, DegenerateDataWarning, ParameterError, ResourceError
from diffrac_cvx.machine.writing import escape_control

COMMANDS = ("cluster", "predict", "compare", "explore")
HELP = """Usage: diffrac-cvx COMMAND [OPTIONS]

Find clusters of the rows of a table along a direction of the data.  Certified
bounds limit the distance from the optimum.  The method is discriminative
clustering by convex relaxations.

Commands (diffrac-cvx COMMAND --help lists the options):
  cluster   Find clusters of the points of a table.
  predict   Assign the points of a new table to the clusters of a saved model.
  compare   Run several methods on one table, and cross-check their results.
  explore   Serve the interactive page on this machine (--port, --headless).

--version prints the version.  Exit status: 0 success; 1 a warning, or a
tolerance that was not met; 2 an error; 130 Ctrl-C.
"""
REMEDIES = (
    "drop",
    "header",
    "missing",
    "na_values",
    "skip_rows",
    "skip_footer",
    "transpose",
)  # parameters of `read_table`


def run_command(name: str, arguments: list[str]) -> int:
    """Run a command, and return the exit status."""
    if name in ("--help", "-h", "--version"):
        print(metadata.version("diffrac-cvx") if name == "--version" else HELP)
        return 0
    if name not in COMMANDS:
        raise ParameterError(f"there is no command {name!r}. Choose from {', '.join(COMMANDS)}.")
    if name == "explore":
        return subprocess.run([sys.executable, "-m", "diffrac_cvx.app.page", *arguments], check=False).returncode
    started = time.perf_counter()
    gc.disable()  # imports create many objects and no garbage: a tenth of the time of a small table
    # scikit-learn imports pandas if it can, needs it only for data frames, and takes a third of the time for it.
    pandas = sys.modules.setdefault("pandas", None)  # type: ignore[arg-type]
    module = import_module(f"diffrac_cvx.app.cli.{name}")
    if pandas is None:
        del sys.modules["pandas"]
    gc.enable()
    from diffrac_cvx.app.cli.console import Console

    given = module.parser().parse_args(arguments)
    with Console(given, started) as console, warnings.catch_warnings():
        warnings.showwarning = print_warning
        status: int = module.main(given, console)
    return status


def suggest_commands(error: DataError, name: str, arguments: list[str]) -> list[str]:
    """Return commands, quoted for a shell, each of which was tried and reads the rejected table."""
    from diffrac_cvx.app.cli.input_table import suggest_options

    module = import_module(f"diffrac_cvx.app.cli.{name}")
    found = suggest_options(lambda given: module.load(module.parser().parse_args(given)), arguments, error)
    return [shlex.join(("diffrac-cvx", name, *arguments, *options)) for options in found]


def print_warning(message: Warning | str, *_where: object, **_more: object) -> None:
    """Print a data warning as one line, except on constant columns, which the notes on the table name."""
    from diffrac_cvx.app.cli.input_table import CONSTANT_WARNING

    if isinstance(message, DegenerateDataWarning) and not re.match(CONSTANT_WARNING, str(message)):
        print(f"note: {' '.join(escape_control(str(message)).split())}", file=sys.stderr)


def run_command_line(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    name, *more = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    suggestions: list[str] = []
    try:
        return run_command(name, more)
    except SystemExit as end:  # --help of a command
        return int(end.code or 0)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        message = f"the package {package} is not installed. Run: pip install 'diffrac-cvx[app]'"
    except DataError as error:
        flags = [f"--{remedy.replace('_', '-')}" for remedy in error.remedies if remedy in REMEDIES]
        message = f"{str(error).rstrip('.')} ({', '.join(flags)})." if flags else str(error)
        suggestions = suggest_commands(error, name, more)
    except OSError as error:
        message = f"{error.filename or 'a file'} cannot be opened or written ({error.strerror or error})"
    except (ParameterError, ResourceError, ImportError) as error:
        message = str(error)
    except MemoryError as error:
        message = f"out of memory: {error}"
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except Exception as error:  # a bug: report it without a traceback
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
