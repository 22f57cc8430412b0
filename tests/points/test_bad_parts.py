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
from forms import as_dask, as_map

import diffrac_cvx as dc
from diffrac_cvx.points.reading import as_rows
from diffrac_cvx.solvers.factored import sampling

N, D = 60, 4
X = np.random.default_rng(0).standard_normal((N, D))
X[:30, 0] += 3.0
SOLVERS = {
    "low_rank": lambda table: dc.low_rank(table, ridge=0.1, time_limit=60),
    "low_rank, l1": lambda table: dc.low_rank(table, lam=0.02, time_limit=60),
    "fista": lambda table: dc.fista(table, ridge=0.1, time_limit=60),
    "certify_v": lambda table: dc.certify_v(table, np.eye(D)),
    "DiffracClustering": lambda table: dc.DiffracClustering(time_limit=60).fit(table),
}
every_solver = pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)


def with_entry(value):
    changed = X.copy()
    changed[45, 2] = value
    return changed


def chunked(points):
    return as_dask(points, parts=3)


def loaded(load):
    """Return three chunks declared as (20, 4) doubles, each loaded by a function of its first row."""
    return da.concatenate([da.from_delayed(dask.delayed(load)(i), (20, D), float) for i in range(0, N, 20)])


def raise_error(error):
    def load(first):
        if first == 20:
            raise error
        return X[first : first + 20]

    return loaded(load)


def after_20(change):
    return loaded(lambda first: change(X[first : first + 20]) if first == 20 else X[first : first + 20])


def short_file(folder):
    np.save(folder / "short.npy", X)
    os.truncate(folder / "short.npy", 500)
    return loaded(lambda first: np.load(folder / "short.npy", mmap_mode="r")[first : first + 20])


def missing_file(folder):
    return loaded(lambda first: np.load(folder / f"part{first}.npy"))


def lost_chunk(folder):
    store = folder / f"table{len(list(folder.iterdir()))}.zarr"
    chunked(X).to_zarr(str(store))
    table = da.from_zarr(str(store))
    for path in store.rglob("*"):
        if path.is_file() and "json" not in path.name and not path.name.startswith("."):
            path.write_bytes(b"not a chunk")
    return table


BAD = {
    "nan": (lambda _: chunked(with_entry(np.nan)), r"NaN or infinite, in columns \[2\]. Drop or impute"),
    "inf": (lambda _: chunked(with_entry(np.inf)), r"infinite, in columns \[2\]"),
    "two nans": (lambda _: chunked(np.where(X > 1.5, np.nan, X)), r"NaN or infinite, in columns \[0, 1, 2, 3\]"),
    "too large": (lambda _: chunked(with_entry(1e200)), r"columns \[2\].*Rescale"),
    "a narrow chunk": (lambda _: after_20(lambda part: part[:, :3]), r"from row 20 on has shape \(20, 3\)"),
    "a chunk of strings": (
        lambda _: after_20(lambda part: part.astype(str)),
        r"from row 20 on has shape \(20, 4\) and type <U32",
    ),
    "a masked chunk": (lambda _: da.ma.masked_greater(chunked(X), 1.5), "without masked entries"),
    "one row": (lambda _: chunked(X[:1]), "one row|more than the 1 points"),
    "no rows": (lambda _: chunked(X[:0]), r"empty.*\(0, 4\)"),
    "no rows are left": (lambda _: chunked(X)[chunked(X)[:, 0] > 100.0], r"empty.*\(0, 4\)"),
    "no columns": (lambda _: da.from_array(X[:, :0], chunks=(20, 1)), r"empty.*\(60, 0\)"),
    "one dimension": (lambda _: da.from_array(X[:, 0], chunks=20), r"shape \(60,\).*2-d"),
    "three dimensions": (lambda _: da.from_array(X[None], chunks=(1, 20, D)), r"shape \(1, 60, 4\).*2-d"),
    "complex": (lambda _: chunked(X * 1j), "complex128"),
    "strings": (lambda _: chunked(X.astype(str)), "<U.*Encode"),
    "no array": (lambda _: dask.delayed(X), "X is a dask Delayed.*Pass a dask array"),
    "a missing file": (missing_file, r"X cannot be read: .*part0\.npy"),
    "a short file": (short_file, "X cannot be read: ValueError: mmap length is greater than file size"),
    "a broken store": (lost_chunk, "X cannot be read"),
    "no permission": (
        lambda _: raise_error(PermissionError(13, "Permission denied", "/data/7")),
        "read.*denied: '/data/7'",
    ),
    "a time-out of a disk": (
        lambda _: raise_error(TimeoutError("the disk does not answer")),
        "the disk does not answer",
    ),
    "a loader that fails": (
        lambda _: raise_error(ZeroDivisionError("division by zero")),
        "ZeroDivisionError: division",
    ),
    "nan in a map": (lambda folder: as_map(with_entry(np.nan), folder), "nan at row 45, column 2|NaN"),
    "too large in a map": (lambda folder: as_map(with_entry(1e120), folder), r"columns \[2\].*Rescale"),
    "a sparse nan": (lambda _: scipy.sparse.csr_array(with_entry(np.nan)), "nan at row 45, column 2|NaN"),
    "a sparse inf": (
        lambda _: scipy.sparse.csc_array(with_entry(-np.inf)),
        "-inf at row 45, column 2|inf",
    ),
    "a sparse number too large": (lambda _: scipy.sparse.coo_array(with_entry(1e200)), r"columns \[2\].*Rescale"),
    "a sparse complex": (lambda _: scipy.sparse.csr_array(X * 1j), "complex128|Complex data"),
    "a sparse row": (lambda _: scipy.sparse.csr_array(X[:1]), "one row|1 sample"),
    "no sparse rows": (lambda _: scipy.sparse.csr_array((0, D)), r"empty.*\(0, 4\)|0 sample"),
    "no sparse columns": (lambda _: scipy.sparse.csr_array((N, 0)), r"empty.*\(60, 0\)|0 feature"),
}


@pytest.mark.parametrize(("make", "words"), BAD.values(), ids=BAD)
def test_a_table_that_cannot_be_used_is_an_error_in_words(tmp_path, make, words):
    for solve in SOLVERS.values():
        with pytest.raises((dc.DataError, dc.ParameterError, ValueError), match=words):
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


# Sparse tables with degenerate columns


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
@pytest.mark.parametrize("table", [scipy.sparse.csr_array((N, D)), scipy.sparse.csr_array(np.full((N, D), 0.1))])
@every_solver
def test_sparse_columns_without_information_leave_nothing_to_find(solve, table):
    found = solve(table)
    found = getattr(found, "result_", found)
    assert (found.lower, found.upper) == pytest.approx((1.0, 1.0), abs=1e-12)


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
