"""Sample weights: integer weights act as repeated rows, weight 0 as no row, and only proportions matter."""

from functools import partial

import numpy as np
import pytest
from instances import assert_overlap, sparse_instance
from oracles import pair_penalty_value
from posed import direction_problem

import diffrac_cvx as dc
from diffrac_cvx.certificates.block_problem import block_problem
from diffrac_cvx.certificates.bound_search import row_weights
from diffrac_cvx.certificates.direction_bounds import Blocks
from diffrac_cvx.points.checks import as_weights
from diffrac_cvx.points.reading import read_points

pytestmark = pytest.mark.filterwarnings(
    "ignore::diffrac_cvx.DegenerateDataWarning", "ignore::sklearn.exceptions.ConvergenceWarning"
)
PENALTIES = {
    "none": dc.Penalty(),
    "ridge": dc.Penalty(ridge=0.2),
    "l1": dc.Penalty(lam=0.05),
    "both": dc.Penalty(lam=0.2, ridge=0.1),
}


def drawn(n=20, d=4, seed=0, whole=True):
    """Return two overlapping clusters, and weights 0 to 4 or fractions of these."""
    rng = np.random.default_rng([2017, seed])
    X = rng.standard_normal((n, d)) + 1.5 * np.sign(rng.standard_normal(n))[:, None] * np.eye(d)[0]
    w = rng.permutation(np.arange(n) % 5).astype(float)
    return X, w if whole else w * rng.uniform(0.5, 1.5, n)


def repeated(X, w):
    return np.repeat(X, w.astype(int), axis=0)


# The solvers


@pytest.mark.parametrize(("nu", "penalty"), [(1.0, "none"), (0.6, "ridge"), (1.0, "l1"), (0.6, "both")])
def test_the_fast_path_and_the_reference_find_the_same_weighted_optimum(nu, penalty):
    X, w = drawn(14, 3, whole=False)
    reference = dc.solve(dc.v_space(X, nu, PENALTIES[penalty], sample_weight=w), "CLARABEL", tol=1e-6)
    fast = dc.low_rank(X, nu, PENALTIES[penalty], sample_weight=w, tol=1e-6)
    assert max(reference.gap, fast.gap) <= 1e-6
    assert_overlap(reference, fast)
    a, c = PENALTIES[penalty].weights(3)
    for result in (reference, fast):
        value = pair_penalty_value(result.V, X, nu, a**2, [[0], [1], [2]], c**2, point_weights=w / w.sum())
        assert value == pytest.approx(result.value, abs=1e-9)
        assert result.F.shape[0] == len(X)
    without = dc.low_rank(X, nu, PENALTIES[penalty], tol=1e-6)
    assert without.lower > fast.upper or without.upper < fast.lower


@pytest.mark.parametrize("seed", range(8))
def test_whole_weights_give_what_repeated_rows_give_on_problems_of_every_kind(seed):
    X, nu, penalty = sparse_instance(seed)
    known, w = {"nu": nu, "penalty": penalty}, np.random.default_rng(seed).integers(0, 4, len(X)).astype(float)
    rows, clusters = repeated(X, w), np.arange(len(X)) % 3
    found = dc.low_rank(X, **known, sample_weight=w, tol=1e-6, max_iter=2000)
    other = dc.low_rank(rows, **known, tol=1e-6, max_iter=2000)
    np.testing.assert_allclose([found.value, found.lower], [other.value, other.lower], rtol=0, atol=1e-6)
    assert_overlap(found, other)
    any_V = np.diag(np.arange(1.0, 1 + len(found.V))) + 0.1
    for V, tol in ((found.V, 2e-6), (any_V / np.sum(any_V**2), 1e-5)):
        weighted = dc.certify_v(X, V, **known, sample_weight=w)
        np.testing.assert_allclose(weighted, dc.certify_v(rows, V, **known), rtol=0, atol=tol)
        assert_overlap(weighted, other)
    y = dc.rounding.kmeans_centered(other.F)
    given = np.ones(len(X))
    given[w > 0] = y[np.cumsum(w).astype(int)[w > 0] - 1]
    pairs = [
        (dc.certify_labels(X, given, other, **known, sample_weight=w), dc.certify_labels(rows, y, other, **known)),
        (
            dc.certify_clusters(X, clusters, found, **known, sample_weight=w),
            dc.certify_clusters(rows, repeated(clusters, w), found, **known),
        ),
    ]
    for certificate, same in pairs:
        assert certificate.objective == pytest.approx(same.objective, abs=1e-9)
    np.testing.assert_allclose(pairs[0][0].v, pairs[0][1].v, atol=1e-6)
    for kind in ("found", "certified"):
        parts = [getattr(one.components, kind, None) for one in (found, other)]
        np.testing.assert_array_equal(*parts)
    for multiple in (0.02, 0.1, 0.3, 1.0):
        known = {"nu": nu, "penalty": dc.Penalty(penalty.a * multiple**0.5, penalty.c * multiple**0.5)}
        components = dc.find_components(X, found.V, **known, sample_weight=w)
        np.testing.assert_array_equal(components, dc.find_components(rows, found.V, **known))


@pytest.mark.parametrize("nu", [1.0, 0.6])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_fista_takes_the_steps_of_repeated_rows_so_that_its_loose_solution_is_theirs(penalty, nu):
    X, w = drawn(40, 5)
    rows = repeated(X, w)
    found = dc.fista(X, nu, PENALTIES[penalty], sample_weight=w, tol=1e-2)
    other = dc.fista(rows, nu, PENALTIES[penalty], tol=1e-2)
    assert found.n_iter == other.n_iter
    np.testing.assert_allclose([found.value, found.lower], [other.value, other.lower], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.V, other.V, rtol=0, atol=1e-6 * np.abs(other.V).max())


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_row_of_weight_0_is_left_out_but_has_labels(penalty):
    X, w = drawn(whole=False)
    X[np.argmin(w)] = 50.0
    mask = w > 0
    found = dc.low_rank(X, 0.7, PENALTIES[penalty], sample_weight=w)
    other = dc.low_rank(X[mask], 0.7, PENALTIES[penalty], sample_weight=w[mask])
    assert (found.value, found.lower) == (other.value, other.lower)
    assert found.F.shape[0] == len(X)
    np.testing.assert_allclose(found.F[mask] @ found.F[mask].T, other.F @ other.F.T, atol=1e-9)
    np.testing.assert_allclose(np.sum(found.F**2, axis=1), 1.0)
    # Without an offset, a row of weight 0 opposite to another has the opposite row of F.
    center = (w / w.sum()) @ X
    opposite = np.vstack([X, 2 * center - X[mask][0]])
    F = dc.low_rank(opposite, penalty=PENALTIES[penalty], sample_weight=np.append(w, 0.0)).F
    np.testing.assert_allclose(F[-1], -F[np.flatnonzero(mask)[0]], atol=1e-9)


@pytest.mark.parametrize("multiple", [7.3, 1e-300, 1e300])
def test_only_the_proportions_of_the_weights_count(multiple):
    X, w = drawn()
    w /= 10.0
    found = dc.low_rank(X, 0.7, lam=0.05, sample_weight=w, tol=1e-6)
    other = dc.low_rank(X, 0.7, lam=0.05, sample_weight=w * multiple, tol=1e-6)
    np.testing.assert_allclose([found.value, found.lower], [other.value, other.lower], rtol=0, atol=1e-9)
    for shift in (2.0**-900, 2.0**900):
        np.testing.assert_array_equal(as_weights(w, len(w)).normalized, as_weights(w * shift, len(w)).normalized)
    integers = (10.0 * w).astype(np.int64)
    np.testing.assert_array_equal(as_weights(integers, len(w)).normalized, as_weights(10.0 * w, len(w)).normalized)
    assert as_weights(np.full(9, 3), 9) is None


def test_a_small_weight_is_no_small_quadratic_form(monkeypatch):
    X, w = drawn(30, 3)
    points = read_points(X, np.where(w > 0, 1.0, 1e-9))
    problem = direction_problem(points.X, 0.5, dc.Penalty(lam=0.1))
    q = problem.rescale(np.eye(4)).q
    assert q.min() < 1e-16 * q.mean()
    u, mean = row_weights(problem, problem.inverse_sqrt(q))
    assert points.X.weights @ (1 / (u * problem.sums.counts)) == pytest.approx(mean)
    split = block_problem(problem)
    np.testing.assert_allclose(Blocks(split, np.arange(3)).best_dual(q, [])[1], u)  # no floor under q


@pytest.mark.parametrize(("nu", "penalty"), [(0.0, "ridge"), (0.4, "none")])
def test_answers_in_closed_form_have_a_row_for_every_point(nu, penalty):
    X, w = drawn()
    X = X if nu == 0.0 else np.where(w[:, None] > 0, 1.0, X)  # varies among points of weight 0 only
    for result in (
        dc.low_rank(X, nu, PENALTIES[penalty], sample_weight=w),
        dc.solve(dc.v_space(X, nu, PENALTIES[penalty], sample_weight=w)),
    ):
        assert result.value == pytest.approx(nu)
        np.testing.assert_array_equal(result.F, np.ones((len(X), 1)))


# Roundings


@pytest.mark.parametrize("seed", range(6))
def test_roundings_of_weighted_rows_are_those_of_repeated_rows(seed):
    X, w = drawn(25, 6, seed)
    X, w = X[w > 0] + 0.3, w[w > 0]
    F, p = X / np.linalg.norm(X, axis=1, keepdims=True), w / w.sum()
    k_means = partial(dc.rounding.kmeans_rows, n_clusters=4, n_init=2, rng=seed)
    by_chance = partial(dc.rounding.goemans_williamson, rng=0)
    for function in (*dc.rounding.ROUNDINGS.values(), by_chance, k_means):
        np.testing.assert_array_equal(repeated(function(F, sample_weight=p), w), function(repeated(F, w)))


# The estimators


OPTIONS = [
    {"nu": 0.7, "lam": 0.05},
    {"standardize": False},
    {"solver": "fista", "tol": 1e-2},
    {"n_clusters": 3, "random_state": 0},
    {"n_clusters": 1},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_estimator_finds_the_same_with_whole_weights_as_with_repeated_rows(options):
    X, w = drawn(40, 4, seed=2)
    model = dc.DiffracClustering(**options).fit(X, sample_weight=w)
    other = dc.DiffracClustering(**options).fit(repeated(X, w))
    searched = ("label_gap_", "lower_bound_") if options.get("n_clusters") == 3 else ()  # bounds of a search
    for name in ("coef_", "intercept_", "scaled_coef_", "label_gap_", "lower_bound_", "upper_bound_"):
        atol = 1e-4 if name in searched else 1e-8
        np.testing.assert_allclose(getattr(model, name), getattr(other, name), rtol=1e-6, atol=atol, err_msg=name)
    np.testing.assert_array_equal(repeated(model.labels_, w), other.labels_)
    np.testing.assert_array_equal(model.labels_, other.predict(X))
    assert model.result_.F.shape[0] == len(X)
    np.testing.assert_array_equal(dc.DiffracClustering(**options).fit_predict(X, sample_weight=w), model.labels_)


def test_the_choice_of_parameters_takes_weights():
    X, w = drawn(30, 3, seed=3)
    settings = {"lams": (0.0, 0.1), "ridges": (0.3,), "n_resamples": 2, "random_state": 0}
    given = [(X, w), (repeated(X, w), None)]
    model, rows = (dc.DiffracClusteringCV(**settings).fit(table, sample_weight=v) for table, v in given)
    table = model.cv_results_
    for name in ("cost", "coef", "lower_bound", "upper_bound"):
        np.testing.assert_allclose(table[name], rows.cv_results_[name], atol=1e-4, err_msg=name)
    np.testing.assert_array_equal(repeated(table["labels"].T, w).T, rows.cv_results_["labels"])
    alone = dc.DiffracClustering(**model.best_params_).fit(X, sample_weight=w)
    np.testing.assert_allclose(model.coef_, alone.coef_)
