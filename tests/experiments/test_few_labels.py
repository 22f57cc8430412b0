"""The experiment on few labels: its methods and replications, and rules that can fail."""

import numpy as np
import pandas as pd
import pytest

from experiments.few_labels import cells, findings
from experiments.harness.sweep import cross


def apart(seed=0, n=60):
    """Two clusters far apart, with two labels of each known."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n // 2)
    X = rng.standard_normal((n, 3)) + 8.0 * y[:, None]
    return X, y, np.where(np.isin(np.arange(n), [0, 1, n - 2, n - 1]), y, -1)


@pytest.mark.parametrize("method", cells.RIVALS)
def test_every_method_finds_clusters_that_are_far_apart_and_answers_with_one_label_of_each_class(method):
    X, y, few = apart()
    np.testing.assert_array_equal(cells.classify(method, X, few), y)
    one = np.where(np.isin(np.arange(60), [3, 40]), y, -1)
    assert set(cells.classify(method, X, one).tolist()) <= {0, 1}


def test_seeded_kmeans_keeps_the_known_labels_even_where_they_are_wrong():
    X, _, few = apart()
    few[0] = 1
    found = cells.classify("seeded k-means", X, few)
    assert found[0] == 1
    assert found[2:30].sum() == 0


@pytest.mark.parametrize("known", [2, 6, 20])
def test_a_draw_shows_so_many_labels_and_both_classes_and_depends_on_its_cell_alone(known):
    y = (np.arange(50) < 12).astype(int)
    first, again, other = (cells.draw_labels(y, known, k) for k in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)
    for few in (first, other):
        assert np.sum(few == 0) == np.sum(few == 1) == known // 2
        np.testing.assert_array_equal(few[few >= 0], y[few >= 0])


# The tables


def made(sets=10, kind="held-out", few=0.9, **columns):
    """Two replications of each number of labels on some sets; a column may be a function of the set's number."""
    usual = {"relaxation": 0.9, **dict.fromkeys(cells.RIVALS, 0.85), "label gap": 0.01, "seconds": 0.1}
    table = pd.DataFrame(cross(kind=[kind], name=range(sets), known=cells.KNOWN, replication=range(2))).assign(**usual)
    for name, value in columns.items():
        table[name] = value(table["name"]) if callable(value) else value
    table["name"] = "set " + table["name"].astype(str)
    table.loc[table["known"] == cells.KNOWN[1], "relaxation"] = few
    return table


def test_the_gains_over_ridge_regression_are_counted_by_set_and_the_largest_loss_named():
    table = made(ridge=lambda number: np.where(number < 1, 0.92, 0.85), few=0.95)
    found = findings.over_ridge(table)
    row = found.loc[("held-out", 20)]
    assert (row["sets"], row["better"], row["on"]) == (10, 9, "set 0")
    assert row["smallest"] == pytest.approx(-0.02)
    assert row["mean gain"].value == pytest.approx(0.9 * 0.05 - 0.1 * 0.02)
    assert (row["better by interval"], row["worse by interval"]) == (9, 1)
    assert found.loc[("held-out", 6), "better"] == 10
    assert findings.TARGET(found).value == "agrees"


def test_the_best_rival_is_the_one_with_the_highest_mean():
    found = findings.all_methods(made(logistic=0.87))
    assert list(found.index[:2]) == ["relaxation", "logistic"]
    assert findings.over_second(found).value == pytest.approx(0.03)


def test_without_held_out_sets_the_rules_are_not_tested():
    for one in findings.findings(made(kind="design")):
        assert {verdict.value for verdict in one.verdicts.values()} <= {"not tested"}
