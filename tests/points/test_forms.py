"""Every public function and estimator gives the same result for all table formats, or an error with a remedy.

None changes NumPy's global random state.
"""

import inspect
import warnings
from functools import cache, partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from entrances import functions_of
from forms import BY_PARTS, FORMS, each_form, quick_or_slow
from instances import assert_overlap

import diffrac_cvx as dc
from diffrac_cvx import rounding
from diffrac_cvx.errors import DegenerateDataWarning
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.factors import FactorTable
from diffrac_cvx.points.reading import as_rows, many_rows, read_points
from diffrac_cvx.rounding.directions import leading_direction

ERRORS = (dc.DataError, dc.ParameterError, dc.ResourceError)
N, D = 24, 3
X = np.random.default_rng(0).integers(-3, 4, (N, D)).astype(float)
X[: N // 2, 0] += 3.0
X[:, 1] *= X[:, 1] > 0.0
LABELS = np.where(np.arange(N) < N // 2, 1.0, -1.0)
MATRICES = {
    "array": np.eye(D),
    "list": np.eye(D).tolist(),
    "data frame": pd.DataFrame(np.eye(D)),
    "sparse array": scipy.sparse.csr_array(np.eye(D)),
    "sparse matrix": scipy.sparse.coo_matrix(np.eye(D)),
    "zero": np.zeros((D, D)),
    "negative": -np.eye(D),
    "too large": np.eye(7),
    "result": dc.low_rank(X, lam=0.1),
    "result of one block": dc.low_rank(X, lam=0.1, working_set=False),
    "result of sparse columns": dc.low_rank(scipy.sparse.csr_array(X), lam=0.1),
}
PENALTIES = {"none": dc.Penalty(), "ridge": dc.Penalty(ridge=0.1), "l1": dc.Penalty(lam=0.1)}
NEEDED = {  # other required arguments
    "y": LABELS, "labels": (LABELS > 0.0).astype(int), "lower": 0.0, "alpha": 0.3, "k": 2, "n_clusters": 2, "rng": 0,
    "V": np.eye(D), "Y_or_F": LABELS[:, None], "nus": [0.5, 1.0], "lams": [0.1, 0.3],
    "certificate": dc.optimal_labels(X, ridge=0.1, tol=1e-2).certificate,
}  # fmt: skip
OPTIONS = {
    "compare": {"methods": ["low_rank"]},
    "sparse_kmeans": {"n_init": 1, "bound": 1.3},
    "gaussian_mixture": {"n_init": 1},
}
TABLES_READ = {  # functions that stream a table; the others need it in memory
    "certify_clusters", "certify_labels", "certify_v", "check_certificate", "find_components", "fista", "lambda_path",
    "leading_direction", "low_rank", "nu_path", "optimal_labels", "optimal_partition", "structure_test",
}  # fmt: skip
ESTIMATORS = {
    "DiffracClustering": lambda: dc.DiffracClustering(),
    "sparse": lambda: dc.DiffracClustering(lam=0.1),
    "columns as they are": lambda: dc.DiffracClustering(standardize=False, nu=0.6),
    "three clusters": lambda: dc.DiffracClustering(n_clusters=3, random_state=0),
    "DiffracClusteringCV": lambda: dc.DiffracClusteringCV(ridges=(0.1,), lams=(0.0,), nus=(1.0,), random_state=0),
    "MultiLabelDiffrac": lambda: dc.MultiLabelDiffrac(random_state=0),
}


FUNCTIONS = functions_of("X")
# Formats in memory that a function could misread before it converts them to numbers.
QUICK = ("tuples", "data frame of Int64", "int8", "matrix", "read-only", "memory map", "only slices", "csc")
COSTLY = {*dc.registry.RELAXATIONS, "gaussian_mixture", "structure_test"}  # with CVXPY, or with many resamples
QUICK_OF_COSTLY = ("data frame of Int64", "int8", "csc")
every_matrix = quick_or_slow(
    "form, matrix, penalty",
    list(
        product(
            ("array", "list", "single precision", "data frame", "memory map", "dask array", *BY_PARTS),
            MATRICES,
            PENALTIES,
        )
    ),
    [
        *(("array", matrix, "l1") for matrix in MATRICES),
        *product(("csc",), ("result", "too large"), ("l1",)),
    ],
)


def each_form_and(names):
    quick = [(form, name) for form in QUICK for name in names if name not in COSTLY or form in QUICK_OF_COSTLY]
    return quick_or_slow("form, name", list(product(FORMS, names)), quick)


def call(name, table):
    function, positional, named = FUNCTIONS[name], [], dict(OPTIONS.get(name, {}))
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.default is parameter.empty and parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = NEEDED[parameter.name]
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
            positional.append(NEEDED[parameter.name])
    return function(table, *positional, **named)


def returns_or_says(function, *arguments, **options):
    """Return the result of a function, or None if it raises an error of the package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*arguments, **options)
        except ERRORS:
            return None


def numbers(answer):
    """Return the numbers of a result as arrays, except run times."""
    if isinstance(answer, dc.Relaxation):
        answer = dc.solve(answer, "CLARABEL")
    if isinstance(answer, dc.Result):
        return [answer.lower, answer.upper, answer.F, *([] if answer.G is None else [answer.V])]
    if isinstance(answer, dc.OptimalLabels | dc.OptimalPartition):
        return [answer.labels, *answer.bracket]
    if isinstance(answer, dc.Certificate):
        return [*answer.bracket]
    if hasattr(answer, "rows"):
        return [row["value"] for row in answer.rows]
    if isinstance(answer, list | tuple):
        return [number for part in answer for number in numbers(part)]
    if hasattr(answer, "__dataclass_fields__"):
        others = ("name", "verdict", "copies", "penalty", "seconds", "diagnostics")
        parts = [value for name, value in vars(answer).items() if name not in others]
        return [number for part in parts for number in numbers(part)]
    return [] if answer is None else [np.asarray(answer, dtype=float)]


@cache
def of_array(name):
    answer = returns_or_says(call, name, X)
    return answer, numbers(answer)


@pytest.fixture(autouse=True)
def _global_state_stays():
    """Check that a test does not change NumPy's global random state."""
    before = np.random.get_state()  # noqa: NPY002  # the state under test
    yield
    for one, other in zip(np.random.get_state(), before, strict=True):  # noqa: NPY002
        np.testing.assert_array_equal(one, other)


def test_no_public_function_of_a_table_is_forgotten():
    assert {"low_rank", "fista", "certify_v", "find_components", "nu_path", "compare"} <= set(FUNCTIONS)
    assert set(FUNCTIONS) >= TABLES_READ


@pytest.mark.filterwarnings("ignore")
@each_form_and(FUNCTIONS)
def test_a_function_gives_for_a_form_what_it_gives_for_the_array_or_says_what_to_pass(form, name):
    expected, numbers_expected = of_array(name)
    if form.name in BY_PARTS and name not in TABLES_READ:
        with pytest.raises(dc.DataError, match=r"X\.toarray\(\)"):
            call(name, form(X))
        return
    found = returns_or_says(call, name, form(X))
    assert found is not None
    if form.name not in BY_PARTS:
        for one, other in zip(numbers(found), numbers_expected, strict=True):
            np.testing.assert_array_equal(one, other)
    elif hasattr(expected, "upper"):
        assert np.all(np.less_equal(found.lower, expected.upper) & np.less_equal(expected.lower, found.upper))
    else:
        for one, other in zip(numbers(found), numbers_expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9)


@cache
def optimum_at(penalty, nu):
    return dc.low_rank(X, nu, PENALTIES[penalty])


@every_matrix
def test_a_matrix_of_any_form_is_certified_and_starts_a_solver_or_is_refused_in_words(form, matrix, penalty):
    table, V, known = form(X), MATRICES[matrix], PENALTIES[penalty]
    for nu in (1.0, 0.5):
        bounds = returns_or_says(dc.certify_v, table, V, nu, known)
        groups = returns_or_says(dc.find_components, table, V, nu, known)
        if matrix in ("array", "sparse array", "result"):
            assert bounds.upper == pytest.approx(dc.certify_v(X, V, nu, known).upper, abs=1e-9)
            assert bounds.lower <= optimum_at(penalty, nu).upper
            np.testing.assert_array_equal(groups, dc.find_components(X, V, nu, known))
    for solver in (dc.low_rank, dc.fista):
        found = returns_or_says(solver, table, 1.0, known, start=V, tol=0.05)
        assert found is not None or matrix not in ("array", "result", "zero", "negative")
        if found is not None:
            assert_overlap(found, optimum_at(penalty, 1.0))


@each_form_and(ESTIMATORS)
def test_an_estimator_finds_in_a_form_what_it_finds_in_the_array_or_says_what_to_pass(form, name):
    if form.name == "matrix":
        return  # scikit-learn rejects it
    table, (expected, model) = form(X), [ESTIMATORS[name]() for _ in range(2)]
    assert returns_or_says(expected.fit, X) is not None
    if returns_or_says(model.fit, table) is None:
        assert form.name in BY_PARTS
        assert name in ("DiffracClusteringCV", "MultiLabelDiffrac")
        return
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    for given in (table, X):
        np.testing.assert_array_equal(model.predict(given), expected.predict(X))
    tol = 0.0 if form.name not in BY_PARTS else 2e-5 if model.tol is None else 2.0 * model.tol
    for attribute in ("lower_bound_", "upper_bound_", "label_gap_", "coef_", "scaled_coef_", "support_"):
        if hasattr(model, attribute):
            found, given = getattr(model, attribute), getattr(expected, attribute)
            np.testing.assert_allclose(found, given, atol=tol, rtol=100.0 * tol, err_msg=attribute)
    if hasattr(model, "diagnostics_"):
        assert [one.code for one in model.diagnostics_] == [one.code for one in expected.diagnostics_]
        np.testing.assert_allclose(model.transform(table), expected.transform(X), atol=100.0 * tol)
        assert model.score(table) == pytest.approx(expected.score(X), abs=max(tol, 1e-9))


# NumPy's global random state


def test_estimators_without_a_seed_and_roundings_leave_the_global_state():
    """The fixture checks it."""
    for make in ESTIMATORS.values():
        returns_or_says(make().set_params(random_state=None).fit, X)
    for function in functions_of("F").values():
        taken = {"k", "n_clusters", "rng", "y"} & set(inspect.signature(function).parameters)
        returns_or_says(
            function, np.random.default_rng(0).standard_normal((N, 4)), **{key: NEEDED[key] for key in taken}
        )


# Streamed tables, sampled if they have many rows

ROWS, COLUMNS = 300, 6
TOL = 1e-8  # both values and both lower bounds differ from the optimum by at most this
READ = ("memory map", "csr", "coo")
WEIGHTS = PENALTIES | {
    "both": dc.Penalty(ridge=0.1, lam=0.02),
    "some free": dc.Penalty(c=np.array([0.0, 0.1, 0.2, 0.0, 0.1, 0.1])),
}
every_case = quick_or_slow(
    "form, name, nu",
    list(product(READ, WEIGHTS, (1.0, 0.6))),
    [
        ("csr", "some free", 0.6),
        ("csr", "ridge", 1.0),
        ("csr", "none", 0.6),
        ("memory map", "l1", 1.0),
        ("memory map", "both", 1.0),
        ("coo", "both", 0.6),
    ],
)


def make_data(n=ROWS, d=COLUMNS, seed=0):
    """Return a table with half of its entries zero, two clusters along its first column, and a binary column."""
    rng = np.random.default_rng([n, d, seed])
    points = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5)
    points[:, 0] = np.sign(rng.standard_normal(n)) + 0.3 * rng.standard_normal(n)
    points[:, 1] = rng.random(n) < 0.3
    return points


POINTS = make_data()
SPLIT = np.where(POINTS[:, 0] > 0.0, 1.0, -1.0)
THIRDS = np.digitize(POINTS[:, 0], [-0.5, 0.5])


@cache
def best_at(name, nu, n=ROWS, d=COLUMNS):
    return dc.low_rank(make_data(n, d), nu, WEIGHTS[name], tol=TOL)


def proofs(table, best, known):
    """Return the certified numbers of a solution, each with its tolerance."""
    labels = dc.certify_labels(table, SPLIT, best, **known)
    clusters = dc.certify_clusters(table, THIRDS, best, **known)
    for V in (best.V, best):
        yield from ((bound, 1e-9) for bound in dc.certify_v(table, V, **known))
    yield dc.certify_v(table, np.eye(COLUMNS), **known).upper, 1e-12
    yield from [(labels.objective, 1e-9), (labels.v, 1e-7), (clusters.objective, 1e-9)]
    yield dc.find_components(table, best, **known), 0.0
    yield leading_direction(table, best), 1e-8


@every_case
def test_certificates_components_and_directions_are_those_of_the_array(form, name, nu):
    best, known = best_at(name, nu), {"nu": nu, "penalty": WEIGHTS[name]}
    for (found, tol), (expected, _) in zip(proofs(form(POINTS), best, known), proofs(POINTS, best, known), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=tol)


@every_case
def test_solvers_give_the_brackets_and_labels_of_the_array(sample_small_tables, form, name, nu):
    for n, d in ((ROWS, 40), (ROWS, COLUMNS), (3000, COLUMNS)):
        if d > COLUMNS and name != "l1":
            continue
        table, expected = form(make_data(n, d)), best_at(name, nu, n, d)
        found = dc.low_rank(table, nu, WEIGHTS[name], tol=TOL)
        assert found.status is dc.Status.OPTIMAL
        assert found.gap <= TOL
        assert (found.lower, found.upper) == pytest.approx((expected.lower, expected.upper), abs=1e-8)
        if expected.components is not None and n == ROWS:
            np.testing.assert_array_equal(found.components.found, expected.components.found)
        assert abs(rounding.kmeans_centered(found.factor) @ rounding.kmeans_centered(expected.F)) == n
        assert found.history[-1].rows / n <= 200 or not many_rows(n, d)
    assert isinstance(found.factor, FactorTable)
    published = dc.fista(form(POINTS), nu, WEIGHTS[name], tol=1e-2)
    assert published.gap <= 1e-2
    best = best_at(name, nu)
    assert (published.lower, published.upper) == pytest.approx((best.lower, best.upper), abs=1e-2)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "bsr", "dok"])
def test_every_sparse_format_is_the_same_matrix_and_stays_as_it_was(kind):
    table = getattr(scipy.sparse, f"{kind}_matrix")(POINTS)
    before = table.copy()
    for by_columns in (False, True):
        found, expected = (
            read_points(given, by_columns=by_columns).X for given in (table, scipy.sparse.csr_array(POINTS))
        )
        np.testing.assert_array_equal(found.array(), expected.array())
    assert abs(table - before).sum() == 0.0
    assert table.format == before.format


WHOLE = np.random.default_rng(4).integers(-4, 5, (60, 4))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, np.uint8, bool, ">f8"])
@each_form("array", "Fortran order", *READ)
def test_tables_of_any_numeric_type_are_read_as_their_numbers(form, dtype):
    if form.name in ("csr", "coo") and dtype in (np.float16, ">f8"):
        return  # scipy has no sparse matrices of these types
    table = (np.abs(WHOLE) if dtype in (np.uint8, bool) else WHOLE).astype(dtype)
    rows, expected = as_rows(form(table)).rows, as_data(table.astype(float))
    np.testing.assert_allclose(rows.array(), expected, atol=1e-13)
    np.testing.assert_allclose(rows.take(np.array([3, 50])), expected[[3, 50]], atol=1e-13)


# The factor


@each_form(*READ)
@pytest.mark.parametrize("penalty", [dc.Penalty(), dc.Penalty(lam=0.02)], ids=["none", "l1"])
def test_roundings_of_the_factor_that_is_not_made_are_those_of_the_array(sample_small_tables, form, penalty):
    result = dc.low_rank(form(make_data(400, 4)), 0.6, penalty, tol=1e-4)
    np.testing.assert_allclose(np.sum(result.F**2, axis=1), 1.0, atol=1e-12)
    for function in (*rounding.ROUNDINGS.values(), lambda factor: rounding.goemans_williamson(factor, 0)):
        np.testing.assert_array_equal(function(result.factor), function(result.F))


# Rows


@each_form("array", *READ)
def test_the_warning_of_a_constant_column_points_at_the_line_that_asked(sample_small_tables, form):
    table = form(np.column_stack([POINTS[:, :2], np.full(ROWS, 2.0)]))
    for solver, penalty in product((dc.low_rank, dc.fista), (dc.Penalty(ridge=0.3), dc.Penalty(lam=0.02))):
        with pytest.warns(DegenerateDataWarning, match=r"\[2\]") as said:
            solver(table, penalty=penalty, tol=1e-2)
        assert [warning.filename for warning in said] == [__file__]
    with pytest.warns(DegenerateDataWarning, match="every column"):
        nothing = dc.low_rank(form(np.full((200, 3), 0.1)))
    assert (nothing.lower, nothing.upper) == (1.0, 1.0)


def test_a_warning_reaches_code_that_has_no_module():
    code = "solve(X)"
    with pytest.warns(DegenerateDataWarning, match=r"\[1\]"):
        exec(code, {"solve": partial(dc.low_rank, tol=1e-2), "X": np.column_stack([POINTS[:, 0], np.full(ROWS, 2.0)])})
