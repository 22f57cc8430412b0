"""Streamed tables that cannot be read, or change while they are read, raise errors with the bounds certified so far."""

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
from messages import TALL, chunked

import diffrac_cvx as dc
from diffrac_cvx.certificates import consistency
from diffrac_cvx.machine import deadlines
from diffrac_cvx.points.reading import as_rows

pytestmark = pytest.mark.usefixtures("sample_small_tables")  # so that tables are streamed

N, D = 2400, 4
RIDGE = 0.1
X = np.random.default_rng(0).standard_normal((N, D))
X[: N // 2, 0] += 3.0


@pytest.fixture(scope="module")
def optimum():
    return dc.low_rank(X, ridge=RIDGE, tol=1e-7)


def assert_certified(bracket, optimum):
    """Check that bounds certified before an error are not trivial, and hold for the optimum."""
    assert 0.0 < bracket[0] <= optimum.upper
    assert optimum.lower <= bracket[1] < 1.0


def enlarge(table, rows=slice(None), factor=1.5):
    entries = table.data if scipy.sparse.issparse(table) else table
    entries[rows] *= factor


CHANGES = {
    "a memory map": (as_map, enlarge),
    "one entry of a memory map": (as_map, lambda table: enlarge(table[:, 2], N // 3, 1.0 + 1e-9)),
    "a memory map that becomes NaN": (as_map, lambda table: enlarge(table[:, 2], N // 3, np.nan)),
    "an array": (lambda table, _: table.copy(), enlarge),
    "a sparse matrix": (lambda table, _: scipy.sparse.csr_array(table), enlarge),
}


@pytest.mark.parametrize(("make", "change"), CHANGES.values(), ids=CHANGES)
def test_a_table_that_changes_during_a_solve_is_an_error_with_what_was_proved_of_it_before(
    tmp_path, optimum, make, change
):
    table, done = make(X, tmp_path), []

    def callback(progress):
        if not done and progress.lower > 0.0:
            done.append(change(table))

    with pytest.raises(dc.DataError, match=r"X changed .*certified so far") as error:
        dc.low_rank(table, ridge=RIDGE, tol=1e-7, callback=callback)
    assert_certified(error.value.bracket, optimum)


def counted_chunks(change, height=600):
    """Return chunks that depend on their rows and on how often they were read before."""
    reads = dict.fromkeys(range(0, N, height), 0)

    def load(first):
        reads[first] += 1
        return change(X[first : first + height], reads[first])

    return da.concatenate([da.from_delayed(dask.delayed(load)(i), (height, D), float) for i in reads])


def lose(part):
    raise OSError("the disk is gone")


CHUNKS = {
    "become NaN": (lambda part: np.where(X[0, 0] == part, np.nan, part), "X changed while it was being read"),
    "change places": (lambda part: part[::-1], "changed"),
    "cannot be read any more": (lose, "the disk is gone"),
}


@pytest.mark.parametrize(("change", "words"), CHUNKS.values(), ids=CHUNKS)
def test_chunks_that_change_are_an_error_with_what_was_proved_of_them_before(optimum, change, words):
    table = counted_chunks(lambda part, reads: change(part) if reads > 4 else part)
    with pytest.raises(dc.DataError, match=words) as error:
        dc.low_rank(table, ridge=RIDGE, tol=1e-7)
    assert_certified(error.value.bracket, optimum)
    with pytest.raises(dc.DataError, match="changed") as error:
        dc.low_rank(counted_chunks(lambda part, reads: part * (1.0 + 0.1 * reads)))
    assert error.value.bracket is None


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_chunks_may_differ_by_rounding_when_they_are_computed_again(precision):
    shift = 3.0 * np.finfo(precision).eps
    table = counted_chunks(lambda part, reads: part * (1.0 + shift * (reads % 2))).astype(precision)
    assert dc.low_rank(table, ridge=RIDGE, tol=1e-5).status is dc.Status.OPTIMAL


def test_what_changes_after_the_solver_has_stopped_is_an_error_with_its_bracket(monkeypatch, tmp_path, optimum):
    table, judge = as_map(X, tmp_path), consistency.certified_value

    def change_then_judge(*arguments):
        enlarge(table)
        return judge(*arguments)

    monkeypatch.setattr(consistency, "certified_value", change_then_judge)
    with pytest.raises(dc.DataError, match="certified so far") as error:
        dc.low_rank(table, ridge=RIDGE, tol=1e-5)
    assert_certified(error.value.bracket, optimum)


def test_data_that_change_while_they_are_centered_prove_nothing(tmp_path):
    table, calls = as_map(X, tmp_path), []

    def poll():
        calls.append(1)
        if len(calls) == -(-N // 2000) + 1:  # after the first pass
            table[-1, 0] += 1.0

    with pytest.raises(dc.DataError, match="changed"), deadlines.time_limited(deadlines.Deadline(lambda: np.inf, poll)):
        as_rows(table)


def exchange(table):
    table[[5, 900]] = table[[900, 5]]
    return table


def move_mass(table):
    table[[5, 715], 1] += np.array([9, -9], dtype=table.dtype)
    return table


@pytest.mark.parametrize("precision", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("change", [exchange, move_mass, np.flipud, lambda table: np.roll(table, 44, axis=0)])
def test_a_checksum_sees_entries_that_change_places_or_cancel(change, precision):
    table = (100.0 * X).astype(precision)
    rows = as_rows(table)
    table[...] = change(table.copy())
    with pytest.raises(dc.DataError, match="X changed"):
        rows.array()


# Errors and limits


def test_an_error_of_the_package_is_not_said_to_be_one_of_the_data():
    def fail(part):
        raise KeyError(len(part))

    with pytest.raises(KeyError):
        as_rows(chunked(TALL)).map_parts(fail)


@pytest.fixture
def endless():
    """Chunks of which the third does not load before the test ends."""
    ended = threading.Event()

    def load(first):
        _ = first < 1200 or ended.wait(60.0)
        return X[first : first + 600]

    yield da.concatenate([da.from_delayed(dask.delayed(load)(i), (600, D), float) for i in range(0, N, 600)])
    ended.set()  # otherwise the process would wait for the reading thread


def test_a_limit_of_a_second_is_kept_while_a_table_is_read(endless):
    started = time.perf_counter()
    result = dc.low_rank(endless, time_limit=1.0)
    assert time.perf_counter() - started < 15.0
    assert result.status is dc.Status.TIME_LIMIT
    assert 0.0 <= result.lower <= result.upper <= 1.0


def test_ctrl_c_leaves_the_reading_at_once(endless):
    timer = threading.Timer(0.6, signal.raise_signal, (signal.SIGINT,))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # background processes of a shell ignore it
    timer.start()
    started = time.perf_counter()
    try:
        with pytest.raises(KeyboardInterrupt):
            dc.low_rank(endless)
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert time.perf_counter() - started < 15.0


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
