"""Constraints are satisfied in roundings, the label search, paths, comparisons and certificates."""

from functools import partial

import numpy as np
import pytest
from instances import satisfies

import diffrac_cvx as dc
from diffrac_cvx.rounding import ROUNDINGS, apply_constraints, goemans_williamson, refine

pytestmark = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")

X, TRUTH, _ = dc.datasets.make_planted(60, 4, noise=0.8, rng=3)
KNOWN = np.where(np.arange(60) < 6, -TRUTH, np.nan)  # deliberately wrong: the known labels contradict the data
CONSTRAINTS = {
    "pairs": dc.Constraints(must_link=[(0, 1), (1, 2), (10, 11)], cannot_link=[(2, 3), (20, 21), (21, 22)]),
    "known": dc.Constraints(labels=KNOWN),
    "both": dc.Constraints(must_link=[(7, 8), (8, 0)], cannot_link=[(8, 9)], labels=KNOWN),
    "groups": dc.Constraints(groups=np.arange(60) // 5),
}
RELAXATIONS = (dc.v_space, dc.lifted, dc.penalized_nu, dc.v_space_normalized)
each_constraints = pytest.mark.parametrize("constraints", CONSTRAINTS.values(), ids=CONSTRAINTS)


@each_constraints
@pytest.mark.parametrize("name", [*ROUNDINGS, "goemans_williamson"])
def test_a_rounding_satisfies_constraints_whatever_the_factor(name, constraints):
    rounding = ROUNDINGS.get(name, partial(goemans_williamson, rng=0))
    for F in (
        dc.low_rank(X, constraints=constraints).F,
        dc.low_rank(X).F,
        np.random.default_rng(0).standard_normal((60, 3)),
    ):
        assert satisfies(rounding(F, constraints=constraints), constraints)


@each_constraints
def test_local_search_satisfies_constraints_and_is_no_worse_than_its_start(constraints):
    assert satisfies(dc.baselines.alternating_optimization(X, rng=0, constraints=constraints), constraints)
    y = apply_constraints(TRUTH, constraints)
    assert satisfies(refine(X, y, constraints=constraints), constraints)
    before, after = (
        dc.certify_labels(X, labels, 0.0, constraints=constraints).objective
        for labels in (y, refine(X, y, constraints=constraints))
    )
    assert after <= before + 1e-9


def test_the_majority_of_linked_points_decides():
    constraints = dc.Constraints(must_link=[(0, 1), (1, 2)], cannot_link=[(3, 4)])
    np.testing.assert_array_equal(apply_constraints([1, 1, -1, 1, -1], constraints), [1, 1, 1, 1, -1])
    np.testing.assert_array_equal(apply_constraints([0.1, 0.1, -1.0, 1.0, 2.0], constraints), [-1, -1, -1, -1, 1])
    np.testing.assert_array_equal(
        apply_constraints([0.1, 0.1, -1.0, 1, -1], constraints, np.array([0.4, 0.4, 0.05, 0.1, 0.05])), [1, 1, 1, 1, -1]
    )
    for none in (None, dc.Constraints()):  # a score of zero is a label, too
        np.testing.assert_array_equal(apply_constraints([0.0, -1.0, 0.5, -0.0, -1e-300], none), [1, -1, 1, 1, -1])


def test_methods_agree_with_constraints_and_their_labels_satisfy_them():
    inside = dc.Constraints(must_link=[(7, 8), (8, 0), (10, 11)], cannot_link=[(8, 9), (2, 3)])
    found = dc.compare(X[:20], TRUTH[:20], ridge=0.1, constraints=inside, tol=1e-3)
    assert not found.disagreements
    assert {"low_rank", "fista", "v_space/CLARABEL", "lifted/CLARABEL", "penalized_nu/CLARABEL", "alternating"} <= set(
        found.labels
    )
    assert "k-means" not in found.labels
    assert any("takes no constraints" in note for note in found.notes)
    for labels in found.labels.values():
        assert satisfies(labels, inside)


def test_labels_that_violate_constraints_are_refused_by_their_certificate():
    constraints = dc.Constraints(must_link=[(0, 1)])
    y = np.where(np.arange(60) == 0, 1.0, -1.0)
    with pytest.raises(dc.DataError, match="violate the constraints at point 1"):
        dc.certify_labels(X, y, 0.0, constraints=constraints)
    known = dc.Constraints(labels=KNOWN)
    either = (
        dc.certify_labels(X, sign * apply_constraints(TRUTH, known), 0.0, constraints=known).objective
        for sign in (1.0, -1.0)
    )
    assert len(set(either)) == 1
    lower = dc.low_rank(X, constraints=known)
    assert dc.certify_labels(X, apply_constraints(TRUTH, known), lower, constraints=known).gap >= 0.0


@pytest.mark.parametrize(
    "call",
    [
        lambda constraints: dc.rounding.kmeans_centered(X, constraints=constraints),
        lambda constraints: dc.rounding.refine(X, TRUTH, constraints=constraints),
        lambda constraints: dc.baselines.alternating_optimization(X, rng=0, constraints=constraints),
        lambda constraints: dc.paths.nu_path(X, [1.0], constraints=constraints),
        lambda constraints: dc.compare(X, constraints=constraints),
        lambda constraints: dc.certify_labels(X, TRUTH, 0.0, constraints=constraints),
        lambda constraints: dc.certify_y(X, X, constraints=constraints),
        lambda constraints: dc.fista(X, constraints=constraints),
        *(lambda constraints, build=build: build(X, constraints=constraints) for build in RELAXATIONS),
    ],
)
def test_constraints_that_do_not_fit_are_an_error_everywhere(call):
    with pytest.raises(dc.DataError, match="contains point 60"):
        call(dc.Constraints(must_link=[(0, 60)]))
    with pytest.raises(dc.DataError, match="on points "):
        call(dc.Constraints(must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)]))
