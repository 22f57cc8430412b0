"""V on a pattern: it agrees with `low_rank`, its derivatives are exact, and it refuses what it cannot solve quickly."""

import numpy as np
import pytest
from instances import assert_overlap, planted

import diffrac_cvx as dc
from diffrac_cvx.points.reading import read_points
from diffrac_cvx.problem.direction_problem import direction_problem
from diffrac_cvx.solvers.driver import Iterate, Stopping, WarmStart
from diffrac_cvx.solvers.factored import pattern
from diffrac_cvx.solvers.race import Pause


def solve(X, nu, penalty, tol, max_iter, sample_weight=None):
    problem = direction_problem(read_points(X, sample_weight).X, nu, penalty)
    return pattern.pattern_iterates(problem, WarmStart(), Stopping(tol, max_iter))


def check(X, nu, penalty, sample_weight=None):
    """Check that the pattern and the other strategies enclose one optimum."""
    points = [one for one in solve(X, nu, penalty, 1e-7, 200, sample_weight) if isinstance(one, Iterate)]
    found = dc.Bracket(max(one.bound.lower for one in points), min(one.point.value for one in points))
    assert found.gap <= 1e-6
    assert_overlap(found, dc.low_rank(X, nu, penalty, tol=1e-8, sample_weight=sample_weight), 1e-9)


UNEQUAL = np.linspace(0.05, 0.3, 12)


@pytest.mark.parametrize("nu", [1.0, 0.4])
@pytest.mark.parametrize(
    "penalty",
    [
        dc.Penalty.l1(0.02),
        dc.Penalty(c=UNEQUAL),
        dc.Penalty(a=UNEQUAL[::-1], c=UNEQUAL),
        dc.Penalty(c=np.where(np.arange(12) < 2, 0.0, 0.15)),
    ],
    ids=["equal weights", "unequal weights", "ridge", "two free coordinates"],
)
def test_the_pattern_and_the_other_strategies_enclose_one_optimum(nu, penalty):
    check(planted(60, 12, sparsity=3), nu, penalty)


def test_sample_weights_and_zero_rows_take_part():
    X = planted(60, 12, sparsity=3)
    X[:2] = X[2:].mean(axis=0)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    weights[:2] = 1.0
    X -= weights @ X / weights.sum()
    X[:2] = 0.0
    check(X, 1.0, dc.Penalty.l1(0.02), weights)


def test_it_ends_after_few_steps_if_most_pairs_are_in_v():
    points = list(solve(planted(400, 60, sparsity=3), 1.0, dc.Penalty.l1(1e-5), 1e-6, 200))
    assert all(isinstance(point, Pause) for point in points)
    assert len(points) <= 8
    slow = solve(planted(1500, 30, sparsity=3), 1.0, dc.Penalty.l1(0.05 / 1500**0.5), 1e-6, 200)
    assert len(list(slow)) <= 6  # each pair that enters leaves nearly as many violated


def test_an_optimum_of_zero_in_double_precision_is_solved():
    signs = np.array([[-1, 1], [-1, -1], [1, -1], [1, 1], [1, 1], [-1, -1], [1, 1], [-1, -1]])
    found = dc.optimal_labels(signs * [1e15, 1e11], lam=0.5, ridge=1.0, tol=1e-9)
    assert 0.0 <= found.lower <= found.upper <= 1e-9
