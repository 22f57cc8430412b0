"""``diffrac-cvx path``: the regularization path over a grid of one parameter, as a table or a plot."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as File
from typing import Annotated, Any

import numpy as np
import typer

from diffrac_cvx import paths
from diffrac_cvx.app.cli import options
from diffrac_cvx.app.cli.columns import ColumnOptions, GroupsOption, NonnegativeOption
from diffrac_cvx.app.cli.console import Console, ProgressReporter
from diffrac_cvx.app.cli.data import TableSource, with_option
from diffrac_cvx.app.cli.path_report import summary_table, whole_table, write_path_report
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.machine.writing import atomic_file, write_csv
from diffrac_cvx.paths import RegularizationPath
from diffrac_cvx.points.checks import Array, one_of
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.problem.penalty import Penalty, penalty_on_columns

PICTURE_SUFFIXES = (".png", ".pdf", ".svg")
GRIDS: dict[str, Callable[[int], Array]] = {
    "lambda": lambda m: np.append(0.0, np.logspace(-4, 0, m - 1)),
    "nu": lambda m: np.append(np.logspace(-3, 0, m - 1), 0.5),
}


@options.with_table_options
def path(
    source: TableSource,
    over: Annotated[str, typer.Option(help="Parameter to vary: 'lambda' or 'nu'.")] = "lambda",
    n_values: Annotated[int, typer.Option(help="Number of values on the grid.")] = 12,
    value: Annotated[
        list[float] | None, typer.Option(help="Value to use instead of the grid; may be repeated.")
    ] = None,
    nu: options.Nu = 1.0,
    ridge: options.Ridge = None,
    a: options.RidgeRoot = None,
    lam: options.Lambda = None,
    c: options.LambdaRoot = None,
    groups: GroupsOption = None,
    nonnegative: NonnegativeOption = None,
    tol: options.Tolerance = 1e-4,
    time_limit: options.TimeLimit = None,
    no_standardize: options.NoStandardize = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    out: options.OutFile = None,
    report: options.ReportFile = None,
) -> None:
    """Compute the regularization path: selected features and cost for several values of lambda or nu.

    --out with the suffix .png, .pdf or .svg writes a plot.  The exit status is 1 if every value has a warning, or a
    duality gap exceeds --tol.
    """
    console = Console(as_json, quiet)
    refuse_what_varies(over, nu, (lam, c))
    columns = ColumnOptions.given(groups, nonnegative)
    penalty = options.penalty_from_options(lam, c, ridge, a, options.DEFAULT_RIDGE)
    with ProgressReporter(console, time_limit) as progress:
        table = source.load()
        X = table.X if no_standardize else standardize_columns(table.X)
        grid = grid_of(over, n_values, value)
        coupled = over == "lambda" or (over == "nu" and bool(np.any(penalty.c)))
        column_arguments = columns.read(table, has_l1=coupled)
        solutions = solve_path(over, X, grid, progress, column_arguments, nu=nu, penalty=penalty, y=table.y, tol=tol)
        if out is not None:
            progress.update("writing")
            write_path(out, solutions, table.names)
        empty, solved = all(solutions.diagnostics), len(solutions.parameter)
        warnings = ["WARNING: every value has a warning, see the column 'warning'."] if empty else []
        why = "interrupted" if progress.stopped else "time limit reached"
        unfinished = [f"WARNING: {why} after {solved} of {len(grid)} values."] if solved < len(grid) else []
        if report is not None:
            progress.update("writing the report")
            write_path_report(report, source, table, solutions, [*warnings, *unfinished])
    for note in table.notes:
        console.echo(f"Note: {with_option(note)}.")
    for line in [*warnings, summary_table(solutions).text(), *unfinished]:
        console.echo(line)
    exact = float(solutions.gap.max()) <= tol * 1.001 and solved == len(grid)
    whole = whole_table(solutions, table.names)
    findings = {"file": source.file, "columns": whole.header, "rows": whole.rows}
    console.finish(findings, has_warnings=empty or not exact, interrupted=progress.stopped, files=(out, report))


def refuse_what_varies(over: str, nu: float, lams: Sequence[float | None]) -> None:
    """Raise if the varied parameter has a fixed value too."""
    if over == "lambda" and {*lams} != {None}:
        raise ParameterError("--over lambda conflicts with --lambda. Give the values by --value.")
    if over == "nu" and nu != 1.0:
        raise ParameterError(f"--over nu conflicts with --nu {nu:g}. Give the values by --value.")


def grid_of(over: str, n_values: int, values: Sequence[float] | None) -> Array:
    """Return the given values, or a default grid of ``n_values``, at least 2."""
    grid = GRIDS[one_of(over, "--over", tuple(GRIDS))]
    if not values and n_values < 2:
        raise ParameterError(f"--n-values = {n_values} must be at least 2")
    return np.unique(values or grid(n_values))


def solve_path(
    over: str, X: Array, grid: Array, progress: ProgressReporter, columns: Mapping[str, Any], *, nu: float,
    penalty: Penalty, **limits: Any,
) -> RegularizationPath:  # fmt: skip
    """Solve along a grid of nu or lambda, and report the current value; ``columns`` constrains columns."""
    limits |= {
        "time_limit": progress.time_left,
        "on_parameter": lambda value: progress.begin(f"{over} = {value:.3g}"),
        "callback": progress.solver_callback(over),
    }
    if over == "nu":
        return paths.nu_path(X, grid, penalty_on_columns(penalty, d=X.shape[1], **columns), **limits)
    return paths.lambda_path(X, grid, nu=nu, ridge=penalty.ridge, **columns, **limits)


def write_path(file: File, solutions: RegularizationPath, names: Sequence[str]) -> None:
    """Write a path as CSV, or as a plot if the suffix is .png, .pdf or .svg."""
    if file.suffix in PICTURE_SUFFIXES:
        os.environ.setdefault("MPLBACKEND", "Agg")
        from diffrac_cvx.plotting import PathDisplay

        with atomic_file(file) as part:
            PathDisplay(solutions, names).plot().figure_.savefig(part, bbox_inches="tight")
        return
    table = whole_table(solutions, names)
    write_csv(file, table.header, table.rows)
