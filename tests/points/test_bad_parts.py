"""Unreadable streamed tables raise clear errors promptly, never give a wrong result, and respect the limits."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from forms import as_map
from messages import TALL as X
from messages import D, N, chunked, loaded, raises, second_chunk, with_entry

import diffrac_cvx as dc
from diffrac_cvx.points.reading import as_rows
from diffrac_cvx.solvers.factored import sampling

SOLVERS = {
    "low_rank": lambda table: dc.low_rank(table, ridge=0.1, time_limit=60),
    "low_rank, l1": lambda table: dc.low_rank(table, lam=0.02, time_limit=60),
    "fista": lambda table: dc.fista(table, ridge=0.1, time_limit=60),
    "certify_v": lambda table: dc.certify_v(table, np.eye(D)),
    "DiffracClustering": lambda table: dc.DiffracClustering(time_limit=60).fit(table),
}


def short_file(folder):
    np.save(folder / "short.npy", X)
    os.truncate(folder / "short.npy", 500)
    return loaded(lambda first: np.load(folder / "short.npy", mmap_mode="r")[first : first + 20])


def lost_chunk(folder):
    store = folder / f"table{len(list(folder.iterdir()))}.zarr"
    chunked(X).to_zarr(str(store))
    table = da.from_zarr(str(store))
    for path in store.rglob("*"):
        if path.is_file() and "json" not in path.name and not path.name.startswith("."):
            path.write_bytes(b"not a chunk")
    return table


BAD = {  # what they say: tests/messages.txt
    "nan": lambda _: chunked(with_entry(np.nan)),
    "too large": lambda _: chunked(with_entry(1e200)),
    "a narrow chunk": lambda _: second_chunk(lambda part: part[:, :3]),
    "a chunk of strings": lambda _: second_chunk(lambda part: part.astype(str)),
    "a masked chunk": lambda _: da.ma.masked_greater(chunked(X), 1.5),
    "one row": lambda _: chunked(X[:1]),
    "no rows are left": lambda _: chunked(X)[chunked(X)[:, 0] > 100.0],
    "no columns": lambda _: da.from_array(X[:, :0], chunks=(20, 1)),
    "one dimension": lambda _: da.from_array(X[:, 0], chunks=20),
    "complex": lambda _: chunked(X * 1j),
    "no array": lambda _: dask.delayed(X),
    "a missing file": lambda folder: loaded(lambda first: np.load(folder / f"part{first}.npy")),
    "a short file": short_file,
    "a broken store": lost_chunk,
    "a loader that fails": lambda _: raises(ZeroDivisionError("division by zero")),
    "nan in a map": lambda folder: as_map(with_entry(np.nan), folder),
    "a sparse inf": lambda _: scipy.sparse.csc_array(with_entry(-np.inf)),
    "a sparse number too large": lambda _: scipy.sparse.coo_array(with_entry(1e200)),
    "a sparse complex": lambda _: scipy.sparse.csr_array(X * 1j),
    "a sparse row": lambda _: scipy.sparse.csr_array(X[:1]),
    "no sparse columns": lambda _: scipy.sparse.csr_array((N, 0)),
}


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
def test_a_table_that_cannot_be_used_is_an_error_of_every_function(tmp_path, make):
    for solve in SOLVERS.values():
        with pytest.raises((dc.DataError, dc.ParameterError, ValueError)):
            solve(make(tmp_path))


def test_an_error_of_the_package_is_not_said_to_be_one_of_the_data():
    def fail(part):
        raise KeyError(len(part))

    with pytest.raises(KeyError):
        as_rows(chunked(X)).map_parts(fail)


def test_a_chunk_that_differs_when_it_is_read_again_is_found_out_by_the_factor():
    rng = np.random.default_rng(0)
    result = dc.low_rank(loaded(lambda first: X[first : first + 20]), tol=1e-3)
    changing = dc.low_rank(loaded(lambda first: X[first : first + 20] + state["shift"] * rng.random((20, D))), tol=1e-3)
    assert changing.upper == pytest.approx(result.upper, abs=1e-12)
    state["shift"] = 1.0
    try:
        with pytest.raises(dc.DataError, match="changed"):
            _ = changing.F
    finally:
        state["shift"] = 0.0


state = {"shift": 0.0}


# Degenerate columns


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, chunked], ids=["csr", "dask"])
def test_constant_columns_change_no_bound(kind):
    wide = np.column_stack([X, np.full(N, 0.1), np.zeros(N)])
    for penalty in (dc.Penalty(ridge=0.1), dc.Penalty(ridge=0.1, lam=0.02)):
        V = dc.low_rank(X, penalty=penalty, tol=1e-7).V
        found = dc.certify_v(kind(wide), np.pad(V, (0, 2)), penalty=penalty)
        expected = dc.certify_v(X, V, penalty=penalty)
        assert found.lower == pytest.approx(expected.lower, abs=1e-7)
        assert found.upper == pytest.approx(expected.upper, abs=1e-9)


# Limits


def slow(seconds, n=30_000, parts=30, wait=time.sleep):
    """Return a table of chunks that load slowly."""
    points = np.random.default_rng(0).standard_normal((n, D))
    size = n // parts

    def load(first):
        wait(seconds)
        return points[first : first + size]

    return da.concatenate([da.from_delayed(dask.delayed(load)(i), (size, D), float) for i in range(0, n, size)])


@pytest.mark.parametrize(
    ("seconds", "parts"),
    [(0.1, 30), pytest.param(60.0, 1, marks=pytest.mark.slow)],
    ids=["many chunks", "one slow chunk"],
)
def test_a_limit_of_a_second_is_kept_while_a_table_is_read(seconds, parts):
    ended = threading.Event()
    started = time.perf_counter()
    try:
        result = dc.low_rank(slow(seconds, parts=parts, wait=ended.wait), time_limit=1.0)
        assert time.perf_counter() - started < 15.0
    finally:
        ended.set()  # otherwise the test would wait for the reading thread
    assert result.status is dc.Status.TIME_LIMIT
    assert 0.0 <= result.lower <= result.upper <= 1.0


def test_a_limit_is_kept_between_passes_over_chunks_and_the_bracket_is_valid(sample_small_tables):
    table = slow(0.002)
    limited = dc.low_rank(table, lam=0.02, tol=1e-12, time_limit=1.0)
    assert limited.status in (dc.Status.TIME_LIMIT, dc.Status.STALLED)
    solved = dc.low_rank(table.compute(), lam=0.02, tol=1e-6)
    assert limited.lower <= solved.upper
    assert solved.lower <= limited.upper


def test_a_callback_stops_a_solve_by_parts(monkeypatch):
    monkeypatch.setattr(sampling, "MIN_SAMPLE_ROWS", 10)
    result = dc.low_rank(chunked(X), tol=1e-14, callback=lambda progress: True)
    assert result.status is dc.Status.STOPPED
    assert len(result.history) == 1


def test_ctrl_c_leaves_the_reading_at_once():
    ended = threading.Event()
    timer = threading.Timer(0.6, signal.raise_signal, (signal.SIGINT,))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background processes of a shell ignore it
    timer.start()
    started = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            dc.low_rank(slow(2.0, wait=ended.wait))
    finally:
        timer.cancel()
        ended.set()
        signal.signal(signal.SIGINT, before)
    assert time.perf_counter() - started < 15.0  # all chunks would take a minute


# Without dask


HIDDEN = """
import sys
import dask.array as da
import numpy as np
table = da.zeros((10, 2), chunks=(5, 2))
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("dask", "distributed"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
for name in [name for name in sys.modules if name.partition(".")[0] in ("dask", "distributed")]:
    del sys.modules[name]
sys.meta_path.insert(0, Hide())
import diffrac_cvx as dc
points = np.random.default_rng(0).standard_normal((40, 2))
print(dc.low_rank(points).status)
print(dc.DiffracClustering().fit(points).labels_.shape)
for function in (dc.low_rank, dc.fista, dc.DiffracClustering().fit, lambda X: dc.certify_v(X, np.eye(2))):
    try:
        function(table)
    except dc.ParameterError as error:
        print(error)
"""


def test_without_dask_all_but_its_arrays_works_and_these_say_what_to_install():
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN], capture_output=True, text=True, cwd=Path(dc.__file__).parents[1], timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(dc.Status.OPTIMAL), "(40,)"] + 4 * [
        "X is a dask array, but dask is not installed. Run pip install 'diffrac-cvx[scale]'."
    ]
