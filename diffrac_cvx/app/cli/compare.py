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
from diffrac_cvx.app.cli.columns import Columns, GroupsOption, NonnegativeOption
from diffrac_cvx.app.cli.console import Console, Watch
from diffrac_cvx.app.cli.data import CONSTANT, Source, with_option
from diffrac_cvx.comparison import Comparison, Found, Table
from diffrac_cvx.comparison.disagreements import lower_of
from diffrac_cvx.machine.writing import write_csv, write_text
from diffrac_cvx.points.linear_algebra import standardise
from diffrac_cvx.problem.proved_numbers import format_ends
from diffrac_cvx.problem.result import Status

SPOKEN = {  # how a method ended, where it advises on a parameter that is no option of the program
    str(Status.MAX_ITER): "the largest number of steps was reached; the bracket is valid",
    str(Status.TIME_LIMIT): "its share of the time was up; the bracket is valid, a larger --time-limit narrows it",
    str(Status.PUBLISHED): "the paper's rule ended it; the bracket is valid",
    str(Status.STALLED): "no further progress in double precision; the bracket is valid, ask for a larger --tol",
}


@options.reads_a_table
def compare(
    source: Source,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="A method; may be repeated.  All that take seconds if not given."),
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
            help="How unequal the clusters are, for the method that fixes it: 0 (equal sizes) to 1 (one cluster)."
        ),
    ] = None,
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
    """Run several methods on the same table, k-means and a Gaussian mixture among them, and check them on each other.

    The exit status is 1 where methods contradict each other or fail, or none finds an answer.
    """
    console = Console(as_json, quiet)
    penalty = options.penalty_of(lam, c, ridge, a, options.RIDGE)
    with Watch(console, time_limit) as watch:
        table = source.load()
        penalty = Columns.given(groups, nonnegative).penalty(penalty, table, coupled=bool(np.any(penalty.c)))
        compared = comparison.compare(
            table.X if no_standardize else standardise(table.X).X, table.labels, methods=method, nu=nu, penalty=penalty,
            alpha=alpha, tol=tol, total_time=watch.left, memory=memory, random_state=seed,
            progress=lambda name, now: watch.begin(name) if now is None else watch.solver(name)(now),
            finished=lambda name, found: watch.note(f"{name}: {words_of(found)}"),
        )  # fmt: skip
        notes = tuple(note for note in compared.notes if not re.match(CONSTANT, note))
        rows = tuple({**row, "status": SPOKEN.get(row["status"], row["status"])} for row in compared.rows)
        compared = replace(compared, notes=notes, rows=rows)
        if report is not None:
            watch.say("writing the report")
            write_report(report, compared, source)
        if out is not None:
            written = Table.from_records(compared.rows)
            write_csv(out, written.head, written.rows)
    for note in table.notes:
        console.say(f"Note: {with_option(note)}.")
    empty = no_answers(compared)
    if empty:
        console.say("NO ANSWER: no method found an answer, see the column 'reservation'.")
    print_comparison(compared, console)
    failed = any(one.reason for one in compared.found.values())
    findings = {
        "file": source.file,
        "rows": compared.rows,
        "agreement": {"methods": list(compared.labels), "values": compared.agreement},
        "disagreements": compared.disagreements,
        "notes": compared.notes,
    }
    reserved = bool(compared.disagreements) or failed or empty
    console.end(findings, reserved=reserved, stopped=watch.stopped, files=(out, report))


def words_of(found: Found) -> str:
    """Return what a method found, in a line."""
    if found.reason:
        return found.reason
    least, cost = format_ends(lower_of(found), found.objective)
    proved = "" if np.isinf(lower_of(found)) else f", proved: none below {least}"
    return f"a split of cost {cost}{proved}; {found.seconds:.2f} s"


def no_answers(compared: Comparison) -> bool:
    """Whether there are labels, and none of them is an answer."""
    rows = [row for row in compared.rows if row["method"] in compared.labels]
    return bool(rows) and all(row["reservation"] for row in rows)


def print_comparison(compared: Comparison, console: Console) -> None:
    """Print a comparison, to the width of the terminal where there is one."""
    if console.quiet or console.as_json or not sys.stdout.isatty():
        console.say(str(compared))
    else:
        from rich import print as print_to_terminal

        print_to_terminal(compared)


def write_report(path: Path, compared: Comparison, source: Source) -> None:
    """Write the report of a comparison."""
    from diffrac_cvx.plotting import BracketDisplay, SpectrumDisplay

    pictures = []
    runs = {name: result for name, result in compared.results.items() if len(result.history) > 1}
    if runs:
        brackets = BracketDisplay.from_result(*runs.values(), names=list(runs))
        pictures.append(html.picture(brackets, "Proved bounds on the least cost, against time.", against="seconds"))
    best = min(compared.results, key=lambda name: compared.results[name].gap, default=None)
    if best is not None:
        spectrum = SpectrumDisplay.from_result(compared.results[best])
        pictures.append(html.picture(spectrum, f"Eigenvalues of the solution found by {best}: one alone is one split."))
    text = html.render(
        "compare.html", title=f"Methods on {source.file}", file=source.file, tables=compared.tables(),
        remarks=[said for said in compared.remarks() if said not in compared.left_out], left_out=compared.left_out,
        agreement=compared.agreement_table(), empty=no_answers(compared), pictures=pictures,
    )  # fmt: skip
    write_text(path, text)
