"""Several labels of weighted points: weight 2 is a repeated row, weight 0 none, and a judge agrees with the bounds."""

import numpy as np
import pytest
from instances import assert_overlap
from oracles import solve_pair_penalty

import diffrac_cvx as dc

pytestmark = pytest.mark.filterwarnings(
    "ignore::diffrac_cvx.DegenerateDataWarning", "ignore::sklearn.exceptions.ConvergenceWarning"
)
ROUNDED = 1e-9  # of the bounds, and of the judge's own, in double precision
SETTINGS = [
    {},
    {"lam": 0.05},
    {"ridge": 0.2, "nu": 0.5},
    {"solver": "low_rank"},
    {"n_labels": 3},
    {"standardize": False},
]


def drawn(n=60, d=6, k=2, seed=0):
    """Points with k labels and noise columns, mixed and in other units; weights 0 to 3."""
    rng = np.random.default_rng([2017, seed])
    X = np.hstack([rng.choice([-1.0, 1.0], (n, k)), rng.standard_normal((n, d - k))]) @ rng.standard_normal((d, d))
    return X + 0.05 * rng.standard_normal((n, d)) + 3.0, rng.integers(0, 4, n)


def fitted(X, w=None, **parameters):
    return dc.MultiLabelDiffrac(**{"n_labels": 2, "random_state": 0} | parameters).fit(X, sample_weight=w)


def assert_same_functions(model, other):
    for name in ("coef_", "intercept_", "scaled_coef_", "weights_"):
        found, expected = getattr(model, name), getattr(other, name)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max(), err_msg=name)


@pytest.mark.parametrize("parameters", SETTINGS, ids=str)
def test_whole_weights_give_the_labels_functions_and_bounds_of_repeated_rows_in_any_order(parameters):
    X, w = drawn(k=parameters.get("n_labels", 2))
    order = np.random.default_rng(1).permutation(len(X))
    model, other = fitted(X[order], w[order], **parameters), fitted(np.repeat(X, w, axis=0), **parameters)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    np.testing.assert_array_equal(model.labels_, model.predict(X[order]))
    assert_same_functions(model, other)
    assert_overlap(model.result_.bracket, other.result_.bracket)
    np.testing.assert_allclose(model.result_.bracket, other.result_.bracket, rtol=0, atol=1e-6)
    assert model.objective_ == pytest.approx(other.objective_, abs=1e-6)
    assert model.score(X, sample_weight=w) == pytest.approx(other.score(np.repeat(X, w, axis=0)), abs=1e-6)
    unweighted = fitted(X, **parameters)
    assert abs(unweighted.objective_ - other.objective_) > 1e-4


@pytest.mark.parametrize("parameters", SETTINGS, ids=str)
def test_a_point_of_weight_0_only_receives_labels(parameters):
    X, w = drawn(seed=2)
    X[np.argmin(w)], mask = 50.0, w > 0
    model, other = fitted(X, w, **parameters), fitted(X[mask], w[mask], **parameters)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert model.result_.bracket == other.result_.bracket
    np.testing.assert_array_equal(model.labels_, other.predict(X))
    assert model.result_.F.shape[0] == len(X)
    np.testing.assert_allclose(np.sum(model.result_.F**2, axis=1), 1.0)
    labels = dc.MultiLabelDiffrac(n_labels=2, random_state=0).set_params(**parameters).fit_predict(X, sample_weight=w)
    np.testing.assert_array_equal(labels, model.labels_)


@pytest.mark.parametrize("multiple", [7.3, 1e-300, 1e300])
def test_only_the_proportions_of_the_weights_count(multiple):
    X, w = drawn()
    model, other = fitted(X, w), fitted(X, multiple * w)
    np.testing.assert_array_equal(model.labels_, other.labels_)
    assert_same_functions(model, other)
    np.testing.assert_allclose(model.result_.bracket, other.result_.bracket, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(fitted(X).coef_, fitted(X, np.full(len(X), multiple)).coef_)


def hostile(kind, seed=0):
    """A table with weights that are hard for the bounds."""
    rng = np.random.default_rng([2017, 7, seed])
    n, d = (6, 9) if kind == "wide" else (14, 4)
    X, w = rng.standard_normal((n, d)) + 1.5 * rng.choice([-1.0, 1.0], (n, 1)), rng.uniform(0.5, 3.0, n)
    if kind == "units":
        X *= 10.0 ** np.linspace(-6, 6, d)
    if kind == "collinear":
        X[:, 1] = X[:, 0] + 1e-7 * X[:, 1]
    if kind == "constant":
        X[:, 2] = 3.0
    if kind == "constant where it counts":
        X[:, 2], w[0] = np.where(np.arange(n) == 0, 5.0, 3.0), 0.0
    if kind == "weights":
        w = 10.0 ** rng.uniform(-12.0, 12.0, n)
    return X, w


HOSTILE = ["plain", "units", "collinear", "constant", "constant where it counts", "wide", "weights"]


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("parameters", [{"ridge": 0.3}, {"ridge": 0.1, "lam": 0.05, "nu": 0.6}], ids=["ridge", "both"])
@pytest.mark.parametrize("solver", ["fista", "low_rank", "fista published"])
def test_the_bounds_are_those_of_the_weighted_problem_by_an_independent_judge(kind, parameters, solver):
    X, w = hostile(kind)
    p = w / w.sum()
    centered = X - p @ X
    size = np.sqrt(p @ centered**2)
    varies = size > 1e-9 * np.abs(X).max(axis=0)
    Z, d = centered[:, varies] / size[varies], np.count_nonzero(varies)
    ridge, lam, nu = parameters["ridge"], parameters.get("lam", 0.0), parameters.get("nu", 1.0)
    judged = solve_pair_penalty(Z, nu, ridge, [[j] for j in range(d)], np.full(d, lam), point_weights=p)
    model = fitted(X, w, solver=solver, max_iter=2000, tol=1e-3, **parameters)
    assert judged.value - judged.lower <= 1e-6
    assert model.lower_bound_ <= judged.value + ROUNDED
    assert model.upper_bound_ >= judged.lower - ROUNDED
    if solver == "fista":
        assert model.upper_bound_ - model.lower_bound_ <= 1e-3
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    if kind == "plain" and solver == "fista":
        unweighted = fitted(X, tol=1e-3, **parameters)
        assert unweighted.upper_bound_ < judged.lower or unweighted.lower_bound_ > judged.value


FITS_ONLY = {  # what a score accepts
    "sample_weight is zero except at 2 points. At least 3 need a positive weight": 1.0 * (np.arange(20) < 2),
    "sample_weight is below": np.where(np.arange(20) == 3, 1e-200, 1.0),
}


@pytest.mark.parametrize(
    ("w", "match"),
    [
        (np.where(np.arange(20) == 3, -1.0, 1.0), "sample_weight is -1 at entry 3"),
        (np.where(np.arange(20) == 3, np.nan, 1.0), "sample_weight"),
        (np.where(np.arange(20) == 3, np.inf, 1.0), "sample_weight"),
        (np.ones(19), r"sample_weight has shape \(19,\)"),
        (np.ones((20, 1)), "sample_weight has shape"),
        (np.zeros(20), "sample_weight is zero except at 0 points"),
        (["a"] * 20, "sample_weight"),
        *((w, match) for match, w in FITS_ONLY.items()),
    ],
)
def test_weights_that_are_none_raise_an_error_that_names_them(w, match):
    X = np.random.default_rng(0).standard_normal((20, 4))
    with pytest.raises(dc.DataError, match=match):
        fitted(X, w, n_labels=3)
    if match not in FITS_ONLY:
        with pytest.raises(dc.DataError, match=match):
            fitted(X, n_labels=3).score(X, sample_weight=w)
