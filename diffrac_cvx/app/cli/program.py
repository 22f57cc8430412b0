"""The commands, and how errors are reported: one line, no traceback, exit status 2."""

import subprocess
import sys
from typing import Annotated

import typer

from diffrac_cvx.app.cli import datasets
from diffrac_cvx.app.cli.cluster import cluster
from diffrac_cvx.app.cli.compare import compare
from diffrac_cvx.app.cli.console import INTERRUPTED, REFUSED
from diffrac_cvx.app.cli.data import hint
from diffrac_cvx.app.cli.doctor import doctor, version
from diffrac_cvx.app.cli.path import path
from diffrac_cvx.errors import DataError, ParameterError, ResourceError

ABOUT = "Convex relaxations for discriminative clustering, with proved brackets."
app = typer.Typer(name="diffrac-cvx", help=ABOUT, no_args_is_help=True, pretty_exceptions_enable=False)


def print_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        print(version("diffrac-cvx"))
        raise typer.Exit


@app.callback(help=ABOUT)
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Take the options that belong to no command."""


def explore(
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 2718,
    headless: Annotated[bool, typer.Option("--headless", help="Open no browser.")] = False,
) -> None:
    """Serve the interactive page, to this machine only, until interrupted."""
    flags = ["--port", str(port), *(["--headless"] if headless else [])]
    raise typer.Exit(subprocess.run([sys.executable, "-m", "diffrac_cvx.app.page", *flags], check=False).returncode)


for _command in (cluster, compare, path, explore, doctor):
    app.command()(_command)
app.add_typer(datasets.app, name="datasets")


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    try:
        app(args=arguments)
    except SystemExit as end:
        return int(end.code or 0)
    except ModuleNotFoundError as error:
        message = f"this needs {error.name}, which is missing: pip install 'diffrac-cvx[app]'"
    except DataError as error:
        message = f"{error}{hint(error)}"
    except OSError as error:
        message = f"{error.filename or 'a file'} cannot be opened or written ({error.strerror or error})"
    except (ParameterError, ResourceError, ImportError) as error:
        message = str(error)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return INTERRUPTED
    else:
        return 0
    print(f"error: {message}", file=sys.stderr)
    return REFUSED


def entry() -> None:
    """Run as a program."""
    sys.exit(run())
