"""The commands, their options, and how errors leave: one line, no traceback, exit status 2."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from diffrac_cvx import datasets
from diffrac_cvx.app.cli import cluster as clustering
from diffrac_cvx.app.cli import compare_and_path as several
from diffrac_cvx.app.cli import data, doctor, experiments, options
from diffrac_cvx.app.cli.console import INTERRUPTED, REFUSED, Console
from diffrac_cvx.comparison import compare as run_all
from diffrac_cvx.errors import DataError, ParameterError, ResourceError
from diffrac_cvx.penalty import Penalty

app = typer.Typer(
    name="diffrac-cvx",
    help="Convex relaxations for discriminative clustering, with proved brackets.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
sets = typer.Typer(help="The data sets that are known by name.", no_args_is_help=True)
app.add_typer(sets, name="datasets")


def show_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        print(doctor.version("diffrac-cvx"))
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Convex relaxations for discriminative clustering, with proved brackets."""


@app.command()
def cluster(
    file: options.File,
    label: options.Label = None,
    drop: options.Drop = None,
    missing: options.Missing = "error",
    n_labels: Annotated[
        int, typer.Option("--n-labels", "-k", help="Labels to find at once; 1 splits the points in two.")
    ] = 1,
    nu: options.Nu = 1.0,
    ridge: options.Ridge = 0.0,
    lam: options.Lambda = 0.0,
    solver: Annotated[str, typer.Option(help="auto, low_rank, fista, SCS or CLARABEL.")] = "auto",
    refine: Annotated[
        bool, typer.Option("--refine", help="Alternate directions and splits until nothing is gained.")
    ] = False,
    tol: options.Tolerance = 1e-3,
    time_limit: options.Seconds = None,
    no_standardize: options.Raw = False,
    seed: options.Seed = 0,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    out: options.Out = None,
    report: options.Report = None,
) -> None:
    """Find clusters in a table of your own, with what is proved about them; exits with 1 where tol was not met."""
    console = Console(as_json=as_json, quiet=quiet)
    table = data.table_of(file, label, drop, missing)
    weights = Penalty.l1(lam, ridge)
    model = clustering.fitted(
        table, n_labels, seed, nu=nu, a=weights.a, c=weights.c, solver=solver, refine=refine, tol=tol,
        time_limit=time_limit, standardize=not no_standardize,
    )  # fmt: skip
    found = clustering.summary(table, model)
    status = clustering.told(table, model, found, console)
    if out is not None:
        clustering.write_labels(out, table, model)
        console.say(f"wrote {out}")
    if report is not None:
        clustering.write_report(report, table, model, found, data.reading_of(file, label, drop, missing))
        console.say(f"wrote {report}")
    console.give({"file": file, "exit": status, **found})
    raise typer.Exit(status)


@app.command()
def compare(
    file: options.File,
    label: options.Label = None,
    drop: options.Drop = None,
    missing: options.Missing = "error",
    method: Annotated[list[str] | None, typer.Option("--method", "-m", help="A method; may be repeated.")] = None,
    nu: options.Nu = 1.0,
    ridge: options.Ridge = 0.0,
    lam: options.Lambda = 0.0,
    alpha: Annotated[float | None, typer.Option(help="Imbalance of the constrained relaxation, in [0, 1].")] = None,
    tol: options.Tolerance = 1e-4,
    time_limit: options.Seconds = None,
    memory: Annotated[bool, typer.Option("--memory", help="Measure memory, each method in its own process.")] = False,
    no_standardize: options.Raw = False,
    seed: options.Seed = 0,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    out: options.Out = None,
    report: options.Report = None,
) -> None:
    """Run relaxations and solvers on the same table; exits with 1 where they disagree or fail."""
    console = Console(as_json=as_json, quiet=quiet)
    table = data.table_of(file, label, drop, missing)
    found = run_all(
        data.scaled(table.X, no_standardize), table.y, methods=method, nu=nu, penalty=Penalty.l1(lam, ridge),
        alpha=alpha, tol=tol, time_limit=time_limit, memory=memory, random_state=seed,
    )  # fmt: skip
    status = several.told(found, console)
    if out is not None:
        several.write_rows(out, found)
        console.say(f"wrote {out}")
    if report is not None:
        several.comparison_report(report, found, f"Methods on {file}")
        console.say(f"wrote {report}")
    console.give({"file": file, "exit": status, **several.as_record(found)})
    raise typer.Exit(status)


@app.command()
def path(
    file: options.File,
    label: options.Label = None,
    drop: options.Drop = None,
    missing: options.Missing = "error",
    over: Annotated[str, typer.Option(help="What varies: 'lambda', 'nu' or 'alpha'.")] = "lambda",
    points: Annotated[int, typer.Option(help="Points of the grid.")] = 12,
    value: Annotated[list[float] | None, typer.Option(help="A value of the grid; may be repeated.")] = None,
    nu: options.Nu = 1.0,
    ridge: options.Ridge = 0.0,
    lam: options.Lambda = 0.0,
    tol: options.Tolerance = 1e-4,
    time_limit: options.Seconds = None,
    no_standardize: options.Raw = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A .csv, or a picture .png, .pdf or .svg.")] = None,
) -> None:
    """Solve along a grid of one parameter; exits with 1 where tol was not met."""
    console = Console(as_json=as_json, quiet=quiet)
    table = data.table_of(file, label, drop, missing)
    found = several.path_over(
        over, data.scaled(table.X, no_standardize), points, value or None, table.y, nu=nu, ridge=ridge, lam=lam,
        tol=tol, time_limit=time_limit,
    )  # fmt: skip
    status = several.tell_path(found, console, tol)
    if out is not None:
        several.write(out, found, table.names)
        console.say(f"wrote {out}")
    head, rows = several.path_rows(found, table.names)
    console.give({"file": file, "exit": status, "columns": head, "rows": rows})
    raise typer.Exit(status)


@app.command()
def explore(
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 2718,
    headless: Annotated[bool, typer.Option("--headless", help="Open no browser.")] = False,
) -> None:
    """Serve the interactive page, for this machine alone, until interrupted."""
    flags = ["--port", str(port), *(["--headless"] if headless else [])]
    raise typer.Exit(subprocess.run([sys.executable, "-m", "diffrac_cvx.app.page", *flags], check=False).returncode)


@app.command("doctor")
def check(as_json: options.Json = False, quiet: options.Quiet = False) -> None:
    """Say what is installed, and test that it works; exits with 1 if something does not."""
    console = Console(as_json=as_json, quiet=quiet)
    found = doctor.examined()
    status = doctor.told(found, console)
    console.give({**found, "exit": status})
    raise typer.Exit(status)


@sets.command("list")
def list_sets(as_json: options.Json = False) -> None:
    """List the data sets, and which of them are here."""
    console = Console(as_json=as_json)
    rows = [described(name) for kind in ("two-class", "extra", "multi-label") for name in datasets.names(kind)]
    for row in rows:
        console.say(
            f"{row['name']:16} {row['kind']:12} {row['n']:>5} x {row['d']:<4} {row['where']:26} {row['licence']}"
        )
    console.give({"datasets": rows})


def described(name: str) -> dict[str, Any]:
    """Return what is known of a data set, and whether it is here."""
    record = datasets.describe(name)
    try:
        datasets.load(name)
        where = "shipped" if record.shipped else "here"
    except DataError:
        where = "to be fetched" if record.url else "to be put there by hand"
    known = {"name": name, "kind": record.kind, "n": record.n, "d": record.d, "licence": record.licence}
    return {**known, "where": where, "description": record.description, "source": record.source}


@sets.command("fetch")
def fetch_set(name: str, url: Annotated[str | None, typer.Option(help="A mirror of the file.")] = None) -> None:
    """Download a data set, check it, and keep it."""
    print(datasets.fetch(name, url=url))


def add_experiment(name: str, about: str) -> None:
    """Add a command that hands its options on to an experiment."""

    def command(
        grid: Annotated[str, typer.Option(help="'full', or 'smoke' for a minute.")] = "full",
        jobs: Annotated[int, typer.Option(help="Processes, of one thread each.")] = 1,
        out: options.Out = None,
    ) -> None:
        to = ["--out", str(Path(out).resolve())] if out is not None else []
        raise typer.Exit(experiments.run(name, ["--grid", grid, "--jobs", str(jobs), *to]))

    app.command(name, help=about)(command)


for _name, (_module, _about) in experiments.MODULES.items():
    add_experiment(_name, _about)


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    try:
        app(args=arguments)
    except SystemExit as end:
        return int(end.code or 0)
    except ModuleNotFoundError as error:
        print(f"error: this needs {error.name}, which is missing: pip install 'diffrac-cvx[app]'", file=sys.stderr)
        return REFUSED
    except (DataError, ParameterError, ResourceError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return INTERRUPTED
    return 0


def entry() -> None:
    """Run as a program."""
    sys.exit(run())
