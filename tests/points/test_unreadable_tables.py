"""Streamed tables that cannot be read, or change while they are read, raise errors with the bounds certified so far."""

import threading
import time

import numpy as np
import pytest
import scipy.sparse
from forms import as_map

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

    with pytest.raises(dc.DataError, match=r"X changed .*Certified so far") as error:
        dc.low_rank(table, ridge=RIDGE, tol=1e-7, callback=callback)
    assert_certified(error.value.bracket, optimum)


def test_what_changes_after_the_solver_has_stopped_is_an_error_with_its_bracket(monkeypatch, tmp_path, optimum):
    table, judge = as_map(X, tmp_path), consistency.certified_value

    def change_then_judge(*arguments):
        enlarge(table)
        return judge(*arguments)

    monkeypatch.setattr(consistency, "certified_value", change_then_judge)
    with pytest.raises(dc.DataError, match="Certified so far") as error:
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
    rows = as_rows(table).rows
    table[...] = change(table.copy())
    with pytest.raises(dc.DataError, match="X changed"):
        rows.array()


# Threads


def test_threads_give_the_sums_of_one_thread_and_keep_a_limit():
    one, two = as_rows(X).rows, as_rows(X, threads=2).rows
    np.testing.assert_allclose(two.second_moment(), one.second_moment(), rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(two.take(np.array([3, 2100])), one.take(np.array([3, 2100])))
    ended, started = threading.Event(), time.perf_counter()

    def check():
        if time.perf_counter() - started > 0.1:
            raise deadlines.EarlyExitError(dc.Status.TIME_LIMIT)

    with pytest.raises(deadlines.EarlyExitError), deadlines.time_limited(deadlines.Deadline(lambda: np.inf, check)):
        list(two.map_parts(lambda part: ended.wait(60.0)))
    assert time.perf_counter() - started < 15.0
    ended.set()  # otherwise the process would wait for the threads
