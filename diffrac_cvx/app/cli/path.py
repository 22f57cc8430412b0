"""``diffrac-cvx path``: the regularization path over a grid of one parameter, as a table or a plot."""

import argparse
import os
from typing import Any

import numpy as np

from diffrac_cvx import paths
from diffrac_cvx.app.cli.console import Console
from diffrac_cvx.app.cli.constraints import add_column_options, column_parameters
from diffrac_cvx.app.cli.options import Parser, add_output, add_parameters, add_table
from diffrac_cvx.app.cli.table import load, refuse_outputs
from diffrac_cvx.comparison.table import ReportTable
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.estimators import DiffracClustering
from diffrac_cvx.machine.writing import atomic_file, write_csv
from diffrac_cvx.paths import RegularizationPath
from diffrac_cvx.points.checks import Array, one_of
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.problem.formatting import formatted_lower, formatted_upper
from diffrac_cvx.problem.penalty import Penalty, penalty_on_columns

PLOT_SUFFIXES = (".png", ".pdf", ".svg")
SMALL_COEFFICIENT = 1e-3  # of the largest coefficient; smaller ones are not counted
VARIED = {"lambda": "lam", "nu": "nu"}


def parser() -> Parser:
    """Return the parser of the command."""
    made = Parser("path", main)
    add_table(made)
    group = made.add_argument_group("path")
    group.add_argument("--over", default="lambda", metavar="lambda|nu", help="Parameter to vary. Default: lambda.")
    text = "Number of values on the grid. Default: 12."
    group.add_argument("--n-values", type=int, default=12, metavar="NUMBER", help=text)
    text = "Value to use instead of the grid; may be repeated."
    group.add_argument("--value", type=float, action="append", metavar="NUMBER", help=text)
    add_parameters(group, DiffracClustering, ("nu", "lam", "ridge", "tol", "standardize"))
    add_column_options(made)
    add_output(made, "CSV file for the path, or file for a plot (.png, .pdf or .svg).")
    return made


def main(given: argparse.Namespace, console: Console) -> int:
    """Compute the regularization path: selected features and cost for several values of lambda or nu.

    --out with the suffix .png, .pdf or .svg writes a plot.  The exit status is 1 if every value has a warning, or a
    duality gap exceeds --tol.
    """
    name = VARIED[one_of(given.over, "--over", tuple(VARIED))]
    if getattr(given, name) != parser().get_default(name):
        raise ParameterError(f"--over {given.over} conflicts with --{given.over}. Give the values by --value.")
    if not given.value and given.n_values < 2:
        raise ParameterError(f"--n-values = {given.n_values} must be at least 2")
    refuse_outputs([given.file], {"--out": given.out})
    table = load(given)
    first, power = (0.0, -4) if name == "lam" else (0.5, -3)
    grid = np.unique(given.value or [first, *np.logspace(power, 0, given.n_values - 1)])
    X = standardize_columns(table.X) if given.standardize else table.X
    columns = column_parameters(given, table, has_l1=name == "lam" or given.lam != 0.0)
    limits: dict[str, Any] = {
        "y": table.y, "tol": given.tol, "time_limit": console.time_left,
        "on_parameter": lambda value: console.update(f"{given.over} = {value:.3g}"),
        "callback": console.solver_callback(given.over),
    }  # fmt: skip
    if name == "nu":
        penalty = penalty_on_columns(Penalty(lam=given.lam, ridge=given.ridge), d=X.shape[1], **columns)
        found = paths.nu_path(X, grid, penalty, **limits)
    else:
        found = paths.lambda_path(X, grid, nu=given.nu, ridge=given.ridge, **columns, **limits)
    shown, whole = path_tables(found, table.names)
    if given.out is not None and given.out.suffix in PLOT_SUFFIXES:
        os.environ.setdefault("MPLBACKEND", "Agg")
        from diffrac_cvx.plotting import PathDisplay

        with atomic_file(given.out) as part:
            PathDisplay(found, table.names).plot().figure_.savefig(part, bbox_inches="tight")
    elif given.out is not None:
        write_csv(given.out, whole.header, whole.rows)
    for note in table.notes:
        console.echo(f"Note: {note}.")
    is_empty, n_missing = all(found.diagnostics), len(grid) - len(found.parameter)
    if is_empty:
        console.echo("WARNING: every value has a warning, see the column 'warning'.")
    console.echo(shown.text())
    if n_missing:
        why = "interrupted" if console.stopped else "time limit reached"
        console.echo(f"WARNING: {why} before {n_missing} of {len(grid)} values.")
    has_warnings = is_empty or n_missing > 0 or float(found.gap.max()) > given.tol * 1.001
    findings = {"file": given.file, "columns": whole.header, "rows": whole.rows}
    return console.finish(findings, given.out, has_warnings=has_warnings)


def path_tables(found: RegularizationPath, names: tuple[str, ...]) -> tuple[ReportTable, ReportTable]:
    """Return the table that is printed, with the number of non-negligible coefficients, and that with all of them."""
    scaled = found.directions * (1.0 if found.deviations is None else found.deviations)
    columns: dict[str, Any] = {
        found.name: found.parameter.tolist(),
        "value": [*map(formatted_upper, found.value, found.gap)],
        "lower": [*map(formatted_lower, found.lower, found.gap)],
        "gap": [*map(formatted_upper, found.gap)],
        "eigenvalue_ratio": found.eigenvalue_ratio.tolist(),
        "imbalance": found.imbalance.tolist(),
        "features": count_large(np.abs(scaled)),
    }
    details = {f"w_{name}": scaled[:, j].tolist() for j, name in enumerate(names)}
    if not found.groups.are_single:
        columns["groups"] = count_large(found.group_norms)
        details |= {f"group_{name}": found.group_norms[:, g].tolist() for g, name in enumerate(found.groups.names)}
    columns |= {} if found.error is None else {"error": found.error.tolist()}
    columns["warning"] = [", ".join(reason.code for reason in reasons) for reasons in found.diagnostics]
    both = (columns, columns | {"seconds": found.seconds.tolist()} | details)
    shown, whole = (ReportTable(tuple(some), tuple(zip(*some.values(), strict=True))) for some in both)
    return shown, whole


def count_large(sizes: Array) -> list[int]:
    """Return the number of non-negligible sizes in each row."""
    is_large = sizes > SMALL_COEFFICIENT * sizes.max(axis=1, initial=0.0, keepdims=True)
    return [int(count) for count in is_large.sum(axis=1)]
