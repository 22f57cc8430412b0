"""Feature groups and sign constraints in paths, plots and comparisons of methods."""

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx import registry
from diffrac_cvx.points.linear_algebra import standardize_columns

GROUPS = {"one": [0, 1], "two": [2, 3, 4], "three": [5]}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(1)
    y = rng.choice([-1.0, 1.0], 40)
    X = rng.standard_normal((40, 6))
    X[:, :2] += 1.2 * y[:, None]
    return standardize_columns(X)


@pytest.fixture(scope="module")
def path(X):
    unit = dc.Penalty(lam=[2.0, 3.0, 1.0], ridge=0.3, groups=GROUPS)
    return dc.paths.lambda_path(X, [0.0, 0.02, 0.1, 0.5], unit)


def test_a_path_of_groups_solves_the_penalty_with_groups_at_each_lambda_and_leaves_them_whole(X, path):
    for lam, lower, upper in zip(path.parameter, path.lower, path.upper, strict=True):
        penalty = dc.Penalty(lam=lam * np.array([2.0, 3.0, 1.0]), ridge=0.3, groups=GROUPS)
        alone = dc.low_rank(X, 1.0, penalty, tol=1e-5)
        assert max(lower, alone.lower) <= min(upper, alone.upper)
    assert path.groups.names == ("one", "two", "three")
    np.testing.assert_allclose(path.group_norms[:, 0], np.linalg.norm(path.directions[:, :2], axis=1), rtol=1e-9)
    assert np.all(np.diff((path.group_norms > 1e-3).sum(axis=1)) <= 0)
    assert path.group_norms[-1, 0] > 0.1
    assert path.group_norms[-1, 1] < 0.1 * path.group_norms[0, 1]


def test_a_path_of_nu_keeps_the_groups_of_its_penalty(X):
    penalty, signs = dc.Penalty(lam=0.1, ridge=0.3, groups=GROUPS), dc.Penalty(lam=0.01, ridge=0.3, nonnegative=[1])
    assert dc.paths.nu_path(-X, [0.5, 1.0], penalty).groups is penalty.groups
    assert dc.paths.nu_path(-X, [1.0]).groups.are_single
    assert np.all(dc.paths.nu_path(-X, [0.5, 1.0], signs).directions[:, 1] > 0.0)


ASKED = ("low_rank", "fista", "v_space/CLARABEL", "v_space_normalized/CLARABEL", "k-means", "penalized_nu/CLARABEL")


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        pytest.param({"lam": 0.05, "groups": GROUPS}, "it takes no feature groups", marks=pytest.mark.slow),
        ({"ridge": 0.1, "nonnegative": [0, 1, 2]}, "it takes no sign constraints"),
    ],
)
def test_methods_agree_on_groups_and_signs_or_say_that_they_take_none(X, options, refused):
    found = dc.compare(X, methods=ASKED, penalty=dc.Penalty(**{"ridge": 0.1, **options}))
    assert found.disagreements == ()
    assert set(found.results) == set(ASKED[:4])
    assert found.notes[-1] == f"penalized_nu/CLARABEL was skipped: {refused}"
    assert any("methods that ignore the penalty: " in note for note in found.notes)
    exact = [one.bounds for name, one in found.method_results.items() if name in ASKED[:3]]
    assert max(bounds.lower for bounds in exact) <= min(bounds.upper for bounds in exact)
    normalized = found.method_results["v_space_normalized/CLARABEL"].bounds
    assert np.isfinite(normalized.lower) == ("lam" not in options)
    assert normalized.upper >= max(bounds.lower for bounds in exact)


def test_one_group_of_all_is_a_ridge_that_the_relaxation_in_the_labels_takes(X):
    whole = dc.Penalty(lam=0.2, groups=[0] * 6)
    assert registry.penalty_parts(whole) == ["ridge"]
    found = dc.compare(X, methods=["low_rank", "penalized_nu/CLARABEL"], penalty=whole)
    assert found.disagreements == ()
    assert len(found.results) == 2
    assert registry.penalty_parts(dc.Penalty(ridge=0.3, groups=GROUPS)) == ["ridge"]
    assert registry.penalty_parts(dc.Penalty(lam=0.2, groups=range(6))) == ["l1"]
