"""Cells of the experiment on size: rows on disk, sparse columns, a table on the workers of a cluster."""

import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import diffrac_cvx as dc
from diffrac_cvx.machine.memory import reset_peak_memory, resident_memory
from diffrac_cvx.points.factors import diagonal
from experiments.harness.sweep import Cell, Row, cross
from experiments.scale.data import make_rows, make_words, write_rows

FOLDER = Path("build") / "scale"
FEATURES = 50  # features of the table with many rows
CLUSTER_FEATURES = 20
LAM = 0.0005  # for the words: about three hundred of them are selected
TOL = 1e-3
SECONDS = 600.0  # per solve
USED = 1e-3  # relative to the largest coefficient: smaller ones count as not selected
SETTINGS = {"tol": TOL, "lam": LAM}

ROWS = {"full": (200_000, 2_000_000, 20_000_000), "smoke": (120_000,)}
WORDS = {"full": ((20_000, 500), (20_000, 5_000), (200_000, 5_000)), "smoke": ((2_000, 200),)}
WORKERS = {"full": (1, 2, 4), "smoke": (1,)}
CLUSTER_ROWS = {"full": (500_000, 2_000_000), "smoke": (50_000,)}


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
