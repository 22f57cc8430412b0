"""``diffrac-cvx compare`` and ``path``: several methods, or several parameters, on a table."""

import csv
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path as File
from typing import Any

import numpy as np

from diffrac_cvx import paths
from diffrac_cvx.app import report
from diffrac_cvx.app.cli.console import DONE, RESERVED, Console
from diffrac_cvx.comparison import Comparison
from diffrac_cvx.errors import DataError, ParameterError
from diffrac_cvx.inputs import Array
from diffrac_cvx.paths import Path
from diffrac_cvx.penalty import Penalty

PICTURES = (".png", ".pdf", ".svg")
SMALL = 1e-3  # of the largest coefficient, below which one is not counted
GRIDS: dict[str, Callable[[int], Array]] = {
    "lambda": lambda m: np.append(0.0, np.logspace(-4, 0, m - 1)),
    "nu": lambda m: np.append(np.logspace(-3, 0, m - 1), 0.5),
    "alpha": lambda m: np.linspace(0.0, 1.0, m),
}


def told(found: Comparison, console: Console) -> int:
    """Print a comparison, and return the exit status: 1 where methods disagree or fail."""
    if not (console.quiet or console.as_json):
        if sys.stdout.isatty():
            from rich.console import Console as Terminal

            Terminal().print(found)
        else:
            print(found)
    failed = any(one.reason for one in found.found.values())
    return RESERVED if found.disagreements or failed else DONE


def as_record(found: Comparison) -> dict[str, Any]:
    """Return a comparison for JSON."""
    return {
        "rows": list(found.rows),
        "agreement": {"methods": list(found.labels), "values": found.agreement},
        "disagreements": list(found.disagreements),
        "notes": list(found.notes),
    }


def path_over(
    over: str, X: Array, points: int, values: Sequence[float] | None, y: Array | None, **options: Any
) -> Path:
    """Solve along a grid of nu, lambda or alpha; the grid is the one given or a default one.

    Raises
    ------
    ParameterError
        If there is no such grid, or it would have fewer than two points.
    """
    if over not in GRIDS:
        raise ParameterError(f"--over {over!r} is not one of {', '.join(GRIDS)}")
    if values is None and points < 2:
        raise ParameterError(f"--points {points} must be at least 2")
    grid = np.unique(GRIDS[over](points) if values is None else values)
    nu, ridge, lam = (options.pop(name) for name in ("nu", "ridge", "lam"))
    if over == "alpha":
        return paths.alpha_path(X, grid, y=y, **options)
    if over == "nu":
        return paths.nu_path(X, grid, Penalty.l1(lam, ridge), y=y, **options)
    return paths.lambda_path(X, grid, nu=nu, a=ridge, y=y, **options)


def path_rows(found: Path, names: Sequence[str]) -> tuple[list[str], list[list[float]]]:
    """Return the head and the rows of a path as a table."""
    columns = {
        found.name: found.parameter, "value": found.value, "lower": found.lower, "upper": found.upper,
        "eigenvalue_ratio": found.eigenvalue_ratio, "imbalance": found.imbalance, "seconds": found.seconds,
    }  # fmt: skip
    if found.error is not None:
        columns["error"] = found.error
    columns |= {f"w_{name}": found.directions[:, j] for j, name in enumerate(names)}
    return list(columns), np.column_stack(list(columns.values())).tolist()


def tell_path(found: Path, console: Console, tol: float) -> int:
    """Print a path, and return the exit status: 1 where a proved gap is above tol."""
    head = [found.name, "value", "gap", "ratio", "imbalance", "nonzeros"] + (
        ["error"] if found.error is not None else []
    )
    console.say("  ".join(f"{name:>10}" for name in head))
    for i, parameter in enumerate(found.parameter):
        nonzeros = int(np.sum(np.abs(found.directions[i]) > SMALL * np.abs(found.directions[i]).max(initial=0.0)))
        entries = [parameter, found.value[i], found.gap[i], found.eigenvalue_ratio[i], found.imbalance[i], nonzeros]
        entries += [found.error[i]] if found.error is not None else []
        console.say("  ".join(f"{entry:10.4g}" for entry in entries))
    return DONE if float(found.gap.max()) <= tol * 1.001 else RESERVED


def write(path: File, found: Path, names: Sequence[str]) -> None:
    """Write a path as CSV, or as a picture where the name ends like one.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    try:
        if path.suffix in PICTURES:
            os.environ.setdefault("MPLBACKEND", "Agg")
            from diffrac_cvx.plotting import PathDisplay

            PathDisplay(found, names).plot().figure_.savefig(path, bbox_inches="tight")
            return
        head, rows = path_rows(found, names)
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([head, *rows])
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error.strerror})") from None


def write_rows(path: File, found: Comparison) -> None:
    """Write a comparison's rows as CSV.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    try:
        with path.open("w", newline="") as file:
            rows = csv.DictWriter(file, list(dict.fromkeys(key for row in found.rows for key in row)))
            rows.writeheader()
            rows.writerows(found.rows)
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error.strerror})") from None


def comparison_report(path: File, found: Comparison, title: str) -> None:
    """Write the report of a comparison."""
    from diffrac_cvx.plotting import BracketDisplay, SpectrumDisplay

    parts = [report.section("Methods", found._repr_html_())]
    runs = {name: result for name, result in found.results.items() if len(result.history) > 1}
    if runs:
        display = BracketDisplay.from_result(*runs.values(), names=list(runs))
        parts.append(
            report.section("Brackets", report.picture(display, "Proved bounds on the optimum.", against="seconds"))
        )
    best = min(found.results, key=lambda name: found.results[name].gap, default=None)
    if best is not None:
        spectrum = report.picture(
            SpectrumDisplay.from_result(found.results[best]), f"Eigenvalues of Y and V, by {best}."
        )
        parts.append(report.section("Spectrum", spectrum))
    report.write(path, title, *parts)
