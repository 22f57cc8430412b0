"""Limits are kept while a single long computation runs: it has a thread of its own, which nobody waits for."""

import threading
import time

import numpy as np
import pytest

import diffrac_cvx as dc
from diffrac_cvx.solvers import watching
from diffrac_cvx.solvers.watching import watch


class Leave(BaseException):  # as KeyboardInterrupt, no Exception
    """What a tick or a consumer raises."""


def leave():
    raise Leave


def nothing():
    """A tick that stays."""


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "diffrac_cvx"]


def wait_until(condition, seconds=5.0):
    """Wait for what another thread does."""
    end = time.perf_counter() + seconds
    while not condition() and time.perf_counter() < end:
        time.sleep(0.01)
    return condition()


def test_the_items_come_in_their_order():
    assert list(watch(iter(range(100)), nothing, threading.Event())) == list(range(100))
    assert list(watch(iter([]), nothing, threading.Event())) == []
    assert list(watch(iter([None, None]), nothing, threading.Event())) == [None, None]


def test_the_generator_runs_in_one_other_thread_and_only_while_an_item_is_waited_for():
    made, where = [], set()

    def items():
        for i in range(5):
            made.append(i)
            where.add(threading.get_ident())
            yield i

    for i in watch(items(), nothing, threading.Event()):
        time.sleep(0.02)
        assert made == list(range(i + 1))
    assert len(where) == 1
    assert threading.get_ident() not in where


@pytest.mark.parametrize("error", [ValueError("seven"), Leave("seven"), MemoryError("seven")], ids=repr)
def test_an_error_of_the_generator_is_raised_in_the_consumer_after_the_items_before_it(error):
    before = len(threads())

    def items():
        yield 1
        raise error

    steps = watch(items(), nothing, threading.Event())
    assert next(steps) == 1
    with pytest.raises(type(error), match="seven"):
        next(steps)
    assert wait_until(lambda: len(threads()) <= before)


def test_an_item_that_is_an_exception_is_an_item():
    """Only what the generator raises is raised."""
    item = ValueError("an item")
    assert list(watch(iter([item]), nothing, threading.Event())) == [item]


@pytest.mark.parametrize("error", [Leave, KeyboardInterrupt, RuntimeError])
def test_who_leaves_by_the_tick_does_not_wait_for_a_generator_that_is_stuck(error):
    left = threading.Event()

    def stuck():
        yield 1
        time.sleep(5.0)
        yield 2

    def tick():
        raise error

    steps = watch(stuck(), tick, left)
    assert next(steps) == 1
    started = time.perf_counter()
    with pytest.raises(error):
        next(steps)
    assert time.perf_counter() - started < 0.5
    assert left.is_set()


def test_who_breaks_off_leaves_and_the_thread_ends_without_another_item():
    left, made = threading.Event(), []
    before = len(threads())

    def items():
        for i in range(1000):
            made.append(i)
            yield i

    steps = watch(items(), nothing, left)
    for i in steps:
        if i == 2:
            break
    steps.close()
    assert left.is_set()
    assert wait_until(lambda: len(threads()) <= before)
    assert made == [0, 1, 2]


def test_the_thread_ends_when_all_items_are_made_and_when_one_is_an_error():
    before = len(threads())
    list(watch(iter(range(3)), nothing, threading.Event()))
    assert wait_until(lambda: len(threads()) <= before)


def test_the_tick_is_called_in_the_thread_of_the_consumer_about_five_times_a_second():
    ticks = []

    def slow():
        time.sleep(0.7)
        yield 1

    list(watch(slow(), lambda: ticks.append(threading.get_ident()), threading.Event()))
    assert set(ticks) == {threading.get_ident()}
    assert 2 <= len(ticks) <= 4


def test_a_quick_generator_is_never_interrupted_by_ticks():
    assert list(watch(iter(range(20)), leave, threading.Event())) == list(range(20))


# The limits of the solver


@pytest.fixture(scope="module")
def many_features():
    """Data on which each step takes long: one component of 900 features."""
    return np.random.default_rng(0).standard_normal((300, 900))


@pytest.mark.parametrize("time_limit", [0.001, 0.5])
def test_the_time_limit_is_kept_within_a_second_and_the_bracket_is_valid(many_features, time_limit):
    started = time.perf_counter()
    penalty = dc.Penalty.l1(1e-5)
    result = dc.low_rank(many_features, penalty=penalty, tol=1e-9, time_limit=time_limit)
    assert time.perf_counter() - started < 1.5
    assert result.status is dc.Status.TIME_LIMIT
    assert 0.0 <= result.lower <= result.upper <= 1.0
    X = many_features - many_features.mean(axis=0)
    alone = 1.0 - np.abs(X).mean(axis=0) ** 2 / ((X**2).mean(axis=0) + 1e-5)  # of each feature alone, in closed form
    assert result.lower <= alone.min()
    assert result.V.shape == (900, 900)


def test_a_hundred_thousand_features_are_answered_within_the_limit():
    X = np.random.default_rng(0).standard_normal((5, 100_000))
    started = time.perf_counter()
    result = dc.low_rank(X, penalty=dc.Penalty.l1(0.5), tol=1e-6, time_limit=2.0)
    assert time.perf_counter() - started < 4.0
    assert 0.0 <= result.lower <= result.upper <= 1.0
    assert result.G.shape[0] == 100_000


def test_a_callback_can_stop_while_a_step_is_under_way(many_features):
    calls = []

    def first(progress):
        calls.append(progress)
        return True

    started = time.perf_counter()
    result = dc.low_rank(many_features, penalty=dc.Penalty.l1(1e-5), tol=1e-9, callback=first)
    assert time.perf_counter() - started < 1.5
    assert result.status is dc.Status.STOPPED
    assert calls


def test_an_interrupt_while_a_step_is_under_way_ends_the_solver(many_features):
    def interrupt(progress):
        raise KeyboardInterrupt

    before, started = len(threads()), time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        dc.low_rank(many_features[:, :700], penalty=dc.Penalty.l1(1e-5), tol=1e-9, callback=interrupt)
    assert time.perf_counter() - started < 1.5
    assert wait_until(lambda: len(threads()) <= before, 20.0)


def test_small_problems_need_no_thread(monkeypatch):
    def refuse(*given):
        raise AssertionError("a thread for a small problem")

    monkeypatch.setattr("diffrac_cvx.solvers.stopping.watch", refuse)
    assert dc.low_rank(np.random.default_rng(0).standard_normal((30, 5)), penalty=dc.Penalty(c=0.2)).gap <= 1e-5


def test_an_answer_with_a_thread_is_that_without(monkeypatch):
    X = dc.datasets.make_planted(60, 30, noise=0.3, rng=0).X
    usual = dc.low_rank(X, penalty=dc.Penalty.l1(0.1), tol=1e-6)
    monkeypatch.setattr("diffrac_cvx.solvers.stopping.is_large", lambda n, D: True)
    monkeypatch.setattr(watching, "PATIENCE", 0.001)
    watched = dc.low_rank(X, penalty=dc.Penalty.l1(0.1), tol=1e-6)
    assert (watched.lower, watched.upper, watched.n_iter) == (usual.lower, usual.upper, usual.n_iter)
    np.testing.assert_array_equal(watched.V, usual.V)
