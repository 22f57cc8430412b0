"""Calls with arguments of any value, type and shape end soon, in a result or in an error that names the argument."""

import time
import warnings

import numpy as np
import pytest
from hostile import all_entrances, hostile_call

import diffrac_cvx as dc

ERRORS = dc.DataError | dc.ParameterError | dc.ResourceError | dc.InvalidBoundError
CALLS, AT_ONCE = 1200, 30
SECONDS = 10.0  # of a call on a busy machine; nearly all take a hundredth of one
OTHER_NAMES = {  # by which a message may name an argument
    "lam": ("c has",), "ridge": ("a has",), "penalty": ("a has", "c has"), "groups": ("group ", "column "),
    "constraints": ("must_link", "labels", "sizes"), "X": ("table of shape", "y has"), "y": ("labels",),
    "y_true": ("y_pred",), "lower": ("lower bound",),
}  # fmt: skip


@pytest.fixture(scope="module")
def every():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return all_entrances()


def error_of(function, arguments):
    """Return the error of a call, None without one."""
    try:
        function(**arguments)
    except Exception as error:
        return error
    return None


@pytest.mark.filterwarnings("ignore")
def test_valid_arguments_of_every_entrance_are_taken(every):
    assert {"low_rank", "solve", "validate", "Penalty", "Constraints", "DiffracClustering.score"} <= set(every)
    for entrance in every.values():
        entrance.function(**entrance.given)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, CALLS, AT_ONCE))
def test_a_call_ends_in_a_result_or_in_an_error_that_names_the_argument(every, first, capsys):
    for seed in range(first, first + AT_ONCE):
        name, arguments, replaced = hostile_call(every, np.random.default_rng(seed))
        started = time.perf_counter()
        error = error_of(every[name].function, arguments)
        words = [word for one in replaced for word in (one, *OTHER_NAMES.get(one, ()))]
        assert isinstance(error, ERRORS | None), (seed, name, list(replaced), error)
        assert error is None or any(word in str(error) for word in words), (seed, name, list(replaced), error)
        assert time.perf_counter() - started < SECONDS, (seed, name, list(replaced))
