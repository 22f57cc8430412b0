"""What every experiment's command does: measure the cells, write the table, draw it, say what it shows."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from diffrac_cvx.errors import DataError
from experiments.harness.claims import Claim, Finding, format_claims
from experiments.harness.sweep import Cell, Row, sweep
from experiments.harness.tables import read_table, write_table

INTERRUPTED = 130  # the exit status of a command that Ctrl-C ended


class Outcome(NamedTuple):
    """What a check found, in words, and whether the command succeeds."""

    text: str
    passed: bool


@dataclass(frozen=True)
class Oracle:
    """A second sweep, by other means, of cells of the first.

    Attributes
    ----------
    cells, measure : callable
        As of an `Experiment`.
    compare : callable
        From the table and the oracle's to a table of how they agree, written as ``NAME_agreement.csv``.
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
        From the name of a grid, "full" or "smoke", to its cells.
    measure : callable
        From the entries of a cell to a row; importable by the workers.
    draw : callable
        From the table and a stem to figures.
    claims : callable
        From the table to what it says about the paper's statements.
    settings : mapping
        What a row depends on beside its cell; rows of other settings are measured again.
    seconds, memory : float, optional
        Limits of a cell, in seconds and GB.
    complete : callable, optional
        From the measured table to the one that is written: what needs the rows of several cells.
    oracle : Oracle, optional
        A second sweep that the first is compared with.
    check : callable, optional
        From the table, or from that of the agreement where there is an oracle, to a `Outcome`; where it does not pass
        the command's exit status is 1.
    options : mapping
        Options of the command beside the common ones: name to keywords of ``add_argument``.
    variant : callable, optional
        From the values of the options, by keyword, to the experiment that is run in place of this one.
    folder : str
        Where the files of a full run are written unless the user names a folder.
    """

    name: str
    cells: Callable[[str], Sequence[Cell]]
    measure: Callable[..., Row]
    draw: Callable[[pd.DataFrame, Path], None]
    claims: Callable[[pd.DataFrame], Sequence[Claim | Finding]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    memory: float | None = None
    complete: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    oracle: Oracle | None = None
    check: Callable[[pd.DataFrame], Outcome] | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    variant: "Callable[..., Experiment] | None" = None
    folder: str = "figures"


def run(experiment: Experiment, about: str | None, arguments: list[str] | None = None) -> int:
    """Run an experiment's command and return its exit status; a second run completes an interrupted one."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--grid", choices=("full", "smoke"), default="full")
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread each")
    parser.add_argument("--out", type=Path, help="folder of the results; figures, or build for a smoke run")
    parser.add_argument("--draw-only", action="store_true", help="draw the table that is there")
    for name, keywords in experiment.options.items():
        parser.add_argument(f"--{name}", **keywords)
    values = parser.parse_args(arguments)
    if experiment.variant is not None:
        try:
            experiment = experiment.variant(**{name: getattr(values, name) for name in experiment.options})
        except DataError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    stem = (values.out or Path(experiment.folder if values.grid == "full" else "build")) / experiment.name
    if not values.draw_only:
        try:
            measure_tables(experiment, stem, values.grid, values.jobs)
        except KeyboardInterrupt:
            print("\nstopped: the rows so far are kept in build, and the same command completes them", file=sys.stderr)
            return INTERRUPTED
    return draw_and_report(experiment, stem, values.grid)


def measure_tables(experiment: Experiment, stem: Path, grid: str, jobs: int) -> None:
    """Measure the cells, those of the oracle too, and write the tables."""
    settings = {"grid": grid, **experiment.settings}
    measure_all = partial(sweep, jobs=jobs, settings=settings, seconds=experiment.seconds, memory=experiment.memory)
    log = Path("build") / f"{experiment.name}_{grid}.log"
    table = measure_all(experiment.cells(grid), experiment.measure, log, title=experiment.name)
    if experiment.complete is not None:
        table = experiment.complete(table)
    write_table(table, stem.with_suffix(".csv"))
    oracle = experiment.oracle
    if oracle is not None:
        second_log = log.with_stem(f"{log.stem}_oracle")
        second = measure_all(oracle.cells(grid), oracle.measure, second_log, title="oracle")
        write_table(oracle.compare(table, second), agreement_of(stem))
        second_log.unlink(missing_ok=True)
    log.unlink(missing_ok=True)


def draw_and_report(experiment: Experiment, stem: Path, grid: str) -> int:
    """Draw the table, print what it shows, and return the exit status."""
    table = read_table(stem.with_suffix(".csv"))
    experiment.draw(table, stem)
    verdict = Outcome("", True)
    if experiment.check is not None:
        verdict = experiment.check(table if experiment.oracle is None else read_table(agreement_of(stem)))
        print(verdict.text)
    if grid == "smoke":
        print("The smoke grid shows that the command works; it is too coarse for the verdicts that follow.")
    print(format_claims(experiment.claims(table)))
    print(f"wrote {stem}.csv, .pdf and .png")
    return 0 if verdict.passed else 1


def agreement_of(stem: Path) -> Path:
    """Return where the agreement with an oracle is written."""
    return stem.with_name(f"{stem.name}_agreement.csv")
