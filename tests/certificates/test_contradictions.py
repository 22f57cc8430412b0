"""Consistency check of lower bounds against labels found in other coordinates: a contradiction is not a zero gap."""

import pickle

import numpy as np
import pytest
from posed import drop_beside_the_largest

import diffrac_cvx as dc
from diffrac_cvx.certificates import bound_search, label_bounds
from diffrac_cvx.certificates.consistency import RoundingBound
from diffrac_cvx.points.checks import as_data
from diffrac_cvx.points.constraints import Chunklets
from diffrac_cvx.points.table import array_table
from diffrac_cvx.problem import direction_problem as problems
from diffrac_cvx.problem.result import Status

HUGE = np.array([[1e15, 3, 0, 0], [-1e15, 3, 0, 0], [0, -6, 0, 0]])


@pytest.fixture
def wrong_coordinates(monkeypatch):
    monkeypatch.setattr(problems, "whitener_with_ridge", drop_beside_the_largest)


def test_labels_cheaper_than_a_bound_are_no_gap_of_zero():
    y = np.array([1.0, 1.0, -1.0])
    words = r"is at most 0\.1578.*below the lower bound 0\.333"
    with pytest.raises(dc.InvalidBoundError, match=words) as caught:
        dc.certify_labels(HUGE, y, 1 / 3, ridge=1.0)
    assert caught.value.objective < caught.value.lower == 1 / 3
    with pytest.raises(dc.InvalidBoundError, match="these clusters"):
        dc.certify_clusters(HUGE, [0, 0, 1], 1 / 3, ridge=1.0)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.lower, copy.objective, str(copy)) == (caught.value.lower, caught.value.objective, str(caught.value))


@pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")
@pytest.mark.parametrize("solver", ["low_rank", "fista", "CLARABEL"])
def test_a_false_bound_is_withdrawn_by_every_solver(wrong_coordinates, solver):
    by_cvxpy = solver == "CLARABEL"
    result = dc.solve(dc.v_space(HUGE, ridge=1.0), solver) if by_cvxpy else getattr(dc, solver)(HUGE, ridge=1.0)
    assert result.status is Status.INVALID_BOUND
    assert result.lower == 0.0
    assert result.invalid_bound.lower > 0.3 > 0.16 > result.invalid_bound.upper
    assert "invalid_bound=(0.33" in repr(result)


def test_a_false_bound_in_the_space_of_labels_is_withdrawn(monkeypatch):
    X = np.random.default_rng(0).standard_normal((12, 3))
    true = label_bounds.lower_bound_of_mean
    monkeypatch.setattr(label_bounds, "lower_bound_of_mean", lambda x: true(x) + 0.9)
    result = dc.solve(dc.penalized_nu(X), "CLARABEL")
    assert result.status is Status.INVALID_BOUND
    assert result.lower == 0.0
    with pytest.raises(dc.InvalidBoundError):
        dc.certify_y(X, result.F)


def test_a_bound_above_the_value_of_its_own_point_is_not_cut_down_to_it(monkeypatch):
    X = np.random.default_rng(0).standard_normal((30, 3))
    result = dc.low_rank(X, tol=1e-4)
    monkeypatch.setattr(bound_search, "bound_at", lambda t, mean, roundings=0: 1 - 0.5 * t * mean)
    with pytest.raises(dc.InvalidBoundError):
        dc.certify_v(X, result)
    assert dc.low_rank(X, tol=1e-4).status is Status.INVALID_BOUND


# The labels that bounds are held against


def test_labels_of_linked_points_satisfy_their_constraints():
    X, sign = as_data(np.random.default_rng(0).standard_normal((12, 3))), np.where(np.arange(12) % 3, 1.0, -1.0)
    judged = RoundingBound(array_table(X, None, Chunklets(np.arange(12) // 6, sign, -1)), 1.0, dc.Penalty(ridge=0.1))
    for F in (X, np.random.default_rng(1).standard_normal((12, 2))):
        both = judged.round_labels(F, None) * sign
        assert abs(both[:6].sum()) == abs(both[6:].sum()) == 6.0


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("nu", [0.3, 1.0])
def test_no_bound_is_withdrawn_where_nothing_is_wrong(nu):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.choice([0.0, 1.0, -1.0], (int(rng.integers(3, 12)), int(rng.integers(1, 6)))) + 1e-12 * seed
        X[0] += 1.0
        result = dc.low_rank(X, nu, ridge=float(rng.choice([0.0, 1e-6, 1.0])), tol=1e-9, max_iter=300)
        assert result.invalid_bound is None
        assert result.status is not Status.INVALID_BOUND
