"""Every public function and estimator gives for a table in any form what it gives for the array, or says what to pass.

None touches the global state of NumPy's random numbers.
"""

import inspect
import warnings
from functools import cache

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from forms import BY_PARTS, quick_or_slow

import diffrac_cvx as dc
from diffrac_cvx.estimators.affine import choose_seed

ERRORS = (dc.DataError, dc.ParameterError, dc.ResourceError, dc.LostError)
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
    "dask": da.eye(D),
    "zero": np.zeros((D, D)),
    "negative": -np.eye(D),
    "too large": np.eye(7),
    "result": dc.low_rank(X, lam=0.1),
    "result of one block": dc.low_rank(X, lam=0.1, working_set=False),
    "result of sparse columns": dc.low_rank(scipy.sparse.csr_array(X), lam=0.1),
}
PENALTIES = {"none": dc.Penalty(), "ridge": dc.Penalty(ridge=0.1), "l1": dc.Penalty(lam=0.1)}
# What they need beside the table.
NEEDED = {"y": LABELS, "labels": (LABELS > 0.0).astype(int), "lower": 0.0, "alpha": 0.3, "k": 2, "rng": 0}
NEEDED |= {"V": np.eye(D), "Y_or_F": LABELS[:, None], "nus": [0.5, 1.0], "lams": [0.1, 0.3], "alphas": [0.1, 0.5]}
OPTIONS = {"compare": {"methods": ["low_rank"]}}
UNFIT = {"lattice"}  # which refuses data with noise
TABLES_READ = {  # the functions that read a table by parts; the others need it whole
    "certify_clusters", "certify_labels", "certify_v", "find_components", "fista", "lambda_path", "leading_direction",
    "low_rank", "nu_path", "optimal_labels", "structure_test", "duality",
}  # fmt: skip
ESTIMATORS = {
    "DiffracClustering": lambda: dc.DiffracClustering(),
    "sparse": lambda: dc.DiffracClustering(lam=0.1),
    "three clusters": lambda: dc.DiffracClustering(n_clusters=3, random_state=0),
    "three clusters by splits": lambda: dc.DiffracClustering(n_clusters=3, strategy="splits"),
    "Goemans and Williamson": lambda: dc.DiffracClustering(rounding="goemans_williamson", random_state=0),
    "DiffracClusteringCV": lambda: dc.DiffracClusteringCV(ridges=(0.1,), lams=(0.0,), nus=(1.0,), random_state=0),
    "MultiLabelDiffrac": lambda: dc.MultiLabelDiffrac(random_state=0),
}


def functions_of(first):
    """The public functions whose first parameter has this name, by name."""
    found = {}
    for module in (dc, dc.baselines, dc.paths, dc.plotting, dc.rounding, dc.metrics):
        names = getattr(module, "__all__", None) or [n for n, f in vars(module).items() if is_own(f, module)]
        for name in names:
            function = getattr(module, name)
            if inspect.isfunction(function) and next(iter(inspect.signature(function).parameters), "") == first:
                found[name] = function
    return found


def is_own(function, module):
    return getattr(function, "__module__", "") == module.__name__ and not function.__name__.startswith("_")


FUNCTIONS, ROUNDINGS = functions_of("X"), functions_of("F")
each_function = pytest.mark.parametrize("name", FUNCTIONS)
each_estimator = pytest.mark.parametrize("name", ESTIMATORS)
every_matrix = quick_or_slow(
    "form, matrix, penalty",
    [
        (form, matrix, penalty)
        for form in ("array", "list", "single precision", "data frame", "memory map", *BY_PARTS)
        for matrix in MATRICES
        for penalty in PENALTIES
    ],
    [(form, matrix, "l1") for form in ("array", "csc", "dask") for matrix in MATRICES],
)


def call(name, table):
    function, positional, named = FUNCTIONS[name], [], dict(OPTIONS.get(name, {}))
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.default is parameter.empty and parameter.kind is parameter.KEYWORD_ONLY:
            named[parameter.name] = NEEDED[parameter.name]
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
            positional.append(NEEDED[parameter.name])
    return function(table, *positional, **named)


def returns_or_says(function, *arguments, **options):
    """What a function returns, or None where it raises an error of the package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*arguments, **options)
        except ERRORS:
            return None


def numbers(answer):
    """The numbers of an answer, as arrays, but for those of a clock."""
    if isinstance(answer, dc.Relaxation):
        answer = dc.solve(answer, "CLARABEL")
    if isinstance(answer, dc.Result):
        return [answer.lower, answer.upper, answer.F, *([] if answer.G is None else [answer.V])]
    if isinstance(answer, dc.OptimalLabels):
        return [answer.labels, *answer.bracket]
    if hasattr(answer, "rows"):
        return [row["value"] for row in answer.rows]
    if isinstance(answer, list | tuple):
        return [number for part in answer for number in numbers(part)]
    if hasattr(answer, "__dataclass_fields__"):
        parts = [
            value for name, value in vars(answer).items() if name not in ("name", "null", "seconds", "reservations")
        ]
        return [number for part in parts for number in numbers(part)]
    return [] if answer is None else [np.asarray(answer, dtype=float)]


@cache
def of_array(name):
    answer = returns_or_says(call, name, X)
    return answer, numbers(answer)


@pytest.fixture(autouse=True)
def _global_state_stays():
    """NumPy's global state of random numbers after a test is that before."""
    before = np.random.get_state()  # noqa: NPY002  # it is what is looked at
    yield
    for one, other in zip(np.random.get_state(), before, strict=True):  # noqa: NPY002
        np.testing.assert_array_equal(one, other)


def test_no_public_function_of_a_table_is_forgotten():
    assert {"low_rank", "fista", "certify_v", "find_components", "nu_path", "compare", "lattice"} <= set(FUNCTIONS)
    assert len(FUNCTIONS) > 20
    assert set(FUNCTIONS) >= TABLES_READ


@pytest.mark.filterwarnings("ignore")
@each_function
def test_a_function_gives_for_a_form_what_it_gives_for_the_array_or_says_what_to_pass(form, name):
    expected, numbers_expected = of_array(name)
    if form.name in BY_PARTS and name not in TABLES_READ:
        with pytest.raises(dc.DataError, match=r"X\.compute\(\)" if "dask" in form.name else r"X\.toarray\(\)"):
            call(name, form(X))
        return
    found = returns_or_says(call, name, form(X))
    assert (found is None) == (name in UNFIT)
    if form.name not in BY_PARTS:
        for one, other in zip(numbers(found), numbers_expected, strict=True):
            np.testing.assert_array_equal(one, other)
    elif hasattr(expected, "upper"):
        assert np.all(np.less_equal(found.lower, expected.upper))
        assert np.all(np.less_equal(expected.lower, found.upper))
    else:
        for one, other in zip(numbers(found), numbers_expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9)


@every_matrix
def test_a_matrix_of_any_form_is_certified_or_refused_in_words(form, matrix, penalty):
    table, V, known = form(X), MATRICES[matrix], PENALTIES[penalty]
    for nu in (1.0, 0.5):
        bounds = returns_or_says(dc.certify_v, table, V, nu, known)
        groups = returns_or_says(dc.find_components, table, V, nu, known)
        if matrix in ("array", "sparse array", "result"):
            expected = dc.certify_v(X, V, nu, known)
            assert bounds.upper == pytest.approx(expected.upper, abs=1e-9)
            assert bounds.lower <= dc.low_rank(X, nu, known).upper
            np.testing.assert_array_equal(groups, dc.find_components(X, V, nu, known))


@every_matrix
def test_a_solver_starts_from_a_matrix_of_any_form_or_refuses_it_in_words(form, matrix, penalty):
    table, start, known = form(X), MATRICES[matrix], PENALTIES[penalty]
    expected = dc.low_rank(X, 1.0, known)
    for solver in (dc.low_rank, dc.fista):
        found = returns_or_says(solver, table, 1.0, known, start=start, tol=0.05)
        if found is not None:
            assert found.lower <= expected.upper
            assert expected.lower <= found.upper
        assert found is not None or matrix not in ("array", "result", "zero", "negative")


@each_estimator
def test_an_estimator_finds_in_a_form_what_it_finds_in_the_array_or_says_what_to_pass(form, name):
    if form.name == "matrix":
        pytest.skip("scikit-learn refuses one")
    table, (expected, model) = form(X), [ESTIMATORS[name]() for _ in range(2)]
    assert returns_or_says(expected.fit, X) is not None
    if returns_or_says(model.fit, table) is None:
        assert form.name in BY_PARTS
        assert name in ("DiffracClusteringCV", "MultiLabelDiffrac")
        return
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.predict(table), expected.predict(X))
    if form.name not in BY_PARTS and name != "DiffracClusteringCV":
        assert (model.lower_bound_, model.upper_bound_) == (expected.lower_bound_, expected.upper_bound_)


# NumPy's global state


def test_an_estimator_without_a_seed_depends_on_the_global_state():
    before = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002  # this is what users do
    first = choose_seed(None)
    assert choose_seed(None) == first
    np.random.seed(1)  # noqa: NPY002
    assert choose_seed(None) != first
    np.random.set_state(before)  # noqa: NPY002


@each_estimator
def test_an_estimator_without_a_seed_leaves_the_global_state(name):
    model = ESTIMATORS[name]()
    returns_or_says(model.set_params(random_state=None).fit, X)


@pytest.mark.parametrize("name", ROUNDINGS)
def test_a_rounding_leaves_the_global_state(name):
    function = ROUNDINGS[name]
    options = {key: NEEDED[key] for key in inspect.signature(function).parameters if key in ("k", "rng", "y")}
    returns_or_says(function, np.random.default_rng(0).standard_normal((N, 4)), **options)
