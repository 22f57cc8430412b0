"""Measure a random sample of the cells of every table again, and compare: ``make recheck``, or
``python -m experiments.recheck [NAME ...]`` for some tables.

The sample is drawn from the date, so that other cells are measured on other days.  Bounds of a cell must overlap, as
both certificates are valid, and must not be much closer than in the table, which is then of code or of a machine that
proves less.  Errors, ranks and other numbers of the solution returned, which depends on the processor where the
solution is not unique, are compared as means of a panel: the t interval of the mean difference must contain 0.  All
other entries must be equal, except times and other measures of speed, which are not compared.
"""

import argparse
import re
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from io import StringIO
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from diffrac_cvx.errors import DataError
from experiments.harness import provenance
from experiments.harness.command import Experiment, find_experiments, load
from experiments.harness.intervals import mean_of
from experiments.harness.sweep import SECONDS, Cell, SweepError, Task, end_processes, measure_cell
from experiments.harness.tables import DIGITS, format_table, read_table

CELLS, LIMIT = 5, 120.0  # cells of a table, and seconds for each of them
SLACK = 1e-8  # relative distance of two brackets that counts as rounding
CLOSER, WIDE = 10.0, 0.01  # bounds at least `WIDE` apart in the table, and now so many times closer, are a disagreement
EQUAL = 1e-4  # relative difference of two entries that counts as rounding
# Words in the names of columns.
OF_SPEED = {
    "seconds", "second", "time", "passes", "iterations", "nodes", "memory", "MB", "speed", "rate", "workers", "limit",
    "met", "solved", "status", "reason",
}  # fmt: skip
OF_SOLUTION = {
    "error", "ratio", "rank", "rand", "index", "overlap", "imbalance", "correlation", "objective", "separation",
    "label", "labels", "stability", "diagonal", "inside", "exact", "share", "along", "apart", "moved", "found",
    "chosen", "precision", "recall", "top", "p", "gap", "best", "above",
}  # fmt: skip
UPPER_ENDS = ("upper", "cost", "objective")  # of a bracket, in the place of "lower"


class Recheck(NamedTuple):
    """Result of measuring some cells of a table again.

    Attributes
    ----------
    cells, chosen, compared : int
        Cells of the table, cells drawn, and those of them that were measured within the limit.
    disagreements : list of str
        One sentence each.
    """

    cells: int
    chosen: int
    compared: int
    disagreements: list[str]


def recheck(experiment: Experiment, path: Path, day: str, cells: int = CELLS) -> Recheck:
    """Measure a sample of the cells of a table again and compare the rows; the date seeds the sample."""
    table = read_table(path)
    try:
        chosen, rows = draw_cells(table, experiment.cells("full"), day, cells)
    except (DataError, SweepError, OSError, ModuleNotFoundError) as error:  # what the cells need is not here
        print(f"{path} cannot be measured here: {error}")
        chosen, rows = [], table.head(0)
    again = read_back(pd.DataFrame(list(measure_again(experiment, chosen)))).set_axis(rows.index)
    finished = again["reason"].isna() if "reason" in again else pd.Series(True, index=again.index)
    finished &= rows["reason"].isna() if "reason" in rows else True
    again = again[finished].reset_index(drop=True)
    empty = [name for name in rows if name in again and again[name].isna().all() and rows[name].notna().any()]
    if len(again) and empty:  # as of a rival whose package is not installed
        print(f"{path}: not measured here: {', '.join(map(str, empty))}")
        again = again.drop(columns=empty)
    columns = list(dict.fromkeys(name for cell in chosen for name in cell))
    found = list(compare(rows[finished].reset_index(drop=True), again, columns))
    return Recheck(len(table), len(chosen), int(finished.sum()), found)


def draw_cells(table: pd.DataFrame, cells: Sequence[Cell], day: str, count: int) -> tuple[list[Cell], pd.DataFrame]:
    """Return a random sample of the cells that have a row in a table, and these rows, in the same order."""
    rng = np.random.default_rng([int(digits) for digits in re.findall(r"\d+", day)])
    chosen, places = list[Cell](), list[int]()
    keys: dict[tuple[str, ...], list[tuple[str, ...]]] = {}  # of the rows, by the columns that identify a cell
    for k in rng.permutation(len(cells)):
        if len(chosen) == count:
            break
        names = tuple(name for name in cells[k] if name in table.columns)
        if names not in keys:
            keys[names] = keys_of(table[list(names)])
        wanted = keys_of(read_back(pd.DataFrame([{name: cells[k][name] for name in names}])))[0]
        if keys[names].count(wanted) == 1:
            chosen.append(cells[k])
            places.append(keys[names].index(wanted))
    return chosen, table.iloc[places]


def measure_again(experiment: Experiment, cells: Sequence[Cell]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of cells, measured one after the other; one that cannot be measured has a ``reason``."""
    seconds = min(LIMIT, experiment.seconds or LIMIT)
    task = Task(experiment.measure, seconds, experiment.memory, sweep=uuid.uuid4().hex)
    for cell in cells:
        try:
            row = measure_cell(task, cell)
        except Exception as error:  # missing data or packages of one experiment are no reason to stop the others
            row = {"reason": f"{type(error).__name__}: {error}"}
        yield {**cell, **{name: entry for name, entry in row.items() if name != SECONDS}}
    end_processes(task.sweep)


def read_back(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table as it would be read from its file."""
    return pd.read_csv(StringIO(format_table(table)), low_memory=False) if len(table) else table


def keys_of(table: pd.DataFrame) -> list[tuple[str, ...]]:
    """Return the rows of a table as texts, equal for 1 and 1.0."""
    texts = table.map(lambda entry: f"{entry:.{DIGITS}g}" if isinstance(entry, Real) else str(entry))
    return list(map(tuple, texts.to_numpy()))


def compare(before: pd.DataFrame, again: pd.DataFrame, cell_columns: Sequence[str]) -> Iterator[str]:
    """Yield the disagreements of rows measured twice, in the same order."""
    common = [name for name in before.columns if name in again.columns and name not in cell_columns]
    names = [describe(row, cell_columns) for _, row in before.iterrows()]
    old, new = bounds_of(before, common), bounds_of(again, common)
    bounded = {name for columns in old for name in columns}
    for columns, (lower, upper) in old.items():
        slack = SLACK * (1.0 + upper.abs())
        for k in np.flatnonzero((lower > new[columns][1] + slack) | (new[columns][0] > upper + slack)):
            ends = [f"[{low[k]:.9g}, {high[k]:.9g}]" for low, high in ((lower, upper), new[columns])]
            yield f"{names[k]}: the bounds in {' and '.join(columns)} were {ends[0]} and are {ends[1]}"
        wide, now = upper - lower, new[columns][1] - new[columns][0]
        for k in np.flatnonzero((wide >= WIDE) & (wide > CLOSER * now)):
            yield f"{names[k]}: the bounds in {' and '.join(columns)} were {wide[k]:.2g} apart and are {now[k]:.2g}"
    for name in common:
        words = set(re.split("[ _]", name))
        if name in bounded or words & OF_SPEED:
            continue
        if words & OF_SOLUTION and pd.api.types.is_numeric_dtype(before[name]):
            yield from compare_means(before, again, name, cell_columns)
        else:
            for k in np.flatnonzero(~equal(before[name], again[name])):
                yield f"{names[k]}: {name} was {before[name][k]} and is {again[name][k]}"


def bounds_of(table: pd.DataFrame, columns: Sequence[str]) -> dict[tuple[str, str], tuple[pd.Series, pd.Series]]:
    """Return the lower and the upper bounds in a table, by the two columns that hold them."""
    found = {}
    for name in columns:
        if not pd.api.types.is_float_dtype(table[name]):  # a count
            continue
        words = re.split("[ _]", name)
        upper = next((other for word in UPPER_ENDS if (other := name.replace("lower", word)) in columns), None)
        gap = name.replace("value", "gap")
        if "lower" in words and upper is not None:
            found[name, upper] = table[name], table[upper]
        elif "value" in words and gap in columns:
            found[name, gap] = table[name] - table[gap], table[name]
    return found


def compare_means(before: pd.DataFrame, again: pd.DataFrame, name: str, cell_columns: Sequence[str]) -> Iterator[str]:
    """Yield the panels in which the mean of a column has changed, by the interval of the mean difference."""
    panel = [column for column in cell_columns if not pd.api.types.is_numeric_dtype(before[column])]
    groups = before.groupby(panel, sort=False) if panel else [("all cells", before)]
    for which, rows in groups:
        difference = (again[name].astype(float) - before[name].astype(float))[rows.index].dropna()
        interval = mean_of(difference)
        if len(difference) > 1 and not interval.meets(0.0, 0.0) and difference.abs().max() > EQUAL:
            place = which if isinstance(which, str) else ", ".join(map(str, which))
            yield f"{place}: the mean of {name} over {len(difference)} cells has changed by {interval.value:.3g}"


def equal(before: pd.Series, again: pd.Series) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Return which entries are equal, up to rounding."""
    if pd.api.types.is_numeric_dtype(before) and pd.api.types.is_numeric_dtype(again):
        close = np.isclose(before.astype(float), again.astype(float), rtol=EQUAL, atol=1e-9, equal_nan=True)
        return np.asarray(close)
    return np.asarray(before.fillna("").astype(str) == again.fillna("").astype(str))


def describe(row: pd.Series, columns: Sequence[str]) -> str:
    """Format the entries that identify a cell."""
    return ", ".join(f"{name} = {row[name]}" for name in columns if name in row.index and pd.notna(row[name]))


def main(arguments: list[str] | None = None) -> int:
    """Measure cells again, record the result beside the tables, and return 1 if there are disagreements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="names of experiments; all by default")
    parser.add_argument("--date", default=date.today().isoformat(), help="seed of the sample (default: today)")
    parser.add_argument("--out", type=Path, default=provenance.FIGURES, help="folder of the tables")
    values = parser.parse_args(arguments)
    folder = values.out
    records, failed = provenance.read_records(folder, provenance.RECHECKS), False
    for name in values.names or find_experiments():
        experiment = load(name.replace("-", "_"))
        path = folder / f"{experiment.name}.csv"
        if not path.exists():
            continue
        found = recheck(experiment, path, values.date)
        print(f"{path}: {found.compared} of {found.chosen} cells compared, {len(found.disagreements)} disagreements")
        print("".join(f"  {sentence}\n" for sentence in found.disagreements), end="", flush=True)
        records[experiment.name] = {"date": values.date, **found._asdict()}
        provenance.write_records(records, folder / provenance.RECHECKS)
        failed |= bool(found.disagreements)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
