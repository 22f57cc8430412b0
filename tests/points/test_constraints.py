"""Constraints: their chunklets, contradictions and invalid input."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import diffrac_cvx as dc
from diffrac_cvx.points.constraints import chunklets_of


def test_the_labels_that_groups_allow_are_those_that_satisfy_the_constraints():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 8))
        y = rng.choice([-1, 1], n)
        pairs = rng.integers(0, n, (int(rng.integers(0, 6)), 2))
        pairs = np.vstack([pairs, pairs[:1]])  # a pair may be there twice, or be a point with itself
        alike = y[pairs[:, 0]] == y[pairs[:, 1]]
        known = np.where(rng.random(n) < 0.3, y, 0) if rng.integers(2) else None
        numbers = np.where(y == 1, rng.integers(-1, 2, n), -1) if rng.integers(2) else None
        chunklets = dc.Constraints(pairs[alike], pairs[~alike], known, numbers, unlabelled=0).chunklets_of(n)
        found = {
            tuple(chunklets.labels_from_signs(np.array(signs)))
            for signs in product((-1.0, 1.0), repeat=chunklets.n_chunklets)
        }
        expected = set()
        for tried in product((-1.0, 1.0), repeat=n):
            z = np.array(tried)
            holds = np.array_equal(z[pairs[:, 0]] == z[pairs[:, 1]], alike)
            holds &= known is None or bool(np.all(z[known != 0] == known[known != 0]))
            holds &= numbers is None or all(len(set(z[numbers == g])) <= 1 for g in (0, 1))
            if holds:
                expected.add(tried)
        assert found == expected


@pytest.mark.parametrize(
    ("labels", "how", "classes", "expected"),
    [
        (["ill ", None, " well", float("nan"), pd.NA, "", " "], {}, ("ill", "well"), [-1, 0, 1, 0, 0, 0, 0]),
        (pd.Series(["b", pd.NA, "a"], dtype="string"), {}, ("a", "b"), [1, 0, -1]),
        ([3.0, np.nan, 5.0], {}, (3.0, 5.0), [-1, 0, 1]),
        ([-1, 1, 1], {}, (-1, 1), [-1, 1, 1]),
        ([-1, None, 0], {}, (-1, 0), [-1, 0, 1]),
        ([-1, 0, 1], {"unlabelled": 0}, (-1, 1), [-1, 0, 1]),
        ([-1, 0, 0], {"unlabelled": -1}, (None, 0), [0, 1, 1]),
        (["-1", "ill", "ill"], {"unlabelled": -1}, (None, "ill"), [0, 1, 1]),
        ([-1, 0, 0], {"unlabelled": np.nan}, (-1, 0), [-1, 1, 1]),
    ],
)
def test_labels_are_two_classes_and_marks_of_unlabelled_points(labels, how, classes, expected):
    constraints = dc.Constraints(labels=labels, **how)
    np.testing.assert_array_equal(constraints.labels, expected)
    assert constraints.classes == classes


@pytest.mark.parametrize(
    "labels",
    [[-1, 0, 1, 0], [-1.0, 0.0, 1.0, 0.0], ["-1", "ill", "well", "ill"], np.array([-1, "a", "b", "a"], dtype=object)],
)
def test_minus_one_beside_two_other_values_marks_unlabelled_points_with_a_warning(labels):
    with pytest.warns(dc.DegenerateDataWarning, match="-1 in labels marks unlabelled points, .* Pass unlabelled="):
        np.testing.assert_array_equal(dc.Constraints(labels=labels).labels, [0, -1, 1, -1])


def test_points_none_of_which_has_a_known_label_are_in_no_chunklet_of_known_labels():
    chunklets = dc.Constraints(must_link=[(0, 1), (2, 3)], labels=[-1, *[None] * 4]).chunklets_of(5)
    apart = chunklets.subset(np.array([False, False, True, True, True]))
    assert apart.labeled == -1
    np.testing.assert_array_equal(apart.labels_from_signs(np.array([1.0, -1.0])), [1.0, 1.0, -1.0])
    assert chunklets.subset(np.array([False, True, True, False, False])).labeled == 0


def test_without_constraints_the_operations_of_chunklets_are_those_of_single_points_and_copy_nothing():
    rng, none, singles = np.random.default_rng(3), chunklets_of(None, 9), dc.Constraints().chunklets_of(9)
    F, x = rng.standard_normal((9, 2)), rng.standard_normal(9)
    for name in ("signed_sums", "expand", "repeat", "firsts"):
        assert getattr(none, name)(F) is F
        np.testing.assert_array_equal(getattr(singles, name)(F), F)
    assert none.sums(x) is x
    np.testing.assert_array_equal(singles.sums(x), x)
    units = F / np.linalg.norm(F, axis=1)[:, None]
    np.testing.assert_allclose(none.common_unit_rows(units), singles.common_unit_rows(units), rtol=1e-15)
    np.testing.assert_array_equal(none.assign_labels(x), singles.assign_labels(x))
    np.testing.assert_array_equal(none.adjust_labels(np.sign(x), x), singles.adjust_labels(np.sign(x), x))
    assert none.means(F)[0] is F
    assert none.max_size == none.n_roundings == 0
    assert none.labeled == singles.labeled == -1


@pytest.mark.parametrize(
    ("constraints", "allowed"),
    [
        (None, True),
        (dc.Constraints(must_link=[(0, 1), (1, 4)]), True),
        (dc.Constraints(labels=[None, -1, None, -1, None]), True),
        (dc.Constraints(labels=[None, -1, None, 1, None]), False),
        (dc.Constraints(cannot_link=[(2, 3)]), False),
    ],
)
def test_one_cluster_is_allowed_unless_two_points_have_to_differ(constraints, allowed):
    X = np.random.default_rng(0).standard_normal((5, 2))
    assert chunklets_of(constraints, 5).allows_one_cluster == allowed
    result = dc.low_rank(X, nu=0.0, ridge=0.1, constraints=constraints)
    assert (result.status is dc.Status.CLOSED_FORM) == allowed
    assert (result.upper < 1e-9) == allowed
