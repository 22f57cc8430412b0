import warnings

import battery
import numpy as np
import pandas as pd
import pytest
from battery import TAKES_X, Y, by_name, each

import diffrac_cvx as dc

X = np.random.default_rng(1).standard_normal((16, 3))
SILENT = ["certify_v", "certify_y", "certify_labels"]
WARNS = [name for name in TAKES_X if name not in SILENT]
quiet = pytest.mark.filterwarnings("ignore::diffrac_cvx.DegenerateDataWarning")


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


# Odd data; problem/test_metamorphic.py has the optima that stay

SAME = {
    "a constant column": np.column_stack([X[:, :1], np.full(16, 0.1), X[:, 1:]]),
    "a column constant up to rounding": np.column_stack([X, np.where(np.arange(16) % 2, 0.1, 0.3 - 0.2)]),
    "a column of zeros": np.column_stack([X, np.zeros(16)]),
    "a column twice": X[:, [0, 1, 2, 0]],
    "a column in other units": X * [1e-8, 1.0, 1e8],
    "scale 1e-8": 1e-8 * X,
    "scale 1e8": 1e8 * X,
    "an offset": X + np.array([1e6, -1e3, 0.0]),
    "another basis": X @ np.random.default_rng(2).standard_normal((3, 3)),
    "every row twice": np.repeat(X, 2, axis=0),
    "another order": X[::-1, ::-1],
}


@quiet
@pytest.mark.parametrize("form", [form for form in SAME if form not in ("every row twice", "another order")])
def test_a_change_of_form_leaves_the_labels_of_the_baseline(form):
    y = dc.baselines.alternating_optimisation(X, rng=0)
    np.testing.assert_array_equal(dc.baselines.alternating_optimisation(SAME[form], rng=0), y)
    start = np.where(np.arange(16) < 7, 1.0, -1.0)
    np.testing.assert_array_equal(dc.rounding.refine(SAME[form], start), dc.rounding.refine(X, start))
    found, expected = (dc.metrics.squared_correlation(Z, start) for Z in (SAME[form], X))
    assert found == pytest.approx(expected, rel=1e-6)


@quiet
@pytest.mark.parametrize("form", [form for form in SAME if form != "every row twice"])
def test_a_change_of_form_leaves_the_bracket_of_a_factor_of_labels(form):
    F = dc.low_rank(X, tol=1e-7).F
    F = F[::-1] if form == "another order" else F
    lower, upper = dc.certify_y(SAME[form], F)
    optimum = dc.low_rank(X, tol=1e-7).value
    assert lower == pytest.approx(optimum, abs=1e-6)
    assert upper == pytest.approx(optimum, abs=1e-6)


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
        (battery.X * [1, 0, 1] + 0.1, "column [1] of X is constant"),
        (np.tile([[0.1], [0.3 - 0.2]], (4, 3)), "every column of X is constant"),
    ],
    ids=["one column", "every column"],
)
def test_constant_columns_are_named_once_at_the_line_of_the_user(function, data, words):
    (warning,) = [warning for warning in said(function, data) if "constant" in str(warning.message)]
    assert words in str(warning.message)
    assert warning.filename == battery.__file__


@by_name(SILENT)
def test_a_certificate_says_nothing_of_degenerate_data(function):
    assert said(function, battery.X * [1, 0, 1]) == []


@pytest.mark.parametrize("name", ["fista", "low_rank"])
@pytest.mark.parametrize(
    ("data", "words"),
    [(X[:, [0, 1, 2, 0]], "rank 3 < d = 4"), (X[:4], "every labelling is fitted"), (X.T, "every labelling is fitted")],
    ids=["a column twice", "as many columns as points", "more columns than points"],
)
def test_data_that_determine_no_answer_are_named_at_the_line_of_the_user(name, data, words):
    (warning,) = said(TAKES_X[name], data)
    assert words in str(warning.message)
    assert warning.filename == battery.__file__
    assert said(lambda X: TAKES_X[name](X, penalty=dc.Penalty(a=0.1)), data) == []


@each
def test_nothing_is_said_of_sound_data(function):
    assert said(function, battery.X) == []


# Containers: tests/points/test_forms.py tries all forms of tables


@quiet
@each
def test_booleans_are_zeros_and_ones(function):
    positive = battery.X > 0
    np.testing.assert_array_equal(function(positive), function(positive.astype(float)))


@each
def test_the_data_are_not_modified(function):
    given = battery.X.copy()
    function(given)
    np.testing.assert_array_equal(given, battery.X)


@by_name(["certify_labels", "refine", "squared_correlation"])
@pytest.mark.parametrize(
    "change", [lambda y: y.astype(np.int8), list, pd.Series, read_only], ids=["int8", "list", "pandas", "read-only"]
)
def test_the_container_of_the_labels_does_not_matter(function, change):
    np.testing.assert_array_equal(function(battery.X, y=change(Y)), function(battery.X, y=Y))


def test_the_arrays_of_a_penalty_are_neither_modified_nor_shared():
    c = np.array([0.1, 0.2, 0.3])
    penalty = dc.Penalty(c=c)
    before = dc.low_rank(battery.X, penalty=penalty).value
    np.testing.assert_array_equal(c, [0.1, 0.2, 0.3])
    c[:] = 9.0
    assert dc.low_rank(battery.X, penalty=penalty).value == before
    assert dc.low_rank(battery.X, penalty=dc.Penalty(c=[0.1, 0.2, 0.3])).value == before
