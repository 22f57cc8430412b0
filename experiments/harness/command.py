"""Common command of all experiments: measure the cells, write the table, draw the figure, print the findings."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import pandas as pd

from diffrac_cvx import __version__
from diffrac_cvx.datasets.files import checksum
from diffrac_cvx.errors import DataError
from experiments.harness import provenance
from experiments.harness.findings import Finding, describe
from experiments.harness.log import Log, SweepError, open_log
from experiments.harness.style import noted
from experiments.harness.sweep import Cell, Row, key_of, sweep
from experiments.harness.tables import cells_left_out, read_table, write_table

REFUSED, INTERRUPTED = 2, 130  # exit statuses: request refused; Ctrl-C
LOGS = Path("build")
PARTIAL = LOGS / "partial"  # for results that would replace a table with more cells


class Outcome(NamedTuple):
    """Result of a check: its text, and whether the command succeeds."""

    text: str
    passed: bool


@dataclass(frozen=True)
class Oracle:
    """A second sweep that solves some cells of the first by other means.

    Attributes
    ----------
    cells, measure : callable
        As in `Experiment`.
    compare : callable
        Maps the table and the oracle's table to a table of their agreement, written as ``NAME_agreement.csv``.
    """

    cells: Callable[[str], Sequence[Cell]]
    measure: Callable[..., Row]
    compare: Callable[[pd.DataFrame, pd.DataFrame], pd.DataFrame]


@dataclass(frozen=True)
class Experiment:
    """A figure and its table.

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
    oracle : Oracle, optional
        Second sweep with which the first is compared.
    passes : callable, optional
        Maps a cell to the number of the pass that measures it, from 0; the table is drawn after each pass.
    check : callable, optional
        Maps the table, or with an oracle the table of the agreement, to an `Outcome`; if it fails, the exit status
        of the command is 1.
    options : mapping
        Options of the command besides the common ones: name to keywords of ``add_argument``.
    variant : callable, optional
        Maps the values of the options, by keyword, to the experiment that is run instead of this one.
    folder : str
        Folder of the files of a full run unless the user names one.
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
    oracle: Oracle | None = None
    passes: Callable[[Cell], int] | None = None
    check: Callable[[pd.DataFrame], Outcome] | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    variant: "Callable[..., Experiment] | None" = None
    folder: str = "figures"


def run(experiment: Experiment, about: str | None, arguments: list[str] | None = None) -> int:
    """Run an experiment's command and return its exit status; a second run completes an interrupted one."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--grid", choices=("full", "smoke"), default="full")
    parser.add_argument("--jobs", type=positive, default=1, help="number of single-threaded processes")
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="dask scheduler whose workers measure the cells (instead of --jobs local processes)",
    )
    parser.add_argument("--out", type=Path, help="output folder; figures by default, build for a smoke run")
    parser.add_argument(
        "--replace", action="store_true", help="replace the table even if this run measures only part of its cells"
    )
    parser.add_argument("--draw-only", action="store_true", help="draw the existing table without measuring")
    for name, keywords in experiment.options.items():
        parser.add_argument(f"--{name}", **keywords)
    values = parser.parse_args(arguments)
    try:
        if experiment.variant is not None:
            experiment = experiment.variant(**{name: getattr(values, name) for name in experiment.options})
        if values.draw_only:
            return draw_and_report(experiment, folder_of(experiment, values) / experiment.name, values.grid)
        return measure_and_draw(experiment, values)
    except KeyboardInterrupt:
        print(f"\nstopped: the rows so far are kept in {LOGS}; the same command completes them", file=sys.stderr)
        return INTERRUPTED
    except (DataError, SweepError, OSError) as error:
        if hasattr(error, "__notes__"):  # raised in a cell: print its traceback
            raise
        print(f"error: {explain(error)}", file=sys.stderr)
        return REFUSED


def positive(text: str) -> int:
    """Parse a positive integer."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def explain(error: Exception) -> str:
    """Return the message of an error as a sentence."""
    if isinstance(error, OSError):
        where = error.filename or "a file"
        return f"{where} cannot be read or written ({error.strerror}). Measured rows are kept in {LOGS}."
    return str(error)


def folder_of(experiment: Experiment, values: argparse.Namespace) -> Path:
    """Return the output folder: the one named by the user, or the default of the grid."""
    return values.out or (Path(experiment.folder) if values.grid == "full" else LOGS)


def folder_for(experiment: Experiment, values: argparse.Namespace, cells: Sequence[Cell]) -> Path:
    """Return the folder to write to, which holds no table with cells that this run does not measure.

    Raises
    ------
    SweepError
        If the folder named by the user has such a table or is not writable.
    """
    folder = folder_of(experiment, values)
    path = (folder / experiment.name).with_suffix(".csv")
    if path.exists() and not values.replace and (values.out or folder != LOGS):
        left_out = cells_left_out(path, cells)
        message = f"{path} has {len(left_out)} rows of cells that this run does not measure"
        if len(left_out) and values.out:
            raise SweepError(f"{message}. Name another folder with --out, or replace the table with --replace.")
        if len(left_out):
            folder = PARTIAL
            print(f"{message}; it is kept, and the results are written to {folder} (with --replace: to {path.parent})")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):  # fail now instead of after hours
            return folder
    except OSError as error:
        raise SweepError(f"{folder} cannot be written to ({error.strerror}). Name another folder with --out.") from None


def measure_and_draw(experiment: Experiment, values: argparse.Namespace) -> int:
    """Measure the cells and those of the oracle, write and draw the tables; return the exit status."""
    cells = experiment.cells(values.grid)
    stem = folder_for(experiment, values, cells) / experiment.name
    with ExitStack() as open_logs:
        logs = measure_tables(experiment, stem, cells, values, open_logs)
        status = draw_and_report(experiment, stem, values.grid)
        if values.grid == "full" and stem.parent == provenance.FIGURES:
            for log, name in zip(logs, (experiment.name, agreement_of(stem).stem), strict=False):
                provenance.record([name], log.seconds)
        for log in logs:
            log.delete()
    return status


def measure_tables(
    experiment: Experiment,
    stem: Path,
    cells: Sequence[Cell],
    values: argparse.Namespace,
    open_logs: ExitStack,
) -> list[Log]:
    """Measure the cells and those of the oracle, write the tables, and return the logs, which are still open."""
    grid = values.grid
    settings = {"grid": grid, "version": __version__, **experiment.settings}
    if grid == "full":  # rows measured at another commit are measured again
        settings["commit"] = provenance.read_commit()
    path = LOGS / f"{experiment.name}_{grid}_{checksum(json.dumps(settings, sort_keys=True).encode())[:8]}.log"
    measure_all = partial(
        sweep, jobs=values.jobs, scheduler=values.scheduler, seconds=experiment.seconds, memory=experiment.memory
    )
    logs = [open_logs.enter_context(open_log(path, settings))]
    if experiment.passes is not None:
        measure_in_passes(experiment, stem, cells, values, partial(measure_all, log=logs[0]))
    table = measure_all(cells, experiment.measure, logs[0], title=experiment.name)
    if experiment.complete is not None:
        table = experiment.complete(table)
    write_table(table, stem.with_suffix(".csv"))
    oracle = experiment.oracle
    if oracle is not None:
        logs.append(open_logs.enter_context(open_log(path.with_stem(f"{path.stem}_oracle"), settings)))
        second = measure_all(oracle.cells(grid), oracle.measure, logs[1], title="oracle")
        write_table(oracle.compare(table, second), agreement_of(stem))
    return logs


def measure_in_passes(
    experiment: Experiment,
    stem: Path,
    cells: Sequence[Cell],
    values: argparse.Namespace,
    measure_all: Callable[..., pd.DataFrame],
) -> None:
    """Measure the cells pass by pass, and draw the table after each pass but the last, with its number in the figure.

    A table with more cells is not overwritten: interim drawings then go to `PARTIAL`.
    """
    assert experiment.passes is not None
    assert experiment.draw is not None
    number = {key_of(cell): experiment.passes(cell) for cell in cells}
    count = 1 + max(number.values(), default=0)
    for k in range(count - 1):
        so_far = [cell for cell in cells if number[key_of(cell)] <= k]
        table = measure_all(so_far, experiment.measure, title=f"{experiment.name}, pass {k + 1} of {count}")
        path = stem.with_suffix(".csv")
        whole = path.exists() and not values.replace and len(cells_left_out(path, so_far))
        place = PARTIAL / stem.name if whole else stem
        write_table(table, place.with_suffix(".csv"))
        with noted(f"pass {k + 1} of {count}: {len(so_far)} of {len(cells)} cells"):
            experiment.draw(table, place)
        print(f"pass {k + 1} of {count}: drew {len(so_far)} of {len(cells)} cells in {place}.png", flush=True)


def draw_and_report(experiment: Experiment, stem: Path, grid: str) -> int:
    """Draw the table, print the findings, and return the exit status."""
    table = read_table(stem.with_suffix(".csv"))
    if experiment.draw is not None:
        experiment.draw(table, stem)
    verdict = Outcome("", True)
    if experiment.check is not None:
        verdict = experiment.check(table if experiment.oracle is None else read_table(agreement_of(stem)))
        print(verdict.text)
    if grid == "smoke":
        print("The smoke grid only checks that the command works; it is too coarse for the verdicts below.")
    print("\n".join(map(describe, experiment.findings(table))))
    print(f"wrote {stem}.csv" + (", .pdf and .png" if experiment.draw is not None else ""))
    return 0 if verdict.passed else 1


def agreement_of(stem: Path) -> Path:
    """Return the path of the agreement with the oracle."""
    return stem.with_name(f"{stem.name}_agreement.csv")
