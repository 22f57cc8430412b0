"""Diagnostics: a clustering that may not be meaningful comes with a warning and a remedy."""

import warnings

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.points.table import array_table
from diffrac_cvx.rounding.diagnostics import find_diagnostics

NOISE = np.random.default_rng(0).standard_normal((60, 30))
SMALL = NOISE[:, :5]
OUTLIER = np.vstack([np.full(5, 100.0), SMALL])


@pytest.mark.parametrize(
    ("X", "parameters", "message"),
    [
        (np.ones((5, 2)), {}, "All points are in one cluster"),
        (SMALL, {"nu": 0.0}, "All points are in one cluster"),
        (SMALL, {"nu": 0.1, "ridge": 1e6}, "All points are in one cluster"),
        (OUTLIER, {}, "One cluster has only one point"),
        (NOISE, {}, None),
        (dc.datasets.make_planted(100, 5, noise=0.1, rng=0).X, {"ridge": 0.0}, None),
        (dc.datasets.make_planted(60, 20, 2, rng=0).X, {"ridge": 0.0, "lam": 0.02}, None),
    ],
)
def test_a_cluster_that_is_empty_or_tiny_is_a_warning(X, parameters, message):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.DegenerateDataWarning)
        found = dc.DiffracClustering(**parameters).fit(X).diagnostics_
    assert [one.code for one in found] == ["small cluster"] * (message is not None)
    assert message is None or str(found[0]).startswith(message)


def test_of_many_clusters_the_number_that_have_points_is_named():
    (found,) = find_diagnostics(NOISE, np.arange(60) % 3, n_clusters=5)
    assert found.message == "Only 3 of the 5 requested clusters have points."
    assert "request fewer clusters" in found.remedy


def test_the_weight_of_a_cluster_counts_and_not_its_number_of_points():
    half = np.arange(60) < 30
    weights = np.where(half, 1.0, 100.0)
    (found,) = find_diagnostics(array_table(SMALL, weights / weights.sum()), half)
    assert (
        found.message == "One cluster has only 30 of 60 points, with 0.0099 of the weight; it may consist of outliers."
    )
    assert not find_diagnostics(SMALL, half)
