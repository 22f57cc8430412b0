"""Feature groups and sign constraints of the estimators: names, exact zeros, agreement with the functions they wrap."""

import pickle

import numpy as np
import pandas as pd
import pytest
from instances import signs
from sklearn.base import clone

import diffrac_cvx as dc
from diffrac_cvx.points.linear_algebra import standardize_columns
from diffrac_cvx.problem.feature_groups import read_feature_groups

slow = pytest.mark.slow
pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")

NAMES = [*"abcdefghi"]
GROUPS = {"one": ["a", "b", "c"], "two": ["d", "e", "f"], "three": ["g"], "four": ["h", "i"]}
NUMBERS = {name: [NAMES.index(column) for column in some] for name, some in GROUPS.items()}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], 80)
    X = rng.standard_normal((80, 9))
    X[:, :3] += y[:, None]
    return pd.DataFrame(X * np.arange(1, 10), columns=NAMES), y


def test_groups_that_carry_nothing_are_left_out_whole_and_named(table):
    X, y = table
    model = dc.DiffracClustering(lam=0.1, groups=GROUPS, group_weights="size").fit(X)
    assert model.groups_used_ == ("one",)
    assert np.all(model.coef_[:3] != 0.0)
    assert not model.coef_[3:].any()
    assert dc.metrics.clustering_error(y, signs(model)) < 0.3


def test_names_and_numbers_of_columns_and_copies_give_the_same(table):
    X = table[0]
    labeled = [next(name for name, some in GROUPS.items() if column in some) for column in NAMES]
    for parameter, by_name, forms in (
        ("groups", GROUPS, (NUMBERS, labeled, list(NUMBERS.values()))),
        ("nonnegative", ["a", "d"], ([0, 3], np.isin(NAMES, ["a", "d"]))),
    ):
        named = dc.DiffracClustering(lam=0.05, **{parameter: by_name}).fit(X)
        again = pickle.loads(pickle.dumps(clone(named))).fit(X)
        np.testing.assert_array_equal(again.coef_, named.coef_)
        for form in forms:
            other = dc.DiffracClustering(lam=0.05, **{parameter: form}).fit(X.to_numpy())
            np.testing.assert_array_equal(other.coef_, named.coef_)


@pytest.mark.parametrize("solver", ["low_rank", pytest.param("fista", marks=slow)])
@pytest.mark.parametrize("known", [{"groups": NUMBERS}, {"nonnegative": [0, 3]}])
def test_every_solver_proves_the_bracket_of_the_penalty(table, solver, known):
    X = standardize_columns(table[0].to_numpy())
    penalty = dc.Penalty(lam=0.05, ridge=0.3, **known)
    reference = dc.low_rank(X, 1.0, penalty, tol=1e-5)
    model = dc.DiffracClustering(lam=0.05, solver=solver, tol=1e-3, **known).fit(table[0])
    assert max(model.lower_bound_, reference.lower) <= min(model.upper_bound_, reference.upper)
    proof = dc.certify_labels(X, signs(model), model.result_, penalty=penalty)
    assert model.label_gap_ == pytest.approx(proof.gap, abs=1e-12)
    assert "groups" in known or np.all(model.coef_[[0, 3]] >= 0.0)


def test_known_signs_turn_the_labels_and_not_the_direction(table):
    X, y = table
    model = dc.DiffracClustering(nonnegative=["a", "b", "c"]).fit(X)
    turned = dc.DiffracClustering(nonnegative=["a", "b", "c"]).fit(-X)
    assert np.all(model.coef_[:3] > 0.0)
    assert np.all(turned.coef_[:3] > 0.0)
    np.testing.assert_array_equal(turned.labels_, 1 - model.labels_)
    assert y @ (signs(model)) > 0.0


def test_where_labels_are_known_signs_against_them_make_coefficients_zero(table):
    X, y = table
    for sense in (1.0, -1.0):
        few = np.where(np.arange(len(y)) < 10, sense * y, np.nan)
        model = dc.DiffracClustering(nonnegative=["a", "b", "c"]).fit(X, constraints=dc.Constraints(labels=few))
        np.testing.assert_array_equal(model.labels_[:10] * 2.0 - 1.0, few[:10])
        assert np.all(model.coef_[:3] >= 0.0)
        assert model.coef_[:3].any() == (sense > 0.0)
        assert model.label_gap_ >= -1e-12


@pytest.mark.parametrize(
    "options",
    [{"n_clusters": 3}, pytest.param({"test_structure": True}, marks=slow)],
)
def test_groups_go_with_more_clusters_and_with_the_tests_of_structure(table, options):
    model = dc.DiffracClustering(lam=0.1, groups=GROUPS, tol=1e-2, **{"n_clusters": 3, **options}).fit(table[0])
    used = np.isin(read_feature_groups(GROUPS, 9, NAMES).names, model.groups_used_)
    assert used[0]
    zero = ~np.any(np.atleast_2d(model.coef_), axis=0)
    assert all(zero[columns].all() for name, columns in NUMBERS.items() if name not in model.groups_used_)


def test_the_choice_of_weights_keeps_groups(table):
    known = {"groups": GROUPS, "group_weights": "size"}
    model = dc.DiffracClusteringCV(lams=(0.1,), ridges=(0.3,), n_resamples=2, random_state=0, **known).fit(table[0])
    alone = dc.DiffracClustering(lam=0.1, ridge=0.3, **known).fit(table[0])
    np.testing.assert_array_equal(model.labels_, alone.labels_)
    assert model.groups_used_ == alone.groups_used_ == ("one",)
    assert set(model.best_params_) == {"lam", "ridge", "nu"}
    for columns in NUMBERS.values():  # each half-sample selects or excludes whole groups
        assert len(set(model.cv_results_["selection_frequencies"][0, columns])) == 1
