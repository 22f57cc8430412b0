"""``diffrac-cvx path``: the solutions along a grid of one parameter, as a table or a picture."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path as File
from typing import Annotated, Any

import numpy as np
import typer

from diffrac_cvx import paths
from diffrac_cvx.app.cli import options
from diffrac_cvx.app.cli.console import DONE, RESERVED, Console
from diffrac_cvx.app.cli.data import load_table
from diffrac_cvx.comparison.table import Table
from diffrac_cvx.errors import ParameterError
from diffrac_cvx.inputs import Array, one_of
from diffrac_cvx.linalg import standardise
from diffrac_cvx.paths import Path
from diffrac_cvx.penalty import Penalty
from diffrac_cvx.writing import whole_file, write_csv

PICTURES = (".png", ".pdf", ".svg")
SMALL = 1e-3  # of the largest coefficient, below which one is not counted
GRIDS: dict[str, Callable[[int], Array]] = {
    "lambda": lambda m: np.append(0.0, np.logspace(-4, 0, m - 1)),
    "nu": lambda m: np.append(np.logspace(-3, 0, m - 1), 0.5),
    "alpha": lambda m: np.linspace(0.0, 1.0, m),
}


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
    out: Annotated[File | None, typer.Option("--out", "-o", help="A .csv, or a picture .png, .pdf or .svg.")] = None,
) -> None:
    """Solve along a grid of one parameter; exits with 1 where tol was not met."""
    console = Console(as_json, quiet)
    table = load_table(file, label, drop, missing)
    X = table.X if no_standardize else standardise(table.X).X
    limits = {"tol": tol, "time_limit": time_limit}
    solutions = solve_path(over, X, points, value, table.y, nu=nu, ridge=ridge, lam=lam, **limits)
    console.say(summary_table(solutions).text())
    if out is not None:
        write_path(out, solutions, table.names)
        console.say(f"wrote {out}")
    status = DONE if float(solutions.gap.max()) <= tol * 1.001 else RESERVED
    whole = whole_table(solutions, table.names)
    console.give({"file": file, "exit": status, "columns": whole.head, "rows": whole.rows})
    raise typer.Exit(status)


def solve_path(
    over: str, X: Array, points: int, values: Sequence[float] | None, y: Array | None, *,
    nu: float, ridge: float, lam: float, **limits: Any,
) -> Path:  # fmt: skip
    """Solve along a grid of nu, lambda or alpha; the grid is the one given or a default one.

    Raises
    ------
    ParameterError
        If there is no such grid, or it would have fewer than two points.
    """
    grid_of = GRIDS[one_of(over, "over", tuple(GRIDS))]
    if not values and points < 2:
        raise ParameterError(f"points = {points} must be at least 2")
    grid = np.unique(values or grid_of(points))
    if over == "alpha":
        return paths.alpha_path(X, grid, y=y, **limits)
    if over == "nu":
        return paths.nu_path(X, grid, Penalty.l1(lam, ridge), y=y, **limits)
    return paths.lambda_path(X, grid, nu=nu, a=ridge, y=y, **limits)


def summary_table(solutions: Path) -> Table:
    """Return what is printed of a path; directions are counted by their coefficients that are not small."""
    sizes = np.abs(solutions.directions)
    columns = {
        solutions.name: solutions.parameter, "value": solutions.value, "gap": solutions.gap,
        "ratio": solutions.eigenvalue_ratio, "imbalance": solutions.imbalance,
        "nonzeros": np.sum(sizes > SMALL * sizes.max(axis=1, initial=0.0, keepdims=True), axis=1),
    }  # fmt: skip
    return table_of(columns, solutions)


def whole_table(solutions: Path, names: Sequence[str]) -> Table:
    """Return all numbers of a path."""
    columns = {
        solutions.name: solutions.parameter, "value": solutions.value, "lower": solutions.lower,
        "upper": solutions.upper, "eigenvalue_ratio": solutions.eigenvalue_ratio, "imbalance": solutions.imbalance,
        "seconds": solutions.seconds,
    }  # fmt: skip
    table = table_of(columns, solutions)
    rows = zip(table.rows, solutions.directions.tolist(), strict=True)
    return Table((*table.head, *(f"w_{name}" for name in names)), tuple((*row, *w) for row, w in rows))


def table_of(columns: dict[str, Array], solutions: Path) -> Table:
    """Return columns as a table, with the error where there are true labels."""
    columns |= {} if solutions.error is None else {"error": solutions.error}
    return Table(tuple(columns), tuple(zip(*(column.tolist() for column in columns.values()), strict=True)))


def write_path(file: File, solutions: Path, names: Sequence[str]) -> None:
    """Write a path as CSV, or as a picture where the name ends in .png, .pdf or .svg."""
    if file.suffix in PICTURES:
        os.environ.setdefault("MPLBACKEND", "Agg")
        from diffrac_cvx.plotting import PathDisplay

        with whole_file(file) as part:
            PathDisplay(solutions, names).plot().figure_.savefig(part, bbox_inches="tight")
        return
    table = whole_table(solutions, names)
    write_csv(file, table.head, table.rows)
