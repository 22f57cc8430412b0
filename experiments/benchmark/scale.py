"""Tables larger than memory: a file of many rows, and a sparse table of many columns.

The full grid writes a file of 4 GB in build, and deletes it.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import diffrac_cvx as dc
from diffrac_cvx.machine.memory import reset_peak_memory, resident_memory
from diffrac_cvx.points.factors import diagonal
from diffrac_cvx.problem.formatting import format_upper
from experiments.harness.command import Outcome
from experiments.harness.findings import Finding
from experiments.harness.sweep import Cell, Row
from experiments.problems import make_words, write_rows

FOLDER = Path("build") / "scale"
FEATURES = 50  # features of the table with many rows
LAM = 0.0005  # for the words: about three hundred of them are selected
TOL = 1e-3
SECONDS, CELL_SECONDS = 600.0, 1500.0  # per solve, and per cell
USED = 1e-3  # relative to the largest coefficient: smaller ones count as not selected
SETTINGS = {"tol": TOL, "lam": LAM}
MEMORY = 2e9  # limit in bytes for a solve, in addition to its data
PASSES = 60
WORDS_SECONDS = 120.0

ROWS = {"full": (200_000, 2_000_000, 20_000_000), "smoke": (120_000,)}
WORDS = {"full": ((20_000, 500), (20_000, 5_000), (200_000, 5_000)), "smoke": ((2_000, 200),)}

KINDS = {"rows": "file, single precision", "words": "sparse"}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid."""
    rows: list[Cell] = [{"kind": "rows", "n": n, "d": FEATURES} for n in ROWS[grid]]
    return rows + [{"kind": "words", "n": n, "d": d} for n, d in WORDS[grid]]


def measure(kind: str, n: int, d: int) -> Row:
    """Solve one table to the required gap: a file streamed in passes, or a sparse table, a few words of which count."""
    if kind == "words":
        return measure_words(make_words(n, d))
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        path = Path(folder) / "rows.npy"
        write_rows(path, n, d)
        X = np.load(path, mmap_mode="r", allow_pickle=False)
        return solve(X, float(X.nbytes))[1]


def measure_words(X: Any) -> Row:
    """Solve with a penalty that selects few words, round, and count the selected words."""
    result, row = solve(X, float(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes), lam=LAM)
    started = time.perf_counter()
    dc.rounding.kmeans_centered(result.factor)
    rounding = time.perf_counter() - started
    size = np.sqrt(diagonal(result.G)) if result.G is not None else np.zeros(1)
    used = int(np.sum(size > USED * size.max()))
    return {**row, "density": X.nnz / np.prod(X.shape), "used": used, "rounding_seconds": rounding}


def solve(X: Any, size: float, lam: float = 0.0) -> tuple[dc.Result, Row]:
    """Solve a table of a size in bytes; return the result and the fields common to both kinds of tables."""
    before = reset_peak_memory()
    result = dc.low_rank(X, lam=lam, tol=TOL, time_limit=SECONDS)
    rows = result.history[-1].rows if result.history else 0
    return result, {
        "value": result.value,
        "lower": result.lower,
        "gap": result.gap,
        "status": result.status.name,
        "seconds": result.seconds,
        "passes": rows / X.shape[0],
        "rows_a_second": rows / result.seconds,
        "memory": resident_memory("VmHWM") - before,
        "size": size,
    }


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the cost of every table."""
    return [Finding(f"Tables larger than memory, solved to a gap of {TOL:g}", costs(table))]


def costs(table: pd.DataFrame) -> pd.DataFrame:
    """Return the size and the cost of each table as texts."""

    rows = [
        {
            "table": KINDS[row["kind"]],
            "n x d": f"{row['n']:,} x {row['d']:,}",
            "GB": f"{row['size'] / 1e9:.2g}",
            "time (s)": f"{row['seconds']:.1f}",
            "passes": f"{row['passes']:.0f}",
            "additional memory (GB)": f"{row['memory'] / 1e9:.2f}",
            "selected words": f"{row['used']:.0f}" if row["kind"] == "words" else "none",
            "certified gap": format_upper(row["gap"]),
        }
        for _, row in table.iterrows()
    ]
    return pd.DataFrame(rows)


def check(table: pd.DataFrame) -> Outcome:
    """Check that every solve reached its gap within the promised memory and number of passes."""
    lines = []
    for row in table.itertuples():
        name = f"{row.kind}, n = {row.n}, d = {row.d}"
        if not row.gap <= TOL:
            lines.append(f"{name}: the gap is {format_upper(row.gap)}, above {TOL:g}")
        if row.memory > MEMORY:
            lines.append(f"{name}: {row.memory / 1e9:.2f} GB of memory, above {MEMORY / 1e9:g}")
        if row.kind == "rows" and row.passes > PASSES:
            lines.append(f"{name}: {row.passes:.0f} passes, above {PASSES}")
        if row.kind == "words" and row.seconds > WORDS_SECONDS:
            lines.append(f"{name}: {row.seconds:.0f} s, above {WORDS_SECONDS:g}")
    words = "every table was solved within its limits of gap, memory, passes and time"
    return Outcome("\n".join(lines) or words, not lines)
