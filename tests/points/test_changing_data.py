"""Data that change during reading raise an error with the bounds certified so far, and never give wrong bounds."""

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from forms import as_map

import diffrac_cvx as dc
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


def change_array(table):
    table *= np.random.default_rng(1).uniform(0.5, 1.5, table.shape)


def change_sparse(table):
    table.data *= 1.5


def change_one_entry(table):
    table[N // 3, 2] += 1e-9


def make_nan(table):
    table[N // 3, 2] = np.nan


CHANGES = {
    "a memory map": (lambda folder: as_map(X, folder), change_array),
    "one entry of a memory map": (lambda folder: as_map(X, folder), change_one_entry),
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
    with pytest.raises(dc.DataError, match=r"X changed .*certified so far") as error:
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
    "become NaN": (nan_late, "X changed while it was being read", True),
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


def exchange(table):
    """Return a copy with two rows exchanged."""
    table[[5, 900]] = table[[900, 5]]
    return table


def move_mass(table):
    table[5, 1] += 9.0
    table[715, 1] -= 9.0
    return table


@pytest.mark.parametrize("precision", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("change", [exchange, move_mass, np.flipud, lambda table: np.roll(table, 44, axis=0)])
def test_a_checksum_sees_entries_that_change_places_or_cancel(change, precision):
    table = (100.0 * X).astype(precision)
    rows = as_rows(table)
    table[...] = change(table.copy())
    with pytest.raises(dc.DataError, match="X changed"):
        rows.array()
