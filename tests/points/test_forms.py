"""Every public function takes every form of a table, or says in words what to pass; none touches the global state."""

import inspect
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import diffrac_cvx as dc

ERRORS = (dc.DataError, dc.ParameterError, dc.ResourceError, dc.LostError)
N, D = 24, 3
X = np.random.default_rng(0).standard_normal((N, D))
X[: N // 2, 0] += 3.0
X[:, 1] *= X[:, 1] > 0.0
X = X.astype(np.float32).astype(np.float64)  # the same numbers in single precision
LABELS = np.where(np.arange(N) < N // 2, 1.0, -1.0)
FORMS = {
    "array": lambda _: X,
    "list": lambda _: X.tolist(),
    "single precision": lambda _: X.astype(np.float32),
    "data frame": lambda _: pd.DataFrame(X, columns=["a", "b", "c"]),
    "memory map": lambda folder: as_map(folder),
    "csr array": lambda _: scipy.sparse.csr_array(X),
    "csc matrix": lambda _: scipy.sparse.csc_matrix(X),
    "coo array": lambda _: scipy.sparse.coo_array(X),
    "dask": lambda _: da.from_array(X, chunks=(8, D)),
    "sparse dask": lambda _: da.from_array(X, chunks=(8, D)).map_blocks(scipy.sparse.csr_array),
}
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
ESTIMATORS = {
    "DiffracClustering": lambda: dc.DiffracClustering(),
    "sparse": lambda: dc.DiffracClustering(lam=0.1),
    "three clusters": lambda: dc.DiffracClustering(n_clusters=3),
    "three clusters by splits": lambda: dc.DiffracClustering(n_clusters=3, strategy="splits"),
    "Goemans and Williamson": lambda: dc.DiffracClustering(rounding="goemans_williamson"),
    "DiffracClusteringCV": lambda: dc.DiffracClusteringCV(ridges=(0.1,), lams=(0.0,), nus=(1.0,)),
    "MultiLabelDiffrac": lambda: dc.MultiLabelDiffrac(),
}


def as_map(folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


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
QUICK = ("array", "csc matrix", "dask")  # one form each of what is in memory, sparse and read by parts
every_penalty = pytest.mark.parametrize(
    "penalty", [name if name == "l1" else pytest.param(name, marks=pytest.mark.slow) for name in PENALTIES]
)
every_form = pytest.mark.parametrize(
    "form", [form if form in QUICK else pytest.param(form, marks=pytest.mark.slow) for form in FORMS]
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


def test_no_public_function_of_a_table_is_forgotten():
    assert {"low_rank", "fista", "certify_v", "find_components", "nu_path", "compare", "lattice"} <= set(FUNCTIONS)
    assert len(FUNCTIONS) > 20


@every_form
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_a_form_or_says_what_to_pass(tmp_path, name, form):
    found = returns_or_says(call, name, FORMS[form](tmp_path))
    assert found is not None or name in UNFIT or form not in ("array", "single precision", "memory map")


@every_form
@pytest.mark.parametrize("matrix", MATRICES)
@every_penalty
def test_a_matrix_of_any_form_is_certified_or_refused_in_words(tmp_path, matrix, form, penalty):
    table, V, known = FORMS[form](tmp_path), MATRICES[matrix], PENALTIES[penalty]
    for nu in (1.0, 0.5):
        bounds = returns_or_says(dc.certify_v, table, V, nu, known)
        groups = returns_or_says(dc.find_components, table, V, nu, known)
        if matrix in ("array", "sparse array", "result"):
            expected = dc.certify_v(X, V, nu, known)
            assert bounds.upper == pytest.approx(expected.upper, abs=1e-9)
            assert bounds.lower <= dc.low_rank(X, nu, known).upper
            np.testing.assert_array_equal(groups, dc.find_components(X, V, nu, known))


@every_form
@pytest.mark.parametrize("matrix", MATRICES)
@every_penalty
def test_a_solver_starts_from_a_matrix_of_any_form_or_refuses_it_in_words(tmp_path, matrix, form, penalty):
    table, start, known = FORMS[form](tmp_path), MATRICES[matrix], PENALTIES[penalty]
    expected = dc.low_rank(X, 1.0, known)
    for solver in (dc.low_rank, dc.fista):
        found = returns_or_says(solver, table, 1.0, known, start=start, tol=0.05)
        if found is not None:
            assert found.lower <= expected.upper
            assert expected.lower <= found.upper
        assert found is not None or matrix not in ("array", "result", "zero", "negative")


@every_form
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_takes_a_form_or_says_what_to_pass(tmp_path, name, form):
    table, model = FORMS[form](tmp_path), ESTIMATORS[name]()
    fitted = returns_or_says(model.fit, table)
    assert fitted is not None or form not in ("array", "list", "data frame", "csr array")
    if fitted is not None:
        assert returns_or_says(model.predict, table) is not None


# NumPy's global state


def global_state():
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002  # it is what is looked at
    return kind, keys.tolist(), rest


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("form", ["array", "csr array"])
def test_a_function_leaves_the_global_state_of_random_numbers(tmp_path, name, form):
    before = global_state()
    returns_or_says(call, name, FORMS[form](tmp_path))
    assert global_state() == before


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_leaves_the_global_state_of_random_numbers(name):
    before = global_state()
    returns_or_says(ESTIMATORS[name]().fit, X)
    assert global_state() == before


def test_an_estimator_without_a_seed_depends_on_the_global_state():
    from diffrac_cvx.estimators.affine import choose_seed

    np.random.seed(0)  # noqa: NPY002  # this is what users do
    first = choose_seed(None)
    assert choose_seed(None) == first
    np.random.seed(1)  # noqa: NPY002
    assert choose_seed(None) != first


@pytest.mark.parametrize("name", ROUNDINGS)
def test_a_rounding_leaves_the_global_state_of_random_numbers(name):
    before, function = global_state(), ROUNDINGS[name]
    F = np.random.default_rng(0).standard_normal((N, 4))
    options = {key: NEEDED[key] for key in inspect.signature(function).parameters if key in ("k", "rng", "y")}
    returns_or_says(function, F, **options)
    assert global_state() == before
