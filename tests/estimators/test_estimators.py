"""The estimators: scikit-learn's own checks, comparison with the functions they wrap, and typical use."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from instances import signs
from sklearn.base import clone
from sklearn.datasets import make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import diffrac_cvx as dc
from diffrac_cvx.estimators import clustering
from diffrac_cvx.points.linear_algebra import standardize_columns

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    Y = rng.choice([-1.0, 1.0], size=(400, 3))
    return np.hstack([Y, rng.standard_normal((400, 4))]) @ rng.standard_normal((7, 7)), Y


@pytest.mark.parametrize("solver", ["low_rank", "fista"])
def test_the_planted_labels_are_found_by_every_solver(planted, solver):
    model = dc.DiffracClustering(solver=solver, tol=1e-3).fit(planted.X)
    assert dc.metrics.clustering_error(planted.y, signs(model)) == 0.0
    assert model.upper_bound_ - model.lower_bound_ <= 1e-3


@pytest.mark.parametrize(
    "penalty", [{}, {"ridge": 0.01}, {"lam": 0.01}, {"nu": 0.5}, {"standardize": False, "lam": 0.09}]
)
def test_predict_on_the_training_data_gives_the_labels(penalty):
    X = np.random.default_rng(5).standard_normal((60, 4)) @ np.diag([1.0, 20.0, 0.1, 3.0]) + 7.0
    model = dc.DiffracClustering(**penalty).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.fit_predict(X), model.labels_)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_ + model.intercept_)
    np.testing.assert_allclose(model.transform(X)[:, 0], X @ model.coef_)
    assert np.abs(model.decision_function(X)).min() > 0


@pytest.mark.parametrize("linked", [False, True])
def test_the_bracket_and_the_label_gap_are_those_of_the_functions(planted, linked):
    X, y, pairs = standardize_columns(planted.X), planted.y, np.arange(40).reshape(20, 2)
    alike, known = y[pairs[:, 0]] == y[pairs[:, 1]], np.where(np.arange(120) < 5, y, np.nan)
    given = {"constraints": dc.Constraints(pairs[alike], pairs[~alike], known) if linked else None}
    penalty = dc.Penalty(0.05, 0.1)
    model = dc.DiffracClustering(nu=0.7, lam=penalty.lam, ridge=penalty.ridge).fit(planted.X, **given)
    result = dc.low_rank(X, 0.7, penalty, tol=1e-4, **given)
    assert (model.lower_bound_, model.upper_bound_) == pytest.approx((result.lower, result.upper), abs=1e-7)
    proof = dc.certify_labels(X, signs(model), result, nu=0.7, penalty=penalty)
    assert model.label_gap_ == pytest.approx(proof.gap, abs=1e-7)
    oracle = dc.solve(dc.v_space(X, 0.7, penalty, **given), "CLARABEL").value
    assert model.lower_bound_ - 1e-6 <= oracle <= model.upper_bound_ + 1e-6


def test_labels_depend_neither_on_an_affine_map_without_a_penalty_nor_on_the_order_of_the_rows(planted):
    M, order = np.random.default_rng(1).standard_normal((6, 6)), np.random.default_rng(1).permutation(120)
    first, mapped, other = (
        dc.DiffracClustering(ridge=0.0).fit(X) for X in (planted.X, planted.X @ M + 3.0, planted.X[order])
    )
    assert dc.metrics.clustering_error(signs(first), signs(mapped)) == 0.0
    np.testing.assert_array_equal(first.labels_[order], other.labels_)


def test_the_l1_penalty_selects_features_and_the_largest_coefficient_is_positive():
    planted = dc.datasets.make_planted(200, 12, noise=0.1, sparsity=2, rng=0)
    model = dc.DiffracClustering(lam=0.09).fit(planted.X)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(model.coef_))
    assert len(model.support_) < 12
    assert model.coef_[np.argmax(np.abs(model.coef_))] > 0
    none = dc.DiffracClustering(lam=1e4).fit(planted.X)
    assert len(none.support_) == 0 or len(set(none.labels_)) == 2
    np.testing.assert_array_equal(none.predict(planted.X), none.labels_)


@pytest.mark.parametrize("name", ["heart", "breast_cancer", "sonar", "noise", "weights", "links", "lam", "signs"])
def test_the_labels_cost_no_more_than_the_rounding_and_no_alternation_lowers_their_cost(name):
    rng = np.random.default_rng(2)
    X = dc.datasets.load(name)[0] if name in dc.datasets.names() else rng.standard_normal((80, 5))
    penalty, problem = {"ridge": 0.3}, {}
    penalty |= {"lam": {"lam": 0.05}, "signs": {"nonnegative": [0, 1]}}.get(name, {})
    if name == "weights":
        problem = {"sample_weight": rng.integers(1, 4, 80)}
    if name == "links":
        problem = {"constraints": dc.Constraints(must_link=[(0, 5), (3, 9)], cannot_link=[(1, 2), (10, 30)])}
    model = dc.DiffracClustering(**penalty).fit(X, **problem)
    w = np.asarray(problem.get("sample_weight", np.ones(len(X))))
    mean = w @ X / w.sum()
    Z = (X - mean) / np.sqrt(w @ (X - mean) ** 2 / w.sum())
    known = {"penalty": dc.Penalty(**penalty), **problem}
    F = model.result_.F
    rounded = dc.rounding.kmeans_centered(F, problem.get("sample_weight"), problem.get("constraints"))
    found = dc.certify_labels(Z, signs(model), 0.0, **known)
    assert found.objective <= dc.certify_labels(Z, rounded, 0.0, **known).objective + 1e-9
    assert model.lower_bound_ + model.label_gap_ == pytest.approx(found.objective, abs=1e-6)
    if name != "links":  # a fixed point: the signs of the scores of their direction
        np.testing.assert_array_equal(np.where(Z @ found.v > 0.0, 1.0, -1.0), signs(model))
        np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_labels_cost_no_more_than_those_of_two_means_along_their_direction():
    X = np.random.default_rng(27).standard_normal((30, 6))  # where those cost less
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    model, ridge = dc.DiffracClustering().fit(X), dc.Penalty(ridge=0.3)
    rounded = dc.certify_labels(Z, dc.rounding.kmeans_centered(model.result_.F), 0.0, penalty=ridge)
    along = dc.certify_labels(Z, dc.rounding.kmeans_1d(Z @ rounded.v), 0.0, penalty=ridge)
    assert model.lower_bound_ + model.label_gap_ <= along.objective + 1e-9
    assert along.objective < rounded.objective


def test_labels_do_not_collapse_where_one_cluster_costs_less():
    X = np.random.default_rng(0).standard_normal((60, 3))
    for nu in (0.3, 0.1):
        model = dc.DiffracClustering(nu=nu).fit(X)
        assert set(model.labels_) == {0, 1}
        np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_it_works_in_a_pipeline_a_grid_search_and_a_file(planted):
    pipeline = make_pipeline(StandardScaler(), dc.DiffracClustering())
    search = GridSearchCV(pipeline, {"diffracclustering__lam": [0.0, 0.01]}, cv=2).fit(planted.X)
    assert set(search.predict(planted.X)) == {0, 1}
    assert 0 < search.best_score_ <= 1
    copy = pickle.loads(pickle.dumps(clone(search.best_estimator_).fit(planted.X)))
    np.testing.assert_array_equal(copy.predict(planted.X), search.predict(planted.X))


def test_without_scikit_learn_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setattr(dc, "estimators", dc.estimators)  # restored afterwards: the import below replaces it
    for name in [name for name in sys.modules if name.startswith(("sklearn.", "diffrac_cvx.estimator"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(vars(dc), "DiffracClustering", raising=False)  # which is cached on first import
    with pytest.raises(ImportError, match=r"needs scikit-learn.*pip install 'diffrac-cvx\[app\]'"):
        dc.DiffracClustering  # noqa: B018


def test_no_check_of_scikit_learn_fails_or_is_skipped():
    code = (
        "import warnings, diffrac_cvx as dc; warnings.simplefilter('ignore')\n"
        "from sklearn.utils.estimator_checks import check_estimator\n"
        "known = dc.DiffracClassifier(ridge=0.3, labeled_weight=0.0)\n"  # without cross-validation, which is slow
        # Its 15 points with 30 columns have any labels without a ridge: those of weighted points would be arbitrary.
        "for estimator in (dc.DiffracClustering(), known, dc.MultiLabelDiffrac(ridge=0.3)):\n"
        "    found = check_estimator(estimator, on_skip=None)\n"
        "    assert len(found) > 40 and all(check['status'] == 'passed' for check in found)\n"
    )
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}  # without it scikit-learn skips a check
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_a_column_that_is_constant_up_to_rounding_is_not_blown_up_to_a_feature(planted):
    two_ways = np.where(np.random.default_rng(0).random(len(planted.X)) < 0.5, 0.3, 0.1 + 0.2)
    with pytest.warns(dc.DegenerateDataWarning, match=r"column \[6\] of X is constant"):
        model = dc.DiffracClustering().fit(np.column_stack([planted.X, two_ways]))
    assert model.coef_[-1] == 0.0
    assert model.n_excluded_ == 1
    np.testing.assert_array_equal(model.labels_, dc.DiffracClustering().fit(planted.X).labels_)


@pytest.mark.parametrize("estimator", [dc.DiffracClustering(), dc.MultiLabelDiffrac(n_labels=2)])
def test_a_gap_that_does_not_close_is_warned_of(estimator):
    X = np.random.default_rng(1).standard_normal((60, 5))
    with pytest.warns(ConvergenceWarning, match="the duality gap is"):
        model = clone(estimator).set_params(max_iter=1, tol=1e-9).fit(X)
    assert model.upper_bound_ - model.lower_bound_ > 1e-9


def test_many_labels_are_found_with_the_bounds_of_the_relaxation_and_scored_by_their_mean(many):
    X, Y = many
    model = dc.MultiLabelDiffrac(n_labels=3, random_state=0).fit(X)
    assert dc.metrics.label_subspace_overlap(Y, model.signs_) == pytest.approx(3.0)
    result = dc.fista((X - X.mean(axis=0)) / X.std(axis=0), 1.0, tol=1e-2)
    assert (model.lower_bound_, model.upper_bound_) == pytest.approx((result.lower, result.upper), abs=1e-7)
    np.testing.assert_array_equal(model.signs_ * model.signs_[0], dc.rounding.procrustes(result.F, 3, rng=0))
    assert np.all(model.scaled_coef_.max(axis=1) == np.abs(model.scaled_coef_).max(axis=1))
    pairs = zip(model.transform(X).T, model.signs_.T, strict=True)
    assert model.score(X) == pytest.approx(np.mean([np.corrcoef(z, y)[0, 1] ** 2 for z, y in pairs]))


@pytest.mark.parametrize("shape", [(100, 5), (30, 40)])
@pytest.mark.parametrize("parameters", [{}, {"nu": 0.3}, {"lam": 0.01}, {"solver": "low_rank"}, {"standardize": False}])
def test_the_labels_of_the_mixture_are_signs_of_affine_functions(shape, parameters):
    rng = np.random.default_rng(4)
    X = rng.standard_normal(shape) * rng.uniform(0.1, 10.0, shape[1]) + 5.0
    model = dc.MultiLabelDiffrac(n_labels=3, ridge=0.04, random_state=7).set_params(**parameters).fit(X)
    by_hand = dc.rounding.fit_label_mixture(model.result_.F, 3, rng=7, sample_weight=np.ones(len(X)))
    np.testing.assert_array_equal(model.signs_ * model.signs_[0], by_hand.labels)
    np.testing.assert_array_equal(model.weights_, by_hand.weights)
    assert model.objective_ == by_hand.objective
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_.T + model.intercept_)


@pytest.mark.parametrize("estimator", [dc.DiffracClustering(), dc.MultiLabelDiffrac(n_labels=2)])
def test_what_cannot_be_split_is_one_cluster(estimator):
    X = np.ones((6, 2))
    model = clone(estimator).fit(X)
    assert not model.labels_.any()
    assert not model.coef_.any()
    assert model.score(X) == 0.0
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize(
    "given", [{}, {"constraints": dc.Constraints([(0, 1)], [(2, 39)])}, {"sample_weight": np.arange(40) % 3}]
)
def test_labels_proved_optimal_cost_no_more_than_rounded_ones_and_have_a_certificate_for_the_given_table(given):
    X = dc.datasets.make_planted(40, 4, noise=0.6, rng=0).X * [1.0, 10.0, 0.1, 3.0] + 5.0
    rounded, proved = dc.DiffracClustering().fit(X, **given), dc.DiffracClustering(prove=True).fit(X, **given)
    assert proved.optimal_.status is dc.Status.OPTIMAL
    assert proved.label_gap_ <= 1e-4
    assert proved.lower_bound_ + proved.label_gap_ <= rounded.lower_bound_ + rounded.label_gap_ + 1e-9
    np.testing.assert_array_equal(proved.rounded_labels_, rounded.labels_)
    assert dc.check_certificate(X, proved.optimal_.certificate).bracket.gap <= 1.1e-4
    if "constraints" not in given:
        np.testing.assert_array_equal(proved.predict(X), proved.labels_)


def test_a_search_that_ends_with_labels_that_cost_more_changes_no_label(monkeypatch):
    X, search = dc.datasets.make_planted(40, 4, noise=0.6, rng=0).X, clustering.optimal_labels

    def stopped(*given, **options):
        found = search(*given, **options)
        return replace(found, labels=np.where(np.arange(40) % 2, 1.0, -1.0), upper=1.0, status=dc.Status.STOPPED)

    monkeypatch.setattr(clustering, "optimal_labels", stopped)
    rounded, searched = dc.DiffracClustering().fit(X), dc.DiffracClustering(prove=True).fit(X)
    np.testing.assert_array_equal(searched.labels_, rounded.labels_)
    np.testing.assert_array_equal(searched.coef_, rounded.coef_)
    assert searched.lower_bound_ + searched.label_gap_ <= rounded.lower_bound_ + rounded.label_gap_ + 1e-9


CURVED = {"rings": (make_circles, {"factor": 0.4}, 0.05), "moons": (make_moons, {}, 0.6)}


@pytest.mark.parametrize("name", CURVED)
def test_a_kernel_before_the_split_finds_groups_that_no_line_divides_and_all_its_components_have_its_bounds(name):
    draw, shape, linear = CURVED[name]
    (X, y), (new, groups) = (draw(400, noise=0.05, random_state=seed, **shape) for seed in (0, 100))
    features = Nystroem(gamma=8.0, n_components=100, random_state=0)
    model = make_pipeline(StandardScaler(), features, dc.DiffracClustering(standardize=False, ridge=0.1)).fit(X)
    assert dc.metrics.adjusted_rand_score(y, dc.DiffracClustering().fit_predict(X)) < linear
    assert dc.metrics.adjusted_rand_score(y, model[-1].labels_) > 0.95
    assert dc.metrics.adjusted_rand_score(groups, model.predict(new)) > 0.95
    Z = StandardScaler().fit_transform(X[:100])
    whole = clone(model).set_params(standardscaler=None).fit(Z)[-1]
    eigenvalues, vectors = np.linalg.eigh(np.exp(-8.0 * ((Z[:, None] - Z[None]) ** 2).sum(axis=2)))
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    alone = dc.low_rank(root - root.mean(axis=0), ridge=0.1, tol=1e-4)
    assert max(alone.lower, whole.lower_bound_) <= min(alone.upper, whole.upper_bound_)


@pytest.mark.parametrize(
    "rows",
    [
        {"bags": [[0, 1, 2], [3, 4]], "labels": [None] * 30 + [-1] * 10},
        {"sizes": (5, 12)},
        {"order": [list(range(0, 20)), list(range(39, 20, -1))], "must_link": [(0, 1)]},
        {"equal": (np.eye(2, 40), [1, -1]), "at_most": (np.ones((1, 40)), [0.0])},
    ],
    ids=["bags", "sizes", "order", "rows"],
)
def test_labels_obey_rows_and_the_gap_is_that_of_the_best_labels_that_do(rows):
    X = dc.datasets.make_planted(40, 3, 3, rng=0).X * [1.0, 1e3, 1e-3] + 5.0
    constraints = dc.Constraints(**rows)
    model = dc.DiffracClustering(ridge=0.3).fit(X, constraints=constraints)
    labels = signs(model)
    assert constraints.linear_of(40).violated(labels) == []
    np.testing.assert_array_equal(labels, model.optimal_.labels)
    assert model.label_gap_ <= 1e-3
    ridge = 0.3 * np.var(X, axis=0)  # of standardised columns
    best = dc.optimal_labels(X, ridge=ridge, constraints=constraints, tol=1e-6)
    assert model.lower_bound_ <= best.upper
    assert model.lower_bound_ + model.label_gap_ >= best.lower
    assert dc.check_certificate(X, model.optimal_).lower == model.optimal_.lower


def test_rows_are_about_two_clusters():
    X = np.random.default_rng(0).standard_normal((20, 2))
    with pytest.raises(dc.ParameterError, match="n_clusters = 3: bags, order, sizes and rows"):
        dc.DiffracClustering(n_clusters=3).fit(X, constraints=dc.Constraints(sizes=(3, 5)))
