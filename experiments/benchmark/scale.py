"""Tables larger than memory: a file of many rows, a sparse table of many columns, a table on a cluster's workers.

The full grid writes a file of 4 GB in build, and deletes it.
"""

import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import NullFormatter

import diffrac_cvx as dc
from diffrac_cvx.machine.memory import reset_peak_memory, resident_memory
from diffrac_cvx.points.factors import diagonal
from diffrac_cvx.problem.formatting import format_upper
from experiments.harness.command import Experiment, Outcome
from experiments.harness.findings import Finding
from experiments.harness.style import ACCENT, GRAY, GREEN, SECONDARY, panels
from experiments.harness.sweep import Cell, Row, cross
from experiments.problems import make_rows, make_words, write_rows

FOLDER = Path("build") / "scale"
FEATURES = 50  # features of the table with many rows
CLUSTER_FEATURES = 20
LAM = 0.0005  # for the words: about three hundred of them are selected
TOL = 1e-3
SECONDS = 600.0  # per solve
USED = 1e-3  # relative to the largest coefficient: smaller ones count as not selected
SETTINGS = {"tol": TOL, "lam": LAM}
MEMORY = 2e9  # limit in bytes for a solve, in addition to its data
PASSES = 60
WORDS_SECONDS = 120.0

ROWS = {"full": (200_000, 2_000_000, 20_000_000), "smoke": (120_000,)}
WORDS = {"full": ((20_000, 500), (20_000, 5_000), (200_000, 5_000)), "smoke": ((2_000, 200),)}
WORKERS = {"full": (1, 2, 4), "smoke": (1,)}
CLUSTER_ROWS = {"full": (500_000, 2_000_000), "smoke": (50_000,)}

KINDS = {"rows": "file, single precision", "words": "sparse", "cluster": "dask, on {workers} worker processes"}
STYLES = {1: ("o", SECONDARY), 2: ("s", GREEN), 4: ("^", ACCENT)}


def cells_of(grid: str) -> list[Cell]:
    """Return the cells of a grid."""
    rows = cross(kind=["rows"], n=ROWS[grid], d=[FEATURES], workers=[0])
    words = [{"kind": "words", "n": n, "d": d, "workers": 0} for n, d in WORDS[grid]]
    return rows + words + cross(kind=["cluster"], n=CLUSTER_ROWS[grid], d=[CLUSTER_FEATURES], workers=WORKERS[grid])


def measure(kind: str, n: int, d: int, workers: int) -> Row:
    """Solve one table to the required gap."""
    return {"rows": measure_rows, "words": measure_words, "cluster": measure_cluster}[kind](n, d, workers)


def measure_rows(n: int, d: int, workers: int) -> Row:  # workers is unused
    """Solve a table stored in a file, streamed in passes."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        path = Path(folder) / "rows.npy"
        write_rows(path, n, d)
        X = np.load(path, mmap_mode="r", allow_pickle=False)
        before = reset_peak_memory()
        result = dc.low_rank(X, tol=TOL, time_limit=SECONDS)
        return {**describe(result, n), "memory": resident_memory("VmHWM") - before, "size": float(X.nbytes)}


def measure_words(n: int, d: int, workers: int) -> Row:  # workers is unused
    """Solve a sparse table with a penalty that selects few words, round it, and count the selected words."""
    X: Any = make_words(n, d)
    before = reset_peak_memory()
    result = dc.low_rank(X, lam=LAM, tol=TOL, time_limit=SECONDS)
    started = time.perf_counter()
    dc.rounding.kmeans_centered(result.factor)
    rounding = time.perf_counter() - started
    size = np.sqrt(diagonal(result.G)) if result.G is not None else np.zeros(1)
    return {
        **describe(result, n),
        "memory": resident_memory("VmHWM") - before,
        "size": float(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes),
        "density": X.nnz / (n * d),
        "used": int(np.sum(size > USED * size.max())),
        "rounding_seconds": rounding,
    }


def measure_cluster(n: int, d: int, workers: int) -> Row:
    """Solve a table whose chunks are created and kept by the workers of a local cluster."""
    dask, da, distributed = (import_module(name) for name in ("dask", "dask.array", "distributed"))

    chunk = n // 8
    parts = [
        da.from_delayed(dask.delayed(make_rows)((2017, 14, i), chunk, d), (chunk, d), np.float32) for i in range(8)
    ]
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        X = da.concatenate(parts).persist()
        distributed.wait(X)
        before = loopback_bytes()
        result = dc.low_rank(X, tol=TOL, time_limit=SECONDS)
        moved = loopback_bytes() - before
        del X
    row = describe(result, 8 * chunk)
    return {**row, "size": 4.0 * 8 * chunk * d, "moved": float(moved), "moved_per_pass": moved / row["passes"]}


def describe(result: dc.Result, n: int) -> Row:
    """Return the fields common to all kinds of cells."""
    rows = result.history[-1].rows if result.history else 0
    return {
        "value": result.value,
        "lower": result.lower,
        "gap": result.gap,
        "status": result.status.name,
        "seconds": result.seconds,
        "passes": rows / n,
        "rows_a_second": rows / result.seconds,
    }


def loopback_bytes() -> int:
    """Return the bytes that this machine has sent to itself, by all its processes; 0 if unknown.

    Nothing else should use the loopback device while a cell is measured.
    """
    try:
        lines = Path("/proc/net/dev").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.split()[0] == "lo:"), 0)


def findings(table: pd.DataFrame) -> list[Finding]:
    """Return the cost of every table, and how well the values on clusters of different sizes agree."""
    cluster = table[table["kind"] == "cluster"]
    spread = cluster.groupby("n")["value"].agg(np.ptp).max()
    return [
        Finding(
            f"Tables larger than memory, solved to a gap of {TOL:g}",
            costs(table),
            comment="Values on all numbers of workers agree to "
            f"{format_upper(spread) if len(cluster) else 'nothing measured'}. The bytes sent include the scheduler's "
            "messages and the row samples, which are drawn a few times.",
        )
    ]


def costs(table: pd.DataFrame) -> pd.DataFrame:
    """Return the size and the cost of each table as texts."""

    def text(value: float, digits: str) -> str:
        return f"{value:{digits}}" if pd.notna(value) and value else "none"

    rows = [
        {
            "table": KINDS[row["kind"]].format(workers=row["workers"]),
            "n x d": f"{row['n']:,} x {row['d']:,}",
            "GB": f"{row['size'] / 1e9:.2g}",
            "time (s)": f"{row['seconds']:.1f}",
            "passes": text(row["passes"], ".0f"),
            "additional memory (GB)": text(row["memory"] / 1e9, ".2f"),
            "MB sent per pass": text(row.get("moved_per_pass", np.nan) / 1e6, ".2f"),
            "selected words": text(row.get("used", np.nan), ".0f"),
            "certified gap": format_upper(row["gap"]),
        }
        for _, row in table.iterrows()
    ]
    return pd.DataFrame(rows)


def check_sizes(table: pd.DataFrame) -> Outcome:
    """Check that every solve reached its gap within the promised memory and number of passes."""
    lines = []
    for row in table.itertuples():
        name = f"{row.kind}, n = {row.n}, d = {row.d}"
        if not row.gap <= TOL:
            lines.append(f"{name}: the gap is {format_upper(row.gap)}, above {TOL:g}")
        if row.kind != "cluster" and row.memory > MEMORY:
            lines.append(f"{name}: {row.memory / 1e9:.2f} GB of memory, above {MEMORY / 1e9:g}")
        if row.kind == "rows" and row.passes > PASSES:
            lines.append(f"{name}: {row.passes:.0f} passes, above {PASSES}")
        if row.kind == "words" and row.seconds > WORDS_SECONDS:
            lines.append(f"{name}: {row.seconds:.0f} s, above {WORDS_SECONDS:g}")
    return Outcome(
        "\n".join(lines) or "every table was solved within its limits of gap, memory, passes and time", not lines
    )


def draw(table: pd.DataFrame, stem: Path) -> None:
    """Draw three panels: time, memory, and bytes transferred per pass."""
    rows, words, cluster = (table[table["kind"] == kind] for kind in ("rows", "words", "cluster"))
    with panels(stem, 1, 3, 2.3) as (_, (seconds, memory, moved)):
        for part, label, color, marker in ((rows, "file, 50 columns", SECONDARY, "o"), (words, "sparse", ACCENT, "s")):
            entries = part["n"] * part["d"]
            seconds.plot(entries, part["seconds"], marker, color=color, ms=4, label=label)
            memory.plot(entries, part["memory"].clip(lower=1e6) / 1e9, marker, color=color, ms=4, label=label)
        sizes = pd.concat([rows["n"] * rows["d"], words["n"] * words["d"]])
        ends = [sizes.min(), sizes.max()]
        memory.plot(ends, [8 * size / 1e9 for size in ends], color=GRAY, lw=0.8, label="dense array of doubles")
        memory.axhline(2.0, color=GRAY, lw=0.8, ls=":", label="2 GB")
        for ax, title in (
            (seconds, "(a) time"),
            (memory, "(b) memory (at least 1 MB)"),
            (moved, "(c) traffic between processes"),
        ):
            ax.set_title(title)
        for ax, words in ((seconds, "time to a gap of 0.001 (s)"), (memory, "memory in addition to the data (GB)")):
            ax.set(xscale="log", yscale="log", xlabel="entries $n d$", ylabel=words)
            ax.legend(frameon=False)
        memory.set_ylim(top=1000.0)
        for workers, part in cluster.groupby("workers"):
            marker, color = STYLES.get(int(workers), ("d", GRAY))
            label = f"{workers} process{'' if workers == 1 else 'es'}"
            moved.plot(part["n"], part["moved_per_pass"] / 1e6, marker + "-", color=color, ms=4, label=label)
        moved.set(xscale="log", xlabel="rows $n$, 20 columns", ylabel="traffic per pass (MB)")
        moved.xaxis.set_minor_formatter(NullFormatter())
        ticks = sorted(cluster["n"].unique())
        moved.set_xticks(ticks, [f"{n:.1e}".replace("e+0", "e") for n in ticks])
        if len(cluster):
            moved.set_ylim(0, 1.5e-6 * cluster["moved_per_pass"].max())
            moved.legend(frameon=False, loc="best")


EXPERIMENT = Experiment("scale", cells_of, measure, draw, findings, SETTINGS, seconds=1500.0, check=check_sizes)
