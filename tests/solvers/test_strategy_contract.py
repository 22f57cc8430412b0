"""The contract of a strategy of `low_rank`, and of a fast solver: one suite for all, each on a problem of its own kind.

Bounds, limits, callbacks, warm starts, and answers that no clock decides.  A new one is tested by an entry in `CASES`.
"""

import time
from functools import cache

import numpy as np
import pytest
from instances import assert_overlap, normal, planted

import diffrac_cvx as dc
from diffrac_cvx import registry
from diffrac_cvx.solvers.factored import solver
from diffrac_cvx.solvers.factored.solver import BLOCKS, ONE_BLOCK, PATTERN, WORKING_SET

ALL = solver.STRATEGIES  # of which a case replaces those that race
WIDE = normal(20, 210) + 2.0 * np.outer(np.where(np.arange(20) % 2, 1.0, -1.0), np.arange(210) < 3)
CASES = {  # strategies, or the name of a solver; data, nu, penalty, and the gap that it reaches
    "blocks": ((BLOCKS,), planted(60, 30), 0.5, dc.Penalty.l1(0.15), 1e-6),
    "pattern": ((PATTERN,), planted(60, 12, sparsity=3), 1.0, dc.Penalty(a=0.1, c=0.14), 1e-6),
    "one block": ((ONE_BLOCK,), normal(30, 6), 0.5, dc.Penalty(a=0.1, c=0.2), 1e-6),
    "one block without l1": ((ONE_BLOCK,), normal(30, 6), 1.0, dc.Penalty(a=0.1), 1e-6),
    "working set": ((WORKING_SET,), WIDE, 1.0, dc.Penalty(lam=0.1, ridge=0.3), 1e-3),
    "samples": (ALL, normal(3000, 4), 0.6, dc.Penalty(a=0.1), 1e-6),
    "all of them": (ALL, normal(40, 20), 0.5, dc.Penalty(a=0.1, c=0.1), 1e-6),
    "fista": ("fista", normal(), 0.5, dc.Penalty(c=0.2), 1e-3),
    "fista published": ("fista published", normal(), 0.5, dc.Penalty(c=0.2), 5e-2),
}
each = pytest.mark.parametrize("name", CASES)


@pytest.fixture
def solve(name, monkeypatch, request):
    """Function that solves the problem of a case by its strategies alone."""
    strategies, X, nu, penalty, tol = CASES[name]
    if name == "samples":
        request.getfixturevalue("sample_small_tables")
    if isinstance(strategies, str):
        run = registry.SOLVERS[strategies].function
    else:
        monkeypatch.setattr(solver, "STRATEGIES", strategies)
        run = dc.low_rank
    return lambda **options: run(X, nu, penalty, **{"tol": tol} | options)


@cache
def optimum(name):
    """Bounds on the optimum, by all strategies, a little narrower than asked of one."""
    _, X, nu, penalty, tol = CASES[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solver, "STRATEGIES", ALL)
        return dc.low_rank(X, nu, penalty, tol=tol / 3)


def assert_valid(result, name):
    """Check what holds at any status: valid bounds, at every step, which only get narrower."""
    X, (_, _, nu, penalty, _) = CASES[name][1], CASES[name]
    iterations, seconds, lower, upper = np.array(result.history).reshape(-1, 4).T
    assert np.all(np.diff([iterations, seconds, lower, -upper]) >= 0)
    assert np.all(lower <= optimum(name).upper + 1e-12)
    assert np.all(upper >= optimum(name).lower - 1e-12)
    if len(result.history):
        assert result.lower == pytest.approx(lower[-1], abs=1e-9)
        assert result.upper <= upper[-1] + 1e-9  # of the last point, whose bounds the limit may have cut off
    assert 0.0 <= result.lower <= result.value == result.upper <= 1.0
    if name != "working set" or result.status is dc.Status.OPTIMAL:  # far from the optimum of a wide table it is slow
        assert dc.certify_v(X, result, nu, penalty).upper == pytest.approx(result.upper, abs=1e-9)
    np.testing.assert_allclose(np.sum(result.F**2, axis=1), 1.0, rtol=1e-12)


def test_every_strategy_and_every_fast_solver_has_a_case():
    used = [strategies for strategies, *_ in CASES.values()]
    assert {some for some in used if len(some) == 1} == {(strategy,) for strategy in ALL}
    assert set(registry.SOLVERS) == {"low_rank", *(name for name in used if isinstance(name, str))}


@each
def test_it_reaches_its_gap_with_valid_bounds_at_every_step(name, solve):
    result = solve()
    assert_valid(result, name)
    assert result.status is dc.Status.OPTIMAL
    assert result.gap <= CASES[name][-1]


@each
@pytest.mark.parametrize("max_iter", [1, 7, 61])
def test_it_takes_no_more_steps_than_it_may(name, solve, max_iter):
    result = solve(tol=1e-12, max_iter=max_iter)
    assert_valid(result, name)
    assert result.n_iter <= max_iter
    assert result.gap <= 1e-12 or result.status is not dc.Status.OPTIMAL


@each
def test_a_limit_of_time_leaves_a_valid_bracket(name, solve):
    result = solve(tol=1e-15, time_limit=0.02, max_iter=10**6)
    assert_valid(result, name)
    assert result.seconds < 5.0  # machines may be busy
    assert result.status in (dc.Status.TIME_LIMIT, dc.Status.STALLED) or result.gap <= 1e-15


@each
def test_the_callback_sees_the_history_and_stops_it(name, solve):
    seen = []

    def second_time(progress):
        seen.append(progress)
        return len(seen) == 2

    result = solve(tol=1e-13, callback=second_time)
    assert result.history == tuple(seen)
    assert result.status is dc.Status.STOPPED
    assert_valid(result, name)


@pytest.mark.parametrize("name", [name for name in CASES if name != "working set"])  # which takes no start
def test_a_start_at_the_solution_is_no_detour_and_a_poor_one_does_no_harm(name, solve, monkeypatch):
    cold, best = solve(), optimum(name)
    if not isinstance(CASES[name][0], str):  # a strategy may take no start, or not any start
        monkeypatch.setattr(solver, "STRATEGIES", tuple(dict.fromkeys((*CASES[name][0], ONE_BLOCK))))
    tol = max(CASES[name][-1], 1e-4)
    warm = solve(tol=tol, start=cold)
    assert warm.gap <= tol
    assert warm.n_iter <= cold.n_iter + 10
    d = CASES[name][1].shape[1]
    for diagonal in ([-1.0], [1e12], [1.0, 0.0]):
        poor = solve(tol=max(tol, 1e-3), start=np.diag(np.resize(diagonal, d)))
        assert_overlap(poor, best)


@each
def test_the_same_call_gives_the_same_answer_however_slow_the_clock(name, solve, monkeypatch):
    """A slow machine, another load, another clock: only work is counted."""
    before, clock, ticks = solve(), time.monotonic, iter(range(10**9))
    monkeypatch.setattr(time, "monotonic", lambda: 50.0 * clock() + next(ticks))
    after = solve()
    assert [(line.iteration, line.lower, line.upper) for line in before.history] == [
        (line.iteration, line.lower, line.upper) for line in after.history
    ]
    np.testing.assert_array_equal(before.F, after.F)
    assert before.status is after.status
