"""``diffrac-cvx compare``: several methods on a table."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from diffrac_cvx import comparison
from diffrac_cvx.app import report as html
from diffrac_cvx.app.cli import options
from diffrac_cvx.app.cli.columns import ColumnOptions, GroupsOption, NonnegativeOption
from diffrac_cvx.app.cli.console import Console, ProgressReporter
from diffrac_cvx.app.cli.data import CONSTANT_WARNING, TableSource, with_option
from diffrac_cvx.comparison import Comparison, MethodResult, ReportTable
from diffrac_cvx.comparison.disagreements import lower_bound_of
from diffrac_cvx.machine.writing import write_csv, write_text
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.problem.formatting import format_ends
from diffrac_cvx.problem.result import Status

METHOD_STATUS_MESSAGES = {  # for those whose text names a parameter that is not an option
    str(Status.MAX_ITER): "iteration limit reached; the bounds are valid",
    str(
        Status.TIME_LIMIT
    ): "time limit of this method reached; the bounds are valid, and a larger --time-limit tightens them",
    str(Status.SMOOTHED_GAP): "stopped by the criterion of the paper; the bounds are valid",
    str(Status.STALLED): "no further progress in double precision; the bounds are valid. Increase --tol",
}


@options.with_table_options
def compare(
    source: TableSource,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="Method to run; may be repeated.  By default, all that take seconds."),
    ] = None,
    nu: options.Nu = 1.0,
    ridge: options.Ridge = None,
    a: options.RidgeRoot = None,
    lam: options.Lambda = None,
    c: options.LambdaRoot = None,
    groups: GroupsOption = None,
    nonnegative: NonnegativeOption = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            help="Imbalance of the clusters, for the method that fixes it, from 0 (equal sizes) to 1 (one cluster)."
        ),
    ] = None,
    tol: options.Tolerance = 1e-4,
    time_limit: options.TimeLimit = None,
    memory: Annotated[
        bool, typer.Option("--memory", help="Measure peak memory, with each method in its own process.")
    ] = False,
    no_standardize: options.NoStandardize = False,
    seed: options.Seed = 0,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    out: options.OutFile = None,
    report: options.ReportFile = None,
) -> None:
    """Run several methods on the same table, among them k-means and a Gaussian mixture, and cross-check their results.

    The exit status is 1 if methods contradict each other or fail, or if the labels of every method have a warning.
    """
    console = Console(as_json, quiet)
    penalty = options.penalty_from_options(lam, c, ridge, a, options.DEFAULT_RIDGE)
    with ProgressReporter(console, time_limit) as progress:
        table = source.load()
        penalty = ColumnOptions.given(groups, nonnegative).penalty(penalty, table, has_l1=bool(np.any(penalty.c)))
        compared = comparison.compare(
            table.X if no_standardize else standardize_columns(table.X), table.labels, methods=method, nu=nu,
            penalty=penalty, alpha=alpha, tol=tol, time_limit=progress.time_left, measure_memory=memory, rng=seed,
            callback=lambda name, now: progress.begin(name) if now is None else progress.solver_callback(name)(now),
            on_result=lambda name, found: progress.write_line(f"{name}: {describe_method(found)}"),
        )  # fmt: skip
        notes = tuple(note for note in compared.notes if not re.match(CONSTANT_WARNING, note))
        rows = tuple(
            {**row, "status": METHOD_STATUS_MESSAGES.get(row["status"], row["status"])} for row in compared.rows
        )
        compared = replace(compared, notes=notes, rows=rows)
        if report is not None:
            progress.update("writing the report")
            write_comparison_report(report, compared, source)
        if out is not None:
            written = ReportTable.from_records(compared.rows)
            write_csv(out, written.header, written.rows)
    for note in table.notes:
        console.echo(f"Note: {with_option(note)}.")
    empty = only_warnings(compared)
    if empty:
        console.echo("WARNING: the labels of every method have a warning, see the column 'warning'.")
    print_comparison(compared, console)
    failed = any(one.reason for one in compared.method_results.values())
    findings = {
        "file": source.file,
        "rows": compared.rows,
        "agreement": {"methods": list(compared.labels), "values": compared.agreement},
        "disagreements": compared.disagreements,
        "notes": compared.notes,
    }
    has_warnings = bool(compared.disagreements) or failed or empty
    console.finish(findings, has_warnings=has_warnings, interrupted=progress.stopped, files=(out, report))


def describe_method(found: MethodResult) -> str:
    """Return the result of a method in one line."""
    if found.reason:
        return found.reason
    least, cost = format_ends(lower_bound_of(found), found.objective)
    proved = "" if np.isinf(lower_bound_of(found)) else f", certified lower bound {least}"
    return f"cost {cost}{proved}; {found.seconds:.2f} s"


def only_warnings(compared: Comparison) -> bool:
    """Whether there are labels, all of them with a warning."""
    rows = [row for row in compared.rows if row["method"] in compared.labels]
    return bool(rows) and all(row["warning"] for row in rows)


def print_comparison(compared: Comparison, console: Console) -> None:
    """Print a comparison, at the width of the terminal if there is one."""
    if console.quiet or console.as_json or not sys.stdout.isatty():
        console.echo(str(compared))
    else:
        from rich import print as print_to_terminal

        print_to_terminal(compared)


def write_comparison_report(path: Path, compared: Comparison, source: TableSource) -> None:
    """Write the report of a comparison."""
    from diffrac_cvx.plotting import BracketDisplay, SpectrumDisplay

    pictures = []
    runs = {name: result for name, result in compared.results.items() if len(result.history) > 1}
    if runs:
        brackets = BracketDisplay.from_result(*runs.values(), names=list(runs))
        pictures.append(
            html.encode_picture(brackets, "Certified bounds on the optimal objective against time.", against="seconds")
        )
    best = min(compared.results, key=lambda name: compared.results[name].gap, default=None)
    if best is not None:
        spectrum = SpectrumDisplay.from_result(compared.results[best])
        pictures.append(
            html.encode_picture(
                spectrum, f"Eigenvalues of the solution of {best}: a single nonzero one gives one split."
            )
        )
    text = html.render(
        "compare.html", title=f"Methods on {source.file}", file=source.file, tables=compared.tables(),
        remarks=[said for said in compared.messages() if said not in compared.skipped], skipped=compared.skipped,
        agreement=compared.agreement_table(), empty=only_warnings(compared), pictures=pictures,
    )  # fmt: skip
    write_text(path, text)
