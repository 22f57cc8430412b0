"""Public functions with data arguments: errors for invalid data, results for unusual data."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from forms import read_only

import diffrac_cvx as dc

X = np.random.default_rng(0).integers(-4, 5, (8, 3)).astype(float)
V = np.eye(3)
Y = np.where(np.arange(8) < 5, 1.0, -1.0)


def relaxed(record):
    """Return the optimum of a relaxation as a function of X and of its parameters."""
    given = {name: value for name, value in {"nu": 0.5, "alpha": 0.2, "k": 3}.items() if name in record.takes}
    return lambda X, **more: dc.solve(record.builder(X, **given | more), "CLARABEL").value


# As functions of X and of keywords; each returns numbers that depend on the data.
TAKES_X = {name: relaxed(record) for name, record in dc.registry.RELAXATIONS.items()} | {
    "fista": lambda X, nu=0.5, **more: dc.fista(X, nu, **more).V,
    "low_rank": lambda X, nu=0.5, **more: dc.low_rank(X, nu, **more).V,
    "certify_v": lambda X, V=V, nu=0.5, **more: dc.certify_v(X, V, nu, **more),
    "certify_y": lambda X, F=Y[:, None], nu=0.5, **more: dc.certify_y(X, F, nu, **more),
    "certify_labels": lambda X, y=Y, lower=0.0, **more: dc.certify_labels(X, y, lower, **more).objective,
    "alternating_optimization": lambda X: dc.baselines.alternating_optimization(X, rng=0),
    "refine": lambda X, y=Y: dc.rounding.refine(X, y),
    "squared_correlation": lambda X, y=Y: dc.metrics.squared_correlation(X, y),
}
RELAXATIONS = dc.registry.RELAXATIONS.items()
WITH_PENALTY = [name for name, record in RELAXATIONS if "penalty" in record.takes]
WITH_PENALTY += ["fista", "low_rank", "certify_v", "certify_y", "certify_labels"]
WITH_NU = [name for name, record in RELAXATIONS if "nu" in record.takes]
WITH_NU += ["fista", "low_rank", "certify_v", "certify_y", "certify_labels"]
WITH_Y = ["certify_labels", "refine", "squared_correlation"]
SILENT = ["certify_v", "certify_y", "certify_labels"]
WARNS = [name for name in TAKES_X if name not in SILENT]
quiet = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")


def by_name(names):
    return pytest.mark.parametrize("function", [TAKES_X[name] for name in names], ids=names)


each = by_name(list(TAKES_X))


# What cannot be used


def with_entry(value, dtype=float):
    changed = X.astype(dtype)
    changed[2, 1] = value
    return changed


def shown(value):
    """Return a value as in a message: numbers shortened, anything else by repr."""
    return f"{value:g}" if isinstance(value, (int, float)) else repr(value)


BAD_X = {  # messages.txt has the words
    "nan": with_entry(np.nan),
    "-inf": with_entry(-np.inf),
    "None": with_entry(None, object),
    "too large": with_entry(1e200),
    "too small": X * 1e-200,
    "0-d": 1.0,
    "1-d": X[:, 0],
    "no rows": X[:0],
    "one row": X[:1],
    "complex": X * 1j,
    "a string": with_entry("high", object),
    "dates": pd.DataFrame({"day": pd.date_range("2017-01-01", periods=8)}),
    "a list of unequal rows": [[1.0, 2.0], [3.0]],
    "an enormous integer": [[10**400, 1], [2, 3]],
    "masked": np.ma.masked_greater(X, 3),
}


@each
@pytest.mark.parametrize("bad", BAD_X.values(), ids=BAD_X)
def test_unusable_data_are_refused(function, bad):
    with pytest.raises(dc.DataError, match=r"X|columns \[.*Rescale"):
        function(bad)


BAD_PARAMETERS = {
    "nu": (WITH_NU, [-0.1, 1.5, np.nan, np.inf, "half", None, [0.5], 1j]),
    "alpha": (["constrained_alpha", "certify_y"], [-0.1, 1.5, np.nan, "half", [0.5]]),
    "tol": (["fista", "low_rank", "solve"], [0.0, -1e-3, np.nan, np.inf, "tight"]),
    "max_iter": (["fista", "low_rank", "solve"], [0, -3, 1.5, np.nan, "many"]),
    "time_limit": (["fista", "low_rank", "solve"], [0.0, -1.0, np.nan, "long"]),
}


@pytest.mark.parametrize(
    ("parameter", "name"), [(parameter, name) for parameter, (names, _) in BAD_PARAMETERS.items() for name in names]
)
def test_a_parameter_out_of_its_range_is_named_with_its_value(parameter, name):
    functions = TAKES_X | {"solve": lambda X, **more: dc.solve(dc.v_space(X), "CLARABEL", **more)}
    for value in BAD_PARAMETERS[parameter][1]:
        with pytest.raises(dc.ParameterError, match=re.escape(f"{parameter} = {shown(value)}")):
            functions[name](X, **{parameter: value})


@by_name(WITH_PENALTY)
def test_a_penalty_of_the_wrong_kind_or_length_is_refused(function):
    for penalty in (0.1, None, "l1"):
        with pytest.raises(dc.ParameterError, match=re.escape(repr(penalty))):
            function(X, penalty=penalty)
    with pytest.raises(dc.ParameterError, match="a has 2 weights for 3 features"):
        function(X, penalty=dc.Penalty(a=[1.0, 2.0]))


@by_name(WITH_Y)
@pytest.mark.parametrize(
    "bad",
    [Y[:5], (Y + 1) / 2, Y * np.nan, Y[:, None], np.where(Y > 0, "b", "m")],
    ids=["too few", "0 and 1", "nan", "2-d", "text"],
)
def test_labels_that_are_not_signs_are_refused(function, bad):
    with pytest.raises(dc.DataError, match=r"y has|y must|labels"):
        function(X, y=bad)


# Odd data; problem/test_metamorphic.py has changes of form that keep the optimum

Z = np.random.default_rng(1).standard_normal((16, 3))


@quiet
@each
def test_booleans_are_zeros_and_ones(function):
    positive = X > 0
    np.testing.assert_array_equal(function(positive), function(positive.astype(float)))


@by_name(WITH_Y)
def test_the_container_of_the_labels_does_not_matter(function):
    for change in (lambda y: y.astype(np.int8), list, pd.Series, read_only):
        np.testing.assert_array_equal(function(X, y=change(Y)), function(X, y=Y))


# What is said of degenerate data


def said(function, X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(X)
    return [warning for warning in caught if warning.category is dc.DegenerateDataWarning]


@by_name(WARNS)
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (X * [1, 0, 1] + 0.1, "column [1] of X is constant"),
        (np.tile([[0.1], [0.3 - 0.2]], (4, 3)), "every column of X is constant"),
    ],
    ids=["one column", "every column"],
)
def test_constant_columns_are_named_once_at_the_line_of_the_user(function, data, words):
    (warning,) = [warning for warning in said(function, data) if "constant" in str(warning.message)]
    assert words in str(warning.message)
    assert warning.filename == __file__


@by_name(SILENT)
def test_a_certificate_says_nothing_of_degenerate_data(function):
    assert said(function, X * [1, 0, 1]) == []


@by_name(["fista", "low_rank"])
@pytest.mark.parametrize(
    ("data", "words"),
    [(Z[:, [0, 1, 2, 0]], "excluded"), (Z[:4], "every labelling is fitted"), (Z.T, "every labelling is fitted")],
    ids=["a column twice", "as many columns as points", "more columns than points"],
)
def test_data_that_determine_no_answer_are_named_at_the_line_of_the_user(function, data, words):
    (warning,) = said(function, data)
    assert words in str(warning.message)
    assert warning.filename == __file__
    assert said(lambda X: function(X, penalty=dc.Penalty(a=0.1)), data) == []


@each
def test_nothing_is_said_of_sound_data(function):
    assert said(function, X) == []
