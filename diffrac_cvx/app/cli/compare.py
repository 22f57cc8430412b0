"""``diffrac-cvx compare``: several methods on a table."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from diffrac_cvx import comparison
from diffrac_cvx.app import report as html
from diffrac_cvx.app.cli import options
from diffrac_cvx.app.cli.console import DONE, RESERVED, Console
from diffrac_cvx.app.cli.data import load_table
from diffrac_cvx.comparison import Comparison
from diffrac_cvx.linalg import standardise
from diffrac_cvx.penalty import Penalty
from diffrac_cvx.writing import write_csv


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
    console = Console(as_json, quiet)
    table = load_table(file, label, drop, missing)
    compared = comparison.compare(
        table.X if no_standardize else standardise(table.X).X, table.y, methods=method, nu=nu,
        penalty=Penalty.l1(lam, ridge), alpha=alpha, tol=tol, time_limit=time_limit, memory=memory, random_state=seed,
    )  # fmt: skip
    print_comparison(compared, console)
    if out is not None:
        write_rows(out, compared)
        console.say(f"wrote {out}")
    if report is not None:
        write_report(report, compared, f"Methods on {file}")
        console.say(f"wrote {report}")
    failed = any(one.reason for one in compared.found.values())
    status = RESERVED if compared.disagreements or failed else DONE
    console.give({"file": file, "exit": status, **as_record(compared)})
    raise typer.Exit(status)


def print_comparison(compared: Comparison, console: Console) -> None:
    """Print a comparison, to the width of the terminal where there is one."""
    if console.quiet or console.as_json or not sys.stdout.isatty():
        console.say(str(compared))
        return
    from rich.console import Console as Terminal

    Terminal().print(compared)


def as_record(compared: Comparison) -> dict[str, Any]:
    """Return a comparison for JSON."""
    return {
        "rows": compared.rows,
        "agreement": {"methods": list(compared.labels), "values": compared.agreement},
        "disagreements": compared.disagreements,
        "notes": compared.notes,
    }


def write_rows(path: Path, compared: Comparison) -> None:
    """Write a comparison's rows as CSV."""
    head = list(dict.fromkeys(key for row in compared.rows for key in row))
    write_csv(path, head, ([row.get(key, "") for key in head] for row in compared.rows))


def write_report(path: Path, compared: Comparison, title: str) -> None:
    """Write the report of a comparison."""
    from diffrac_cvx.plotting import BracketDisplay, SpectrumDisplay

    sections = [html.section("Methods", compared._repr_html_())]
    runs = {name: result for name, result in compared.results.items() if len(result.history) > 1}
    if runs:
        brackets = BracketDisplay.from_result(*runs.values(), names=list(runs))
        picture = html.picture(brackets, "Proved bounds on the optimum.", against="seconds")
        sections.append(html.section("Brackets", picture))
    best = min(compared.results, key=lambda name: compared.results[name].gap, default=None)
    if best is not None:
        spectrum = SpectrumDisplay.from_result(compared.results[best])
        sections.append(html.section("Spectrum", html.picture(spectrum, f"Eigenvalues of Y and V, by {best}.")))
    html.write(path, title, *sections)
