"""Model selection without labels: criteria, results table, and settings that are never chosen."""

import warnings

import numpy as np
import pytest
from instances import signs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import diffrac_cvx as dc
from diffrac_cvx.estimators.choice import (
    SELECTION_CRITERIA,
    SEPARATION_MARGIN,
    agreement,
    draw_half_samples,
    max_column_r2,
    prediction_strength,
    rank,
)
from diffrac_cvx.estimators.clustering_cv import default_grid
from experiments.choice import sets

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
SMALL = {"lams": (0.0, 0.1), "ridges": (0.1, 1.0), "n_resamples": 4, "random_state": 0}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [dc.DiffracClusteringCV(lams=(0.0,), ridges=(0.3, 1.0), n_resamples=2)],
    expected_failed_checks=lambda _: {
        f"check_sample_weight_equivalence_on_{kind}_data": "half-samples consist of rows, not of weights"
        for kind in ("dense", "sparse")
    },
)
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def planted():
    return dc.datasets.make_planted(80, 5, sparsity=2, noise=0.1, rng=3)


@pytest.fixture(scope="module")
def model(planted):
    return dc.DiffracClusteringCV(**SMALL).fit(planted.X)


def test_the_agreement_with_a_single_cluster_is_zero():
    labels = np.arange(6) % 2
    assert agreement(labels, 1 - labels) == 1.0
    assert agreement(labels, np.ones(6)) == agreement(np.ones(6), np.ones(6)) == 0.0


@pytest.mark.parametrize("n", [4, 9])
@pytest.mark.parametrize("count", [1, 4, 5])
def test_the_halves_come_in_pairs_that_share_no_point(n, count):
    halves = draw_half_samples(n, count, np.random.default_rng(0))
    assert len(halves) == count
    for half, left_out in halves:
        np.testing.assert_array_equal(np.sort(np.append(half, left_out)), np.arange(n))
    for (half, _), (_, left_out) in zip(halves[::2], halves[1::2], strict=False):
        np.testing.assert_array_equal(half, left_out)


def test_the_chosen_setting_is_fitted_as_by_the_estimator_and_the_table_has_the_labels_of_its_path(planted, model):
    alone = dc.DiffracClustering(**model.best_params_).fit(planted.X)
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    np.testing.assert_allclose(model.decision_function(planted.X), alone.decision_function(planted.X), atol=1e-9)
    np.testing.assert_array_equal(model.predict(planted.X), model.labels_)
    assert (model.lower_bound_, model.label_gap_) == pytest.approx((alone.lower_bound_, alone.label_gap_), abs=1e-9)
    table, i = model.cv_results_, model.best_index_
    assert dc.metrics.clustering_error(2.0 * table["labels"][i] - 1.0, signs(alone)) == 0.0
    assert table["lower_bound"][i] <= alone.upper_bound_ + 1e-9
    assert alone.lower_bound_ <= table["upper_bound"][i] + 1e-9
    assert table["diagnostics"] == [()] * 4


@pytest.mark.parametrize("criterion", SELECTION_CRITERIA)
def test_every_criterion_finds_planted_labels_and_the_largest_score_wins(planted, model, criterion):
    chosen = dc.DiffracClusteringCV(**SMALL, criterion=criterion).fit(planted.X)
    table = chosen.cv_results_
    assert dc.metrics.clustering_error(planted.y, signs(chosen)) == 0.0
    usable = [not kinds for kinds in table["diagnostics"]]
    assert chosen.best_score_ == table[criterion][usable].max()
    assert table["rank_score"][chosen.best_index_] == 1
    assert chosen.best_params_ == {"lam": chosen.lam_, "ridge": chosen.ridge_, "nu": chosen.nu_}
    np.testing.assert_array_equal(table["stability"], model.cv_results_["stability"])  # which only depends on the seed


@pytest.mark.parametrize("nus", [(0.0, 1.0), (0.0,)])
def test_a_setting_that_is_no_answer_never_wins_unless_all_are_and_then_it_says_so(nus):
    """At nu = 0 one cluster has cost 0."""
    planted = dc.datasets.make_planted(60, 3, noise=0.1, rng=0)
    model = dc.DiffracClusteringCV(lams=(0.0, 0.1), ridges=(0.1,), nus=nus, n_resamples=2, random_state=0)
    table = model.fit(planted.X).cv_results_
    bad = np.array([len(kinds) > 0 for kinds in table["diagnostics"]])
    np.testing.assert_array_equal(bad, table["param_nu"] == 0.0)
    assert bad[model.best_index_] == bool(model.diagnostics_) == (len(nus) == 1)


def test_the_features_that_matter_are_selected_in_every_half_and_the_others_are_not():
    planted = dc.datasets.make_planted(200, 12, noise=0.1, sparsity=2, rng=0)
    model = dc.DiffracClusteringCV(lams=(0.1,), ridges=(0.1,), n_resamples=6, random_state=0).fit(planted.X)
    used = np.flatnonzero(planted.v)
    assert (model.selection_frequencies_[used] == 1.0).all()
    assert np.delete(model.selection_frequencies_, used).mean() < 0.5


def test_a_score_that_was_not_measured_does_not_win_and_of_equal_ones_the_more_stable():
    scores, usable = np.array([np.nan, 0.2, 0.9, 0.5]), np.array([True, True, False, True])
    ranks = rank(scores, usable, np.zeros(4))
    np.testing.assert_array_equal(ranks, [3, 2, 4, 1])
    ranks = rank(np.array([0.5, 0.5, 0.4]), np.array([True, True, True]), np.array([0.2, 0.3, 0.9]))
    np.testing.assert_array_equal(ranks, [2, 1, 3])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_time_limit_leaves_settings_out_and_a_choice_is_made_all_the_same(planted):
    model = dc.DiffracClusteringCV(**SMALL, criterion="stability", time_limit=1e-3).fit(planted.X)
    table = model.cv_results_
    assert len(table["params"]) < 4
    assert (table["n_resamples"] == 0).all()
    assert np.isnan(table["stability"]).all()
    assert np.isnan(table["mean_score"]).all()
    assert model.best_index_ == 0  # the setting nearest to the default weights
    assert set(model.predict(planted.X)) <= {0, 1}


# The default criterion


def test_a_direction_of_two_values_among_mixed_noise_is_found_and_the_default_weights_miss_it():
    rng = np.random.default_rng(0)
    y, X = rng.integers(0, 2, size=3000), rng.standard_normal((3000, 20))
    X[:, 0] = 2.0 * y + 0.3 * X[:, 0]
    X = X @ rng.standard_normal((20, 20))
    model = dc.DiffracClusteringCV(lams=(0.0,), n_resamples=2, random_state=0).fit(X)
    assert (model.lam_, model.ridge_) == (0.0, 0.0)
    needed = 4 * (20 + 20 * 19 // 4)  # from here on ridge 0 is tried
    assert [default_grid(n, 20)[1][0] for n in (needed - 1, needed)] == [0.1, 0.0]
    assert adjusted_rand_score(y, model.labels_) > 0.98
    assert adjusted_rand_score(y, dc.DiffracClustering().fit(X).labels_) < 0.1


def test_the_default_weights_are_kept_on_noise():
    model = dc.DiffracClusteringCV(n_resamples=2, random_state=0)
    model.fit(np.random.default_rng(0).standard_normal((100, 3)))
    assert (model.lam_, model.ridge_, model.best_index_, model.best_score_) == (0.0, 0.3, 0, 0.0)
    assert model.n_settings_ == len(model.cv_results_["params"]) == 12


def test_a_single_column_of_two_values_is_no_reason_to_leave_the_default_weights():
    X = dc.datasets.load("heart")[0]  # one column is binary and separates perfectly
    model = dc.DiffracClusteringCV(lams=(0.0, 0.1), ridges=(0.1, 0.3), n_resamples=2, random_state=0).fit(X)
    table = model.cv_results_
    alone = table["column_share"] > 0.9 * table["separation"]
    assert alone.any()
    assert (table["separation"][alone] > table["separation"][0] + SEPARATION_MARGIN).all()
    assert (table["gain"][alone] < 0.0).all()
    assert (model.lam_, model.ridge_) == (0.0, 0.3)


def test_the_share_of_a_column_is_the_squared_correlation_with_two_labels():
    rng = np.random.default_rng(0)
    X, labels = rng.standard_normal((40, 3)), rng.integers(0, 2, 40)
    expected = max(np.corrcoef(column, labels)[0, 1] ** 2 for column in X.T)
    assert max_column_r2(X, labels) == pytest.approx(expected)
    assert max_column_r2(X, np.zeros(40, dtype=int)) == pytest.approx(0.0)
    assert max_column_r2(np.column_stack([X, labels]), labels) == pytest.approx(1.0)


def test_settings_are_compared_on_a_part_of_very_many_points_and_all_are_labeled(planted, monkeypatch):
    monkeypatch.setattr("diffrac_cvx.estimators.choice.MAX_POINTS", 1)
    X = np.tile(planted.X, (3, 1))  # 240 points, subsampled to 8 times 10
    model = dc.DiffracClusteringCV(lams=(0.0,), ridges=(0.1, 0.3), n_resamples=2, random_state=0).fit(X)
    assert model.cv_results_["labels"].shape == (2, 240)
    assert model.result_.factor.shape[0] == 240
    for labels in (model.labels_, *model.cv_results_["labels"]):
        assert dc.metrics.clustering_error(np.tile(planted.y, 3), 2.0 * labels - 1.0) == 0.0


# Numbers of clusters


@pytest.mark.parametrize("K", [2, 4])
def test_the_number_of_planted_clusters_is_found_by_the_search_and_by_the_estimator(K):
    y = np.arange(60 * K) % K
    X = np.random.default_rng(K).standard_normal((60 * K, 5)) + 6.0 * np.eye(5)[y]
    model = dc.DiffracClusteringCV(n_clusters=range(2, 7), n_resamples=2, random_state=0).fit(X)
    table = model.cv_results_
    assert model.n_clusters_ == K == model.best_params_["n_clusters"]
    assert adjusted_rand_score(y, model.labels_) > 0.95
    np.testing.assert_array_equal(table["param_n_clusters"], range(2, 7))
    np.testing.assert_allclose(table["cost"][model.best_index_], model.lower_bound_ + model.label_gap_, atol=1e-3)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert 0.5 < model.score(X) <= 1.0
    auto = dc.DiffracClustering(n_clusters="auto", random_state=0, test_structure=K == 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        auto.fit(X)
    said = any("which needs no groups. Pass test_structure=True" in str(warning.message) for warning in caught)
    assert said is (K != 2)  # that the number was chosen without a test
    assert auto.n_clusters_ == K
    np.testing.assert_array_equal(auto.labels_, dc.DiffracClustering(n_clusters=K, random_state=0).fit(X).labels_)


def test_the_prediction_strength_is_that_of_the_cluster_that_is_found_worst():
    own = np.array([0, 0, 0, 0, 1, 1, 1])
    assert prediction_strength(own, own, 2) == 1.0
    assert prediction_strength(own, np.array([1, 1, 1, 0, 1, 1, 1]), 2) == pytest.approx(0.5)  # 3 of 6 pairs
    assert prediction_strength(own, own, 3) == 0.0


def test_the_sets_held_out_are_not_those_of_the_design():
    assert len(sets.HELD_OUT) >= 10
    assert not set(sets.HELD_OUT) & set(sets.DESIGN)


def test_the_fit_of_the_chosen_setting_satisfies_the_constraints():
    X = np.random.default_rng(0).standard_normal((40, 3))
    free = dc.DiffracClusteringCV(ridges=(0.3,), n_resamples=2, random_state=0).fit(X)
    i, j = (int(np.flatnonzero(free.labels_ == k)[0]) for k in (0, 1))
    known = dc.Constraints(must_link=[(i, j)])
    tied = dc.DiffracClusteringCV(ridges=(0.3,), n_resamples=2, random_state=0).fit(X, constraints=known)
    assert tied.labels_[i] == tied.labels_[j]
