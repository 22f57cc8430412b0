"""Tables that are read by parts: memory maps, sparse matrices and dask arrays give what an array gives."""

import pickle
from dataclasses import replace
from fractions import Fraction
from itertools import product

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from posed import proved_value

import diffrac_cvx as dc
from diffrac_cvx import rounding
from diffrac_cvx.errors import DegenerateDataWarning
from diffrac_cvx.estimators.affine import Teller
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.dense import DensePoints
from diffrac_cvx.points.label_factors import FactorTable
from diffrac_cvx.points.reading import as_points, as_rows, moment_of_products, rank_of
from diffrac_cvx.points.sparse import SparseColumns, as_sparse_columns
from diffrac_cvx.points.streamed import StreamedRows, uncentred
from diffrac_cvx.rounding.directions import leading_direction
from diffrac_cvx.solvers.factored import sampling
from experiments.stress.exact import direction_value

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


def as_memmap(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def as_dask(X, folder=None):
    return da.from_array(X, chunks=(-(-len(X) // 2), X.shape[1]))


KINDS = {
    "memmap": as_memmap,
    "csr": lambda X, _: scipy.sparse.csr_array(X),
    "coo": lambda X, _: scipy.sparse.coo_matrix(X),
    "dask": as_dask,
}
every_kind = pytest.mark.parametrize("kind", KINDS)
QUICK = {
    ("csr", "some free", 0.6),
    ("csr", "ridge", 1.0),
    ("dask", "none", 0.6),
    ("dask", "l1", 1.0),
    ("memmap", "both", 1.0),
    ("coo", "both", 0.6),
}


def quick_or_slow(axes, cases, quick):
    """Cases of which all but a few are left to the slow tests."""
    marks = {True: (), False: pytest.mark.slow}
    return pytest.mark.parametrize(axes, [pytest.param(*case, marks=marks[case in quick]) for case in cases])


every_case = quick_or_slow("kind, name, nu", list(product(KINDS, PENALTIES, NUS)), QUICK)
SPARSE = {kind: getattr(scipy.sparse, f"{kind}_array") for kind in ("csr", "csc", "coo", "lil", "bsr", "dok")}
X = make_data()
Y = np.where(X[:, 0] > 0.0, 1.0, -1.0)


@pytest.fixture
def few_are_many(monkeypatch):
    """Fifty rows are a sample, so that a few hundred rows take the way of millions."""
    monkeypatch.setattr(sampling, "FROM", 100)
    monkeypatch.setattr(sampling, "FEWEST", 50)


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
def test_low_rank_gives_the_bracket_of_the_array(few_are_many, tmp_path, solved, name, kind, nu):
    expected = solved(name, nu)
    found = dc.low_rank(KINDS[kind](X, tmp_path), nu, PENALTIES[name], tol=TOL)
    assert found.status is dc.Status.OPTIMAL
    assert found.gap <= TOL
    assert_same_bracket(found, expected)
    assert abs(rounding.kmeans_centered(found.factor) @ rounding.kmeans_centered(expected.F)) == N


@every_case
def test_certificates_give_the_bounds_of_the_array(tmp_path, solved, name, kind, nu):
    table, penalty, result = KINDS[kind](X, tmp_path), PENALTIES[name], solved(name, nu)
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


@quick_or_slow("kind, name", list(product(KINDS, ["ridge", "both"])), [("csr", "both"), ("dask", "ridge")])
def test_fista_gives_the_bracket_of_the_array(tmp_path, solved, name, kind):
    found = dc.fista(KINDS[kind](X, tmp_path), 0.6, PENALTIES[name], tol=1e-2)
    assert found.gap <= 1e-2
    assert_same_bracket(found, dc.fista(X, 0.6, PENALTIES[name], tol=1e-2), 1e-2)
    assert found.lower <= solved(name, 0.6).upper
    assert solved(name, 0.6).lower <= found.upper


@every_case
def test_a_million_rows_in_small_are_solved_on_samples_of_every_kind(few_are_many, tmp_path, name, kind, nu):
    points = make_data(3000, D)
    assert sampling.many_rows(*points.shape)
    expected = dc.low_rank(points, nu, PENALTIES[name], tol=TOL)
    found = dc.low_rank(KINDS[kind](points, tmp_path), nu, PENALTIES[name], tol=TOL)
    assert_same_bracket(found, expected)
    assert found.history[-1].rows / 3000 <= 200
    assert isinstance(found.factor, FactorTable)


@pytest.mark.slow
@every_nu
@every_penalty
def test_chunks_without_samples_are_solved_by_passes_over_all_rows(nu, penalty):
    assert_same_bracket(dc.low_rank(as_dask(X), nu, penalty, tol=TOL), dc.low_rank(X, nu, penalty, tol=TOL))


@pytest.mark.parametrize("kind", ["csr", "memmap"])
@every_nu
@pytest.mark.parametrize("penalty", [dc.Penalty(lam=0.02), dc.Penalty(ridge=0.3)], ids=["l1", "ridge"])
def test_forty_features_give_the_bracket_of_the_array(tmp_path, kind, nu, penalty):
    points = make_data(N, 40)
    expected = dc.low_rank(points, nu, penalty, tol=TOL)
    found = dc.low_rank(KINDS[kind](points, tmp_path), nu, penalty, tol=TOL)
    assert_same_bracket(found, expected)
    if expected.components is not None:
        np.testing.assert_array_equal(found.components.found, expected.components.found)


@pytest.mark.parametrize("kind", SPARSE)
def test_every_sparse_format_is_the_same_matrix_and_stays_as_it_was(kind):
    table = SPARSE[kind](X)
    before = table.copy()
    for penalty in (dc.Penalty(), dc.Penalty(lam=0.02)):
        found = dc.low_rank(table, 0.6, penalty, tol=TOL)
        assert_same_bracket(found, dc.low_rank(scipy.sparse.csr_array(X), 0.6, penalty, tol=TOL), 0.0)
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
    "kind, dtype",
    [
        case
        for case in product(KINDS, [np.float32, np.float16, np.int64, np.int8, np.uint8, bool, ">f8"])
        if case[0] in ("memmap", "dask") or case[1] not in (np.float16, ">f8")
    ],  # scipy has no sparse matrices of these types
    [("csr", bool), ("csr", np.float32), ("dask", np.int64), ("memmap", np.float16), ("dask", ">f8")],
)
def test_tables_of_any_numeric_type_are_read_as_their_numbers(tmp_path, kind, dtype):
    table = (np.abs(WHOLE) if dtype in (np.uint8, bool) else WHOLE).astype(dtype)
    V = dc.low_rank(table.astype(float), 0.6, lam=0.1, tol=TOL).V
    found, expected = (
        dc.certify_v(points, V, 0.6, lam=0.1) for points in (KINDS[kind](table, tmp_path), table.astype(float))
    )
    assert_same_bracket(found, expected)
    read = as_rows(KINDS[kind](table, tmp_path)).array()
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


@every_kind
def test_components_and_directions_are_those_of_the_array(tmp_path, kind):
    table, penalty = KINDS[kind](X, tmp_path), dc.Penalty(lam=0.02)
    result = dc.low_rank(X, penalty=penalty, tol=1e-7)
    np.testing.assert_array_equal(
        dc.find_components(table, result, penalty=penalty), dc.find_components(X, result, penalty=penalty)
    )
    np.testing.assert_allclose(leading_direction(table, result), leading_direction(X, result), atol=1e-8)


@quick_or_slow("kind", [(kind,) for kind in KINDS], [("csr",), ("memmap",)])
def test_paths_are_those_of_the_array(few_are_many, tmp_path, kind):
    table = KINDS[kind](X, tmp_path)
    for path in (
        lambda points: dc.paths.lambda_path(points, [0.01, 0.05], ridge=0.1, y=Y, tol=TOL),
        lambda points: dc.paths.nu_path(points, [0.5, 1.0], dc.Penalty(ridge=0.1), y=Y, tol=TOL),
    ):
        found, expected = path(table), path(X)
        np.testing.assert_allclose(found.lower, expected.lower, atol=TOL)
        np.testing.assert_allclose(found.upper, expected.upper, atol=TOL)
        np.testing.assert_allclose(np.abs(found.directions), np.abs(expected.directions), atol=1e-3)
        np.testing.assert_array_equal(found.error, expected.error)


@every_kind
def test_a_path_over_alpha_and_what_goes_through_cvxpy_say_what_to_pass(tmp_path, kind):
    if kind == "memmap":
        return  # it is an array
    table = KINDS[kind](WHOLE.astype(float), tmp_path)
    remedy = r"X\.compute\(\)" if kind == "dask" else r"X\.toarray\(\)"
    for function in (
        lambda: dc.paths.alpha_path(table, [0.1]),
        lambda: dc.certify_y(table, np.ones((60, 1))),
        lambda: dc.v_space(table),
        lambda: dc.compare(table),
        lambda: dc.rounding.refine(table, np.ones(60)),
        lambda: dc.baselines.cure(table, rng=0),
    ):
        with pytest.raises(dc.DataError, match=remedy):
            function()


# The factor


@quick_or_slow(
    "kind, name, nu",
    list(product(KINDS, rounding.ROUNDINGS, NUS)),
    list(product(["csr", "dask"], ["kmeans_centered", "sign_second"], [0.6])),
)
def test_roundings_of_the_factor_that_is_not_made_are_those_of_the_array(few_are_many, tmp_path, kind, nu, name):
    points = make_data(400, 4)
    for penalty in (dc.Penalty(), dc.Penalty(lam=0.02)):
        result = dc.low_rank(KINDS[kind](points, tmp_path), nu, penalty, tol=1e-6)
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


@every_kind
def test_rows_of_every_kind_are_those_of_the_array(tmp_path, kind):
    rows, centred = as_rows(KINDS[kind](X, tmp_path)), as_data(X)
    rng = np.random.default_rng(0)
    basis, u, T = rng.standard_normal((D + 1, 3)), rng.uniform(0.5, 2.0, N), rng.standard_normal((N, 2))
    for offset in (0.0, 0.7):
        frame = replace(rows, offset=offset, units=rng.uniform(0.5, 2.0, D))
        wide = np.column_stack([centred * frame.units, np.full(N, offset)])[:, : D + int(offset > 0.0)]
        for given, M in ((frame, wide), (frame.in_basis(basis[: wide.shape[1]]), wide @ basis[: wide.shape[1]])):
            U = rng.standard_normal((M.shape[1], 2))
            q = np.sum((M @ U) ** 2, axis=1)
            assert given.shape == M.shape
            np.testing.assert_allclose(given.array(), M, atol=1e-13)
            np.testing.assert_allclose(given @ U, M @ U, atol=1e-12)
            np.testing.assert_allclose(given @ U[:, 0], M @ U[:, 0], atol=1e-12)
            np.testing.assert_allclose(given.energies(U), q, atol=1e-11)
            np.testing.assert_allclose(given.gain_and_energy(U), [np.sqrt(q).mean(), q.mean()], rtol=1e-12)
            np.testing.assert_allclose(given.moment(u), M.T @ (u[:, None] * M) / N, atol=1e-12)
            np.testing.assert_allclose(given.second_moment(), M.T @ M / N, atol=1e-12)
            np.testing.assert_allclose(given.products_with(u), M.T @ u / N, atol=1e-12)
            np.testing.assert_allclose(given.products_with(T), M.T @ T / N, atol=1e-12)
            chosen = np.array([0, 3, 149, 150, 299])
            np.testing.assert_allclose(given.take(chosen), M[chosen], atol=1e-13)
    np.testing.assert_allclose(uncentred(rows.table).array(), X, atol=1e-15)


@every_kind
def test_a_pass_counts_each_row_once(tmp_path, kind):
    rows = as_rows(KINDS[kind](X, tmp_path))
    before = rows.meter.rows
    rows.gain_and_energy(np.eye(D))
    assert rows.meter.rows == before + N
    rows.moment(np.ones(N))
    assert rows.meter.rows == before + 2 * N
    assert rows.zero_rows().sum() == 0


def test_rows_of_zeros_are_found_in_every_kind(tmp_path):
    points = WHOLE - 1.0
    points = np.concatenate([points, -points, np.zeros((2, 4))])
    for kind in KINDS:
        np.testing.assert_array_equal(
            as_rows(KINDS[kind](points, tmp_path)).zero_rows(), ~points.any(axis=1), err_msg=kind
        )


def test_parts_are_read_by_threads_or_by_chunks_and_sums_are_the_same():
    table = make_data(5000, 3)
    one = as_rows(table)
    U = np.eye(3)
    for other in (as_rows(table, threads=3), as_rows(da.from_array(table, chunks=(1700, 3)))):
        assert [len(part) for part in [range(i, j) for i, j in other.bounds()]] != [5000]
        np.testing.assert_allclose(other.gain_and_energy(U), one.gain_and_energy(U), rtol=1e-14)


@every_kind
def test_the_warning_of_a_constant_column_points_at_the_line_that_asked(tmp_path, kind):
    points = np.column_stack([X[:, :2], np.full(N, 2.0)])
    table = KINDS[kind](points, tmp_path)
    for solver in (dc.low_rank, dc.fista):
        for penalty in (dc.Penalty(ridge=0.3), dc.Penalty(lam=0.02)):
            with pytest.warns(DegenerateDataWarning, match=r"\[2\]") as said:
                solver(table, penalty=penalty, tol=1e-2)
            assert [warning.filename for warning in said] == [__file__]


def test_components_of_chunks_that_do_not_fit_in_memory_are_refused_before_they_are_read(monkeypatch):
    monkeypatch.setattr("diffrac_cvx.machine.memory.available_memory", lambda: 1e4)
    with pytest.raises(dc.ResourceError, match="components of 300 points and 6 features"):
        dc.find_components(as_dask(X), np.eye(D), penalty=dc.Penalty(lam=0.02))


def test_columns_that_are_all_constant_leave_nothing_to_cluster_on(tmp_path):
    for kind in KINDS:
        for points in (np.zeros((20, 3)), np.full((20, 3), 0.1)):
            table = KINDS[kind](points, tmp_path)
            with pytest.warns(DegenerateDataWarning, match="every column"):
                found = dc.low_rank(table)
            assert (found.lower, found.upper) == (1.0, 1.0)
            for nu in NUS:
                assert_same_bracket(dc.certify_v(table, np.eye(3), nu), dc.certify_v(points, np.eye(3), nu), 1e-12)


# Sparse columns and a row


def shifted(n=40, d=5, size=1.0, seed=0):
    """A sparse matrix plus a row whose entries are of a size, one of them zero, and the same as an array."""
    rng = np.random.default_rng([n, d, seed])
    S = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)
    r = size * rng.standard_normal(d)
    r[1] = 0.0
    S[3] = 0.0
    return SparseColumns(scipy.sparse.csc_array(S), r), S + r


@pytest.mark.parametrize("size", [0.0, 1.0, 1e4])
def test_a_sparse_matrix_and_a_row_do_what_their_array_does(size):
    X, M = shifted(size=size)
    rng = np.random.default_rng(1)
    n, d = M.shape
    U, Y, u, factors = (
        rng.standard_normal((d, 3)),
        rng.standard_normal((n, 2)),
        rng.uniform(0.5, 2, n),
        np.arange(1.0 * d),
    )
    rounded = 1e-13 * max(size, 1.0) ** 2 * n
    F = np.column_stack([rng.standard_normal(n), np.full(n, 2.5)])
    j, k = np.array([0, 1, 4, 2]), np.array([3, 2, 4, 1])
    rows = np.array([3, 0, 7])
    pairs = [
        (X.array(), M),
        (X @ U, M @ U),
        (X @ U[:, 0], M @ U[:, 0]),
        (X @ scipy.sparse.csc_array(U), M @ U),
        (X.row_sums(u), u @ M),
        (X.products_with(Y), M.T @ Y / n),
        (X.products_with(u), M.T @ u / n),
        (X.scaled(factors).array(), M * factors),
        (X.columns(np.array([4, 0])).array(), M[:, [4, 0]]),
        (X.dense_columns(np.array([4, 0])), M[:, [4, 0]]),
        (X.rows(rows).array(), M[rows]),
        (X.rows(slice(5, 9)).array(), M[5:9]),
        (X.squares().array(), M**2),
        (X.moment(u), M.T @ (u[:, None] * M) / n),
        (X.energies(U), np.sum((M @ U) ** 2, axis=1)),
        (X.energies(scipy.sparse.csc_array(U)), np.sum((M @ U) ** 2, axis=1)),
        (X.in_basis(U).array(), M @ U),
        (X.mean_sizes(), np.mean(np.abs(M), axis=0)),
        (X.gram(u), M.T @ (u[:, None] * M)),
        (X.gram(u, slice(0, 2), slice(2, 5)), (M.T @ (u[:, None] * M))[:2, 2:]),
        (X.pair_sums(u, j, k), np.einsum("i,ij,ij->j", u, M[:, j], M[:, k])),
        (X.beside(F).array(), np.column_stack([M, F])),
        (X.beside(F[:, :0]).array(), M),
        (X.with_offset().array(), np.column_stack([M, np.ones(n)])),
        (X.second_moment(), M.T @ M / n),
        (moment_of_products(X, U), (M @ U).T @ (M @ U) / n),
    ]
    assert X.shape == M.shape
    assert len(X) == n
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=rounded)
    np.testing.assert_allclose(X.mean_squares(), np.mean(M**2, axis=0), rtol=1e-12)
    np.testing.assert_array_equal(X.used_columns(), M.any(axis=0))
    np.testing.assert_array_equal(X.zero_rows(), ~M.any(axis=1))
    assert X.any() == M.any()


def test_entries_that_the_row_cancels_are_zeros():
    M = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    r = np.array([-2.0, 0.0, 0.0])
    X = SparseColumns(scipy.sparse.csc_array(M), r)
    np.testing.assert_array_equal(X.used_columns(), [True, True, False])
    np.testing.assert_array_equal(X.zero_rows(), [False, True, False])
    full = SparseColumns(scipy.sparse.csc_array(np.full((3, 1), 2.0)), np.array([-2.0]))
    assert not full.any()
    np.testing.assert_array_equal(full.mean_squares(), [0.0])


def far_from_zero(n=40, d=4):
    """A sparse table one column of which is 2000 +- 10 in every row and another 2000 in half of them."""
    rng = np.random.default_rng(3)
    points = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    points[:, 0] = 2000.0 + 10.0 * rng.standard_normal(n)
    points[:, 1] = 2000.0 * (rng.random(n) < 0.5)
    return points


def test_sparse_columns_are_centred_as_the_array_is():
    points = far_from_zero()
    exact = [sum(map(Fraction, column)) / len(points) for column in points.T.tolist()]
    found = as_sparse_columns(scipy.sparse.csr_array(points))
    for mean, taken in zip(exact, found.mean, strict=True):
        assert abs(Fraction(taken) - mean) <= Fraction(2) ** -52 * max(abs(mean), 1)
    assert found.r[0] == 0.0  # there are no zeros in that column: it is centred itself
    deviation = points.std(axis=0)
    np.testing.assert_allclose(found.array() / deviation, as_data(points) / deviation, atol=1e-14)
    assert rank_of(found) == rank_of(as_rows(points)) == 4


@every_nu
@pytest.mark.parametrize("name", ["l1", "ridge", "both"])
def test_bounds_hold_in_sixty_digits_where_a_sparse_column_is_far_from_zero(name, nu):
    points = far_from_zero()
    unit = 1.0 / points.std(axis=0)
    weights = {"l1": (0.0, 0.1), "ridge": (0.3, 0.0), "both": (0.2, 0.1)}[name]
    a, c = (weight / unit for weight in weights)
    penalty, table = dc.Penalty(a, c), scipy.sparse.csr_array(points)
    result = dc.low_rank(table, nu, penalty, tol=1e-7)
    best = dc.low_rank(points, nu, penalty, tol=1e-9)
    exact = direction_value(points, nu, a, c, dense_factor(result))
    assert 0.0 <= Fraction(result.upper) - Fraction(exact) <= 1e-7
    assert result.lower <= direction_value(points, nu, a, c, dense_factor(best))
    lower, upper = dc.certify_v(table, best, nu, penalty)
    assert lower <= direction_value(points, nu, a, c, dense_factor(best)) <= upper
    assert upper - lower <= 1e-7


def dense_factor(result):
    return result.G.toarray() if scipy.sparse.issparse(result.G) else result.G


@pytest.mark.parametrize("size", [1.0, 1e4, 1e8])
def test_a_value_of_sparse_rows_is_not_below_the_exact_one_however_far_the_row(size):
    rng = np.random.default_rng(5)
    points = rng.standard_normal((20, 3)) * (rng.random((20, 3)) < 0.5)
    points[:, 0] += size
    G = rng.standard_normal((4, 2))
    a, c = np.full(3, 0.1), np.array([0.0, 0.2, 0.3])
    exact = direction_value(points, 0.5, a, c, G)
    for given in (scipy.sparse.csc_array(G), G):
        for X in (as_sparse_columns(scipy.sparse.csr_array(points)), as_rows(scipy.sparse.csr_array(points))):
            if isinstance(X, StreamedRows) and scipy.sparse.issparse(given):
                continue
            found = Fraction(proved_value(X, 0.5, dc.Penalty(a, c), given))
            assert 0.0 <= found - Fraction(exact) <= 1e-11 * size * max(float(exact), 1.0)


def test_an_upper_bound_of_rows_that_forgets_rounding_is_found_out(monkeypatch):
    points = far_from_zero()
    G = np.random.default_rng(0).standard_normal((4, 2)) / points.std(axis=0)[:, None]
    exact = Fraction(direction_value(points, 1.0, np.zeros(4), np.zeros(4), G))
    assert Fraction(proved_value(as_rows(scipy.sparse.csr_array(points)), 1.0, dc.Penalty(), G)) >= exact
    monkeypatch.setattr("diffrac_cvx.certificates.values.round_up", lambda *_: -1e-9)
    assert Fraction(proved_value(as_rows(scipy.sparse.csr_array(points)), 1.0, dc.Penalty(), G)) < exact


# The estimator


OPTIONS = {"plain": {}, "l1": {"lam": 0.02}, "nu": {"standardize": False, "nu": 0.6}, "refine": {"refine": True}}


@quick_or_slow("kind, options", list(product(KINDS, OPTIONS)), list(zip(KINDS, OPTIONS, strict=True)))
def test_the_estimator_finds_what_it_finds_in_the_array(few_are_many, tmp_path, kind, options):
    table = KINDS[kind](X, tmp_path)
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


@pytest.mark.parametrize("kind", ["csr", "dask"])
def test_another_number_of_features_is_refused(tmp_path, kind):
    model = dc.DiffracClustering().fit(KINDS[kind](X, tmp_path))
    for given in (X, KINDS[kind](X, tmp_path)):
        with pytest.raises(ValueError, match="5 features, but DiffracClustering is expecting 6"):
            model.predict(given[:, :5])


@pytest.mark.parametrize("kind", ["csr", "dask"])
def test_more_clusters_and_labels_are_found_in_the_table_as_an_array(tmp_path, kind):
    table = KINDS[kind](X, tmp_path)
    for strategy in ("together", "splits"):
        model, plain = (dc.DiffracClustering(n_clusters=3, strategy=strategy, random_state=0) for _ in range(2))
        np.testing.assert_array_equal(model.fit_predict(table), plain.fit_predict(X))
        np.testing.assert_array_equal(model.predict(table), plain.labels_)


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


def test_rows_of_sparse_columns_have_moments_that_are_summed_by_blocks():
    """What `StreamedRows` proves counts on the rounding of such sums, which is not that of sparse products."""
    columns = as_sparse_columns(scipy.sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0)))
    rows = as_points(columns)
    np.testing.assert_array_equal(rows.gram, replace(rows, gram=None, units=np.ones(D)).second_moment())


@every_nu
def test_a_sparse_column_with_one_zero_is_bounded_as_the_array(nu):
    """Its mean is n**0.5 times its standard deviation, which is what rounding is in proportion to."""
    table = np.where(np.abs(X) > 0.5, X, 0.0)
    table[:, 1] = 1.0
    table[7, 1] = 0.0
    for penalty in (dc.Penalty(lam=0.02), dc.Penalty(lam=0.3)):
        expected = dc.low_rank(table, nu, penalty, tol=1e-7)
        found = dc.certify_v(scipy.sparse.csc_array(table), expected, nu, penalty)
        assert found.lower <= expected.upper
        assert found.upper >= expected.lower
        assert found.gap <= 1e-6
