"""Comparisons with true classes, of any number and by any names."""

import numpy as np
import pytest

import diffrac_cvx as dc

PLANTED = dc.datasets.make_planted(40, 3, noise=0.2, rng=0)
METHODS = ["low_rank", "k-means"]


def test_two_classes_by_any_names_have_the_errors_of_their_signs():
    named = np.where(PLANTED.y > 0, "oak", "elm")
    rows, signed = (dc.compare(PLANTED.X, y, methods=METHODS).rows for y in (named, PLANTED.y))
    for row, other in zip(rows, signed, strict=True):
        assert row["error"] == other["error"]
        assert row["adjusted_rand"] == other["adjusted_rand"]


def test_three_classes_have_an_adjusted_rand_index_and_no_error():
    classes = np.arange(40) % 3
    compared = dc.compare(PLANTED.X, classes, methods=METHODS)
    for row in compared.rows:
        labels = compared.labels[row["method"]]
        assert row["adjusted_rand"] == pytest.approx(dc.metrics.adjusted_rand_index(classes, labels))
        assert np.isnan(row["error"])
    assert "adjusted rand" in str(compared)


@pytest.mark.parametrize("y", [[1, 2], np.ones((40, 2)), np.full(40, np.nan)])
def test_classes_that_are_not_one_for_each_point_are_refused(y):
    with pytest.raises(dc.DataError, match=r"y has"):
        dc.compare(PLANTED.X, y, methods=METHODS)
