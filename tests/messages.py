"""Messages of errors and warnings, each once: `messages.txt` has calls, and below each call what it says.

    python tests/messages.py          writes the messages of this version below the calls

For a new message, add the call to `messages.txt`, run this command, and read the difference.
"""

import re
import tempfile
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import dask.array as da
import numpy as np
import pandas as pd
import scipy.sparse
from forms import as_map, parquet

import diffrac_cvx as dc
from diffrac_cvx.points.linear_algebra import center_columns
from diffrac_cvx.points.table import array_table
from diffrac_cvx.problem.penalties.group import GroupNorms
from diffrac_cvx.problem.penalty import weights_of
from diffrac_cvx.rounding.directions import leading_direction
from diffrac_cvx.solvers.driver import Stopping, WarmStart
from diffrac_cvx.solvers.race import race

FILE = Path(__file__).with_suffix(".txt")
INDENT = "    "
DIGITS = re.compile(r"(\d\.\d{4})\d{2,}")  # beyond these, processors differ
LISTS = re.compile(r"([Cc]hoose one of|available options:) .*")  # of installed solvers, and of their options
N, D = 60, 4
TALL = np.random.default_rng(0).standard_normal((N, D))
TALL[:30, 0] += 3.0
TEXT = "name,age,income\n" + "".join(f"p{i},{20 + 30 * (i % 2) + i / 7:.2f},{i * 37 % 11}\n" for i in range(12))


class Entry(NamedTuple):
    """A call and the lines of what it says."""

    call: str
    said: str


def with_entry(value):
    """A table with one entry changed."""
    changed = TALL.copy()
    changed[45, 2] = value
    return changed


def table(name, content, **how):
    """The table of a file with this content."""
    return dc.datasets.read_table(content.encode() if isinstance(content, str) else content, name=name, **how)


def groups(folder, content):
    """The groups of three columns, from a file with this content."""
    (folder / "groups.csv").write_bytes(content)
    return dc.datasets.column_groups(("age", "job_clerk", "site_a"), folder / "groups.csv")


def namespace(folder):
    """The names that the calls use; files are written into a folder."""
    X = np.random.default_rng(0).integers(-4, 5, (8, 3)).astype(float)
    Y = np.where(np.arange(8) < 5, 1.0, -1.0)
    result = dc.low_rank(X, lam=0.1, tol=1e-3)
    return {
        "__name__": __name__, "np": np, "pd": pd, "dc": dc, "da": da, "scipy": scipy, "X": X, "Y": Y,
        "TALL": TALL, "WEIGHTS": np.arange(8) % 4.0, "result": result, "F": result.F, "folder": folder,
        "as_map": lambda table: as_map(table, folder), "with_entry": with_entry, "weights_of": weights_of,
        "leading_direction": leading_direction, "GroupNorms": GroupNorms, "array_table": array_table,
        "centered": center_columns(X), "race": race, "WarmStart": WarmStart, "Stopping": Stopping,
        "replace": replace, "table": table, "TEXT": TEXT,
        "parquet": parquet, "groups": partial(groups, folder),
    }  # fmt: skip


def message_of(call, names):
    """Return the warnings and the error of a call, without what depends on the machine."""
    said = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            eval(call, dict(names))
        except Exception as error:
            said = [f"{type(error).__name__}: {error}"]
    lines = [f"{one.category.__name__}: {one.message}" for one in caught if "diffrac_cvx" in one.category.__module__]
    text = "\n".join([*lines, *said]).replace(f"{names['folder']}", "FOLDER")
    text = LISTS.sub(r"\1 ...", DIGITS.sub(r"\1...", text))
    return "\n".join(INDENT + line for line in text.splitlines())


def read_entries():
    """Return the calls with what they say; lines that begin with # are headings."""
    found = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith(INDENT):
            found[-1] = Entry(found[-1].call, "\n".join(filter(None, [found[-1].said, line])))
        elif line and not line.startswith("#"):
            found.append(Entry(line, ""))
    return found


def write_entries():
    """Write what the calls say now below them."""
    lines = [line for line in FILE.read_text(encoding="utf-8").splitlines() if not line.startswith(INDENT)]
    with tempfile.TemporaryDirectory() as folder:
        names = namespace(Path(folder))
        lines = [
            line if not line or line.startswith("#") else f"{line}\n{message_of(line, names)}".rstrip()
            for line in lines
        ]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_entries()
