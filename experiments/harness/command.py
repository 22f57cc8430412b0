"""Common command of all experiments: measure the cells, write the table, draw the figure, print the findings."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import pandas as pd

from diffrac_cvx import __version__
from diffrac_cvx.datasets.real import checksum
from diffrac_cvx.errors import DataError
from experiments.harness import provenance
from experiments.harness.findings import Finding, format_found
from experiments.harness.sweep import Cell, Log, Row, SweepError, Task, sweep
from experiments.harness.tables import read_table, write_table

FOLDER = Path(__file__).parents[1]
REFUSED, INTERRUPTED = 2, 130  # exit statuses: request refused; Ctrl-C
LOGS = Path("build")
PARTIAL = LOGS / "partial"  # for results that would replace a table with more cells


class Outcome(NamedTuple):
    """Result of a check: its text, and whether the command succeeds."""

    text: str
    passed: bool


@dataclass(frozen=True)
class Experiment:
    """A figure and its table; `load` reads it from the modules of its folder.

    Attributes
    ----------
    name : str
        Stem of the files.
    cells : callable
        Maps the name of a grid, "full" or "smoke", to its cells.
    measure : callable
        Maps the entries of a cell to a row; importable by the workers.
    draw : callable or None
        Draws figures from the table and a file stem.
    findings : callable
        Maps the table to findings.
    settings : mapping
        Parameters that rows depend on besides their cells; rows with other settings are measured again.
    seconds, memory : float, optional
        Limits per cell, in seconds and GB.
    complete : callable, optional
        Completes the measured table before it is written, with columns that need the rows of several cells.
    reference : callable, optional
        As `measure`, by the reference implementation.
    check : callable, optional
        Maps the table to an `Outcome`; if it fails, the exit status of the command is 1.
    """

    name: str
    cells: Callable[[str], Sequence[Cell]]
    measure: Callable[..., Row]
    draw: Callable[[pd.DataFrame, Path], None] | None
    findings: Callable[[pd.DataFrame], Sequence[Finding]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    memory: float | None = None
    complete: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    reference: Callable[..., Row] | None = None
    check: Callable[[pd.DataFrame], Outcome] | None = None


MODULES = ("cells", "findings", "plot")  # of an experiment, in its folder; only the first is required
NAMES = {  # fields of an experiment, and their names in its modules; the others are optional
    "cells": "cells_of", "measure": "measure", "findings": "findings", "name": "TABLE", "settings": "SETTINGS",
    "seconds": "CELL_SECONDS", "memory": "CELL_MEMORY", "complete": "complete", "check": "check",
    "reference": "measure_reference",
}  # fmt: skip


def find_experiments() -> dict[str, Path]:
    """Return the first module of each experiment: cells.py of a folder, or another that defines `cells_of`."""
    paths = [path for path in FOLDER.glob("*/*.py") if "\ndef cells_of(" in path.read_text(encoding="utf-8")]
    names = {path.parent.name if path.stem == "cells" else path.stem: path for path in paths}
    return dict(sorted(names.items()))


def modules_of(path: Path) -> list[Path]:
    """Return the modules of an experiment from its first: those of its folder, or that one."""
    paths = [path.with_name(f"{module}.py") for module in MODULES] if path.stem == "cells" else [path]
    return list(filter(Path.exists, paths))


def load(name: str) -> Experiment:
    """Return an experiment by the names that its modules define."""
    defined: dict[str, Any] = {"TABLE": name}
    for each in modules_of(find_experiments()[name]):
        defined |= vars(import_module(f"experiments.{each.parent.name}.{each.stem}"))
    given = {field: defined[name] for field, name in NAMES.items() if name in defined}
    return Experiment(draw=defined.get("draw"), **given)


def run(experiment: Experiment, about: str | None, arguments: list[str] | None = None) -> int:
    """Run an experiment's command and return its exit status; a second run completes an interrupted one."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--grid", choices=("full", "smoke"), default="full")
    parser.add_argument("--jobs", type=positive, default=1, help="number of single-threaded processes")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="dask scheduler, used instead of local processes")
    parser.add_argument("--out", type=Path, help="output folder; figures by default, build for a smoke run")
    parser.add_argument("--replace", action="store_true", help="replace even a table of more cells than this run has")
    parser.add_argument("--draw-only", action="store_true", help="draw the existing table without measuring")
    if experiment.reference is not None:
        parser.add_argument("--reference", action="store_true", help="solve by the reference implementation, CVXPY")
    values = parser.parse_args(arguments)
    if experiment.reference is not None and values.reference:
        experiment = replace(experiment, name=f"{experiment.name}_reference", measure=experiment.reference)
    try:
        folder = values.out or (provenance.FIGURES if values.grid == "full" else LOGS)
        if values.draw_only:
            return draw_and_report(experiment, folder / experiment.name, values.grid)
        return measure_and_draw(experiment, folder, values)
    except KeyboardInterrupt:
        print(f"\nstopped: the rows so far are kept in {LOGS}; the same command completes them", file=sys.stderr)
        return INTERRUPTED
    except (DataError, SweepError, OSError) as error:
        if hasattr(error, "__notes__"):  # raised in a cell: print its traceback
            raise
        words = str(error)
        if isinstance(error, OSError):
            where = error.filename or "a file"
            words = f"{where} cannot be read or written ({error.strerror}). Measured rows are kept in {LOGS}."
        print(f"error: {words}", file=sys.stderr)
        return REFUSED


def positive(text: str) -> int:
    """Parse a positive integer."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer.")
    return int(text)


def whole_or_beside(path: Path, count: int, replace: bool) -> Path:
    """Return the folder to write to: another one if the table there has more rows than this run has cells.

    Raises
    ------
    SweepError
        If the folder is not writable.
    """
    folder = path.parent
    if path.exists() and not replace and folder != LOGS:
        rows = len(read_table(path))
        if rows > count:
            folder = PARTIAL
            print(
                f"{path} has {rows} rows, and this run measures {count}; it is kept, and the results are written to "
                f"{folder} (with --replace: to {path.parent})"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):  # fail now instead of after hours
            return folder
    except OSError as error:
        raise SweepError(f"{folder} cannot be written to ({error.strerror}). Name another folder with --out.") from None


def measure_and_draw(experiment: Experiment, folder: Path, values: argparse.Namespace) -> int:
    """Measure the cells, write and draw the table; return the exit status."""
    grid, cells = values.grid, experiment.cells(values.grid)
    path = folder / f"{experiment.name}.csv"
    stem = whole_or_beside(path, len(cells), values.replace) / experiment.name
    settings = {"grid": grid, "version": __version__, **experiment.settings}
    if grid == "full":  # rows measured at another commit are measured again
        settings["commit"] = provenance.read_commit()
    name = f"{experiment.name}_{grid}_{checksum(json.dumps(settings, sort_keys=True).encode())[:8]}"
    log, task = Log(LOGS / f"{name}.log"), Task(experiment.measure, experiment.seconds, experiment.memory)
    table = sweep(cells, task, log, jobs=values.jobs, title=experiment.name, scheduler=values.scheduler)
    if experiment.complete is not None:
        table = experiment.complete(table)
    write_table(table, stem.with_suffix(".csv"))
    status = draw_and_report(experiment, stem, grid)
    if grid == "full" and stem.parent == provenance.FIGURES:
        provenance.record([experiment.name], log.seconds)
    log.path.unlink(missing_ok=True)
    return status


def draw_and_report(experiment: Experiment, stem: Path, grid: str) -> int:
    """Draw the table, print the findings, and return the exit status."""
    table = read_table(stem.with_suffix(".csv"))
    if experiment.draw is not None:
        experiment.draw(table, stem)
    verdict = experiment.check(table) if experiment.check is not None else Outcome("", True)
    print(verdict.text, end="\n" * bool(verdict.text))
    if grid == "smoke":
        print("The smoke grid only checks that the command works. It is too coarse for verdicts.")
    print("\n".join(format_found(found, judged=grid != "smoke") for found in experiment.findings(table)))
    print(f"wrote {stem}.csv" + (", .pdf and .png" if experiment.draw is not None else ""))
    return 0 if verdict.passed else 1
