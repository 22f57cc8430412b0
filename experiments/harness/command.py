"""What every experiment's command does: measure the cells, write the table, draw it, say what it shows."""

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
from experiments.harness.claims import Claim, Finding, format_claims
from experiments.harness.log import Log, SweepError, open_log
from experiments.harness.style import noted
from experiments.harness.sweep import Cell, Row, key_of, sweep
from experiments.harness.tables import cells_left_out, read_table, write_table

REFUSED, INTERRUPTED = 2, 130  # exit statuses: what is asked for cannot be done; Ctrl-C
LOGS = Path("build")
PARTIAL = LOGS / "partial"  # results that would replace a table with more cells


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
    draw : callable or None
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
    passes : callable, optional
        From a cell to the number of the pass that measures it, from 0 on; the table is drawn after each pass.
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
    draw: Callable[[pd.DataFrame, Path], None] | None
    claims: Callable[[pd.DataFrame], Sequence[Claim | Finding]]
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
    parser.add_argument("--jobs", type=positive, default=1, help="processes of one thread each")
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="dask scheduler whose workers measure, in place of --jobs processes here"
    )
    parser.add_argument("--out", type=Path, help="folder of the results; figures, or build for a smoke run")
    parser.add_argument("--replace", action="store_true", help="replace a table of which this run measures a part")
    parser.add_argument("--draw-only", action="store_true", help="draw the table that is there")
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
        print(f"\nstopped: the rows so far are kept in {LOGS}, and the same command completes them", file=sys.stderr)
        return INTERRUPTED
    except (DataError, SweepError, OSError) as error:
        if hasattr(error, "__notes__"):  # in a cell: with its traceback
            raise
        print(f"error: {explain(error)}", file=sys.stderr)
        return REFUSED


def positive(text: str) -> int:
    """Return a whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def explain(error: Exception) -> str:
    """Return an error as a sentence."""
    if isinstance(error, OSError):
        where = error.filename or "a file"
        return f"{where} cannot be read or written ({error.strerror}); rows that were measured are kept in {LOGS}"
    return str(error)


def folder_of(experiment: Experiment, values: argparse.Namespace) -> Path:
    """Return the folder of the results: the one named, or by default that of the grid."""
    return values.out or (Path(experiment.folder) if values.grid == "full" else LOGS)


def folder_for(experiment: Experiment, values: argparse.Namespace, cells: Sequence[Cell]) -> Path:
    """Return the folder that the results are written to: not over a table that holds more than they will.

    Raises
    ------
    SweepError
        If the user named a folder with such a table, or it cannot be written to.
    """
    folder = folder_of(experiment, values)
    path = (folder / experiment.name).with_suffix(".csv")
    if path.exists() and not values.replace and (values.out or folder != LOGS):
        left_out = cells_left_out(path, cells)
        message = f"{path} has {len(left_out)} rows of cells that this run does not measure"
        if len(left_out) and values.out:
            raise SweepError(f"{message}: name another folder by --out, or replace the table by --replace")
        if len(left_out):
            folder = PARTIAL
            print(
                f"{message}: it stays as it is, and the results are written to {folder} (--replace: to {path.parent})"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):  # now, and not after hours
            return folder
    except OSError as error:
        raise SweepError(f"{folder} cannot be written to ({error.strerror}): name another folder by --out") from None


def measure_and_draw(experiment: Experiment, values: argparse.Namespace) -> int:
    """Measure the cells, those of the oracle too, write the tables, and draw them; return the exit status."""
    cells = experiment.cells(values.grid)
    stem = folder_for(experiment, values, cells) / experiment.name
    sources = provenance.read_sources()
    with ExitStack() as open_logs:
        logs = measure_tables(experiment, stem, cells, values, sources, open_logs)
        status = draw_and_report(experiment, stem, values.grid)
        if values.grid == "full" and stem.parent == provenance.FIGURES:
            provenance.record([experiment.name, agreement_of(stem).stem][: 2 if experiment.oracle else 1], sources)
        for log in logs:
            log.delete()
    return status


def measure_tables(
    experiment: Experiment,
    stem: Path,
    cells: Sequence[Cell],
    values: argparse.Namespace,
    sources: Mapping[str, str],
    open_logs: ExitStack,
) -> list[Log]:
    """Measure the cells, those of the oracle too, write the tables, and return the logs, which are still open."""
    grid = values.grid
    settings = {"grid": grid, "version": __version__, **experiment.settings}
    if grid == "full":  # rows of other code are measured again
        settings["code"] = checksum(json.dumps(provenance.modules_of(experiment.name, sources)).encode())
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
    """Measure the cells pass by pass, and draw the table after each but the last, with the passes done in the figure.

    A table that holds more cells stays as it is: what is drawn meanwhile is then written to `PARTIAL`.
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
    """Draw the table, print what it shows, and return the exit status."""
    table = read_table(stem.with_suffix(".csv"))
    if experiment.draw is not None:
        experiment.draw(table, stem)
    verdict = Outcome("", True)
    if experiment.check is not None:
        verdict = experiment.check(table if experiment.oracle is None else read_table(agreement_of(stem)))
        print(verdict.text)
    if grid == "smoke":
        print("The smoke grid shows that the command works; it is too coarse for the verdicts that follow.")
    print(format_claims(experiment.claims(table)))
    print(f"wrote {stem}.csv" + (", .pdf and .png" if experiment.draw is not None else ""))
    return 0 if verdict.passed else 1


def agreement_of(stem: Path) -> Path:
    """Return where the agreement with an oracle is written."""
    return stem.with_name(f"{stem.name}_agreement.csv")
