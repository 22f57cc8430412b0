import re

import numpy as np
import pandas as pd
import pytest
from battery import WITH_NU, X, Y, by_name, each

import diffrac_cvx as dc

SOLVERS = {
    "fista": lambda **more: dc.fista(X, **more),
    "low_rank": lambda **more: dc.low_rank(X, **more),
    "solve": lambda **more: dc.solve(dc.v_space(X), "CLARABEL", **more),
}

each_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


def with_entry(value, dtype=float):
    changed = X.astype(dtype)
    changed[2, 1] = value
    return changed


def shown(value):
    """The value as a message shows it: numbers short, anything else as Python writes it."""
    return f"{value:g}" if isinstance(value, (int, float)) else repr(value)


BAD_X = {
    "nan": (with_entry(np.nan), "nan at row 2, column 1.*impute"),
    "inf": (with_entry(np.inf), "inf at row 2, column 1"),
    "-inf": (with_entry(-np.inf), "-inf at row 2, column 1"),
    "None": (with_entry(None, object), "nan at row 2, column 1"),
    "too large": (with_entry(1e200), r"columns \[1\].*rescale"),
    "too small": (X * 1e-200, r"columns \[0, 1, 2\].*rescale"),
    "0-d": (1.0, r"shape \(\).*2-d"),
    "1-d": (X[:, 0], r"shape \(8,\).*reshape\(-1, 1\)"),
    "3-d": (X[None], r"shape \(1, 8, 3\).*2-d"),
    "no rows": (X[:0], r"empty.*\(0, 3\)"),
    "no columns": (X[:, :0], r"empty.*\(8, 0\)"),
    "one row": (X[:1], "one row.*two points"),
    "complex": (X * 1j, "complex.*real part"),
    "strings": (X.astype(str), "<U.*encode"),
    "a string": (with_entry("high", object), "high.*encode"),
    "a complex": (with_entry(1j, object), "complex.*encode"),
    "dates": (pd.DataFrame({"day": pd.date_range("2017-01-01", periods=8)}), "datetime.*encode"),
    "missing": (pd.DataFrame({"a": pd.array([1, None] * 4, dtype="Int64")}), "NAType|nan at row 1, column 0"),
    "a list of unequal rows": ([[1.0, 2.0], [3.0]], "X"),
    "an enormous integer": ([[10**400, 1], [2, 3]], "X"),
    "masked": (np.ma.masked_greater(X, 3), "mask"),
}


@each
@pytest.mark.parametrize(("bad", "words"), BAD_X.values(), ids=BAD_X)
def test_unusable_data_are_named_with_the_remedy(function, bad, words):
    with pytest.raises(dc.DataError, match=words):
        function(bad)


@pytest.mark.parametrize("nu", [-0.1, 1.5, np.nan, np.inf, "half", None, [0.5], 1j])
@by_name(WITH_NU)
def test_nu_outside_the_unit_interval_is_refused(function, nu):
    with pytest.raises(dc.ParameterError, match=re.escape(f"nu = {shown(nu)}")):
        function(X, nu=nu)


@pytest.mark.parametrize("alpha", [-0.1, 1.5, np.nan, "half", [0.5]])
@by_name(["constrained_alpha", "certify_y"])
def test_alpha_outside_the_unit_interval_is_refused(function, alpha):
    with pytest.raises(dc.ParameterError, match=re.escape(f"alpha = {shown(alpha)}")):
        function(X, alpha=alpha)


@by_name(WITH_NU)
def test_weights_of_the_wrong_number_are_refused(function):
    with pytest.raises(dc.ParameterError, match="a has 2 weights for 3 features"):
        function(X, penalty=dc.Penalty(a=[1.0, 2.0]))


@pytest.mark.parametrize("penalty", [0.1, None, "l1"])
@by_name(WITH_NU)
def test_a_penalty_of_the_wrong_kind_is_refused(function, penalty):
    with pytest.raises(dc.ParameterError, match=re.escape(repr(penalty))):
        function(X, penalty=penalty)


@by_name(["penalized_nu", "certify_y"])
def test_labels_alone_take_no_l1_part(function):
    with pytest.raises(dc.ParameterError, match=r"l1.*lifted or v_space"):
        function(X, penalty=dc.Penalty(c=0.2))


@each_solver
@pytest.mark.parametrize("tol", [0.0, -1e-3, np.nan, np.inf, "tight"])
def test_a_tolerance_must_be_positive(solver, tol):
    with pytest.raises(dc.ParameterError, match=re.escape(f"tol = {shown(tol)}")):
        solver(tol=tol)


@each_solver
@pytest.mark.parametrize("max_iter", [0, -3, 1.5, np.nan, "many"])
def test_max_iter_must_be_a_whole_number(solver, max_iter):
    with pytest.raises(dc.ParameterError, match=re.escape(f"max_iter = {shown(max_iter)}")):
        solver(max_iter=max_iter)


@each_solver
@pytest.mark.parametrize("time_limit", [0.0, -1.0, np.nan, "long"])
def test_a_time_limit_must_be_positive(solver, time_limit):
    with pytest.raises(dc.ParameterError, match=re.escape(f"time_limit = {shown(time_limit)}")):
        solver(time_limit=time_limit)


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("solver", [dc.fista, dc.low_rank])
def test_a_start_of_the_wrong_shape_is_refused(solver, size):
    with pytest.raises(dc.DataError, match=rf"shape \({size}, {size}\).*\(3, 3\)"):
        solver(X, start=np.eye(size))


@pytest.mark.parametrize(("nu", "size", "right"), [(0.5, 2, 4), (0.5, 5, 4), (1.0, 2, 3), (1.0, 4, 3)])
def test_a_matrix_of_directions_of_the_wrong_shape_is_refused(nu, size, right):
    with pytest.raises(dc.DataError, match=rf"V has shape \({size}, {size}\).*\({right}, {right}\)"):
        dc.certify_v(X, np.eye(size), nu=nu)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (Y[:5], "5 labels for 8 points"),
        ((Y + 1) / 2, "only -1 and"),
        (Y * np.nan, "only -1 and"),
        (Y[:, None], r"shape \(8, 1\).*1-d"),
        (np.where(Y > 0, "b", "m"), "only -1 and.*map"),
    ],
)
@by_name(["certify_labels", "refine", "squared_correlation"])
def test_labels_that_are_not_signs_are_refused(function, bad, words):
    with pytest.raises(dc.DataError, match=words):
        function(X, y=bad)


def test_both_errors_are_value_errors():
    assert issubclass(dc.DataError, ValueError)
    assert issubclass(dc.ParameterError, ValueError)
