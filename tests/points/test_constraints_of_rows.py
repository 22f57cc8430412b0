"""Constraints know their table: they refuse one with other rows, and give the constraints of some rows."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_validate

import diffrac_cvx as dc

N = 6
X = np.random.default_rng(0).standard_normal((N, 2))
ALL_LABELS = np.array(list(product((-1.0, 1.0), repeat=N)))
EACH = {
    "must_link": {"must_link": [(0, 1), (2, 5)]},
    "cannot_link": {"cannot_link": [(0, 1), (2, 5)]},
    "labels": {"labels": [1, None, None, -1, None, None]},
    "groups": {"groups": [0, 0, 1, 1, -1, 1]},
    "bags": {"bags": [[0, 1], [2, 4, 5]]},
    "order": {"order": [[0, 1, 2, 3]]},
    "sizes": {"sizes": (3, 5)},
    "at_most": {"at_most": ([[1, 1, 0, 0, 0, 0], [1, 2, 0, 0, 0, -1]], [0, -1])},
    "one inequality": {"at_most": ([1, 1, 1, 0, -1, 0], -1)},
    "one equation": {"equal": ([1, 1, 1, 1, 1, 0], 1)},
    "equal": {"equal": ([[1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 2, 0]], [0, 4])},
}
SUBSETS = ([0, 1, 2, 3, 4], [5, 2], [3, 1, 0, 2], [4], [5, 4, 3, 2, 1, 0])


def satisfying(constraints, labels):
    """Return those of all labels that satisfy constraints."""
    n, linear = labels.shape[1], constraints.linear_of(labels.shape[1])
    chunklets = constraints.chunklets_of(n)
    rows = []
    for y in labels:
        signs = y * chunklets.sign
        links = np.array_equal(chunklets.firsts(signs)[chunklets.membership], signs)
        known = chunklets.labeled < 0 or np.all(signs[chunklets.membership == chunklets.labeled] == 1.0)
        if links and known and (linear is None or not linear.violated(y)):
            rows.append(tuple(y))
    return set(rows)


@pytest.mark.parametrize("rows", SUBSETS, ids=str)
@pytest.mark.parametrize("name", EACH)
def test_constraints_of_some_rows_are_what_each_constraint_implies_for_their_labels(name, rows):
    given = EACH[name]
    whole = dc.Constraints(**given, n_points=N)
    part = whole.take(rows)
    assert part.n_points == len(rows)
    labels = np.array(list(product((-1.0, 1.0), repeat=len(rows))))
    implied = {tuple(np.array(y)[rows]) for y in satisfying(whole, ALL_LABELS)}
    found = satisfying(part, labels)
    if name in ("at_most", "equal"):  # two rows together may imply more than each
        assert found >= implied
    else:
        assert found == implied


def test_rows_may_be_a_mask_and_each_is_taken_once():
    whole = dc.Constraints(labels=EACH["labels"]["labels"], must_link=[(0, 4)])
    np.testing.assert_array_equal(whole.take(np.arange(N) < 4).labels, [1, 0, 0, -1])
    assert whole.take([4, 0]).must_link.tolist() == [[1, 0]]
    assert whole.take([0]).classes == whole.classes
    for rows in ([0, 0], [6], [-1], [0.5], [], [[0]], [True]):
        with pytest.raises(dc.DataError, match="rows"):
            whole.take(rows)
    with pytest.raises(dc.DataError, match="n_points="):
        dc.Constraints(sizes=(1, 2)).take([0, 1])


@pytest.mark.parametrize("name", EACH)
def test_a_table_with_other_rows_is_refused_with_what_to_do(name):
    constraints = dc.Constraints(**EACH[name], n_points=N)
    pairs = () if constraints.are_linear else (dc.low_rank, dc.structure_test)
    for call in (dc.optimal_labels, dc.penalized_nu, dc.DiffracClustering().fit, *pairs):
        with pytest.raises(dc.DataError, match=rf"{N}.* for 5 points.*constraints\.take\(rows\)"):
            call(X[:5], constraints=constraints)


def test_the_number_of_points_is_known_from_any_argument_that_has_one_entry_per_point():
    for name in ("labels", "groups", "at_most", "equal"):
        assert dc.Constraints(**EACH[name]).n_points == N
        with pytest.raises(dc.DataError, match=f"{name} has 6 .* for 7 points"):
            dc.Constraints(**EACH[name], n_points=7)
    assert dc.Constraints(**EACH["must_link"]).n_points is None
    with pytest.raises(dc.DataError, match="must_link contains point 9"):
        dc.Constraints(must_link=[(0, 9)], n_points=N)
    with pytest.raises(dc.ParameterError, match=r"n_points = 1\.5"):
        dc.Constraints(n_points=1.5)


@pytest.mark.parametrize("model", [dc.DiffracClustering(), dc.DiffracClusteringCV(lams=[0.0], ridges=[0.3])], ids=repr)
def test_each_fold_of_a_cross_validation_gets_the_constraints_of_its_rows(model):
    table, folds = np.random.default_rng(1).standard_normal((36, 2)), KFold(3)
    order = np.argsort(table[:, 0])
    pair = [int(order[order >= 24][0]), int(order[order >= 24][-1])]  # two rows of the last fold that are far apart
    with config_context(enable_metadata_routing=True):
        model = clone(model).set_fit_request(constraints=True)
        given = {"params": {"constraints": dc.Constraints(must_link=[pair], n_points=36)}, "error_score": "raise"}
        found = cross_validate(model, table, cv=folds, return_estimator=True, **given)
        for fitted, (rows, _) in zip(found["estimator"], folds.split(table), strict=True):
            labels = dict(zip(rows.tolist(), fitted.labels_.tolist(), strict=True))
            assert all(row in labels for row in pair) == (rows.max() == 35)
            assert rows.max() < 35 or labels[pair[0]] == labels[pair[1]]
        with pytest.raises(dc.DataError, match=r"whose rows have other numbers\. Pass n_points="):
            cross_validate(
                model, table, cv=folds, params={"constraints": dc.Constraints(must_link=[pair])}, error_score="raise"
            )


@pytest.mark.parametrize(
    "groups",
    [
        ["ann", "bob", "ann", "", "bob", None],
        np.array(["ann", "bob", "ann ", "-1", "bob", ""]),
        pd.Series(["ann", "bob", "ann", pd.NA, "bob", np.nan]),
        pd.Categorical(["ann", "bob", "ann", None, "bob", None]),
        pd.array([7, 3, 7, None, 3, -1], dtype="Int64"),
        [7.0, 3.0, 7.0, np.nan, 3.0, -1.0],
        np.array([7, 3, 7, -1, 3, -2], dtype=np.int16),
    ],
    ids=["list", "array", "series", "categories", "nullable", "float", "int"],
)
def test_groups_may_be_named_by_text_or_numbers(groups):
    chunklets = dc.Constraints(groups=groups).chunklets_of(6)
    assert chunklets.membership.tolist() == [0, 1, 0, 2, 1, 3]


@pytest.mark.parametrize("groups", [[0.5, 1.0], [[1, 2]], [True, False], 3, [{}, 1], [1j, 2]], ids=str)
def test_groups_that_name_none_are_refused(groups):
    with pytest.raises(dc.DataError, match="groups must contain one integer or text per point"):
        dc.Constraints(groups=groups)


@pytest.mark.parametrize("constraints", [0, False, [(0, 1)], {"must_link": [(0, 1)]}, "x"], ids=repr)
def test_constraints_of_another_type_are_refused_at_every_entrance(constraints):
    calls = [
        dc.low_rank, dc.optimal_labels, dc.penalized_nu, dc.v_space, dc.lifted, dc.compare, dc.structure_test,
        dc.DiffracClustering().fit, dc.DiffracClusteringCV().fit, partial(dc.baselines.alternating_optimization, rng=0),
        lambda X, **more: dc.certify_v(X, np.eye(2), **more), lambda X, **more: dc.paths.nu_path(X, [1.0], **more),
        lambda X, **more: dc.certify_labels(X, ALL_LABELS[0], 0.0, **more),
        lambda X, **more: dc.rounding.kmeans_centered(X, **more),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(dc.ParameterError, match=f"constraints is a {type(constraints).__name__}. Pass"):
            call(X, constraints=constraints)


def test_a_callback_that_is_no_function_is_refused_at_every_entrance():
    calls = [
        dc.low_rank, dc.fista, dc.optimal_labels, lambda X, **more: dc.optimal_partition(X, 2, **more),
        lambda X, **more: dc.optimal_partition(X, 3, **more), dc.compare,
        lambda X, **more: dc.DiffracClustering(**more).fit(X), lambda X, **more: dc.MultiLabelDiffrac(**more).fit(X),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(dc.ParameterError, match="callback = 5 is not a function"):
            call(X, callback=5)


def test_a_validation_without_end_or_without_a_solver_is_refused():
    with pytest.raises(dc.ParameterError, match=r"n_instances = 1e\+308 is more than"):
        dc.validate(dc.low_rank, 1e308)
    with pytest.raises(dc.ParameterError, match="solver = 5 is not a function"):
        dc.validate(5)
