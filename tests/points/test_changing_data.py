"""Data that change during reading raise an error with the bounds certified so far, and never give wrong bounds."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from forms import as_map

import diffrac_cvx as dc
from diffrac_cvx.machine import deadlines
from diffrac_cvx.points.chunks import checksum_chunk, is_unchanged
from diffrac_cvx.points.reading import as_rows
from diffrac_cvx.points.streamed import checksum_block

pytestmark = pytest.mark.usefixtures("sample_small_tables")  # so that tables are streamed

N, D = 2400, 4
RIDGE = 0.1
X = np.random.default_rng(0).standard_normal((N, D))
X[: N // 2, 0] += 3.0


@pytest.fixture(scope="module")
def optimum():
    return dc.low_rank(X, ridge=RIDGE, tol=1e-7)


def change_array(table):
    table *= np.random.default_rng(1).uniform(0.5, 1.5, table.shape)


def change_sparse(table):
    table.data *= 1.5


def change_one_entry(table):
    table[N // 3, 2] = np.nextafter(table[N // 3, 2], 9.0)


def make_nan(table):
    table[N // 3, 2] = np.nan


CHANGES = {
    "a memory map": (lambda folder: as_map(X, folder), change_array),
    "one bit of a memory map": (lambda folder: as_map(X, folder), change_one_entry),
    "a memory map that becomes NaN": (lambda folder: as_map(X, folder), make_nan),
    "an array": (lambda _: X.copy(), change_array),
    "a sparse matrix": (lambda _: scipy.sparse.csr_array(X), change_sparse),
}


def solve_while(table, change, **options):
    """Solve, and change the table after the first certified bounds."""
    done = []

    def callback(progress):
        if not done and progress.lower > 0.0:
            done.append(change(table))

    return dc.low_rank(table, ridge=RIDGE, tol=1e-7, callback=callback, **options)


@pytest.mark.parametrize(("make", "change"), CHANGES.values(), ids=CHANGES)
def test_a_table_that_changes_during_a_solve_is_an_error_with_what_was_proved_of_it_before(
    tmp_path, optimum, make, change
):
    with pytest.raises(dc.DataError, match=r"X changed .* rows \d+ to \d+.*certified so far") as error:
        solve_while(make(tmp_path), change)
    lower, upper = error.value.bracket
    assert 0.0 < lower <= optimum.upper
    assert optimum.lower <= upper < 1.0


def counted_chunks(change, height=600):
    """Return chunks that depend on their rows and on how often they were read before."""
    reads = dict.fromkeys(range(0, N, height), 0)

    def load(first):
        reads[first] += 1
        return change(X[first : first + height], reads[first])

    return da.concatenate([da.from_delayed(dask.delayed(load)(i), (height, D), float) for i in reads])


def raise_late(part, reads):
    if reads > 4:
        raise OSError("the disk is gone")
    return part


def nan_late(part, reads):
    return np.where(X[0, 0] == part, np.nan, part) if reads > 4 else part


CHUNKS = {
    "differ at each read": (lambda part, reads: part * (1.0 + 0.1 * reads), "changed", False),
    "become NaN": (nan_late, "X changed while it was being read: rows 0 to 599", True),
    "change places": (lambda part, reads: part[::-1] if reads > 4 else part, "changed", True),
    "cannot be read any more": (raise_late, "the disk is gone", True),
}


@pytest.mark.parametrize(("change", "words", "late"), CHUNKS.values(), ids=CHUNKS)
def test_chunks_that_change_are_an_error_with_what_was_proved_of_them_before(optimum, change, words, late):
    with pytest.raises(dc.DataError, match=words) as error:
        dc.low_rank(counted_chunks(change), ridge=RIDGE, tol=1e-7)
    assert (error.value.bracket is not None) == late
    if late:
        lower, upper = error.value.bracket
        assert lower <= optimum.upper
        assert optimum.lower <= upper


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_chunks_may_differ_by_rounding_when_they_are_computed_again(precision):
    shift = 3.0 * np.finfo(precision).eps
    table = counted_chunks(lambda part, reads: part * (1.0 + shift * (reads % 2))).astype(precision)
    found = dc.low_rank(table, ridge=RIDGE, tol=1e-5)
    assert found.status is dc.Status.OPTIMAL


def test_what_changes_after_the_solver_has_stopped_is_an_error_with_its_bracket(monkeypatch, tmp_path, optimum):
    from diffrac_cvx.certificates import consistency

    table, judge = as_map(X, tmp_path), consistency.certified_value

    def change_then_judge(*arguments):
        change_array(table)
        return judge(*arguments)

    monkeypatch.setattr(consistency, "certified_value", change_then_judge)
    with pytest.raises(dc.DataError, match="certified so far") as error:
        dc.low_rank(table, ridge=RIDGE, tol=1e-5)
    assert error.value.bracket[0] <= optimum.upper


def test_data_that_change_while_they_are_centered_prove_nothing(tmp_path):
    table, calls = as_map(X, tmp_path), []

    def poll():
        calls.append(1)
        if len(calls) == -(-N // 2000) + 1:  # after the first pass
            table[-1, 0] += 1.0

    with pytest.raises(dc.DataError, match="changed"), deadlines.time_limited(deadlines.Deadline(lambda: np.inf, poll)):
        as_rows(table)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_change_is_seen_with_any_number_of_threads(threads):
    table = np.tile(X, (3, 1))
    rows = replace(as_rows(table), threads=threads)
    rows.second_moment()
    np.testing.assert_allclose(rows.array(), table - table.mean(axis=0), atol=1e-12)
    table[-1, 1] += 1e-12
    with pytest.raises(dc.DataError, match=r"rows \d+ to 7199 differ"):
        rows.array()


CUT = """
import os, sys
import numpy as np
import diffrac_cvx as dc
from diffrac_cvx.solvers.factored import sampling
sampling.MIN_ROWS = sampling.MIN_SAMPLE_ROWS = 100
table = np.load(sys.argv[1], mmap_mode="r")
def cut(progress):
    if progress.lower > 0.0:
        os.truncate(sys.argv[1], 500)
try:
    {call}
except dc.DataError as error:
    print(error)
"""
CUT_DURING = {
    "a solve": "dc.low_rank(table, ridge=0.1, tol=1e-9, callback=cut)",
    "a prediction": "m = dc.DiffracClustering(max_iter=5).fit(table); os.truncate(sys.argv[1], 500); m.predict(table)",
    "the reading of a view": "table = np.asarray(table); os.truncate(sys.argv[1], 500); dc.low_rank(table)",
}


@pytest.mark.parametrize("call", CUT_DURING.values(), ids=CUT_DURING)
def test_a_map_that_is_cut_off_ends_no_process(tmp_path, call):
    path = tmp_path / "X.npy"
    np.save(path, np.tile(X, (20, 1)))
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CUT.format(call=call), str(path)],
        capture_output=True, text=True, timeout=100, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "truncated to 500 of" in ran.stdout


def test_a_map_whose_name_stands_for_another_file_is_read_as_it_was(tmp_path):
    table = as_map(X, tmp_path)
    rows = as_rows(table)
    os.rename(tmp_path / "X.npy", tmp_path / "old.npy")
    (tmp_path / "X.npy").write_bytes(b"another file")
    np.testing.assert_allclose(rows.array(), X - X.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f8", "i2", "u1", "?"])
@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (600, 7)])
def test_a_mark_sees_every_entry(shape, dtype):
    rng = np.random.default_rng(0)
    block = rng.integers(0, 2, shape).astype(dtype)
    assert checksum_block(block) == checksum_block(np.asfortranarray(block))
    for _ in range(20):
        changed, place = block.copy(), tuple(rng.integers(0, shape))
        changed[place] = not changed[place]
        assert checksum_block(changed) != checksum_block(block)


def exchange(table, one, other):
    """Return a copy with two entries or rows exchanged."""
    changed = table.copy()
    changed[one], changed[other] = table[other], table[one]
    return changed


def add_and_take(table, one, other, size=9):
    changed = table.copy()
    changed[one] += size
    changed[other] -= size
    return changed


SIGNS = np.where(np.arange(600 * 512).reshape(600, 512) % 7 < 3, 1.0, -1.0)
UNSEEN_BY_SUMS = {
    "two entries of a column": (X, exchange, (5, 1), (6, 1)),
    "two entries of a row": (X, exchange, (5, 1), (5, 2)),
    "two rows": (X, exchange, 5, 6),
    "1 and -1": (SIGNS, exchange, (5, 0), (5, 2)),
    "rows of as many 1 and -1, as wide as the words of a sum": (SIGNS, exchange, 0, 1),
    "9 added and taken in a row": (np.ones((600, 8), dtype=np.int64), add_and_take, (5, 1), (5, 2)),
    "1 added and taken, of bytes": (np.ones((600, 8), dtype=np.uint8), partial(add_and_take, size=1), (5, 1), (5, 2)),
    "1.0 added and taken, of single precision": (X.astype("f4"), partial(add_and_take, size=1), (5, 1), (715, 1)),
}


@pytest.mark.parametrize(("table", "change", "one", "other"), UNSEEN_BY_SUMS.values(), ids=UNSEEN_BY_SUMS)
def test_a_mark_sees_what_changes_places_or_cancels(table, change, one, other):
    changed = change(table, one, other)
    assert not np.array_equal(changed, table)
    assert checksum_block(changed) != checksum_block(table)
    for kind in (np.asarray, scipy.sparse.csr_array):
        assert not is_unchanged(checksum_chunk(kind(table)), kind(changed))


@pytest.mark.parametrize("rows", [44, 710])  # near multiples of 2 pi
@pytest.mark.parametrize("precision", ["f4", "f8"])
def test_the_mark_of_a_chunk_sees_rows_that_change_places_however_far_apart(rows, precision):
    table = X.astype(precision)
    assert not is_unchanged(checksum_chunk(table), np.roll(table, rows, axis=0))
    for first in range(0, 1600, 50):
        assert not is_unchanged(checksum_chunk(table), exchange(table, first, first + rows))


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_the_mark_of_a_chunk_sees_entries_and_their_order_but_no_rounding(kind):
    known = checksum_chunk(kind(X))
    assert is_unchanged(known, kind(X * (1.0 + 1e-15)))
    changed = X.copy()
    changed[N // 2, 1] += 1e-9
    assert not is_unchanged(known, kind(changed))
    assert not is_unchanged(known, kind(X[::-1]))
    changed[N // 2, 1] = np.nan
    assert not is_unchanged(known, kind(changed))
