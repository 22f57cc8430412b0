"""The sweep runner: cells in any order, over processes of one thread each, resumable, into one sorted table."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits
from tqdm import tqdm

Cell = Mapping[str, Any]
Row = dict[str, Any]
DIGITS = 9  # significant digits kept in a table, fewer than rounding could disturb


def sweep(
    cells: Sequence[Cell],
    measure: Callable[..., Row],
    log: Path,
    *,
    jobs: int,
    settings: Mapping[str, Any],
    title: str,
    rng_key: int = 2017,
) -> pd.DataFrame:
    """Measure every cell and return the table, in the order of the cells whatever the number of jobs.

    Each row is appended to `log` as it comes; started again with the same settings, only the missing cells are
    measured.  The log goes when the caller has written the table (`finish`).
    """
    known = read_log(log, settings)
    missing = [cell for cell in cells if key_of(cell) not in known]
    if len(missing) < len(cells):
        print(f"{title}: {len(cells) - len(missing)} of {len(cells)} cells are in {log}, going on from there")
    spread = sorted(missing, key=lambda cell: hash_of(cell, rng_key))  # an even mix, so that the time left is honest
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("a") as file,
        tqdm(
            total=len(spread), desc=title, unit="cell", disable=None if sys.stderr.isatty() else False, mininterval=2
        ) as bar,
        parallel_config(backend="loky", inner_max_num_threads=1),
    ):
        tasks = (delayed(one_thread)(measure, cell) for cell in spread)
        for cell, row in Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(tasks):
            known[key_of(cell)] = row
            file.write(json.dumps([key_of(cell), row]) + "\n")
            file.flush()
            bar.update()
    return pd.DataFrame([{**cell, **known[key_of(cell)]} for cell in cells])


def one_thread(measure: Callable[..., Row], cell: Cell) -> tuple[Cell, Row]:
    """Measure one cell with one BLAS thread."""
    os.environ["OMP_NUM_THREADS"] = "1"
    with threadpool_limits(1):
        return cell, measure(**cell)


def key_of(cell: Cell) -> str:
    """Return the text by which a cell is known in the log."""
    return json.dumps(dict(cell), sort_keys=True)


def hash_of(cell: Cell, rng_key: int) -> int:
    """Return a number that depends on the cell alone and mixes the order of cells."""
    value = rng_key
    for letter in key_of(cell):
        value = (value * 1_000_003 + ord(letter)) % (1 << 61)
    return value


def read_log(log: Path, settings: Mapping[str, Any]) -> dict[str, Row]:
    """Return the rows of an interrupted run with the same settings; a log of other settings is dropped."""
    header = json.dumps({"settings": dict(settings)}, sort_keys=True)
    lines = log.read_text().splitlines() if log.exists() else []
    if not lines or lines[0] != header:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(header + "\n")
        return {}
    rows = {}
    for line in lines[1:]:
        try:
            key, row = json.loads(line)
        except json.JSONDecodeError:  # the line that was being written when the run was stopped
            continue
        rows[key] = row
    log.write_text("\n".join([header, *(json.dumps([key, row]) for key, row in rows.items())]) + "\n")
    return rows


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table in one piece: a reader sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rounded = table.map(lambda entry: float(f"{entry:.{DIGITS}g}") if isinstance(entry, float) else entry)
    part = path.with_suffix(path.suffix + ".part")
    rounded.to_csv(part, index=False, lineterminator="\n")
    part.replace(path)


def finish(log: Path) -> None:
    """Forget the log of a sweep whose table is written, so that the next run measures anew."""
    log.unlink(missing_ok=True)
