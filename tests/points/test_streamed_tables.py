"""Tables that are read by parts: memory maps, sparse matrices and dask arrays give what an array gives."""

import pickle
from itertools import product

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from forms import as_dask, each_form, quick_or_slow

import diffrac_cvx as dc
from diffrac_cvx import rounding
from diffrac_cvx.errors import DegenerateDataWarning
from diffrac_cvx.estimators.affine import Teller
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.dense import DensePoints
from diffrac_cvx.points.label_factors import FactorTable
from diffrac_cvx.points.reading import as_points, as_rows
from diffrac_cvx.points.sparse import SparseColumns
from diffrac_cvx.points.streamed import StreamedRows
from diffrac_cvx.rounding.directions import leading_direction
from diffrac_cvx.solvers.factored import sampling

N, D = 300, 6
TOL = 1e-8  # both values lie in a bracket of this width around the optimum, and so do both lower bounds
NUS = [1.0, 0.6]
PENALTIES = {
    "none": dc.Penalty(),
    "ridge": dc.Penalty(ridge=0.3),
    "l1": dc.Penalty(lam=0.02),
    "both": dc.Penalty(ridge=0.1, lam=0.02),
    "some free": dc.Penalty(c=np.array([0.0, 0.1, 0.2, 0.0, 0.1, 0.1])),
}
every_nu = pytest.mark.parametrize("nu", NUS)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)


def make_data(n=N, d=D, seed=0):
    """A table half of which is zero, with two clusters along its first column and one of 0 and 1."""
    rng = np.random.default_rng([n, d, seed])
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    X[:, 0] = np.sign(rng.standard_normal(n)) + 0.3 * rng.standard_normal(n)
    X[:, 1] = rng.random(n) < 0.3
    return X


READ = ("memory map", "csr", "coo", "dask")
every_form = each_form(*READ)
QUICK = {
    ("csr", "some free", 0.6),
    ("csr", "ridge", 1.0),
    ("dask", "none", 0.6),
    ("dask", "l1", 1.0),
    ("memory map", "both", 1.0),
    ("coo", "both", 0.6),
}
every_case = quick_or_slow("form, name, nu", list(product(READ, PENALTIES, NUS)), QUICK)
X = make_data()
Y = np.where(X[:, 0] > 0.0, 1.0, -1.0)


@pytest.fixture(scope="module")
def solved():
    """Solutions for the array, which all kinds are compared with."""
    found = {}

    def solve(name, nu):
        if (name, nu) not in found:
            found[name, nu] = dc.low_rank(X, nu, PENALTIES[name], tol=TOL)
        return found[name, nu]

    return solve


def assert_same_bracket(found, expected, tol=TOL):
    assert found.lower == pytest.approx(expected.lower, abs=tol)
    assert found.upper == pytest.approx(expected.upper, abs=tol)
    assert found.lower <= expected.upper
    assert expected.lower <= found.upper


# Solvers and certificates


@every_case
def test_low_rank_gives_the_bracket_of_the_array(few_are_many, form, solved, name, nu):
    expected = solved(name, nu)
    found = dc.low_rank(form(X), nu, PENALTIES[name], tol=TOL)
    assert found.status is dc.Status.OPTIMAL
    assert found.gap <= TOL
    assert_same_bracket(found, expected)
    assert abs(rounding.kmeans_centered(found.factor) @ rounding.kmeans_centered(expected.F)) == N


@every_case
def test_certificates_give_the_bounds_of_the_array(form, solved, name, nu):
    table, penalty, result = form(X), PENALTIES[name], solved(name, nu)
    for V in (result.V, result):
        assert_same_bracket(dc.certify_v(table, V, nu, penalty), dc.certify_v(X, V, nu, penalty), 1e-9)
    far, expected = (dc.certify_v(points, np.eye(D), nu, penalty) for points in (table, X))
    assert far.upper == pytest.approx(expected.upper, abs=1e-12)
    assert far.lower <= result.upper
    labels = dc.certify_labels(table, Y, result, nu=nu, penalty=penalty)
    expected = dc.certify_labels(X, Y, result, nu=nu, penalty=penalty)
    assert labels.objective == pytest.approx(expected.objective, abs=1e-9)
    np.testing.assert_allclose(labels.v, expected.v, atol=1e-7)
    clusters = np.digitize(X[:, 0], [-0.5, 0.5])
    found, expected = (dc.certify_clusters(points, clusters, result, nu=nu, penalty=penalty) for points in (table, X))
    assert found.objective == pytest.approx(expected.objective, abs=1e-9)


@quick_or_slow("form, name", list(product(READ, ["ridge", "both"])), [("csr", "both"), ("dask", "ridge")])
def test_fista_gives_the_bracket_of_the_array(form, solved, name):
    found = dc.fista(form(X), 0.6, PENALTIES[name], tol=1e-2)
    assert found.gap <= 1e-2
    assert_same_bracket(found, dc.fista(X, 0.6, PENALTIES[name], tol=1e-2), 1e-2)
    assert found.lower <= solved(name, 0.6).upper
    assert solved(name, 0.6).lower <= found.upper


@every_case
def test_a_million_rows_in_small_are_solved_on_samples_of_every_kind(few_are_many, form, name, nu):
    points = make_data(3000, D)
    assert sampling.many_rows(*points.shape)
    expected = dc.low_rank(points, nu, PENALTIES[name], tol=TOL)
    found = dc.low_rank(form(points), nu, PENALTIES[name], tol=TOL)
    assert_same_bracket(found, expected)
    assert found.history[-1].rows / 3000 <= 200
    assert isinstance(found.factor, FactorTable)


@pytest.mark.slow
@every_nu
@every_penalty
def test_chunks_without_samples_are_solved_by_passes_over_all_rows(nu, penalty):
    assert_same_bracket(dc.low_rank(as_dask(X), nu, penalty, tol=TOL), dc.low_rank(X, nu, penalty, tol=TOL))


@each_form("csr", "memory map")
@every_nu
@pytest.mark.parametrize("penalty", [dc.Penalty(lam=0.02), dc.Penalty(ridge=0.3)], ids=["l1", "ridge"])
def test_forty_features_give_the_bracket_of_the_array(form, nu, penalty):
    points = make_data(N, 40)
    expected = dc.low_rank(points, nu, penalty, tol=TOL)
    found = dc.low_rank(form(points), nu, penalty, tol=TOL)
    assert_same_bracket(found, expected)
    if expected.components is not None:
        np.testing.assert_array_equal(found.components.found, expected.components.found)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "bsr", "dok"])
@pytest.mark.parametrize("make", ["array", "matrix"])
def test_every_sparse_format_is_the_same_matrix_and_stays_as_it_was(kind, make):
    table = getattr(scipy.sparse, f"{kind}_{make}")(X)
    before = table.copy()
    for penalty in (dc.Penalty(), dc.Penalty(lam=0.02)):
        found = dc.low_rank(table, 0.6, penalty, tol=TOL)
        assert_same_bracket(found, dc.low_rank(scipy.sparse.csr_array(X), 0.6, penalty, tol=TOL), 0.0)
    model, expected = (dc.DiffracClustering(c=0.1).fit(given) for given in (table, X))
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.predict(table), expected.labels_)
    assert abs(table - before).sum() == 0.0
    assert table.format == before.format


def test_zeros_that_are_stored_and_entries_in_two_parts_change_nothing():
    rows, columns = np.nonzero(X)
    zero_rows, zero_columns = (where[:50] for where in np.nonzero(X == 0.0))
    halves = X[rows, columns] / 2.0
    table = scipy.sparse.coo_array(
        (
            np.concatenate([halves, halves, np.zeros(50)]),
            (np.concatenate([rows, rows, zero_rows]), np.concatenate([columns, columns, zero_columns])),
        ),
        shape=X.shape,
    )
    for given in (table, table.tocsr(), table.tocsc()):
        stored = given.nnz
        for penalty in (dc.Penalty(), dc.Penalty(lam=0.02)):
            found = dc.low_rank(given, penalty=penalty, tol=TOL)
            expected = dc.low_rank(scipy.sparse.csr_array(X), penalty=penalty, tol=TOL)
            assert (found.lower, found.upper) == (expected.lower, expected.upper)
        assert given.nnz == stored


WHOLE = np.random.default_rng(4).integers(-4, 5, (60, 4))


@quick_or_slow(
    "form, dtype",
    [
        case
        for case in product(READ, [np.float32, np.float16, np.int64, np.int8, np.uint8, bool, ">f8"])
        if case[0] in ("memory map", "dask") or case[1] not in (np.float16, ">f8")
    ],  # scipy has no sparse matrices of these types
    [("csr", bool), ("csr", np.float32), ("dask", np.int64), ("memory map", np.float16), ("dask", ">f8")],
)
def test_tables_of_any_numeric_type_are_read_as_their_numbers(form, dtype):
    table = (np.abs(WHOLE) if dtype in (np.uint8, bool) else WHOLE).astype(dtype)
    V = dc.low_rank(table.astype(float), 0.6, lam=0.1, tol=TOL).V
    found, expected = (dc.certify_v(points, V, 0.6, lam=0.1) for points in (form(table), table.astype(float)))
    assert_same_bracket(found, expected)
    read = as_rows(form(table)).array()
    np.testing.assert_allclose(read, as_data(table.astype(float)), atol=1e-13)


def test_chunks_may_be_of_unequal_heights_unknown_sizes_sparse_or_cut_by_columns():
    expected = dc.certify_v(X, np.eye(D), 0.6)
    whole = da.from_array(X, chunks=((1, 250, 49), (2, 4)))
    unknown = whole[whole[:, 0] > -100.0]
    tables = [
        whole,
        unknown,
        as_dask(X).map_blocks(scipy.sparse.csr_matrix),
        da.concatenate([as_dask(X), as_dask(X[:0])]),
    ]
    assert np.isnan(unknown.shape[0])
    for table in tables:
        assert_same_bracket(dc.certify_v(table, np.eye(D), 0.6), expected, 1e-9)


def test_a_data_frame_of_dask_is_its_array():
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcdef")), npartitions=2)
    expected = dc.low_rank(X, ridge=0.3, tol=TOL)
    assert_same_bracket(dc.low_rank(frame, ridge=0.3, tol=TOL), expected)
    model, plain = (dc.DiffracClustering(tol=TOL).fit(points) for points in (frame, X))
    np.testing.assert_array_equal(model.predict(frame), plain.labels_)


# What is known about a solution


@every_form
def test_components_and_directions_are_those_of_the_array(form):
    table, penalty = form(X), dc.Penalty(lam=0.02)
    result = dc.low_rank(X, penalty=penalty, tol=1e-7)
    np.testing.assert_array_equal(
        dc.find_components(table, result, penalty=penalty), dc.find_components(X, result, penalty=penalty)
    )
    np.testing.assert_allclose(leading_direction(table, result), leading_direction(X, result), atol=1e-8)


@quick_or_slow("form", [(name,) for name in READ], [("csr",), ("memory map",)])
def test_paths_are_those_of_the_array(few_are_many, form):
    table = form(X)
    for path in (
        lambda points: dc.paths.lambda_path(points, [0.01, 0.05], ridge=0.1, y=Y, tol=TOL),
        lambda points: dc.paths.nu_path(points, [0.5, 1.0], dc.Penalty(ridge=0.1), y=Y, tol=TOL),
    ):
        found, expected = path(table), path(X)
        np.testing.assert_allclose(found.lower, expected.lower, atol=TOL)
        np.testing.assert_allclose(found.upper, expected.upper, atol=TOL)
        np.testing.assert_allclose(np.abs(found.directions), np.abs(expected.directions), atol=1e-3)
        np.testing.assert_array_equal(found.error, expected.error)


# The factor


@quick_or_slow(
    "form, name, nu",
    list(product(READ, rounding.ROUNDINGS, NUS)),
    list(product(["csr", "dask"], ["kmeans_centered", "sign_second"], [0.6])),
)
def test_roundings_of_the_factor_that_is_not_made_are_those_of_the_array(few_are_many, form, nu, name):
    points = make_data(400, 4)
    for penalty in (dc.Penalty(), dc.Penalty(lam=0.02)):
        result = dc.low_rank(form(points), nu, penalty, tol=1e-6)
        np.testing.assert_allclose(np.sum(result.F**2, axis=1), 1.0, atol=1e-12)
        expected = rounding.ROUNDINGS[name](result.F)
        np.testing.assert_array_equal(rounding.ROUNDINGS[name](result.factor), expected)
        np.testing.assert_array_equal(rounding.ROUNDINGS[name](as_dask(result.F)), expected)
        np.testing.assert_array_equal(
            rounding.goemans_williamson(result.factor, 0), rounding.goemans_williamson(result.F, 0)
        )


def test_a_factor_says_what_its_array_does():
    y = np.random.default_rng(0).standard_normal(N)
    for table, penalty in ((as_dask(X), dc.Penalty()), (scipy.sparse.csc_array(X), dc.Penalty(lam=0.02))):
        result = dc.low_rank(table, 0.6, penalty, tol=1e-6)
        factor, F = result.factor, result.F
        assert isinstance(factor, FactorTable)
        assert factor.shape == F.shape
        mean, gram = factor.sums()
        np.testing.assert_allclose(mean, F.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(gram, F.T @ F / N, atol=1e-12)
        np.testing.assert_allclose(factor.times(np.eye(F.shape[1])), F, atol=1e-12)
        np.testing.assert_allclose(factor.products_with(y), F.T @ y, atol=1e-10)


def test_a_result_of_chunks_is_pickled_with_what_makes_its_factor():
    result = dc.low_rank(as_dask(X), tol=1e-6)
    copy = pickle.loads(pickle.dumps(result))
    assert (copy.lower, copy.upper, copy.history) == (result.lower, result.upper, result.history)
    np.testing.assert_array_equal(copy.F, result.F)
    np.testing.assert_array_equal(copy.V, result.V)
    again = pickle.loads(pickle.dumps(copy))
    np.testing.assert_array_equal(rounding.kmeans_centered(again.factor), rounding.kmeans_centered(result.factor))


# Rows


@every_form
def test_a_pass_counts_each_row_once(form):
    rows = as_rows(form(X))
    before = rows.meter.rows
    rows.gain_and_energy(np.eye(D))
    assert rows.meter.rows == before + N
    rows.moment(np.ones(N))
    assert rows.meter.rows == before + 2 * N
    assert rows.zero_rows().sum() == 0


@every_form
def test_rows_of_zeros_are_found_in_every_kind(form):
    points = WHOLE - 1.0
    points = np.concatenate([points, -points, np.zeros((2, 4))])
    np.testing.assert_array_equal(as_rows(form(points)).zero_rows(), ~points.any(axis=1))


def test_parts_are_read_by_threads_or_by_chunks_and_sums_are_the_same():
    table = make_data(5000, 3)
    one = as_rows(table)
    U = np.eye(3)
    for other in (as_rows(table, threads=3), as_rows(da.from_array(table, chunks=(1700, 3)))):
        assert [len(part) for part in [range(i, j) for i, j in other.bounds()]] != [5000]
        np.testing.assert_allclose(other.gain_and_energy(U), one.gain_and_energy(U), rtol=1e-14)


@every_form
def test_the_warning_of_a_constant_column_points_at_the_line_that_asked(form):
    points = np.column_stack([X[:, :2], np.full(N, 2.0)])
    table = form(points)
    for solver in (dc.low_rank, dc.fista):
        for penalty in (dc.Penalty(ridge=0.3), dc.Penalty(lam=0.02)):
            with pytest.warns(DegenerateDataWarning, match=r"\[2\]") as said:
                solver(table, penalty=penalty, tol=1e-2)
            assert [warning.filename for warning in said] == [__file__]


def test_components_of_chunks_that_do_not_fit_in_memory_are_refused_before_they_are_read(monkeypatch):
    monkeypatch.setattr("diffrac_cvx.machine.memory.available_memory", lambda: 1e4)
    with pytest.raises(dc.ResourceError, match="components of 300 points and 6 features"):
        dc.find_components(as_dask(X), np.eye(D), penalty=dc.Penalty(lam=0.02))


@every_form
@pytest.mark.parametrize("entry", [0.0, 0.1])
def test_columns_that_are_all_constant_leave_nothing_to_cluster_on(form, entry):
    points = np.full((20, 3), entry)
    table = form(points)
    with pytest.warns(DegenerateDataWarning, match="every column"):
        found = dc.low_rank(table)
    assert (found.lower, found.upper) == (1.0, 1.0)
    for nu in NUS:
        assert_same_bracket(dc.certify_v(table, np.eye(3), nu), dc.certify_v(points, np.eye(3), nu), 1e-12)


# The estimator


OPTIONS = {"plain": {}, "l1": {"lam": 0.02}, "nu": {"standardize": False, "nu": 0.6}, "refine": {"refine": True}}


@quick_or_slow("form, options", list(product(READ, OPTIONS)), list(zip(READ, OPTIONS, strict=True)))
def test_the_estimator_finds_what_it_finds_in_the_array(few_are_many, form, options):
    table = form(X)
    model, plain = (dc.DiffracClustering(tol=TOL, **OPTIONS[options]) for _ in range(2))
    labels = model.fit_predict(table)
    np.testing.assert_array_equal(labels, plain.fit_predict(X))
    assert model.lower_bound_ == pytest.approx(plain.lower_bound_, abs=TOL)
    assert model.upper_bound_ == pytest.approx(plain.upper_bound_, abs=TOL)
    assert model.label_gap_ == pytest.approx(plain.label_gap_, abs=2 * TOL)
    assert [r.kind for r in model.reservations_] == [r.kind for r in plain.reservations_]
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-8)
    np.testing.assert_allclose(model.scaled_coef_, plain.scaled_coef_, atol=1e-8)
    np.testing.assert_array_equal(model.support_, plain.support_)
    np.testing.assert_array_equal(model.predict(table), labels)
    np.testing.assert_array_equal(model.predict(X), labels)
    np.testing.assert_allclose(model.transform(table), plain.transform(X), atol=1e-7)
    assert model.score(table) == pytest.approx(plain.score(X), abs=1e-9)
    assert model.n_features_in_ == D


@each_form("csr", "dask")
def test_another_number_of_features_is_refused(form):
    model = dc.DiffracClustering().fit(form(X))
    for given in (X, form(X)):
        with pytest.raises(ValueError, match="5 features, but DiffracClustering is expecting 6"):
            model.predict(given[:, :5])


def test_a_verbose_estimator_says_how_many_rows_it_reads_in_a_second(few_are_many, capsys):
    lines = []
    dc.DiffracClustering(verbose=True, tol=TOL, lam=0.02).fit(as_dask(X))
    assert capsys.readouterr().err.splitlines()[0] == "low_rank: 300 points, 6 features"
    model = dc.DiffracClustering(verbose=lines.append, tol=TOL, lam=0.02).fit(as_dask(X))
    assert capsys.readouterr().err == ""
    assert lines[-1].rows == model.result_.history[-1].rows >= 5 * N
    Teller()(lines[-1]._replace(seconds=2.0).with_rows(5000))
    assert capsys.readouterr().err.endswith(", 2.5e+03 rows a second\n")


def test_the_history_says_how_many_rows_were_read(few_are_many):
    result = dc.low_rank(as_dask(X), lam=0.02, tol=1e-6)
    rows = [line.rows for line in result.history]
    assert rows == sorted(rows)
    assert rows[0] >= 3 * N  # two to check and centre the table, and one at the first point
    assert all(count % N == 0 for count in rows)


def test_points_are_what_they_were():
    points = as_points(X)
    assert isinstance(points, DensePoints)
    for table, by_columns, kind in (
        (scipy.sparse.csr_array(X), True, SparseColumns),
        (scipy.sparse.csr_array(X), False, StreamedRows),
    ):
        found = as_points(table, by_columns=by_columns)
        assert isinstance(found, kind)
        assert as_points(found, by_columns=by_columns) is found
    turned = as_points(as_points(scipy.sparse.csr_array(X), by_columns=True))
    assert isinstance(turned, StreamedRows)
    np.testing.assert_allclose(turned.array(), as_data(X), atol=1e-14)
