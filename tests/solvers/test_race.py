"""The race of the strategies: slices of counted work, shared bounds, and answers that no clock decides."""

from types import SimpleNamespace

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.certificates.proof import Bound
from diffrac_cvx.machine import deadlines
from diffrac_cvx.machine.deadlines import EarlyExitError
from diffrac_cvx.machine.work import CALL_OPERATIONS, count_work
from diffrac_cvx.problem.direction_problem import PrimalPoint
from diffrac_cvx.problem.result import Bracket, Status
from diffrac_cvx.solvers.driver import Iterate, Stopping, WarmStart
from diffrac_cvx.solvers.race import FIRST_SLICE, PATIENCE, Pause, Runner, Strategy, later_round, race

STOPPING = Stopping(1e-6, 1000)


def strategy(name, steps, *, cost=FIRST_SLICE / 3, first_operations=FIRST_SLICE / 10, applies=True, fails=None):
    """Return a strategy that certifies these bounds, at a cost each; its iterates carry its name."""

    def iterates(problem, warm_start, stopping):
        yield Pause(first_operations)
        for i, bounds in enumerate(steps):
            count_work(cost - CALL_OPERATIONS)
            if bounds is None:
                yield Pause()
                continue
            lower, upper = bounds
            yield Iterate(name, i + 1, point=PrimalPoint(name, upper, None), bound=Bound(lower))
        stopping.check_deadline()
        if fails is not None:
            raise fails

    return Strategy(iterates, lambda *_: applies)


def run(*strategies, stopping=STOPPING):
    return list(race(strategies, SimpleNamespace(), WarmStart(), stopping))


def test_each_strategy_gets_a_slice_in_turn_until_one_has_a_lower_bound():
    found = run(strategy("a", [(0.0, 1.0)] * 5), strategy("b", [(0.0, 1.0)] * 5))
    assert "".join(point.U for point in found) == "aaabbb" + "aabb"


def runner(lower, upper, *, used=0.0, in_vain=0):
    """Return a strategy in a race that has certified these bounds."""
    one = Runner(iter(()))
    one.bounds, one.used, one.in_vain = Bracket(lower, upper), used, in_vain
    return one


def fractions(racing):
    return [(racing.index(one), fraction) for one, fraction in later_round(racing)]


def test_the_smallest_gap_gets_a_whole_slice_and_others_up_to_three_times_as_large_an_eighth():
    racing = [runner(0.0, 1.0), runner(0.2, 0.49), runner(0.2, 0.4), runner(0.2, 0.3), runner(0.2, 0.51)]
    assert fractions(racing) == [(3, 1.0), (2, 1 / 8), (1, 1 / 8)]  # the others wait
    assert fractions([runner(0.5, 0.9), runner(0.0, 1.0)]) == [(0, 1.0), (1, 1 / 8)]  # no bound, but near


def test_strategies_whose_slices_were_in_vain_come_last_and_of_equal_gaps_the_least_used_comes_first():
    racing = [runner(0.2, 0.3, in_vain=PATIENCE), runner(0.2, 0.4, used=2.0), runner(0.2, 0.4, used=1.0)]
    assert fractions(racing) == [(2, 1.0), (1, 1 / 8), (0, 1 / 8)]
    racing[0].in_vain -= 1
    assert fractions(racing) == [(0, 1.0), (2, 1 / 8), (1, 1 / 8)]


def test_the_strategy_with_the_smallest_gap_comes_first_while_it_progresses():
    found = run(strategy("a", [(0.1, 0.9)] * 40), strategy("b", [(0.1, 0.1 + 0.7 * 0.97**i) for i in range(40)]))
    order = "".join(point.U for point in found)
    assert order.startswith("aaabbb" + "b" * 6 + "a" + "b" * 12 + "aa" + "b")


def test_a_strategy_without_progress_gives_way_after_two_whole_slices_until_all_are_without():
    found = run(strategy("a", [(0.1, 0.8)] * 90, cost=FIRST_SLICE), strategy("b", [(0.1, 0.9)] * 90, cost=FIRST_SLICE))
    order = "".join(point.U for point in found)
    assert order.startswith("ab" + "aab" + "aaaa" + "b" * 8 + "a" + "b" * 16 + "aa" + "a" * 32 + "b")


@pytest.mark.parametrize("gap", [0.8, 0.3], ids=["asleep", "behind"])
def test_no_strategy_is_dropped_while_it_could_go_on(gap):
    """The leader stands still; one that waits, or that comes last, is the only one that reaches the tolerance."""
    late = strategy("b", [(0.1, 0.1 + gap)] * 9 + [(0.11, 0.11)])
    found = run(strategy("a", [(0.1, 0.2)] * 2000), late, strategy("c", [(0.1, 0.25)] * 2000))
    order = "".join(point.U for point in found)
    assert order.count("b") == 10
    assert order.rindex("b") < 400


def test_the_others_go_on_to_their_ends_if_the_leader_has_ended():
    found = run(strategy("a", [(0.1, 0.2)]), strategy("b", [(0.1, 0.9)] * 60), strategy("c", [(0.1, 0.95)] * 60))
    assert [sum(point.U == name for point in found) for name in "abc"] == [1, 60, 60]


def test_a_relative_gap_of_one_percent_ends_the_first_round():
    cost = FIRST_SLICE / 16
    found = run(strategy("a", [(0.991, 1.0)] * 60, cost=cost), strategy("b", [(0.1, 0.8)] * 60, cost=cost))
    assert "".join(point.U for point in found).startswith("a" * 60 + "b")
    found = run(strategy("a", [(0.98, 1.0)] * 60, cost=cost), strategy("b", [(0.1, 0.8)] * 60, cost=cost))
    assert "".join(point.U for point in found).startswith("a" * 16 + "b" * 16)


def test_a_strategy_waits_until_it_may_use_the_operations_of_its_first_iterate():
    late = strategy("b", [(0.0, 1.0)] * 3, first_operations=6 * FIRST_SLICE)
    found = run(strategy("a", [(0.0, 1.0)] * 30, cost=FIRST_SLICE), late)
    order = "".join(point.U for point in found)
    assert order.index("b") == 7  # after slices of 1, 2 and 4
    with_limit = strategy("b", [(0.0, 1.0)] * 3, first_operations=1e3 * FIRST_SLICE)
    order = "".join(point.U for point in run(strategy("a", [(0.0, 1.0)] * 30, cost=FIRST_SLICE), with_limit))
    assert order == "a" * 30 + "b" * 3  # the last one runs without a limit


def test_iterations_of_all_strategies_are_counted_together_up_to_the_maximum():
    found = run(strategy("a", [(0.0, 1.0)] * 5), strategy("b", [None, (0.0, 1.0)] * 5), stopping=Stopping(1e-6, 8))
    counts = [point.n_iter for point in found]
    assert counts == sorted(counts)
    assert counts[-1] == 8


def test_the_failure_of_one_strategy_is_not_that_of_the_others():
    failed = strategy("a", [(0.1, 0.9)], fails=np.linalg.LinAlgError("singular"))
    full = strategy("m", [], fails=EarlyExitError(Status.OUT_OF_MEMORY))
    points = race((failed, full, strategy("b", [(0.1, 0.8)] * 9)), SimpleNamespace(), WarmStart(), STOPPING)
    found = [next(points) for _ in range(10)]
    assert [point.U for point in found].count("b") == 9
    with pytest.raises(np.linalg.LinAlgError):  # and is told if nothing is left to do
        next(points)
    with pytest.raises(KeyError):
        run(strategy("a", [(0.1, 0.9)], fails=KeyError()), strategy("b", [(0.1, 0.8)] * 9))
    late = strategy("a", [(0.1, 0.9)], fails=EarlyExitError(Status.TIME_LIMIT))
    points = race((late, strategy("b", [(0.1, 0.8)] * 9)), SimpleNamespace(), WarmStart(), STOPPING)
    assert [next(points).U for _ in range(10)] == ["a"] + ["b"] * 9  # the step of one is too long for the time left
    with pytest.raises(EarlyExitError, match="time"):
        next(points)
    over = Stopping(1e-6, 1000, time_limit=1e-9)
    points = race((strategy("a", [(0.1, 0.9)]), strategy("b", [(0.1, 0.8)])), None, WarmStart(), over)
    assert next(points).U == "a"
    with pytest.raises(EarlyExitError, match="time"):  # the limit itself ends all of them
        next(points)


def test_a_step_that_is_too_long_for_the_time_left_does_not_end_the_others():
    X = dc.datasets.make_planted(300, 100, 5, noise=0.3, rng=0).X
    without = dc.low_rank(X, lam=0.05 / 300**0.5, rtol=1e-3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deadlines, "FLOPS_PER_SECOND", 2e4)  # a step of the fastest strategy, on a pattern, is too long
        found = dc.low_rank(X, lam=0.05 / 300**0.5, rtol=1e-3, time_limit=1000.0)
    assert found.status is dc.Status.OPTIMAL
    assert found.n_iter > 2 * without.n_iter


def test_a_strategy_that_does_not_apply_takes_no_part():
    assert [point.U for point in run(strategy("a", [(0.1, 0.9)], applies=False), strategy("b", [(0.1, 0.8)]))] == ["b"]
