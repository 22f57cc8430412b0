"""Constraints on points and semi-supervised classification."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import Ridge, RidgeClassifier

import diffrac_cvx as dc
from diffrac_cvx.estimators import classifier
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.points.table import array_table
from diffrac_cvx.problem.penalties.base import PairPenalty
from diffrac_cvx.rounding.many_clusters import classify_jointly, cluster_jointly

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    shown = np.concatenate([np.random.default_rng(0).permutation(np.flatnonzero(y == k))[:4] for k in range(3)])
    return X, y, np.where(np.isin(np.arange(150), shown), y, -1)


def show(y, each, rng):
    """Labels 0 and 1 of so many points of each class, and -1 otherwise."""
    shown = np.concatenate([rng.permutation(np.flatnonzero(y == k))[:each] for k in np.unique(y)])
    return np.where(np.isin(np.arange(len(y)), shown), y > 0, -1).astype(int)


# Clusters that satisfy constraints


@pytest.mark.parametrize(
    ("parameters", "known", "weighted"),
    [({}, 0, False), ({}, 5, True), ({"nu": 0.5}, 5, False), ({"lam": 0.1}, 0, True), ({"lam": 0.1}, 5, False)],
)
def test_labels_satisfy_every_constraint_whatever_the_data_say(parameters, known, weighted):
    rng = np.random.default_rng([known, weighted])
    X, y = rng.standard_normal((40, 3)), rng.choice([-1.0, 1.0], 40)
    ends = rng.integers(0, 40, (20, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    alike, shown = y[ends[:, 0]] == y[ends[:, 1]], np.isin(np.arange(40), rng.permutation(40)[:known])
    constraints = dc.Constraints(ends[alike], ends[~alike], np.where(shown, y, np.nan))  # which y satisfies
    w = rng.integers(0, 3, 40).astype(float) if weighted else None
    model = dc.DiffracClustering(**parameters).fit(X, sample_weight=w, constraints=constraints)
    chunklets, found = constraints.chunklets_of(40), 2 * model.labels_ - 1
    assert all(len(set((found * chunklets.sign)[chunklets.membership == g])) == 1 for g in range(chunklets.n_chunklets))
    np.testing.assert_array_equal(found[constraints.labels != 0], constraints.labels[constraints.labels != 0])
    assert model.lower_bound_ <= model.upper_bound_
    assert model.label_gap_ >= 0.0


def test_one_known_label_says_which_cluster_is_one(planted):
    for sign in (-1, 1):
        labels = np.full(120, np.nan)
        labels[7] = sign
        model = dc.DiffracClustering().fit(planted.X, constraints=dc.Constraints(labels=labels))
        np.testing.assert_array_equal(2 * model.labels_ - 1, sign * planted.y * planted.y[7])
        np.testing.assert_array_equal(model.predict(planted.X), model.labels_)


@pytest.mark.parametrize("weighted", [False, True])
def test_more_than_two_clusters_keep_together_what_belongs_together(iris, weighted):
    X, y, _ = iris
    rng = np.random.default_rng(0)
    patients = np.where(rng.random(150) < 0.5, rng.integers(0, 20, 150), -1)  # regardless of the species
    w = rng.integers(0, 3, 150).astype(float) if weighted else None
    model = dc.DiffracClustering(n_clusters=3, random_state=0)
    model.fit(X, sample_weight=w, constraints=dc.Constraints(groups=patients))
    assert all(len(set(model.labels_[patients == k])) == 1 for k in range(20))
    assert len(set(model.labels_)) == 3
    true = model.fit(X, constraints=dc.Constraints(must_link=[(i, i + 1) for i in range(149) if y[i] == y[i + 1]]))
    assert len({(int(a), int(b)) for a, b in zip(true.labels_, y, strict=True)}) == 3


def test_a_point_of_weight_zero_follows_what_it_is_linked_with(planted):
    far = np.argmax(np.abs(dc.DiffracClustering().fit(planted.X).decision_function(planted.X)))
    near = np.flatnonzero(planted.y != planted.y[far])[0]
    w = np.where(np.arange(120) == far, 0.0, 1.0 + np.arange(120) % 2)
    model = dc.DiffracClustering().fit(planted.X, sample_weight=w, constraints=dc.Constraints(must_link=[(far, near)]))
    assert model.labels_[far] == model.labels_[near] == model.predict(planted.X)[near] != model.predict(planted.X)[far]


def test_points_that_belong_together_weigh_as_many_as_they_are():
    rng = np.random.default_rng(0)
    X, times = rng.standard_normal((60, 3)), rng.integers(1, 6, 60)
    X -= times @ X / times.sum()
    result = dc.low_rank(X, ridge=0.3, sample_weight=times)
    known = {"weights": PairPenalty(np.zeros(3), a=np.full(3, 0.3**0.5)), "rng": 0}
    rows = np.repeat(np.arange(60), times)
    chunklets = dc.Constraints(groups=rows).chunklets_of(len(rows))
    repeated = cluster_jointly(array_table(X[rows], chunklets=chunklets), result, 4, **known)
    merged = cluster_jointly(array_table(X, times / times.sum()), result, 4, **known)
    np.testing.assert_allclose(repeated.coef, merged.coef, atol=1e-9)


# The classifier


@pytest.mark.parametrize("each", [1, 3, 20])
def test_few_labels_find_the_planted_ones_and_known_labels_stay(planted, each):
    few = show(planted.y, each, np.random.default_rng(each))
    model = dc.DiffracClassifier().fit(planted.X, few)
    assert model.classes_.tolist() == [0, 1]
    assert each > 1 or (model.ridge_, model.labeled_weight_) == (0.3, 0.0)  # the default without cross-validation
    np.testing.assert_array_equal(model.transduction_, planted.y > 0)
    few[np.flatnonzero(few == 1)[1:2]] = 0  # a wrong one, if there are several
    again = dc.DiffracClassifier().fit(planted.X, few).transduction_
    np.testing.assert_array_equal(again[few >= 0], few[few >= 0])


def test_with_all_labels_known_classes_and_clusters_are_those_of_ridge_regression_and_the_certificate_is_exact(planted):
    y = np.where(np.random.default_rng(0).random(120) < 0.2, -planted.y, planted.y)
    y[:60] = 1.0
    Z = standardize_columns(planted.X)
    supervised = RidgeClassifier(alpha=120 * 0.4).fit(Z, y)
    classes = dc.DiffracClassifier(ridge=0.4).fit(planted.X, y > 0)
    clusters = dc.DiffracClustering(ridge=0.4).fit(planted.X, constraints=dc.Constraints(labels=y))
    for model in (classes, clusters):
        np.testing.assert_allclose(model.scaled_coef_, np.ravel(supervised.coef_), rtol=1e-8)
        np.testing.assert_allclose(model.decision_function(planted.X), supervised.decision_function(Z), atol=1e-8)
        assert model.upper_bound_ - model.lower_bound_ < 1e-9
        assert model.label_gap_ < 1e-9
    np.testing.assert_array_equal(classes.transduction_, y > 0)
    np.testing.assert_array_equal(clusters.labels_, y > 0)


def test_the_bracket_is_that_of_the_relaxation_with_known_labels(planted):
    few = show(planted.y, 5, np.random.default_rng(0))
    model = dc.DiffracClassifier(lam=0.02, ridge=0.2, nu=0.7, labeled_weight=0.0).fit(planted.X, few)
    constraints = dc.Constraints(labels=np.where(few < 0, np.nan, 2.0 * few - 1.0))
    result = dc.low_rank(standardize_columns(planted.X), 0.7, lam=0.02, ridge=0.2, tol=1e-4, constraints=constraints)
    assert (model.lower_bound_, model.upper_bound_) == pytest.approx((result.lower, result.upper), abs=1e-7)
    w = np.where(few < 0, 0.5 / 110, 0.5 / 10)
    half = model.set_params(labeled_weight=0.5).fit(planted.X, few)
    weighted = dc.low_rank(
        standardize_columns(planted.X), 0.7, lam=0.02, ridge=0.2, tol=1e-4, constraints=constraints, sample_weight=w
    )
    assert (half.lower_bound_, half.upper_bound_) == pytest.approx((weighted.lower, weighted.upper), abs=1e-7)
    assert half.labeled_weight_ == 0.5


def test_the_share_of_the_known_points_is_large_where_the_clusters_are_not_the_classes():
    rng = np.random.default_rng(0)
    clusters, y = rng.choice([-1.0, 1.0], (2, 300))
    X = np.column_stack([3 * clusters, 3 * clusters, y]) + rng.standard_normal((300, 3)) * [1.0, 1.0, 0.5]
    few = show(y, 5, rng)
    free, chosen = (dc.DiffracClassifier(ridge=0.3, labeled_weight=share).fit(X, few) for share in (0.0, "auto"))
    assert np.mean((free.transduction_ == (y > 0))[few < 0]) < 0.6
    assert chosen.labeled_weight_ == classifier.WEIGHT_FRACTIONS[1]
    assert np.mean((chosen.transduction_ == (y > 0))[few < 0]) > 0.9
    assert dc.DiffracClassifier(ridge=0.3).fit(X, show(clusters, 20, rng)).labeled_weight_ == 0.0


def test_the_ridge_is_small_where_the_classes_differ_along_a_direction_of_small_variance():
    rng = np.random.default_rng(0)
    y, size = rng.choice([-1.0, 1.0], 200), rng.standard_normal(200)
    X = np.column_stack([size, size + 0.2 * y, rng.standard_normal(200)]) + 0.01 * rng.standard_normal((200, 3))
    few = show(y, 10, rng)
    model = dc.DiffracClassifier().fit(X, few)
    assert model.ridge_ == min(classifier.CANDIDATE_RIDGES)
    np.testing.assert_array_equal(model.transduction_, y > 0)
    assert np.mean(dc.DiffracClassifier(ridge=0.3).fit(X, few).transduction_ == (y > 0)) < 0.7


def test_the_function_is_weighted_least_squares_on_the_labels_of_the_relaxation(planted):
    few = show(planted.y, 4, np.random.default_rng(0))
    model = dc.DiffracClassifier(ridge=0.3, labeled_weight=0.6).fit(planted.X, few)
    p, Z = np.where(few < 0, 0.4 / 112, 0.6 / 8), standardize_columns(planted.X)
    first = np.flatnonzero(few == 1)[0]
    labels = np.where(model.result_.F @ model.result_.F[first] > 0.0, 1.0, -1.0)
    expected = Ridge(alpha=0.3).fit(Z, labels, sample_weight=p).predict(Z)
    np.testing.assert_allclose(model.decision_function(planted.X), expected, atol=1e-8)


def test_feature_groups_are_selected_as_a_whole(planted):
    few, groups = show(planted.y, 6, np.random.default_rng(0)), [0, 0, 0, 1, 1, 1]
    model = dc.DiffracClassifier(lam=0.5, groups=groups, ridge=0.3, labeled_weight=0.0).fit(planted.X, few)
    assert {model.coef_[:3].all(), model.coef_[3:].all()} == {model.coef_[:3].any(), model.coef_[3:].any()}


def test_names_numbers_and_frames_are_the_same_classes(planted):
    few = show(planted.y, 4, np.random.default_rng(0))
    options = {"ridge": 0.3, "labeled_weight": 0.0}
    expected = dc.DiffracClassifier(**options).fit(planted.X, few)
    names = np.array(["no", "yes"])
    given = {
        "None": [None if k < 0 else names[k] for k in few],
        "NaN": pd.Series(np.where(few < 0, np.nan, names[few].astype(object))),
        "category": pd.Series([None if k < 0 else names[k] for k in few], dtype="category"),
    }
    for y in given.values():
        model = dc.DiffracClassifier(**options).fit(planted.X, y)
        np.testing.assert_array_equal(model.transduction_, names[expected.transduction_])
        np.testing.assert_array_equal(model.predict(planted.X), names[expected.predict(planted.X)])
    signs = np.where(few < 0, 0, 2 * few - 1)
    model = dc.DiffracClassifier(unlabelled=0, **options).fit(planted.X, signs)
    np.testing.assert_array_equal(model.transduction_, 2 * expected.transduction_ - 1)
    with pytest.warns(dc.DegenerateDataWarning, match="taken for two classes"):
        all_known = dc.DiffracClassifier(**options).fit(planted.X, planted.y)
    assert all_known.classes_.tolist() == [-1, 1]
    np.testing.assert_array_equal(all_known.transduction_, planted.y)
    floats = dc.DiffracClassifier(**options).fit(planted.X, [None if k < 0 else float(k) for k in few])
    np.testing.assert_array_equal(floats.transduction_, expected.transduction_)


def test_points_of_weight_zero_play_no_part(planted):
    few = show(planted.y, 5, np.random.default_rng(0))
    w = np.where(np.arange(120) < 100, 1.0 + np.arange(120) % 2, 0.0)
    for y in (few, np.where((w == 0.0) & (few >= 0), 1 - few, few)):
        model = dc.DiffracClassifier(ridge=0.3).fit(planted.X, y, w)
        alone = dc.DiffracClassifier(ridge=0.3).fit(planted.X[:100], y[:100], w[:100])
        np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-6)
        assert len(model.transduction_) == 120
        np.testing.assert_array_equal(model.transduction_[y >= 0], y[y >= 0])


def test_three_classes_are_found_from_four_labels_each_and_known_ones_stay(iris):
    X, y, few = iris
    model = dc.DiffracClassifier().fit(X, few)
    np.testing.assert_array_equal(model.transduction_[few >= 0], few[few >= 0])
    assert np.mean((model.transduction_ == y)[few < 0]) > 0.9
    assert model.decision_function(X).shape == model.transform(X).shape == (150, 3)
    np.testing.assert_array_equal(np.argmax(model.decision_function(X), axis=1), model.predict(X))
    assert model.lower_bound_ <= model.upper_bound_
    assert 0.0 <= model.label_gap_ <= 1.0
    known = dc.DiffracClassifier().fit(X, y)
    equal = {"weights": PairPenalty(np.zeros(4), a=np.full(4, 0.3**0.5))}
    points = array_table(standardize_columns(X))
    scores = classify_jointly(points, dc.low_rank(standardize_columns(X), ridge=0.3), y, **equal)
    np.testing.assert_allclose(known.decision_function(X), scores.of(standardize_columns(X)), atol=1e-6)
    np.testing.assert_array_equal(known.transduction_, y)
    constraints = dc.Constraints(groups=few)
    result = dc.low_rank(standardize_columns(X), ridge=0.3, tol=1e-4, constraints=constraints)
    free = model.set_params(labeled_weight=0.0).fit(X, few)
    assert free.lower_bound_ == pytest.approx(result.lower, abs=1e-7)
    half = model.set_params(labeled_weight=0.5).fit(X, few)
    p = np.where(few < 0, 0.5 / 138, 0.5 / 12)
    Z = standardize_columns(X) - p @ standardize_columns(X)
    scores = classify_jointly(array_table(Z, p), half.result_, few, **equal)
    np.testing.assert_allclose(half.decision_function(X), scores.of(Z), atol=1e-8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_it_ends_in_time(iris):
    X, y, few = iris
    late = dc.DiffracClassifier(time_limit=1e-4).fit(X, few)
    assert late.labeled_weight_ == 0.0
    assert np.mean(late.transduction_ == y) > 0.5
