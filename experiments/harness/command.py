"""What every experiment's command does: measure the cells, write the table, draw it, say what it shows."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.harness.claims import Claim, printed
from experiments.harness.sweep import Cell, Row, finish, sweep, write_table

INTERRUPTED = 130  # the exit status of a command that Ctrl-C ended


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
    """

    name: str
    cells: Callable[[str], Sequence[Cell]]
    measure: Callable[..., Row]
    draw: Callable[[pd.DataFrame, Path], None]
    claims: Callable[[pd.DataFrame], Sequence[Claim]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    memory: float | None = None


def run(experiment: Experiment, about: str | None, arguments: list[str] | None = None) -> int:
    """Run an experiment's command and return its exit status; a second run completes an interrupted one."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--grid", choices=("full", "smoke"), default="full")
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread each")
    parser.add_argument("--out", type=Path, help="folder of the results; figures, or build for a smoke run")
    parser.add_argument("--draw-only", action="store_true", help="draw the table that is there")
    chosen = parser.parse_args(arguments)
    stem = (chosen.out or Path("figures" if chosen.grid == "full" else "build")) / experiment.name
    log = Path("build") / f"{experiment.name}_{chosen.grid}.log"
    if not chosen.draw_only:
        try:
            table = sweep(
                experiment.cells(chosen.grid),
                experiment.measure,
                log,
                jobs=chosen.jobs,
                settings={"grid": chosen.grid, **experiment.settings},
                title=experiment.name,
                seconds=experiment.seconds,
                memory=experiment.memory,
            )
        except KeyboardInterrupt:
            print(f"\nstopped: the rows so far are in {log}, and the same command completes them", file=sys.stderr)
            return INTERRUPTED
        write_table(table, stem.with_suffix(".csv"))
    table = pd.read_csv(stem.with_suffix(".csv"))
    experiment.draw(table, stem)
    finish(log)
    print(printed(experiment.claims(table)))
    print(f"wrote {stem}.csv, .pdf and .png")
    return 0
