"""Diagnostics: a clustering that may not be meaningful comes with a warning and a remedy."""

import warnings

import numpy as np
import pandas as pd
import pytest
from instances import result_of

import diffrac_cvx as dc
from diffrac_cvx.rounding.diagnostics import find_diagnostics, one_column

NOISE = np.random.default_rng(0).standard_normal((60, 30))
SMALL = NOISE[:, :5]
OUTLIER = np.vstack([np.full(5, 100.0), SMALL])


def kinds_of(X: np.ndarray, **parameters: float) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)
        model = dc.DiffracClustering(**parameters).fit(X)
    return [diagnostic.code for diagnostic in model.diagnostics_]


@pytest.mark.parametrize(
    ("X", "parameters", "kinds"),
    [
        (np.ones((5, 2)), {}, ["constant"]),
        (SMALL, {"nu": 0.0}, ["no preference", "one cluster"]),
        (SMALL, {"nu": 0.1, "ridge": 1e6}, ["one cluster"]),
        (SMALL, {"lam": 1e6}, ["no gain"]),
        (NOISE, {"ridge": 0.0}, ["too few points"]),
        (OUTLIER, {}, ["few points"]),
        (NOISE, {}, []),
        (dc.datasets.make_planted(100, 5, rng=0).X, {"ridge": 0.0}, ["one column"]),
        (dc.datasets.make_planted(100, 5, noise=0.1, rng=0).X, {"ridge": 0.0}, []),
        (dc.datasets.make_planted(60, 20, 2, rng=0).X, {"ridge": 0.0, "lam": 0.02}, []),
    ],
)
def test_each_case_is_named(X, parameters, kinds):
    assert kinds_of(X, **parameters) == kinds


# One column alone

CITY = np.random.default_rng(1).integers(0, 4, 200)
HOT = (CITY[:, None] == np.arange(4)).astype(float)
OTHERS = np.random.default_rng(2).standard_normal((200, 3))
BOTH = np.column_stack([OTHERS, HOT])
UNITS = [1e-3, 5.0, 1.0, 0.1, 7.0, 1.0, 1e3]


@pytest.mark.parametrize("units", [np.ones(7), np.array(UNITS)])
@pytest.mark.parametrize(
    ("labels", "column"),
    [
        (CITY == 2, "column 5 "),
        (np.where(CITY == 2, "no", "yes"), "column 5 "),
        (CITY > 1, "one-hot columns 3 to 6 "),
        (CITY, "one-hot columns 3 to 6 "),
        (CITY == np.append(2, CITY[1:]), None),
        (OTHERS[:, 0] > 0, None),
        (np.maximum(CITY, 2 * (OTHERS[:, 0] > 0)), "column 6 "),
        (np.maximum(CITY, 3 * (OTHERS[:, 0] > 0)), None),
        (np.zeros(200), None),
    ],
)
def test_labels_that_are_one_column_or_one_group_are_found_in_any_units(labels, column, units):
    found = one_column(BOTH * units + 0.1, labels)
    if column is None:
        assert found is None
    else:
        assert found is not None
        assert found.code == "one column"
        assert column in found.message


def test_a_few_points_that_differ_are_no_difference_and_more_are():
    binary = np.column_stack([OTHERS[:, :1], HOT[:, :1]])
    labels = HOT[:, 0].copy()
    labels[np.flatnonzero(labels == 0)[:1]] = 1.0
    large = np.vstack([binary] * 5)
    assert one_column(large, np.concatenate([labels, *[HOT[:, 0]] * 4])) is not None
    labels[np.flatnonzero(labels == 0)[:5]] = 1.0
    assert one_column(binary, labels) is None


def test_columns_that_overlap_thresholds_and_the_only_column_are_no_diagnostic():
    overlapping = np.zeros((60, 4))
    for j, (start, end) in enumerate([(0, 20), (20, 40), (30, 50)]):
        overlapping[start:end, j] = 1.0
    overlapping[:, 3] = np.arange(60)
    found = one_column(overlapping, np.argmax(overlapping[:, :3], axis=1))
    assert found is None or "one-hot" not in found.message
    gap = np.concatenate([np.random.default_rng(0).normal(-9, 1, 50), np.random.default_rng(1).normal(9, 1, 50)])
    X = np.column_stack([gap, OTHERS[:100]])
    assert one_column(X, gap > 0) is None
    assert kinds_of(X) == []
    assert one_column(HOT[:, :1], HOT[:, 0]) is None
    assert one_column(np.eye(20), np.arange(20) % 2) is None  # categories of few points


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
@pytest.mark.parametrize(
    "labels", [{"n_clusters": 2}, {"n_clusters": 2, "ridge": 0.0}, {"n_clusters": 4}, {"n_clusters": 4, "lam": 1e-3}]
)
def test_an_estimator_names_the_column_that_it_splits_along(labels):
    names = ["x", "y", "z", "Bern", "Basel", "Genf", "Chur"]
    with pytest.warns(dc.DegenerateDataWarning, match=r"clusters are exactly.*'(Bern|Basel|Genf|Chur)'"):
        model = dc.DiffracClustering(**labels).fit(pd.DataFrame(BOTH, columns=names))
    assert [found.code for found in model.diagnostics_] == ["one column"]


def test_a_column_whose_values_separate_more_than_two_clusters_is_named():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 90)
    island = (labels == 2).astype(float)
    found = one_column(np.column_stack([rng.standard_normal(90), island]), labels, ["mass", "island"])
    assert str(found).startswith("The two values of column 'island' separate the clusters exactly")
    moved = np.where(np.arange(90) < 5, 1.0 - island, island)
    assert one_column(np.column_stack([rng.standard_normal(90), moved]), labels) is None


@pytest.mark.parametrize(
    ("penalty", "smaller"),
    [
        (dc.Penalty(), False),
        (dc.Penalty(ridge=[0.0, 1.0]), True),
        (dc.Penalty(lam=[0.0, 1.0]), True),
        (dc.Penalty(nonnegative=[0]), True),
    ],
)
def test_of_one_cluster_a_smaller_penalty_is_advised_where_any_column_has_one(penalty, smaller):
    X = SMALL[:, :2] - SMALL[:, :2].mean(axis=0)
    (found,) = find_diagnostics(X, np.zeros(60), result_of(lower=0.1, upper=0.2), nu=0.3, penalty=penalty)
    assert found.code == "one cluster"
    assert ("Decrease lambda or the ridge" in found.remedy) == smaller


@pytest.mark.parametrize(("n", "kinds"), [(2, ["too few points"]), (3, [])])
def test_two_numbers_are_always_split_perfectly_and_three_are_only_where_two_are_equal(n, kinds):
    X = np.array([[1.0], [0.0], [0.0]])[:n]
    X, labels = X - X.mean(), np.array([1, 0, 0])[:n]
    found = find_diagnostics(X, labels, result_of(lower=0.0, upper=0.0), nu=1.0, penalty=dc.Penalty())
    assert [one.code for one in found if one.code != "few points"] == kinds
