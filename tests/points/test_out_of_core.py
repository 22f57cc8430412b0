"""Tables that only slice, and dask arrays, give what the memory map gives, and are never read as a whole at once."""

import pickle

import numpy as np
import pytest
from forms import OnlySlices, as_map

import diffrac_cvx as dc
from diffrac_cvx.comparison import structure
from diffrac_cvx.points import checks, sliced
from diffrac_cvx.points.checks import as_table
from diffrac_cvx.points.reading import as_rows, many_rows, table_rows, table_times

N, D = 3000, 4
RNG = np.random.default_rng(5)
X = RNG.standard_normal((N, D)) + 2.0
X[: N // 2, 0] += 3.0
LABELS = np.where(X[:, 0] > 3.5, 1.0, -1.0)
PENALTIES = {"ridge": dc.Penalty(ridge=0.1), "l1": dc.Penalty(lam=0.05), "components": dc.Penalty(lam=0.3)}
READ_ROWS = 300  # rows that are read at once


def dask_of(table, rows=700, columns=3):
    """A dask array in chunks that are neither equal nor of complete rows."""
    return pytest.importorskip("dask.array").from_array(table, chunks=(rows, columns))


FORMS = {
    "only slices": OnlySlices,
    "in chunks": lambda table: OnlySlices(table, chunks=(77, 2)),
    "in one chunk": lambda table: OnlySlices(table, chunks=table.shape),
    "dask array": dask_of,
}
every_form = pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)


@pytest.fixture(autouse=True)
def read_few_rows(monkeypatch, sample_small_tables):
    """The tables have many rows, of which few are read at once."""
    monkeypatch.setattr(sliced, "READ_ENTRIES", READ_ROWS * D)
    monkeypatch.setattr(sliced, "MAX_READ_ENTRIES", 2 * READ_ROWS * D)


def assert_read_by_blocks(table):
    """Check that no slice of a table that only slices had many rows."""
    if isinstance(table, OnlySlices):
        assert 0 < max(table.slices) <= 2 * READ_ROWS < N


def assert_close(found, expected):
    """Check that bounds equal others but for the order of the sums."""
    np.testing.assert_allclose(tuple(found)[:2], tuple(expected)[:2], rtol=0.0, atol=1e-9)


@every_form
@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
@pytest.mark.parametrize("nu", [1.0, 0.6])
def test_solvers_and_certificates_give_what_they_give_for_the_memory_map(monkeypatch, tmp_path, make, penalty, nu):
    assert many_rows(N, D)
    monkeypatch.setattr(checks, "in_memory", None)  # none of them reads the table into memory
    table, mapped = make(X), as_map(X, tmp_path)
    expected, found = (dc.low_rank(given, nu, penalty, tol=1e-6) for given in (mapped, table))
    assert found.gap <= 1e-6
    np.testing.assert_allclose(found.bracket[:2], expected.bracket[:2], rtol=0.0, atol=1e-6)
    assert dc.check_certificate(table, found).lower == found.lower
    for V in (expected, expected.V):
        assert_close(dc.certify_v(table, V, nu, penalty), dc.certify_v(mapped, V, nu, penalty))
    options = {"nu": nu, "penalty": penalty}
    labels = dc.certify_labels(table, LABELS, found, **options)
    known = dc.certify_labels(mapped, LABELS, expected, **options)
    assert labels.objective == pytest.approx(known.objective, abs=1e-9)
    assert dc.check_certificate(table, labels).lower == labels.certificate.lower
    np.testing.assert_array_equal(dc.rounding.kmeans_centered(found.factor), dc.rounding.kmeans_centered(expected.F))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).F, found.F)
    assert_read_by_blocks(table)


@every_form
def test_the_algorithm_of_the_paper_reads_blocks_and_its_bounds_are_checked(make):
    table = make(X)
    found = dc.fista(table, penalty=dc.Penalty(ridge=0.1), tol=1e-2)
    assert found.gap <= 1e-2
    assert dc.check_certificate(table, found).lower == found.lower
    assert_read_by_blocks(table)


@every_form
@pytest.mark.parametrize("parameters", [{}, {"lam": 0.1}, {"standardize": False, "nu": 0.6}], ids=str)
def test_an_estimator_fits_and_predicts_as_from_the_memory_map(tmp_path, make, parameters):
    table, mapped = make(X), as_map(X, tmp_path)
    found, expected = (dc.DiffracClustering(**parameters).fit(given) for given in (table, mapped))
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    np.testing.assert_array_equal(found.predict(table), expected.predict(mapped))
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-6)
    assert (found.lower_bound_, found.upper_bound_) == pytest.approx(
        (expected.lower_bound_, expected.upper_bound_), abs=found.tol or 1e-4
    )
    assert found.score(table) == pytest.approx(expected.score(mapped), abs=1e-9)
    assert_read_by_blocks(table)


@every_form
def test_weights_constraints_and_searches_read_blocks_into_an_array(make):
    table, weights = make(X), RNG.uniform(0.5, 2.0, N) * (np.arange(N) % 7 > 0)
    penalty, known = dc.Penalty(ridge=0.3), dc.Constraints(must_link=[(0, 5)], cannot_link=[(1, N - 1)])
    for options in ({"sample_weight": weights}, {"constraints": known}):
        found, expected = (dc.low_rank(given, penalty=penalty, tol=1e-4, **options) for given in (table, X))
        assert found.bracket == expected.bracket
        assert dc.certify_v(table, found, penalty=penalty, **options) == dc.certify_v(
            X, found, penalty=penalty, **options
        )
        assert dc.check_certificate(table, found).lower == found.lower
    best = dc.optimal_labels(table, ridge=0.3, tol=0.2)
    np.testing.assert_array_equal(best.labels, dc.optimal_labels(X, ridge=0.3, tol=0.2).labels)
    assert dc.check_certificate(table, best).lower == best.lower
    assert dc.DiffracClustering(n_clusters=3, random_state=0).fit(table).labels_.shape == (N,)
    assert_read_by_blocks(table)


@every_form
@pytest.mark.parametrize("most", [400, 10**6], ids=["a sample", "all rows"])
def test_the_structure_test_takes_the_rows_of_the_array(monkeypatch, make, most):
    monkeypatch.setattr(structure, "MAX_ENTRIES", most * D)
    monkeypatch.setattr(structure, "MAX_ROWS", 10**6)
    found, expected = (structure.sample_points(table, None, None, np.random.default_rng(0)) for table in (make(X), X))
    np.testing.assert_array_equal(found.array(), expected.array())


@every_form
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.uint8, bool])
def test_numbers_of_any_type_are_read_as_they_are(make, dtype):
    whole = RNG.integers(0, 2 if dtype is bool else 100, (N, D)).astype(dtype)
    table, indices, W = make(whole), np.array([0, 299, 300, 301, 2999]), RNG.standard_normal((D, 2))
    rows, expected = as_rows(table).rows, as_rows(whole).rows
    assert as_table(table).dtype == dtype
    np.testing.assert_array_equal(as_table(table), whole)
    np.testing.assert_array_equal(table_rows(table, indices), whole[indices])
    np.testing.assert_allclose(rows.take(indices), expected.take(indices), atol=1e-12)
    np.testing.assert_allclose(rows.second_moment(), expected.second_moment(), rtol=1e-12)
    np.testing.assert_allclose(rows @ W, expected @ W, atol=1e-9)
    np.testing.assert_allclose(table_times(table, W), whole.astype(float) @ W, atol=1e-9)


def test_a_table_that_only_slices_has_the_sums_of_the_memory_map_to_the_last_digit(tmp_path):
    for threads in (1, 3):
        found, expected = (as_rows(given, threads=threads).rows for given in (OnlySlices(X), as_map(X, tmp_path)))
        np.testing.assert_array_equal(found.second_moment(), expected.second_moment())
        np.testing.assert_array_equal(
            found.sqrt_sum_and_gradient(np.eye(D))[1], expected.sqrt_sum_and_gradient(np.eye(D))[1]
        )


def test_whole_chunks_are_read_once_in_a_pass_unless_they_are_too_large():
    for chunk, most in ((77, 308), (1000, 600)):
        table = OnlySlices(X, chunks=(chunk, 2))
        as_rows(table)
        assert max(table.slices) == most
        if chunk < READ_ROWS:
            assert sum(table.slices) == 2 * N  # two passes


@every_form
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_entries_that_are_no_numbers_are_refused(make, value):
    changed = X.copy()
    changed[2345, 2] = value
    for few in (slice(None), slice(2300, 2360)):
        table = make(changed[few])
        for function in (dc.low_rank, dc.fista, lambda given: dc.DiffracClustering().fit(given)):
            with pytest.raises(dc.DataError, match=r"NaN|nan|inf"):
                function(table)
    with pytest.raises(dc.DataError, match="masked"):
        dc.low_rank(OnlySlices(np.ma.masked_greater(X, 4.0)))


class Unreadable(OnlySlices):
    """A table of a disk that fails in the third pass."""

    def __getitem__(self, rows):
        if sum(self.slices) > 3 * N:
            raise OSError("the disk is gone")
        return super().__getitem__(rows)


def change_row(table):
    table.X[7] += 1.0


def test_a_table_that_changes_or_fails_is_an_error_with_the_bounds_so_far():
    best = dc.low_rank(X, ridge=0.1, tol=1e-7)
    changing = OnlySlices(X.copy())
    for table, message in ((Unreadable(X), "the disk is gone"), (changing, "X changed")):
        with pytest.raises(dc.DataError, match=message) as error:
            dc.low_rank(table, ridge=0.1, tol=1e-9, callback=lambda _, table=table: change_row(table))
        lower, upper = error.value.bracket
        assert lower <= best.upper
        assert best.lower <= upper


# Dask arrays


def test_chunks_may_be_empty_or_uneven_and_their_sizes_have_to_be_known():
    whole = dask_of(X)
    uneven = whole.rechunk(((1, 1999, 0, 1000), (1, 3)))
    expected = dc.low_rank(whole, ridge=0.1, tol=1e-6)
    assert_close(dc.low_rank(uneven, ridge=0.1, tol=1e-6).bracket, expected.bracket)
    selected = whole[whole[:, 0] > -np.inf]
    with pytest.raises(dc.DataError, match="compute_chunk_sizes"):
        dc.low_rank(selected, ridge=0.1)
    assert_close(dc.low_rank(selected.compute_chunk_sizes(), ridge=0.1, tol=1e-6).bracket, expected.bracket)


def test_a_dask_array_of_many_rows_is_not_read_into_memory():
    rows = as_rows(dask_of(X)).rows
    assert not rows.fits(1.0, np.inf)
    assert rows.max_sample == N // 2
    for function in (rows.array, rows.in_columns):
        with pytest.raises(dc.ResourceError, match=r"X\.compute\(\)"):
            function()


def test_chunks_that_cannot_be_computed_are_an_error():
    pytest.importorskip("dask.array")

    def fail(block):
        raise FileNotFoundError("rows.parquet")

    with pytest.raises(dc.DataError, match=r"rows\.parquet"):
        dc.low_rank(dask_of(X).map_blocks(fail, dtype=float, meta=np.zeros((0, 0))))


def test_a_client_that_is_closed_is_an_error_with_the_bounds_so_far():
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        table = dask_of(X).persist()
        found = dc.low_rank(table, ridge=0.1, tol=1e-6)
        assert_close(found.bracket, dc.low_rank(dask_of(X), ridge=0.1, tol=1e-6).bracket)
        with pytest.raises(dc.DataError, match="the dask cluster lost X") as error:
            dc.low_rank(table, ridge=0.1, tol=1e-9, callback=lambda _: client.close())
        assert error.value.bracket[0] <= found.upper
        with pytest.raises(dc.DataError, match="the dask cluster lost X"):
            dc.certify_v(table, found)


def test_a_scheduler_whose_client_is_gone_is_not_asked():
    table = dask_of(X[:60], rows=20)
    pytest.importorskip("distributed")
    with pytest.importorskip("dask").config.set(scheduler="dask.distributed"):
        found = dc.low_rank(table, ridge=0.1)
    assert_close(found.bracket, dc.low_rank(X[:60], ridge=0.1).bracket)
