"""``diffrac-cvx compare``: several methods on a table."""

import argparse
import re
from dataclasses import replace

from diffrac_cvx import comparison
from diffrac_cvx.app.answer import STATUS_WORDS
from diffrac_cvx.app.cli.console import Console
from diffrac_cvx.app.cli.constraint_options import add_column_options, column_parameters
from diffrac_cvx.app.cli.input_table import CONSTANT_WARNING, load, refuse_outputs
from diffrac_cvx.app.cli.options import Parser, add_output, add_parameters, add_table
from diffrac_cvx.app.render import note_lines
from diffrac_cvx.comparison import ReportTable
from diffrac_cvx.estimators import DiffracClustering
from diffrac_cvx.machine.writing import write_csv
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.problem.penalty import Penalty, penalty_on_columns
from diffrac_cvx.problem.result import Status


def parser() -> Parser:
    """Return the parser of the command."""
    made = Parser("compare", main)
    add_table(made)
    group = made.add_argument_group("methods")
    add_parameters(group, comparison.compare, ("methods",))
    add_parameters(
        group, DiffracClustering, ("nu", "lam", "ridge", "tol", "standardize", "random_state"), random_state=0
    )
    add_column_options(made)
    add_output(made, "CSV file for the table of methods.")
    return made


def main(given: argparse.Namespace, console: Console) -> int:
    """Run several methods on the same table, among them k-means and a Gaussian mixture, and cross-check their results.

    The exit status is 1 if methods contradict each other or fail, or if the labels of every method have a warning.
    """
    refuse_outputs([given.file], {"--out": given.out})
    table = load(given)
    columns = column_parameters(given, table, has_l1=given.lam != 0.0)
    penalty = penalty_on_columns(Penalty(lam=given.lam, ridge=given.ridge), d=len(table.names), **columns)
    compared = comparison.compare(
        standardize_columns(table.X) if given.standardize else table.X, table.labels, methods=given.methods,
        nu=given.nu, penalty=penalty, tol=given.tol, time_limit=console.time_left, rng=given.random_state,
        callback=lambda name, now: console.update(name) if now is None else console.solver_callback(name)(now),
    )  # fmt: skip
    words = {str(status): text for status, text in STATUS_WORDS.items() if status is not Status.OPTIMAL}
    rows = tuple({**row, "status": words.get(row["status"], row["status"])} for row in compared.rows)
    notes = tuple(note for note in compared.notes if not re.match(CONSTANT_WARNING, note))
    compared = replace(compared, notes=notes, rows=rows)
    if given.out is not None:
        written = ReportTable.from_records(rows)
        write_csv(given.out, written.header, written.rows)
    for line in note_lines(table.notes):
        console.echo(line)
    labelled = [row for row in rows if row["method"] in compared.labels]
    is_empty = bool(labelled) and all(row["warning"] for row in labelled)
    if is_empty:
        console.echo("WARNING: the labels of every method have a warning, see the column 'warning'.")
    for part in compared.tables():
        console.show_table(part)
    for message in compared.messages():
        console.echo(message)
    has_failed = any(one.reason for one in compared.method_results.values())
    findings = {
        "file": given.file, "rows": rows, "disagreements": compared.disagreements, "notes": notes,
    }  # fmt: skip
    return console.finish(findings, given.out, has_warnings=bool(compared.disagreements) or has_failed or is_empty)
