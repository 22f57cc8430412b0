"""Calls of a user's function that are given up at a time limit."""

import threading
import time

import pytest

from diffrac_cvx.machine.abandoned_calls import call_within
from diffrac_cvx.machine.processes import OutOfTimeError


def divide(a, b):
    return a / b


@pytest.mark.parametrize("seconds", [None, 60.0])
def test_a_call_within_its_limit_returns_its_value_or_raises_its_error(seconds):
    assert call_within(seconds, divide, 1.0, 2.0) == 0.5
    with pytest.raises(ZeroDivisionError):
        call_within(seconds, divide, 1.0, 0.0)


def test_a_function_that_handles_every_exception_ends_after_its_limit_too():
    calls = []

    def endless():
        while True:
            try:
                calls.append(1)
                time.sleep(0.001)
            except Exception:
                continue

    threads = threading.active_count()
    with pytest.raises(OutOfTimeError, match=r"stopped after 0\.05 s"):
        call_within(0.05, endless)
    for _ in range(1000):
        if threading.active_count() == threads:
            break
        time.sleep(0.01)
    assert threading.active_count() == threads
    assert calls
